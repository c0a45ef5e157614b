"""Intervals of everyday estimators hold the truth at least as often as they say.

The probability is a sum over published values: over the integers, over points that cut a continuous
noise into equal parts, and in three statistics or more over the points of a Sobol sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy.stats import qmc

from everyday.cases import CASES, Case
from everyday.known import MISSING, built, oracle
from everyday.sums import Array
from prove.laws import Law

LEVEL = 0.95
PARTS = {1: 4000, 2: 120}
"""Equal parts that a continuous noise is cut into, by the number of statistics."""
SLACK = {1: 5e-4, 2: 3e-3, 3: 1e-2, 4: 1e-2}
"""How far off such a sum may be."""
SOBOL = 11
"""The binary logarithm of the number of points."""

IDS = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_intervals_cover(case: Case) -> None:
    if case.name in MISSING:
        return
    least = min(coverage(case, q) for q in oracle(case).truths)
    assert least >= LEVEL, least


def coverage(case: Case, q: Mapping[str, float]) -> float:
    """Return the probability that the interval holds f(q), rounded up by what a sum may miss."""
    known = oracle(case)
    f = known.f(q)
    x, weight = points(known.laws, q)
    low, high = built(case).interval(**x, level=LEVEL)
    slack = 1e-9 * (1 + abs(f))
    inside = (low <= f + slack) & (high >= f - slack)  # an end that is not a number covers nothing
    continuous = len(q) > 2 or not all(noise.lattice for noise in known.laws.values())
    return 1 - float(weight[~inside].sum()) + (SLACK[len(q)] if continuous else 1e-12)


def points(laws: Mapping[str, Law], q: Mapping[str, float]) -> tuple[dict[str, Array], Array]:
    """Return published values with their probabilities."""
    if len(q) > 2:
        u = qmc.Sobol(len(q), scramble=True, rng=1).random_base2(SOBOL)
        x = {n: q[n] + quantiles(laws[n], u[:, i]) for i, n in enumerate(q)}
        return x, np.full(len(u), 1 / len(u))
    rules = {n: cells(laws[n], len(q)) for n in q}
    mesh = np.meshgrid(*(z for z, _ in rules.values()), indexing="ij")
    weight = np.ones(1)
    for _, part in rules.values():
        weight = np.multiply.outer(weight, part).ravel()
    return {n: q[n] + z.ravel() for n, z in zip(rules, mesh, strict=True)}, weight


def cells(noise: Law, statistics: int) -> tuple[Array, Array]:
    """Return values of a noise and the probability of each."""
    if noise.lattice:
        k, mass = table(noise)
        keep = mass > (1e-14 if statistics == 1 else 1e-6) * mass.max()
        return k[keep], mass[keep]
    parts = PARTS[statistics]
    return quantiles(noise, (np.arange(parts) + 0.5) / parts), np.full(parts, 1 / parts)


def table(noise: Law) -> tuple[Array, Array]:
    """Return the integers and their masses."""
    k = np.arange(-math.ceil(noise.reach(-1)), math.ceil(noise.reach(1)) + 1, dtype=float)
    return k, noise.density(k)


def quantiles(noise: Law, u: Array) -> Array:
    """Return quantiles, of a continuous noise those of its trapezoidal sums."""
    if noise.lattice:
        k, mass = table(noise)
        below = np.cumsum(mass)
        return k[np.minimum(np.searchsorted(below, u), len(k) - 1)]
    reach = 30 * noise.unit
    z = np.linspace(-reach, reach, 60_001)
    density = noise.density(z)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return np.interp(u, below / below[-1], z)
