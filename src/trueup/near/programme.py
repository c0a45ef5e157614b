"""The convex programme: least variance under bounded bias, and the least bias there can be.

Unknowns u, g = B·u + b at the nodes of x = q + Z. With K the matrix of weights, A = K·B and
e = K·b the mean of g is A·u + e, and the prior-averaged variance is a convex quadratic form,

    Σ_q w(q) Var_q g = Σ_q w(q) [K·(B·u + b)² − (A·u + e)²](q).

If g is multiplied by an unbiased factor X of relative variance k, the variance of X·g, relative
to (E X)², is (1 + k)·E g² − (E g)².

Solved by Clarabel, with unknowns scaled to unit curvature and counted from a first guess.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from trueup.extras import optional

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.curve import Basis
    from trueup.near.nodes import Nodes

    Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_RIDGE = 1e-11
_FLAT = 1e-20
"""Curvatures below this part of the largest count as flat."""

_LARGEST = 1e7
"""Unknowns beyond so many times their natural size count as out of reach."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """The true values of a programme: f, the bias allowed, weights, and the noise beside."""

    truth: Floats
    tolerance: Floats
    weights: Floats
    beside: Floats


class Programme:
    """The programme at the given true values: nodes and basis say what g does to them."""

    def __init__(self, rows: Rows, nodes: Nodes, basis: Basis, start: Floats) -> None:
        self.start, self.tolerance = start, rows.tolerance
        own, given = basis.matrix(nodes.x)
        fixed = given + own @ start
        self.mean = (nodes.weights @ own).toarray()
        self.gap = rows.truth - nodes.weights @ fixed
        total = np.asarray((rows.weights * (1 + rows.beside)) @ nodes.weights).ravel()
        square = (own.T @ (scipy.sparse.diags_array(total) @ own)).toarray()
        weighted = rows.weights[:, None] * self.mean
        quadratic = 2 * (square - self.mean.T @ weighted)
        linear = 2 * (own.T @ (total * fixed) - weighted.T @ (rows.truth - self.gap))
        size = max(float(np.abs(np.diag(quadratic)).max()), 1e-300)
        self.quadratic, self.linear, self.weights = (
            quadratic / size,
            linear / size,
            rows.weights / size,
        )
        diagonal = np.diag(self.quadratic)
        self.scale = np.sqrt(np.maximum(diagonal, _FLAT * diagonal.max()))
        self.largest = float(np.abs(rows.truth).max()) or 1.0

    def bounded(
        self, limit: float, square: float = 0.0, floor: float | None = None
    ) -> Floats | None:
        """Return the unknowns of least variance with |bias| ≤ limit·τ, None if none exist.

        Bias² is added to the variance ``square`` times. With a ``floor`` the unknowns are at least
        so many times the first guess.
        """
        matrix, right = self._error(1.0, square)
        rows, gap = self.mean / self.tolerance[:, None] / self.scale, self.gap / self.tolerance
        sides, limits = [rows, -rows], [limit + gap, limit - gap]
        if floor is not None:
            sides.append(-np.eye(len(right)))
            limits.append((1 - floor) * self.start * self.scale)
        found = _solve(matrix, -right, np.vstack(sides), np.concatenate(limits))
        return None if found is None else np.asarray(self.start + found / self.scale)

    def free(self, cells: float) -> Floats:
        """Return the unknowns of least Σ_q w(q)·(bias² + variance/cells): one linear system."""
        matrix, right = self._error(1 / cells, 1.0)
        return np.asarray(self.start + np.linalg.solve(matrix, right) / self.scale, float)

    def _error(self, spread: float, square: float) -> tuple[Floats, Floats]:
        """Return M and r: Σ_q w(q)·(square·bias² + spread·variance) is ½v·M·v − r·v + constant."""
        rows = self.mean / self.scale
        matrix = 2 * square * rows.T @ (self.weights[:, None] * rows)
        matrix += spread * self.quadratic / self.scale[:, None] / self.scale
        matrix[np.diag_indices_from(matrix)] += _RIDGE * np.diag(matrix).max()
        right = 2 * square * rows.T @ (self.weights * self.gap)
        return np.asarray(matrix), np.asarray(right - spread * self.linear / self.scale)

    def least_bias(self) -> float:
        """Return the smallest t such that |bias| ≤ t·τ can be reached with moderate values."""
        scale, count = self.scale, len(self.start)
        rows = self.mean / self.tolerance[:, None] / scale * self.largest  # f may have any unit
        gap = self.gap / self.tolerance
        ones, eye, zeros = np.ones((len(gap), 1)), np.eye(count), np.zeros((count, 1))
        box = np.hstack([eye, zeros])
        reach = np.abs(scale * np.maximum(np.abs(self.start), 1e-300)).max() / self.largest
        found = _solve(
            np.zeros((count + 1, count + 1)),
            np.append(np.zeros(count), 1.0),
            np.vstack([np.hstack([rows, -ones]), np.hstack([-rows, -ones]), box, -box]),
            np.concatenate([gap, -gap, np.full(2 * count, _LARGEST * reach)]),
        )
        return float("nan") if found is None else float(found[-1])


def _solve(curvature: Floats, linear: Floats, rows: Floats, limits: Floats) -> Any:
    """Return the minimiser of ½ v·P·v + c·v subject to rows·v ≤ limits, None if there is none.

    v is counted in units of |c|: it scales with f, and the solver's tolerances do not.
    """
    clarabel = optional("clarabel", "near", "solving the programme")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 100
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    unit = float(np.abs(linear).max()) or 1.0
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(curvature)),
        linear / unit,
        scipy.sparse.csc_matrix(rows * unit),
        limits,
        [clarabel.NonnegativeConeT(len(limits))],
        settings,
    )
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        return None
    return np.array(solution.x) * unit
