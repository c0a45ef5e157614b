"""T[f̃] where f is known on a part of the box only, and f̃ extends it to the whole box.

Away from the points beyond the part, the inverse reads f alone and its formula is the plain one;
near them it reads the extension: a formula in cases, or, around finitely many holes, a table.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import NoUnbiasedEstimator
from trueup.formula.opaque import Table, known_values, opaque
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse.component import Component, Region
from trueup.inverse.holes import inverted, neighbours

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.formula.linear import Condition
    from trueup.inverse.holes import Axis, Point

    Symbols = Mapping[sympy.Symbol, sympy.Expr]

_SMALL = 64  # counts up to which a table is read: it stays within the cache

DIGITS = 60
"""With which tables are computed: differences of neighbours lose some, times λ more."""


class Unextended(NoUnbiasedEstimator):
    """No extension of f beyond conditions was found: the bounds alone still give an estimator."""

    def __init__(self, f: sympy.Expr, tied: Sequence[Condition], reason: str) -> None:
        super().__init__(
            f"no unbiased estimator of {text(f)} that uses {', '.join(map(str, tied))} was found: "
            f"{reason}",
            "leave the condition out",
            proved=False,
        )
        self.tied, self.reason = tuple(tied), reason


@dataclasses.dataclass(frozen=True)
class Extended(Component):
    """A component whose statistics are tied by conditions.

    ``outer`` is the component of the extension, None if that has no formula; ``near`` is the
    condition, in the coordinates, that the inverse reads it; ``corners`` are tables of the values
    near holes. ``count`` is a statistic at whose lower bound f is a convention, for an empty cell;
    away from there f is ``far``, and its extension that of ``filled``.
    """

    outer: Component | None = None
    near: sympy.Basic = sympy.false
    tied: tuple[Condition, ...] = ()
    corners: tuple[Corner, ...] = ()
    far: sympy.Expr | None = None
    filled: Component | None = None
    count: sympy.Symbol | None = None
    theorem: str = ""

    @property
    def main(self) -> Component:
        """The component of f as it stands, for true values far from the conditions."""
        f = self.f if self.far is None else self.far
        return Component(f, self.coordinates, (), {(): (f, sympy.Integer(0))})

    @property
    def breaks_along_a_line(self) -> bool:
        """Whether a condition ties statistics of which one at least is a real number."""
        names = set().union(*(c.names for c in self.tied))
        return any(c.symbol.name in names and not c.noise.lattice for c in self.cells)

    @property
    def facts(self) -> list[str]:
        """What is to be said of the estimator beyond the theorem."""
        return [self.theorem]

    def value(self, region: Region) -> sympy.Expr:
        """Return g = T[f̃] where x lies in the region."""
        return self._chosen(region, "value")

    def variance(self, region: Region) -> sympy.Expr:
        """Return V̂ = g² − T[f̃²]."""
        return self._chosen(region, "variance")

    def covariance(self, other: Component, region: Region) -> sympy.Expr:
        """Return T[f₁]·T[f₂] − T[f₁·f₂] of extensions."""
        own, others = self.outer, getattr(other, "outer", None)
        assert own is not None and others is not None  # noqa: S101, PT018
        return own.covariance(others, region)

    def holds(self, columns: Mapping[sympy.Symbol, np.ndarray]) -> np.ndarray:
        """Return where true values fulfil the conditions."""
        named = {s.name: column for s, column in columns.items()}
        allowed = np.ones(len(next(iter(named.values()))), bool)
        for c in self.tied:
            allowed &= sum(float(k) * named[n] for n, k in c.terms) >= float(c.low)
        return allowed

    def check_beyond(self) -> None:
        """Raise Unextended where f has no extension that can be evaluated."""

    def _is_near(self, place: Symbols) -> sympy.Basic:
        """Return whether the inverse reads the extension, false where the region excludes it."""
        whole = {c.symbol: c.operator for c in self.cells if c.noise.lattice}
        box = {symbol.name: Interval() for symbol in place}
        for symbol, value in place.items():
            if value != symbol:
                box[symbol.name] = Interval(value, value)
            elif symbol in whole:  # beside its bounds, if anything is
                low, high = whole[symbol].low, whole[symbol].high
                step = int(bool(high - low >= 2))
                box[symbol.name] = Interval(low + step, high - step)
        for condition in self.tied:
            reach = sum(abs(c) for name, c in condition.terms if name in {s.name for s in whole})
            if condition.least(box) < reach:
                return at(self.near, place)
        return sympy.false

    @property
    def _low(self) -> sympy.Expr:
        return next(c.operator.low for c in self.cells if c.symbol == self.count)

    def _chosen(self, region: Region, what: str) -> sympy.Expr:
        place = self.place(region)
        cases = [(c.looked_up(place, what), at(c.near, place)) for c in self.corners]
        outer, near = self.outer, self._is_near(place)
        if self.filled is not None:
            if place[self.count] != self.count:  # at or below the bound
                return _worked_out(outer, what, region)
            first = place[self.count] - 1 - self._low
            one = at(_worked_out(outer, what, region), {self.count: self._low + 1})
            cases.append((one, first <= 0))
            outer = self.filled
        if near != sympy.false:
            cases.append((_worked_out(outer, what, region), near))
        return first_that_holds(cases, lambda: getattr(self.main, what)(region))


def _worked_out(outer: Component | None, what: str, region: Region) -> sympy.Expr:
    """Return the value or the variance of an extension, which is long: read as seldom as can be."""
    assert outer is not None  # noqa: S101
    if what == "variance" and all(c.noise.lattice for c in outer.cells):
        return outer.on_lattice(region).short_variance
    found: sympy.Expr = getattr(outer, what)(region)
    return found


def first_that_holds(
    cases: Sequence[tuple[sympy.Expr, sympy.Basic]], otherwise: Callable[[], sympy.Expr]
) -> sympy.Expr:
    """Return the cases that can hold; the last one is worked out only if it can occur."""
    left: list[tuple[sympy.Expr, sympy.Basic]] = []
    for value, test in cases:
        if test == sympy.false:
            continue
        left.append((value, test))
        if test == sympy.true:
            break
    else:
        left.append((otherwise(), sympy.true))
    if left[0][1] == sympy.true:
        return left[0][0]
    return sympy.Piecewise(*left, evaluate=False)


class Corner:
    """Values and variances near holes, computed once, as tables over a grid of integers."""

    def __init__(
        self,
        f: Callable[[Point], object],
        axes: Sequence[Axis],
        holes: set[Point],
        symbols: Sequence[sympy.Symbol],
    ) -> None:
        self.f, self.axes, self.symbols = f, axes, symbols
        self.points = neighbours(axes, holes)
        grids = [sorted({p[i] for p in self.points}) for i in range(len(axes))]
        self.first = [g[0] for g in grids]
        self.sizes = [len(g) for g in grids]
        inside = zip(axes, symbols, grids, strict=True)
        self.near = sympy.And(*(s <= g[-1] if a.inward > 0 else s >= g[0] for a, s, g in inside))
        self._tables: dict[str, Table] = {}

    def looked_up(self, place: Symbols, what: str) -> sympy.Expr:
        """Return the value or the variance at a place, or f itself."""
        index: sympy.Expr = sympy.Integer(0)
        for axis, symbol, first, size in zip(
            self.axes, self.symbols, self.first, self.sizes, strict=True
        ):
            at_place = place[symbol]
            if what != "f" and size == 2 and at_place == symbol:  # not at the bound: one is left
                at_place = sympy.Integer(first + (axis.inward > 0))
            index = index * size + (at_place - first)
        return known_values(opaque("table", self._table(what))(index))

    @property
    def piece(self) -> tuple[sympy.Expr, sympy.Basic]:
        """F near the holes, and in them, as a case of a formula."""
        return self.looked_up({s: s for s in self.symbols}, "f"), self.near

    def _table(self, what: str) -> Table:
        if what not in self._tables:
            with mpmath.workdps(DIGITS):
                self._tables[what] = Table(0, tuple(float(self._at(p, what)) for p in self.points))
        return self._tables[what]

    def _at(self, y: Point, what: str) -> mpmath.mpf:
        if what == "f":
            return self.f(y)
        value = inverted(self.f, self.axes, y)
        if what == "value":
            return value
        return value**2 - inverted(lambda p: self.f(p) ** 2, self.axes, y)  # type: ignore[operator]


def exact_values(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Callable[[Point], mpmath.mpf]:
    """Return f at integer points, with many digits."""

    def value(point: Point) -> mpmath.mpf:
        found = known_values(at(f, dict(zip(symbols, map(sympy.Integer, point), strict=True))))
        if found.is_Rational:
            return mpmath.mpf(int(found.p)) / int(found.q)
        number = found.evalf(DIGITS)
        return mpmath.mpf(number._mpf_) if number.is_Float else mpmath.nan

    return value
