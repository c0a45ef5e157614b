"""The law of an estimator of two tied statistics under continuous noise.

It breaks along the line of the condition, so the integral over one statistic breaks at a point
that depends on the other: panels are laid anew for every node of the outer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.inverse.expectation import TooLargeError
from trueup.inverse.grids import grid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from trueup.inverse.component import Cell
    from trueup.inverse.extended import Extended
    from trueup.kernels.grid import Grid

    Floats = NDArray[np.float64]
    Truth = Mapping[sympy.Symbol, float]

_REACH = 42.0  # scales: e⁻⁴² is below what is left of doubles
_FINEST = 2.0**-4  # of a scale: the panel beside a break; each further one is twice as wide
_WIDEST = 4.0  # scales: fourteen nodes get e^{−x} right to the last digit on such a panel
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


class TiedLaw:
    """Mean and variance of an extended component at true values."""

    def __init__(self, component: Extended) -> None:
        if len(component.cells) != 2:
            raise TooLargeError.over(len(component.cells))
        self.component = component
        # the integers outside: the sum over them needs no breaks
        self.outer, self.inner = sorted(component.cells, key=lambda c: not c.noise.lattice)

    @cached_property
    def _grid(self) -> Grid:
        return grid([self.component], self.component.cells, "value")  # type: ignore[arg-type]

    def moments(self, truth: Truth, centre: float) -> tuple[float, float]:
        """Return E (g − c) + c and the variance, computed around c."""
        first = second = 0.0
        outer, inner = self.outer, self.inner
        crossings = [self._crossing(outer, inner, x) for x in self._marks(inner, truth)]
        for x, weight in zip(*self._rule(outer, truth, crossings), strict=True):
            own = self._crossing(inner, outer, x)
            y, weights = self._rule(inner, truth, [own])
            g = self._values({outer.symbol: np.full(len(y), x), inner.symbol: y}) - centre
            first += weight * float(weights @ g)
            second += weight * float(weights @ g**2)
        return centre + first, second - first**2

    def _values(self, columns: Mapping[sympy.Symbol, Floats]) -> Floats:
        ordered = [columns[c.symbol] for c in self.component.cells]
        out = np.empty(len(ordered[0]))
        with np.errstate(all="ignore"):
            self._grid.block(ordered, out)
        return out

    def _crossing(self, unknown: Cell, known: Cell, value: float) -> list[float]:
        """Return where the estimator breaks along one statistic, given the other.

        That one is clamped to its bounds; where it is an integer its neighbours are read too.
        """
        clamped = min(max(value, float(known.operator.low)), float(known.operator.high))
        steps = (-1.0, 0.0, 1.0) if known.noise.lattice else (0.0,)
        found = []
        for condition in self.component.tied:
            terms = {name: float(c) for name, c in condition.terms}
            for step in steps:
                rest = float(condition.low) - terms[known.symbol.name] * (clamped + step)
                found.append(rest / terms[unknown.symbol.name])
        return found

    def _marks(self, cell: Cell, truth: Truth) -> list[float]:
        """Return where the law of one statistic, or the estimator along it, breaks."""
        ends = [float(end) for end in cell.operator.starts]
        return [truth[cell.symbol], *(end for end in ends if np.isfinite(end))]

    def _rule(
        self, cell: Cell, truth: Truth, further: Iterable[list[float]]
    ) -> tuple[Floats, Floats]:
        """Return nodes, and weights times the density of the published value."""
        q, scale = truth[cell.symbol], float(cell.noise.unit)
        noise: Any = cell.noise
        low, high = q - _REACH * scale, q + _REACH * scale
        if noise.lattice:
            x = np.arange(np.ceil(low), np.floor(high) + 1)
            return x, np.asarray(noise.pmf(x - q))
        marks = {m for group in further for m in group} | set(self._marks(cell, truth))
        breaks = np.array(sorted({low, high} | {m for m in marks if low < m < high}))
        ends = [abs(float(end)) / 2 for end in cell.operator.starts if np.isfinite(float(end))]
        finest = min([_FINEST * scale, *(e for e in ends if e)])  # a pole may be at 0
        panels = [_graded(a, b, finest, _WIDEST * scale) for a, b in pairwise(breaks)]
        edges = np.unique(np.concatenate(panels))
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        x = (middle[:, None] + half[:, None] * _NODES).ravel()
        weights = (half[:, None] * _WEIGHTS).ravel()
        return x, weights * np.asarray(noise.pdf(x - q))


def _graded(low: float, high: float, finest: float, widest: float) -> Floats:
    """Return the edges of panels that shrink towards both ends.

    Examples
    --------
    >>> _graded(0.0, 4.0, 0.25, 8.0)
    array([0.  , 0.25, 0.75, 1.75, 2.  , 2.25, 3.25, 3.75, 4.  ])
    """
    steps = [0.0]
    width = finest
    while steps[-1] < (high - low) / 2:
        steps.append(steps[-1] + width)
        width = min(2 * width, widest)
    near = np.array([s for s in steps if s < (high - low) / 2])
    return np.concatenate([low + near, [(low + high) / 2], high - near[::-1]])
