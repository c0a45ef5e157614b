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

from trueup.errors import TrueupError
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

DIGITS = 60
"""With which tables are computed: differences of neighbours lose some, times λ more."""


@dataclasses.dataclass(frozen=True)
class Extended(Component):
    """A component whose statistics are tied by conditions.

    ``outer`` is the component of the extension, ``near`` the condition, in the coordinates, that
    the inverse reads it; ``corners`` are tables of the values near holes.
    """

    outer: Component | None = None
    near: sympy.Basic = sympy.false
    tied: tuple[Condition, ...] = ()
    corners: tuple[Corner, ...] = ()
    theorem: str = ""

    @property
    def main(self) -> Component:
        """The component of f as it stands, for true values far from the conditions."""
        return Component(self.f, self.coordinates, self.waves, self.modes, removed=self.removed)

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
        """Return T[f₁]·T[f₂] − T[f₁·f₂]; the same extension serves both."""
        raise TrueupError(
            f"rows of {text(self.f)} that share a statistic cannot be added up under the condition "
            f"{'; '.join(map(str, self.tied))}",
            "leave the condition out for totals: their error hardly depends on it",
        )

    def holds(self, columns: Mapping[sympy.Symbol, np.ndarray]) -> np.ndarray:
        """Return where true values fulfil the conditions."""
        named = {s.name: column for s, column in columns.items()}
        allowed = np.ones(len(next(iter(named.values()))), bool)
        for c in self.tied:
            allowed &= sum(float(k) * named[n] for n, k in c.terms) >= float(c.low)
        return allowed

    def _chosen(self, region: Region, what: str) -> sympy.Expr:
        place = {symbol: value for symbol, (value, _) in self._point(region).items()}
        cases = [(c.looked_up(place, what), at(c.near, place)) for c in self.corners]
        assert self.outer is not None  # noqa: S101
        near = at(self.near, place)
        if near != sympy.false:
            cases.append((getattr(self.outer, what)(region), near))
        return _first_that_holds(cases, lambda: getattr(self.main, what)(region))


def _first_that_holds(
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
        """Return what the table holds at a place."""
        index: sympy.Expr = sympy.Integer(0)
        for symbol, first, size in zip(self.symbols, self.first, self.sizes, strict=True):
            index = index * size + (place[symbol] - first)
        return known_values(opaque("table", self._table(what))(index))

    def _table(self, what: str) -> Table:
        if what not in self._tables:
            with mpmath.workdps(DIGITS):
                self._tables[what] = Table(0, tuple(float(self._at(p, what)) for p in self.points))
        return self._tables[what]

    def _at(self, y: Point, what: str) -> mpmath.mpf:
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
