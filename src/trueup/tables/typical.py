"""True values that are typical of a table's cells, and what estimators get wrong at them.

A class of sizes is looked at in the middle of its parts. If the size is a denominator, the other
statistics are taken in proportion to it: how large they are beside it, and how much they spread,
follows from sums over the bins of noisy sizes, since their own noise adds nothing to a sum and a
known variance to a sum of squares. A bin mixes cells of several classes: their means are solved
for. Two values carry mean and spread. At every such point errors
are exact, from the law of the noise.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.kernels.blocks import evaluate
from trueup.plugin import PluginBias
from trueup.tables.size_classes import EMPTY, PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.estimator import Estimator
    from trueup.noise.base import Noise
    from trueup.tables.size_classes import Shares, Size

    Floats = NDArray[np.float64]

_STEPS = (0.01, 0.1, 0.3, 1.0)  # from one class to the next, beside the mean of all cells
_WIDE = 10.0  # what the mean of the first class may be, beside the mean of all cells
_ROUNDING = 1e-9  # of squares: what values that are all the same seem to spread at least
_MOST_SPREAD = 2  # statistics beside the size that take two values each; more take their mean
_TAIL = 1e-8  # of the probability on each side is left out of a sum over noises
_MOST_TERMS = 200_000  # of such a sum: ten milliseconds


@dataclasses.dataclass(frozen=True)
class Counts:
    """What is known of the rows: their number, and sums of each statistic, in bins of the size."""

    bins: Floats
    cells: Floats
    sums: Mapping[str, Floats]
    squares: Mapping[str, Floats]


@dataclasses.dataclass(frozen=True)
class Points:
    """True values, the class of sizes that each is typical of, and its share of all cells.

    ``empty`` says where the size is 0 though bounds deny it.
    """

    truth: Mapping[str, Floats]
    kind: NDArray[np.intp] = dataclasses.field(default_factory=lambda: np.zeros(0, np.intp))
    weight: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))
    empty: NDArray[np.bool_] = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def at(self, function: Callable[..., Any]) -> Floats:
        """Return a function of the true values at all points, computed once where they repeat."""
        table = np.stack([*self.truth.values()], axis=1)
        distinct, where = np.unique(table, axis=0, return_inverse=True)
        values = function(**dict(zip(self.truth, distinct.T.copy(), strict=True)))
        return np.asarray(values, float)[..., where.ravel()]


def points(estimator: Estimator, size: Size, counts: Counts, found: Shares) -> Points:
    """Return the true values at which errors are computed."""
    rows: list[tuple[tuple[float, ...], int, float]] = []
    beside = [s for s in estimator.statistics if s not in size.parts]
    known = {s: _beside(estimator, s, size, counts, found) for s in beside}
    for k, kind in enumerate(found.classes):
        parts = [_part(estimator, p, counts, size, found, k) for p in size.parts[:-1]]
        for value, share in zip(kind.sizes(PARTS), found.parts[k], strict=True):
            taken = [_rounded(part * value, size.whole) for part in parts]
            own = dict(zip(size.parts, [*taken, value - sum(taken)], strict=True))
            spread = len(beside) <= _MOST_SPREAD and not estimator.conditions
            scale = value if size.divides else 1.0
            ways = [
                [(0.0, 1.0)]
                if kind is EMPTY
                else _two(
                    known[s][0][k] * scale, known[s][1][k] * abs(scale) * spread, estimator, s
                )
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
        np.array([found.classes[row[1]] is EMPTY for row in rows]),
    )


def _beside(
    estimator: Estimator, statistic: str, size: Size, counts: Counts, found: Shares
) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of a statistic by class, per unit of size if it is so.

    The mean in a bin is what the classes have there, mixed: these are solved for. How much more
    the squares are than means explain, in the bins of a class, is the spread. Empty cells have 0.
    """
    own, cells, sums = found.belongs, counts.cells[:, None], counts.sums[statistic]
    first, second = (found.first, found.second) if size.divides else (own, own)
    some = np.array([kind is not EMPTY for kind in found.classes])
    within = counts.squares[statistic] * (1 + _ROUNDING) - sums**2 / counts.cells
    noise = float(estimator.noise[statistic].variance)
    variance = own @ ((own.T @ within + noise) / (own.T @ np.maximum(counts.cells - 1, 0.0) + 1))
    variance = np.where(variance > 0, variance, 1.0)  # no noise and all values 0
    mean = np.zeros(len(some))
    mean[some] = _smooth(first[:, some] * cells, sums, variance * counts.cells)
    squares = own.T @ (counts.squares[statistic] - counts.cells * noise)
    more = squares / np.maximum(own.T @ (cells * second @ mean**2), np.finfo(float).tiny) - 1
    return mean, np.abs(mean) * np.sqrt(np.maximum(more, 0.0))


def _smooth(design: Floats, sums: Floats, variance: Floats) -> Floats:
    """Return the means by class that explain sums, steps between classes being like each other.

    The means are a random walk, their steps as large as is likeliest: bins of noisy sizes tell
    neighbours apart only so far.

    Examples
    --------
    >>> design = np.array([[90.0, 10.0], [50.0, 50.0], [10.0, 90.0]])
    >>> _smooth(design, design @ [1.0, 3.0], np.full(3, 0.1)).round(2)
    array([1., 3.])
    """
    scale = np.sqrt(variance)
    a, y = design / scale[:, None], sums / scale
    level = abs(float(sums.sum() / design.sum())) or 1.0
    walk = np.minimum.outer(np.arange(a.shape[1]), np.arange(a.shape[1]))
    best, found = -math.inf, np.zeros(a.shape[1])
    for step in _STEPS:
        prior = level**2 * (_WIDE**2 + step**2 * walk)
        cross = prior @ a.T
        both = np.eye(len(y)) + a @ cross
        solved = np.linalg.solve(both, y)
        fit = -(np.linalg.slogdet(both)[1] + float(y @ solved)) / 2
        if fit > best:
            best, found = fit, cross @ solved
    return found


def _part(
    estimator: Estimator, part: str, counts: Counts, size: Size, found: Shares, k: int
) -> float:
    """Return what share of a size that is a sum one of its statistics has, in a class."""
    own, noise = found.belongs[:, k], estimator.noise
    share = float(noise[part].variance) / sum(float(noise[p].variance) for p in size.parts)
    seen = sum(counts.sums[p] for p in size.parts)
    true = counts.cells * found.first.sum(axis=1)
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

    With a condition such as s ≤ n a statistic that is no divisor is moved to the others.

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
        for condition in e._tied:  # 0 <= s <= n: the part is moved to the whole, as one would
            for symbol in sorted(moved, key=str):
                c = dict(condition.terms).get(symbol.name)
                if c and e.estimand.is_polynomial(symbol):
                    rest = {s: 0 if s == symbol else moved[s] for s in moved}
                    named = {s.name: v for s, v in rest.items()}
                    bound = -condition.excess(named) / c
                    moved[symbol] = (sympy.Max if c > 0 else sympy.Min)(bound, moved[symbol])
                    break
        return e.estimand.xreplace(moved)

    def moments(self, **truth: Floats) -> tuple[Floats, Floats]:
        """Return E c and E c² at true values, NaN where they do not exist."""
        factors, noise = [*_factors(self.formula)], self.estimator.noise
        return _product(factors, noise, truth), _product([f**2 for f in factors], noise, truth)


def naive_moments(
    estimator: Estimator, size: Size, truth: Mapping[str, Floats]
) -> tuple[Floats, Floats, Floats]:
    """Return E w, E wv and E wv² at true values, v = f(x) where the noisy size is above 0, w = 1.

    Cells with a noisy size of 0 or less are left out, w = 0.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, unbiased
    >>> law = {"s": DiscreteLaplace(5), "n": DiscreteLaplace(5)}
    >>> pay = unbiased("s/n", law, {"n": (1, None)})
    >>> at = {"s": np.array([40.0]), "n": np.array([1.0])}
    >>> from trueup.tables.size_classes import size_of
    >>> [round(float(m[0]), 3) for m in naive_moments(pay, size_of(pay), at)]
    [0.55, 8.316, 223.569]
    """
    seen = {s.symbol for s in estimator._statistics if s.symbol.name in size.parts}
    factors = [*_factors(estimator.estimand)]

    def expected(power: int) -> Floats:
        kept = [
            sympy.Piecewise((f**power, sum(seen) > 0), (0, True))
            if seen & f.free_symbols
            else f**power
            for f in factors
        ]
        return _product(kept, estimator.noise, truth)

    return expected(0), expected(1), expected(2)


def _product(
    factors: Iterable[sympy.Expr], noise: Mapping[str, Noise], truth: Mapping[str, Floats]
) -> Floats:
    """Return the expectation of a product of independent functions of published values."""
    result = np.ones(len(next(iter(truth.values()))))
    for f in factors:
        own = {s.name: s for s in f.free_symbols}
        if not own:
            result *= float(f)
            continue
        every = Points({s: truth[s] for s in truth if s in own})
        result *= every.at(partial(_expected, f, {s: noise[s] for s in noise if s in own}))
    return result


def _expected(f: sympy.Expr, noise: Mapping[str, Noise], **truth: Floats) -> Floats:
    """Return E f(x) at true values."""
    own = {s.name: s for s in f.free_symbols}

    def at(**x: Floats) -> Floats:
        return evaluate(f, {own[s]: x[s] for s in x})

    if len(own) > 1 and countable(noise):
        return summed(at, noise, **truth)[0]
    return np.asarray(PluginBias(f, noise)(**truth) + at(**truth))


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


# -- sums over the noises of several integers ------------------------------------------------------
#
# A function whose statistics do not stand apart takes a sum over all of them at every truth. Where
# the digits of the exact law, a second for each, are not needed, this gives five.


def countable(noise: Mapping[str, Noise]) -> bool:
    """Whether all noises are whole numbers, and few together."""
    if not all(law.lattice for law in noise.values()):
        return False
    return math.prod(high - low + 1 for low, high in map(_ends, noise.values())) <= _MOST_TERMS


def _ends(law: Noise) -> tuple[float, float]:
    return float(law.quantile(_TAIL)), float(law.quantile(1 - _TAIL))


def summed(
    function: Callable[..., Floats], noise: Mapping[str, Noise], **truth: Floats
) -> tuple[Floats, Floats]:
    """Return E g and Var g at each of several truths.

    Examples
    --------
    >>> from trueup import DiscreteLaplace
    >>> law = {"a": DiscreteLaplace(2), "b": DiscreteLaplace(3)}
    >>> mean, variance = summed(lambda a, b: a * b, law, a=np.array([4.0]), b=np.array([5.0]))
    >>> round(float(mean[0]), 4), round(float(variance[0]), 1)
    (20.0, 621.0)
    """
    steps = [np.arange(low, high + 1) for low, high in (_ends(noise[name]) for name in truth)]
    z = [v.ravel() for v in np.meshgrid(*steps, indexing="ij")]
    weight = np.ones(1)
    for name, k in zip(truth, steps, strict=True):
        masses = np.diff(np.asarray(noise[name].cdf(np.append(k[0] - 1, k))))
        weight = np.multiply.outer(weight, masses / masses.sum()).ravel()
    means, variances = [], []
    for at in zip(*truth.values(), strict=True):
        x = {name: q + v for name, q, v in zip(truth, at, z, strict=True)}
        values = np.asarray(function(**x), float)
        means.append(float(weight @ values))
        variances.append(float(weight @ (values - means[-1]) ** 2))
    return np.array(means), np.array(variances)
