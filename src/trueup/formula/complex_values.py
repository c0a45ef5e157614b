"""A formula at complex numbers, with many digits: where it is analytic, and how it continues.

Sympy would rebuild the formula at every number, and ask of each part whether it is real, positive
or zero, which takes much longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import sympy

from trueup.formula.operations import FUNCTIONS

_FUNCTIONS = {row.symbolic: row.analytic for row in FUNCTIONS.values() if row.analytic}
"""All analytic functions of the grammar."""

_DIGITS = (60, 120, 240, 480)
_SETTLED = 25  # digits in which two precisions agree
_LARGEST = mpmath.mpf(10) ** 1000  # of an argument: the exponential of more is beyond every use


class NotAnalyticError(Exception):
    """The formula has a part that is not analytic, or no value at some point."""


def complex_values(expr: sympy.Expr, symbol: sympy.Symbol, points: Sequence[Any]) -> list[Any]:
    """Return an analytic formula at complex points of like size, to 25 digits if there are.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> [value] = complex_values((1 - sympy.cos(q)) / q**2, q, [mpmath.mpc(0, 1e-9)])
    >>> float(value.real)
    0.5
    """
    first, digits = _settled(expr, symbol, points[0], _SETTLED)
    with mpmath.workdps(digits):
        return [first, *(_value(expr, symbol, z) for z in points[1:])]


def real_value(
    expr: sympy.Expr, symbol: sympy.Symbol, place: sympy.Number, digits: int
) -> sympy.Expr | None:
    """Return an analytic formula at a real number to so many digits, None unless it is real.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> [real_value(sympy.log(q), q, sympy.Integer(n), 20) for n in (2, -2)]
    [0.69314718055994530942, None]
    """
    value, _ = _settled(expr, symbol, place, digits)
    if mpmath.im(value) or not mpmath.isfinite(value):
        return None
    return sympy.Float(mpmath.re(value), digits)


def _settled(expr: sympy.Expr, symbol: sympy.Symbol, z: Any, wanted: int) -> tuple[Any, int]:
    """Return a value on which two precisions agree, or the best there is, and the digits used."""
    before = None
    for digits in _DIGITS:
        with mpmath.workdps(digits):
            value = _value(expr, symbol, _constant(z) if isinstance(z, sympy.Number) else z)
            if before is not None and abs(value - before) <= mpmath.mpf(10) ** -wanted * abs(value):
                break
            before = value
    return value, digits


def _value(expr: sympy.Expr, symbol: sympy.Symbol, z: Any) -> Any:
    try:
        return _at(expr, {symbol: z})
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise NotAnalyticError from error


def _at(expr: sympy.Basic, known: dict[sympy.Basic, Any]) -> Any:
    """Return a part of the formula at the point, computed once."""
    if expr not in known:
        known[expr] = _computed(expr, known) if expr.args else _constant(expr)
    return known[expr]


def _computed(expr: sympy.Basic, known: dict[sympy.Basic, Any]) -> Any:
    if not expr.is_Pow and expr.func not in (sympy.Add, sympy.Mul, *_FUNCTIONS):
        raise NotAnalyticError
    args = [_at(arg, known) for arg in expr.args]
    if expr.is_Add:
        return mpmath.fsum(args)
    if expr.is_Mul:
        return mpmath.fprod(args)
    if expr.is_Pow:
        return args[0] ** int(expr.exp) if expr.exp.is_Integer else mpmath.power(*args)
    if abs(args[0]) > _LARGEST:
        raise NotAnalyticError
    return _FUNCTIONS[expr.func](args[0])


def _constant(expr: sympy.Basic) -> Any:
    if expr.is_Rational:
        return mpmath.mpf(expr.p) / expr.q
    number = expr.evalf(mpmath.mp.dps) if expr.is_number else expr
    if not (number.is_Float and number.is_finite):
        raise NotAnalyticError
    return mpmath.mpf(number._mpf_)
