"""Where a formula in one statistic may not be smooth, and what it does there.

Special points are zeros of guards, looked for on a grid around every number that is written in the
formula, then polished to many digits. What happens there is read off f and f′ at distances 1e-12,
1e-24 and 1e-48: limits, poles, jumps, kinks, infinite slopes.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from prove import reading
from prove.reading import DIGITS, BeyondError, UndefinedError

STEPS = (mpf("1e-12"), mpf("1e-24"), mpf("1e-48"))
"""Distances at which one-sided limits are taken: each the square of the one before, so that powers
converge fast, logarithms not at all, and the two are told apart."""
ROOT = mpf("1e-5")
"""What falls to this part from one distance to the next vanishes like a root, or faster."""
MOST = 14
"""Special points looked at: a formula such as 1/sin(q) has no end of them."""
LAST = 1e-15
"""A few units in the last place of a double."""
_LINEAR = np.linspace(-60, 160, 4401)
"""Covers every anchor and bound of the generator, 0.05 apart."""
_LOGARITHMIC = np.geomspace(1e-9, 1e5, 141)


@dataclasses.dataclass(frozen=True)
class Limit:
    """What a function tends to from one side: a number, or how it fails to."""

    value: mpf | None
    how: str
    """"finite", "infinite", "undefined" or "undecided"."""


@dataclasses.dataclass(frozen=True)
class Side:
    """Value and slope of f as q → a from one side."""

    value: Limit
    slope: Limit


# -- looking -------------------------------------------------------------------------------------


def specials(
    tree: ast.expr, name: str, others: Mapping[str, float], low: float, high: float
) -> list[mpf]:
    """Return the special points in [low, high], those nearest to its ends and to 0 first."""
    centres = {0.0, 1.0, -1.0} | {c for c in reading.constants(tree) if abs(c) < 1e17}
    centres |= {-c for c in centres} | {e for e in (low, high) if math.isfinite(e)}
    grid = _grid(centres, low, high)
    found: list[mpf] = []
    with mpmath.workdps(DIGITS):
        for guard in reading.guards(tree):
            if name in reading.names(guard):
                for rough in _candidates(guard, name, others, grid):
                    try:
                        point = _polish(guard, name, others, rough)
                    except BeyondError:
                        continue
                    if not any(abs(point - p) <= mpf("1e-60") * (1 + abs(p)) for p in found):
                        found.append(point)
    ends = [e for e in (low, high, 0.0) if math.isfinite(e)]
    found.sort(key=lambda p: float(min(abs(p - e) for e in ends)))
    first, last = (mpf(e) if math.isinf(e) else reading.exact(e) for e in (low, high))
    return [p for p in found if first <= p <= last][:MOST]


def _grid(centres: set[float], low: float, high: float) -> np.ndarray:
    parts = [_LINEAR, *([c, *(c + _LOGARITHMIC), *(c - _LOGARITHMIC)] for c in sorted(centres))]
    if math.isfinite(low) and math.isfinite(high):
        parts.append(np.linspace(low, high, 401))
    grid = np.unique(np.concatenate(parts))
    margin = 1e-9 * (1 + abs(grid))  # a bound may be a rounded special point
    return grid[(grid >= low - margin) & (grid <= high + margin)]


def _candidates(
    guard: ast.expr, name: str, others: Mapping[str, float], grid: np.ndarray
) -> Iterator[float]:
    """Yield floats near which a guard vanishes, changes sign or ends."""
    if not len(grid):
        return
    seen = reading.values(guard, {name: grid, **others})
    yield from _ends_of_zeros(grid, seen == 0)[:MOST]
    with np.errstate(all="ignore"):
        sign = np.where(np.isfinite(seen), np.sign(seen), 2)
        change = np.flatnonzero((sign[1:] != sign[:-1]) & (seen[1:] != 0) & (seen[:-1] != 0))
    for i in change[: 4 * MOST]:
        yield _bisected(guard, name, others, grid[i], grid[i + 1])
    yield from _touching(guard, name, others, grid, np.abs(seen))


def _ends_of_zeros(grid: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Return where a guard is 0, of a whole stretch of zeros only the ends."""
    before, after = np.append(False, zero[:-1]), np.append(zero[1:], False)
    return grid[zero & ~(before & after)]


def _bisected(guard: ast.expr, name: str, others: Mapping[str, float], a: float, b: float) -> float:
    """Return where the sign of a guard changes between a and b, or where it ceases to be real."""

    def sign(x: float) -> float:
        value = float(reading.values(guard, {name: np.array([x]), **others})[0])
        return math.copysign(1.0, value) if math.isfinite(value) else 2.0

    left = sign(a)
    for _ in range(80):
        middle = (a + b) / 2
        if middle in (a, b):
            break
        a, b = (middle, b) if sign(middle) == left else (a, middle)
    return b


def _touching(
    guard: ast.expr, name: str, others: Mapping[str, float], grid: np.ndarray, size: np.ndarray
) -> Iterator[float]:
    """Yield minima of |guard| that come close to 0 without a change of sign."""
    with np.errstate(all="ignore"):
        dip = (size[1:-1] < size[:-2]) & (size[1:-1] < size[2:])
        dip &= size[1:-1] < 0.02 * np.maximum(size[:-2], size[2:]) + 1e-3
    for i in np.flatnonzero(dip)[:MOST] + 1:
        a, b = grid[i - 1], grid[i + 1]
        for _ in range(8):
            x = np.linspace(a, b, 41)
            near = np.abs(reading.values(guard, {name: x, **others}))
            k = int(np.nanargmin(near)) if np.isfinite(near).any() else 0
            a, b = x[max(k - 1, 0)], x[min(k + 1, 40)]
        if near[k] < 1e-9 * (size[i - 1] + size[i + 1]):
            yield float(x[k])


def _polish(guard: ast.expr, name: str, others: Mapping[str, float], rough: float) -> mpf:
    """Return a zero of the guard to many digits: a simple fraction, else by the secant method."""

    def at(x: mpf) -> mpf:
        return reading.value(guard, {name: x, **others})

    for exact in (mpf(rough), _fraction(rough)):
        with contextlib.suppress(UndefinedError):
            if abs(exact - rough) < 1e-6 * (1 + abs(rough)) and at(exact) == 0:
                return exact
    with contextlib.suppress(UndefinedError, ValueError, ZeroDivisionError):
        root = mpmath.findroot(at, (mpf(rough), mpf(rough) + mpf("1e-9")), tol=mpf("1e-300"))
        if abs(root - rough) < 1e-6 * (1 + abs(rough)):
            return root
    try:
        at(_fraction(rough))
    except UndefinedError:  # 0/0 there: what was found is where doubles give up beside it
        if abs(_fraction(rough) - rough) < LAST * (1 + abs(rough)):
            return _fraction(rough)
    return mpf(rough)


def _fraction(rough: float) -> mpf:
    simple = Fraction(rough).limit_denominator(1000)
    return mpf(simple.numerator) / simple.denominator


# -- deciding ------------------------------------------------------------------------------------


def side(tree: ast.expr, name: str, others: Mapping[str, Any], point: Any, direction: int) -> Side:
    """Return what f and f′ tend to at a point, seen from one side."""
    with mpmath.workdps(DIGITS):
        rows: list[list[mpf] | None] = []
        for step in STEPS:
            at = {name: mpf(point) + direction * step * (abs(mpf(point)) or 1), **others}
            try:
                rows.append(reading.derivatives(tree, at, name, 1))
            except UndefinedError:
                rows.append(None)
        return Side(*(_limit([None if r is None else r[k] for r in rows]) for k in (0, 1)))


def _limit(seen: list[mpf | None]) -> Limit:
    """Return the limit of values at distances t, t², t⁴."""
    if seen[1] is None or seen[2] is None:
        return Limit(None, "undefined")
    last = seen[2]
    if seen[0] is None:
        seen = [seen[1], *seen[1:]]
    before, after = abs(seen[1] - seen[0]), abs(last - seen[1])
    settles = after <= mpf("1e-9") * max(abs(last), mpf("1e-20")) or after <= before / 10 <= 1
    if settles or after <= before * ROOT:
        return Limit(last if abs(last) > abs(seen[1]) * ROOT else mpf(0), "finite")
    if after >= before * mpf("0.9") and abs(last) > abs(seen[1]) > abs(seen[0]):
        return Limit(None, "infinite")
    return Limit(None, "undecided")
