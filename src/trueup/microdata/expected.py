"""The standard errors to expect of a table, by group size, before any data is touched.

A quotient x/n is estimated by x·h(n) with independent noises, so that its true variance is

    Var(xh) = Var x · (Var h + (E h)²) + q² · Var h,

which is largest where x is farthest from 0: for a mean at the ends of its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from scipy import optimize

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.mechanisms.inverse_count import inverse_moments
from trueup.microdata.measures import Mean, PerRecord, Share

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.microdata.design import Design, Statistic

SIZES = (10, 100, 1_000, 10_000)
"""Group sizes of which the errors are told."""


def expected(design: Design, sizes: Sequence[int] = SIZES) -> dict[str, list[float]]:
    """Return the largest standard errors of each measure, over what the records can be.

    A per-record sum is taken at totals as large as the sizes: its error depends on the total.

    Examples
    --------
    >>> from trueup.microdata.design import Design
    >>> design = Design.read({"n": "count", "wage": "mean(wage, 0, 100)"}, 2)
    >>> {name: [round(e, 2) for e in errors] for name, errors in expected(design).items()}
    {'n': [1.36, 1.36, 1.36, 1.36], 'wage': [11.76, 0.98, 0.1, 0.01]}
    """
    return {name: [error(design, name, n) for n in sizes] for name in design.measures}


def error(design: Design, name: str, n: int) -> float:
    """Return the largest standard error of a measure in a group of n records."""
    size = number(n, "a group size", positive=True)
    if size != int(size):
        raise TrueupError(f"a group has a whole number of records, got {n!r}", "e.g. 100")
    measure = design.measures[name]
    statistic = next(s for s in design.statistics if s.measure == name)
    if isinstance(measure, PerRecord):
        return measure.mechanism.sd(float(size))
    if isinstance(measure, Mean):
        reach = float(statistic.total.grid.reach) if statistic.total.grid else 0.0
        return _quotient(design, float(statistic.noise.variance), int(size) * reach, int(size))
    if isinstance(measure, Share):
        rest = 1 - 1 / len(measure.categories)
        return _quotient(
            design, rest * float(statistic.noise.variance), int(size) * rest, int(size)
        )
    return _alone(statistic)


def _alone(statistic: Statistic) -> float:
    """Return the error of a count or a sum, far from its bound, where it is largest."""
    return math.sqrt(float(statistic.noise.variance))


def _quotient(design: Design, variance: float, truth: float, n: int) -> float:
    divisor = next(s for s in design.statistics if s.measure == design.count)
    centre, spread = inverse_moments(float(n), divisor.noise, 1.0)
    return math.sqrt(variance * (spread + centre**2) + truth**2 * spread)


def proposed(design: Design, n: int) -> Design:
    """Return the design with weights for groups of n records: the least sum of squared errors.

    Every error counts on the scale of what it can be: a mean against half its range, a count and a
    sum against their largest size. Measures but the count divide what it leaves by cube roots: that
    is best for variances of A/e² at a budget e. With one mean, in groups that are not small, the
    sum is 2/e_n² + 1/e², least at e_n = 2^{1/3}·e.

    Examples
    --------
    >>> from trueup.microdata.design import Design
    >>> made = proposed(Design.read({"n": "count", "wage": "mean(wage, 0, 100)"}, 1), 100)
    >>> made.weights
    {'n': Fraction(13, 10), 'wage': 1}
    """
    names = [name for name in design.budget if name != design.count]
    parts = {name: _part(design, name) ** (1 / 3) for name in names}
    if design.count is None or not names:
        least = min(parts.values(), default=1.0)
        return replace(
            design, weights={c: _tenths(p / least) for c, p in parts.items()} or design.weights
        )
    least, count = min(parts.values()), design.count

    def at(power: float) -> Design:
        shares = {count: math.exp(power), **{c: p / least for c, p in parts.items()}}
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


def _part(design: Design, name: str) -> float:
    """Return what the variance of a measure is to that of a mean, each on its own scale."""
    measure = design.measures[name]
    return float(len(measure.categories)) if isinstance(measure, Share) else 1.0


def _relative(design: Design, name: str, n: int) -> float:
    """Return an error on the scale of what is measured."""
    statistic = next(s for s in design.statistics if s.measure == name)
    measure, found = design.measures[name], error(design, name, n)
    grid = statistic.total.grid
    reach = float(grid.reach) if grid else 1.0
    if isinstance(measure, Share):
        return found * 2 * math.sqrt(len(measure.categories))
    return found / reach if isinstance(measure, Mean) else found / (n * reach)


def _tenths(weight: Exact) -> Exact:
    return number(Fraction(max(1, round(10 * float(weight))), 10), "a weight")
