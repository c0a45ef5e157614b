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

    from trueup.near.curve import Zone
    from trueup.near.smoothing import Nodes

    Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_RIDGE = 1e-11
_LARGEST = 1e7
"""Unknowns beyond so many times their natural size count as out of reach."""


@dataclasses.dataclass(frozen=True)
class Programme:
    """The programme at the given true values.

    Parameters
    ----------
    mean, offset
        E g = mean·v + offset, v counted from the first guess.
    quadratic, linear
        The averaged variance is ½ v·quadratic·v + linear·v + constant.
    truth, tolerance
        f and τ.
    start
        The first guess.
    flat
        Curvatures below this part of the largest count as flat.
    weights
        The weights of the true values, in the units of the averaged variance.
    """

    mean: Floats
    offset: Floats
    quadratic: Floats
    linear: Floats
    truth: Floats
    tolerance: Floats
    start: Floats
    flat: float = 1e-20
    weights: Floats | None = None

    def least_variance(self, shrink: float, floor: float | None = None) -> Floats | None:
        """Return the unknowns of least variance with |bias| ≤ (1 − shrink)·τ, None if none exist.

        With a ``floor`` they are at least so many times the first guess.
        """
        scale, limit = self._scale, 1 - shrink
        rows = self.mean / self.tolerance[:, None] / scale
        gap = (self.truth - self.offset) / self.tolerance
        curvature = self.quadratic / scale[:, None] / scale
        curvature[np.diag_indices_from(curvature)] += _RIDGE
        sides, limits = [rows, -rows], [limit + gap, limit - gap]
        if floor is not None:
            sides.append(-np.eye(len(scale)))
            limits.append((1 - floor) * self.start * scale)
        found = _solve(curvature, self.linear / scale, np.vstack(sides), np.concatenate(limits))
        return None if found is None else self.start + found / scale

    def least_error(self, cells: float) -> Floats:
        """Return the unknowns of least Σ_q w(q)·(bias² + variance/cells): one linear system."""
        assert self.weights is not None  # noqa: S101  (asked of programmes made below only)
        scale = self._scale
        rows = self.mean / scale
        gap = self.truth - self.offset
        matrix = 2 * rows.T @ (self.weights[:, None] * rows)
        matrix += self.quadratic / scale[:, None] / scale / cells
        right = 2 * rows.T @ (self.weights * gap) - self.linear / scale / cells
        matrix[np.diag_indices_from(matrix)] += _RIDGE * np.diag(matrix).max()
        found = np.asarray(np.linalg.solve(matrix, right), float)
        return self.start + found / scale

    def least_bias(self) -> float:
        """Return the smallest t such that |bias| ≤ t·τ can be reached with moderate values."""
        scale, count = self._scale, len(self.start)
        rows = self.mean / self.tolerance[:, None] / scale
        gap = (self.truth - self.offset) / self.tolerance
        ones = np.ones((len(gap), 1))
        box = np.hstack([np.eye(count), np.zeros((count, 1))])
        unit = float(np.abs(self.truth).max()) or 1.0  # so that f may have any unit
        reach = _LARGEST * np.abs(scale * np.maximum(np.abs(self.start), 1e-300)).max() / unit
        rows = rows * unit
        found = _solve(
            np.zeros((count + 1, count + 1)),
            np.append(np.zeros(count), 1.0),
            np.vstack([np.hstack([rows, -ones]), np.hstack([-rows, -ones]), box, -box]),
            np.concatenate([gap, -gap, np.full(2 * count, reach)]),
        )
        return float("nan") if found is None else float(found[-1])

    @property
    def _scale(self) -> Floats:
        diagonal = np.diag(self.quadratic)
        return np.asarray(np.sqrt(np.maximum(diagonal, self.flat * diagonal.max())))


def programme(
    nodes: Nodes,
    zones: list[Zone],
    series: Floats,
    weights: Floats,
    truth: Floats,
    tolerance: Floats,
    start: Floats,
    beside: Floats | float = 0.0,
) -> Programme:
    """Return the programme from the nodes of x = q + Z, the zones, and the series at the nodes.

    ``beside`` is the relative variance of what g is multiplied by.
    """
    parts = [zone.matrix(nodes.x) for zone in zones]
    basis = scipy.sparse.csr_array(scipy.sparse.hstack([matrix for matrix, _ in parts]))
    held = np.logical_or.reduce([zone.holds(nodes.x) for zone in zones])
    fixed = np.where(held, sum(offset for _, offset in parts), series) + basis @ start
    mean = (nodes.weights @ basis).toarray()
    offset = nodes.weights @ fixed
    total = np.asarray((weights * (1 + beside)) @ nodes.weights).ravel()
    square = (basis.T @ (scipy.sparse.diags_array(total) @ basis)).toarray()
    quadratic = 2 * (square - mean.T @ (weights[:, None] * mean))
    linear = 2 * (basis.T @ (total * fixed) - mean.T @ (weights * offset))
    size = max(float(np.abs(np.diag(quadratic)).max()), 1e-300)
    forms = quadratic / size, linear / size
    return Programme(mean, offset, *forms, truth, tolerance, start, weights=weights / size)


def _solve(curvature: Floats, linear: Floats, rows: Floats, limits: Floats) -> Any:
    """Return the minimiser of ½ v·P·v + c·v subject to rows·v ≤ limits, None if there is none.

    v is counted in units of |c|: it scales with f, and the solver's tolerances do not.
    """
    clarabel = optional("clarabel", "near", "solving the programme")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 60
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
