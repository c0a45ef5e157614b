"""Nodes and weights for x = q + Z: Gauss–Legendre panels, or all the integers that matter."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

MAX_POINTS = 150_000_000
MOST_INTEGERS = 20_000_000  # of one sum: beyond, it takes gigabytes and many seconds
_LEGENDRE = np.polynomial.legendre.leggauss(16)
_FEWER = np.polynomial.legendre.leggauss(12)  # the first of rules that are multiplied
FEWEST = len(_FEWER[0])
_STEEPEST = 4000.0
TAIL = 42.0  # e^-42 is below the last bit of a double
_BEYOND = 2000.0  # e^2000 is beyond the squares of all doubles: farther out nothing is finite
_SLOW = 1e11  # scales to which a tail that falls like a power is followed, tenfold at every level
_WIDE = 1e6  # units of noise from which panels widen with the distance
_FEW = 256  # integers that are summed one by one rather than by a rule
_MANY = 1e5  # integers from which a polynomial of degree 15 has its mean over them by integration


class Rule(NamedTuple):
    """Nodes and weights: the integral of φ is ``weights @ φ(nodes)``."""

    nodes: Floats
    weights: Floats


def point(x: float, weight: float) -> Rule:
    """Return the rule with all its weight at one point."""
    return Rule(np.array([x]), np.array([weight]))


def reach(
    noise: Noise, rates: tuple[float, float], degree: float = 0.0, level: int = 0
) -> tuple[float, float]:
    """Return how far left and right the noise matters to what grows like x^degree·e^{rate·|x|}.

    A gamma variable of shape d + 1 exceeds d + √(2dτ) + τ with probability below e^{−τ}. What
    outgrows the noise matters as far as its bounds; what grows as fast as the density falls, but
    for a power, is followed farther at every level.
    """
    if not noise.symmetric and noise.mgf_radius:
        return _fallen(noise, -1, rates[0], degree), _fallen(noise, 1, rates[1], degree)
    radius = noise.mgf_radius
    if 0 < radius < math.inf:
        d = _power(degree) + noise.tail_power
        tail = d + math.sqrt(2 * d * TAIL) + TAIL
        left, right = (_followed(noise, r, tail, level) for r in rates)
        return left, right
    far = 1e-300 if radius else 1e-25
    low, high = float(noise.quantile(far)), float(noise.quantile(1 - 1e-16))
    return max(-low, high), max(-low, high)


def _followed(noise: Noise, rate: float, tail: float, level: int) -> float:
    """Return how far the noise is followed: by so many of the scales at which the product falls."""
    radius = noise.mgf_radius
    if is_slow(noise, rate):
        return _SLOW * 10.0**level / radius
    return tail / (radius - rate) if rate < radius else _BEYOND / radius


def is_slow(noise: Noise, rate: float) -> bool:
    """Tell whether what grows at this rate, times the density, falls like a power at most."""
    return noise.mgf_radius > 0 and math.isclose(rate, noise.mgf_radius, rel_tol=1e-12)


def _fallen(noise: Noise, side: int, rate: float, degree: float) -> float:
    """Return how far from 0 the density, times x^degree·e^{rate·|x|}, has fallen by e^{−42}.

    What outgrows the density matters until that alone has fallen by e^{−2000}.
    """
    carried = rate < noise.mgf_radius
    rate, degree, depth = (rate, _power(degree), TAIL) if carried else (0.0, 0.0, _BEYOND)
    low, middle, high = (float(noise.quantile(p)) for p in (0.25, 0.5, 0.75))
    unit = max(high - low, float(noise.lattice))
    distance = unit * np.exp2(np.arange(-3.0, 60.0, 0.25))
    if noise.lattice:
        distance = np.ceil(distance)
    breaks = side * (np.asarray(noise.breaks(math.inf)) - middle)
    distance = np.union1d(distance, breaks[(breaks > 0) & np.isfinite(breaks)])
    with np.errstate(all="ignore"):
        height = noise.log_density(middle + side * distance)
        height = height + rate * distance + degree * np.log1p(distance)
    top = height[np.isfinite(height)].max(initial=-np.inf)  # a density may be infinite at a point
    seen = np.flatnonzero(height > top - depth)
    last = min(int(seen[-1]) + 1 if len(seen) else 0, len(distance) - 1)
    return max(side * middle + float(distance[last]), unit)


def _power(degree: float) -> float:
    """Return a power that stands for another one: none below 0, none that outgrows all."""
    return min(_STEEPEST, max(degree, 0.0))


def integers(
    noise: Noise, q: float, start: float, stop: float, level: int, tilt: float = 0.0
) -> Rule:
    """Return the integers from start to stop with their probabilities, times e^{tilt·(x − q)}."""
    first, last = math.ceil(start), math.floor(stop)
    unit = max(float(noise.quantile(0.75) - noise.quantile(0.25)), 1.0)
    middle, near = min(max(round(q), first), last), math.ceil(_BEYOND * unit)
    if last - first <= _WIDE * unit:
        near = max(middle - first, last - middle)
    low, high = max(first, middle - near), min(last, middle + near)
    if high - low > MOST_INTEGERS:
        raise TrueupError(
            f"{noise!r} is too wide for an exact sum", "Laplace of the same scale is close to it"
        )
    left, right = (_sparse(near + 1, d, level) for d in (middle - first, last - middle))
    each = np.arange(low, high + 1, dtype=float)
    nodes = np.concatenate([middle - left.nodes, each, middle + right.nodes])
    counts = np.concatenate([left.weights, np.ones(len(each)), right.weights])
    return Rule(nodes, counts * _tilted(noise, nodes - q, tilt))


def _sparse(first: int, last: int, level: int) -> Rule:
    """Return some integers from first to last, and how many each stands for.

    They are read in panels that widen with the distance: there a power is a polynomial.
    """
    edges, growth = [first - 1], 1.5 ** (0.5 ** min(level, 3))
    while edges[-1] < last:
        edges.append(min(math.floor(edges[-1] * growth), last))
    rules = [_summed(a + 1, b) for a, b in pairwise(edges)]
    nodes, counts = zip(*rules, strict=True) if rules else ([[]], [[]])
    return Rule(np.concatenate(nodes), np.concatenate(counts))


def _summed(first: int, last: int) -> Rule:
    """Return up to 16 of the integers with weights that sum polynomials over all of them."""
    count = last - first + 1
    if count <= _FEW:
        return Rule(np.arange(first, last + 1.0), np.ones(count))
    middle, half = (first + last) / 2, count / 2
    nodes = np.rint(middle + half * _LEGENDRE[0])
    legvander, degree = np.polynomial.legendre.legvander, len(nodes) - 1
    sums = np.eye(1, len(nodes))[0] * count
    if count <= _MANY:
        sums = legvander((np.arange(first, last + 1.0) - middle) / half, degree).sum(axis=0)
    return Rule(nodes, np.linalg.solve(legvander((nodes - middle) / half, degree).T, sums))


def _tilted(noise: Noise, z: Floats, tilt: float) -> Floats:
    """Return density·e^{tilt·z}, where the density alone may underflow.

    z is x − q to all digits: where q is large beside the noise, a double x has lost them.
    """
    return np.asarray(np.exp(noise.log_density(z) + tilt * z))


def panels(
    noise: Noise,
    q: float,
    start: float,
    stop: float,
    marks: Iterable[float],
    level: int,
    tilt: float = 0.0,
    few: bool = False,
) -> Rule:
    """Return panels on [start, stop] that break at the marks and are graded towards them.

    Every level halves the panels and deepens the grading. With a tilt the weights carry
    e^{tilt·(x − q)}, so that what grows exponentially can be divided by it. ``few`` makes fewer
    panels, for rules that will be multiplied: the first level has fewer nodes in them, halving
    starts after the next.
    """
    breaks = np.asarray(noise.breaks(max(stop - q, q - start))) + q
    inner = sorted({float(m) for m in (*marks, *breaks) if start < m < stop})
    if math.nextafter(start, stop) >= stop:  # no double lies between
        return Rule(np.empty(0), np.empty(0))
    unit = float(noise.quantile(0.75) - noise.quantile(0.25)) * (1.0 if few else 0.5**level)
    heavy = noise.mgf_radius == 0 or stop - start > _WIDE * unit
    segments = zip([start, *inner], [*inner, stop], strict=True)
    depth = 16 + 16 * level
    edges = np.unique(
        np.concatenate(
            [
                _doubling(x, y, unit, level) if few else _edges(x, y, unit, depth, heavy)
                for x, y in segments
            ]
        )
    )
    points, weights = _FEWER if few and not level else _LEGENDRE
    half = np.diff(edges)[:, None] / 2
    into, left = half * (1 + points), edges[:-1, None]
    nodes = _off(left + into, edges, [start, *inner, stop]).ravel()
    density = _tilted(noise, (left - q + into).ravel(), tilt)
    return Rule(nodes, (half * weights).ravel() * density)


def _off(nodes: Floats, edges: Floats, marks: list[float]) -> Floats:
    """Return nodes that rounding has put on a mark, where φ may be 0/0, beside it."""
    for ends, inwards in ((edges[:-1], np.inf), (edges[1:], -np.inf)):
        on = (nodes == ends[:, None]) & np.isin(ends, marks)[:, None]
        nodes[on] = np.nextafter(nodes[on], inwards)
    return nodes


def unit_cells(
    noise: Noise, q: float, ends: tuple[float, float], jumps: float, level: int, tilt: float
) -> Rule:
    """Return panels between two ends for what may jump at k + jumps and is smooth between.

    They break there and at q, and are no wider than half the noise's quartile distance;
    the wider the noise, the fewer nodes a cell needs.
    """
    start, stop = ends
    if start >= stop:
        return Rule(np.empty(0), np.empty(0))
    if stop - start > MOST_INTEGERS:
        raise TrueupError(
            f"under {noise!r} an integral over {stop - start:.0e} unit cells is too long",
            "bound the domain, or simulate with noise.sample",
        )
    width = float(noise.quantile(0.75) - noise.quantile(0.25)) / 2
    order = 8 if width < 8 else 4 if width < 80 else 3
    points, weights = np.polynomial.legendre.leggauss(order)
    whole = np.arange(math.ceil(start - jumps), math.floor(stop - jumps) + 1.0) + jumps
    breaks = np.unique(np.concatenate([[start, stop, q], whole]))
    breaks = breaks[(breaks >= start) & (breaks <= stop)]
    parts = 2**level * math.ceil(float(np.diff(breaks).max()) / width)
    edges = np.unique(np.linspace(breaks[:-1], breaks[1:], parts + 1))
    half = np.diff(edges)[:, None] / 2
    into, left = half * (1 + points), edges[:-1, None]
    nodes = (left + into).ravel()
    density = _tilted(noise, (left - q + into).ravel(), tilt)
    return Rule(nodes, (half * weights).ravel() * density)


def _edges(a: float, b: float, width: float, depth: int, heavy: bool) -> Floats:
    """Return panel edges on [a, b]: at most ``width`` wide, shrinking fivefold towards both ends.

    Under a heavy tail they widen in proportion to the distance instead.
    """
    middle = (a + b) / 2
    near = min(width, middle - a)
    steps = near * 0.2 ** np.arange(depth, -1.0, -1.0)
    if heavy:
        growth = 1.5 ** np.arange(1, 1 + max(1, math.ceil(math.log((middle - a) / near, 1.5))))
        steps = np.concatenate([steps, near * growth[near * growth < middle - a]])
        return np.concatenate([[a], a + steps, b - steps[::-1], [b]])
    count = max(1, math.ceil((middle - a - near) / width))
    flat = np.linspace(a + near, 2 * middle - a - near, 2 * count + 1)
    return np.concatenate([[a], a + steps, flat, b - steps[::-1], [b]])


def _doubling(a: float, b: float, width: float, level: int) -> Floats:
    """Return few panel edges on [a, b]: doubling away from both ends, split from level 2 on."""
    middle = (a + b) / 2
    count = math.ceil(math.log2(1 + (middle - a) / width))
    steps = np.minimum(width * (2.0 ** np.arange(count + 1) - 1), middle - a)
    edges = np.unique(np.concatenate([a + steps, b - steps]))
    parts = np.linspace(edges[:-1], edges[1:], 2 ** max(level - 1, 0) + 1)
    return np.unique(parts)
