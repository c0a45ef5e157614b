"""Ratios of sums, ΣA/ΣB over cells: unbiased under the noise of the sums, for any number of cells.

1/B is ∫ e^{−tB} dt over t > 0, and T[e^{−tB}] = e^{−t·x}/M(−t) under any noise with a generating
function M, of a sum the product of those of the cells. So, with κ = log M of the cells along their
directions,

    g = ∫ e^{−t·x_B − κ(−t)} (x_A − κ_A(−t)) dt

is unbiased for A/B, and T[A²/B²] has t·((x_A − κ_A)² − κ_AA) in place of the last factor; κ_A and
κ_AA are derivatives in the direction of A. The integral is cut off at the c up to which M and the
variance exist: that is the whole error, exactly e^{−cB} of A/B. Every group is shown, small or not:
to choose by the published denominator would bias what is left. Where the error may exceed 1e-9 of
the standard error and the cells are few the exact inverse is taken (:mod:`~.few_cells`); otherwise
the bound of the error is e^{−c·L}, with L what is known of B.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.estimator import Estimator
from trueup.formula.text import text
from trueup.inputs import read_arguments
from trueup.inverse.ratio import Direction, Offsets, directions, linear
from trueup.noise.noiseless import Noiseless
from trueup.noise.ratio_regions import region as region_of_two
from trueup.tables import few_cells
from trueup.tables.few_cells import FewCells
from trueup.tables.many import (
    Summand,
    beyond,
    check_generating,
    cumulants,
    height,
    limit,
    moments,
    region,
    spread,
)
from trueup.tables.request import Readable, Request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.ratio import Quotient
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

REMAINDER = 1e-9
"""The bias, as a share of the standard error."""

CHANCE = 1e-12
"""The probability that the true denominator is smaller than is allowed for."""

FEW = 16
"""So many cells at most have a polygon of their own law on the integers."""

TOLD = 0.01
"""A relative bias that cannot be excluded, from which on it is told."""

SHOWN = 3
"""So many groups are named where some have no ratio."""

_AXES = (Direction(Noiseless(), 1.0, 1.0, 0.0), Direction(Noiseless(), 1.0, 0.0, 1.0))
_NO_POLES = 6.0  # standard deviations of 1/t: e^{−6·B/σ} is nothing as soon as B > 5σ
_PANELS = (0.0, 2.0, 6.0, 14.0, 30.0, 60.0)  # e^{−60} is beyond the last digit
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_V = np.concatenate([(b - a) / 2 * (_NODES + 1) + a for a, b in pairwise(_PANELS)])
_W = np.concatenate([(b - a) / 2 * _WEIGHTS for a, b in pairwise(_PANELS)])


class Estimates(NamedTuple):
    """Ratios of sums of groups: values, unbiased variances, and bounds of relative biases."""

    value: Floats
    variance: Floats
    bias: Floats
    certain: NDArray[np.bool_]


def estimate(
    summands: tuple[Summand, ...], a: Floats, b: Floats, least: float = -math.inf
) -> Estimates:
    """Return ratios of published sums a and b, of which the denominator is at least ``least``.

    A denominator is taken to be positive unless the noise excludes that.

    Examples
    --------
    >>> from trueup.noise.laplace import Laplace
    >>> noise = (Summand(Laplace(5), 1.0, 0.0, 400), Summand(Laplace(5), 0.0, 1.0, 400))
    >>> found = estimate(noise, np.array([2000.0]), np.array([4000.0]))
    >>> found.value.round(6), np.sqrt(found.variance).round(4), found.certain
    (array([0.499377]), array([0.0394]), array([ True]))
    """
    below = beyond(summands, (0.0, 1.0), CHANCE)
    negative = b < -beyond(summands, (0.0, -1.0), CHANCE)
    if negative.any():
        turned = tuple(s._replace(top=-s.top, bottom=-s.bottom) for s in summands)
        sides = (turned, -a[negative], -b[negative]), (summands, a[~negative], b[~negative])
        found = [estimate(*side, least) for side in sides]
        order = np.argsort(np.concatenate([np.flatnonzero(negative), np.flatnonzero(~negative)]))
        return Estimates(*(np.concatenate(part)[order] for part in zip(*found, strict=True)))
    cut = _cut(summands)
    b = np.where(b > 0, b, np.nan) if math.isinf(cut) else b  # known, without noise
    end = np.minimum(cut / _PANELS[-1], 1 / np.maximum(b, 1e-300))[:, None]
    t, weight = end * _V, end * _W
    log, shift, curve = -t * b[:, None], np.repeat(a[:, None], len(_V), axis=1), np.zeros(t.shape)
    for noise, top, bottom, count in summands:
        if not bottom:  # of the numerator mean and variance are enough
            mean, variance = moments(noise)
            shift, curve = shift - count * top * mean, curve + count * top**2 * variance
            continue
        k0, k1, k2 = cumulants(noise, -bottom * t)
        log, shift, curve = log - count * k0, shift - count * top * k1, curve + count * top**2 * k2
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        kernel = weight * np.exp(log)
        value = (kernel * shift).sum(axis=1)
        square = (kernel * t * (shift**2 - curve)).sum(axis=1)
        known = np.maximum(b - below, least)
        bias = np.exp(-np.minimum(cut * known, 700.0))
        error = spread_of(summands, a, b)
        certain = (known > 0) & ((np.abs(a) * bias <= REMAINDER * error) | (a == 0))
        return Estimates(value, value * value - square, bias, certain)


def spread_of(summands: tuple[Summand, ...], a: Floats, b: Floats) -> Floats:
    """Return the standard deviation of A − (a/b)·B."""
    parts = [
        math.sqrt(n * moments(z)[1]) * (top * b - a * bottom) for z, top, bottom, n in summands
    ]
    return np.asarray(np.sqrt(np.sum(np.square(parts), axis=0)) / np.abs(b)) if parts else 0 * a


@lru_cache(maxsize=4096)
def _cut(summands: tuple[Summand, ...]) -> float:
    """Return c: what the tails of all noises of the denominator allow."""
    end = min((limit(s.noise) / abs(s.bottom) for s in summands if s.bottom), default=math.inf)
    sd = spread(summands, (0.0, 1.0))
    return _NO_POLES / sd if math.isinf(end) and sd else end


def interval(
    ratio: Quotient,
    summands: tuple[Summand, ...],
    cells: int,
    sums: tuple[Floats, Floats],
    level: float,
) -> tuple[Floats, Floats]:
    """Return the ends for ΣA/ΣB: the ratio of sums lies in the range of the ratios of cells."""

    def reached(side: int, tail: float) -> tuple[float, float]:
        u = (float(side == 0), float(side == 1))
        return -height(summands, (-u[0], -u[1]), tail), height(summands, u, tail)

    with np.errstate(all="ignore"):
        low, high = ratio.between(sums, 1 - level, partial(_noise, summands), reached, cells)
    return np.asarray(low, float), np.asarray(high, float)


@lru_cache(maxsize=256)
def _noise(summands: tuple[Summand, ...], tail: float) -> Offsets:
    """Return the noise of the sums: of few cells exactly, of many by frequencies."""
    if sum(s.cells for s in summands) > 2 * FEW:
        return Offsets(_AXES, region(summands, tail))
    each = [(s.top, s.bottom, s.noise) for s in summands for _ in range(s.cells)]
    try:
        found = directions(
            np.array([top for top, _, _ in each]),
            np.array([bottom for _, bottom, _ in each]),
            [(noise, None) for _, _, noise in each],
        )
        return Offsets(found, region_of_two(found[0].noise, found[1].noise, tail))
    except TrueupError:
        return Offsets(_AXES, region(summands, tail))


def too_small(groups: Sequence[Any], doubtful: int, of: int, bias: float) -> str:
    """Return what is said of groups whose ratio may be biased, given the first of them."""
    more = ", …" * (doubtful > len(groups))
    shown = ", ".join(" ".join(map(str, key)) for key in groups) + more
    which = f"{doubtful} of {of} groups ({shown})" if of > 1 else "the table"
    size = f"up to {bias:.2g} of the ratio" if bias < 1 else "of any size"
    return (
        f"the denominator of {which} is small for its noise: a bias {size} cannot be excluded "
        "there; intervals cover all the same\n"
        "Hint: bias=True gives the bound of each group; take larger groups, tu.total of debiased "
        'cells, or state bounds, e.g. domain="n >= 1"'
    )


# -- what is asked ---------------------------------------------------------------------------------


class RatioOfSums(Readable):
    """ΣA/ΣB for a formula A/B of statistics, with what is known of them.

    Examples
    --------
    >>> from trueup.estimator import unbiased
    >>> from trueup.noise.laplace import Laplace
    >>> est = unbiased("s/n", {"s": Laplace(1), "n": Laplace(1)}, {"n": (1, None)})
    >>> RatioOfSums.of(est).statistics
    ('s', 'n')
    """

    def __init__(
        self, f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
    ) -> None:
        plain = f.args[-1][0] if isinstance(f, sympy.Piecewise) else f  # by convention where B = 0
        made = linear(plain, statistics, tied)
        if made is None or not any(made.bottom[1:]):
            raise TrueupError(
                f"{text(f)} is no ratio of sums",
                "give a quotient of sums of statistics such as s/n; tu.total sums other estimates",
            )
        self.quotient = made
        self.formula, self.known, self.tied = f, statistics, tied
        self.own: Estimator | None = None
        self.few: dict[Any, FewCells | None] = {}
        self.statistics = tuple(s.symbol.name for s in statistics)
        self.noise = {s.symbol.name: s.noise for s in statistics}
        self.domain = {s.symbol.name: s.domain for s in statistics}
        for s, bottom in zip(statistics, made.bottom[1:], strict=True):
            if bottom:
                check_generating(s.noise)

    @classmethod
    def of(cls, estimator: Estimator) -> RatioOfSums:
        """Return the ratio of sums for the formula of an estimator."""
        made = cls(estimator.estimand, estimator._statistics, estimator._tied)
        made.own = estimator if type(estimator) is Estimator else None
        return made

    @classmethod
    def read(cls, f: object, noise: object, domain: object) -> RatioOfSums:
        """Return the ratio of sums for a formula, noises and bounds."""
        if isinstance(f, RatioOfSums):
            return f
        if isinstance(f, Estimator):
            return cls.of(f)
        if noise is None:
            raise TrueupError(
                f"the noise of {f!r} is not given",
                'give an estimator made by tu.unbiased, or noise={"s": tu.Laplace(2), …}',
            )
        source, statistics, tied = read_arguments(f, noise, domain)
        return cls(source.expr, statistics, tied)

    def least(self, cells: int) -> float:
        """Return the least denominator of so many cells that the bounds allow."""
        constant, *weights = (float(c) for c in self.quotient.bottom)
        bounds = [s.domain.bounds for s in self.known]
        ends = [low if w > 0 else high for w, (low, high) in zip(weights, bounds, strict=True) if w]
        used = [w for w in weights if w]
        alone = -math.inf
        if None not in ends:
            alone = sum(w * float(end or 0) for w, end in zip(used, ends, strict=True))
        form = {s.symbol.name: w for s, w in zip(self.known, weights, strict=True) if w}
        for condition in self.tied:  # a + b >= 1, of the denominator a + b
            given = {name: float(c) for name, c in condition.terms}
            scale = next(iter(form.values())) / given.get(next(iter(form)), math.inf)
            if scale > 0 and form == {name: scale * c for name, c in given.items()}:
                alone = max(alone, scale * float(condition.low))
        return cells * (constant + alone)

    def of_few(self, noises: Mapping[str, Sequence[Noise]], cells: int) -> FewCells | None:
        """Return the exact ratio of sums over few cells with these noises, None for others."""
        key = (cells, *(tuple(sorted(noises[name], key=repr)) for name in self.statistics))
        if key not in self.few:
            alone = {name: [self.noise[name]] for name in self.statistics}
            if self.own is not None and alone == noises:
                self.few[key] = FewCells(self.own, {})
            else:
                f = self.formula
                if self.quotient.top[0] or self.quotient.bottom[0]:  # of a cell: cells times
                    f = f.xreplace({s.symbol: s.symbol / cells for s in self.known})
                self.few[key] = few_cells.of_sums(f, self.known, self.tied, noises, cells)
        return self.few[key]


class RatioRequest(Request):
    """A ratio of sums on a table: the columns that it reads, and what is written."""

    @property
    def ratio(self) -> RatioOfSums:
        """What is computed."""
        found: Any = self.estimator
        return found  # type: ignore[no-any-return]

    @property
    def largest(self) -> dict[str, float]:
        """Every positive scale will do."""
        return dict.fromkeys(self.scaled, math.inf)


Levels = Mapping[str, Sequence[Sequence[tuple[float, int]]]]
"""For statistics with a scale per row, group by group: scales, and how many cells have each."""


def computed(
    request: RatioRequest, cells: Floats, sums: Mapping[str, Floats], levels: Levels
) -> dict[str, Floats]:
    """Return the outputs for every group, from its number of cells and its published sums.

    Groups with as many cells and the same noises are computed together.
    """
    ratio = request.ratio
    wanted = dict.fromkeys((*request.outputs, "bias"))
    found = {output: np.full(len(cells), math.nan) for output in wanted}
    known = np.logical_and.reduce([cells > 0, *(np.isfinite(x) for x in sums.values())])
    alike: dict[Any, list[int]] = {}
    for i in np.flatnonzero(known).tolist():
        own = tuple((name, tuple(rows[i])) for name, rows in levels.items())
        alike.setdefault((int(cells[i]), own), []).append(i)
    for (count, own), members in alike.items():
        published = {name: sums[name][members] for name in ratio.statistics}
        made = _together(request, count, _noises(ratio, count, dict(own)), published)
        for output in wanted:
            found[output][members] = made[output]
    return found


def _together(
    request: RatioRequest, count: int, noises: Noises, published: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return the outputs of groups of so many cells with the same noises."""
    ratio = request.ratio
    quotient, summands = ratio.quotient, _summands(ratio, noises)
    a, b = (
        form[0] * count + sum(c * x for c, x in zip(form[1:], published.values(), strict=True))
        for form in (quotient.top, quotient.bottom)
    )
    made = estimate(summands, a, b, ratio.least(count))
    value, variance, bias = made.value + quotient.shift, made.variance, made.bias
    bias = np.where(made.certain, 0.0, bias)
    doubtful = np.flatnonzero(~made.certain).tolist()
    if doubtful and (exact := _exactly(ratio, noises, count)) is not None:
        for i in doubtful:
            value[i], variance[i] = exact.at({name: float(x[i]) for name, x in published.items()})
            bias[i] = 0.0
    with np.errstate(invalid="ignore"):
        row = {"value": value, "stderr": np.sqrt(variance), "variance": variance, "bias": bias}
    if "low" in request.outputs:
        low, high = interval(quotient, summands, count, (a, b), request.level)
        row |= {"low": quotient.shift + low, "high": quotient.shift + high}
    return row


Noises = Mapping[str, Sequence[tuple["Noise", int]]]
"""For each statistic the noises of the cells of a group, and how many have each."""


def _noises(
    ratio: RatioOfSums, count: int, levels: Mapping[str, Sequence[tuple[float, int]]]
) -> Noises:
    found = {name: [(noise, count)] for name, noise in ratio.noise.items()}
    for name, each in levels.items():
        found[name] = [(ratio.noise[name].at_scale(scale), cells) for scale, cells in each]
    return found


def _summands(ratio: RatioOfSums, noises: Noises) -> tuple[Summand, ...]:
    """Return the noises of the sums over the cells of a group."""
    forms = (form[1:].tolist() for form in (ratio.quotient.top, ratio.quotient.bottom))
    return tuple(
        Summand(law, top, bottom, cells)
        for name, top, bottom in zip(ratio.statistics, *forms, strict=True)
        for law, cells in noises[name]
        if not law.known
    )


def _exactly(ratio: RatioOfSums, noises: Noises, count: int) -> FewCells | None:
    """Return the ratio over few cells, however small the denominator, where one is known."""
    if count > few_cells.FEW:
        return None
    each = {name: [law for law, n in laws for _ in range(n)] for name, laws in noises.items()}
    return ratio.of_few(each, count)
