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
from trueup.inputs import broadcast
from trueup.inverse.projection import HINT, box, has_unit, image, slopes
from trueup.inverse.ratio import Quotient, quotient
from trueup.kernels.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

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
        self._by_level: dict[tuple[object, ...], tuple[Grid, Grid]] = {}

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
        self, x: Sequence[NDArray[Any]], level: float, scales: Mapping[str, NDArray[Any]]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends at columns of one length, with noise scales that may differ by row.

        They are NaN where a published value is missing, or a scale is not positive.
        """
        columns, sizes = np.stack(x), np.stack([*scales.values(), np.ones(len(x[0]))])
        known = ~np.isnan(columns).any(axis=0) & (sizes > 0).all(axis=0)
        symbols = {s.symbol.name: s.symbol for s in self.statistics}
        given = {symbols[name]: np.asarray(v, float) for name, v in scales.items()}
        ends = np.full((2, len(known)), np.nan)
        for rows, statistics, factors in self._levels(np.flatnonzero(known), given):
            for part in np.array_split(rows, 1 + len(rows) // _ROWS):
                here = {q: v[part] for q, v in factors.items()}
                with np.errstate(all="ignore"):
                    low, high = self._ends([*columns[:, part]], level, statistics, here)
                ends[0, part], ends[1, part] = low, high
        return ends[0], ends[1]

    def _levels(
        self, rows: NDArray[np.intp], scales: Mapping[sympy.Symbol, NDArray[Any]]
    ) -> Iterator[tuple[NDArray[np.intp], Sequence[Statistic], Mapping[sympy.Symbol, Any]]]:
        """Yield rows with what is known there, and the scales that are factors of the noise."""
        several = self._quotient is not None and len(self.statistics) > 2
        free = {s.symbol for s in self.statistics if has_unit(s.noise) and not several}
        factors = {q: v for q, v in scales.items() if q in free}
        others = {q: v[rows] for q, v in scales.items() if q not in free}
        if not others:
            yield rows, self.statistics, factors
            return
        levels = np.stack([*others.values()], axis=1)
        distinct, which = np.unique(levels, axis=0, return_inverse=True)
        if len(distinct) > MOST_LEVELS:
            raise TrueupError(
                f"{len(distinct)} different noise levels, intervals are made for {MOST_LEVELS} at "
                "most",
                "round the scales up to fewer levels, or leave interval= out",
            )
        for i, level in enumerate(distinct.tolist()):
            own = {s.symbol: s.noise for s in self.statistics}
            own |= {q: own[q].at_scale(x) for q, x in zip(others, level, strict=True)}
            at_level = [dataclasses.replace(s, noise=own[s.symbol]) for s in self.statistics]
            yield rows[which.ravel() == i], at_level, factors

    def _ends(
        self,
        x: Sequence[Any],
        level: float,
        statistics: Sequence[Statistic],
        scales: Mapping[sympy.Symbol, Any],
    ) -> tuple[Any, Any]:
        """Return the ends at published values, computed or as formulas."""
        if self._quotient is not None:
            noises = [(s.noise, scales.get(s.symbol)) for s in statistics]
            return self._quotient.interval(x, level, noises)
        return image(self.f, box(statistics, x, level, scales), self.statistics, self.tied)

    def closed(self, level: float, names: tuple[str, ...] = ()) -> tuple[Grid, Grid] | None:
        """Return the ends as formulas in the statistics, then the scales of ``names``, if any.

        None stands for a normal approximation; ends without a formula are refused.
        """
        if self.method == NORMAL:
            return None
        key = (level, *names)
        if key not in self._by_level:
            symbols = {s.symbol.name: s.symbol for s in self.statistics}
            scales = {symbols[n]: sympy.Symbol(f"scale of {n}", positive=True) for n in names}
            x = list(symbols.values())
            if self._quotient is not None and self._quotient.endless:
                raise TrueupError(
                    "the interval may be without end, which is no number in SQL", HINT
                )
            ends = map(sympy.sympify, self._ends(x, level, self.statistics, scales))
            inputs = (*x, *scales.values())
            whole = frozenset(i for i, s in enumerate(self.statistics) if s.noise.lattice)
            every = tuple(range(len(inputs)))
            low, high = (Grid(inputs, [([], every, lambda _, e=e: e)], whole) for e in ends)
            self._by_level[key] = low, high
        return self._by_level[key]
