"""A table before any data: what is added up, which noise it gets, and what is estimated from it.

A row is in one group, so that groups share every ε. Measures add theirs up: ε is split by weights.
With up to m rows of a unit every sensitivity is m times as large.

Means, and shares of two categories, are made from counts of their own. These also say how many
records there are, so that a count beside them costs nothing: it is the sum of such counts, averaged
over the measures that have them. So does a sum with the column and the bounds of a mean. Beside a
count sums are made from counts as means are, if nothing else is. With many means in large groups it
is better to divide all their sums by one noisy count; that is done where the expected size of the
groups, which is public, makes it so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.exact import number
from trueup.formula.grammar import parse
from trueup.mechanisms.records import float_above
from trueup.microdata import noisy_totals
from trueup.microdata.measures import Count, Mean, Measure, PerRecord, Share, Sum, read_measures
from trueup.microdata.noisy_totals import MOST_OWN, Estimate, Statistic, Total
from trueup.noise import DiscreteLaplace, Laplace
from trueup.tables.totals import SIMULATION

if TYPE_CHECKING:
    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.microdata.noisy_totals import Sides
    from trueup.noise import Noise

_MOST_ROWS = 10**6  # of a unit: the noise is that many times as wide
_COUNT = "count"
_LEAST_VARIANCE = 1e-300  # that of noise so narrow that its variance underflows


@dataclasses.dataclass(frozen=True)
class Design:
    """Measures, the budget of each, and the privacy unit.

    Parameters
    ----------
    measures
        By name; a count is added to means and shares.
    epsilon
        The budget of all measures together, those through per-record sums not included.
    by
        The columns that make the groups.
    weights
        How the budget is split between measures, 1 for those that are not named. A count has a part
        of its own if it is named, or if it divides something, or stands alone.
    unit, at_most
        The column that tells whose row it is, and how many rows of each are used.
    shared
        Means and shares that one noisy count divides; others have counts of their own.

    Examples
    --------
    >>> design = Design.read({"wage": "mean(wage, 0, 100)"}, 1, by=["state"])
    >>> design.budget
    {'wage': Fraction(1, 1)}
    >>> [(s.column, s.noise) for s in design.statistics][:2]
    [('wage_low_noisy', DiscreteLaplace(1)), ('wage_high_noisy', DiscreteLaplace(1))]
    >>> design.estimates[0].formula
    'wage_low_noisy + wage_high_noisy'
    """

    measures: Mapping[str, Measure]
    epsilon: Exact
    by: tuple[str, ...]
    weights: Mapping[str, Exact]
    unit: str | None = None
    at_most: int = 1
    shared: frozenset[str] = frozenset()

    @classmethod
    def read(
        cls,
        measures: Mapping[str, Any],
        epsilon: object,
        by: Sequence[str] = (),
        weights: Mapping[str, Any] | None = None,
        unit: str | None = None,
        at_most: object = None,
        size: object = None,
    ) -> Design:
        """Return the design, or refuse what it is made of.

        ``size`` is how many records a group is expected to have, by public knowledge: it decides
        whether one count divides all means and shares.
        """
        found = _with_count(read_measures(measures))
        budget, rows = number(epsilon, "epsilon", positive=True), _rows(unit, at_most)
        records = None if size is None else read_size(size)

        def made(shared: frozenset[str]) -> Design:
            split = _weights(weights, found, shared)
            return cls(found, budget, tuple(by), split, unit, rows, shared)

        quotients = frozenset(n for n, m in found.items() if isinstance(m, (Mean, Share)))
        shares = {n: m for n, m in found.items() if isinstance(m, Share)}
        design = made(frozenset(n for n, m in shares.items() if len(m.categories) > MOST_OWN))
        if records is not None and quotients:
            from trueup.microdata.expected import better

            design = better(design, made(quotients), records)
        design.check_names()
        for statistic in design.statistics:
            statistic.noise.variance  # noqa: B018  (refuses a noise beyond doubles)
        return design

    @property
    def count(self) -> str | None:
        """The name of the count."""
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

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns of the data that are read: of groups, measures and the unit."""
        unit = () if self.unit is None else (self.unit,)
        return tuple(dict.fromkeys((*self.by, *self.columns, *unit)))

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is published with noise, in the order of the table."""
        return tuple(s for name in self.measures for s in self._statistics(name))

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        """What is added up, each once."""
        rows = [Total()] * any(s.rounding for s in self.statistics)
        return tuple(dict.fromkeys([*rows, *(s.total for s in self.statistics)]))

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """What is estimated from it."""
        return tuple(e for name in self.measures for e in self._estimates(name))

    @property
    def divisor(self) -> str:
        """The name of the count in quotients."""
        return f"{self.count}_positive"

    def of(self, name: str) -> list[Statistic]:
        """Return what is published of a measure."""
        return [s for s in self.statistics if s.measure == name]

    @cached_property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The measures from whose counts others are estimated, which have no noise of their own."""
        own = tuple(n for n in self.measures if n in self.budget and self._has_counts(n))
        found = {}
        for name, measure in self.measures.items():
            if name not in self.budget and isinstance(measure, Count):
                found[name] = own
            elif name not in self.budget and isinstance(measure, Sum):
                found[name] = (next(n for n in own if _is_mean_of(self.measures[n], measure)),)
        return found

    def _has_counts(self, name: str) -> bool:
        """Whether the noisy counts of a measure add up to the number of records."""
        measure = self.measures[name]
        if isinstance(measure, Sum):
            return self.is_split(name)
        return isinstance(measure, (Mean, Share)) and name not in self.shared

    def is_split(self, name: str) -> bool:
        """Whether a measure is made from two counts: of records at its lower and upper bound."""
        measure = self.measures[name]
        if isinstance(measure, Sum):
            others = any(isinstance(m, (Mean, Share)) for m in self.measures.values())
            return name in self.budget and self._is_count_free and not others
        return isinstance(measure, Mean) and name not in self.shared

    @property
    def _is_count_free(self) -> bool:
        return self.count is not None and self.count not in self.weights

    def count_variance(self, name: str) -> float:
        """Return the variance of a count: of its own noise, or averaged over its sources."""
        if name in self.budget:
            return float(self._noise(name).variance)
        return 1 / sum(1 / self._variance_from(source) for source in self.sources[name])

    def _variance_from(self, source: str) -> float:
        """Return the variance of the number of records from the counts of a measure."""
        counts = [s for s in self._statistics(source) if s.noise.lattice]
        variance = sum(float(s.noise.variance) for s in counts) / self.times(source) ** 2
        return max(variance, _LEAST_VARIANCE)

    def times(self, name: str) -> int:
        """Return into how many parts records are divided by the counts of a measure."""
        if not self.is_split(name):
            return 1
        return noisy_totals.times_of(self.budget[name] / self.at_most)

    def _scale(self, name: str, reach: Fraction) -> float:
        """Return the noise scale of a measure that one row moves by ``reach``, never too small."""
        return float_above(self.at_most * reach / self.budget[name])

    def _noise(self, name: str) -> DiscreteLaplace:
        """Return the noise of whole counts, which one row moves by 1 in all, or by ``times``."""
        return DiscreteLaplace(self._scale(name, Fraction(self.times(name))))

    def _statistics(self, name: str) -> list[Statistic]:
        measure = self.measures[name]
        if isinstance(measure, Count):
            return noisy_totals.counted(name, self._noise(name)) if name in self.budget else []
        if isinstance(measure, Share):
            sides = (None if name in self.shared else 0, None)
            return noisy_totals.categories(name, measure, self._noise(name), sides)
        if isinstance(measure, PerRecord):
            return [noisy_totals.per_record(name, measure)]
        if isinstance(measure, Sum) and name not in self.budget:
            return []
        if self.is_split(name) and isinstance(measure, (Mean, Sum)):
            return noisy_totals.two_counts(name, measure, self._noise(name), self.times(name))
        noise = Laplace(self._scale(name, noisy_totals.reach_of(measure)))
        return [noisy_totals.summed(name, measure, noise)]

    def _estimates(self, name: str) -> list[Estimate]:
        measure, noisy = self.measures[name], f"{name}_noisy"
        divisor = self.divisor if name in self.shared else None
        if isinstance(measure, Share):
            return noisy_totals.share_formulas(name, measure, divisor)
        formula = noisy
        if isinstance(measure, Mean):
            middle = noisy_totals.plus(noisy_totals.origin_of(measure))
            formula = (
                f"{noisy}/{divisor}{middle}"
                if divisor
                else noisy_totals.mean_formula(name, measure.bounds, self._noise(name))
            )
        elif isinstance(measure, PerRecord):
            formula = noisy_totals.back(noisy, measure)
        elif isinstance(measure, Sum) and (name in self.sources or self.is_split(name)):
            source = self.sources[name][0] if name in self.sources else name
            formula = noisy_totals.sum_formula(source, measure.bounds, self.times(source))
        elif isinstance(measure, Count) and name in self.sources:
            formula = self._counted(self.sources[name])
        return [Estimate(name, name, formula)]

    def _counted(self, sources: Sequence[str]) -> str:
        """Return the number of records from counts, averaged by their variances.

        The weights have three digits and add up to exactly 1.
        """
        precision = [1 / self._variance_from(source) for source in sources]
        parts = [Fraction(round(1000 * p / sum(precision)), 1000) for p in precision]
        parts[0] += 1 - sum(parts)
        terms = []
        for source, part in zip(sources, parts, strict=True):
            total = " + ".join(s.name for s in self.of(source) if s.noise.lattice)
            weight = part / self.times(source)
            terms.append(total if weight == 1 else f"{weight}*({total})")
        return " + ".join(terms)

    @cached_property
    def estimators(self) -> dict[str, Estimator]:
        """The estimator of each column of estimates, as a reader of the sidecar makes it."""
        noises = {s.name: s.noise for s in self.statistics}
        sides = {s.name: s.bounds for s in self.statistics}
        if self.shared:
            noises[self.divisor], sides[self.divisor] = noises[f"{self.count}_noisy"], (1, None)
        made = {}
        for e in self.estimates:
            read = sorted(symbol.name for symbol in parse(e.formula).free_symbols)
            try:
                made[e.name] = _estimator(e.formula, tuple((n, noises[n], sides[n]) for n in read))
            except TrueupError:
                raise self._too_wide(e.measure) from None
        return made

    def _too_wide(self, name: str) -> TrueupError:
        """Return what to say of noise so wide that doubles hold no estimate."""
        wide = max(self.of(name), key=lambda s: s.scale).scale
        part = f" at epsilon {float(self.budget[name]):.3g}" if name in self.budget else ""
        rows = f" or at_most = {self.at_most} smaller" * (self.at_most > 1)
        return TrueupError(
            f"{name}: noise of scale {wide:.3g}{part} is too wide to estimate anything",
            f"make epsilon larger{rows}, or ask for fewer measures, or only for counts and sums",
        )

    def check_names(self) -> None:
        """Refuse columns that have the same name, upper or lower case alike."""
        names = [*self.by, *(s.column for s in self.statistics)]
        names += [s.name for s in self.statistics if s.name != s.column]  # else formulas mislead
        names += [self.divisor] if self.shared else []
        names += [f"{e.name}{end}" for e in self.estimates for end in ("", "_stderr")]
        seen: dict[str, str] = {}
        for name in [*names, SIMULATION]:
            if name.casefold() in seen:
                raise TrueupError(
                    f"two columns of the table, or numbers in formulas, would be called {name!r}",
                    "give the measures other names, or rename the categories or key columns",
                )
            seen[name.casefold()] = name


@lru_cache(64)
def _estimator(formula: str, known: tuple[tuple[str, Noise, Sides], ...]) -> Estimator:
    """Return an estimator, kept: the tables of one plan are made again and again."""
    return unbiased(formula, {n: law for n, law, _ in known}, {n: s for n, _, s in known})


def _with_count(measures: dict[str, Measure]) -> dict[str, Measure]:
    """Return the measures with one count at most, and one if there are means or shares."""
    counts = [n for n, m in measures.items() if isinstance(m, Count)]
    if len(counts) > 1:
        raise TrueupError(
            f"the records are counted twice, as {' and '.join(counts)}",
            "one count is enough",
        )
    if counts or not any(isinstance(m, (Mean, Share)) for m in measures.values()):
        return measures
    if _COUNT in measures:
        raise TrueupError(
            f"means and shares come with a count, and {_COUNT!r} is another measure",
            "add a measure such as n='count'",
        )
    return {_COUNT: Count(), **measures}


def _weights(
    given: Mapping[str, Any] | None, measures: Mapping[str, Measure], shared: frozenset[str]
) -> dict[str, Exact]:
    """Return the weight of every measure that has a part of the budget.

    A count has none where it is the sum of other counts, unless it is given one.
    """
    given = given or {}
    budgeted = [n for n, m in measures.items() if not isinstance(m, PerRecord)]
    for name in given:
        if name not in budgeted:
            raise TrueupError(
                f"there is no measure {name!r} with a part of the budget",
                f"weights are for {', '.join(budgeted) or 'none of them'}",
            )
    read = {n: number(w, f"the weight of {n}", positive=True) for n, w in given.items()}
    free = {n for n in budgeted if n not in given and _is_free(measures[n], measures, shared)}
    return {name: read.get(name, 1) for name in budgeted if name not in free}


def _is_free(measure: Measure, measures: Mapping[str, Measure], shared: frozenset[str]) -> bool:
    """Whether a measure is estimated from the counts of others."""
    if isinstance(measure, Count):
        return not shared and any(isinstance(m, (Mean, Share, Sum)) for m in measures.values())
    own = (m for n, m in measures.items() if n not in shared)
    return isinstance(measure, Sum) and any(_is_mean_of(m, measure) for m in own)


def _is_mean_of(mean: Measure, measure: Sum) -> bool:
    return isinstance(mean, Mean) and (mean.column, mean.bounds) == (measure.column, measure.bounds)


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


def read_size(size: object) -> int:
    """Return how many records a group has."""
    value = number(size, "a group size")
    if value < 1 or value != int(value):
        raise TrueupError(f"a group has 1 record or more, a whole number, got {size!r}", "e.g. 100")
    return int(value)
