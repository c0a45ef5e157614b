"""The best unbiased private release as a linear programme on a grid of labels.

The unknowns are the masses p_y(s) of each label y at each database s. For multipliers c of the
means and prices λ ≥ 0 of privacy, with G the constraints p_y(s) ≤ ρ p_y(s') of neighbours,

    a(s) = min_y w_y(s),    w_y(s) = prior(s)(y − f(s))² − c(s)(y − f(s)) + (Gᵀ λ_y)(s)

proves that no release has a variance below Σ total(s)·a(s). Between two labels h apart w_y lies at
most prior(s)·h²/4 below its smaller end if λ is interpolated, so that a bound for all labels on the
line follows; beyond the last labels it holds if no private mass makes w fall outwards.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.limit.table import Table, corrected

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from trueup.limit.table import Row

    Floats = NDArray[np.float64]

_ROUNDS = 6
"""Grids that are tried at most, each finer or wider where the bound asks for it."""
_PIECES = 4
"""Into how many parts a gap between labels is cut at most, from one grid to the next."""
_FLAT = -1e-12
_NOTHING = 1e-13
"""Labels no more likely than that are errors of the solvers."""
_ABOVE = 1 + 1e-15
"""Makes a double of one that may have been rounded down the larger one."""
_ACCURACY = 1e-11
"""Of the solver: so little is left to be made exact."""
_POLISHES = 3
_ROOM = 1e-5
"""What is published is solved for e^ε less this part, which its rounding errors may use."""
_LEAST = 1e-250
"""Masses below are raised to it: a factor e^ε of doubles that underflow cannot be checked."""


def edges_of(nodes: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
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
class Programme:
    """Means f(s), the prior, ρ = e^ε, the total mass at each s, and the pairs of neighbours."""

    values: Floats
    prior: Floats
    ratio: float
    totals: Floats
    edges: NDArray[np.int64]

    @property
    def is_line(self) -> bool:
        """Whether every database has its neighbours just before and after it."""
        return bool((np.diff(self.edges) == 1).all())

    def off(self, labels: Floats) -> Floats:
        """Return y − f(s), one column for each label."""
        return np.asarray(labels - self.values[:, None])

    def private(self) -> sparse.csr_array:
        """Return G: a mass p is private if G p ≤ 0."""
        count, (one, two) = len(self.edges), self.edges.T
        shape = (count, len(self.values))
        here, there = (
            sparse.csr_array((np.ones(count), (np.arange(count), ends)), shape=shape)
            for ends in (one, two)
        )
        pairs = [here - self.ratio * there, there - self.ratio * here]
        return sparse.csr_array(sparse.vstack(pairs))

    def worth(self, labels: Floats, found: Masses) -> Floats:
        """Return w_y(s), one column for each label."""
        off, prices = self.off(labels), np.maximum(found.prices, 0)
        costs = self.prior[:, None] * off**2 - found.mean[:, None] * off
        return np.asarray(costs + self.private().T @ prices)


@dataclasses.dataclass(frozen=True, eq=False)
class Masses:
    """Masses p_y(s), one column for each label, and the multipliers of the programme.

    ``total`` and ``mean`` belong to the equations at each s, ``prices`` to privacy, with one row
    for each constraint.
    """

    masses: Floats
    total: Floats
    mean: Floats
    prices: Floats


def best_masses(programme: Programme, labels: Floats) -> Masses:
    """Return the masses of the best release on a grid of labels.

    Clarabel's interior points are three times as fast on a line, HiGHS is on other graphs.

    Examples
    --------
    >>> values, half, edges = np.array([0, 1.0]), np.array([0.5, 0.5]), np.array([[0, 1]])
    >>> coin = Programme(values, half, 3.0, np.ones(2), edges)
    >>> best_masses(coin, np.array([-0.5, 0.5, 1.5])).masses.round(3)
    array([[0.75, 0.  , 0.25],
           [0.25, 0.  , 0.75]])
    """
    size, count, off = *programme.off(labels).shape, programme.off(labels)
    costs = (programme.prior[:, None] * off**2).ravel()
    totals = sparse.kron(sparse.identity(size), np.ones((1, count)))
    equations = sparse.vstack([totals, sparse.block_diag(list(off[:, None]))])
    right = np.concatenate([programme.totals, np.zeros(size)])
    private = sparse.kron(programme.private(), sparse.identity(count))
    solve = _by_clarabel if programme.is_line else _by_highs
    masses, multipliers, prices = solve(costs, equations, right, private)
    return Masses(
        _made_private(masses.reshape(size, count), programme),
        multipliers[:size],
        multipliers[size:],
        prices.reshape(-1, count),
    )


_Sparse = Any
_Parts = tuple["Floats", "Floats", "Floats"]


def _by_highs(costs: Floats, equations: _Sparse, right: Floats, private: _Sparse) -> _Parts:
    nothing = np.zeros(private.shape[0])
    for method in ("highs-ipm", "highs-ds"):
        found: Any = linprog(costs, private, nothing, equations, right, method=method)
        if found.status == 0:
            return found.x, found.eqlin.marginals, -found.ineqlin.marginals
    raise _unsolved(str(found.message))


def _by_clarabel(costs: Floats, equations: _Sparse, right: Floats, private: _Sparse) -> _Parts:
    clarabel = optional("clarabel", "near", "the limit on a line")
    rows = sparse.vstack([equations, private, -sparse.identity(len(costs))]).tocsc()
    kept = len(right) + private.shape[0]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = _ACCURACY
    cones = [
        clarabel.ZeroConeT(len(right)),
        clarabel.NonnegativeConeT(rows.shape[0] - len(right)),
    ]
    sides = np.concatenate([right, np.zeros(rows.shape[0] - len(right))])
    nothing = sparse.csc_matrix((len(costs), len(costs)))
    found = clarabel.DefaultSolver(nothing, costs, rows, sides, cones, settings).solve()
    if str(found.status) not in {"Solved", "AlmostSolved"}:
        raise _unsolved(str(found.status))
    multipliers = np.array(found.z)
    return np.array(found.x), -multipliers[: len(right)], multipliers[len(right) : kept]


def _unsolved(reason: str) -> TrueupError:
    return TrueupError(
        f"the linear programme could not be solved: {reason}",
        "try fewer values of q, or an epsilon nearer to 1",
    )


def _made_private(masses: Floats, programme: Programme) -> Floats:
    """Return the least masses above the given ones that are private, all of them positive.

    Solvers meet the constraints up to some 1e-9 only, which is much for small masses.
    """
    raised = np.maximum(masses, _LEAST)
    one, two = programme.edges.T
    for _ in range(len(masses)):
        before = raised.copy()
        np.maximum.at(raised, one, raised[two] / programme.ratio)
        np.maximum.at(raised, two, raised[one] / programme.ratio)
        if np.array_equal(raised, before):
            break
    return raised


# -- the grid --------------------------------------------------------------------------------------


def best_release(programme: Programme, labels: Floats, tolerance: float) -> tuple[Floats, Masses]:
    """Return labels and their masses, on a grid fine enough for a bound within a tolerance.

    The tolerance is relative to the variance.
    """
    finer = labels
    for _ in range(_ROUNDS):
        labels, found = finer, best_masses(programme, finer)
        low, falling = _between(programme, labels, found), _falling(programme, labels, found)
        variance = (programme.prior[:, None] * programme.off(labels) ** 2 * found.masses).sum()
        room = tolerance * variance
        if not falling and programme.totals @ low.min(axis=1) >= variance - room:
            break
        missing = programme.totals @ np.maximum(found.total[:, None] - low, 0)
        finer = _refined(labels, missing > room / 8, 2 * math.sqrt(room / 2), falling)
    return labels, found


def proven(programme: Programme, labels: Floats, found: Masses) -> float:
    """Return a variance that no private unbiased release can beat, whatever its labels.

    ``programme`` may have a larger ρ than the one that the masses were found for.
    """
    if _falling(programme, labels, found):
        return 0.0
    return max(0.0, float(programme.totals @ _between(programme, labels, found).min(axis=1)))


def _between(programme: Programme, labels: Floats, found: Masses) -> Floats:
    """Return a lower bound of w_y(s) between each label and the next."""
    worth = programme.worth(labels, found)
    sunk = programme.prior[:, None] * np.diff(labels) ** 2 / 4
    return np.minimum(worth[:, :-1], worth[:, 1:]) - sunk


def _falling(programme: Programme, labels: Floats, found: Masses) -> list[int]:
    """Return the ends of the grid, -1 and 1, beyond which w may fall for some private mass."""
    slopes = 2 * programme.prior[:, None] * programme.off(labels[[0, -1]]) - found.mean[:, None]
    private, falling, one = programme.private(), [], np.ones((1, len(slopes)))
    for side, slope in zip((-1, 1), slopes.T, strict=True):
        try:
            mass = _by_highs(side * slope, one, np.ones(1), private)[0]
        except TrueupError:  # too badly scaled to say
            mass = np.full(len(slope), np.nan)
        if not side * slope @ mass >= _FLAT:
            falling.append(side)
    return falling


def _refined(labels: Floats, tight: NDArray[np.bool_], close: float, falling: list[int]) -> Floats:
    """Return labels with more of them in tight gaps wider than ``close``, and beyond the ends."""
    gaps = np.diff(labels)
    more = [labels]
    for i in np.flatnonzero(tight & (gaps > close)):
        pieces = min(_PIECES, math.ceil(gaps[i] / close))
        more.append(np.linspace(labels[i], labels[i + 1], pieces + 1)[1:-1])
    for side in falling:
        end, reach = labels[-1 if side > 0 else 0], (labels[-1] - labels[0]) / 2
        more.append(end + side * np.linspace(0, reach, len(labels) // 8 + 3)[1:])
    return np.unique(np.concatenate(more))


# -- exact tables ----------------------------------------------------------------------------------


def best_table(
    truths: Sequence[Hashable],
    values: Sequence[Fraction],
    programme: Programme,
    ratio: Fraction,
    labels: Floats,
    tolerance: float,
) -> tuple[Table, float]:
    """Return the best release of exact values as an exact table, and a bound for all releases.

    Parameters
    ----------
    truths
        The databases.
    values
        What is published of each of them, on average.
    programme
        The same in floats, moved and scaled for the solvers: values and labels of a size near 1.
    ratio
        A rational number just below e^ε.
    labels
        Where to look for labels at first, in the units of the programme.
    tolerance
        The gap between bound and variance to aim at, relatively.
    """
    above = dataclasses.replace(programme, ratio=float(ratio) * _ABOVE)
    labels, found = best_release(above, labels, tolerance)
    exact = np.array([float(v) for v in values])
    unit = float(np.ptp(exact) / np.ptp(programme.values))
    places = exact[0] + unit * (labels - programme.values[0])
    part = _ROOM * float(min(ratio - 1, Fraction(1)))
    below = dataclasses.replace(programme, ratio=float(ratio) * (1 - part))
    masses = best_masses(below, labels).masses
    plain = dataclasses.replace(below, values=exact)
    rows = exact_rows(places, masses, plain, values, [Fraction(1)] * len(values), part)
    table = Table(tuple(truths), *rows)
    problem = table.broken(values, programme.edges, ratio)
    if problem:
        raise TrueupError(
            f"the best release could not be made exact: {problem}",
            "nothing was published; try fewer true values, or an epsilon nearer to 1",
        )
    return table, proven(above, labels, found) * unit**2


def exact_rows(
    labels: Floats,
    masses: Floats,
    programme: Programme,
    values: Sequence[Fraction],
    totals: Sequence[Fraction],
    part: float,
) -> tuple[tuple[float, ...], tuple[Row, ...]]:
    """Return labels and, for each database, exact probabilities with exactly the means ``values``.

    ρ of the programme is below e^ε by a ``part`` of it: by so much may masses be moved.
    """
    steps = [r for i, j in programme.edges for r in (totals[i] / totals[j], totals[j] / totals[i])]
    room = max((Fraction(programme.ratio) / max(steps) - 1) / 2, Fraction(1, 2**60))
    used = (_NOTHING * programme.totals < masses.T).any(axis=1)
    labels = labels[used]
    masses = _polished(programme, labels, masses[:, used], part) / programme.totals[:, None]
    columns = {
        Fraction(y): [Fraction(p) for p in column]
        for y, column in zip(labels.tolist(), masses.T.tolist(), strict=True)
    }
    return corrected(columns, values, min(Fraction(1), room))


def _polished(programme: Programme, labels: Floats, masses: Floats, part: float) -> Floats:
    """Return masses that meet the equations as far as changes in proportion to them allow."""
    off, most = programme.off(labels), part / (4 * _POLISHES)

    def missing(p: Floats) -> tuple[Floats, Floats]:
        return programme.totals - p.sum(axis=1), -(off * p).sum(axis=1)

    for _ in range(_POLISHES):
        a, b, c = ((masses**2 * off**k).sum(axis=1) for k in range(3))
        total, mean = missing(masses)
        det = np.maximum(a * c - b**2, _LEAST)
        one, two = (c * total - b * mean) / det, (a * mean - b * total) / det
        change = np.clip(masses * (one[:, None] + off * two[:, None]), -most, most)
        moved = masses * (1 + change)
        nearer = np.hypot(*missing(moved)) < np.hypot(total, mean)
        masses = np.where(nearer[:, None], moved, masses)
    return masses
