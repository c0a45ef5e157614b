"""A table before any data: what is added up, which noise it gets, and what is estimated from it.

All means and shares are x/n with one noisy count n. Sums for means are of deviations from the
middle of the bounds, shares are of deviations from equal shares: so in an empty group x is 0, its
noise is independent of that of n, and the estimate of x/n that is made for n ≥ 1 has mean 0 there
too. A group without records is therefore published without bias like any other: its mean is the
middle of the bounds, its shares are equal.

A row is in one group, so that groups share every ε. Measures add theirs up: ε is split by weights.
With up to m rows of a unit every sensitivity is m times as large.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.exact import number
from trueup.formula.grammar import parse
from trueup.mechanisms.whole_numbers import Grid, Whole, float_above
from trueup.microdata.measures import (
    Count,
    Mean,
    Measure,
    PerRecord,
    Share,
    Sum,
    reach_of,
    read_measures,
)
from trueup.noise import DiscreteLaplace, Laplace

if TYPE_CHECKING:
    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.mechanisms.records import Bounds

    Sides = tuple[float | None, float | None]

FINE = 2**20
"""Values for a per-record sum are read in steps of 1/FINE: a millionth of their unit."""
LARGEST = 2**42
"""And must not exceed this: then they are whole numbers of 62 bits, and so is nothing lost."""
_MOST_ROWS = 10**6  # of a unit: the noise is that many times as wide
_COUNT = "count"


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
class Statistic:
    """A published noisy number: its name in formulas, its column in the table, and its noise."""

    name: str
    column: str
    measure: str
    total: Total
    noise: Laplace | DiscreteLaplace
    bounds: Sides
    about: str
    step: Fraction = Fraction(1)
    through: PerRecord | None = None

    def whole(self, totals: Sequence[int], *, simulated: bool) -> Whole:
        """Return the true numbers of all groups as whole multiples of a step."""
        if self.through is None:
            return Whole(tuple(totals), self.step)
        mechanism = self.through.mechanism
        values = [mechanism.transformed(Fraction(t, FINE), simulated=simulated) for t in totals]
        return Whole(tuple(v.multiples[0] for v in values if isinstance(v, Whole)), mechanism.step)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A column of estimates: a formula of statistics."""

    name: str
    measure: str
    formula: str


@dataclasses.dataclass(frozen=True)
class Design:
    """Measures, the budget of each, and the privacy unit.

    Parameters
    ----------
    measures
        By name; a count is added if means or shares need one.
    epsilon
        The budget of all measures together, those through per-record sums not included.
    by
        The columns that make the groups.
    weights
        How the budget is split between measures, 1 for those that are not named.
    unit, at_most
        The column that tells whose row it is, and how many rows of each are used.

    Examples
    --------
    >>> design = Design.read({"wage": "mean(wage, 0, 100)"}, 1, by=["state"])
    >>> design.budget
    {'count': Fraction(1, 2), 'wage': Fraction(1, 2)}
    >>> [(s.column, s.noise) for s in design.statistics]
    [('count_noisy', DiscreteLaplace(2)), ('wage_noisy', Laplace(100))]
    >>> design.estimates[1].formula
    'wage_noisy/count_positive + 50'
    """

    measures: Mapping[str, Measure]
    epsilon: Exact
    by: tuple[str, ...]
    weights: Mapping[str, Exact]
    unit: str | None = None
    at_most: int = 1

    @classmethod
    def read(
        cls,
        measures: Mapping[str, Any],
        epsilon: object,
        by: Sequence[str] = (),
        weights: Mapping[str, Any] | None = None,
        unit: str | None = None,
        at_most: object = None,
    ) -> Design:
        """Return the design, or refuse what it is made of."""
        found = _with_count(read_measures(measures))
        budget = number(epsilon, "epsilon", positive=True)
        made = cls(found, budget, tuple(by), _weights(weights, found), unit, _rows(unit, at_most))
        made.check_names()
        for statistic in made.statistics:
            statistic.noise.variance  # noqa: B018  (refuses a noise beyond doubles)
        return made

    @property
    def count(self) -> str | None:
        """The name of the count by which means and shares are divided."""
        return next((n for n, m in self.measures.items() if isinstance(m, Count)), None)

    @cached_property
    def budget(self) -> dict[str, Fraction]:
        """The ε of each measure."""
        total = sum((Fraction(w) for w in self.weights.values()), Fraction(0))
        return {n: Fraction(self.epsilon) * Fraction(w) / total for n, w in self.weights.items()}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the data that measures read."""
        named = (getattr(m, "column", None) for m in self.measures.values())
        return tuple(dict.fromkeys(c for c in named if c is not None))

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is published with noise, in the order of the table."""
        return tuple(s for name in self.measures for s in self._statistics(name))

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """What is estimated from it."""
        return tuple(e for name in self.measures for e in self._estimates(name))

    @property
    def divisor(self) -> str:
        """The name of the count in quotients."""
        return f"{self.count}_positive"

    def _scale(self, name: str, reach: Fraction) -> float:
        """Return the noise scale of a measure that one row moves by ``reach``, never too small."""
        return float_above(self.at_most * reach / self.budget[name])

    def _statistics(self, name: str) -> list[Statistic]:
        measure, column = self.measures[name], f"{name}_noisy"
        if isinstance(measure, Count):
            noise = DiscreteLaplace(self._scale(name, Fraction(1)))
            return [Statistic(column, column, name, Total(), noise, (0, None), "number of records")]
        if isinstance(measure, Share):
            noise = DiscreteLaplace(self._scale(name, Fraction(1)))
            return [
                Statistic(
                    f"{name}_{i}_noisy",
                    f"{name}_{category}_noisy",
                    name,
                    Total(measure.column, category=category),
                    noise,
                    (None, None),
                    f"number of records with {measure.column} = {category}",
                )
                for i, category in enumerate(measure.categories, start=1)
            ]
        if isinstance(measure, PerRecord):
            return [_per_record(name, measure)]
        return [self._sum(name, measure)]

    def _sum(self, name: str, measure: Mean | Sum) -> Statistic:
        origin = Fraction(0) if isinstance(measure, Sum) else _middle(measure.bounds)
        reach = reach_of(measure.bounds, origin)
        noise = Laplace(self._scale(name, reach))
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

    def _estimates(self, name: str) -> list[Estimate]:
        measure, noisy = self.measures[name], f"{name}_noisy"
        if isinstance(measure, Mean):
            return [Estimate(name, name, f"{noisy}/{self.divisor}{_plus(_middle(measure.bounds))}")]
        if isinstance(measure, Share):
            k = len(measure.categories)
            each = [f"{name}_{i}_noisy" for i in range(1, k + 1)]
            equal = f"({' + '.join(each)})/{k}"
            return [
                Estimate(f"{name}_{category}", name, f"({x} - {equal})/{self.divisor} + 1/{k}")
                for x, category in zip(each, measure.categories, strict=True)
            ]
        if isinstance(measure, PerRecord):
            return [Estimate(name, name, _back(noisy, measure))]
        return [Estimate(name, name, noisy)]

    @cached_property
    def estimators(self) -> dict[str, Estimator]:
        """The estimator of each column of estimates, as a reader of the sidecar makes it."""
        noises = {s.name: s.noise for s in self.statistics}
        sides = {s.name: s.bounds for s in self.statistics}
        if self.count is not None:
            noises[self.divisor], sides[self.divisor] = noises[f"{self.count}_noisy"], (1, None)
        made = {}
        for e in self.estimates:
            read = sorted(symbol.name for symbol in parse(e.formula).free_symbols)
            given = {n: noises[n] for n in read}, {n: sides[n] for n in read}
            made[e.name] = unbiased(e.formula, *given)
        return made

    def check_names(self) -> None:
        """Refuse columns that have the same name, upper or lower case alike."""
        names = [*self.by, *(s.column for s in self.statistics)]
        names += [f"{e.name}{end}" for e in self.estimates for end in ("", "_stderr")]
        seen: dict[str, str] = {}
        for name in [*names, SIMULATION]:
            if name.casefold() in seen:
                raise TrueupError(
                    f"two columns of the table would be called {name!r}",
                    "give the measures other names, or rename the categories or key columns",
                )
            seen[name.casefold()] = name


SIMULATION = "simulation"
"""The column that says in every row of a simulated table that it is not private."""


def _with_count(measures: dict[str, Measure]) -> dict[str, Measure]:
    """Return the measures with one count at most, and one if there are quotients."""
    counts = [n for n, m in measures.items() if isinstance(m, Count)]
    if len(counts) > 1:
        raise TrueupError(
            f"the records are counted twice, as {' and '.join(counts)}",
            "one count is enough: it also divides the sums of all means",
        )
    if counts or not any(isinstance(m, (Mean, Share)) for m in measures.values()):
        return measures
    if _COUNT in measures:
        raise TrueupError(
            f"means and shares need a count, and {_COUNT!r} is another measure",
            "add a measure such as n='count'",
        )
    return {_COUNT: Count(), **measures}


def _weights(given: Mapping[str, Any] | None, measures: Mapping[str, Measure]) -> dict[str, Exact]:
    """Return the weight of every measure that has a part of the budget."""
    budgeted = [n for n, m in measures.items() if not isinstance(m, PerRecord)]
    for name in given or {}:
        if name not in budgeted:
            raise TrueupError(
                f"there is no measure {name!r} with a part of the budget",
                f"weights are for {', '.join(budgeted) or 'none of them'}",
            )
    read = {n: number(w, f"the weight of {n}", positive=True) for n, w in (given or {}).items()}
    return {name: read.get(name, 1) for name in budgeted}


def _rows(unit: str | None, at_most: object) -> int:
    """Return how many rows of a unit are used."""
    if unit is None:
        if at_most is not None and at_most != 1:
            raise TrueupError(
                f"at_most = {at_most!r} rows of which unit?",
                "name its column, e.g. unit='person_id'",
            )
        return 1
    if at_most is None:
        raise TrueupError(
            f"how many rows of each {unit} may be used?",
            "give at_most=m: the noise is m times as wide, other rows are left out at random",
        )
    if isinstance(at_most, bool) or not isinstance(at_most, int) or not 1 <= at_most <= _MOST_ROWS:
        raise TrueupError(
            f"at_most must be a whole number from 1 to {_MOST_ROWS}, got {at_most!r}",
            "e.g. at_most=3",
        )
    return at_most


def _middle(bounds: Bounds) -> Fraction:
    """Return the double nearest to the middle of the bounds, exactly: formulas can say it."""
    low, high = (Fraction(b) for b in bounds)
    return Fraction(float((low + high) / 2))


def _plus(value: Fraction) -> str:
    """Return a constant as it follows a formula; a double is written so that it is read back."""
    shown = abs(value)
    text = str(int(shown)) if shown.denominator == 1 and shown < 2**53 else repr(float(shown))
    return "" if not value else f" {'+' if value > 0 else '-'} {text}"


def _per_record(name: str, measure: PerRecord) -> Statistic:
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
        f"{measure.transform} of (sum of {measure.column}{offset})",
        mechanism.step,
        measure,
    )


def _back(noisy: str, measure: PerRecord) -> str:
    """Return the total from its noisy transform."""
    kind, _, power = measure.transform.partition(":")
    inverse = f"exp({noisy})" if kind == "log" else f"{noisy}**{int(power)}"
    return f"{inverse}{_plus(-Fraction(measure.offset))}"
