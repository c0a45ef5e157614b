"""Ranges of functions that turn: waves, cosh, the sign, and x**a·log(x) as one function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy

from trueup.enclosure import intervals
from trueup.enclosure.intervals import Floats, Mask, Range, loosened, magnitude

_FAR = 1e6
"""Beyond, the position within a period is not known well enough: the answer is the full range."""

_NEAR = 1e-9
"""Extremes this close, in periods, count as inside; sin differs from 1 by less than 1e-17 there."""


def sine(a: Range) -> Range:
    """Return sin a.

    Examples
    --------
    >>> sine(Range(np.array([0.0]), np.array([3.0]), np.array([True])))[1]
    array([1.])
    """
    return _wave(a, 0.25, np.sin)


def cosine(a: Range) -> Range:
    """Return cos a.

    Examples
    --------
    >>> cosine(Range(np.array([-1.0]), np.array([2.0]), np.array([True])))[1]
    array([1.])
    """
    return _wave(a, 0.0, np.cos)


def tangent(a: Range) -> Range:
    """Return tan a, the whole line where a pole may be inside.

    Examples
    --------
    >>> tangent(Range(np.array([1.0]), np.array([2.0]), np.array([True])))[:2]
    (array([-inf]), array([inf]))
    """
    pole = _holds(a, 0.25, 0.5)
    near = np.where(pole, 0.0, a.low), np.where(pole, 0.0, a.high)
    low, high, _ = loosened(np.tan(near[0]), np.tan(near[1]), a.tame)
    return Range(np.where(pole, -np.inf, low), np.where(pole, np.inf, high), a.tame & ~pole)


def hyperbolic_cosine(a: Range) -> Range:
    """Return cosh a.

    Examples
    --------
    >>> hyperbolic_cosine(Range(np.array([-1.0]), np.array([2.0]), np.array([True])))[0]
    array([1.])
    """
    size = magnitude(a)
    with np.errstate(over="ignore"):
        low, high, tame = loosened(np.cosh(size.low), np.cosh(size.high), a.tame)
    return Range(np.maximum(low, 1.0), high, tame)


def signum(a: Range) -> Range:
    """Return the sign of a: -1, 0 or 1.

    Examples
    --------
    >>> signum(Range(np.array([-1.0, 1.0]), np.array([2.0, 2.0]), np.array([True, True])))[0]
    array([-1.,  1.])
    """
    return Range(np.sign(a.low), np.sign(a.high), a.tame & ((a.low > 0) | (a.high < 0)))


def _wave(a: Range, peak: float, function: Callable[[Floats], Floats]) -> Range:
    """Return the range of a wave that peaks at so many periods from 0."""
    far = (a.low < -_FAR) | (a.high > _FAR)
    ends = [function(np.where(far, 0.0, end)) for end in a[:2]]
    low, high, tame = loosened(np.minimum(*ends), np.maximum(*ends), a.tame)
    high = np.where(_holds(a, peak, 1.0), 1.0, np.minimum(high, 1.0))
    low = np.where(_holds(a, peak + 0.5, 1.0), -1.0, np.maximum(low, -1.0))
    return Range(low, high, tame)


def _holds(a: Range, place: float, period: float) -> Mask:
    """Tell where the interval holds, or may hold, one of the points (place + k·period)·2π."""
    far = (a.low < -_FAR) | (a.high > _FAR)
    low, high = (np.where(far, 0.0, end) / (2 * np.pi) - place for end in a[:2])
    return far | (np.floor(high / period + _NEAR) >= np.ceil(low / period - _NEAR))


def power_log(x: Range, exponent: float) -> Range:
    """Return x**a·log(x) for a > 0: it falls from 0 to −1/(a·e) at e**(−1/a), then rises.

    Its factors run to 0 and to −∞ at the same time, so their ranges say nothing.

    Examples
    --------
    >>> x = Range(np.array([0.0]), np.array([1.0]), np.array([True]))
    >>> power_log(x, 1.0)[0].round(6)
    array([-0.367879])
    """
    power = np.full(x.low.shape, exponent)
    ends = [_at(end, Range(power, power, x.tame)) for end in x[:2]]
    low = np.minimum(ends[0].low, ends[1].low)
    high = np.maximum(ends[0].high, ends[1].high)
    place, least = np.exp(-1 / power), -np.exp(-1.0) / power
    turns = (x.low <= place * (1 + 1e-9)) & (x.high >= place * (1 - 1e-9))
    low = np.where(turns, np.minimum(low, loosened(least, least, x.tame).low), low)
    nowhere = x.high <= 0
    low, high = np.where(nowhere, -np.inf, low), np.where(nowhere, np.inf, high)
    return Range(low, high, x.tame & (x.low > 0))


def _at(end: Floats, exponent: Range) -> Range:
    """Return the value at an end of the cells; at 0 it is the limit 0."""
    point = Range(end, end, exponent.tame)
    power, log = intervals.power(point, exponent), intervals.logarithm(point)
    low, high, tame = intervals.multiply(power, log)
    return Range(np.where(end <= 0, 0.0, low), np.where(end <= 0, 0.0, high), tame)


def entropic(expr: sympy.Mul) -> tuple[sympy.Expr, float, sympy.Expr] | None:
    """Return x, a and the rest of a product that holds x**a·log(x), None for others.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> entropic(3 * q**2 * sympy.log(q))
    (q, 2.0, 3)
    """
    for factor in expr.args:
        if isinstance(factor, sympy.log):
            inner = factor.args[0]
            for other in expr.args:
                base, exponent = other.as_base_exp()
                if base == inner and exponent.is_Rational and _is_dyadic(exponent):
                    rest = sympy.Mul(*(a for a in expr.args if a not in (factor, other)))
                    return inner, float(exponent), rest
    return None


def _is_dyadic(exponent: sympy.Rational) -> bool:
    """Tell positive exponents that a double holds exactly."""
    return bool(exponent > 0) and exponent.q in (1, 2, 4, 8)
