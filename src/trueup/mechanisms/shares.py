"""Unbiased shares of a histogram whose size is not public."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.mechanisms.contrast import Contrast
from trueup.mechanisms.records import read_numbers
from trueup.mechanisms.release import SharesRelease
from trueup.mechanisms.sampling import generator, publish
from trueup.noise import Laplace

if TYPE_CHECKING:
    from trueup.exact import Exact

MAX_CATEGORIES = 20


class Shares:
    """Release all counts of a histogram with one ε, and debias their shares.

    A record is in one cell, so every cell gets Laplace(1/ε). The share 1/k + (xᵢ − u/k)·G(u) is a
    contrast over the total u; the shares sum to exactly 1.

    Parameters
    ----------
    epsilon
        The privacy budget of the whole release.
    categories
        The names of the cells, public.
    count_at_least
        A public lower bound of the number of records.

    Examples
    --------
    >>> mechanism = Shares(1, ["yes", "no", "unsure"])
    >>> release = mechanism.release(["yes"] * 60 + ["no"] * 30 + ["unsure"] * 10, rng=1)
    >>> sum(release.shares.values())
    1.0
    """

    def __init__(
        self, epsilon: Exact, categories: Iterable[Any], count_at_least: Exact = 1
    ) -> None:
        listed = isinstance(categories, Iterable) and not isinstance(categories, str)
        self.categories = list(categories) if listed else []
        if not 2 <= len(self.categories) <= MAX_CATEGORIES or not _distinct(self.categories):
            raise TrueupError(
                f"categories must be 2 to {MAX_CATEGORIES} different names, got {categories!r}",
                "list every possible cell, e.g. ['yes', 'no']",
            )
        self.epsilon = number(epsilon, "epsilon", positive=True)
        self.count_at_least = number(count_at_least, "count_at_least", positive=True)
        self.noise = Laplace.from_budget(self.epsilon)

    @cached_property
    def contrast(self) -> Contrast:
        """The ratio of a cell's deviation from its equal share to the total."""
        return Contrast(len(self.categories), self.noise.scale, self.count_at_least)

    def release(self, values: Iterable[Any], rng: Any = None) -> SharesRelease:
        """Return private shares; with an ``rng`` it is only a simulation."""
        try:
            counts = Counter(iter(values))
        except TypeError:
            raise TrueupError(
                f"the data must be a list of categories, got {type(values)}", "nothing was released"
            ) from None
        strange = [v for v in counts if v not in self.categories]
        if strange:
            raise TrueupError(
                f"the data has the value {strange[0]!r}, which is not a category",
                "for the curator's eyes only: name every category, or map other values to one",
            )
        return self.release_counts([counts[c] for c in self.categories], rng)

    def release_counts(self, counts: Sequence[int], rng: Any = None) -> SharesRelease:
        """Return private shares of a histogram given by its counts."""
        records = read_numbers(counts)
        if len(records) != len(self.categories) or (records < 0).any():
            raise TrueupError(
                f"{len(self.categories)} counts are needed, none negative, got {len(records)}",
                "one count for each category, in their order; nothing was released",
            )
        noisy = publish(records.tolist(), self.noise, generator(rng))
        k, total = len(noisy), float(np.sum(noisy))
        deviations = noisy - total / k
        shares = _exactly_one(1 / k + np.asarray(self.contrast.value(deviations, total)))
        variances = np.asarray(self.contrast.variance(deviations, total, 1 - 1 / k))
        errors = [math.sqrt(v) if v >= 0 else math.nan for v in variances.tolist()]
        return SharesRelease(
            dict(zip(self.categories, shares, strict=True)),
            dict(zip(self.categories, errors, strict=True)),
            noisy,
            self.noise,
            rng is not None,
        )

    def sd(self, n: float, share: float) -> float:
        """Return the exact standard deviation of a cell's share for n records."""
        k = len(self.categories)
        return math.sqrt(self.contrast.true_variance(n * (share - 1 / k), n, 1 - 1 / k))


def _distinct(categories: list[Any]) -> bool:
    try:
        return len(set(categories)) == len(categories)
    except TypeError:  # not names
        return False


def _exactly_one(shares: Any) -> list[float]:
    """Return the shares on a common binary grid, the last one making the sum exactly 1.

    All partial sums are multiples of the grid's step that a double holds, in any order.
    """
    largest = max(1.0, *(abs(float(s)) for s in shares))
    step = 2.0 ** (math.ceil(math.log2(len(shares) * largest)) - 52)
    *first, _ = (round(float(s) / step) * step for s in shares)
    return [*first, 1.0 - sum(first)]
