"""The parts of a formula under construction, and what makes one unfit.

Every operation looks at its operands *before* sympy evaluates anything, so neither towers of
powers nor huge constants are ever computed. The parser and the admission of sympy expressions
both build through these checks, hence share their limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import sympy
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom

from trueup.exact import number, symbolic
from trueup.formula import limits
from trueup.formula.operations import NAMES

_KNOWN = (
    *(sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Rational, sympy.Float),
    *(type(sympy.pi), type(sympy.E), sympy.Min, sympy.Max, *NAMES),
    *(sympy.Piecewise, ExprCondPair, Relational, sympy.And, sympy.Or, sympy.Not, BooleanAtom),
)
_SMALLEST, _LARGEST = 2.3e-308, 1.7e308


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


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the variables and the degree of what it compares."""

    expr: sympy.Basic
    degree: int


def checked(build: Callable[[], sympy.Expr], constant: float | None, degree: int) -> Value:
    """Build an expression and check what sympy made of it.

    Examples
    --------
    >>> checked(lambda: sympy.Symbol("q", real=True) * 2, None, 1).expr
    2*q
    """
    check_degree(degree)
    expr = evaluated(build)
    if expr.is_Number:
        check_number(expr)
    if constant is None and not expr.free_symbols:
        constant = _double(expr)
    if constant is not None and _is_intricate(expr):
        expr = symbolic(number(constant, "number"))
    return Value(expr, constant, degree)


def _is_intricate(expr: sympy.Expr) -> bool:
    """Tell a constant so large that sympy would ponder over it for minutes."""
    return not expr.is_Number and is_long(expr, limits.CONSTANT_NODES - 1)


def _double(expr: sympy.Expr) -> float:
    """Return a constant in double precision."""
    try:
        return float(expr)
    except (TypeError, ValueError, OverflowError):
        raise not_a_number() from None


def evaluated(build: Callable[[], sympy.Basic]) -> sympy.Basic:
    """Let sympy evaluate, refusing whatever is not real and finite.

    Examples
    --------
    >>> evaluated(lambda: sympy.Integer(1) / 0)
    Traceback (most recent call last):
    trueup.formula.nodes.UnfitError: is not a finite real number
    """
    try:
        expr = build()
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise not_a_number() from error
    except RecursionError:
        hint = "write fractions of fractions as one"
        raise UnfitError("is nested too deeply to be evaluated", hint) from None
    if is_foreign(expr) or _has_case_without_value(expr):
        raise not_a_number()
    return expr


def _has_case_without_value(expr: sympy.Basic) -> bool:
    """Tell whether a power, taken case by case, made a constant that is not real."""
    cases = expr.args if isinstance(expr, sympy.Piecewise) else ()
    return any(not v.free_symbols and v.is_extended_real is False for v, _ in cases)


def is_foreign(expr: sympy.Basic) -> bool:
    """Tell whether sympy left the real numbers, or the grammar.

    Examples
    --------
    >>> is_foreign(sympy.I), is_foreign(sympy.pi)
    (True, False)
    """
    return not all(isinstance(part, _KNOWN) for part in _parts(expr))


def _parts(expr: sympy.Basic) -> Iterator[sympy.Basic]:
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
    return sum(1 for _ in islice(_parts(expr), most + 1))


def is_long(expr: sympy.Basic, most: int) -> bool:
    """Whether an expression has more than so many parts, without counting them all."""
    return parts_of(expr, most) > most


def fold(function: Callable[[list[float]], float], values: Sequence[Value]) -> float | None:
    """Return the function of constants in double precision, None if one is not constant.

    Examples
    --------
    >>> q, two = Value(sympy.Symbol("q", real=True), None, 1), Value(sympy.Integer(2), 2.0, 0)
    >>> fold(sum, [two, two]), fold(sum, [two, q])
    (4.0, None)
    """
    constants = [value.constant for value in values if value.constant is not None]
    if len(constants) < len(values):
        return None
    try:
        result = function(constants)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise not_a_number() from None
    if isinstance(result, complex) or not math.isfinite(result):
        raise not_a_number()
    return result


def check_degree(degree: int) -> None:
    """Refuse a degree beyond the limit."""
    if degree > limits.DEGREE:
        reason = f"has degree {degree}, beyond {limits.DEGREE}"
        raise UnfitError(reason, f"keep powers of powers and products to degree {limits.DEGREE}")


def check_digits(base: sympy.Expr, exponent: sympy.Expr) -> None:
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
        raise _too_long()


def check_number(atom: sympy.Number) -> None:
    """Refuse constants beyond double precision, and endless exact ones."""
    if atom.is_Rational and _digits(atom) > limits.CONSTANT_DIGITS:
        raise _too_long()
    if atom != 0 and not _SMALLEST < abs(atom) < _LARGEST:
        raise not_a_number()


def _digits(atom: sympy.Rational) -> int:
    """Return the decimal digits of the longer of numerator and denominator, nearly."""
    return int(max(int(atom.p).bit_length(), int(atom.q).bit_length()) * 0.30103) + 1


def _too_long() -> UnfitError:
    return UnfitError("needs too many digits", "write the constant as a decimal, e.g. 1.5e20")


def not_a_number() -> UnfitError:
    """Return the complaint about a constant that is infinite, complex or beyond doubles."""
    hint = "keep every constant part finite and real, between 1e-300 and 1e300"
    return UnfitError("is not a finite real number", hint)
