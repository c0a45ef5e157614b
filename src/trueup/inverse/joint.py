"""Statistics that are tied by conditions: which extension of f beyond them makes the estimator.

Under discrete Laplace noise a condition leaves out finitely many points of the box, holes at a
corner (:mod:`trueup.inverse.holes`), or infinitely many beyond a slanted bound
(:mod:`trueup.inverse.slanted`). Whatever f̃ is there, T[f̃] is unbiased where f̃ = f. Under Laplace
noise f̃ must be smooth across the bound (:mod:`trueup.inverse.additive`).
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import mpmath
import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.exact import symbolic
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse import additive, holes, slanted
from trueup.inverse.component import Cell, Component, Coordinate
from trueup.inverse.extended import DIGITS, Corner, Extended, exact_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.formula.linear import Condition
    from trueup.inverse.holes import Axis, Point
    from trueup.inverse.solve import Statistic

_MOST_HOLES = 500  # points in a corner: L ≤ 31 for two statistics
_PARTS = 40  # between a corner that cannot be built and none
_PIECES = 30  # holes of a function of further statistics: each is a case of its own


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
        return slanted.component(joint)
    if all(joint.is_slanted(axes, own) for axes, own in corners):
        with contextlib.suppress(NoUnbiasedEstimator):  # not found so: the holes are finitely many
            return slanted.component(joint)
    return _holed(joint, corners)


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
        self.count: sympy.Symbol | None = None  # that may be 0, where f is a convention

    @property
    def is_whole(self) -> bool:
        """Whether all statistics that are tied are integers under discrete noise."""
        return all(s.noise.lattice for s in self.own)

    def corners(self) -> list[tuple[list[Axis], set[Point]]] | None:
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
            found.append((axes, own))
        return found

    def _holes(self, axes: list[Axis], conditions: list[Condition]) -> set[Point] | None:
        """Return the points that conditions leave out, of a weaker one where they are too many.

        A corner far beyond the noise hardly matters: a + b ≥ 31 is true where a + b ≥ 40 is.
        """
        own = holes.holes_of(axes, self._violated(conditions), _MOST_HOLES)
        least = [a.low if a.inward > 0 else a.high for a in axes]
        if own is not None or None in least or len({a.inward for a in axes}) > 1:
            return own
        names = [s.symbol.name for s in self.own]
        start = [c.low + c.excess(dict(zip(names, least, strict=True))) for c in conditions]
        for part in range(_PARTS - 1, 0, -1):
            weaker = [
                dataclasses.replace(c, low=low + (c.low - low) * sympy.Rational(part, _PARTS))
                for c, low in zip(conditions, start, strict=True)
            ]
            own = holes.holes_of(axes, self._violated(weaker), _MOST_HOLES)
            if own:
                return own
        return None

    def is_slanted(self, axes: Sequence[Axis], own: set[Point]) -> bool:
        """Whether holes are what a slanted bound such as s ≤ n leaves out of a finite box.

        They reach from one side of the box to another, and the far rule has few true values beyond
        them: its standard deviation of s/n at the bound is up to half as much again.
        """
        if len({a.inward for a in axes}) < 2 or len(own) < 2:
            return False
        corner = tuple(a.low if a.inward > 0 else a.high for a in axes)
        for i, axis in enumerate(axes):
            end = axis.high if axis.inward > 0 else axis.low
            if end is not None and (*corner[:i], end - axis.inward, *corner[i + 1 :]) in own:
                return True
        return False

    def _violated(self, conditions: Sequence[Condition]) -> Callable[[Point], bool]:
        names = [s.symbol.name for s in self.own]

        def violated(point: Point) -> bool:
            values = dict(zip(names, point, strict=True))
            return any(c.excess(values) < 0 for c in conditions)

        return violated

    def plain(self, f: sympy.Expr) -> Component:
        """Return the component of a function on the whole box."""
        return Component(f, self.coordinates, (), _plain(f))

    def extended(
        self,
        outer: sympy.Expr,
        near: sympy.Basic,
        corners: Sequence[Corner],
        theorem: str,
    ) -> Extended:
        """Return the component of f with an extension."""
        return Extended(
            self.f,
            self.coordinates,
            (),
            _plain(self.f),
            outer=self.plain(outer),
            near=near,
            tied=self.tied,
            corners=tuple(corners),
            theorem=theorem,
        )


def _plain(f: sympy.Expr) -> dict[Any, Any]:
    return {(): (f, sympy.Integer(0))}


def _axis(s: Statistic, inward: int) -> Axis:
    low, high = (None if b is None else int(b) for b in s.domain.bounds)
    with mpmath.workdps(DIGITS):
        scale = symbolic(s.noise.unit)
        number = mpmath.mpf(sympy.Float(1 / scale, DIGITS)._mpf_)
        return holes.Axis(mpmath.exp(-number), low, high, inward)


_FAR = "the far rule extends f to what cannot be, best for true values far from the corner"


def _holed(joint: Joint, corners: list[tuple[list[Axis], set[Point]]]) -> Extended:
    """Return the estimator with holes at corners of the box."""
    words = ", ".join(map(str, joint.tied))
    theorem = f"discrete Laplace noises on a box minus holes ({words}): {_FAR}"
    if {s.symbol for s in joint.own} >= joint.f.free_symbols:
        with mpmath.workdps(DIGITS):
            f = exact_values(joint.f, joint.symbols)
            for axes, own in corners:
                f = holes.extended(f, axes, own)
            tables = [Corner(f, axes, own, joint.symbols) for axes, own in corners]
        outer = sympy.Piecewise(*(t.piece for t in tables), (joint.f, True), evaluate=False)
        return joint.extended(outer, sympy.false, tables, theorem)
    pieces: list[tuple[sympy.Expr, sympy.Basic]] = []
    near: list[sympy.Basic] = []
    for axes, own in corners:
        if len(own) > _PIECES:
            raise TrueupError(
                f"{len(own)} points are left out by {words}, and {text(joint.f)} has further "
                f"statistics: at most {_PIECES} are possible then",
                "loosen the condition: it hardly matters for true values far from it",
            )
        pieces += _formulas(joint, axes, own)
        near.append(Corner(lambda p: p, axes, own, joint.symbols).near)
    outer = sympy.Piecewise(*pieces, (joint.f, True), evaluate=False)
    return joint.extended(outer, sympy.Or(*near), (), theorem)


def _formulas(
    joint: Joint, axes: list[Axis], own: set[Point]
) -> list[tuple[sympy.Expr, sympy.Basic]]:
    """Return f in the holes as formulas of the further statistics."""
    scales = [symbolic(s.noise.unit) for s in joint.own]
    exact = [a._replace(alpha=sympy.exp(-1 / b)) for a, b in zip(axes, scales, strict=True)]

    def value(point: Point) -> sympy.Expr:
        return at(joint.f, dict(zip(joint.symbols, map(sympy.Integer, point), strict=True)))

    filled = holes.extended(value, exact, own)
    return [
        (filled(e), sympy.And(*map(sympy.Eq, joint.symbols, map(sympy.Integer, e))))
        for e in sorted(own)
    ]


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
