"""Interval arithmetic on arrays, rounded outwards.

A `Range` holds one interval per cell and whether the function is proven defined and continuous
on the whole cell. Lower ends are never +inf and upper ends never -inf, so no NaN arises; where a
function is not defined on part of a cell the interval holds its values on the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_QUIET = np.errstate(all="ignore")
_MAX = np.finfo(float).max
_SLACK = 2.0**-49
"""Elementary functions of NumPy and the C library stay within 4 units in the last place."""


class Range(NamedTuple):
    """Intervals [low, high], and where the function is defined and continuous throughout."""

    low: Floats
    high: Floats
    tame: Mask


def ranged(low: Floats, high: Floats, tame: Mask) -> Range:
    """Return a range, infinite ends on the right sides.

    Examples
    --------
    >>> inf = np.array([np.inf])
    >>> ranged(inf, inf, np.array([True])).low
    array([1.79769313e+308])
    """
    return Range(np.minimum(low, _MAX), np.maximum(high, -_MAX), tame)


def everything(tame: Mask) -> Range:
    """Return the whole line: nothing is known.

    Examples
    --------
    >>> everything(np.array([True]))
    Range(low=array([-inf]), high=array([inf]), tame=array([False]))
    """
    full = np.full(tame.shape, np.inf)
    return Range(-full, full, np.zeros_like(tame))


@_QUIET
def loosened(low: Floats, high: Floats, tame: Mask) -> Range:
    """Return the range of an elementary function, widened by its possible error.

    Examples
    --------
    >>> one = np.array([1.0])
    >>> loosened(one, one, one > 0).high > 1
    array([ True])
    """
    low, high, _ = ranged(low, high, tame)
    low = np.nextafter(low - np.abs(low) * _SLACK, -np.inf)
    high = np.nextafter(high + np.abs(high) * _SLACK, np.inf)
    return Range(low, high, tame)


def _rounded(low: Floats, high: Floats, low_exact: Mask, high_exact: Mask, tame: Mask) -> Range:
    """Step outwards by one unit in the last place where the result is not exact."""
    low, high, _ = ranged(low, high, tame)
    low = np.where(low_exact, low, np.nextafter(low, -np.inf))
    high = np.where(high_exact, high, np.nextafter(high, np.inf))
    return Range(low, high, tame)


@_QUIET
def add(a: Range, b: Range) -> Range:
    """Return a + b; sums without rounding error stay as they are.

    Examples
    --------
    >>> one = Range(np.array([1.0]), np.array([2.0]), np.array([True]))
    >>> add(one, one)[:2]
    (array([2.]), array([4.]))
    """
    low, low_exact = _sum(a.low, b.low)
    high, high_exact = _sum(a.high, b.high)
    return _rounded(low, high, low_exact, high_exact, a.tame & b.tame)


def _sum(a: Floats, b: Floats) -> tuple[Floats, Mask]:
    """Return the sum and whether it is exact (Knuth's two-sum)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, error == 0


@_QUIET
def multiply(a: Range, b: Range) -> Range:
    """Return a · b, where 0 · ∞ is 0: an infinite end is never attained.

    Examples
    --------
    >>> a = Range(np.array([0.0]), np.array([2.0]), np.array([True]))
    >>> b = Range(np.array([-np.inf]), np.array([3.0]), np.array([True]))
    >>> multiply(a, b)[:2]
    (array([-inf]), array([6.]))
    """
    ends = [x * y for x in a[:2] for y in b[:2]]
    ends = [np.where(np.isnan(end), 0.0, end) for end in ends]
    short = _is_short(a.low) & _is_short(a.high) & _is_short(b.low) & _is_short(b.high)
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    low, high, tame = _rounded(low, high, short, short, a.tame & b.tame)
    alike = ((a.low >= 0) & (b.low >= 0)) | ((a.high <= 0) & (b.high <= 0))
    unlike = ((a.low >= 0) & (b.high <= 0)) | ((a.high <= 0) & (b.low >= 0))
    low = np.where(alike, np.maximum(low, 0.0), low)
    return Range(low, np.where(unlike, np.minimum(high, 0.0), high), tame)


def times(a: float, b: float) -> float:
    """Return the product of two ends: 0·∞ is 0, for what is 0 is so however large the other gets.

    Examples
    --------
    >>> times(0.0, float("inf")), times(-2.0, float("inf"))
    (0.0, -inf)
    """
    return 0.0 if a == 0 or b == 0 else a * b


def _is_short(values: Floats) -> Mask:
    """Tell numbers of at most 24 binary digits: their products are exact."""
    return np.equal(values.astype(np.float32).astype(np.float64), values)


@_QUIET
def reciprocal(a: Range) -> Range:
    """Return 1/a, the whole line where a changes sign.

    Examples
    --------
    >>> reciprocal(Range(np.array([0.0, -1.0]), np.array([2.0, 1.0]), np.array([True, True])))[:2]
    (array([ 0.5, -inf]), array([inf, inf]))
    """
    low, high = 1 / (a.high + 0.0), 1 / (a.low + 0.0)
    high = np.where(a.low == 0, np.inf, high)
    low = np.where(a.high == 0, -np.inf, low)
    exact_low, exact_high = (np.abs(np.frexp(end)[0]) == 0.5 for end in (a.high, a.low))
    result = _rounded(low, high, exact_low, exact_high, a.tame & ((a.low > 0) | (a.high < 0)))
    crossing = ((a.low < 0) & (a.high > 0)) | ((a.low == 0) & (a.high == 0))
    low = np.where(a.low >= 0, np.maximum(result.low, 0.0), result.low)
    high = np.where(a.high <= 0, np.minimum(result.high, 0.0), result.high)
    low, high = np.where(crossing, -np.inf, low), np.where(crossing, np.inf, high)
    return Range(low, high, result.tame)


def magnitude(a: Range) -> Range:
    """Return |a|.

    Examples
    --------
    >>> magnitude(Range(np.array([-2.0]), np.array([1.0]), np.array([True])))[:2]
    (array([0.]), array([2.]))
    """
    least = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return Range(least, np.maximum(np.abs(a.low), np.abs(a.high)), a.tame)


@_QUIET
def integer_power(a: Range, exponent: int) -> Range:
    """Return a**exponent, sharp for even powers.

    Examples
    --------
    >>> integer_power(Range(np.array([-2.0]), np.array([1.0]), np.array([True])), 2)[:2]
    (array([0.]), array([4.]))
    """
    if exponent < 0:
        return reciprocal(integer_power(a, -exponent))
    if exponent % 2 == 0:
        return _natural_power(magnitude(a), exponent)
    below = _natural_power(magnitude(Range(a.low, a.low, a.tame)), exponent)
    above = _natural_power(magnitude(Range(a.high, a.high, a.tame)), exponent)
    low = np.where(a.low < 0, -below.high, below.low)
    return Range(low, np.where(a.high < 0, -above.low, above.high), a.tame)


def _natural_power(a: Range, exponent: int) -> Range:
    """Return a**exponent for a >= 0 by repeated squaring."""
    result = None
    while exponent:
        if exponent % 2:
            result = a if result is None else multiply(result, a)
        exponent //= 2
        a = multiply(a, a) if exponent else a
    ones = np.ones_like(a.low)
    return result or Range(ones, ones, a.tame)


@_QUIET
def power(a: Range, exponent: Range) -> Range:
    """Return a**exponent for a >= 0, dropping the negative part of a.

    x**y is monotone in x and in y, so its extremes are at the corners.

    Examples
    --------
    >>> a = Range(np.array([1.0]), np.array([4.0]), np.array([True]))
    >>> power(a, Range(np.array([0.5]), np.array([0.5]), np.array([True])))[1].round(6)
    array([2.])
    """
    base = np.maximum(a.low, 0.0), np.maximum(a.high, 0.0)
    ends = [np.power(x, y) for x in base for y in exponent[:2]]
    sound = (a.low > 0) | ((a.low == 0) & (exponent.low > 0))
    tame = a.tame & exponent.tame & sound
    result = loosened(np.minimum.reduce(ends), np.maximum.reduce(ends), tame)
    result = Range(np.maximum(result.low, 0.0), result.high, tame)
    return _outside(result, a.high < 0)


def signed_power(a: Range, exponent: Range) -> Range:
    """Return a**exponent where the exponent varies: a negative base counts at whole exponents.

    Examples
    --------
    >>> two = Range(np.array([-2.0]), np.array([-2.0]), np.array([True]))
    >>> signed_power(two, Range(np.array([1.0]), np.array([2.0]), np.array([True])))[1].round(6)
    array([4.])
    """
    size = power(magnitude(a), exponent)
    positive = power(a, exponent)
    negative = a.low < 0
    low = np.where(negative, -size.high, positive.low)
    return Range(low, np.where(negative, size.high, positive.high), positive.tame & ~negative)


@_QUIET
def square_root(a: Range) -> Range:
    """Return √a.

    Examples
    --------
    >>> square_root(Range(np.array([-1.0]), np.array([4.0]), np.array([True])))[:2]
    (array([0.]), array([2.]))
    """
    low, high = np.sqrt(np.maximum(a.low, 0.0)), np.sqrt(np.maximum(a.high, 0.0))
    exact_low, exact_high = _is_root(low, a.low), _is_root(high, a.high)
    result = _rounded(low, high, exact_low, exact_high, a.tame & (a.low >= 0))
    return _outside(Range(np.maximum(result.low, 0.0), *result[1:]), a.high < 0)


def _is_root(root: Floats, value: Floats) -> Mask:
    """Tell where a root is exact."""
    return _is_short(root) & np.equal(root * root, value)


def _outside(result: Range, undefined: Mask) -> Range:
    """Return the whole line where the function is not defined at all."""
    low = np.where(undefined, -np.inf, result.low)
    return Range(low, np.where(undefined, np.inf, result.high), result.tame & ~undefined)


def monotone(
    function: Callable[[Floats], Floats], domain: tuple[float, float], image: tuple[float, float]
) -> Callable[[Range], Range]:
    """Return the interval version of an increasing function on a domain.

    Examples
    --------
    >>> log = monotone(np.log, (0.0, np.inf), (-np.inf, np.inf))
    >>> log(Range(np.array([-1.0]), np.array([1.0]), np.array([True])))[0]
    array([-inf])
    """
    least, greatest = domain

    @_QUIET
    def extension(a: Range) -> Range:
        low = function(np.clip(a.low, least, greatest))
        high = function(np.clip(a.high, least, greatest))
        inside = (a.low >= least) & (a.high <= greatest)
        inside &= ~(np.isinf(low) & (a.low == least) | np.isinf(high) & (a.high == greatest))
        result = loosened(low, high, a.tame & (inside | np.isinf(least)))
        low, high = (np.clip(end, *image) for end in result[:2])
        return _outside(Range(low, high, result.tame), (a.high < least) | (a.low > greatest))

    return extension


logarithm = monotone(np.log, (0.0, np.inf), (-np.inf, np.inf))
"""The natural logarithm."""
