"""Means over the noise: sums over the integers and Gauss–Legendre panels, without the library.

A :class:`Rule` holds the published values of one statistic and the probability that each stands
for.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from prove.laws import Law, law

Array = NDArray[np.float64]

CUT = 1e-20
"""Probability, relative to the top, beyond which a noise is left out."""
NODES = np.polynomial.legendre.leggauss(12)
DEGREE = 7
"""A rule by moments is exact for polynomials of this degree: the square of a cube needs 6."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """Published values and their probabilities."""

    x: Array
    weight: Array


def rule(noise: Law, q: float, low: float | None, integers: bool = False, cut: float = CUT) -> Rule:
    """Return a rule for q + Z, for functions that are smooth but at ``low`` (and at integers)."""
    if noise.lattice:
        return _lattice(noise, q, cut)
    return _line(noise, q, low, integers, cut)


def _lattice(noise: Law, q: float, cut: float) -> Rule:
    k = np.arange(-math.ceil(noise.reach(-1)), math.ceil(noise.reach(1)) + 1, dtype=float)
    mass = noise.density(k)
    keep = mass > cut * mass.max()
    return Rule(q + k[keep], mass[keep])


def _line(noise: Law, q: float, low: float | None, integers: bool, cut: float) -> Rule:
    reach = _reach(noise, cut)
    ends = (q - reach, q + reach)
    stops = {*ends, q, *(q + c for c in noise.cuts)}
    if low is not None:
        stops |= {low, *(low + 0.4 * 1.5**k for k in range(12))}  # a pole may be 1 below
    inside = sorted(s for s in stops if ends[0] <= s <= ends[1])
    widest = min(3 * noise.unit, 1.0) if integers else 2 * noise.unit
    if integers:
        inside = sorted({*inside, *np.arange(math.ceil(ends[0]), math.floor(ends[1]) + 1.0)})
    edges = np.unique(np.concatenate([_cut(a, b, widest) for a, b in itertools.pairwise(inside)]))
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    x = (middle[:, None] + half[:, None] * NODES[0]).ravel()
    return Rule(x, (half[:, None] * NODES[1]).ravel() * noise.density(x - q))


def _reach(noise: Law, cut: float) -> float:
    """Return how far out the density falls to a small part of its top."""
    z = np.linspace(0, noise.reach(1), 2000)
    return float(z[noise.density(z) > cut * noise.density(z[:1])].max())


def _cut(a: float, b: float, widest: float) -> Array:
    return np.linspace(a, b, max(1, math.ceil((b - a) / widest)) + 1)


@functools.cache
def _moment_weights(text: str) -> tuple[float, tuple[float, ...]]:
    """Return a step m and weights at −3m, …, 3m with the noise's moments up to the 7th."""
    noise = law(text)
    assert noise is not None
    here = rule(noise, 0.0, None)
    spread = math.sqrt(float(here.x**2 @ here.weight))
    step = max(1.0, round(spread)) if noise.lattice else spread
    k = np.arange(-3.0, 4.0)
    powers = np.vander(k, DEGREE, increasing=True).T
    moments = np.array([float((here.x / step) ** p @ here.weight) for p in range(DEGREE)])
    return step, tuple(np.linalg.solve(powers, moments))


def by_moments(text: str, q: float) -> Rule:
    """Return a rule of seven values that is exact for polynomials."""
    step, weights = _moment_weights(text)
    return Rule(q + step * np.arange(-3.0, 4.0), np.array(weights))


def is_polynomial(g: Callable[[Array], Array], q: float, step: float) -> bool:
    """Whether the values at q − 4·step, …, q + 4·step are those of a polynomial of degree 6."""
    values = g(q + step * np.arange(-4.0, 5.0))
    return bool(np.abs(np.diff(values, 7)).max() <= 1e-9 * np.abs(values).max())


@dataclasses.dataclass(frozen=True)
class Mean:
    """The mean of a function, and what was added for it without regard to signs."""

    value: float
    size: float


def means(rows: Callable[..., Sequence[Array]], rules: Mapping[str, Rule]) -> list[Mean]:
    """Return the means of several functions over a grid of published values."""
    mesh = np.meshgrid(*(r.x for r in rules.values()), indexing="ij")
    weight = functools.reduce(np.multiply.outer, (r.weight for r in rules.values())).ravel()
    columns = {name: m.ravel() for name, m in zip(rules, mesh, strict=True)}
    absolute = np.abs(weight)  # weights by moments may be negative
    return [Mean(float(weight @ row), float(absolute @ np.abs(row))) for row in rows(**columns)]


def undone(f: Callable[..., Array], at: Mapping[str, float], scales: Mapping[str, float]) -> float:
    """Return Π(1 − c(b)·Δ²) f, c = α/(1 − α)² and α = e^{−1/b}, over statistics of scale b.

    It is the function whose mean over discrete Laplace noise of these scales is f.
    """
    shifts, weights = np.array([-1.0, 0.0, 1.0]), []
    for b in scales.values():
        alpha = math.exp(-1 / b)
        c = alpha / (1 - alpha) ** 2
        weights.append(np.array([-c, 1 + 2 * c, -c]))
    names = list(scales)
    mesh = np.meshgrid(*[shifts] * len(names), indexing="ij")
    columns = {n: at[n] + m.ravel() for n, m in zip(names, mesh, strict=True)}
    rest = {n: np.full(mesh[0].size, v) for n, v in at.items() if n not in scales}
    return float(functools.reduce(np.multiply.outer, weights).ravel() @ f(**columns, **rest))
