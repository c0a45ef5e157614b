"""How much is tested: a part of the cases every day, all of them with ``TRUEUP_DEPTH=4``.

A run without ``TRUEUP_DEPTH`` takes the same cases each time: it watches for what has changed. More
cases make the net finer, which once before a release is enough.
"""

import itertools
import os
from collections.abc import Sequence
from typing import Any

DEPTH = int(os.environ.get("TRUEUP_DEPTH", "1"))
"""Of drawn cases 1 takes an eighth, 2 a quarter, 3 half and 4 all; of listed ones 2 takes all."""


def examples(cases: int, least: int = 20) -> int:
    """Return how many of so many cases Hypothesis draws, and no fewer than the least."""
    return max(min(cases, least), (cases << min(DEPTH, 4)) // 16)


def few(values: Sequence[Any], count: int) -> Sequence[Any]:
    """Return the first of some values that all go the same way through the library."""
    return values if DEPTH > 1 else values[:count]


def crossed(*factors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations; every day only so many that each value of each factor occurs."""
    if DEPTH > 1:
        return list(itertools.product(*factors))
    longest = max(map(len, factors))
    return [tuple(f[i % len(f)] for f in factors) for i in range(longest)]
