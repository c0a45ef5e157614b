"""Regions of two independent noises that every half-plane of small probability leaves alone.

With h(u) the smallest t such that P(u·Z > t) ≤ β the number u·x, x = q + Z, exceeds u·q by more
than h(u) with probability β at most, in every direction u. A ratio r = s/n is the direction
(1, −r), in which u·q is 0 whatever n is: so r is believed unless u·x > h(u) or u·(−x) > h(−u)
(Fieller), and the ratios believed are those of the points of x − K as soon as the support function
of K is at least h.

K is given by :data:`CONES` corners for each eighth of the directions, (1, r) with r in [0, 1] but
for signs and order. On a cell [r₀, r₁] of such a cone h is bounded from above, since r·Y is at most
y₁·r₁ or y₁·r₀ for Y in [y₀, y₁]; a corner c is a line c₁ + c₂·r above these bounds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trueup.noise.base import Noise
    from trueup.noise.elementwise import Floats

    Indices = NDArray[np.signedinteger[Any]]
    Beyond = Callable[[Floats, Indices], Floats]

CONES = 6
"""Corners for an eighth of the directions: a region around a circle is 0.3 % larger."""

CELLS = 32
"""Cells of directions in a cone: on one of them h grows by half a percent."""

SLOPES = 401
"""Lines that are tried above the bounds of a cone: 0.1 % apart at its ends."""

BINS = 1024
"""Pieces of a continuous law, the finer the nearer to its middle; its tail has 8 times as many."""

NEGLIGIBLE = 1e-9
"""What is cut off the ends of a law, as a share of β; it is counted as if it were beyond."""

CUSHION = 1e-6
"""By this share h is made larger: it makes up for what root finding and rounding leave."""

_CLOSE = 1e-8  # relative to the bracket of a root
_RATIOS = np.linspace(0.0, 1.0, CONES * CELLS + 1)

QUADRANTS = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
"""The signs of both coordinates of a direction, in the order in which corners are given."""


class Law(NamedTuple):
    """A law as it is summed: upper ends and masses of its pieces, and a table of P(Z > t)."""

    high: Floats
    mass: Floats
    points: Floats
    beyond: Floats

    def tail(self, t: Floats) -> Floats:
        """Return P(Z > t) at the next point of the table below t."""
        return np.asarray(self.beyond[np.searchsorted(self.points, t, side="right")])


@lru_cache(maxsize=256)
def region(first: Noise, second: Noise, tail: float) -> Floats:
    """Return corners of K by quadrants: half-planes beside them are at most as likely as ``tail``.

    Of a half-plane in a direction of a quadrant the corners of this quadrant are enough.

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> corners = region(Gaussian(1), Gaussian(2), 0.025)
    >>> corners.shape, (corners.max(axis=(0, 1)) / [1, 2]).round(2)
    ((4, 12, 2), array([1.96, 1.96]))
    """
    ends = np.array([reach(noise, tail) for noise in (first, second)])
    middles = np.array([float(noise.quantile(0.5)) for noise in (first, second)])
    units = np.abs(ends - middles[:, None]).max(axis=1)
    units[units == 0] = 1.0
    symmetric = first.symmetric and second.symmetric
    turns, heights = [], []
    for signs in QUADRANTS[:1] if symmetric else QUADRANTS:
        scales = (units * signs).tolist()
        a, b = (law(*of, tail) for of in zip((first, second), middles, scales, strict=True))
        for main, other, turn in ((a, b, np.diag(signs)), (b, a, np.diag(signs)[::-1])):
            turns.append(turn)
            heights.append(_bounds(main, other, tail) * (1 + CUSHION))
    corners = _corners(np.array(turns), np.array(heights)).reshape(-1, 2 * CONES, 2)
    if symmetric:
        corners = corners * QUADRANTS[:, None]
    return np.asarray(middles + corners * units)


@lru_cache(maxsize=1024)
def reach(noise: Noise, tail: float) -> tuple[float, float]:
    """Return ends that Z is beyond with probability ``tail`` at most, on each side.

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> [round(end, 4) for end in reach(Gaussian(1), 0.025)]
    [-1.96, 1.96]
    """
    low = float(noise.quantile(tail))  # 1 − tail is rounded where tail is tiny
    return low, -low if noise.symmetric else float(noise.quantile(1 - tail))


def law(noise: Noise, middle: float, unit: float, tail: float) -> Law:
    """Return the law of (Z − middle)/unit, but for a negligible share of the tail at its ends."""
    sign = math.copysign(1.0, unit)

    def beyond(z: Floats) -> Floats:
        if sign > 0:
            return np.asarray(1 - noise._cdf(z))
        return np.asarray(noise._cdf(np.ceil(-z) - 1 if noise.lattice else -z))

    low, high = sorted(sign * end for end in reach(noise, tail * NEGLIGIBLE))
    if low == high or (noise.lattice and high - low < BINS):
        edges = points = np.arange(low - 1, high + 1)
    else:
        fine = np.sinh(np.linspace(-1, 1, 8 * BINS + 1) * math.asinh(4 * (high - low) / abs(unit)))
        points = low + (high - low) * (fine / fine[-1] + 1) / 2
        edges = points[::8]
    high_ends, table = ((z - sign * middle) / abs(unit) for z in (edges[1:], points))
    return Law(high_ends, -np.diff(beyond(edges)), table, np.append(1.0, beyond(points)))


def _bounds(main: Law, other: Law, tail: float) -> Floats:
    """Return upper bounds of h on the cells of the directions (1, r): of Y₁ + r·Y₂."""
    y, mass = other.high, other.mass
    left_out = max(0.0, 1 - float(mass.sum()))

    def beyond(t: Floats, rows: Indices) -> Floats:
        low, high = _RATIOS[rows, None], _RATIOS[rows + 1, None]
        most = np.where(y > 0, y * high, y * low)
        return np.asarray(main.tail(t[:, None] - most) @ mass + left_out)

    ends = np.full(len(_RATIOS) - 1, 4.0)  # units: farther ones are found by doubling
    return solved(beyond, tail, -ends, ends)


def _corners(turns: Floats, heights: Floats) -> Floats:
    """Return a corner for each cone: lines above its bounds that exceed all bounds the least.

    Each part of the directions is (1, r), r from 0 to 1, turned by a matrix.
    """
    ends = [np.stack([np.ones(CONES * CELLS), r], axis=1) for r in (_RATIOS[:-1], _RATIOS[1:])]
    everywhere = np.concatenate([(end @ turn) for turn in turns for end in ends])
    bounds = np.repeat(heights, 2, axis=0).reshape(-1)
    slopes = np.linspace(-2.0, 2.0, SLOPES) * np.abs(heights).max()
    found = []
    for turn, own in zip(turns, heights, strict=True):
        for cell in np.arange(CONES * CELLS).reshape(CONES, CELLS):
            lines = [own[cell] - slopes[:, None] * end[cell, 1] for end in ends]
            starts = np.maximum(*lines).max(axis=1)
            corners = np.stack([starts, slopes], axis=1) @ turn
            excess = corners @ everywhere.T - bounds
            found.append(corners[np.argmin(excess.max(axis=1))])
    return np.array(found)


def solved(beyond: Beyond, tail: float, low: Floats, high: Floats) -> Floats:
    """Return the smallest t of every row at which a falling function is at most ``tail``.

    The function takes points and the rows they belong to; its logarithm is nearly a line in the
    tails, so few evaluations are needed. The end that is returned is above.

    Examples
    --------
    >>> solved(lambda t, _: np.exp(-t), 0.5, np.array([0.0]), np.array([1.0])).round(6)
    array([0.693147])
    """
    rows, step = np.arange(len(high)), high - low

    def excess(t: Floats, rows: Indices) -> Floats:
        return np.log(np.maximum(beyond(t, rows), np.finfo(float).tiny) / tail)

    while (short := excess(high, rows) > 0).any() | (over := excess(low, rows) <= 0).any():
        low, high = np.where(over, low - step, low), np.where(short, high + step, high)
        step = 2 * step
    width = float(step.max()) * _CLOSE
    found = elementwise.find_root(
        excess,
        (low, high),
        args=(rows,),
        tolerances={"xatol": width, "xrtol": _CLOSE, "fatol": 0, "frtol": 0},
    )
    left, right = found.bracket
    return np.asarray(np.where(found.f_bracket[0] <= 0, left, right))
