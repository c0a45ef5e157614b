"""Statistics that are tied by conditions: which extension of f beyond them makes the estimator.

Under discrete Laplace noise every unbiased estimator on a part of a box of integers is T[f̃] for
some extension f̃ of f to the whole box, T = T₁∘…∘T_d the inverse there. Where conditions such as
a + b ≥ L leave out finitely many points, holes at a corner, the best extension is the same for all
true values beyond them in every statistic (the *far rule*):

    Π (1 − Sᵢ)(1 − αᵢSᵢ) f̃ = 0 in the holes,     Sᵢ one step from the corner along statistic i,

solved from the hole farthest from the corner on. Slanted bounds such as s ≤ n leave out infinitely
many points (:mod:`trueup.inverse.extended`). Under Laplace noise f̃ must be smooth across the bound
(:mod:`trueup.inverse.additive`).
"""

from __future__ import annotations

import dataclasses
import math
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.formula.opaque import Table, opaque
from trueup.formula.text import text
from trueup.inverse import additive
from trueup.inverse.component import Cell, Component
from trueup.inverse.extended import Extended, Unextended, modes, slanted
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

    Floats = NDArray[np.float64]

_MOST = 2500  # points of a corner: 50 values of each of two statistics


def component(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    tied: Sequence[Condition],
) -> Component:
    """Return the estimator of f under conditions that tie its statistics."""
    names = set().union(*(c.names for c in tied))
    for s in statistics:
        own = s.noise.unit and s.domain.lattice <= s.noise.lattice  # cells are read at many points
        if not (s.noise.inverse(s.domain) and (own or s.symbol.name not in names)):
            reason = f"conditions are for Laplace and DiscreteLaplace noise, not for {s.noise!r}"
            raise Unextended(tied, reason)
    above = [c for c in tied if all(k < 0 for _, k in c.terms)]
    below = [c for c in tied if all(k > 0 for _, k in c.terms)]
    if above and len(above) + len(below) == len(tied) > len(above):
        raise Unextended(above, f"{below[0]} cuts a corner off already")
    joint = Joint(f, {s.symbol.name: s for s in statistics}, tuple(tied))
    if not any(s.noise.lattice for s in joint.own):
        return additive.component(joint)
    return _holed(joint) if joint.cuts_corner else slanted(joint)


class Joint:
    """A function, its statistics, and what ties them."""

    def __init__(
        self, f: sympy.Expr, statistics: Mapping[str, Statistic], tied: tuple[Condition, ...]
    ) -> None:
        self.f, self.statistics, self.tied = f, statistics, tied
        names = set().union(*(c.names for c in tied))
        self.own = [s for name, s in statistics.items() if name in names]
        self.symbols = [s.symbol for s in self.own]
        self.cells = tuple(
            Cell(s.symbol, operator, s.noise)
            for s in statistics.values()
            for operator in [s.noise.inverse(s.domain, "optimal")]
            if operator is not None
        )

    @property
    def is_whole(self) -> bool:
        """Whether all statistics that are tied are integers under discrete noise."""
        return all(s.noise.lattice for s in self.own)

    @property
    def cuts_corner(self) -> bool:
        """Whether the conditions cut off the lower corner of a box of integers, and no more."""
        rising = all(c > 0 for condition in self.tied for _, c in condition.terms)
        full = all(len(condition.terms) == len(self.own) for condition in self.tied)
        bounded = all(s.domain.bounds[0] is not None for s in self.own)
        return self.is_whole and rising and full and bounded

    def extended(self, outer: sympy.Expr, theorem: str, **options: Any) -> Extended:
        """Return the component of f with an extension."""
        box = Component(outer, self.cells, (), modes(outer))
        own = self.f, self.cells, (), modes(self.f)
        return Extended(*own, outer=box, tied=self.tied, theorem=theorem, **options)


@dataclasses.dataclass(frozen=True)
class Corner:
    """The lower corner of a box of integers: f̃, T[f̃] and V̂ wherever the inverse reads a hole."""

    low: Mapping[sympy.Symbol, int]
    tables: Mapping[str, Floats]

    @property
    def near(self) -> sympy.Basic:
        """The condition, in the statistics, that a point is in the tables once it is clamped."""
        axes = zip(self.low.items(), self.tables["f"].shape, strict=True)
        return sympy.And(*(symbol <= low + size - 1 for (symbol, low), size in axes))

    def looked_up(self, what: str, place: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
        """Return a table at a place, where a statistic stands for itself if it is inside."""
        table, index = self.tables[what], sympy.Integer(0)
        for (symbol, low), size in zip(self.low.items(), table.shape, strict=True):
            only = what != "f" and size == 2 and place[symbol] == symbol  # beside the bound
            index = index * size + (1 if only else place[symbol] - low)
        return opaque("table", Table(0, tuple(table.ravel().tolist())))(index)


def _holed(joint: Joint) -> Extended:
    """Return the estimator with holes at a corner of the box, by tables of numbers near them.

    Holes far from the corner hardly matter: of very many the nearest ones are filled.
    """
    if not set(joint.symbols) >= joint.f.free_symbols:
        raise Unextended(joint.tied, f"{text(joint.f)} has further statistics")
    low = {s.symbol: int(s.domain.low) for s in joint.own}
    most = round(_MOST ** (1 / len(low)))
    sizes = [min(float(s.domain.high - s.domain.low), most + 1.0) + 1 for s in joint.own]
    axes = [start + np.arange(size) for start, size in zip(low.values(), sizes, strict=True)]
    columns = dict(zip(low, np.meshgrid(*axes, indexing="ij"), strict=True))
    named = {symbol.name: column for symbol, column in columns.items()}
    cut = np.any([np.asarray(c.excess(named) < 0, bool) for c in joint.tied], axis=0)
    holes = [hole for hole in np.argwhere(cut).tolist() if max(hole) < most]
    values = evaluate(joint.f, {s: c.ravel() for s, c in columns.items()}).reshape(cut.shape)
    alphas = [math.exp(-1 / float(s.noise.unit)) for s in joint.own]
    last = np.max(holes, axis=0).tolist()
    with np.errstate(invalid="ignore"):  # ∞ − ∞ beside a pole, for which f is refused
        _fill(values, holes, alphas)
        tables = _inverted(values[tuple(slice(k + 3) for k in last)], alphas)
    near = tuple(slice(k + 2) for k in last)
    corner = Corner(low, {what: table[near] for what, table in tables.items()})
    theorem = (
        f"discrete Laplace noises on a box minus holes ({', '.join(map(str, joint.tied))}): the "
        "far rule extends f to what cannot be, best for true values far from the corner"
    )
    filled = corner.looked_up("f", {symbol: symbol for symbol in low})
    outer = sympy.Piecewise((filled, corner.near), (joint.f, True), evaluate=False)
    return joint.extended(outer, theorem, corner=corner)


def _fill(values: Floats, holes: Sequence[list[int]], alphas: Sequence[float]) -> None:
    """Write values into holes by the far rule, from the farthest on.

    Where the box is too narrow for the rule any value is unbiased.
    """
    rule = reduce(np.multiply.outer, [np.array([1, -(1 + a), a]) for a in alphas])
    for hole in sorted(holes, reverse=True):
        axes = zip(hole, values.shape, strict=True)
        window = np.ix_(*(np.minimum(np.arange(k, k + 3), size - 1) for k, size in axes))
        values[tuple(hole)] = 0.0
        values[tuple(hole)] = -(rule * values[window]).sum()


def _inverted(values: Floats, alphas: Sequence[float]) -> dict[str, Floats]:
    """Return f, T[f] and T[f]² − T[f²] on a box, in differences of f.

    A neighbour beyond a bound is the bound itself: with its weight that is the inverse there.
    """
    weights = []
    for alpha, size in zip(alphas, values.shape, strict=True):
        ends = (np.arange(size) == 0) | (np.arange(size) == size - 1)
        weights.append(-alpha / (1 - alpha) ** (2 - ends))
    mean, square = np.zeros_like(values), np.zeros_like(values)
    for moves in product((-1, 0, 1), repeat=len(alphas)):
        axes = zip(moves, values.shape, strict=True)
        there = np.ix_(*(np.clip(np.arange(n) + move, 0, n - 1) for move, n in axes))
        shares = [w if move else 1 - 2 * w for move, w in zip(moves, weights, strict=True)]
        share, step = reduce(np.multiply.outer, shares), values[there] - values
        mean, square = mean + share * step, square + share * step**2
    return {"f": values, "value": values + mean, "variance": mean**2 - square}
