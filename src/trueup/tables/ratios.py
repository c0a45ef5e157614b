"""Ratios of sums, ΣA/ΣB over cells: unbiased under the noise of the sums, for any number of cells.

1/B is ∫ e^{−tB} dt over t > 0, and T[e^{−tB}] = e^{−t·x}/M(−t) under any noise with a generating
function M, of a sum the product of those of the cells. So, with κ = log M of the cells along their
directions,

    g = ∫ e^{−t·x_B − κ(−t)} (x_A − κ_A(−t)) dt

is unbiased for A/B, and T[A²/B²] has t·((x_A − κ_A)² − κ_AA) in place of the last factor; κ_A and
κ_AA are derivatives in the direction of A. The integral is cut off at the c up to which M and the
variance exist: that is the whole error, exactly e^{−cB} of A/B. It must be below 1e-9 of the
standard error at every B that the published one leaves possible. Otherwise B is small for its
noise: over few cells the exact inverse is taken (:mod:`~.few_cells`), over more it is missing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

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

SHOWN = 3
"""So many groups are named where some have no ratio."""

_AXES = (Direction(Noiseless(), 1.0, 1.0, 0.0), Direction(Noiseless(), 1.0, 0.0, 1.0))
_NO_POLES = 6.0  # standard deviations of 1/t: e^{−6·B/σ} is nothing as soon as B > 5σ
_PANELS = (0.0, 2.0, 6.0, 14.0, 30.0, 60.0)  # e^{−60} is beyond the last digit
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_V = np.concatenate([(b - a) / 2 * (_NODES + 1) + a for a, b in pairwise(_PANELS)])
_W = np.concatenate([(b - a) / 2 * _WEIGHTS for a, b in pairwise(_PANELS)])


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A ratio of sums with the unbiased variance; NaN where the denominator is too small."""

    value: float
    variance: float

    @property
    def stderr(self) -> float:
        """The root of the variance, NaN where that is negative."""
        return math.sqrt(self.variance) if self.variance >= 0 else math.nan


UNKNOWN = Estimate(math.nan, math.nan)


def estimate(summands: tuple[Summand, ...], a: float, b: float) -> Estimate:
    """Return the ratio of published sums a and b without bias.

    Examples
    --------
    >>> from trueup.noise.laplace import Laplace
    >>> noise = (Summand(Laplace(5), 1.0, 0.0, 400), Summand(Laplace(5), 0.0, 1.0, 400))
    >>> found = estimate(noise, 2000.0, 4000.0)
    >>> round(found.value, 6), round(found.stderr, 4)
    (0.499377, 0.0394)
    """
    if b < 0:
        summands = tuple(s._replace(top=-s.top, bottom=-s.bottom) for s in summands)
        a, b = -a, -b
    cut = _cut(summands)
    if not _certain(summands, a, b, cut):
        return UNKNOWN
    end = min(cut * b / _PANELS[-1], 1.0)
    t, weight = end * _V / b, end * _W / b
    log, shift, curve = -t * b, np.full(t.shape, a), np.zeros(t.shape)
    for noise, top, bottom, count in summands:
        if not bottom:  # of the numerator mean and variance are enough
            mean, variance = moments(noise)
            shift, curve = shift - count * top * mean, curve + count * top**2 * variance
            continue
        k0, k1, k2 = cumulants(noise, -bottom * t)
        log, shift, curve = log - count * k0, shift - count * top * k1, curve + count * top**2 * k2
    kernel = weight * np.exp(log)
    value = float(kernel @ shift)
    with np.errstate(over="ignore"):
        square = float(kernel @ (t * (shift**2 - curve)))
    return Estimate(value, value * value - square)  # infinite beyond the range of floats


@lru_cache(maxsize=4096)
def _cut(summands: tuple[Summand, ...]) -> float:
    """Return c: what the tails of all noises of the denominator allow."""
    end = min((limit(s.noise) / abs(s.bottom) for s in summands if s.bottom), default=math.inf)
    sd = spread(summands, (0.0, 1.0))
    return _NO_POLES / sd if math.isinf(end) and sd else end


def _certain(summands: tuple[Summand, ...], a: float, b: float, cut: float) -> bool:
    """Whether e^{−cB}·|A/B| is below the share of the standard error that is allowed."""
    least = b - beyond(summands, (0.0, 1.0), CHANCE)
    if not least > 0:
        return False
    ratio = a / b
    error = spread(summands, (1.0, -ratio)) / b
    return abs(ratio) * math.exp(-min(cut * least, 700.0)) <= REMAINDER * error or not ratio


def interval(
    ratio: Quotient,
    summands: tuple[Summand, ...],
    cells: int,
    sums: tuple[float, float],
    level: float,
) -> tuple[float, float]:
    """Return the ends for ΣA/ΣB: the ratio of sums lies in the range of the ratios of cells."""

    def reached(side: int, tail: float) -> tuple[float, float]:
        u = (float(side == 0), float(side == 1))
        return -height(summands, (-u[0], -u[1]), tail), height(summands, u, tail)

    published = np.array(sums[0]), np.array(sums[1])
    with np.errstate(all="ignore"):
        low, high = ratio.between(published, 1 - level, partial(_noise, summands), reached, cells)
    return float(low), float(high)


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


def too_small(groups: Sequence[Any], gone: int, of: int) -> str:
    """Return what is said of groups whose denominator is too small, given the first of them."""
    shown = ", ".join(" ".join(map(str, key)) for key in groups) + (", …" * (gone > len(groups)))
    which = f"{gone} of {of} groups ({shown})" if of > 1 else "the table"
    return (
        f"the denominator of {which} is too small for its noise: no ratio with a bias below 1e-9 "
        "of the standard error is known. It is missing there; intervals are given\n"
        "Hint: take larger groups, or tu.total of debiased cells"
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
    """Return the outputs for every group, from its number of cells and its published sums."""
    ratio = request.ratio
    quotient = ratio.quotient
    found: dict[str, list[float]] = {output: [] for output in request.outputs}
    for i, count in enumerate(cells.astype(int).tolist()):
        published = {name: float(sums[name][i]) for name in ratio.statistics}
        a, b = (
            float(form @ [count, *published.values()]) for form in (quotient.top, quotient.bottom)
        )
        if not (count and math.isfinite(a) and math.isfinite(b)):
            row = dict.fromkeys(found, math.nan)
        else:
            noises = _noises(ratio, count, {n: rows[i] for n, rows in levels.items()})
            summands = _summands(ratio, noises)
            made = estimate(summands, a, b)
            made = dataclasses.replace(made, value=quotient.shift + made.value)
            if math.isnan(made.value):
                made = _exactly(ratio, noises, count, published)
            row = {"value": made.value, "stderr": made.stderr, "variance": made.variance}
            if "low" in found:
                ends = interval(quotient, summands, count, (a, b), request.level)
                row |= {"low": quotient.shift + ends[0], "high": quotient.shift + ends[1]}
        for output, values in found.items():
            values.append(row[output])
    return {output: np.array(values, float) for output, values in found.items()}


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


def _exactly(
    ratio: RatioOfSums, noises: Noises, count: int, published: Mapping[str, float]
) -> Estimate:
    """Return the ratio over few cells, however small the denominator, where one is known."""
    if count > few_cells.FEW:
        return UNKNOWN
    each = {name: [law for law, n in laws for _ in range(n)] for name, laws in noises.items()}
    exact = ratio.of_few(each, count)
    return UNKNOWN if exact is None else Estimate(*exact.at(published))
