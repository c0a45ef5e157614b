"""Nodes and weights for x = q + Z: Gauss–Legendre panels, or all the integers that matter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.growth import Growth
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

MOST_INTEGERS = 20_000_000  # of one sum: beyond, it takes gigabytes and many seconds
DEPTH = 42.0  # e^-42 is below the last bit of a double
_LOWEST = -700.0  # the logarithm of the density at which doubles end, nearly
_STEEPEST = 4000.0  # power that stands for larger ones
_GAUSS = {n: np.polynomial.legendre.leggauss(n) for n in (4, 16)}
_WIDE = 1e6  # units of noise from which panels widen with the distance
_NEAR = 64  # units of noise in which edges of the density are looked at
_DEEPEST = 96  # 5⁻⁹⁶ of a panel is next to nothing of any integrable pole


class Rule(NamedTuple):
    """Nodes and weights: the integral of φ is ``weights @ φ(nodes)``."""

    nodes: Floats
    weights: Floats


def point(x: float, weight: float) -> Rule:
    """Return the rule with all its weight at one point."""
    return Rule(np.array([x]), np.array([weight]))


def unit(noise: Noise) -> float:
    """Return the distance of the quartiles."""
    return float(noise.quantile(0.75) - noise.quantile(0.25))


def reach(noise: Noise, side: int, size: Growth, end: float, depth: float = DEPTH) -> float:
    """Return how far on a side the noise matters to what grows like e^{rate·x}·x^power.

    It grows as far as the end, a distance, and is constant beyond. Where the product falls below
    e^{−depth} of its top, nothing is left. Tails that fall like a power are followed to their
    quantiles.
    """
    if not noise.mgf_radius:
        low, high = float(noise.quantile(1e-25)), float(noise.quantile(1 - 1e-16))
        return max(-low, high)
    least = max(unit(noise), float(noise.lattice))
    distance = least * np.exp2(np.arange(-3.0, 60.0, 0.25))
    distance = np.ceil(distance) if noise.lattice else distance
    marks = np.append(side * np.asarray(noise.breaks(_NEAR * least)), end)
    distance = np.union1d(distance, marks[(marks > 0) & np.isfinite(marks)])
    grown = np.minimum(distance, max(end, 0.0))
    with np.errstate(all="ignore"):
        density = noise.log_density(side * distance)
        power = min(max(size.power, 0.0), _STEEPEST)
        height = density + max(size.rate, 0.0) * grown + power * np.log1p(grown)
    top = height[np.isfinite(height)].max(initial=-np.inf)
    last = int(np.flatnonzero(height > top - depth).max(initial=0))
    if density[last] < _LOWEST and size.rate > 0:
        raise TrueupError(
            f"the formula grows almost as fast as the tail of {noise!r} carries: an exact "
            "expectation would need densities that are no doubles",
            "bound the domain, use less noise, or simulate with noise.sample",
        )
    return max(float(distance[min(last + 1, len(distance) - 1)]), least)


def integers(noise: Noise, q: float, start: float, stop: float) -> Rule:
    """Return the integers from start to stop with their probabilities."""
    first, last = math.ceil(start), math.floor(stop)
    if last - first > MOST_INTEGERS:
        raise TrueupError(
            f"{noise!r} is too wide for an exact sum", "Laplace of the same scale is close to it"
        )
    nodes = np.arange(first, last + 1, dtype=float)
    return Rule(nodes, np.exp(noise.log_density(nodes - q)))


def panels(
    noise: Noise, q: float, ends: tuple[float, float], marks: Iterable[float], level: int
) -> Rule:
    """Return panels between two ends that break at the marks and are graded towards them.

    Every level halves the panels and deepens the grading.
    """
    start, stop = ends
    if math.nextafter(start, stop) >= stop:  # no double lies between
        return Rule(np.empty(0), np.empty(0))
    breaks = np.asarray(noise.breaks(max(stop - q, q - start))) + q
    inner = sorted({float(m) for m in (*marks, *breaks) if start < m < stop})
    width = unit(noise) * 0.5**level
    depth = min(6 << level, _DEEPEST)
    heavy = noise.mgf_radius == 0 or stop - start > _WIDE * width
    segments = zip([start, *inner], [*inner, stop], strict=True)
    edges = np.concatenate([_graded(x, y, width, depth, heavy) for x, y in segments])
    return _gauss(noise, q, np.unique(edges), [start, *inner, stop])


def unit_cells(noise: Noise, q: float, ends: tuple[float, float], jumps: float, level: int) -> Rule:
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
    width = unit(noise) / 2
    whole = np.arange(math.ceil(start - jumps), math.floor(stop - jumps) + 1.0) + jumps
    breaks = np.unique(np.concatenate([[start, stop, q], whole]))
    breaks = breaks[(breaks >= start) & (breaks <= stop)]
    parts = 2**level * math.ceil(float(np.diff(breaks).max()) / width)
    edges = np.unique(np.linspace(breaks[:-1], breaks[1:], parts + 1))
    return _gauss(noise, q, edges, (), 16 if width < 8 else 4)


def _gauss(noise: Noise, q: float, edges: Floats, marks: Sequence[float], order: int = 16) -> Rule:
    """Return nodes on panels, with the density of x = q + Z in their weights.

    Nodes that rounding has put on a mark, where φ may be 0/0, are moved beside it.
    """
    points, weights = _GAUSS[order]
    half = np.diff(edges)[:, None] / 2
    into, left = half * (1 + points), edges[:-1, None]
    nodes = left + into
    for near, inwards in ((edges[:-1], np.inf), (edges[1:], -np.inf)):
        on = (nodes == near[:, None]) & np.isin(near, marks)[:, None]
        nodes[on] = np.nextafter(nodes[on], inwards)
    # x − q to all digits: where q is large beside the noise, a double x has lost them
    density = np.exp(noise.log_density((left - q + into).ravel()))
    return Rule(nodes.ravel(), (half * weights).ravel() * density)


def _graded(a: float, b: float, width: float, depth: int, heavy: bool) -> Floats:
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
