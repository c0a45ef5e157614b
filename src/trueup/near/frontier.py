"""`frontier()`: what a small bias costs in standard deviation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import MissingExtra, TrueupError
from trueup.exact import number
from trueup.formula.text import text
from trueup.inputs import read_arguments
from trueup.near.products import question_of, split, traded
from trueup.near.question import check_bounded, never_zero, typical
from trueup.near.solve import Solution, construct, of_unbiased
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
    costs = [_cost(dataclasses.replace(question, max_bias=b)) for b in bounds]
    return Frontier(question, source.expr, np.array(bounds), *np.array(costs).T)


def _question(f: sympy.Expr, statistics: Sequence[Statistic], prior: Any) -> Question:
    """Return what is asked of the one function that is traded."""
    if len(statistics) == 1:
        return question_of(statistics[0], f, prior)
    products = split(f, statistics)
    if len(products) != 1 or products[0].traded != 1:
        names = ", ".join(s.symbol.name for s in statistics)
        raise TrueupError(
            f"the frontier is for one function that is traded, but {text(f)} is no product of one "
            f"and others that stay unbiased (its statistics are {names})",
            "ask for its terms one by one, e.g. s/n",
        )
    ((statistic, h),) = ((s, h) for s, h in products[0].near if traded(h, s))
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


def _cost(question: Question) -> tuple[float, ...]:
    """Return the bound that holds, the largest sd and where, average sd and bias, and the price.

    NaN where the bias cannot be reached.
    """
    try:
        found = construct(question, part=True)
    except MissingExtra:
        raise
    except TrueupError:
        return (math.nan,) * 6
    if isinstance(found, Solution):
        known, proven = found.profile, found.certificate.bound
    else:
        known, proven = of_unbiased(found, question), 0.0
    return (proven, *known.largest, known.average, known.average_bias, known.price)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Frontier:
    """Standard deviation against bias bound.

    ``biases`` are the bounds asked for, ``bounds`` the certified ones, ``largest_sd`` the largest
    standard deviation over the domain, at ``worst``; ``average_sd`` and ``average_bias`` are roots
    of averages of squares over the prior, ``variances`` averages with the noise of other factors.
    All are arrays, one entry for each bias asked for; NaN where it cannot be reached.
    """

    question: Question
    f: sympy.Expr
    biases: Floats
    bounds: Floats
    largest_sd: Floats
    worst: Floats
    average_sd: Floats
    average_bias: Floats
    variances: Floats

    @property
    def cells(self) -> Floats:
        """From how many cells on each bound is better, for their average, than all larger ones."""
        found = []
        for i, bound in enumerate(self.bounds):
            larger = [self._from(i, j) for j in range(i) if math.isfinite(self.bounds[j])]
            found.append(max(larger, default=1.0) if math.isfinite(bound) else math.nan)
        return np.array(found)

    def _from(self, i: int, j: int) -> float:
        """Return from how many cells on one bound beats another: bias² + variance/m is less."""
        dearer = float(self.variances[i] - self.variances[j])
        closer = float(self.average_bias[j] ** 2 - self.average_bias[i] ** 2)
        if dearer <= 0:
            return 1.0 if closer >= 0 else math.inf
        return max(dearer / closer, 1.0) if closer > 0 else math.inf

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
        columns = self.biases, self.largest_sd, self.worst, self.average_sd, self.cells
        return [
            (f"{bias:.3g}", f"{largest:.4g}", f"{at:.6g}", f"{average:.4g}", _cells(cells))
            if math.isfinite(largest)
            else (f"{bias:.3g}", "cannot be reached", "", "", "")
            for bias, largest, at, average, cells in zip(*columns, strict=True)
        ]

    def __repr__(self) -> str:
        lines = (
            f"  {bias:>10}  {largest:>10}  {at:<8}  {average:>10}  {best}".rstrip()
            for bias, largest, at, average, best in (_HEAD, *self._rows)
        )
        return "\n".join([self._title, *lines])

    def _repr_html_(self) -> str:
        return table(_HEAD, self._rows, self._title)

    def plot(self, axes: Any = None) -> Any:
        """Draw standard deviation against bias bound (:func:`trueup.plots.frontier`)."""
        from trueup.plots.trade import frontier as draw

        return draw(self, ax=axes)


def _cells(count: float) -> str:
    """Return from how many cells on a bound is best, in words."""
    if math.isinf(count):
        return "-"
    return "1 cell" if count <= 1 else f"{math.ceil(count):,} cells"
