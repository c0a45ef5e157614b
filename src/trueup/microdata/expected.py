"""The standard errors to expect of a table, by group size, before any data is touched.

Those of means and shares from counts of their own are exact sums over the noise and the rounding,
the largest of a few means or shares. A quotient x/n over a shared count is estimated by x·h(n) with
independent noises, so that its true variance is

    Var(xh) = Var x · (Var h + (E h)²) + q² · Var h,

which is largest where x is farthest from 0: for a mean at the ends of its bounds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from scipy import optimize

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.mechanisms.groups import PlainGroupMean
from trueup.mechanisms.inverse_count import inverse_moments
from trueup.mechanisms.shares import Shares
from trueup.microdata.design import Design, read_size
from trueup.microdata.measures import Count, Mean, PerRecord, Share, Sum
from trueup.microdata.noisy_totals import MOST_OWN

if TYPE_CHECKING:
    from trueup.exact import Exact

SIZES = (10, 100, 1_000, 10_000)
"""Group sizes of which the errors are told."""
TOTALS = (10_000, 1_000_000, 100_000_000, 10_000_000_000)
"""Totals of which the errors of per-record sums are told: these depend on no number of records."""
_FROM: tuple[int, ...] = tuple(n * 10**power for power in range(6) for n in (1, 2, 3, 5, 7))
"""Numbers of records of which one is named as enough."""
_WIDE = 20
_POWER = 6
"""At a scale s above _WIDE n records are enough by n/s = constant + _POWER log s at most: what is
left is a small denominator, whose part of the variance is like s^_POWER exp(-n/s)."""
_PARTS = (Fraction(0), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))
"""Means at which errors are computed, as parts of the range; beyond ½ they are the same."""
_SCALES = (Fraction(3, 2), Fraction(3), Fraction(6))
"""And at means that so many scales of the noise, in records, would make: in large groups the error
is largest near these. All together they miss the largest by less than one part in a hundred."""


def expected(design: Design, sizes: Sequence[int] = SIZES) -> dict[str, list[float]]:
    """Return the largest standard errors of each measure, over what the records can be.

    A per-record sum is taken at totals as large as the sizes: its error depends on the total. An
    error is infinite where there is too much noise to compute it.

    Examples
    --------
    >>> design = Design.read({"n": "count", "wage": "mean(wage, 0, 100)"}, 2)
    >>> {name: [round(e, 2) for e in errors] for name, errors in expected(design).items()}
    {'n': [0.85, 0.85, 0.85, 0.85], 'wage': [5.99, 0.65, 0.07, 0.01]}
    """
    return {name: [error(design, name, n) for n in sizes] for name in design.measures}


def error(design: Design, name: str, n: int) -> float:
    """Return the largest standard error of a measure in a group of n records."""
    size, measure = read_size(n), design.measures[name]
    if isinstance(measure, Count):
        return math.sqrt(design.count_variance(name))
    if isinstance(measure, Sum) and (name in design.sources or design.is_split(name)):
        return _sum_from_counts(design, name, measure)
    statistic = design.of(name)[0]
    if isinstance(measure, PerRecord):
        return measure.mechanism.sd(float(size))
    if name in design.shared:
        reach = float(statistic.total.grid.reach) if statistic.total.grid else 1.0
        rest = 1 - 1 / len(measure.categories) if isinstance(measure, Share) else 1.0
        variance = rest * float(statistic.noise.variance)
        return _quotient(design, variance, size * reach * rest, size)
    if not isinstance(measure, (Mean, Share)):  # far from its bound, where it is largest
        return math.sqrt(float(statistic.noise.variance))
    try:
        return _from_counts(design, name, measure, size)
    except TrueupError:
        return math.inf


def usable_from(design: Design, name: str, reach: float) -> int | None:
    """Return from how many records on two standard errors are within a reach; None if from none.

    Examples
    --------
    >>> usable_from(Design.read({"wage": "mean(wage, 0, 100)"}, 1), "wage", 50)
    7
    """
    times = max(Fraction(1), design.at_most / design.budget[name] / _WIDE)
    times = Fraction(1) if name in design.shared else times
    nearer = replace(design, epsilon=Fraction(design.epsilon) * times)
    i = bisect_left(_FROM, True, key=lambda n: 2 * error(nearer, name, n) <= reach)
    if i == len(_FROM):
        return None
    more = _WIDE * _POWER * math.log(times)
    return math.ceil(float(times) * (_FROM[i] + more))


def _from_counts(design: Design, name: str, measure: Mean | Share, n: int) -> float:
    """Return the largest error of what is made from counts of its own."""
    budget = 1 / Fraction(design.of(name)[0].scale)
    if isinstance(measure, Mean):
        low, high = (Fraction(b) for b in measure.bounds)
        mean, size = _mean(budget), n * design.times(name)
        return float(high - low) * max(mean.sd(size, part) for part in _parts(size, budget))
    shares = _shares(budget)
    return max(shares.sd(n, Fraction(round(n * part), n)) for part in _parts(n, budget))


def _sum_from_counts(design: Design, name: str, measure: Sum) -> float:
    """Return the error of a sum from two counts: of their noise, and of the rounding, 1/12."""
    source = design.sources[name][0] if name in design.sources else name
    low, high = (float(b) for b in measure.bounds)
    noise = float(design.of(source)[0].noise.variance)
    variance = (low * low + high * high) * noise + (high - low) ** 2 / 12
    return math.sqrt(variance) / design.times(source)


def _parts(n: int, epsilon: Fraction) -> set[Fraction]:
    """Return the means among which the largest error is looked for."""
    return {*_PARTS, *(min(s / epsilon / n, Fraction(1, 2)) for s in _SCALES)}


@lru_cache(32)
def _mean(epsilon: Fraction) -> PlainGroupMean:
    """Return the mean on [0, 1], kept: its errors are asked for at many sizes."""
    return PlainGroupMean(epsilon)


@lru_cache(32)
def _shares(epsilon: Fraction) -> Shares:
    return Shares(epsilon, range(MOST_OWN))


def _quotient(design: Design, variance: float, truth: float, n: int) -> float:
    divisor = next(s for s in design.statistics if s.measure == design.count)
    centre, spread = inverse_moments(float(n), divisor.noise, 1.0)
    return math.sqrt(variance * (spread + centre**2) + truth**2 * spread)


def better(one: Design, other: Design, n: int) -> Design:
    """Return the design with the smaller errors in groups of n records, each on its own scale."""
    first, second = (sum(_relative(d, c, n) ** 2 for c in d.measures) for d in (one, other))
    return one if first <= second else other


def proposed(design: Design, n: int) -> Design:
    """Return the design with weights for groups of n records: the least sum of squared errors.

    Every error counts on the scale of what it can be: a mean against half its range, a count and a
    sum against their largest size. Measures but the count divide what it leaves by cube roots: that
    is best for variances of A/e² at a budget e.

    Examples
    --------
    >>> made = proposed(Design.read({"pay": "sum(p, 0, 9)", "sex": "share(s, [f, m])"}, 1), 100)
    >>> made.weights
    {'pay': 1, 'sex': Fraction(13, 10)}
    """
    named = {c: design.measures[c] for c in design.budget if c != design.count}
    sizes = {c: len(m.categories) if isinstance(m, Share) else 1 for c, m in named.items()}
    parts = {c: size ** (1 / 3) for c, size in sizes.items()}
    least = min(parts.values(), default=1.0)
    others = {c: p / least for c, p in parts.items()}
    if design.count not in design.budget or not named:
        return replace(design, weights={c: _tenths(w) for c, w in others.items()} or design.weights)
    count = design.count

    def at(power: float) -> Design:
        shares = {count: math.exp(power), **others}
        return replace(design, weights={c: shares[c] for c in design.weights})

    found = optimize.minimize_scalar(
        lambda power: sum(_relative(at(power), c, n) ** 2 for c in design.budget),
        bounds=_POWERS,
        method="bounded",
        options={"xatol": 0.01},
    )
    best = at(float(found.x))
    return replace(best, weights={c: _tenths(w) for c, w in best.weights.items()})


_POWERS = (-3.0, 4.0)  # the count has between 1/20 and 50 times the budget of the least of others


def _relative(design: Design, name: str, n: int) -> float:
    """Return an error on the scale of what is measured; 0 for what has none."""
    measure = design.measures[name]
    if isinstance(measure, PerRecord):
        return 0.0
    found = error(design, name, n)
    if isinstance(measure, Share):
        return found * 2 * math.sqrt(len(measure.categories))
    bounds = (0, 1) if isinstance(measure, Count) else measure.bounds
    low, high = (float(b) for b in bounds)
    if isinstance(measure, Mean):
        return found / (high - low) * 2
    return found / (n * max(abs(low), abs(high)))


def _tenths(weight: Exact) -> Exact:
    return number(Fraction(max(1, round(10 * float(weight))), 10), "a weight")
