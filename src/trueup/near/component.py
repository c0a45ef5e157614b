"""The estimator region by region: exact factors times nearly unbiased ones.

It has the shape of :class:`trueup.inverse.component.Component`: cells with branches, and a formula
for each region, so that kernels, tables and SQL take it like any other. :class:`NearLaw` is its
law: expectation, bias and standard deviation at a true value.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import sympy

from trueup.estimator import Estimator
from trueup.exact import number, symbolic
from trueup.formula.opaque import opaque
from trueup.inverse.component import Cell
from trueup.kernels.blocks import evaluate
from trueup.noise.operator import Branch, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.inverse.component import Component, Region, Wave
    from trueup.inverse.solve import Statistic
    from trueup.near.construct import Solution
    from trueup.near.curve import Curve
    from trueup.near.spline import Spline
    from trueup.near.spread import Spread

    Truth = Mapping[sympy.Symbol, float]


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

    def products(self, what: str) -> list[Any]:
        """No factors for a sum of products: a nearly unbiased one has none of its own."""
        return []

    def worked_out(self, what: str, region: Region) -> sympy.Expr:
        """Return value or variance where x lies in the region."""
        return self.value(region) if what == "value" else self.variance(region)

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


# -- expectation, bias and standard deviation at a true value --------------------------------------


class NearLaw:
    """What the noise makes of a sum of products Xₖ·Πᵢ Yₖᵢ, X exact and Y nearly unbiased.

    The statistics are independent, so E of a product is the product of the E, and
    Var = Σₖₗ (E XₖXₗ · Πᵢ E YₖᵢYₗᵢ − E Xₖ·E Xₗ · Πᵢ E Yₖᵢ·E Yₗᵢ).
    """

    def __init__(
        self, f: sympy.Expr, terms: Sequence[Term], statistics: Sequence[Statistic]
    ) -> None:
        self.f, self.terms, self.statistics = f, terms, statistics
        self._added = lru_cache(maxsize=None)(self._sum_of_rests)

    def expectation(self, truth: Truth) -> float:
        """Return E g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        return sum(math.prod(self._means(term, truth)) for term in self.terms)

    def bias(self, truth: Truth) -> float:
        """Return E g − f."""
        columns = {s: np.array([q]) for s, q in truth.items()}
        return self.expectation(truth) - float(evaluate(self.f, columns)[0])

    def sd(self, truth: Truth) -> float:
        """Return the root of Var g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        total = 0.0
        for k in range(len(self.terms)):
            for other in range(k + 1):
                total += (1 + (other < k)) * self._covariance(k, other, truth)
        return math.sqrt(max(total, 0.0))

    def _means(self, term: Term, truth: Truth) -> list[float]:
        near = [_mean(factor, truth) for factor in term.factors]
        return [self._rest(term, truth)[0], *near]

    def _covariance(self, k: int, other: int, truth: Truth) -> float:
        """Return the covariance of two products, from those of their factors."""
        first, second = self.terms[k], self.terms[other]
        means, extra = [], []
        a, b = self._rest(first, truth), self._rest(second, truth)
        means.append(a[0] * b[0])
        extra.append(a[1] if k == other else (self._both(k, other, truth) - a[1] - b[1]) / 2)
        for symbol in sorted({f.symbol for t in (first, second) for f in t.factors}, key=str):
            pair = [[f for f in t.factors if f.symbol == symbol] for t in (first, second)]
            average, common = _pair(pair[0], pair[1], truth)
            means.append(average)
            extra.append(common)
        product = 1.0
        total = 0.0
        for m, c in zip(means, extra, strict=True):  # Π(m + c) − Πm without cancellation
            total = total * (m + c) + product * c
            product *= m
        return total

    def _rest(self, term: Term, truth: Truth) -> tuple[float, float]:
        """Return mean and variance of the exact factor."""
        if term.rest is None:
            return 1.0, 0.0
        return _exact(term.rest, truth)

    def _both(self, k: int, other: int, truth: Truth) -> float:
        """Return the variance of the sum of two exact factors."""
        rest = self._added(k, other)
        return 0.0 if rest is None else _exact(rest, truth)[1]

    def _sum_of_rests(self, k: int, other: int) -> Estimator | None:
        rests = [t.rest for t in (self.terms[k], self.terms[other])]
        exprs = [1 if r is None else r.estimand for r in rests]
        noises = {name: n for r in rests if r is not None for name, n in r.noise.items()}
        if not noises:
            return None
        domains = {name: d for r in rests if r is not None for name, d in r.domain.items()}
        return Estimator(exprs[0] + exprs[1], noises, domains)


def _exact(estimator: Estimator, truth: Truth) -> tuple[float, float]:
    own = {s.symbol: truth[s.symbol] for s in estimator._statistics}
    return estimator._law.expectation(own), estimator._law.sd(own) ** 2


def _mean(factor: Factor, truth: Truth) -> float:
    solution = factor.solution
    q = np.array([truth[factor.symbol]])
    return float(solution.smoothing.law(solution.curve, q, solution.curve.knots)[0][0])


def _pair(first: list[Factor], second: list[Factor], truth: Truth) -> tuple[float, float]:
    """Return E Y·E W and the covariance of two factors of one statistic; a missing one is 1."""
    if not first or not second:
        return _mean((first or second)[0], truth), 0.0
    one, two = first[0].solution, second[0].solution
    q = np.array([truth[first[0].symbol]])
    knots = np.union1d(one.curve.knots, two.curve.knots)
    a, b = (float(m[0]) for m in one.smoothing.means([one.curve, two.curve], q, knots))
    common = one.smoothing.means([lambda x: (one.curve(x) - a) * (two.curve(x) - b)], q, knots)
    return a * b, float(common[0][0])
