"""Unbiased shares of a histogram whose size is not public."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.mechanisms.contrast import Contrast
from trueup.mechanisms.records import (
    Records,
    is_beyond,
    listed,
    read_mean,
    read_numbers,
    read_size,
)
from trueup.mechanisms.release import SharesRelease
from trueup.mechanisms.sampling import generator, publish
from trueup.mechanisms.whole_numbers import exact_total
from trueup.noise import Laplace

if TYPE_CHECKING:
    from trueup.exact import Exact

MAX_CATEGORIES = 20
_TOO_LARGE = "shares of this size cannot sum to 1 in doubles: too few records for so many cells"


class Shares:
    """Release all counts of a histogram with one ε, and debias their shares.

    A record is in one cell, so every cell gets Laplace(1/ε). The share 1/k + (xᵢ − u/k)·G(u) is a
    contrast over the total u; the shares sum to exactly 1. With many cells and few records they can
    be so large (beyond 2⁵²) that no doubles do: such a release says so in its ``note``.

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
        unordered = isinstance(categories, (str, bytes, Mapping, set, frozenset))
        ordered = isinstance(categories, Iterable) and not unordered
        self.categories = list(categories) if ordered else []
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
            counts = Counter(iter(listed(values)))
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
        whole = _read_counts(read_numbers(counts), len(self.categories))
        noisy = publish(whole, self.noise, generator(rng))
        k, total = len(noisy), float(np.sum(noisy))
        deviations = noisy - total / k
        shares, note = _exactly_one(1 / k + np.asarray(self.contrast.value(deviations, total)))
        variances = np.asarray(self.contrast.variance(deviations, total, 1 - 1 / k))
        errors = [math.sqrt(v) if v >= 0 else math.nan for v in variances.tolist()]
        return SharesRelease(
            dict(zip(self.categories, shares, strict=True)),
            dict(zip(self.categories, errors, strict=True)),
            noisy,
            self.noise,
            rng is not None,
            note,
        )

    def sd(self, n: float, share: float) -> float:
        """Return the exact standard deviation of a cell's share for n records."""
        k, size = len(self.categories), float(read_size(n))
        contrast = size * (float(read_mean(share, (0, 1), "share")) - 1 / k)
        return math.sqrt(self.contrast.true_variance(contrast, size, 1 - 1 / k))


def _distinct(categories: list[Any]) -> bool:
    try:
        return len(set(categories)) == len(categories)
    except TypeError:  # not names
        return False


def _read_counts(records: Records, categories: int) -> list[int]:
    """Return the counts of a histogram as the whole numbers that they are."""
    counts = [
        exact_total(Records(records.high[i : i + 1], records.low[i : i + 1]))
        for i in range(len(records))
    ]
    beyond = any(map(is_beyond, records.high, records.low))
    whole = not beyond and all(c >= 0 and c.denominator == 1 for c in counts)
    if len(counts) == categories and whole:
        return [int(c) for c in counts]
    raise TrueupError(
        f"{categories} counts are needed, whole numbers, none negative or beyond doubles, "
        f"got {len(counts)} numbers",
        "one count for each category, in their order; nothing was released",
    )


def _exactly_one(shares: Any) -> tuple[list[float], str | None]:
    """Return the shares on a common binary grid, the last one making the sum exactly 1.

    All partial sums are multiples of the grid's step that a double holds, in any order. Shares so
    large that the step exceeds 1 have no such grid: they stay as they are, with a note.
    """
    largest = max(1.0, *(abs(float(s)) for s in shares))
    power = math.ceil(math.log2(len(shares)) + math.log2(largest)) - 52
    if power > 0:
        return [float(s) for s in shares], _TOO_LARGE
    step = 2.0**power
    *first, _ = (round(float(s) / step) * step for s in shares)
    return [*first, 1.0 - sum(first)], None
