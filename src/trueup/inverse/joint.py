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
import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.formula.opaque import Table, opaque
from trueup.formula.text import text
from trueup.inverse import additive
from trueup.inverse.component import Cell, Component, Coordinate
from trueup.inverse.extended import Extended, Unextended, modes, slanted
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

Point = tuple[int, ...]
Values = Callable[[Point], Any]

_MOST_HOLES = 500  # points in a corner: L ≤ 31 for two statistics


def component(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    tied: Sequence[Condition],
) -> Component:
    """Return the estimator of f under conditions that tie its statistics."""
    names = set().union(*(c.names for c in tied))
    for s in statistics:
        alone = s.symbol.name not in names and s.noise.inverse(s.domain, "optimal")
        if not (alone or s.noise.allows_conditions(s.domain)):
            reason = f"conditions are for Laplace and DiscreteLaplace noise, not for {s.noise!r}"
            raise Unextended(tied, reason)
    joint = Joint(f, {s.symbol.name: s for s in statistics}, tuple(tied))
    if not any(s.noise.lattice for s in joint.own):
        return additive.component(joint)
    corners = joint.corners()
    return slanted(joint) if corners is None else _holed(joint, corners)


class Joint:
    """A function, its statistics, and what ties them."""

    def __init__(
        self, f: sympy.Expr, statistics: Mapping[str, Statistic], tied: tuple[Condition, ...]
    ) -> None:
        self.f, self.statistics, self.tied = f, statistics, tied
        names = set().union(*(c.names for c in tied))
        self.own = [s for name, s in statistics.items() if name in names]
        self.symbols = [s.symbol for s in self.own]
        self.coordinates = tuple(
            Coordinate(s.symbol, (Cell(s.symbol, operator, s.noise),))
            for s in statistics.values()
            for operator in [s.noise.inverse(s.domain, "optimal")]
            if operator is not None
        )

    @property
    def is_whole(self) -> bool:
        """Whether all statistics that are tied are integers under discrete noise."""
        return all(s.noise.lattice for s in self.own)

    def corners(self) -> list[Corner] | None:
        """Return the corners that the conditions cut off, None if one of them does more."""
        box = [s.domain for s in self.own]
        by_side: dict[int, list[Condition]] = {}
        for condition in self.tied:
            signs = {int(sympy.sign(c)) for _, c in condition.terms}
            if len(signs) > 1 or len(condition.terms) < len(box) or not self.is_whole:
                return None
            by_side.setdefault(signs.pop(), []).append(condition)
        if any(domain.bounds[side < 0] is None for side in by_side for domain in box):
            return None
        return [Corner(self.symbols, box, *known) for known in by_side.items()]

    def plain(self, f: sympy.Expr) -> Component:
        """Return the component of a function on the whole box."""
        return Component(f, self.coordinates, (), modes(f))

    def extended(self, outer: sympy.Expr, theorem: str, **options: Any) -> Extended:
        """Return the component of f with an extension."""
        own = self.f, self.coordinates, (), modes(self.f), self.plain(outer)
        return Extended(*own, tied=self.tied, theorem=theorem, **options)


@dataclasses.dataclass(frozen=True)
class Corner:
    """The lower corner of a box of integers, the upper one if ``inward`` is −1, with holes in it.

    ``tables`` are f̃, T[f̃] and V̂ at the integers from which the inverse reads a hole.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from trueup.domain import Integers
    >>> from trueup.formula.linear import conditions
    >>> counts = [Integers(0, None), Integers(0, None)]
    >>> corner = Corner(sympy.symbols("a b"), counts, 1, conditions("a + b >= 1")[1])
    >>> share = corner.filled(lambda s: Fraction(s[1], sum(s)), [Fraction(1, 2), Fraction(1, 2)])
    >>> corner.holes, share((0, 0))
    ([(0, 0)], Fraction(1, 2))
    """

    symbols: Sequence[sympy.Symbol]
    box: Sequence[Interval]
    inward: int
    conditions: Sequence[Condition]
    tables: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)

    def moved(self, point: Point, steps: Sequence[int]) -> Point:
        """Return the point so many steps farther from the corner, not beyond the box."""
        axes = zip(point, steps, self.box, strict=True)
        return tuple(int(min(max(k + self.inward * j, d.low), d.high)) for k, j, d in axes)

    @cached_property
    def holes(self) -> list[Point]:
        """The points that conditions leave out, farthest first; of too many the nearest ones.

        A corner far beyond the noise hardly matters: a + b ≥ 31 is true where a + b ≥ 40 is.
        """
        names = [symbol.name for symbol in self.symbols]
        steps = np.eye(len(names), dtype=int).tolist()

        def excess(point: Point) -> float:
            values = dict(zip(names, point, strict=True))
            return min(float(c.excess(values)) for c in self.conditions)

        start = tuple(int(d.high if self.inward < 0 else d.low) for d in self.box)
        found, seen, queue = dict[Point, float](), {start}, [(excess(start), start)]
        while queue and queue[0][0] < 0:
            least, point = heapq.heappop(queue)
            if len(found) == _MOST_HOLES:
                found = {p: e for p, e in found.items() if e < least}
                break
            found[point] = least
            for there in {self.moved(point, step) for step in steps} - seen:
                seen.add(there)
                heapq.heappush(queue, (excess(there), there))
        return sorted(found, reverse=self.inward > 0)

    def filled(self, f: Values, alphas: Sequence[Any]) -> Values:
        """Return f with values in the holes by the far rule: fractions or floats."""
        steps = [(1, -(1 + alpha), alpha) for alpha in alphas]
        known: dict[Point, Any] = {}
        for hole in self.holes:
            total = 0
            for js in product(range(3), repeat=len(steps)):
                there = self.moved(hole, js)
                if there != hole:  # else the box is too narrow for the rule: any value is unbiased
                    weight = math.prod(w[j] for w, j in zip(steps, js, strict=True))
                    total = total - weight * (known[there] if there in known else f(there))
            known[hole] = total
        return lambda point: known[point] if point in known else f(point)

    def along(self, reach: int) -> list[range]:
        """Return the values along each axis, up to so many steps beyond the holes."""
        points = {*self.holes, *(self.moved(h, [reach] * len(h)) for h in self.holes)}
        return [range(min(ks), max(ks) + 1) for ks in zip(*points, strict=True)]

    @property
    def near(self) -> sympy.Basic:
        """The condition, in the statistics, that a point is in the tables once it is clamped."""
        inside = zip(self.symbols, self.along(1), strict=True)
        return sympy.And(*(s <= ks[-1] if self.inward > 0 else s >= ks[0] for s, ks in inside))

    def looked_up(self, what: str, place: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
        """Return a table at a place, where a statistic stands for itself if it is inside."""
        index: sympy.Expr = sympy.Integer(0)
        for symbol, ks in zip(self.symbols, self.along(1), strict=True):
            only = what != "f" and len(ks) == 2 and place[symbol] == symbol  # beside the bound
            spot = ks[self.inward > 0] if only else place[symbol]
            index = index * len(ks) + (spot - ks[0])
        return opaque("table", Table(0, self.tables[what]))(index)

    def tabled(self, f: Values, alphas: Sequence[float]) -> Corner:
        """Return the corner with tables of f, of T[f] and of T[f]² − T[f²], in differences of f.

        A neighbour beyond a bound is the bound itself: with its weight that is the inverse there.
        """
        read = self.along(2)
        values = np.reshape([f(p) for p in product(*read)], [len(ks) for ks in read])
        start, alpha = np.array([ks[0] for ks in read]), np.array(alphas)
        low, high = np.array([(d.low, d.high) for d in self.box], float).T
        points = np.array([*product(*self.along(1))])
        own = values[tuple((points - start).T)]
        weight = -alpha / (1 - alpha) ** (2 - ((points == low) | (points == high)))
        mean, square = np.zeros_like(own), np.zeros_like(own)
        for moves in product((-1, 0, 1), repeat=len(alphas)):
            there = np.clip(points + moves, low, high).astype(int)
            step = values[tuple((there - start).T)] - own
            share = np.where(moves, weight, 1 - 2 * weight).prod(axis=1)
            mean, square = mean + share * step, square + share * step**2
        found = {"f": own, "value": own + mean, "variance": mean**2 - square}
        return dataclasses.replace(self, tables={k: tuple(v.tolist()) for k, v in found.items()})


def _holed(joint: Joint, corners: list[Corner]) -> Extended:
    """Return the estimator with holes at corners of the box, by tables of numbers near them."""
    if not set(joint.symbols) >= joint.f.free_symbols:
        raise Unextended(joint.tied, f"{text(joint.f)} has further statistics")
    points = [p for corner in corners for p in product(*corner.along(2))]
    columns = dict(zip(joint.symbols, np.array(points, float).T, strict=True))
    filled = dict(zip(points, evaluate(joint.f, columns).tolist(), strict=True)).__getitem__
    alphas = [math.exp(-1 / float(s.noise.unit)) for s in joint.own]
    for corner in corners:
        filled = corner.filled(filled, alphas)
    corners = [corner.tabled(filled, alphas) for corner in corners]
    place = {symbol: symbol for symbol in joint.symbols}
    pieces = [(corner.looked_up("f", place), corner.near) for corner in corners]
    theorem = (
        f"discrete Laplace noises on a box minus holes ({', '.join(map(str, joint.tied))}): the "
        "far rule extends f to what cannot be, best for true values far from the corner"
    )
    outer = sympy.Piecewise(*pieces, (joint.f, True), evaluate=False)
    return joint.extended(outer, theorem, corners=tuple(corners))
