"""Unbiased shares of a histogram whose size is not public: k counts, the empty group included."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.mechanisms.many_counts import ManyCounts
from trueup.mechanisms.records import (
    float_above,
    listed,
    near_whole,
    read_mean,
    read_numbers,
    read_size,
)
from trueup.mechanisms.released import Mechanism, SharesRelease
from trueup.mechanisms.sampling import generator, publish
from trueup.mechanisms.share_law import ShareLaw
from trueup.mechanisms.two_counts import alpha_of
from trueup.noise import DiscreteLaplace

if TYPE_CHECKING:
    from trueup.exact import Exact

MAX_CATEGORIES = 20
_TOO_LARGE = "shares of this size cannot sum to 1 in doubles: too few records for so many cells"


class Shares(Mechanism):
    """Release all counts of a group with one ε, and debias the shares of its categories.

    A record is in one category, so every count gets DiscreteLaplace(1/ε). Knowing that no count is
    negative, the shares are unbiased for every group of at least ``count_at_least`` records, and
    sum to exactly 1; with a bound of 1, the empty group is a group like any other: there every
    share is 1/k on average. For two categories :class:`GroupShare` is still better.

    With many categories, few records and much noise shares can be so large (beyond 2⁵²) that no
    doubles sum to 1: such a release says so in its ``note``.

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
    >>> release
    <shares yes: 0.574 ± 0.012, no: 0.327 ± 0.011, unsure: 0.099 ± 0.012; simulation: not private>
    >>> sum(release.shares.values())
    1.0
    >>> {name: round(sd, 4) for name, sd in mechanism.sd_counts([3, 0, 0]).items()}
    {'yes': 0.4947, 'no': 0.3392, 'unsure': 0.3392}
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
        self.noise = DiscreteLaplace(float_above(1 / Fraction(self.epsilon)))

    @cached_property
    def inverse(self) -> ManyCounts:
        """The inverse of the noise on the counts, as exact as a double."""
        alpha = alpha_of(float(self.noise.scale))
        near = Fraction(float(alpha)) if 2 * alpha < 1 else 1 - Fraction(float(1 - alpha))
        return ManyCounts(near, len(self.categories), math.ceil(self.count_at_least))

    @cached_property
    def law(self) -> ShareLaw:
        """What the shares are worth."""
        return ShareLaw(self.inverse.alpha, self.inverse.categories, self.inverse.least)

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
        whole, inverse = _read_counts(counts, len(self.categories)), self.inverse
        noisy = tuple(int(y) for y in publish(whole, self.noise, generator(rng)))
        return self._of(noisy, inverse, rng is not None)

    def _of(self, noisy: tuple[int, ...], inverse: ManyCounts, simulated: bool) -> SharesRelease:
        """Return all that is computed from published counts."""
        shares, note = _exactly_one([_double(s) for s in inverse.shares(noisy)])
        variances = [_double(v) for v in inverse.variances(noisy)]
        return SharesRelease(
            dict(zip(self.categories, shares, strict=True)),
            dict(zip(self.categories, variances, strict=True)),
            noisy,
            self.noise,
            simulated,
            note,
        )

    def sd(self, n: int, share: Exact) -> float:
        """Return the exact standard deviation of a category's share for n records, also for none.

        The other records are spread over the other categories as evenly as whole numbers can be;
        :meth:`sd_counts` takes any counts.
        """
        size, part = Fraction(read_size(n)), read_mean(share, (0, 1), "share")
        own = near_whole(part * size, int(size))
        if size.denominator != 1 or own.denominator != 1:
            raise TrueupError(
                f"no category can have the share {share!r} of {n!r} records",
                "n and n·share must be whole, e.g. sd(200, 0.25)",
            )
        each, more = divmod(int(size - own), len(self.categories) - 1)
        others = [each + (j < more) for j in range(len(self.categories) - 1)]
        return self.law.sd([int(own), *others], 0)

    def sd_counts(self, counts: Sequence[int]) -> dict[Any, float]:
        """Return the exact standard deviations of all shares of a histogram."""
        whole = _read_counts(counts, len(self.categories))
        found = {s: self.law.sd(whole, whole.index(s)) for s in set(whole)}
        return {name: found[s] for name, s in zip(self.categories, whole, strict=True)}


def _double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _distinct(categories: list[Any]) -> bool:
    try:
        return len(set(categories)) == len(categories)
    except TypeError:  # not names
        return False


def _read_counts(given: Sequence[int], categories: int) -> list[int]:
    """Return the counts of a histogram as the whole numbers that they are."""
    counts = read_numbers(given).tolist()
    if len(counts) == categories and all(c >= 0 and c == int(c) for c in counts):
        return [int(c) for c in counts]
    raise TrueupError(
        f"{categories} counts are needed, whole numbers, none negative, got {len(counts)} numbers",
        "one count for each category, in their order; nothing was released",
    )


def _exactly_one(shares: Sequence[float]) -> tuple[list[float], str | None]:
    """Return the shares on a common binary grid, the last one making the sum exactly 1.

    All partial sums are multiples of the grid's step that a double holds, in any order. Shares so
    large that the step exceeds 1 have no such grid: they stay as they are, with a note.
    """
    largest = max(1.0, *map(abs, shares))
    power = math.log2(len(shares)) + math.log2(largest) - 52
    if power > 0:
        return list(shares), _TOO_LARGE
    step = 2.0 ** math.ceil(power)
    *first, _ = (round(s / step) * step for s in shares)
    return [*first, 1.0 - sum(first)], None
