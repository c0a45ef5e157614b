"""The best unbiased private release as a linear programme, solved by column generation.

A column is a label y with a ray p of the private cone; a release gives every column a weight
x ≥ 0 such that, for every true value q,

    Σ x p(q) = 1,    Σ x (y − f(q)) p(q) = 0,    and    Σ_q prior(q) Σ x (y − f(q))² p(q) is least.

That is 2m equations in infinitely many columns, of which at most 2m are used. Given the
multipliers a(q), c(q) of a few columns, the prices

    r_y(q) = prior(q) (y − f(q))² − a(q) − c(q) (y − f(q))

tell which column is missing: the cheapest ray at the best y, on the whole line, not on a grid.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog, nnls

from trueup.errors import TrueupError
from trueup.limit.rays import cheapest, shapes

if TYPE_CHECKING:
    from trueup.limit.rays import Bools, Floats

_GRID = (200, 4000)
"""The fewest and the most labels that are tried."""

_ROUNDS = 400
_TOLERANCE = 2e-4
"""When to stop: relative gap between the variance and what the multipliers prove."""
_KEPT = 20
"""How many columns to begin with, the cheapest, for each true value."""

_ATTEMPTS = (("highs-ds", False, 1e-9), ("highs-ds", True, 1e-8), ("highs-ipm", True, 1e-7))
"""Method, presolve, tolerance: dense and small, the programme gains nothing from presolving."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dual:
    """Multipliers: a(q) of Σ x p(q) = 1 and c(q) of Σ x (y − f(q)) p(q) = 0; the bound is Σ a."""

    total: Floats
    mean: Floats

    @property
    def value(self) -> float:
        """What the multipliers are worth: Σ a."""
        return float(self.total.sum())

    def towards(self, other: Dual, share: float) -> Dual:
        """Return the multipliers a share of the way to others."""
        total = (1 - share) * self.total + share * other.total
        return Dual(total, (1 - share) * self.mean + share * other.mean)

    def lowered(self, amount: float, gauge: Floats) -> Dual:
        """Return multipliers whose prices are higher by amount·gauge."""
        return Dual(self.total - amount * gauge, self.mean)


@dataclasses.dataclass(frozen=True, eq=False)
class Programme:
    """The values f(q), centred and in units of their noise, the prior, and ρ = e^ε."""

    values: Floats
    prior: Floats
    ratio: float

    @property
    def gauge(self) -> Floats:
        """The weights that make columns comparable; positive also where the prior is zero."""
        return (self.prior + 1 / len(self.prior)) / 2

    def prices(self, dual: Dual, labels: Floats) -> Floats:
        """Return r_y(q), one column for each label."""
        off = labels - self.values[:, None]
        return self.prior[:, None] * off**2 - dual.total[:, None] - dual.mean[:, None] * off

    def cheapest(self, dual: Dual, labels: Floats, ceiling: float) -> tuple[Floats, Bools]:
        """Return the lowest price at each label, per unit of gauge, and the steps of its ray."""
        return cheapest(self.prices(dual, labels), self.gauge, self.ratio, ceiling)

    def best_labels(self, dual: Dual, ray: Floats) -> Floats:
        """Return the label at which each ray is cheapest, within reason."""
        slope, bend = 2 * self.prior * self.values + dual.mean, 2 * (self.prior @ ray)
        far = 1e6 * (1 + float(np.abs(self.values).max()))
        return np.clip((slope @ ray) / np.maximum(bend, 1e-100), -far, far)


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Labels and the steps of their rays."""

    labels: Floats
    rising: Bools

    def joined(self, other: Columns) -> Columns:
        """Return these columns and others."""
        labels = np.concatenate([self.labels, other.labels])
        return Columns(labels, np.hstack([self.rising, other.rising]))

    def only(self, which: Bools) -> Columns:
        """Return some of the columns."""
        return Columns(self.labels[which], self.rising[:, which])

    def thinned(self, most: int) -> Columns:
        """Return at most so many of the columns, evenly spread."""
        step = -(-len(self.labels) // most)
        return self if step <= 1 else Columns(self.labels[::step], self.rising[:, ::step])

    def equations(self, programme: Programme) -> Floats:
        """Return the matrix of the 2m equations."""
        ray = shapes(self.rising, programme.ratio)
        return np.vstack([ray, (self.labels - programme.values[:, None]) * ray])

    def costs(self, programme: Programme) -> Floats:
        """Return Σ_q prior(q) (y − f(q))² p(q) of each column."""
        off = self.labels - programme.values[:, None]
        ray = shapes(self.rising, programme.ratio)
        return np.asarray(programme.prior @ (off**2 * ray))

    def prices(self, programme: Programme, dual: Dual) -> Floats:
        """Return what each column costs beyond its multipliers, per unit of gauge."""
        ray = shapes(self.rising, programme.ratio)
        worth = np.einsum("qn,qn->n", ray, programme.prices(dual, self.labels))
        return np.asarray(worth / (programme.gauge @ ray))

    def lowest(self, programme: Programme, dual: Dual) -> float:
        """Return the lowest of the prices, or infinity."""
        return float(min(self.prices(programme, dual), default=np.inf))


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """Weights of columns, their prior-averaged variance, and multipliers.

    ``master`` has no price below zero among these columns; ``dual`` nearly so among all of them.
    """

    columns: Columns
    weights: Floats
    variance: float
    dual: Dual
    master: Dual


def right_hand_side(size: int) -> Floats:
    """Return ones for the totals and zeros for the means."""
    return np.concatenate([np.ones(size), np.zeros(size)])


def solve(programme: Programme, start: Columns, more: Columns, guess: Dual) -> Solution:
    """Return a release within a relative tolerance of the best variance.

    The multipliers at which columns are priced lie halfway between those of the current columns
    and the best ones seen (Wentges' smoothing), which keeps them from jumping about.

    Parameters
    ----------
    programme
        Values, prior and ρ.
    start
        Columns from which an unbiased release can be made.
    more
        Further columns, as good as known.
    guess
        Multipliers, as good as known.

    Examples
    --------
    >>> steps = np.array([[False, True] * 3])
    >>> start = Columns(np.array([-2.0, 3, -1, 2, 0, 1]), steps)
    >>> coin = Programme(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 3.0)
    >>> nothing = Dual(np.zeros(2), np.zeros(2))
    >>> round(solve(coin, start, start, nothing).variance, 3)  # −½ or 3/2, ¾ to ¼
    0.75
    """
    columns = start.joined(more)
    master = _master(programme, columns)
    worst = price(programme, guess, more.labels, 0.02 * master.variance)[1]
    shown = guess.lowered(-worst, programme.gauge)
    proven = shown.value
    columns = _trimmed(programme, columns, master, len(start.labels))
    master = _master(programme, columns)
    for _ in range(_ROUNDS):
        trial = master.dual.towards(shown, 0.5)
        found, worst = price(
            programme, trial, columns.labels[master.weights > 0], 0.02 * master.variance
        )
        if trial.value + worst > proven:
            shown = trial.lowered(-worst, programme.gauge)
        else:
            shown = shown.lowered(-min(0.0, found.lowest(programme, shown)), programme.gauge)
        proven = shown.value
        if master.variance - proven <= _TOLERANCE * master.variance:
            break
        if found.labels.size:
            columns = columns.joined(found)
            master = _master(programme, columns)
    return dataclasses.replace(master, dual=shown)


def price(programme: Programme, dual: Dual, also: Floats, ceiling: float) -> tuple[Columns, float]:
    """Return columns cheaper than their multipliers, and the lowest price of any column.

    Labels are tried on a grid; from the local minima the best label of the ray and the best ray of
    the label alternate, which leads to the minimum over the whole line nearby.
    """
    points = np.unique(np.concatenate([also, programme.values]))
    margin = 0.1 * (points[-1] - points[0])
    count = int(np.clip(12 * margin / np.sqrt(0.5 * ceiling), *_GRID))  # a tenth of the sd apart
    grid = np.linspace(points[0] - margin, points[-1] + margin, count)
    labels = np.unique(np.concatenate([grid, points, (points[1:] + points[:-1]) / 2]))
    value, rising = programme.cheapest(dual, labels, ceiling)
    padded = np.concatenate([[np.inf], value, [np.inf]])
    valley = (value <= padded[:-2]) & (value <= padded[2:]) & (value < ceiling)
    seeds = valley | (value < 0.25 * ceiling)
    found = Columns(labels, rising).only((value < 0) & ~valley)
    best, lowest = _settled(programme, dual, Columns(labels, rising).only(seeds), ceiling)
    return best.joined(found.thinned(len(points))), lowest


def _settled(
    programme: Programme, dual: Dual, columns: Columns, ceiling: float
) -> tuple[Columns, float]:
    """Return where columns settle when label and ray are improved in turn, and the lowest price."""
    value = np.zeros(0)
    for _ in range(4 if columns.labels.size else 0):
        labels = programme.best_labels(dual, shapes(columns.rising, programme.ratio))
        value, rising = programme.cheapest(dual, labels, ceiling)
        apart = _first(labels, 1e-4 * np.sqrt(ceiling))
        columns, value = Columns(labels, rising).only(apart), value[apart]
    return columns.only(value < 0), float(min(value, default=ceiling))


def _first(labels: Floats, close: float) -> Bools:
    """Return which labels are the first of those closer together than a distance."""
    order = np.argsort(labels, kind="stable")
    first = np.ones(len(labels), dtype=bool)
    first[order[1:]] = np.diff(labels[order]) > close
    return first


def _trimmed(programme: Programme, columns: Columns, master: Solution, spared: int) -> Columns:
    """Return the cheaper columns; the first ones, which make the programme feasible, stay.

    Done once: forgetting columns later on makes the search go round in circles.
    """
    limit = _KEPT * len(programme.values)
    if len(columns.labels) <= limit:
        return columns
    prices = columns.prices(programme, master.dual)
    cheap = prices <= np.partition(prices, limit)[limit]
    return columns.only(cheap | (master.weights > 0) | (np.arange(len(prices)) < spared))


def _master(programme: Programme, columns: Columns) -> Solution:
    """Solve the programme over the given columns."""
    matrix, size = columns.equations(programme), len(programme.values)
    scale = np.abs(matrix).max(axis=0)
    costs = columns.costs(programme) / scale
    for attempt in _ATTEMPTS:
        result = _linear(costs, matrix / scale, right_hand_side(size), 0.0, *attempt)
        if result.status == 0:
            multipliers = result.eqlin.marginals
            dual = Dual(multipliers[:size], multipliers[size:])
            weights = np.maximum(result.x, 0) / scale
            return Solution(columns, weights, float(result.fun), dual, dual)
    raise TrueupError(
        f"the linear programme could not be solved: {result.message}",
        "try fewer values of q, or an epsilon nearer to 1",
    )


def refined(programme: Programme, solution: Solution) -> Floats:
    """Return weights that meet the equations to the last digits.

    The solver is content with errors of 1e-9. The same programme, for what is missing and seen
    through a magnifying glass, removes them; or else the least squares over the columns that cost
    nothing more than their multipliers.
    """
    columns, weights = solution.columns, solution.weights
    matrix, right = columns.equations(programme), right_hand_side(len(programme.values))
    once = _magnified(programme, columns, weights)
    free = columns.prices(programme, solution.master) < 1e-6 * solution.variance
    free |= weights > 0
    fitted = np.zeros_like(weights)
    fitted[free] = nnls(matrix[:, free], right)[0]
    tries = [weights, once, _magnified(programme, columns, once), fitted]
    return min(tries, key=lambda x: float(np.abs(matrix @ x - right).max()))


def _magnified(programme: Programme, columns: Columns, weights: Floats) -> Floats:
    """Return weights corrected by the programme for what they miss, if that can be solved."""
    matrix = columns.equations(programme)
    scale = np.abs(matrix).max(axis=0)
    missing = right_hand_side(len(programme.values)) - matrix @ weights
    zoom = min(1e7, 1 / max(float(np.abs(missing).max()), 1e-300))
    costs, least = columns.costs(programme) / scale, -zoom * weights * scale
    result = _linear(costs, matrix / scale, zoom * missing, least, *_ATTEMPTS[0])
    if result.status != 0:
        return weights
    return np.asarray(np.maximum(weights + result.x / scale / zoom, 0))


def _linear(
    costs: Floats,
    matrix: Floats,
    right: Floats,
    least: Floats | float,
    method: str,
    presolve: bool,
    tolerance: float,
) -> Any:
    """Minimise costs·x subject to matrix·x = right and x ≥ least."""
    low = np.broadcast_to(least, costs.shape)
    return linprog(  # type: ignore[call-overload]
        costs,
        A_eq=matrix,
        b_eq=right,
        bounds=np.column_stack([low, np.full(len(costs), np.inf)]),
        method=method,
        options={
            "presolve": presolve,
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
        },
    )
