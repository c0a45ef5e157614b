"""All zeros of a formula in one variable."""

from __future__ import annotations

from typing import NamedTuple

import sympy

from trueup.enclosure.factors import factors
from trueup.enclosure.search import Search

FAR = 1e300
"""Zeros further out are not looked for."""


class Zeros(NamedTuple):
    """The zeros found, in order, and whether there can be no others."""

    points: tuple[float, ...]
    complete: bool


def zeros(
    expr: sympy.Expr, symbol: sympy.Symbol, low: float, high: float, limit: int = 64
) -> Zeros:
    """Return the real zeros of an expression on a closed interval.

    Zeros that double precision cannot tell apart count as one. A formula that only comes close to
    zero by less than rounding errors, or whose cases exclude the zero of one of them, is reported
    to vanish there. An infinite end stands for 1e300.

    Parameters
    ----------
    expr
        An expression in real symbols, one only.
    symbol
        Its variable.
    low, high
        The interval; infinite ends are allowed.
    limit
        The most zeros wanted; of more, those nearest to 0 count and ``complete`` is False.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> zeros(q**2 - 4, q, 0, float("inf"))
    Zeros(points=(2.0,), complete=True)
    >>> zeros(sympy.sin(q), q, -1, 7).points
    (0.0, 3.141592653589793, 6.283185307179586)
    """
    points: list[float] = []
    complete = True
    for factor in factors(expr, symbol):
        found = _factor_zeros(factor, symbol, max(low, -FAR), min(high, FAR), limit)
        points += [float(point) for point in found.points]
        complete = complete and found.complete
    points = _distinct(points)
    nearest = sorted(sorted(points, key=abs)[:limit])
    return Zeros(tuple(nearest), complete and len(points) <= limit)


def _distinct(points: list[float]) -> list[float]:
    """Return the points in order, those equal up to rounding once."""
    result: list[float] = []
    for point in sorted(points):
        if not result or point - result[-1] > 1e-14 * abs(point):
            result.append(point + 0.0)
    return result


def _factor_zeros(
    expr: sympy.Expr, symbol: sympy.Symbol, low: float, high: float, limit: int
) -> Zeros:
    """Return the zeros of one factor: at once if it is linear, by search otherwise."""
    shift, scaled = expr.as_independent(symbol, as_Add=True)
    scale, variable = scaled.as_independent(symbol, as_Add=False)
    if variable == symbol and not (shift.free_symbols or scale.free_symbols):
        point = float(-shift / scale)
        return Zeros((point,) if low <= point <= high else (), complete=True)
    points, complete = Search(expr, symbol, low, high).run(limit)
    return Zeros(tuple(points), complete)
