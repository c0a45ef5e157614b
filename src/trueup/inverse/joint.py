"""Statistics that are tied by conditions: which extension of f beyond them makes the estimator.

Under discrete Laplace noise every unbiased estimator on a part of a box of integers is T[f̃] for
some extension f̃ of f to the whole box, T = T₁∘…∘T_d the inverse there. Where conditions leave out
finitely many points, holes at a corner, the best extension is the same for all true values beyond
them in every statistic (the *far rule*):

    Π (1 − Sᵢ)(1 − αᵢSᵢ) f̃ = 0 in the holes,     Sᵢ one step from the corner along statistic i,

solved from the hole farthest from the corner on. Slanted bounds such as s ≤ n leave out infinitely
many points (:mod:`trueup.inverse.extended`). Under Laplace noise f̃ must be smooth across the bound
(:mod:`trueup.inverse.additive`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.exact import symbolic
from trueup.formula.opaque import Table, known_values, opaque
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse import additive
from trueup.inverse.component import Cell, Component, Coordinate
from trueup.inverse.extended import Extended, slanted
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

    Floats = NDArray[np.float64]

Point = tuple[int, ...]
Values = Callable[[Point], Any]

_MOST_HOLES = 500  # points in a corner: L ≤ 31 for two statistics
_PARTS = 40  # between a corner that cannot be built and none
_PIECES = 30  # holes of a function of further statistics: each is a case of its own
_FAR = "the far rule extends f to what cannot be, best for true values far from the corner"


def component(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    tied: Sequence[Condition],
) -> Component:
    """Return the estimator of f under conditions that tie its statistics."""
    _check_noises(f, statistics, tied)
    coordinates = tuple(
        Coordinate(s.symbol, (Cell(s.symbol, operator, s.noise),))
        for s in statistics
        for operator in [s.noise.inverse(s.domain, "optimal")]
        if operator is not None
    )
    joint = Joint(f, coordinates, {s.symbol.name: s for s in statistics}, tuple(tied))
    if not any(s.noise.lattice for s in joint.own):
        return additive.component(joint)
    corners = joint.corners() if joint.is_whole else None
    if corners is None:
        return slanted(joint)
    if all(corner.is_slanted for corner in corners):
        with contextlib.suppress(NoUnbiasedEstimator):  # not found so: the holes are finitely many
            return slanted(joint)
    return _holed(joint, corners)


def _check_noises(
    f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> None:
    """Refuse noises under which conditions between statistics are not known to help."""
    names = set().union(*(c.names for c in tied))
    for s in statistics:
        known = s.noise.allows_conditions(s.domain)
        if known or (s.symbol.name not in names and s.noise.inverse(s.domain, "optimal")):
            continue
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(f)} that uses {', '.join(map(str, tied))} was found "
            f"under {s.noise!r} of {s.symbol.name}",
            "conditions between statistics are for Laplace and DiscreteLaplace noise; leave them "
            "out otherwise",
            proved=False,
        )


class Axis(NamedTuple):
    """One statistic: α = e^{−1/b}, its bounds (None on an open side), and where its holes are.

    ``inward`` is 1 with holes at the lower bound, −1 at the upper one.
    """

    alpha: Any
    low: int | None
    high: int | None
    inward: int = 1

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """The bound where the holes are, and the other one."""
        return (self.low, self.high) if self.inward > 0 else (self.high, self.low)

    def clamp(self, y: int) -> int:
        """Return the nearest number within the bounds."""
        y = y if self.low is None else max(y, self.low)
        return y if self.high is None else min(y, self.high)

    def beside(self, values: Iterable[int]) -> list[int]:
        """Return what the inverse reads at these values: they, and their neighbours."""
        return sorted({self.clamp(k + step) for k in values for step in (-1, 0, 1)})

    def inverse(self, values: Sequence[int], read: Sequence[int]) -> Floats:
        """Return T at these values as a matrix.

        Examples
        --------
        >>> Axis(0.5, 0, None).inverse([0, 1], [0, 1, 2])
        array([[ 2., -1.,  0.],
               [-2.,  5., -2.]])
        """
        found = np.zeros((len(values), len(read)))
        for row, k in zip(found, values, strict=True):
            at_bound = k in (self.low, self.high)
            weight = self.alpha / (1 - self.alpha) ** (1 if at_bound else 2)
            for near in {self.clamp(k - 1), self.clamp(k + 1)} - {k}:
                row[read.index(near)] = -weight
            row[read.index(k)] = 1 - row.sum()
        return found


@dataclasses.dataclass(frozen=True)
class Corner:
    """A corner of the box with holes, and the grid of all points at which the inverse reads one.

    ``tables`` are f, value and variance on the grid, if they are numbers.
    """

    axes: Sequence[Axis]
    holes: set[Point]
    symbols: Sequence[sympy.Symbol]
    tables: Mapping[str, Floats] = dataclasses.field(default_factory=dict)

    @property
    def is_slanted(self) -> bool:
        """Whether the holes are what a slanted bound such as s ≤ n leaves out of a finite box.

        They reach from one side of the box to another, and the far rule has few true values beyond
        them: its standard deviation of s/n at the bound is up to half as much again.
        """
        if len({a.inward for a in self.axes}) < 2 or len(self.holes) < 2:
            return False
        corner = tuple(a.ends[0] for a in self.axes)
        return any(
            end is not None and (*corner[:i], end - a.inward, *corner[i + 1 :]) in self.holes
            for i, a in enumerate(self.axes)
            for end in [a.ends[1]]
        )

    @property
    def grids(self) -> list[list[int]]:
        """The values along each axis."""
        sides = zip(self.axes, zip(*self.holes, strict=True), strict=True)
        return [a.beside(ks) for a, ks in sides]

    @property
    def read(self) -> list[list[int]]:
        """The values along each axis that the inverse on the grid reads."""
        return [a.beside(grid) for a, grid in zip(self.axes, self.grids, strict=True)]

    @property
    def near(self) -> sympy.Basic:
        """The condition, in the statistics, that a point is on the grid once it is clamped."""
        inside = zip(self.axes, self.symbols, self.grids, strict=True)
        return sympy.And(*(s <= g[-1] if a.inward > 0 else s >= g[0] for a, s, g in inside))

    def looked_up(self, what: str, place: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
        """Return a table at a place, where a statistic stands for itself if it is inside."""
        index: sympy.Expr = sympy.Integer(0)
        for axis, symbol, grid in zip(self.axes, self.symbols, self.grids, strict=True):
            only = what != "f" and len(grid) == 2 and place[symbol] == symbol  # beside the bound
            spot = grid[axis.inward > 0] if only else place[symbol]
            index = index * len(grid) + (spot - grid[0])
        table = Table(0, tuple(self.tables[what].ravel().tolist()))
        return known_values(opaque("table", table)(index))

    def tabled(self, f: Values) -> Corner:
        """Return the corner with tables of f, of T[f] and of T[f]² − T[f²].

        The variance is a sum over the axes, T₁⋯Tᵢ₋₁ of what noise i adds, in differences along it.
        """
        own = np.reshape([f(p) for p in product(*self.grids)], [len(g) for g in self.grids])
        g = np.reshape([f(p) for p in product(*self.read)], [len(k) for k in self.read])
        sides = list(zip(self.axes, self.grids, self.read, strict=True))
        matrices = [axis.inverse(grid, read) for axis, grid, read in sides]
        variance = np.zeros_like(own)
        for i in reversed(range(len(sides))):
            first = np.moveaxis(g, i, 0)
            centre = first[[sides[i][2].index(k) for k in sides[i][1]]]
            steps = first[None] - centre[:, None]
            mean, square = (np.einsum("yk,yk...->y...", matrices[i], d) for d in (steps, steps**2))
            g, added = np.moveaxis(centre + mean, 0, i), np.moveaxis(mean**2 - square, 0, i)
            for j in range(i):
                added = np.moveaxis(np.tensordot(matrices[j], added, (1, j)), 0, j)
            variance += added
        return dataclasses.replace(self, tables={"f": own, "value": g, "variance": variance})


class Joint:
    """A function, its statistics, and what ties them."""

    def __init__(
        self,
        f: sympy.Expr,
        coordinates: tuple[Coordinate, ...],
        statistics: Mapping[str, Statistic],
        tied: tuple[Condition, ...],
    ) -> None:
        self.f, self.coordinates, self.statistics, self.tied = f, coordinates, statistics, tied
        names = set().union(*(c.names for c in tied))
        self.own = [s for name, s in statistics.items() if name in names]
        self.symbols = [s.symbol for s in self.own]

    @property
    def is_whole(self) -> bool:
        """Whether all statistics that are tied are integers under discrete noise."""
        return all(s.noise.lattice for s in self.own)

    def corners(self) -> list[Corner] | None:
        """Return the corners that the conditions cut off, None if one of them does more."""
        by_corner: dict[tuple[int, ...], list[Condition]] = {}
        for condition in self.tied:
            signs = dict(condition.terms)
            corner = tuple(int(sympy.sign(signs.get(s.symbol.name, 0))) for s in self.own)
            by_corner.setdefault(corner, []).append(condition)
        found = []
        for corner, conditions in by_corner.items():
            axes = [_axis(s, inward or 1) for s, inward in zip(self.own, corner, strict=True)]
            own = self._holes(axes, conditions)
            if own is None or 0 in corner:
                return None
            found.append(Corner(axes, own, self.symbols))
        return found

    def _holes(self, axes: list[Axis], conditions: list[Condition]) -> set[Point] | None:
        """Return the points that conditions leave out, of weaker ones where they are too many.

        A corner far beyond the noise hardly matters: a + b ≥ 31 is true where a + b ≥ 40 is.
        """
        corner = [a.ends[0] for a in axes]
        start = tuple(end for end in corner if end is not None)
        if len(start) < len(axes):
            return None
        names = [s.symbol.name for s in self.own]
        missing = [c.excess(dict(zip(names, start, strict=True))) for c in conditions]
        weakest = _PARTS if len({a.inward for a in axes}) > 1 else 1
        for part in range(_PARTS, weakest - 1, -1):
            least = [m * sympy.Rational(_PARTS - part, _PARTS) for m in missing]

            def violated(point: Point, least: Sequence[sympy.Expr] = least) -> bool:
                values = dict(zip(names, point, strict=True))
                return any(c.excess(values) < e for c, e in zip(conditions, least, strict=True))

            own = holes_of(axes, start, violated)
            if own is not None:
                return own
        return None

    def plain(self, f: sympy.Expr) -> Component:
        """Return the component of a function on the whole box."""
        return Component(f, self.coordinates, (), {(): (f, sympy.Integer(0))})

    def extended(self, outer: sympy.Expr, theorem: str, **options: Any) -> Extended:
        """Return the component of f with an extension."""
        own = self.plain(self.f)
        return Extended(
            own.f,
            own.coordinates,
            (),
            own.modes,
            outer=self.plain(outer),
            tied=self.tied,
            theorem=theorem,
            **options,
        )


def _axis(s: Statistic, inward: int) -> Axis:
    low, high = (None if b is None else int(b) for b in s.domain.bounds)
    return Axis(math.exp(-1 / float(s.noise.unit)), low, high, inward)


def _holed(joint: Joint, corners: Sequence[Corner]) -> Extended:
    """Return the estimator with holes at corners of the box."""
    words = ", ".join(map(str, joint.tied))
    theorem = f"discrete Laplace noises on a box minus holes ({words}): {_FAR}"
    pieces: list[tuple[sympy.Expr, sympy.Basic]] = []
    if {s.symbol for s in joint.own} >= joint.f.free_symbols:
        filled = _values(joint, corners)
        for corner in corners:
            filled = extended(filled, corner.axes, corner.holes)
        corners = [corner.tabled(filled) for corner in corners]
    for corner in corners:
        if corner.tables:
            pieces.append((corner.looked_up("f", {x: x for x in joint.symbols}), corner.near))
        elif len(corner.holes) > _PIECES:
            raise TrueupError(
                f"{len(corner.holes)} points are left out by {words}, and {text(joint.f)} has "
                f"further statistics: at most {_PIECES} are possible then",
                "loosen the condition: it hardly matters for true values far from it",
            )
        else:
            pieces += _formulas(joint, corner)
    outer = sympy.Piecewise(*pieces, (joint.f, True), evaluate=False)
    return joint.extended(outer, theorem, corners=tuple(corners))


def _values(joint: Joint, corners: Sequence[Corner]) -> Values:
    """Return f at the integers that the far rule reads."""
    points = [p for corner in corners for p in product(*corner.read)]
    columns = dict(zip(joint.symbols, np.array(points, float).T, strict=True))
    return dict(zip(points, evaluate(joint.f, columns).tolist(), strict=True)).__getitem__


def _formulas(joint: Joint, corner: Corner) -> list[tuple[sympy.Expr, sympy.Basic]]:
    """Return f in the holes as formulas of the further statistics."""
    scales = [symbolic(s.noise.unit) for s in joint.own]
    exact = [a._replace(alpha=sympy.exp(-1 / b)) for a, b in zip(corner.axes, scales, strict=True)]

    def value(point: Point) -> sympy.Expr:
        place = dict(zip(joint.symbols, map(sympy.Integer, point), strict=True))
        return known_values(at(joint.f, place))

    filled = extended(value, exact, corner.holes)
    return [
        (filled(e), sympy.And(*map(sympy.Eq, joint.symbols, map(sympy.Integer, e))))
        for e in sorted(corner.holes)
    ]


def extended(f: Values, axes: Sequence[Axis], holes: set[Point]) -> Values:
    """Return f with values in the holes by the far rule.

    Numbers may be fractions, floats, or formulas.

    Examples
    --------
    >>> from fractions import Fraction
    >>> half = Axis(Fraction(1, 2), 0, None)
    >>> extended(lambda s: Fraction(s[1], sum(s)), [half, half], {(0, 0)})((0, 0))
    Fraction(1, 2)
    """
    known: dict[Point, Any] = {}
    steps = [(1, -(1 + axis.alpha), axis.alpha) for axis in axes]

    def value(point: Point) -> Any:
        if point not in known:
            known[point] = far(point) if point in holes else f(point)
        return known[point]

    def far(hole: Point) -> Any:
        total = 0
        for js in product(range(3), repeat=len(axes)):
            near = zip(axes, hole, js, strict=True)
            moved = tuple(a.clamp(k + a.inward * j) for a, k, j in near)
            if moved != hole:  # else the box is too narrow for the rule: any value is unbiased
                weight = math.prod(w[j] for w, j in zip(steps, js, strict=True))
                total = total - weight * value(moved)
        return total

    return value


def holes_of(
    axes: Sequence[Axis], corner: Point, violated: Callable[[Point], bool]
) -> set[Point] | None:
    """Return the points around a corner that violate conditions, None if they are too many."""
    found: set[Point] = set()
    queue = [corner]
    while queue and len(found) <= _MOST_HOLES:
        point = queue.pop()
        inside = all(a.clamp(k) == k for a, k in zip(axes, point, strict=True))
        if inside and point not in found and violated(point):
            found.add(point)
            moves = ((*point[:i], point[i] + a.inward, *point[i + 1 :]) for i, a in enumerate(axes))
            queue += moves
    return found if len(found) <= _MOST_HOLES else None
