"""The estimator as a function of the published value: zones joined to the series."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.kernels.evaluate import evaluate
from trueup.near.series import Exact, bound_on, graded

if TYPE_CHECKING:
    import sympy
    from numpy.typing import NDArray

    from trueup.formula.spline import Spline
    from trueup.near.series import Series

    Floats = NDArray[np.float64]


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
