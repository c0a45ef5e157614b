"""T[f̃] where f is known on a part of the box only, and f̃ extends it to the whole box.

Away from the points beyond the part, the inverse reads f alone and its formula is the plain one;
near them it reads the extension: a formula in cases, or, around finitely many holes, a table.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import NoUnbiasedEstimator
from trueup.formula.opaque import known_values
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse.component import Component, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.formula.linear import Condition
    from trueup.inverse.joint import Corner

    Case = tuple[sympy.Expr, sympy.Basic]


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

    ``outer`` is the component of the extension, None if that has no formula; ``corners`` say where
    it differs from f if that is at holes.
    ``empty`` is what a count is known to exceed where f is the formula ``far``: in an empty cell
    f is a convention.
    """

    outer: Component | None = None
    tied: tuple[Condition, ...] = ()
    corners: tuple[Corner, ...] = ()
    far: sympy.Expr | None = None
    empty: Condition | None = None
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

    def _chosen(self, region: Region, what: str) -> sympy.Expr:
        place, cases = self.place(region), []
        for corner in self.corners:
            if corner.tables:
                found = known_values(at(corner.looked_up(what), place))
                cases.append((found, at(corner.near, place)))
        near = sympy.false if cases else self._near(region)
        if near != sympy.false:
            cases.append((_beyond(self.outer, what, region), near))
        return first_that_holds(cases, lambda: worked_out(self.main, what, region))

    def _near(self, region: Region) -> sympy.Basic:
        """Return whether the inverse reads what differs from f, false where the region excludes it.

        That is so if a step along each integer leads beyond a condition.
        """
        place = self.place(region)
        if self.outer is None or self.outer.f == self.f:
            return sympy.false
        if self.corners:
            return at(sympy.Or(*(corner.near for corner in self.corners)), place)
        whole = {c.symbol.name: c.operator for c in self.cells if c.noise.lattice}
        box = {}
        for symbol, value in place.items():
            box[symbol.name] = Interval() if value == symbol else Interval(value, value)
            if value == symbol and symbol.name in whole:  # beside its bounds, if anything is
                low, high = whole[symbol.name].low, whole[symbol.name].high
                step = int(bool(high - low >= 2))
                box[symbol.name] = Interval(low + step, high - step)
        named, tests = {s.name: value for s, value in place.items()}, []
        for condition in (*self.tied, *([self.empty] if self.empty else [])):
            reach = sum(abs(c) for name, c in condition.terms if name in whole)
            if condition.least(box) < reach:
                tests.append(condition.excess(named) < reach)
        return sympy.Or(*tests)


def _beyond(component: Component | None, what: str, region: Region) -> sympy.Expr:
    """Return the value or the variance of an extension, which is long: read as seldom as can be."""
    assert component is not None  # noqa: S101
    if what == "variance" and all(c.noise.lattice for c in component.cells):
        return component.on_lattice(region).short_variance
    return worked_out(component, what, region)


def worked_out(component: Component, what: str, region: Region) -> sympy.Expr:
    """Return the value or the variance of a component."""
    return component.value(region) if what == "value" else component.variance(region)


def first_that_holds(cases: Sequence[Case], otherwise: Callable[[], sympy.Expr]) -> sympy.Expr:
    """Return the cases that can hold; the last one is worked out only if it can occur."""
    left: list[Case] = []
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
