"""Means of groups of any size, the empty one included: two counts, and a corner for few records.

A group of n records in [0, 1] with total s₁ publishes s₁ and s₀ = n − s₁ with discrete Laplace
noise. One record moves the two by 1 in all, so that one ε serves both. Totals are rounded to whole
numbers together: s₁′ = ⌊s₁ + U⌋ with one uniform U, s₀′ = n − s₁′. For every U one record still
moves them by 1, so U can be published; on average s₁′ is s₁, and (½ − U)·φ(n) with any φ has mean
0 and takes most of the rounding error out again.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.limit.table import exp_below
from trueup.mechanisms.corner import Corner, corner
from trueup.mechanisms.pair_law import PairLaw
from trueup.mechanisms.records import (
    float_above,
    near_whole,
    read_bounds,
    read_numbers,
    read_outside,
    read_records,
)
from trueup.mechanisms.released import MeanRelease, Mechanism, root, rounding, square_of
from trueup.mechanisms.sampling import below, generator, publish
from trueup.mechanisms.share_law import ShareLaw
from trueup.mechanisms.two_counts import Cell, TwoCounts, alpha_of, share
from trueup.mechanisms.whole_numbers import Grid
from trueup.noise import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Collection

    from trueup.exact import Exact
    from trueup.mechanisms.share_law import Floats
    from trueup.mechanisms.two_counts import Function
    from trueup.noise import Noise

Outcome = Cell | int
"""What is published: a pair of counts, or near no records the number of a label."""

_PROMISE = re.compile(r"\s*n\s*(?:>=|≥)\s*([1-9][0-9]?)\s*", re.ASCII)
_WIDER = Fraction(1, 2**40)
"""By this part the noise is wider than 1/ε: what the rounding of rows in the corner may use."""
_MOST = 300
"""With a larger ε, e^−2ε is no double, and no noise is ever drawn."""
_SAME = 1e-9  # a total of 0/1 records that is nearer than this to a whole number is that number
_WIDE = 8  # a scale of noise beside which the ¼ of rounding is below 0.2 % of the variance
_HALF, _TWELFTH, _QUARTER = Fraction(1, 2), Fraction(1, 12), Fraction(1, 4)


class _Group(Mechanism):
    """What the two have in common: counts in, a published pair or label out, and estimates."""

    count_at_least: int

    def __init__(self, epsilon: Exact, bounds: tuple[Exact, Exact], empty: Exact | str) -> None:
        self.epsilon = number(epsilon, "epsilon", positive=True)
        if self.epsilon > _MOST:
            raise TrueupError(
                f"epsilon = {epsilon!r} is too large: squares of e^−ε are no doubles",
                f"at most {_MOST}; already from about 40 on no noise is ever seen",
            )
        self.bounds = read_bounds(bounds)
        low, high = (Fraction(b) for b in self.bounds)
        self.low, self.width = low, high - low
        self.empty = empty
        self.count_at_least, self._hole = _read_empty(empty, low, high)
        wider = 1 + (_WIDER if self._is_cornered else 0)
        self.noise = DiscreteLaplace(float_above(wider / Fraction(self.epsilon)))

    @property
    def _is_cornered(self) -> bool:
        return self._hole is None and self.count_at_least == 1

    @cached_property
    def counts(self) -> TwoCounts:
        """The inverse of the noise on two counts, as exact as a double."""
        return TwoCounts(Fraction(float(alpha_of(float(self.noise.scale)))))

    @cached_property
    def corner(self) -> Corner | None:
        """What is published near no records; None with a promise or a value of one's own."""
        if not self._is_cornered:
            return None
        return corner(float(self.noise.scale), exp_below(Fraction(self.epsilon)))

    @cached_property
    def is_of_pairs(self) -> bool:
        """Whether all that is published are pairs of counts; else some are means only."""
        return self.corner is None or bool(self.corner.cells)

    @property
    def is_dithered(self) -> bool:
        """Whether the published U is used: not for 0/1 records, nor under much noise."""
        return False

    # -- what is published -------------------------------------------------------------------------

    def _release(self, truth: Cell, shift: Fraction, rng: Any) -> MeanRelease:
        """Publish whole counts; ``shift`` is ½ − U of their rounding."""
        unit, outcome = square_of(self.width), self.draw(truth, rng)
        share, factor = self.estimates(outcome)
        share += shift * factor
        published: tuple[float, ...] = (float(share),)
        variance, count = unit * self.variance(outcome, shift), math.nan
        if isinstance(outcome, tuple):
            published, count = outcome, float(self._inverse(_count, outcome))
        if self.is_dithered:
            published = (*published, float(_HALF - shift))
        mean = float(self.low + self.width * share)
        noise: dict[str, Noise] = {"zeros": self.noise, "ones": self.noise}
        note = rounding(mean, root(variance))
        return MeanRelease(count, mean, variance, noise, rng is not None, published, note)

    def draw(self, truth: Cell, rng: np.random.Generator | None) -> Outcome:
        """Return the published pair, or the number of a label that is a mean only.

        As much is drawn whatever the records and the noise are: time tells nothing of them.
        """
        made = self.corner
        zeros, ones = (max(0, int(y)) for y in publish(list(truth), self.noise, rng))
        if made is None:
            return zeros, ones
        more = [int(z) for z in publish([0, 0], self.noise, rng)]
        label, side, pair = made.row(truth).draw(rng), made.sides.draw(rng), (zeros, ones)
        if not made.holds(pair):
            return pair
        if label == len(made.labels):  # no records
            return made.outside(side, more)
        return made.cells[label] if made.cells else label

    # -- estimates ---------------------------------------------------------------------------------

    @cached_property
    def _mean(self) -> Function:
        """The mean of 0/1 records, and what it is with too few of them."""
        if self._hole is None:
            return self.counts.continued(share, self.count_at_least)
        hole = self._hole
        return lambda zeros, ones: share(zeros, ones) if zeros + ones else hole

    def _square(self, shift: Fraction) -> Function:
        """Return what is, on average over the rounding, the squared mean."""
        return lambda zeros, ones: self._mean(zeros, ones) ** 2

    @cached_property
    def _phi(self) -> Function:
        """φ(n) = n/(n² + 1): near 1/n, which takes the rounding out, and 0 without records."""
        return lambda zeros, ones: Fraction(zeros + ones, (zeros + ones) ** 2 + 1)

    def _inverse(self, f: Function, pair: Cell) -> Fraction:
        """Return the unbiased estimate of f from a published pair, in or outside the corner."""
        if self.corner and self.corner.holds(pair):
            return self.corner.estimate(f, pair)
        return self.counts.inverse(f, pair)

    def estimates(self, outcome: Outcome) -> tuple[Fraction, Fraction]:
        """Return the mean in [0, 1] that is published, and the factor of its dither."""
        if not isinstance(outcome, tuple):
            return Fraction(self.corner.labels[outcome] if self.corner else 0), Fraction(0)
        factor = self._inverse(self._phi, outcome) if self.is_dithered else Fraction(0)
        return self._inverse(self._mean, outcome), factor

    def variance(self, outcome: Outcome, shift: Fraction = Fraction(0)) -> float:
        """Return the variance that is stated of the mean in [0, 1], in fractions where it can be.

        For many records its two parts are nearly the same.
        """
        if not isinstance(outcome, tuple):
            return self._labels_variance
        share, factor = self.estimates(outcome)
        return float((share + shift * factor) ** 2 - self._inverse(self._square(shift), outcome))

    @cached_property
    def _labels_variance(self) -> float:
        return self.corner.variance(self._square(Fraction(0))) if self.corner else 0.0

    # -- what they are worth -----------------------------------------------------------------------

    @cached_property
    def law(self) -> PairLaw:
        """The law of all pairs but those near no records that are special."""
        box = self.corner.size if self.corner else -1 if self._hole is None else 1
        shares = ShareLaw(self.counts.alpha, 2, self.count_at_least)
        return PairLaw(shares, self._factors if self.is_dithered else None, box)

    def _factors(self, n: Floats) -> Floats:
        """Return φ of many numbers of records."""
        return np.asarray(n / (n**2 + 1))

    def moments(self, truth: Cell, centre: Fraction) -> Floats:
        """Return E X, E X², E XH, E H² at whole counts: X the mean less ``centre``, H the dither's.

        About the true mean: about 0 the variance of many records would be lost in rounding.
        """
        made, values = self.corner, self._special
        sides = range(self.law.box + 1)
        cells = ((i, j) for i in sides for j in sides)
        p = made.floats(truth) if made else [self.counts.probability(c, truth) for c in cells]
        x, h = values[:, 0] - float(centre), values[:, 1]
        near = np.array([np.dot(p, m) for m in (x, x**2, x * h, h**2)])
        if made and truth == (0, 0):  # pairs of positive counts are as likely as at (1, 1)
            near += self.law.moments((1, 1), centre, (2,))
            return np.asarray(near + self.law.moments(truth, centre, (0, 1)))
        return np.asarray(near + self.law.moments(truth, centre))

    @cached_property
    def _special(self) -> Floats:
        """The values of what is published near no records: of labels, or of pairs by the hole."""
        made, sides = self.corner, range(self.law.box + 1)
        outcomes: list[Outcome] = [(i, j) for i in sides for j in sides]
        if made:
            outcomes = list(made.cells or range(len(made.labels)))
        return np.array([self.estimates(o) for o in outcomes], float).reshape(-1, 2)

    def sd(self, n: int, mean: Exact) -> float:
        """Return the exact standard deviation for n records with a given mean, also for none."""
        first, second = self._off(n, mean)
        return float(self.width) * root(second - first**2)

    def bias(self, n: int, mean: Exact) -> float:
        """Return the bias of the mean: 0, but for fewer records than were promised."""
        return float(self.width) * self._off(n, mean)[0]

    def _off(self, n: int, mean: Exact) -> tuple[float, float]:
        """Return how far the mean in [0, 1] is off, and the square of that, both on average."""
        size, total = self._truth(n, mean)
        none = _HALF if self._hole is None else self._hole
        true = total / size if size else none
        first = second = 0.0
        for ones, chance, across, square in _rounded(total):
            x, xx, xh, hh = self.moments((size - ones, ones), true)
            first += chance * x
            second += chance * xx
            second += 2 * across * xh + square * hh if self.is_dithered else 0.0
        return first, second

    def sd_count(self, n: int, mean: Exact) -> float:
        """Return the exact standard deviation of the count of one record or more.

        NaN where not all labels tell a count.
        """
        if not self.is_of_pairs:
            return math.nan
        size, total = self._truth(n, mean)
        parts = [(ones, chance) for ones, chance, *_ in _rounded(total)]
        return root(sum(chance * self._count_variance(size - k, k) for k, chance in parts))

    def _count_variance(self, zeros: int, ones: int) -> float:
        """Return that of two counts apart, and what the labels of the corner add to it."""
        made, total = self.corner, sum(map(self._one_count, (zeros, ones)))
        if made is None:
            return total
        truth, n = (zeros, ones), zeros + ones
        for cell in ((i, j) for i in range(made.size + 1) for j in range(made.size + 1)):
            off = float(self.counts.inverse(_count, cell)) - n
            total -= self.counts.probability(cell, truth) * off**2
        said = np.array([float(made.estimate(_count, cell)) for cell in made.cells])
        return float(total + made.floats(truth) @ (said - n) ** 2)

    def _one_count(self, k: int) -> float:
        """Return the variance of one count: what is below 0 is published as 0.

        By that it is α^k·λ/(1 + α) less than that of the noise, λ = α/(1 − α)².
        """
        a = float(self.counts.alpha)
        return float(self.noise.variance) - a**k * a / (1 - a) ** 2 / (1 + a)

    def _truth(self, n: int, mean: Exact) -> tuple[int, Fraction]:
        """Return the number of records and their total in [0, 1]."""
        size = number(n, "n")
        part = (Fraction(number(mean, "mean")) - self.low) / self.width
        if size != int(size) or size < 0 or not 0 <= part <= 1:
            raise TrueupError(
                f"no group has {n!r} records with the mean {mean!r}", "e.g. sd(5, 0.4)"
            )
        return int(size), near_whole(part * int(size), int(size))


class GroupShare(_Group):
    """Release the mean of 0/1 records, near the best unbiased ε-DP release for every group size.

    Zeros and ones are counted, both counts get discrete Laplace noise, and what lies near (0, 0) is
    replaced by labels that say more (:mod:`trueup.mechanisms.corner`). From ε = 0.8 on these are
    pairs too, and the count comes free; below, they are means only: then ``count`` is NaN, and
    ``variance`` is no longer unbiased but on average no less than the true one.

    Parameters
    ----------
    epsilon
        The privacy budget of the whole release.
    empty
        What the mean of no records is: "midpoint" (½), which costs nothing; a number, for which
        plain counts are published; or a public promise such as "n >= 5".

    Examples
    --------
    >>> mechanism = GroupShare(1)
    >>> round(mechanism.sd(n=5, mean=0), 4), round(mechanism.sd(n=10, mean=0.5), 4)
    (0.1758, 0.1097)
    >>> mechanism.release([0, 1, 1, 1, 0, 1] * 10, rng=1)
    <mean 0.672 ± 0.017, count 61.0; simulation: not private>
    """

    only = "0/1 records"

    def __init__(self, epsilon: Exact, empty: Exact | str = "midpoint") -> None:
        super().__init__(epsilon, (0, 1), empty)

    def places(self, n: int, means: Collection[Exact]) -> Collection[Exact]:
        """Return the means that n records of 0 and 1 can have, on both sides of those given."""
        totals = [Fraction(mean) * n for mean in means]
        near = [t if abs(t - round(t)) >= _SAME else round(t) for t in totals]  # 0.1 is not 1/10
        return {Fraction(ones, n) for t in near for ones in (math.floor(t), math.ceil(t))}

    def release(self, values: Any, rng: Any = None) -> MeanRelease:
        """Return a private mean; with an ``rng`` it is only a simulation."""
        records = read_numbers(values)
        zeros, ones = (int((records == x).sum()) for x in (0, 1))
        if zeros + ones != len(records):
            raise TrueupError(
                f"{len(records) - zeros - ones} of {len(records)} records are neither 0 nor 1",
                "GroupMean takes any numbers; nothing was released, no privacy was spent",
            )
        return self._release((zeros, ones), Fraction(0), generator(rng))

    def _truth(self, n: int, mean: Exact) -> tuple[int, Fraction]:
        size, ones = super()._truth(n, mean)
        if ones.denominator != 1:
            raise TrueupError(
                f"{n} records of 0 and 1 cannot have the mean {mean}", "n·mean must be whole"
            )
        return size, ones


class GroupMean(_Group):
    """Release the mean of records in bounds, near the best unbiased release for every group size.

    As :class:`GroupShare`, with totals that are rounded at random (see above). For records that are
    all 0 or 1, :class:`GroupShare` is better. Below ε = ln 2 the variance of rounding counts as ¼,
    the most it can be.

    Parameters
    ----------
    epsilon
        The privacy budget of the whole release.
    bounds
        Where the values lie; others are clipped (or refused, with ``outside="raise"``).
    empty
        What the mean of no records is: "midpoint" (of the bounds), which costs nothing; a number,
        for which plain counts are published; or a public promise such as "n >= 5".

    Examples
    --------
    >>> mechanism = GroupMean(1, bounds=(0, 100))
    >>> [round(mechanism.sd(n, 50), 1) for n in (0, 3, 10, 50)]
    [60.7, 44.1, 11.4, 2.0]
    >>> mechanism.release([61.5, 70.25, 58] * 10, rng=1)
    <mean 61.2 ± 3.3, count 31.0; simulation: not private>
    """

    def __init__(
        self,
        epsilon: Exact,
        bounds: tuple[Exact, Exact] = (0, 1),
        empty: Exact | str = "midpoint",
        outside: str = "clip",
    ) -> None:
        super().__init__(epsilon, bounds, empty)
        self.outside = read_outside(outside)

    def places(self, n: int, means: Collection[Exact]) -> Collection[Exact]:
        """Return means, and without a dither those whose totals are rounded up as often as down."""
        if self.is_dithered or self.noise.scale >= _WIDE:
            return means
        low, high, half = self.low, self.low + self.width, self.width / (2 * n)
        inner = [Fraction(m) for m in means if low < m < high]
        return {*means, *(m + half if m + half < high else m - half for m in inner)}

    @property
    def is_dithered(self) -> bool:
        """Whether the published U is used: not under much noise, where it gains nothing."""
        return self.is_of_pairs and self.counts.alpha <= _HALF

    @property
    def grid(self) -> Grid:
        """The records as whole numbers: their distances from the lower bound, at most the width."""
        return Grid.under(1, self.bounds, self.low, self.width)

    def release(self, values: Any, rng: Any = None) -> MeanRelease:
        """Return a private mean; with an ``rng`` it is only a simulation."""
        records, rng = read_records(values, self.bounds, self.outside), generator(rng)
        grid = self.grid
        uniform = below(grid.steps, rng)
        ones = (grid.total(records) + uniform) // grid.steps
        middle = Fraction(2 * uniform + 1, 2 * grid.steps)  # the mean of all ½ − U is exactly 0
        return self._release((len(records) - ones, ones), _HALF - middle, rng)

    def _square(self, shift: Fraction) -> Function:
        """Return what is, on average over U, m² (or less): E (s₁′ + ½ − U)² = s₁² + 1/12."""
        dithered = self.is_dithered

        def at(zeros: int, ones: int) -> Fraction:
            n = zeros + ones
            if n < self.count_at_least:
                return self._mean(zeros, ones) ** 2
            rest = _TWELFTH if dithered else _QUARTER  # the variance of rounding is at most ¼
            return ((ones + (shift if dithered else 0)) ** 2 - rest) / n**2

        return at


class PlainGroupMean(GroupMean):
    """The mean from two noisy counts and the U of their rounding, as tables publish them.

    No corner, and φ = 1/n: (s₁′ + ½ − U)/n is s₁/n and an error that is uniform whatever s₁ is, so
    that a formula of the three, the last under uniform noise, has an unbiased variance too. Near no
    records φ is continued by the far rule; every value is right there, as ½ − U is 0 on average.

    Examples
    --------
    >>> mechanism = PlainGroupMean(1)
    >>> round(float(mechanism.at_nothing), 4), round(mechanism.sd(n=10, mean=0.5), 4)
    (1.734, 0.1139)
    """

    @property
    def _is_cornered(self) -> bool:
        return False

    @property
    def is_dithered(self) -> bool:
        """Whether the published U is used: always."""
        return True

    @cached_property
    def _phi(self) -> Function:
        """φ(n) = 1/n, which takes all of the rounding out of the mean of some records."""
        return self.counts.continued(lambda zeros, ones: Fraction(1, zeros + ones), 1)

    @property
    def at_nothing(self) -> Fraction:
        """What φ is without records."""
        return self._phi(0, 0)

    def _factors(self, n: Floats) -> Floats:
        return np.where(n > 0, 1 / np.maximum(n, 1), float(self.at_nothing))


def _count(zeros: int, ones: int) -> Fraction:
    return Fraction(zeros + ones)


def _rounded(total: Fraction) -> list[tuple[int, float, float, float]]:
    """Return what a total is rounded to, with what chance, and ∫ ½ − U and its square over such U.

    Examples
    --------
    >>> _rounded(Fraction(3))[0][:2], [part[:2] for part in _rounded(Fraction(5, 4))]
    ((3, 1.0), [(1, 0.75), (2, 0.25)])
    """
    low = math.floor(total)
    r = float(total - low)
    tilt, bend = r * (1 - r) / 2, (r - 0.5) ** 3 / 3
    both = ((low, 1 - r, tilt, 1 / 24 - bend), (low + 1, r, -tilt, 1 / 24 + bend))
    return [part for part in both if part[1]]


def _read_empty(empty: Exact | str, low: Fraction, high: Fraction) -> tuple[int, Fraction | None]:
    """Return how many records there are at least, and the mean of none, in [0, 1], if given."""
    if empty == "midpoint":
        return 1, None
    promise = _PROMISE.fullmatch(empty) if isinstance(empty, str) else None
    if promise:
        return int(promise[1]), None
    hint = f"'midpoint', a number in [{float(low):g}, {float(high):g}], or a promise: 'n >= 5'"
    if isinstance(empty, str):
        raise TrueupError(f"empty says what the mean of no records is, got {empty!r}", hint)
    value = Fraction(number(empty, "empty"))
    if not low <= value <= high:
        raise TrueupError(f"the mean of no records must lie in the bounds, got {empty!r}", hint)
    share = (value - low) / (high - low)
    return 1, None if share == _HALF else share
