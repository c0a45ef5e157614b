"""What an expression does as q → a from one side: its limit, or how it diverges.

The order |q − a|^−rate·(−log|q − a|)^power is read off the formula: with q = a ± e^{−t} it is the
growth in t. Where terms may cancel, so that this is only an upper bound, values in high precision
decide; a limit that is approached too slowly to be told from a divergence is left undecided.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import sympy

from trueup.formula.complex_values import NotAnalyticError, real_value
from trueup.formula.period import WAVES
from trueup.formula.substitution import at, real_at
from trueup.inverse.growth import Growth, growth

_STEPS = tuple(sympy.Rational(1, 10**k) for k in (20, 25, 30))
_DIGITS = 40
_SLOWEST = sympy.Rational(1, 2)
"""Of two successive changes the second may be this part of the first: |q − a|^(1/17) or faster."""

_SLOW = 0.02
"""Orders |q − a|^−e with a smaller e are not told from logarithms by values."""

_T = sympy.Dummy("t", real=True)


class Approach(NamedTuple):
    """The limit, None if there is none or it is not known; whether it diverges; |q − a|^exponent.

    ``proved`` if what is said follows from the formula, not from values beside the point.
    """

    limit: sympy.Expr | None
    diverges: bool
    exponent: float
    proved: bool = False


def approach(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int) -> Approach:
    """Return what an expression in one variable does beside a point.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> float(approach(sympy.sin(q) / q, q, sympy.Integer(0), 1).limit)
    1.0
    >>> approach(sympy.log(-sympy.log(q)), q, sympy.Integer(0), 1).diverges
    True
    """
    order = order_beside(expr, symbol, point, side)
    if order is not None and order.size < (0.0, 0.0):
        return Approach(sympy.S.Zero, False, -order.rate, proved=True)
    if order is not None and order.sharp and order.size > (0.0, 0.0):
        return Approach(None, True, -order.rate, proved=True)
    if order is not None and _oscillates(expr, symbol, point, side):
        return Approach(None, False, -order.rate)
    return _measured(expr, symbol, point, side)


def order_beside(
    expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int
) -> Growth | None:
    """Return the growth in t of an expression at q = a ± e^{−t}, None if it is not certain."""
    if not point.is_Rational or expr.has(sympy.Float):
        return None
    moved = at(expr, {symbol: point + side * sympy.exp(-_T)})
    if moved.has(sympy.nan, sympy.I):
        return None
    order = growth(moved, _T, 1)
    return order if order.formal else None


def integrable(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int) -> bool:
    """Whether an expression whose integral has a limit is absolutely integrable beside a point.

    It is if it does not oscillate, or if it is small enough.
    """
    order = order_beside(expr, symbol, point, side)
    return order is None or order.carried(1.0) or not _oscillates(expr, symbol, point, side)


def _oscillates(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int) -> bool:
    """Whether the argument of a wave is unbounded beside a point."""
    for wave in expr.atoms(*WAVES):
        order = order_beside(wave.args[0], symbol, point, side)
        if order is not None and order.size > (0.0, 0.0):
            return True
    return False


def _measured(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int) -> Approach:
    values = []
    for step in _STEPS:
        value = _value(expr, symbol, point + side * step, _DIGITS, 400)
        if value is None:
            return Approach(None, False, -math.inf)
        values.append(value)
    first, _, third = (abs(v) for v in values)
    if third == 0 or first == 0:
        return Approach(values[2], False, math.inf)
    exponent = float(sympy.log(first / third) / sympy.log(_STEPS[0] / _STEPS[2]))
    if third > 1.05 * first and third > 1e-6 * size(expr, symbol, point):
        return Approach(None, exponent < -_SLOW, exponent)
    return Approach(_limit(*values), False, exponent)


def _value(
    expr: sympy.Expr, symbol: sympy.Symbol, place: sympy.Expr, digits: int = 15, most: int = 100
) -> sympy.Expr | None:
    if place.is_Number:
        with contextlib.suppress(NotAnalyticError):
            return real_value(expr, symbol, place, digits)
    return real_at(expr, {symbol: place}, digits, most)


def _limit(first: sympy.Expr, second: sympy.Expr, third: sympy.Expr) -> sympy.Expr | None:
    """Return what three values tend to (Aitken's extrapolation), None if they do not settle."""
    before, after = second - first, third - second
    if abs(after) <= sympy.Float("1e-14") * max(abs(third), 1):
        return third
    if abs(after) > _SLOWEST * abs(before):
        return None
    return third - after**2 / (after - before)


def size(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr) -> float:
    """Return how large an expression is near a point, the measure of what is small there."""
    sizes = [0.0]
    for step in (sympy.Rational(1, 1000), sympy.Rational(-1, 1000)):
        value = _value(expr, symbol, point + step)
        if value is not None:
            sizes.append(abs(float(value)))
    return max(sizes)
