"""The programme of the best unbiased private release on any graph of databases.

On a path the cheapest private ray is found by one pass; on a graph no such pass is known, so here
the masses p_y(s) on a grid of labels are the unknowns, found by the interior-point method. Its
multipliers prove a bound: for any prices λ ≥ 0 of the slacks and multipliers c of the means,

    a(s) = min_y [prior(s)(y − f(s))² − c(s)(y − f(s)) − (slackᵀ λ_y)(s)]

is feasible, and no release with labels on the grid has a variance below Σ total(s)·a(s).
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from trueup.limit.column_generation import Dual
from trueup.limit.interior import Cone, Point, descend, normal_matrix
from trueup.limit.table import corrected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.limit.rays import Floats
    from trueup.limit.table import Row

    Node = tuple[int, int]

_CLOSE, _MISSES = 3e-4, 1e-6
"""How near to the best variance, and to the equations: then the multipliers still prove it; any
nearer, rounding takes over. The grid of labels costs more."""

_NOTHING = 1e-13
"""Masses that the correction of the rounding errors can make good."""


def edges_of(nodes: Sequence[Node]) -> NDArray[np.int64]:
    """Return the pairs of databases (zeros, ones) that differ by one record, as indices.

    Examples
    --------
    >>> edges_of([(0, 0), (0, 1), (1, 0)]).tolist()
    [[0, 1], [0, 2]]
    """
    index = {node: i for i, node in enumerate(nodes)}
    more = (((a, b), near) for a, b in nodes for near in ((a, b + 1), (a + 1, b)))
    return np.array([(index[node], index[near]) for node, near in more if near in index])


@dataclasses.dataclass(frozen=True, eq=False)
class GraphProgramme:
    """Means f(s), the prior, ρ = e^ε, what the masses at s add up to, and pairs of neighbours."""

    values: Floats
    prior: Floats
    ratio: float
    totals: Floats
    edges: NDArray[np.int64]


class GraphCone(Cone):
    """The slacks, costs and equations of masses on given labels, neighbours joined by edges."""

    def __init__(self, programme: GraphProgramme, labels: Floats) -> None:
        self.ratio = programme.ratio
        self.off = labels - programme.values[:, None]
        self.costs = programme.prior[:, None] * self.off**2
        self.right = np.concatenate([programme.totals, np.zeros_like(programme.totals)])
        self.one, self.two = programme.edges.T

    def slack(self, masses: Floats) -> Floats:
        """Return ρ p(there) − p(here) and ρ p(here) − p(there) of every edge."""
        here, there = masses[self.one], masses[self.two]
        return np.stack([self.ratio * there - here, self.ratio * here - there])

    def pulled(self, prices: Floats) -> Floats:
        """Return the transpose of slack."""
        worth = np.zeros(self.off.shape)
        np.add.at(worth, self.two, self.ratio * prices[0] - prices[1])
        np.add.at(worth, self.one, self.ratio * prices[1] - prices[0])
        return worth

    def factored(self, weights: Floats) -> _Blocks:  # type: ignore[override]
        """Return the matrices slackᵀ W slack, one for each label, inverted."""
        size, count = self.off.shape
        (up, down), matrix = weights, np.zeros((size, size, count))
        np.add.at(matrix, (self.two, self.two), self.ratio**2 * up + down)
        np.add.at(matrix, (self.one, self.one), up + self.ratio**2 * down)
        matrix[self.one, self.two] = matrix[self.two, self.one] = -self.ratio * (up + down)
        scale = 1 / np.sqrt(np.einsum("iin->ni", matrix))
        scales = scale[:, :, None] * scale[:, None, :]
        return _Blocks(np.linalg.inv(matrix.transpose(2, 0, 1) * scales) * scales)


class _Blocks:
    """Inverses of matrices, one for each label."""

    def __init__(self, inverse: Floats) -> None:
        self.inverse = inverse

    def solve(self, right: Floats) -> Floats:
        """Return the solutions, one column for each label."""
        return np.asarray((self.inverse @ right.T[:, :, None])[:, :, 0].T)

    def normal(self, off: Floats) -> Floats:
        """Return Σ_y B H⁻¹ Bᵀ, the matrix of the equations."""
        return normal_matrix(self.inverse.transpose(1, 2, 0), off)


def best_masses(programme: GraphProgramme, labels: Floats) -> Point:
    """Return the masses of the best release on a grid of labels."""
    unit = max(1.0, float(np.ptp(labels)) / 20)  # far labels would spoil the equations' scaling
    scaled = dataclasses.replace(programme, values=programme.values / unit)
    found = descend(GraphCone(scaled, labels / unit), _CLOSE, _MISSES)
    dual = Dual(found.dual.total * unit**2, found.dual.mean * unit)
    return Point(found.masses, dual, found.variance * unit**2, found.prices * unit**2)


def proven(programme: GraphProgramme, labels: Floats, point: Point) -> float:
    """Return a variance that no private unbiased release with labels on the grid can beat."""
    cone = GraphCone(programme, labels)
    prices = np.maximum(point.prices, 0)
    worth = cone.costs - cone.off * point.dual.mean[:, None] - cone.pulled(prices)
    return float(programme.totals @ worth.min(axis=1))


def exact_rows(
    labels: Floats,
    point: Point,
    programme: GraphProgramme,
    values: Sequence[Fraction],
    totals: Sequence[Fraction],
) -> tuple[tuple[float, ...], tuple[Row, ...]] | None:
    """Return labels and, for each database, exact probabilities with exactly the means ``values``.

    The masses are first moved by parts so small that the programme's ratio, taken below e^ε,
    leaves room for them; None if it leaves none.
    """
    masses = _polished(GraphCone(programme, labels), point.masses) / programme.totals[:, None]
    used = {
        Fraction(y): [Fraction(p) for p in column]
        for y, column in zip(labels.tolist(), masses.T.tolist(), strict=True)
        if max(column) > _NOTHING
    }
    steps = [r for i, j in programme.edges for r in (totals[i] / totals[j], totals[j] / totals[i])]
    room = (Fraction(programme.ratio) / max(steps) - 1) / 2
    if room <= 0:
        return None
    return corrected(used, values, min(Fraction(1), room))


def _polished(cone: GraphCone, masses: Floats) -> Floats:
    """Return masses that meet the equations to the last digits, each changed in proportion."""
    for _ in range(3):
        missing, weight = cone.right - cone.total(masses), masses**2
        first, second = (weight * cone.off**k for k in (1, 2))
        a, b, c = weight.sum(axis=1), first.sum(axis=1), second.sum(axis=1)
        total, mean = np.split(missing, 2)
        det = a * c - b**2
        one, two = (c * total - b * mean) / det, (a * mean - b * total) / det
        masses = masses + weight * (one[:, None] + cone.off * two[:, None])
    return masses


def wrong_pair(
    masses: Sequence[Sequence[Fraction]], edges: NDArray[np.int64], ratio: Fraction
) -> tuple[int, int] | None:
    """Return a pair of neighbours that some label tells apart by more than the ratio, or None.

    Examples
    --------
    >>> masses = [[Fraction(1, 4)], [Fraction(3, 4)]]
    >>> wrong_pair(masses, np.array([[0, 1]]), Fraction(3))
    >>> wrong_pair(masses, np.array([[0, 1]]), Fraction(2))
    (1, 0)
    """
    rise, fall = ratio.as_integer_ratio()
    for one, two in [*edges.tolist(), *edges[:, ::-1].tolist()]:
        pairs = zip(masses[one], masses[two], strict=True)  # p > ratio·q, without any division
        if any(
            p.numerator * q.denominator * fall > rise * q.numerator * p.denominator
            for p, q in pairs
        ):
            return one, two
    return None
