"""`frontier()`: what a small bias costs in standard deviation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.formula.text import text
from trueup.inputs import read_arguments
from trueup.inverse.jets import derivative
from trueup.kernels.blocks import evaluate
from trueup.near.construct import Solution, attempt, check_bounded, never_zero
from trueup.near.plan import typical
from trueup.near.products import question_of, split, wild
from trueup.near.smoothing import Smoothing
from trueup.near.spread import Profile
from trueup.notebook import table

if TYPE_CHECKING:
    import sympy
    from numpy.typing import NDArray

    from trueup.inverse.solve import Statistic
    from trueup.near.question import Question
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

BIASES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Bias bounds looked at: as they are if relative, else times the mean |f| near the bound."""

WIDE = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""The bounds looked at for products such as s/n, which are used on small cells."""

CHEAP, USUAL = 1.5, 0.01
"""A bias of 1 % is cheap where it costs at most half as much again as the delta method says."""


def frontier(
    f: object,
    noise: Noise | Mapping[str, Noise],
    domain: object = None,
    relative: bool | None = None,
    biases: Sequence[Any] | None = None,
    prior: object = None,
) -> Frontier:
    """Return the standard deviation that each bias bound costs.

    Parameters
    ----------
    f, noise, domain, prior
        As for :func:`nearly_unbiased`: a function of one statistic, or such a function times others
        that stay unbiased. For s/n the table shows 1/n; the noise of s comes on top.
    relative
        Whether bias and standard deviation are relative to |f(q)|; None: if f is nowhere zero.
    biases
        The bounds to look at; None: from 10 % down to 0.1 %, for products from 50 % to 1 %.

    Examples
    --------
    >>> from trueup import DiscreteGaussian
    >>> front = frontier("1/n", DiscreteGaussian(3), (12, 400), biases=[0.05, 0.01])
    >>> front
    Frontier of 1/n under DiscreteGaussian(3), true value in {12..400}, relative to |f|
      bias bound  largest sd  at        average sd  best from
            0.05      0.1...  ...                     1 cell
            0.01      0.2...  ...                     ... cells
      ...
    """
    source, statistics, tied = read_arguments(f, noise, domain)
    if tied:
        raise TrueupError(
            f"the frontier knows bounds of each statistic, not {tied[0]}", "leave it out"
        )
    question = _question(source.expr, statistics, prior)
    if relative is None:
        relative = question.beside or never_zero(question)
    if question.beside and not relative:
        raise TrueupError(
            f"the bias of {text(source.expr)} is bounded relative to it", "use relative=True"
        )
    question = dataclasses.replace(question, relative=bool(relative))
    check_bounded(question)
    bounds = _read(biases, question)
    return Frontier(question, tuple(_points(question, bounds)), source.expr)


def _question(f: sympy.Expr, statistics: Sequence[Statistic], prior: Any) -> Question:
    """Return what is asked of the one function that is traded."""
    if len(statistics) == 1:
        return question_of(statistics[0], f, prior)
    products = split(f, statistics)
    if len(products) != 1 or products[0].helped != 1:
        names = ", ".join(s.symbol.name for s in statistics)
        raise TrueupError(
            f"the frontier is for one function that is traded, but {text(f)} is no product of one "
            f"and others that stay unbiased (its statistics are {names})",
            "ask for its terms one by one, e.g. s/n",
        )
    ((statistic, h),) = ((s, h) for s, h in products[0].near if wild(h, s))
    return dataclasses.replace(question_of(statistic, h, prior), beside=True)


def _read(biases: Sequence[Any] | None, question: Question) -> list[float]:
    if biases is None:
        unit = 1.0 if question.relative else typical(question)
        return [b * unit for b in (WIDE if question.beside else BIASES)]
    found = sorted((float(number(b, "a bias", positive=True)) for b in biases), reverse=True)
    if not found:
        raise TrueupError("biases is empty", "give bias bounds, e.g. [0.05, 0.01]")
    return found


_HEAD = ("bias bound", "largest sd", "at", "average sd", "best from")


@dataclasses.dataclass(frozen=True)
class Point:
    """One bias bound and what it costs; NaN where it could not be reached."""

    max_bias: float
    bias_bound: float
    largest_sd: float
    worst: float
    average_sd: float
    average_bias: float = math.nan
    variance: float = math.nan

    def cells_against(self, other: Point) -> float:
        """Return from how many cells on this point beats another: bias² + variance/m is less."""
        dearer, closer = self.variance - other.variance, other.average_bias - self.average_bias
        if dearer <= 0:
            return 1.0 if closer >= 0 else math.inf
        squares = closer * (other.average_bias + self.average_bias)
        return max(dearer / squares, 1.0) if squares > 0 else math.inf


def _points(question: Question, bounds: Sequence[float]) -> list[Point]:
    points = []
    for bound in bounds:
        found = attempt(dataclasses.replace(question, max_bias=bound))
        if isinstance(found, Solution):
            profile = Profile(found)
            largest, worst = profile.largest
            averages = (profile.average, profile.average_bias, profile.price)
            points.append(Point(bound, found.certificate.bound, largest, worst, *averages))
        else:
            points.append(Point(bound, math.nan, math.nan, math.nan, math.nan))
    return points


@dataclasses.dataclass(frozen=True, repr=False)
class Frontier:
    """Standard deviation against bias bound, and where a small bias is cheap.

    ``biases``, ``bounds``, ``largest_sd``, ``worst``, ``average_sd``, ``average_bias`` and
    ``cells`` are arrays, one entry for each bias asked for; NaN where it cannot be reached.
    """

    question: Question
    points: tuple[Point, ...]
    f: sympy.Expr

    @property
    def biases(self) -> Floats:
        """The bias bounds asked for."""
        return np.array([p.max_bias for p in self.points])

    @property
    def bounds(self) -> Floats:
        """The certified bias bounds."""
        return np.array([p.bias_bound for p in self.points])

    @property
    def largest_sd(self) -> Floats:
        """The largest standard deviation over the domain."""
        return np.array([p.largest_sd for p in self.points])

    @property
    def worst(self) -> Floats:
        """The true value at which it is largest."""
        return np.array([p.worst for p in self.points])

    @property
    def average_sd(self) -> Floats:
        """The root of the prior-averaged variance."""
        return np.array([p.average_sd for p in self.points])

    @property
    def average_bias(self) -> Floats:
        """The root of the prior-averaged squared bias."""
        return np.array([p.average_bias for p in self.points])

    @property
    def cells(self) -> Floats:
        """From how many cells on each bound is better, for their average, than all larger ones."""
        found = []
        for i, p in enumerate(self.points):
            larger = [p.cells_against(o) for o in self.points[:i] if math.isfinite(o.bias_bound)]
            found.append(max(larger, default=1.0) if math.isfinite(p.bias_bound) else math.nan)
        return np.array(found)

    @cached_property
    def advice(self) -> str:
        """The smallest lower bound at which a bias of 1 % is cheap, in one line."""
        question = self.question
        if not (question.smooth and math.isfinite(question.low)):
            return "no advice: it is for a smooth f on a domain bounded below"
        bias = USUAL if question.relative else USUAL * typical(question)
        shown = f"{bias:.0%}" if question.relative else f"{bias:.2g}"
        found = cheap_from(question, bias)
        if found is None:
            return (
                f"a bias of {shown} is nowhere cheap on this domain: the standard deviation is "
                f"more than {CHEAP:g} times σ·|f′|"
            )
        unit = "·|f|" if question.relative else ""
        return (
            f"a bias of {shown} is cheap from {question.symbol.name} = {found[0]:.4g} on: with "
            f"that lower bound the sd is {found[1]:.2g}{unit} at most, and within {CHEAP:g} times "
            "σ·|f′|"
        )

    @property
    def _title(self) -> str:
        question = self.question
        kind = ", relative to |f|" if question.relative else ""
        beside = sorted(s.name for s in self.f.free_symbols - {question.symbol})
        of = f"{text(question.f)}, as in {text(self.f)}," if question.beside else text(self.f)
        more = f"; the noise of {', '.join(beside)} comes on top" if beside else ""
        return (
            f"Frontier of {of} under {question.noise!r}, true value in "
            f"{question.domain}{kind}{more}"
        )

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        """A row for each bias bound, as text."""
        rows: list[tuple[str, ...]] = []
        for p, cells in zip(self.points, self.cells, strict=True):
            if math.isnan(p.bias_bound):
                rows.append((f"{p.max_bias:.3g}", "cannot be reached", "", "", ""))
            else:
                sds = f"{p.largest_sd:.4g}", f"{p.worst:.6g}", f"{p.average_sd:.4g}"
                rows.append((f"{p.max_bias:.3g}", *sds, _cells(cells)))
        return rows

    def __repr__(self) -> str:
        lines = (
            f"  {bias:>10}  {largest:>10}  {at:<8}  {average:>10}  {best}".rstrip()
            for bias, largest, at, average, best in (_HEAD, *self._rows)
        )
        return "\n".join([self._title, *lines, f"  {self.advice}"])

    def _repr_html_(self) -> str:
        return table(_HEAD, self._rows, f"{self._title}; {self.advice}")

    def plot(self, axes: Any = None) -> Any:
        """Draw standard deviation against bias bound (:func:`trueup.plots.frontier`)."""
        from trueup.plots.trade import frontier as draw

        return draw(self, ax=axes)


def _cells(count: float) -> str:
    """Return from how many cells on a bound is best, in words."""
    if math.isinf(count):
        return "-"
    return "1 cell" if count <= 1 else f"{math.ceil(count):,} cells"


def cheap_from(question: Question, bias: float) -> tuple[float, float] | None:
    """Return the least lower bound from which a bias costs little, and the largest sd there.

    At every true value from there on the standard deviation is compared with σ·|f′|, what the delta
    method says of the plug-in. None if no such bound is seen.
    """
    unit = Smoothing(question.noise).unit
    low, high = question.low, min(question.high, question.low + 60 * unit)
    best = _price(question, bias, low)
    if best is not None:
        return low, best
    best = _price(question, bias, high := _on(question, high))
    while best is not None and high - low > max(unit / 8, 1.0 if question.whole else 0.0):
        middle = _on(question, (low + high) / 2)
        price = _price(question, bias, middle)
        low, high = (middle, high) if price is None else (low, middle)
        best = best if price is None else price
    return None if best is None else (high, best)


def _on(question: Question, low: float) -> float:
    return float(math.floor(low)) if question.whole else low


def _price(question: Question, bias: float, low: float) -> float | None:
    """Return the largest sd with this lower bound, None if it is not cheap."""
    domain = type(question.domain)(low, question.domain.bounds[1])
    asked = dataclasses.replace(question, domain=domain, max_bias=bias)
    found = attempt(asked)
    if not isinstance(found, Solution):
        return None
    profile = Profile(found)
    q = profile.truths
    slopes = np.abs(evaluate(derivative(asked.f, asked.symbol, 1), {asked.symbol: q}))
    usual = math.sqrt(float(question.noise.variance)) * slopes / asked.size(q)
    return profile.largest[0] if (profile.sds <= CHEAP * usual).all() else None
