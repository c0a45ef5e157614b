"""Free values near a bound: a table on the integers, or a cubic spline that joins smoothly.

A zone holds the estimator where the series is no good: beyond a bound of the domain and just inside
it. Its values (or the coefficients of cubic B-splines) are the unknowns of the programme. Beyond
the outer end g is constant; at the inner end the spline takes over value, slope and curvature of
the series, so that g is C² on the whole line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse
from scipy.interpolate import BSpline

from trueup.formula.spline import Spline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Side = Literal["left", "right", "whole"]
DEGREE = 3


class Zone:
    """The unknowns on [low, high].

    Parameters
    ----------
    low, high
        Its ends; for a table the first and the last integer.
    width
        The width of a piece.
    side
        Where it lies: left or right of the series, or everywhere.
    table
        Whether every integer has a value of its own.
    join
        The series and its first two derivatives at the inner end, for a spline on one side.
    """

    def __init__(
        self,
        low: float,
        high: float,
        width: float,
        side: Side,
        table: bool,
        join: tuple[float, float, float] | None = None,
    ) -> None:
        self.side, self.table = side, table
        self.low = low
        self.pieces = round(high - low) + 1 if table else max(math.ceil((high - low) / width), 4)
        self.width = 1.0 if table else (high - low) / self.pieces
        self.high = high
        self.tie, self.fixed = self._boundary(join)

    def _boundary(
        self, join: tuple[float, float, float] | None
    ) -> tuple[scipy.sparse.csr_array, Floats]:
        """Return the map from unknowns to coefficients, and the coefficients that are given."""
        count = self.pieces if self.table else self.pieces + DEGREE
        owner, fixed = np.arange(count), np.zeros(count)
        if not self.table:
            if self.side != "right":
                owner[:DEGREE] = DEGREE - 1  # equal coefficients: slope and curvature 0
            if self.side != "left":
                owner[-DEGREE:] = count - DEGREE
            if join is not None and self.side == "left":
                fixed[: -DEGREE - 1 : -1] = _matching(*join, -self.width)
                owner[-DEGREE:] = -1
            elif join is not None:
                fixed[:DEGREE] = _matching(*join, self.width)
                owner[:DEGREE] = -1
            owner[owner >= 0] -= owner[owner >= 0].min()
        free = np.flatnonzero(owner >= 0)
        shape = (count, int(owner.max()) + 1)
        ones = (np.ones(len(free)), (free, owner[free]))
        return scipy.sparse.csr_array(ones, shape=shape), fixed

    @property
    def size(self) -> int:
        """How many unknowns there are."""
        return int(self.tie.shape[1])

    @cached_property
    def _knots(self) -> Floats:
        inner = np.linspace(self.low, self.high, self.pieces + 1)
        return np.concatenate([[self.low] * DEGREE, inner, [self.high] * DEGREE])

    @property
    def edges(self) -> Floats:
        """The ends of the pieces."""
        return np.linspace(self.low, self.high, self.pieces + 1)

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        """Return where the zone, not the series, gives the estimate."""
        if self.side == "whole":
            return np.ones(x.shape, bool)
        return x <= self.high if self.side == "left" else x >= self.low

    def matrix(self, x: Floats) -> tuple[scipy.sparse.csr_array, Floats]:
        """Return B and b such that g(x) = B·u + b in the zone, both zero outside it."""
        inside = np.flatnonzero(self.holds(x))
        near = np.clip(x[inside], self.low, self.high)
        if self.table:
            where = np.round(near - self.low).astype(np.int64)
            local = scipy.sparse.csr_array(
                (np.ones(len(near)), (inside, where)), shape=(len(x), self.pieces)
            )
        else:
            some = scipy.sparse.coo_array(BSpline.design_matrix(near, self._knots, DEGREE))
            local = scipy.sparse.csr_array(
                (some.data, (inside[some.row], some.col)),
                shape=(len(x), self.pieces + DEGREE),
            )
        return scipy.sparse.csr_array(local @ self.tie), np.asarray(local @ self.fixed)

    def start(self, base: Callable[[Floats], Floats]) -> Floats:
        """Return unknowns that follow a given function."""
        if self.table:
            points = self.low + np.arange(float(self.pieces))
        else:
            points = np.convolve(self._knots[1:-1], np.ones(DEGREE) / DEGREE, "valid")
        counts = np.asarray(self.tie.sum(axis=0)).ravel()
        values: Floats = (self.tie.T @ base(points)) / counts
        return values

    def spline(self, unknowns: Floats) -> Spline:
        """Return the function with these unknowns."""
        coefficients = self.tie @ unknowns + self.fixed
        if self.table:
            return Spline(self.low, 1.0, coefficients[:, None])
        curve = BSpline(self._knots, coefficients, DEGREE)
        left = self.edges[:-1]
        rows = [curve(left, nu=k) * self.width**k / math.factorial(k) for k in range(DEGREE + 1)]
        return Spline(self.low, self.width, np.column_stack(rows))


def _matching(value: float, slope: float, bend: float, width: float) -> list[float]:
    """Return the three B-spline coefficients at an end that give value, slope and curvature."""
    second = value + slope * width / 3
    return [value, second, second + (slope + bend * width / 2) * width * 2 / 3]
