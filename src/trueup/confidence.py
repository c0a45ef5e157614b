"""Confidence intervals that cover f(q): which way to them a formula has, and their ends.

The ways are those of :meth:`trueup.Estimator.interval`. A normal approximation is the estimator's
own: where ``method`` says so there are no ends here.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.inputs import NUMBER, broadcast
from trueup.inverse.projection import box, grids, image, projected, rescaled, slopes
from trueup.inverse.ratio import Quotient, of_ratio, quotient
from trueup.kernels.grid import Grid, columns
from trueup.noise.ratio_regions import with_quantiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

NORMAL = "normal approximation"


class Intervals:
    """The intervals for a function f of statistics that may be tied by conditions."""

    def __init__(
        self, f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
    ) -> None:
        self.f, self.statistics, self.tied = f, tuple(statistics), tied
        self._by_level: dict[tuple[object, ...], tuple[Grid, Grid]] = {}

    @cached_property
    def method(self) -> str:
        """The way: "exact", "ratio", "projection" or "normal approximation"."""
        try:
            for statistic in self.statistics:
                with_quantiles(statistic.noise).quantile(0.5)
        except TrueupError:  # only moments are known
            return NORMAL
        if len(self.statistics) == 1:
            return "exact" if slopes(self.f, self.statistics) else "projection"
        return "projection" if self._quotient is None else "ratio"

    @cached_property
    def _quotient(self) -> Quotient | None:
        return quotient(self.f, self.statistics, self.tied)

    def at(self, values: Sequence[Any], level: float) -> tuple[Any, Any]:
        """Return the ends at published values of any shapes that go together."""
        if all(isinstance(v, NUMBER) for v in values):
            low, high = self._ends([np.array([v], float) for v in values], level, self.statistics)
            return float(low[0]), float(high[0])
        arrays = broadcast([s.symbol for s in self.statistics], values)
        x = [np.asarray(a, float).ravel() for a in arrays]
        low, high = (e.reshape(arrays[0].shape) for e in self._ends(x, level, self.statistics))
        return low, high

    def in_rows(
        self, x: Sequence[NDArray[Any]], level: float, scales: Mapping[str, NDArray[Any]]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends at columns of one length, with noise scales that differ by row."""
        if scales and not any(s.noise.lattice for s in self.statistics if s.symbol.name in scales):
            try:
                closed = self.closed(level, tuple(scales))
            except TrueupError:  # there are none: noise level by noise level then
                pass
            else:
                given = [*x, *scales.values()]
                low, high = (columns(end, None, given, ("value",))[0] for end in closed)
                return low, high
        low, high = np.full(x[0].shape, np.nan), np.full(x[0].shape, np.nan)
        for rows, statistics in rescaled(self.statistics, scales, len(x[0])):
            low[rows], high[rows] = self._ends([c[rows] for c in x], level, statistics)
        return low, high

    def _ends(
        self, x: Sequence[NDArray[Any]], level: float, statistics: Sequence[Statistic]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends at columns, NaN where one of them is."""
        if self.method == "ratio" and self._quotient is not None:
            low, high = self._quotient.under(statistics).interval(x, level)
        else:
            low, high = image(self.f, box(statistics, x, level), self.statistics, self.tied)
        for v in x:
            missing = np.isnan(v)
            if missing.any():
                low, high = np.where(missing, np.nan, low), np.where(missing, np.nan, high)
        return low, high

    def closed(self, level: float, names: tuple[str, ...] = ()) -> tuple[Grid, Grid]:
        """Return the ends as formulas in the statistics, then the scales of ``names``, if any."""
        key = (level, *names)
        if key not in self._by_level:
            symbols = {s.symbol.name: s.symbol for s in self.statistics}
            scales = {symbols[n]: sympy.Symbol(f"scale of {n}", positive=True) for n in names}
            if self.method == "ratio" and self._quotient is not None:
                ends = of_ratio(self._quotient, level, scales)
            else:
                ends = projected(self.f, self.statistics, level, scales)
            self._by_level[key] = grids(ends, self.statistics, scales)
        return self._by_level[key]
