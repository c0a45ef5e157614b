"""The estimator region by region: exact factors times nearly unbiased ones.

It has the shape of :class:`trueup.inverse.component.Component`: cells with branches, and a formula
for each region, so that kernels, tables and SQL take it like any other.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Literal

import sympy

from trueup.exact import number, symbolic
from trueup.formula.opaque import opaque
from trueup.inverse.component import Cell
from trueup.noise.operator import Branch, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.estimator import Estimator
    from trueup.formula.spline import Spline
    from trueup.inverse.component import Component, Region, Wave
    from trueup.near.curve import Curve
    from trueup.near.solution import Solution
    from trueup.near.spread import Spread

Side = Literal["inside", "below", "above"]


@dataclasses.dataclass(frozen=True)
class Factor:
    """One nearly unbiased factor h(n) of the estimator."""

    solution: Solution

    @property
    def symbol(self) -> sympy.Symbol:
        """The statistic it reads."""
        return self.solution.question.symbol

    @cached_property
    def cell(self) -> Cell:
        """The statistic with the stretches on which g has one formula."""
        return _cell(self.solution, self.solution.curve)

    @cached_property
    def spread(self) -> Spread:
        """The estimator of its variance."""
        from trueup.near.spread import Spread, spread

        if self.solution.spread is not None:
            return Spread(self.solution.spread, 0.0)
        return spread(self.solution)

    @cached_property
    def wide_cell(self) -> Cell:
        """The statistic with the stretches on which value and variance have one formula."""
        return _cell(self.solution, self.solution.curve, self.spread.curve)

    def value(self, side: Side) -> sympy.Expr:
        """Return g on a stretch."""
        return expression(self.solution.curve, side, self.symbol)

    def named(self, side: Side) -> sympy.Expr:
        """Return g on a stretch, a table or spline by name only."""
        curve = self.solution.curve
        spline = _spline(curve, side)
        if spline is None:
            return expression(curve, side, self.symbol)
        return opaque("table" if spline.is_table else "spline", spline)(self.symbol)

    def variance(self, side: Side) -> tuple[sympy.Expr, sympy.Expr]:
        """Return g and the estimate of its variance on a stretch of the wide cell."""
        both = (self.solution.curve, self.spread.curve)
        value, spread = (_joined(curve, side, self.symbol) for curve in both)
        return value, spread


@dataclasses.dataclass(frozen=True)
class Term:
    """One product a·h₁·h₂·…: exact in some statistics, nearly unbiased in each of the others."""

    f: sympy.Expr
    rest: Estimator | None
    factors: tuple[Factor, ...]
    wide: bool = False

    @property
    def exact(self) -> tuple[Component, ...]:
        """The exact factor, a sum of components."""
        return () if self.rest is None else self.rest._inverse.components

    @property
    def independent(self) -> tuple[Component, ...]:
        """No factors for a sum of products: a nearly unbiased one has none of its own."""
        return ()

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All statistics with branches."""
        own = (f.wide_cell if self.wide else f.cell for f in self.factors)
        return (*(cell for part in self.exact for cell in part.cells), *own)

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The statistics known by a generating function."""
        return tuple(wave for part in self.exact for wave in part.waves)

    @property
    def statistics(self) -> tuple[sympy.Symbol, ...]:
        """The published numbers it reads."""
        return (
            *(s for part in self.exact for s in part.statistics),
            *(factor.symbol for factor in self.factors),
        )

    def regions(self) -> Iterator[Region]:
        """Yield every choice of one branch per cell."""
        yield from product(*(range(len(c.operator.branches)) for c in self.cells))

    def value(self, region: Region) -> sympy.Expr:
        """Return the estimate where x lies in the region."""
        sides = self._sides(region)
        near = (f.value(side) for f, side in zip(self.factors, sides, strict=True))
        return sympy.Mul(self._rest(region, "value"), *near)

    def named(self, region: Region) -> sympy.Expr:
        """Return the estimate with tables and splines by name only."""
        sides = self._sides(region)
        near = (f.named(side) for f, side in zip(self.factors, sides, strict=True))
        return sympy.Mul(self._rest(region, "value"), *near)

    def variance(self, region: Region) -> sympy.Expr:
        """Return Π xᵢ² − Π (xᵢ² − v̂ᵢ), which estimates Π E Xᵢ² − Π (E Xᵢ)²."""
        sides = self._sides(region)
        pairs = [f.variance(side) for f, side in zip(self.factors, sides, strict=True)]
        if self.exact:
            pairs.insert(0, (self._rest(region, "value"), self._rest(region, "variance")))
        if len(pairs) == 1:
            return pairs[0][1]
        if len(pairs) == 2:  # nothing cancels: x²w + (y² − w)·v
            (x, v), (y, w) = pairs
            return x**2 * w + (y**2 - w) * v
        squares = sympy.Mul(*(x**2 for x, _ in pairs))
        return squares - sympy.Mul(*(x**2 - v for x, v in pairs))

    def _rest(self, region: Region, what: str) -> sympy.Expr:
        """Return value or variance of the exact factor."""
        if not self.exact:
            return sympy.Integer(1 if what == "value" else 0)
        parts, start = [], 0
        for part in self.exact:
            own = region[start : start + len(part.cells)]
            parts.append(getattr(part, what)(own))
            start += len(part.cells)
        return sympy.Add(*parts)

    def _sides(self, region: Region) -> list[Side]:
        first = len(region) - len(self.factors)
        pairs = zip(self.cells[first:], region[first:], strict=True)
        return [cell.operator.branches[branch].side for cell, branch in pairs]


def _cell(solution: Solution, *curves: Curve) -> Cell:
    """Return a cell whose inside is where all curves are series."""
    low, high = max(c.low for c in curves), min(c.high for c in curves)
    sides: list[Side] = ["inside"]
    if math.isfinite(low):
        sides.append("below")
    if math.isfinite(high):
        sides.append("above")
    branches = tuple(Branch(side, None, {}) for side in sides)
    domain, noise = solution.question.domain, solution.question.noise
    bounds = symbolic(domain.low), symbolic(domain.high)
    edges = (
        symbolic(number(low, "low")) if math.isfinite(low) else -sympy.oo,
        symbolic(number(high, "high")) if math.isfinite(high) else sympy.oo,
    )
    return Cell(solution.question.symbol, Operator(branches, "", *bounds, edges=edges), noise)


def _spline(curve: Curve, side: Side) -> Spline | None:
    if curve.series is None:
        return curve.left
    return {"inside": None, "below": curve.left, "above": curve.right}[side]


def expression(curve: Curve, side: Side, symbol: sympy.Symbol) -> sympy.Expr:
    """Return a curve on one stretch as a formula."""
    spline = _spline(curve, side)
    if spline is not None:
        return spline.cases(symbol, "both" if curve.series is None else side)
    assert curve.series is not None  # noqa: S101  (a curve without series is a spline)
    return curve.series.expr


def _joined(curve: Curve, side: Side, symbol: sympy.Symbol) -> sympy.Expr:
    """Return a curve on a stretch that may reach from its zone into its series."""
    value = expression(curve, side, symbol)
    if side == "inside" or curve.series is None:
        return value
    test = symbol <= curve.low if side == "below" else symbol >= curve.high
    return sympy.Piecewise((value, test), (curve.series.expr, True), evaluate=False)
