"""True values that are typical of a table's cells, and what estimators get wrong at them.

A class of sizes is looked at in the middle of its parts. If the size is a denominator, the other
statistics are taken in proportion to it: how large they are beside it, and how much they spread,
follows from sums over the bins of noisy sizes, since their own noise adds nothing to a sum and a
known variance to a sum of squares. Two values carry mean and spread. At every such point errors
are exact, from the law of the noise.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.kernels.evaluate import evaluate
from trueup.plugin import PluginBias
from trueup.tables.size_classes import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.estimator import Estimator
    from trueup.tables.size_classes import Shares, Size

    Floats = NDArray[np.float64]

_MOST_SPREAD = 2  # statistics beside the size that take two values each; more take their mean


@dataclasses.dataclass(frozen=True)
class Counts:
    """What is known of the rows: their number, and sums of each statistic, in bins of the size."""

    bins: Floats
    cells: Floats
    sums: Mapping[str, Floats]
    squares: Mapping[str, Floats]


@dataclasses.dataclass(frozen=True)
class Points:
    """True values, the class of sizes that each is typical of, and its share of all cells."""

    truth: Mapping[str, Floats]
    kind: NDArray[np.intp]
    weight: Floats

    def at(self, function: Callable[..., Floats]) -> Floats:
        """Return a function of the true values at all points, computed once where they repeat."""
        table = np.stack([*self.truth.values()], axis=1)
        distinct, where = np.unique(table, axis=0, return_inverse=True)
        values = function(**dict(zip(self.truth, distinct.T.copy(), strict=True)))
        return np.asarray(values, float)[where.ravel()]


def points(estimator: Estimator, size: Size, counts: Counts, found: Shares) -> Points:
    """Return the true values at which errors are computed."""
    rows: list[tuple[tuple[float, ...], int, float]] = []
    beside = [s for s in estimator.statistics if s not in size.parts]
    for k, kind in enumerate(found.classes):
        known = {s: _beside(estimator, s, size, counts, found, k) for s in beside}
        parts = [_part(estimator, p, counts, size, found, k) for p in size.parts[:-1]]
        for value, share in zip(kind.sizes(PARTS), found.parts[k], strict=True):
            taken = [_rounded(part * value, size.whole) for part in parts]
            own = dict(zip(size.parts, [*taken, value - sum(taken)], strict=True))
            spread = len(beside) <= _MOST_SPREAD and not estimator.conditions
            scale = value if size.divides else 1.0
            ways = [
                _two(known[s][0] * scale, known[s][1] * abs(scale) * spread, estimator, s)
                for s in beside
            ]
            for chosen in product(*ways):
                at = own | dict(zip(beside, (v for v, _ in chosen), strict=True))
                weight = share * math.prod(p for _, p in chosen)
                rows.append((tuple(at[s] for s in estimator.statistics), k, weight))
    values = np.array([row[0] for row in rows], float)
    return Points(
        dict(zip(estimator.statistics, values.T.copy(), strict=True)),
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
    )


def _beside(
    estimator: Estimator, statistic: str, size: Size, counts: Counts, found: Shares, k: int
) -> tuple[float, float]:
    """Return mean and standard deviation of a statistic in a class, per unit of size if it is so.

    Cells of a class fall into many bins, with cells of other classes: sums over these bins, weighed
    by what belongs to the class, are compared with the same sums of sizes.
    """
    own = found.belongs[:, k]
    first, second = (found.first, found.second) if size.divides else (1.0, 1.0)
    noise = float(estimator.noise[statistic].variance)
    over = float((own * counts.cells * first).sum()), float((own * counts.cells * second).sum())
    if not (over[0] and over[1]):
        return 0.0, 0.0
    mean = float((own * counts.sums[statistic]).sum()) / over[0]
    square = float((own * (counts.squares[statistic] - counts.cells * noise)).sum()) / over[1]
    return mean, float(np.sqrt(max(square - mean**2, 0.0)))


def _part(
    estimator: Estimator, part: str, counts: Counts, size: Size, found: Shares, k: int
) -> float:
    """Return what share of a size that is a sum one of its statistics has, in a class."""
    own, noise = found.belongs[:, k], estimator.noise
    share = float(noise[part].variance) / sum(float(noise[p].variance) for p in size.parts)
    seen = sum(counts.sums[p] for p in size.parts)
    true = counts.cells * found.first
    sums = counts.sums[part] - share * (seen - true)  # a bin of sizes has noise that is not 0
    over = float((own * true).sum())
    return min(max(float((own * sums).sum()) / over, 0.0), 1.0) if over else 0.0


def _two(mean: float, spread: float, estimator: Estimator, name: str) -> list[tuple[float, float]]:
    """Return two values with their weights, of a given mean and spread, inside the domain.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> _two(3.0, 2.0, unbiased("s", Laplace(1)), "s")
    [(1.0, 0.5), (5.0, 0.5)]
    >>> [(v, round(p, 9)) for v, p in _two(1.0, 2.0, unbiased("s", Laplace(1), (0, None)), "s")]
    [(0.0, 0.8), (5.0, 0.2)]
    """
    domain, whole = estimator.domain[name], estimator.noise[name].lattice
    mean = _inside(mean, domain)
    low = _inside(mean - spread, domain)
    high = _inside(mean + spread**2 / (mean - low) if mean > low else mean, domain)
    if whole:
        low, high = _inside(np.floor(low), domain), _inside(np.ceil(high), domain)
    if high <= low:
        return [(low, 1.0)]
    share = (high - mean) / (high - low)
    return [(v, p) for v, p in ((low, share), (high, 1 - share)) if p > 0]


def _inside(value: float, domain: Interval) -> float:
    return float(min(max(value, domain.low), domain.high))


def _rounded(value: float, whole: bool) -> float:
    return float(np.rint(value)) if whole else value


# -- the clipped plug-in ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Clipped:
    """f at published values moved to the nearest bound: x/max(y, 1) for s/n with n ≥ 1.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, unbiased
    >>> law = {"s": DiscreteLaplace(5), "n": DiscreteLaplace(5)}
    >>> clipped = Clipped(unbiased("s/n", law, {"n": (1, None)}))
    >>> clipped.formula
    s/Max(1, n)
    >>> mean, square = clipped.moments(s=np.array([40.0]), n=np.array([10.0]))
    >>> round(float(mean[0]), 3)
    7.917
    """

    estimator: Estimator

    @property
    def formula(self) -> sympy.Expr:
        """What is computed from the published values."""
        e = self.estimator
        moved = {}
        for statistic in e._statistics:
            low, high = statistic.domain.bounds
            x = statistic.symbol
            x = x if low is None else sympy.Max(sympy.sympify(low), x)
            moved[statistic.symbol] = x if high is None else sympy.Min(sympy.sympify(high), x)
        return e.estimand.xreplace(moved)

    def moments(self, **truth: Floats) -> tuple[Floats, Floats]:
        """Return E c and E c² at true values, NaN where they do not exist."""
        size = len(next(iter(truth.values())))
        mean, square = np.ones(size), np.ones(size)
        for factor in _factors(self.formula):
            mean *= self._expected(factor, truth)
            square *= self._expected(factor**2, truth)
        return mean, square

    def _expected(self, f: sympy.Expr, truth: Mapping[str, Floats]) -> Floats:
        own = [s.symbol for s in self.estimator._statistics if s.symbol in f.free_symbols]
        at = {s.name: truth[s.name] for s in own}
        if not own:
            return np.asarray(float(f))
        bias = PluginBias(f, {s.name: self.estimator.noise[s.name] for s in own})
        every = Points(at, np.zeros(0, np.intp), np.zeros(0))
        return every.at(lambda **q: bias(**q) + evaluate(f, {s: q[s.name] for s in own}))


def _factors(f: sympy.Expr) -> Iterator[sympy.Expr]:
    """Yield factors of a product that have no statistic in common: they are independent."""
    groups: list[tuple[set[sympy.Symbol], sympy.Expr]] = []
    for factor in sympy.Mul.make_args(f):
        symbols, together = set(factor.free_symbols), factor
        for group in [g for g in groups if g[0] & symbols]:
            groups.remove(group)
            symbols, together = symbols | group[0], together * group[1]
        groups.append((symbols, together))
    for _, factor in groups:
        yield factor
