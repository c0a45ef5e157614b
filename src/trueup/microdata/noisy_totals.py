"""What is published of a measure: noisy totals, and formulas that estimate the measure from them.

**A mean from two counts.** A record in [low, high] counts as one at the upper bound by the part x
of the way that it is there, and at the lower bound by the rest. Both totals are rounded together,
b = ⌊Σx + U⌋ and a = n − b, with one uniform U, so that one record moves them by exactly 1 in all:
one ε serves both, whatever U is, and ½ − U is published too. The mean is (b + ½ − U)/n, of which
the error of the rounding is uniform whatever Σx is. With a large ε the counts are of 1/times of a
record.

**Shares of two categories from their counts.** A record is in one of them: one ε serves both.

Both are without bias in an empty group: its mean is the middle of the bounds, its shares are equal.

**A quotient x/n by a count that several measures share**: x are deviations from the middle of the
bounds, or from equal shares, so that x is 0 in an empty group; its noise is independent of that of
n, and the estimate of x/n that is made for n ≥ 1 has mean 0 there too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trueup.mechanisms.groups import PlainGroupMean
from trueup.mechanisms.sampling import below
from trueup.mechanisms.whole_numbers import Grid, Whole
from trueup.microdata.measures import Mean, PerRecord, Share, Sum
from trueup.noise import DiscreteLaplace, Laplace, Uniform

if TYPE_CHECKING:
    from trueup.mechanisms.records import Bounds

    Sides = tuple[float | None, float | None]

FINE = 2**20
"""Values for a per-record sum are read in steps of 1/FINE: a millionth of their unit."""
ROUNDED = "each value rounded down to a multiple of 2^-20"
LARGEST = 2**42
"""And must not exceed this: then they are whole numbers of 62 bits, and so is nothing lost."""
_WORD = re.compile(r"[A-Za-z0-9_]+")
MOST_OWN = 2
"""Categories whose shares are made from their counts alone: for three the formula, with branches
for every count, is too long for SQL, and a noisy count divides."""
_COARSE = 2
"""The noise of a mean's two counts is no narrower than 1/3: else its rounding would matter more.
The counts are then of 1/times of a record, times = ε/_COARSE for one row, rounded."""


@dataclasses.dataclass(frozen=True)
class Total:
    """What an engine adds up in whole numbers, for every group.

    ``column`` None: rows. With a ``grid``: values on it. With a ``category``: rows that have it.
    Otherwise: values of any size, in steps of 1/FINE.
    """

    column: str | None = None
    grid: Grid | None = None
    category: str | None = None


@dataclasses.dataclass(frozen=True)
class Rounding:
    """The two whole counts of a mean, from its exact total and the number of rows."""

    total: Total
    times: int = 1

    def split(self, totals: Mapping[Total, Sequence[int]], rng: Any) -> dict[str, Whole]:
        """Return the counts and what was published of U, for all groups."""
        steps = self.total.grid.steps if self.total.grid else 1
        drawn = [below(steps, rng) for _ in totals[self.total]]
        ones = [
            (self.times * s + u) // steps for s, u in zip(totals[self.total], drawn, strict=True)
        ]
        zeros = [self.times * n - b for n, b in zip(totals[Total()], ones, strict=True)]
        middle = tuple(steps - 2 * u - 1 for u in drawn)  # ½ − U: 0 on average, exactly
        return {
            "low": Whole(tuple(zeros), Fraction(1)),
            "high": Whole(tuple(ones), Fraction(1)),
            "rounding": Whole(middle, Fraction(1, 2 * steps)),
        }


@dataclasses.dataclass(frozen=True)
class Statistic:
    """A published number: its name in formulas, its column in the table, and its noise.

    ``part`` of a ``rounding``: "low", "high" or "rounding", which is published as it is.
    """

    name: str
    column: str
    measure: str
    total: Total
    noise: Laplace | DiscreteLaplace | Uniform
    bounds: Sides
    about: str
    step: Fraction = Fraction(1)
    through: PerRecord | None = None
    rounding: Rounding | None = None
    part: str = ""

    @property
    def scale(self) -> float:
        """The scale of the noise; the width of a uniform one."""
        return float(getattr(self.noise, self.noise.scale_name))

    def whole(self, totals: Sequence[int]) -> Whole:
        """Return the true numbers of all groups as whole multiples of a step."""
        if self.through is None:
            return Whole(tuple(totals), self.step)
        mechanism = self.through.mechanism
        values = [mechanism.transformed(Fraction(t, FINE)) for t in totals]
        return Whole(tuple(v.multiples[0] for v in values), mechanism.step)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A column of estimates: a formula of statistics."""

    name: str
    measure: str
    formula: str


def truths(
    statistics: Sequence[Statistic], totals: Mapping[Total, Sequence[int]], rng: Any
) -> dict[str, Whole]:
    """Return the true numbers of all groups that noise is added to; totals of means are rounded."""
    split: dict[str, dict[str, Whole]] = {}
    found = {}
    for s in statistics:
        if s.rounding is None:
            found[s.name] = s.whole(totals[s.total])
        else:
            if s.measure not in split:
                split[s.measure] = s.rounding.split(totals, rng)
            found[s.name] = split[s.measure][s.part]
    return found


# -- what is published of each measure -------------------------------------------------------------


def times_of(epsilon: Fraction) -> int:
    """Return into how many parts records are divided, with a budget of ε for one row.

    Examples
    --------
    >>> [times_of(Fraction(e)) for e in (1, 2, 4, 10)]
    [1, 1, 2, 5]
    """
    return max(1, round(epsilon / _COARSE))


def counted(name: str, noise: DiscreteLaplace) -> list[Statistic]:
    """Return the statistic of a count with noise of its own."""
    column = f"{name}_noisy"
    return [Statistic(column, column, name, Total(), noise, (0, None), "number of records")]


def two_counts(
    name: str, measure: Mean | Sum, noise: DiscreteLaplace, times: int
) -> list[Statistic]:
    """Return the two counts of a mean or sum, and the rounding that they have in common."""
    low, high = (Fraction(b) for b in measure.bounds)
    total = Total(measure.column, Grid.under(1, measure.bounds, low, high - low))
    rounding = Rounding(total, times)
    records = "records" if times == 1 else f"records, in 1/{times}"

    def made(part: str, noise: DiscreteLaplace | Uniform, sides: Sides, about: str) -> Statistic:
        column = f"{name}_{part}" if part == "rounding" else f"{name}_{part}_noisy"
        return Statistic(
            column, column, name, total, noise, sides, about, rounding=rounding, part=part
        )

    about = f"{records}, each by how near {measure.column} is to"
    return [
        made("low", noise, (0, None), f"{about} {float(low):g} and not {float(high):g}"),
        made("high", noise, (0, None), f"{about} {float(high):g} and not {float(low):g}"),
        made(
            "rounding",
            Uniform(1),
            (None, None),
            f"1/2 less the uniform number with which both counts were rounded: {name}_high_noisy "
            "and this together have a uniform error",
        ),
    ]


def mean_formula(name: str, bounds: Bounds, noise: DiscreteLaplace) -> str:
    """Return the mean from its two counts; both values without records are free of bias."""
    a, b = f"{name}_low_noisy", f"{name}_high_noisy"
    low, high = (Fraction(x) for x in bounds)
    nothing = float(PlainGroupMean(1 / Fraction(noise.scale)).at_nothing)
    part = f"where({a} + {b} > 0, {b}/({a} + {b}), 1/2)"
    rest = f"{name}_rounding*where({a} + {b} > 0, 1/({a} + {b}), {nothing:.6g})"
    width = constant(high - low)
    return (
        f"{part} + {rest}{plus(low)}" if width == "1" else f"{width}*({part} + {rest}){plus(low)}"
    )


def sum_formula(name: str, bounds: Bounds, times: int) -> str:
    """Return the sum of a column from the two counts of a measure.

    Examples
    --------
    >>> sum_formula("hours", (0, 60), 1)
    '60*(hours_high_noisy + hours_rounding)'
    >>> sum_formula("hours", (-5, 60), 2)
    '-5/2*(hours_low_noisy + hours_high_noisy) + 65/2*(hours_high_noisy + hours_rounding)'
    """
    low, high = (Fraction(b) for b in bounds)
    a, b, rounding = f"{name}_low_noisy", f"{name}_high_noisy", f"{name}_rounding"
    rest = f"{_factor((high - low) / times)}({b} + {rounding})"
    return rest if not low else f"{_factor(low / times)}({a} + {b}) + {rest}"


def _factor(value: Fraction) -> str:
    """Return a number as it stands before brackets."""
    return "" if value == 1 else f"{value}*" if value.denominator < 10**6 else f"{float(value)!r}*"


def category_names(name: str, measure: Share) -> list[str]:
    """Return what the counts of a share are called in formulas: like their columns, if that can be.

    Examples
    --------
    >>> category_names("size", Share("size", ("1", "0", "10 and more")))
    ['size_1_noisy', 'size_0_noisy', 'size_category3_noisy']
    """
    return [
        f"{name}_{c if _WORD.fullmatch(c) else f'category{i}'}_noisy"
        for i, c in enumerate(measure.categories, start=1)
    ]


def categories(name: str, measure: Share, noise: DiscreteLaplace, sides: Sides) -> list[Statistic]:
    """Return the counts of a share."""
    return [
        Statistic(
            called,
            f"{name}_{category}_noisy",
            name,
            Total(measure.column, category=category),
            noise,
            sides,
            f"number of records with {measure.column} = {category}",
        )
        for called, category in zip(category_names(name, measure), measure.categories, strict=True)
    ]


def share_formulas(name: str, measure: Share, divisor: str | None) -> list[Estimate]:
    """Return the shares, from their counts alone or over a count that divides."""
    k = len(measure.categories)
    each = category_names(name, measure)
    total = " + ".join(each)

    def formula(x: str) -> str:
        if divisor is None:  # of two: as a difference, which is shorter in SQL
            rest = " - ".join([x, *(y for y in each if y != x)])
            return f"where({total} > 0, ({rest})/({total}), 0)/2 + 1/2"
        return f"({x} - ({total})/{k})/{divisor} + 1/{k}"

    return [
        Estimate(f"{name}_{category}", name, formula(x))
        for x, category in zip(each, measure.categories, strict=True)
    ]


def summed(name: str, measure: Mean | Sum, noise: Laplace) -> Statistic:
    """Return the statistic of a sum, or of the deviations from the middle that make a mean."""
    origin, reach = origin_of(measure), reach_of(measure)
    grid = Grid.under(Fraction(noise.scale) / reach, measure.bounds, origin, reach)
    low, high = (float(b) for b in measure.bounds)
    what = measure.column if not origin else f"({measure.column} − {float(origin):g})"
    sides: Sides = (None, None)
    if isinstance(measure, Sum):
        sides = (0 if low >= 0 else None, 0 if high <= 0 else None)
    return Statistic(
        f"{name}_noisy",
        f"{name}_noisy",
        name,
        Total(measure.column, grid),
        noise,
        sides,
        f"sum of {what}, {measure.column} clipped to [{low:g}, {high:g}]",
        reach / grid.steps,
    )


def per_record(name: str, measure: PerRecord) -> Statistic:
    """Return the statistic of a per-record sum."""
    mechanism = measure.mechanism
    column = f"{name}_noisy"
    offset = f" + {measure.offset}" if measure.offset else ""
    return Statistic(
        column,
        column,
        name,
        Total(measure.column),
        Laplace(measure.scale),
        (mechanism.low, None),
        f"{measure.transform} of (sum of {measure.column}{offset}), {ROUNDED}",
        mechanism.step,
        measure,
    )


def back(noisy: str, measure: PerRecord) -> str:
    """Return the total from its noisy transform."""
    kind, _, power = measure.transform.partition(":")
    inverse = f"exp({noisy})" if kind == "log" else f"{noisy}**{int(power)}"
    return f"{inverse}{plus(-Fraction(measure.offset))}"


def origin_of(measure: Mean | Sum) -> Fraction:
    """Return what a sum counts from: 0, or for a mean the double nearest to the middle."""
    low, high = (Fraction(b) for b in measure.bounds)
    return Fraction(0) if isinstance(measure, Sum) else Fraction(float((low + high) / 2))


def reach_of(measure: Mean | Sum) -> Fraction:
    """Return the largest distance of a bound from the origin: what one record moves a sum by."""
    low, high = (Fraction(b) for b in measure.bounds)
    return max(high - origin_of(measure), origin_of(measure) - low)


def plus(value: Fraction) -> str:
    """Return a constant as it follows a formula."""
    return "" if not value else f" {'+' if value > 0 else '-'} {constant(abs(value))}"


def constant(value: Fraction) -> str:
    """Return a number as formulas write it: a double that is read back."""
    whole = value.denominator == 1 and value < 2**53
    return str(int(value)) if whole else repr(float(value))
