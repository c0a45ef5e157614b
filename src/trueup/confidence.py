"""Confidence intervals that cover f(q): which way to them a formula has, and their ends.

The ways are those of :meth:`trueup.Estimator.interval`. A normal approximation is the estimator's
own: where ``method`` says so there are no ends here.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.inputs import broadcast, read_level
from trueup.inverse.projection import HINT, box, has_unit, image, slopes
from trueup.inverse.ratio import Quotient, quotient
from trueup.kernels.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

    Floats = NDArray[np.float64]

NORMAL = "normal approximation"

MOST_LEVELS = 2000
"""Pairs of noise scales in a column: on the integers each takes a tenth of a second."""

_ROWS = 2**14  # at once: with 48 corners a few megabytes


class Intervals:
    """The intervals for a function f of statistics that may be tied by conditions."""

    def __init__(
        self, f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
    ) -> None:
        self.f, self.statistics, self.tied = f, tuple(statistics), tied

    @cached_property
    def method(self) -> str:
        """The way: "exact", "ratio", "projection" or "normal approximation"."""
        try:
            for statistic in self.statistics:
                statistic.noise.quantile(0.5)
        except TrueupError:  # only moments are known
            return NORMAL
        if len(self.statistics) == 1:
            return "exact" if slopes(self.f, self.statistics) else "projection"
        return "projection" if self._quotient is None else "ratio"

    @cached_property
    def _quotient(self) -> Quotient | None:
        several = len(self.statistics) > 1
        return quotient(self.f, self.statistics, self.tied) if several else None

    def at(self, values: Sequence[Any], level: float) -> tuple[Any, Any]:
        """Return the ends at published values of any shapes that go together."""
        arrays = broadcast([s.symbol for s in self.statistics], values)
        x = [np.asarray(a, float).ravel() for a in arrays]
        low, high = (end.reshape(arrays[0].shape) for end in self.in_rows(x, level, {}))
        return (low, high) if low.shape else (float(low), float(high))

    def in_rows(
        self, x: Sequence[Floats], level: float, scales: Mapping[str, Floats]
    ) -> tuple[Floats, Floats]:
        """Return the ends at columns of one length, with noise scales that may differ by row.

        They are NaN where a published value is missing, or a scale is not positive.
        """
        columns = np.stack(x)
        sizes = np.array([*scales.values(), np.ones(len(x[0]))])
        known = ~np.isnan(columns).any(axis=0) & (sizes > 0).all(axis=0)
        ends = np.full((2, columns.shape[1]), np.nan)
        for rows, statistics, factors in self._levels(np.flatnonzero(known), scales):
            for part in np.array_split(rows, 1 + len(rows) // _ROWS):
                here = {name: v[part] for name, v in factors.items()}
                with np.errstate(all="ignore"):
                    found = self._ends([*columns[:, part]], level, statistics, here)
                ends[0, part], ends[1, part] = found
        return ends[0], ends[1]

    def _levels(
        self, rows: NDArray[np.intp], scales: Mapping[str, Floats]
    ) -> Iterator[tuple[NDArray[np.intp], Sequence[Statistic], Mapping[str, Floats]]]:
        """Yield rows with what is known there, and the scales that are factors of the noise."""
        several = self._quotient is not None and len(self.statistics) > 2
        free = {s.symbol.name for s in self.statistics if has_unit(s.noise) and not several}
        factors = {name: v for name, v in scales.items() if name in free}
        others = {name: v[rows] for name, v in scales.items() if name not in free}
        if not others:
            yield rows, self.statistics, factors
            return
        distinct, which = np.unique([*others.values()], axis=1, return_inverse=True)
        if distinct.shape[1] > MOST_LEVELS:
            raise TrueupError(
                f"{distinct.shape[1]} different noise levels, intervals are made for {MOST_LEVELS} "
                "at most",
                "round the scales up to fewer levels, or leave interval= out",
            )
        for i, level in enumerate(distinct.T.tolist()):
            own = dict(zip(others, level, strict=True))
            at_level = [
                dataclasses.replace(s, noise=s.noise.at_scale(own[s.symbol.name]))
                if s.symbol.name in own
                else s
                for s in self.statistics
            ]
            yield rows[which.ravel() == i], at_level, factors

    def _ends(
        self,
        x: Sequence[Any],
        level: float,
        statistics: Sequence[Statistic],
        scales: Mapping[str, Any],
    ) -> tuple[Any, Any]:
        """Return the ends at published values, computed or as formulas."""
        if self._quotient is not None:
            noises = [(s.noise, scales.get(s.symbol.name)) for s in statistics]
            return self._quotient.interval(x, level, noises)
        return image(self.f, box(statistics, x, level, scales), self.statistics, self.tied)

    def closed(self, level: float, names: Sequence[str] = ()) -> tuple[Grid, Grid]:
        """Return the ends as formulas in the statistics, then the scales of ``names``, if any."""
        endless = self._quotient is not None and self._quotient.endless
        if endless or self.method == NORMAL:
            why = "may be without end, which is no number in SQL" if endless else f"is a {NORMAL}"
            raise TrueupError(f"the interval {why}", HINT)
        x = [s.symbol for s in self.statistics]
        scales = {n: sympy.Symbol(f"scale of {n}", positive=True) for n in names}
        ends = map(sympy.sympify, self._ends(x, read_level(level), self.statistics, scales))
        inputs = (*x, *scales.values())
        whole = frozenset(i for i, s in enumerate(self.statistics) if s.noise.lattice)
        low, high = (Grid.of(e, inputs, whole) for e in ends)
        return low, high
