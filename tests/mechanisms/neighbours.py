"""Neighbouring data sets: what a release adds noise to, and where to look for the largest change.

Used by ``test_neighbours.py`` before the noise and by ``prove/privacy.py`` on what is drawn.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from trueup.mechanisms import GroupMean, Mean, TwoTotalsMean
from trueup.mechanisms.whole_numbers import Grid

Seen = list[tuple[Fraction, Fraction]]
"""The numbers of one release, exactly, each with the scale of its noise."""


def before_noise(monkeypatch: Any, module: ModuleType, mechanism: Any, data: Any) -> Seen:
    """Return every number that a release adds noise to."""
    seen: Seen = []

    def publish(values: Any, noise: Any, rng: Any = None) -> Any:
        exact = (
            [m * values.step for m in values.multiples]
            if hasattr(values, "multiples")
            else [Fraction(v) for v in values]
        )
        seen.extend((v, Fraction(noise.scale)) for v in exact)
        return np.array([float(v) for v in exact])

    with monkeypatch.context() as patch:
        patch.setattr(module, "publish", publish)
        mechanism.release(data, rng=1)
    return seen


def loss(without: Seen, with_it: Seen) -> Fraction:
    """Return the largest log ratio of probabilities under Laplace noise."""
    return sum(
        (abs(a - b) / scale for (a, scale), (b, _) in zip(without, with_it, strict=True)),
        Fraction(0),
    )


# -- bounded records -------------------------------------------------------------------------------

BOUNDS = [
    (0, 1),
    (-3, 1),
    (0.1, 0.7),
    (Fraction(1, 3), 5),
    (10**9, 10**9 + 1),
    (1e12, 1e12 + 1),
    (10**15, 10**15 + 1),
    (10**17, 10**17 + 10),
    (-(10**17) - 1, -(10**17)),
    (0, 1e17),
    (-1e60, 1e60),
]
MEANS = {
    "centred": lambda b: Mean(0.5, 0.5, bounds=b),
    "plain": lambda b: Mean(0.25, 0.75, bounds=b, centred=False),
    "discrete count": lambda b: Mean(0.5, 0.5, bounds=b, count_noise="discrete"),
    "two totals": lambda b: TwoTotalsMean(1, bounds=b),
    "two totals, little budget": lambda b: TwoTotalsMean(2.0**-12, bounds=b),
}


def is_served(name: str, bounds: Any) -> bool:
    """Whether the noise of a sum of records in these bounds has a scale of at most 1e15."""
    low, high = (Fraction(b) for b in bounds)
    wide = {"centred": high - low, "discrete count": high - low}
    wide["plain"] = max(abs(low), abs(high)) * Fraction(4, 3)
    return wide.get(name, Fraction(0)) <= 10**15


def added(bounds: Any) -> list[tuple[list[Any], list[Any]]]:
    """Return data sets and the records that come in addition: floats, and whole numbers.

    They are at, beside and beyond the bounds.
    """
    low, high = (Fraction(b) for b in bounds)
    rng = np.random.default_rng(7)
    spread = [float(low + (high - low) * Fraction(u)) for u in rng.random(60).tolist()]
    floats = [0.0, 1e300, -1e300, float((low + high) / 2)]
    for bound in bounds:
        near = float(bound)
        floats += [near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]
    sets: list[list[Any]] = [[], [float(high)] * 80, [float(low)] * 77, spread, floats]
    found = [(data, floats) for data in sets]
    near = [x for b in bounds for x in range(math.floor(b) - 1, math.floor(b) + 3)]
    whole = [x for x in [0, 2**63 - 1, -(2**63), *near] if -(2**63) <= x < 2**63]
    return [*found, *((data, whole) for data in ([], [math.floor(low)], whole) if len(whole) > 7)]


def summed_in_floats(grid: Grid, records: Any) -> int:
    """Return what a sum of floats would put on the grid: n·middle subtracted after summing."""
    total = math.fsum(records) - len(records) * float(grid.origin)
    return round(Fraction(total) / grid.reach * grid.steps)


# -- unbounded records -----------------------------------------------------------------------------

GROUPS = {
    "midpoint": lambda b: GroupMean(1, bounds=b),
    "a value": lambda b: GroupMean(1, bounds=b, empty=b[0]),
    "a promise": lambda b: GroupMean(Fraction(1, 2), bounds=b, empty="n >= 3"),
}

TRANSFORMS = {
    "root:1": ("root:1", 1, 0),
    "root:1, wide": ("root:1", 1e6, 0),
    "root:2": ("root:2", 2, 0),
    "root:3": ("root:3", 0.5, 2),
    "log": ("log", 0.25, 3),
    "formulas": (("log(1 + q)", "exp(v) - 1"), 0.4, 0),
}
SIZES = [5e-324, 1e-300, 1e-17, 0.3, 1, 8, 1e17]
