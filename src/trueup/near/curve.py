"""The estimator as a function of the published value: zones joined to the series.

A zone holds the estimator where the series is no good: beyond a bound of the domain and just inside
it. Its values (or the coefficients of cubic B-splines) are the unknowns of the programme. Beyond
the outer end g is constant; at the inner end the spline takes over value, slope and curvature of
the series, so that g is C² on the whole line.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse
from scipy.interpolate import BSpline

from trueup.kernels.blocks import evaluate
from trueup.near.series import Exact, bound_on, graded
from trueup.near.spline import Spline

if TYPE_CHECKING:
    import sympy
    from numpy.typing import NDArray

    from trueup.near.series import Series

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


@dataclasses.dataclass(frozen=True)
class Curve:
    """g(x): a spline up to ``low``, the series between, another spline from ``high`` on.

    Without a series the left spline is everywhere, and ``low`` is infinite.
    """

    symbol: sympy.Symbol
    series: Series | Exact | None
    left: Spline | None
    right: Spline | None
    low: float
    high: float

    def __call__(self, x: Floats) -> Floats:
        """Return the estimate at published values."""
        return self.derivative(x, 0)

    def derivative(self, x: Floats, order: int) -> Floats:
        """Return a derivative of the estimate, of order 2 at most."""
        x = np.asarray(x, float)
        below, above = x <= self.low, x >= self.high
        out = np.empty(x.shape)
        middle = ~(below | above)
        if self.series is not None and middle.any():
            out[middle] = evaluate(self.series.jet[order], {self.symbol: x[middle]})
        for spline, rows in ((self.left, below), (self.right, above)):
            if spline is not None:
                out[rows] = spline.derivative(order)(x[rows])
        return out

    @property
    def stretch(self) -> tuple[float, float]:
        """Where the series is used."""
        return self.low, self.high

    @cached_property
    def knots(self) -> Floats:
        """Where g may fail to be smooth."""
        splines = [s.edges for s in (self.left, self.right) if s is not None]
        inner = self.series.breaks(*self.stretch) if isinstance(self.series, Exact) else []
        return np.unique(np.concatenate([inner, *splines]))

    @cached_property
    def outside(self) -> float:
        """A bound on |g| in the zones."""
        splines = [s for s in (self.left, self.right) if s is not None]
        return max((float(_largest(s.coefficients).max()) for s in splines), default=0.0)

    def magnitude(self, low: Floats, high: Floats) -> Floats:
        """Return bounds on |g| over intervals of x."""
        start, stop = np.maximum(low, self.low), np.minimum(high, self.high)
        inside = start < stop
        zones = (low <= self.low) | (high >= self.high)
        out = np.where(zones, self.outside, 0.0)
        if self.series is not None and inside.any():
            part = bound_on(self.series.expr, self.symbol, start[inside], stop[inside])
            out[inside] = np.maximum(out[inside], part)
        return out

    def turns(self, reach: float, unit: float) -> tuple[Floats, Floats]:
        """Return cells of the line and a bound on |g‴| in each.

        The series has cells of a quarter of a unit as far as ``reach`` from the zones, then wider
        ones.
        """
        edges, bounds = [-math.inf], []
        if self.left is not None:
            edges += self.left.edges.tolist()
            bounds += [0.0, *_thirds(self.left)]
        if self.series is not None:
            cells = self._cells(reach, unit)
            thirds = bound_on(self.series.jet[3], self.symbol, cells[:-1], cells[1:])
            edges += cells[1 if self.left is not None else 0 :].tolist()
            bounds += [*([] if self.left is not None else [math.inf]), *thirds.tolist()]
        if self.right is not None:
            edges += self.right.edges[1:].tolist()
            bounds += _thirds(self.right)
        last = math.inf if self.right is None and self.series is not None else 0.0
        return np.array([*edges, math.inf]), np.array([*bounds, last])

    def _cells(self, reach: float, unit: float) -> Floats:
        """Return edges over the stretch: fine ones within the reach of its finite ends."""
        low, high = self.stretch
        coarse = graded(low, high, unit)
        fine = [coarse]
        for end, sign in ((low, 1), (high, -1)):
            if math.isfinite(end):
                fine.append(end + sign * np.arange(0.0, reach, unit / 4))
        if math.isinf(low) and math.isinf(high):
            fine.append(np.arange(-reach, reach, unit / 4))
        edges = np.unique(np.concatenate(fine))
        return edges[(edges >= low) & (edges <= high)]


def _largest(coefficients: Floats) -> Floats:
    """Return a bound on |Σ cₖtᵏ| for 0 ≤ t ≤ 1, row by row: the largest Bernstein coefficient."""
    n = coefficients.shape[1] - 1
    to_bernstein = np.array(
        [
            [math.comb(i, k) / math.comb(n, k) if k <= i else 0.0 for k in range(n + 1)]
            for i in range(n + 1)
        ]
    )
    found: Floats = np.abs(coefficients @ to_bernstein.T).max(axis=1)
    return found


def _thirds(spline: Spline) -> list[float]:
    """Return |g‴| on every piece of a cubic spline."""
    thirds: list[float] = (6 * np.abs(spline.coefficients[:, 3]) / spline.width**3).tolist()
    return thirds
