"""Build expressions part by part: numbers, sums, products, powers, functions, conditions, cases.

Every operation looks at its operands *before* sympy evaluates anything, so that neither towers of
powers nor huge constants are ever computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom

from trueup.exact import number, symbolic
from trueup.formula import limits
from trueup.formula.limits import is_long, parts
from trueup.formula.operations import EXTREMA, FUNCTIONS, NAMES, SIGNS

_KNOWN = (
    *(sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Rational, sympy.Float),
    *(type(sympy.pi), type(sympy.E), sympy.Min, sympy.Max, *NAMES),
    *(sympy.Piecewise, ExprCondPair, Relational, sympy.And, sympy.Or, sympy.Not, BooleanAtom),
)
_SMALLEST, _LARGEST = 2.3e-308, 1.7e308
_ROUNDS = 8  # of building an expression anew: sympy comes to rest after two or three
_TURNS = 6  # of rearranging a comparison: sympy comes to rest after two, or goes round for ever


class UnfitError(Exception):
    """An operation that makes no formula: the reason, and what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Value:
    """A real expression, its double where it is constant, and its degree at most."""

    expr: sympy.Expr
    constant: float | None
    degree: int


# -- numbers and names -----------------------------------------------------------------------------


def variable(name: str) -> Value:
    """Return the variable of that name: a real symbol."""
    return Value(sympy.Symbol(name, real=True), None, 1)


def constant(expr: sympy.Expr) -> Value:
    """Return an exact number, a float or π.

    Examples
    --------
    >>> constant(sympy.pi).constant
    3.141592653589793
    """
    return Value(expr, float(expr), 0)


def literal(digits: str) -> Value:
    """Return a written number, exact where it is an integer.

    Examples
    --------
    >>> literal("1e3").expr, literal("0.10").expr
    (1000, 0.100000000000000)
    """
    mantissa, _, exponent = digits.lower().partition("e")
    long = len(mantissa.replace(".", "")) > limits.DIGITS or len(exponent) > 6
    if long or abs(int(exponent or 0)) > limits.DECIMAL_EXPONENT:
        hint = f"use at most {limits.DIGITS} digits and exponents up to {limits.DECIMAL_EXPONENT}"
        raise UnfitError("has too many digits", hint)
    given = int(mantissa) if mantissa.isdigit() and not exponent else float(digits)
    if given == 0 and mantissa.strip("0."):
        raise _not_a_number()
    expr = symbolic(number(given, "number"))
    check_number(expr)
    return constant(expr)


# -- arithmetic ------------------------------------------------------------------------------------


def total(terms: Sequence[Value]) -> Value:
    """Return the sum of the terms."""
    degree = max(term.degree for term in terms)
    return _checked(lambda: sympy.Add(*_exprs(terms)), _fold(math.fsum, terms), degree)


def product(factors: Sequence[Value]) -> Value:
    """Return the product of the factors."""
    degree = sum(factor.degree for factor in factors)
    return _checked(lambda: sympy.Mul(*_exprs(factors)), _fold(math.prod, factors), degree)


_MINUS_ONE = constant(sympy.Integer(-1))


def negative(value: Value) -> Value:
    """Return minus the value."""
    return product([_MINUS_ONE, value])


def reciprocal(value: Value) -> Value:
    """Return 1 over the value."""
    if value.expr == 0 or value.constant == 0:
        raise UnfitError("divides by zero", "divide by something that is not zero")
    return power(value, _MINUS_ONE)


def power(base: Value, exponent: Value) -> Value:
    """Return base to the exponent; a constant exponent is at most 100, the degree at most 200.

    Examples
    --------
    >>> power(variable("q"), constant(sympy.Integer(3))).expr
    q**3
    """
    size = exponent.constant
    if size is None and base.constant == 0:
        reason = "is a power of 0 whose exponent is no number"
        raise UnfitError(reason, "write what is meant: where(q == 0, 1, 0)")
    if size is None:
        degree = max(1, base.degree) * max(1, exponent.degree)
    elif abs(size) > limits.EXPONENT:
        reason = f"has the exponent {size:.6g}, beyond {limits.EXPONENT}"
        raise UnfitError(reason, f"use exponents of at most {limits.EXPONENT} in size")
    else:
        degree = math.ceil(base.degree * abs(size))
    value = _fold(lambda pair: pair[0] ** pair[1], [base, exponent])
    _check_degree(degree)
    _check_digits(base.expr, exponent.expr)
    return _checked(lambda: _raised(base.expr, exponent.expr), value, degree)


def _raised(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    """Return a power; of a sum unevaluated: sympy asks at length whether it is infinite."""
    if base.is_Add and base.free_symbols and exponent.is_Integer and abs(exponent - 1) > 1:
        return sympy.Pow(base, exponent, evaluate=False)
    return sympy.Pow(base, exponent)


def call(name: str, argument: Value) -> Value:
    """Return a function of one argument.

    Examples
    --------
    >>> call("sqrt", variable("q")).expr
    sqrt(q)
    """
    if name == "sqrt":
        return power(argument, constant(sympy.Rational(1, 2)))
    function = FUNCTIONS[name]
    value = _fold(lambda one: function.numeric(one[0]), [argument])
    degree = 0 if value is not None else max(1, argument.degree)
    make = {"abs": _absolute, "exp": _exponential}.get(name, function.symbolic)
    return _checked(lambda: make(argument.expr), value, degree)


def _absolute(expr: sympy.Expr) -> sympy.Expr:
    """Return |expr|; sympy's own answer may speak of complex parts, then leave it as it is."""
    evaluated = sympy.Abs(expr)
    return sympy.Abs(expr, evaluate=False) if is_foreign(evaluated) else evaluated


def _exponential(expr: sympy.Expr) -> sympy.Expr:
    """Return e^expr; of e^(q - 800.5) sympy would make 0·e^q, a number in a sum is a fraction."""
    terms = (sympy.Rational(t) if t.is_Float else t for t in sympy.Add.make_args(expr))
    return sympy.exp(sympy.Add(*terms) if expr.is_Add else expr)


def extremum(name: str, values: Sequence[Value]) -> Value:
    """Return the least or the greatest of the values.

    Built unevaluated: sympy compares all pairs otherwise, which takes seconds.

    Examples
    --------
    >>> extremum("max", [variable("q"), constant(sympy.Integer(0))]).expr
    Max(0, q)
    """
    kind = EXTREMA[name]
    pick: Callable[..., float] = min if name == "min" else max
    alike = (v.expr.args if isinstance(v.expr, kind) else (v.expr,) for v in values)
    flat = dict.fromkeys(arg for args in alike for arg in args)
    if len(flat) > limits.ARGUMENTS:
        reason = f"has {len(flat)} arguments, more than {limits.ARGUMENTS}"
        raise UnfitError(reason, f"give {name} at most {limits.ARGUMENTS} different arguments")
    numbers = [arg for arg in flat if not arg.free_symbols]
    rest = [arg for arg in flat if arg.free_symbols]
    best = [pick(numbers, key=float)] if numbers else []
    degree = max(v.degree for v in values)
    return _checked(lambda: kind(*best, *rest, evaluate=False), _fold(pick, values), degree)


def _exprs(values: Sequence[Value]) -> list[sympy.Expr]:
    return [value.expr for value in values]


# -- conditions ------------------------------------------------------------------------------------


def compare(sign: str, left: Value, right: Value) -> sympy.Basic:
    """Return the comparison of two values.

    Examples
    --------
    >>> compare("<=", variable("q"), constant(sympy.Integer(2)))
    q <= 2
    """
    if left.expr.has(sympy.Piecewise) or right.expr.has(sympy.Piecewise):
        hint = "join conditions with and, or, e.g. where(q > 0 and q < 1, a, b)"
        raise UnfitError("compares a where(...)", hint)
    return _evaluated(lambda: stable(SIGNS[sign](left.expr, right.expr)))


def choose(test: sympy.Basic, yes: Value, no: Value) -> Value:
    """Return one value where a condition holds and another elsewhere.

    Examples
    --------
    >>> q, s = variable("q"), variable("s")
    >>> choose(compare(">", q, s), q, s).expr
    Piecewise((q, q > s), (s, True))
    """
    if test in (sympy.true, sympy.false):
        return yes if test is sympy.true else no
    others = no.expr.args if isinstance(no.expr, sympy.Piecewise) else [(no.expr, True)]
    if others[0][0] == yes.expr:
        test, others = sympy.Or(test, others[0][1]), others[1:]
    degree = max(1, yes.degree, no.degree)
    return _checked(lambda: sympy.Piecewise((yes.expr, test), *others), None, degree)


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
    found = _settled(test)
    if found is None:
        found = _settled(test.func(test.lhs - test.rhs, 0))
    if found is None:
        raise _not_a_number()
    return found


def _settled(test: sympy.Basic) -> sympy.Basic | None:
    """Rearrange a few times; None if it does not come to rest."""
    for _ in range(_TURNS):
        before, test = test, _rearranged(test)
        if test == before:
            return test
    return None


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


def _checked(build: Callable[[], sympy.Expr], constant: float | None, degree: int) -> Value:
    """Build an expression and check what sympy made of it."""
    _check_degree(degree)
    expr = _evaluated(build)
    if expr.is_Number:
        check_number(expr)
    if constant is None and not expr.free_symbols:
        try:
            constant = float(expr)
        except (TypeError, ValueError, OverflowError):
            raise _not_a_number() from None
    if constant is not None and not expr.is_Number and is_long(expr, limits.CONSTANT_NODES - 1):
        expr = symbolic(number(constant, "number"))  # sympy would ponder over it for minutes
    return Value(expr, constant, degree)


def _evaluated(build: Callable[[], sympy.Basic]) -> sympy.Basic:
    """Let sympy evaluate, refusing whatever is not real and finite."""
    try:
        expr = build()
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise _not_a_number() from error
    except RecursionError:
        hint = "write fractions of fractions as one"
        raise UnfitError("is nested too deeply to be evaluated", hint) from None
    # a power, taken case by case, may make a constant that is not real
    values = [value for value, _ in expr.args] if isinstance(expr, sympy.Piecewise) else []
    if is_foreign(expr) or any(not v.free_symbols and v.is_extended_real is False for v in values):
        raise _not_a_number()
    return expr


def is_foreign(expr: sympy.Basic) -> bool:
    """Tell whether sympy left the real numbers, or the grammar.

    Examples
    --------
    >>> is_foreign(sympy.I), is_foreign(sympy.pi)
    (True, False)
    """
    return not all(isinstance(part, _KNOWN) for part in parts(expr))


def _fold(function: Callable[[list[float]], float], values: Sequence[Value]) -> float | None:
    """Return the function of constants in double precision, None if one is not constant."""
    constants = [value.constant for value in values if value.constant is not None]
    if len(constants) < len(values):
        return None
    try:
        result = function(constants)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise _not_a_number() from None
    if isinstance(result, complex) or not math.isfinite(result):
        raise _not_a_number()
    return result


def _check_degree(degree: int) -> None:
    """Refuse a degree beyond the limit."""
    if degree > limits.DEGREE:
        reason = f"has degree {degree}, beyond {limits.DEGREE}"
        raise UnfitError(reason, f"keep powers of powers and products to degree {limits.DEGREE}")


def _check_digits(base: sympy.Expr, exponent: sympy.Expr) -> None:
    """Refuse a power whose exact constants would get very long."""
    if not exponent.is_number:
        return
    size = max((_digits(atom) for atom in base.atoms(sympy.Rational)), default=1)
    if not exponent.is_Integer:
        too_long = size > limits.ROOT_DIGITS
    else:
        times = abs(int(exponent)) if base.is_Rational or base.is_Mul else 1
        too_long = size * times > limits.CONSTANT_DIGITS
    if too_long:
        raise UnfitError(*_TOO_LONG)


def check_number(atom: sympy.Number) -> None:
    """Refuse constants beyond double precision, and endless exact ones."""
    if atom.is_Integer and abs(int(atom)) < 2**53:  # sympy's comparisons are slow
        return
    if atom.is_Rational and _digits(atom) > limits.CONSTANT_DIGITS:
        raise UnfitError(*_TOO_LONG)
    if atom != 0 and not _SMALLEST < abs(atom) < _LARGEST:
        raise _not_a_number()


def _digits(atom: sympy.Rational) -> int:
    """Return the decimal digits of the longer of numerator and denominator, nearly."""
    return int(max(int(atom.p).bit_length(), int(atom.q).bit_length()) * 0.30103) + 1


_TOO_LONG = ("needs too many digits", "write the constant as a decimal, e.g. 1.5e20")


def _not_a_number() -> UnfitError:
    """Return the complaint about a constant that is infinite, complex or beyond doubles."""
    hint = "keep every constant part finite and real, between 1e-300 and 1e300"
    return UnfitError("is not a finite real number", hint)
