"""Build expressions part by part: numbers, sums, products, powers, functions, conditions, cases.

Powers are checked *before* sympy evaluates them and every part after it, so that neither towers of
powers nor huge constants are ever computed. The limits keep any text, hostile ones included, far
below half a second, and leave room for every formula a person would write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import sympy
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom

from trueup.exact import number, read_exact, symbolic
from trueup.formula.operations import FUNCTIONS, NAMES

CHARACTERS = 2_000  # of the text
DEPTH = 60  # brackets, signs, powers and calls inside one another
CALLS = 12  # function calls inside one another, `where` not counted
NODES = 400  # names, numbers, operators and calls together
DIGITS = 40  # of a number literal, and of exact constants, numerator and denominator each
EXPONENT = 100  # a constant one, q**100, and the degree of powers of powers and products
CONSTANT_NODES = 16  # parts of an exact irrational constant, sqrt(2)/pi; then it becomes a float
ARGUMENTS = 8  # of one min or max, min(min(a, b), c) counting as three
EXTREMA = 12  # calls of min and max
JOINED = 16  # comparisons joined by `and`, `or`, `not`

_KNOWN = (
    *(sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Rational, sympy.Float),
    *(type(sympy.pi), type(sympy.E), sympy.Min, sympy.Max, *NAMES),
    *(sympy.Piecewise, ExprCondPair, Relational, sympy.And, sympy.Or, sympy.Not, BooleanAtom),
)
HINT = (
    "keep constants finite, real and between 1e-300 and 1e300, with at most "
    f"{DIGITS} digits, and exponents and degrees up to {EXPONENT}"
)
"""What to do about a part that is unfit."""

_SMALLEST, _LARGEST = 2.3e-308, 1.7e308
_NOT_A_NUMBER = "is not a finite real number"
_ROUNDS = 8  # of building an expression anew: sympy comes to rest after two or three
_TURNS = 6  # of rearranging a comparison: sympy comes to rest after two, or goes round for ever


class UnfitError(Exception):
    """An operation that makes no formula: the reason."""


# -- the size of expressions -----------------------------------------------------------------------


def parts(expr: sympy.Basic) -> Iterator[sympy.Basic]:
    """Yield every part of an expression, without recursion."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(part.args)


def parts_of(expr: sympy.Basic, most: int) -> int:
    """Return how many parts an expression has; more than so many count as one more.

    Examples
    --------
    >>> parts_of(sympy.Symbol("x") + 1, 100), parts_of(sympy.Symbol("x") + 1, 1)
    (3, 2)
    """
    return sum(1 for _ in islice(parts(expr), most + 1))


def is_long(expr: sympy.Basic, most: int) -> bool:
    """Whether an expression has more than so many parts, without counting them all."""
    return parts_of(expr, most) > most


# -- numbers and names -----------------------------------------------------------------------------


def variable(name: str) -> sympy.Symbol:
    """Return the variable of that name: a real symbol."""
    return sympy.Symbol(name, real=True)


def literal(digits: str) -> sympy.Expr:
    """Return a written number, exact where it is an integer.

    Examples
    --------
    >>> literal("1e3"), literal("0.10")
    (1000, 0.100000000000000)
    """
    if len(digits.lower().partition("e")[0]) > DIGITS + 1:  # and a point
        raise UnfitError("has too many digits")
    expr = _evaluated(lambda: symbolic(number(read_exact(digits), "number")))
    check_number(expr)
    return expr


# -- arithmetic ------------------------------------------------------------------------------------


def reciprocal(value: sympy.Expr) -> sympy.Expr:
    """Return 1 over the value."""
    if not value.free_symbols and float(value) == 0:
        raise UnfitError("divides by zero")
    return power(value, sympy.S.NegativeOne)


def power(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    """Return base to the exponent; constant exponents and degrees are at most 100.

    Examples
    --------
    >>> power(variable("q"), sympy.Integer(3))
    q**3
    """
    if not exponent.free_symbols:
        size = float(exponent)
        if abs(size) > EXPONENT:
            raise UnfitError(f"has the exponent {size:.6g}, beyond {EXPONENT}")
        _check_degree(math.ceil(degree(base) * abs(size)))
        _check_digits(base, exponent)
    elif base == 0:
        raise UnfitError("is a power of 0 whose exponent is no number")
    return checked(_raised, base, exponent)


def _raised(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    """Return a power; of a sum unevaluated: sympy asks at length whether it is infinite."""
    if base.is_Add and base.free_symbols and exponent.is_Integer and abs(exponent - 1) > 1:
        return sympy.Pow(base, exponent, evaluate=False)
    return sympy.Pow(base, exponent)


def call(name: str, argument: sympy.Expr) -> sympy.Expr:
    """Return a function of one argument.

    Examples
    --------
    >>> call("sqrt", variable("q"))
    sqrt(q)
    """
    if name == "sqrt":
        return power(argument, sympy.S.Half)
    make = {"abs": _absolute, "exp": _exponential}.get(name, FUNCTIONS[name].symbolic)
    return checked(make, argument)


def _absolute(expr: sympy.Expr) -> sympy.Expr:
    """Return |expr|; sympy's own answer may speak of complex parts, then leave it as it is."""
    evaluated = sympy.Abs(expr)
    return sympy.Abs(expr, evaluate=False) if is_foreign(evaluated) else evaluated


def _exponential(expr: sympy.Expr) -> sympy.Expr:
    """Return e^expr; of e^(q - 800.5) sympy would make 0·e^q, a number in a sum is a fraction."""
    terms = (sympy.Rational(repr(float(t))) if t.is_Float else t for t in sympy.Add.make_args(expr))
    return sympy.exp(sympy.Add(*terms) if expr.is_Add else expr)


def extremum(name: str, values: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return the least or the greatest of the values.

    Built unevaluated: sympy compares all pairs otherwise, which takes seconds.

    Examples
    --------
    >>> extremum("max", [variable("q"), sympy.Integer(0)])
    Max(0, q)
    """
    kind, pick = (sympy.Min, min) if name == "min" else (sympy.Max, max)
    flat = dict.fromkeys(arg for v in values for arg in (v.args if isinstance(v, kind) else (v,)))
    if len(flat) > ARGUMENTS:
        raise UnfitError(f"has {len(flat)} arguments, more than {ARGUMENTS}")
    numbers = [arg for arg in flat if not arg.free_symbols]
    rest = [arg for arg in flat if arg.free_symbols]
    best = [pick(numbers, key=float)] if numbers else []
    return checked(lambda: kind(*best, *rest, evaluate=False))


# -- conditions ------------------------------------------------------------------------------------


def compare(
    relation: Callable[..., sympy.Basic], left: sympy.Expr, right: sympy.Expr
) -> sympy.Basic:
    """Return the comparison of two values.

    Examples
    --------
    >>> compare(sympy.LessThan, variable("q"), sympy.Integer(2))
    q <= 2
    """
    if left.has(sympy.Piecewise) or right.has(sympy.Piecewise):
        raise UnfitError("compares a where(...): join conditions with and, or")
    return _evaluated(lambda: stable(relation(left, right)))


def choose(test: sympy.Basic, yes: sympy.Expr, no: sympy.Expr) -> sympy.Expr:
    """Return one value where a condition holds and another elsewhere.

    Examples
    --------
    >>> q, s = variable("q"), variable("s")
    >>> choose(q > s, q, s)
    Piecewise((q, q > s), (s, True))
    """
    if test in (sympy.true, sympy.false):
        return yes if test is sympy.true else no
    others = no.args if isinstance(no, sympy.Piecewise) else [(no, True)]
    if others[0][0] == yes:  # sympy would make a conjunction of disjunctions of them
        test, others = sympy.Or(test, others[0][1]), others[1:]
    return checked(lambda: sympy.Piecewise((yes, test), *others))


def stable(test: sympy.Basic) -> sympy.Basic:
    """Return a comparison in a form that sympy leaves alone.

    Building a ``Piecewise``, sympy rearranges its comparisons until nothing changes; some go
    round in circles for ever. Those become "difference against zero".

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> stable(1 - 2 * q < 0)
    q > 1/2
    """
    for form in (test, test.func(test.lhs - test.rhs, 0)) if test.args else (test,):
        found = form
        for _ in range(_TURNS):
            before, found = found, _rearranged(found)
            if found == before:
                return found
    raise UnfitError(_NOT_A_NUMBER)


def _rearranged(test: sympy.Basic) -> sympy.Basic:
    """Return -2*q + 1 < 0 as q > 1/2, as sympy does for a Piecewise."""
    test = test.canonical if isinstance(test, Relational) else test
    if not isinstance(test, Relational):
        return test
    shift, scaled = test.lhs.as_coeff_Add(rational=True)
    factor, left = scaled.as_coeff_Mul(rational=True)
    right = (test.rhs - shift) / factor
    return test.reversed.func(left, right) if factor < 0 else test.func(left, right)


# -- the whole -------------------------------------------------------------------------------------


def settle(expr: sympy.Expr) -> sympy.Expr:
    """Return the expression with floats that are integers exact, all numbers checked.

    Examples
    --------
    >>> settle(sympy.Float(2.0) * sympy.Symbol("q", real=True))
    2*q
    """
    for _ in range(_ROUNDS):
        before = expr
        expr = _evaluated(lambda old=before: _rebuilt(old))  # type: ignore[misc]
        if expr == before:
            break
    for atom in expr.atoms(sympy.Number):
        check_number(atom)
    return expr


def _rebuilt(expr: sympy.Basic) -> sympy.Basic:
    """Rebuild from the leaves: sympy may see more the second time."""
    if expr.is_Float and float(expr).is_integer() and (expr.is_zero or 1 <= abs(expr) < 2**53):
        return sympy.Integer(int(expr))
    if not expr.args:
        return expr
    args = [_rebuilt(arg) for arg in expr.args]
    if isinstance(expr, sympy.Abs):
        return _absolute(args[0])
    if isinstance(expr, sympy.Pow) and not isinstance(expr, sympy.exp):
        return _raised(*args)
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return expr.func(*args, evaluate=False)
    built = expr.func(*args)
    return stable(built) if isinstance(built, Relational) else built


# -- checks ----------------------------------------------------------------------------------------


def checked(make: Callable[..., sympy.Expr], *args: Any) -> sympy.Expr:
    """Build an expression and check what sympy made of it.

    Examples
    --------
    >>> checked(sympy.Add, variable("q"), variable("q"))
    2*q
    """
    expr = _evaluated(lambda: make(*args))
    _check_degree(degree(expr))
    if expr.is_Number:
        check_number(expr)
    elif not expr.free_symbols:
        value = float(_evaluated(lambda: sympy.Float(float(expr))))
        if not math.isfinite(value):
            raise UnfitError(_NOT_A_NUMBER)
        if is_long(expr, CONSTANT_NODES - 1):  # sympy would ponder over it for minutes
            return symbolic(number(value, "number"))
    return expr


def _evaluated(build: Callable[[], sympy.Basic]) -> sympy.Basic:
    """Let sympy evaluate, refusing whatever is not real and finite."""
    try:
        expr = build()
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise UnfitError(_NOT_A_NUMBER) from error
    except RecursionError:
        raise UnfitError("is nested too deeply to be evaluated") from None
    # a power, taken case by case, may make a constant that is not real
    values = [value for value, _ in expr.args] if isinstance(expr, sympy.Piecewise) else []
    if is_foreign(expr) or any(not v.free_symbols and v.is_extended_real is False for v in values):
        raise UnfitError(_NOT_A_NUMBER)
    return expr


def is_foreign(expr: sympy.Basic) -> bool:
    """Tell whether sympy left the real numbers, or the grammar.

    Examples
    --------
    >>> is_foreign(sympy.I), is_foreign(sympy.pi)
    (True, False)
    """
    return not all(isinstance(part, _KNOWN) for part in parts(expr))


@lru_cache(maxsize=4096)
def degree(expr: sympy.Basic) -> int:
    """Return the degree at most, in all symbols, that powers and products build up.

    Examples
    --------
    >>> degree((variable("q") ** 3 + 1) ** 2 / variable("s"))
    7
    """
    if not expr.args:
        return int(expr.is_Symbol)
    if isinstance(expr, sympy.Pow) and expr.exp.is_Number:
        return math.ceil(degree(expr.base) * abs(float(expr.exp)))
    degrees = map(degree, expr.args)
    return sum(degrees) if expr.is_Mul else max(degrees)


def _check_degree(degree: int) -> None:
    """Refuse a degree beyond the limit."""
    if degree > EXPONENT:
        raise UnfitError(f"has degree {degree}, beyond {EXPONENT}")


def _check_digits(base: sympy.Expr, exponent: sympy.Expr) -> None:
    """Refuse a power whose exact constants would get very long."""
    size = max((_digits(atom) for atom in base.atoms(sympy.Rational)), default=0)
    grows = exponent.is_Integer and (base.is_Rational or base.is_Mul)
    if size * (abs(int(exponent)) if grows else 1) > DIGITS:
        raise UnfitError("needs too many digits")


def check_number(atom: sympy.Number) -> None:
    """Refuse constants beyond double precision, and endless exact ones."""
    if atom.is_Integer and abs(int(atom)) < 2**53:  # sympy's comparisons are slow
        return
    if atom.is_Rational and _digits(atom) > DIGITS:
        raise UnfitError("needs too many digits")
    if atom != 0 and not _SMALLEST < abs(atom) < _LARGEST:
        raise UnfitError(_NOT_A_NUMBER)


def _digits(atom: sympy.Rational) -> float:
    """Return the decimal digits of the longer of numerator and denominator."""
    return math.log10(max(abs(int(atom.p)), int(atom.q)))
