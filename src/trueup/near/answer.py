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
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.estimator import Estimator
from trueup.exact import number, symbolic
from trueup.formula.opaque import opaque
from trueup.inverse.component import Cell
from trueup.kernels.blocks import evaluate
from trueup.near.solve import of_unbiased
from trueup.noise.operator import Branch, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.inverse.component import Component, Region, Wave
    from trueup.near.curve import Curve, Side
    from trueup.near.solve import Profile, Solution

    Truth = Mapping[sympy.Symbol, float]


@dataclasses.dataclass(frozen=True)
class Exact:
    """An unbiased factor of the estimator: a sum of components."""

    estimator: Estimator

    @property
    def statistics(self) -> tuple[sympy.Symbol, ...]:
        """The published numbers it reads."""
        return tuple(s for part in self._parts for s in part.statistics)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The statistics with branches."""
        return tuple(c for part in self._parts for c in part.cells)

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The statistics known by a generating function."""
        return tuple(wave for part in self._parts for wave in part.waves)

    @property
    def _parts(self) -> tuple[Component, ...]:
        return self.estimator._inverse.components

    def value(self, region: Region, named: bool = False) -> sympy.Expr:
        """Return the estimate on a region."""
        return sympy.Add(*(part.value(own) for part, own in self._split(region)))

    def variance(self, region: Region) -> sympy.Expr:
        """Return the estimate of its variance on a region."""
        return sympy.Add(*(part.variance(own) for part, own in self._split(region)))

    def _split(self, region: Region) -> Iterator[tuple[Component, Region]]:
        start = 0
        for part in self._parts:
            yield part, region[start : start + len(part.cells)]
            start += len(part.cells)

    def at(self, truth: Truth) -> tuple[float, float]:
        """Return mean and variance at a true value."""
        law = self.estimator._law
        own = {s.symbol: truth[s.symbol] for s in self.estimator._statistics}
        return law.expectation(own), law.sd(own) ** 2

    @cached_property
    def profile(self) -> Profile:
        """The factor as a function of one number, integrated as nearly unbiased ones are."""
        return of_unbiased(self.estimator, None)


@dataclasses.dataclass(frozen=True)
class Near:
    """One nearly unbiased factor h(n) of the estimator: a spline between its joins, f beyond."""

    solution: Solution
    waves: tuple[Wave, ...] = ()

    @property
    def symbol(self) -> sympy.Symbol:
        """The statistic it reads."""
        return self.solution.question.symbol

    @property
    def statistics(self) -> tuple[sympy.Symbol, ...]:
        """The published number it reads."""
        return (self.symbol,)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The statistic with the stretches on which g is one formula."""
        mesh, question = self.solution.plan.mesh, self.solution.question
        low, high = mesh.joins
        sides: list[Side] = ["inside"]
        if mesh.side == "inside" and mesh.left is not None:
            sides += ["below", "above"]
        elif mesh.side != "inside":  # f is inside: the spline ends where it joins
            low, high = (high, math.inf) if mesh.side == "below" else (-math.inf, low)
            sides.append(mesh.side)
        branches = tuple(Branch(side, None, {}) for side in sides)
        bounds = symbolic(question.domain.low), symbolic(question.domain.high)
        edges = (
            symbolic(number(low, "low")) if math.isfinite(low) else -sympy.oo,
            symbolic(number(high, "high")) if math.isfinite(high) else sympy.oo,
        )
        operator = Operator(branches, "", *bounds, edges=edges)
        return (Cell(question.symbol, operator, question.noise),)

    def value(self, region: Region, named: bool = False) -> sympy.Expr:
        """Return g on a region, the spline by name only if asked so."""
        curve, side = self.solution.curve, self._side(region)
        if named and side == curve.mesh.side:
            return opaque("spline", curve.spline)(self.symbol)
        return self._formula(curve, side)

    def variance(self, region: Region) -> sympy.Expr:
        """Return the estimate of its variance on a region."""
        return self._formula(self.solution.spread.curve, self._side(region))

    def _side(self, region: Region) -> Side:
        return self.cells[0].operator.branches[region[0]].side

    def _formula(self, curve: Curve, side: Side) -> sympy.Expr:
        """Return a curve on one stretch as a formula."""
        mesh = curve.mesh
        if side == mesh.side:
            return curve.spline.cases(self.symbol, whole=self.solution.question.noise.lattice)
        tail = mesh.left if mesh.right is None or side == "below" else mesh.right
        assert tail is not None  # noqa: S101  (a spline that is not everywhere joins one)
        return tail.jet[0]

    @property
    def profile(self) -> Profile:
        """The factor as a function of one number."""
        return self.solution.profile


@dataclasses.dataclass(frozen=True)
class Term:
    """One product a·h₁·h₂·…: exact in some statistics, then functions of one statistic each."""

    f: sympy.Expr
    rest: Exact | None
    factors: tuple[Exact | Near, ...]

    @property
    def parts(self) -> tuple[Exact | Near, ...]:
        """All factors."""
        return self.factors if self.rest is None else (self.rest, *self.factors)

    def products(self, what: str) -> list[Any]:
        """No factors for a sum of products: a nearly unbiased one has none of its own."""
        return []

    def worked_out(self, what: str, region: Region) -> sympy.Expr:
        """Return value or variance where x lies in the region."""
        return self.value(region) if what == "value" else self.variance(region)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All statistics with branches."""
        return tuple(cell for part in self.parts for cell in part.cells)

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The statistics known by a generating function."""
        return tuple(wave for part in self.parts for wave in part.waves)

    @property
    def statistics(self) -> tuple[sympy.Symbol, ...]:
        """The published numbers it reads."""
        return tuple(s for part in self.parts for s in part.statistics)

    def regions(self) -> Iterator[Region]:
        """Yield every choice of one branch per cell."""
        yield from product(*(range(len(c.operator.branches)) for c in self.cells))

    def value(self, region: Region, named: bool = False) -> sympy.Expr:
        """Return the estimate where x lies in the region, splines by name only if asked so."""
        return sympy.Mul(*(part.value(own, named) for part, own in self._split(region)))

    def variance(self, region: Region) -> sympy.Expr:
        """Return Π xᵢ² − Π (xᵢ² − v̂ᵢ), which estimates Π E Xᵢ² − Π (E Xᵢ)²."""
        pairs = [(part.value(own), part.variance(own)) for part, own in self._split(region)]
        if len(pairs) == 1:
            return pairs[0][1]
        if len(pairs) == 2:  # the same, with the long formula of a spline in it once
            (x, v), (y, w) = pairs
            return (x**2 - v) * w + y**2 * v
        squares = sympy.Mul(*(x**2 for x, _ in pairs))
        return squares - sympy.Mul(*(x**2 - v for x, v in pairs))

    def _split(self, region: Region) -> Iterator[tuple[Exact | Near, Region]]:
        start = 0
        for part in self.parts:
            yield part, region[start : start + len(part.cells)]
            start += len(part.cells)

    @property
    def formula(self) -> sympy.Expr:
        """The term as one expression, splines by name."""
        cases = []
        for region in sorted(self.regions(), key=lambda r: -sum(b != 0 for b in r)):
            tests = []
            for cell, branch in zip(self.cells, region, strict=True):
                side = cell.operator.branches[branch].side
                low, high = cell.operator.starts
                tests += [cell.symbol <= low] if side == "below" else []
                tests += [cell.symbol >= high] if side == "above" else []
            cases.append((self.value(region, named=True), sympy.And(*tests)))
        return cases[0][0] if len(cases) == 1 else sympy.Piecewise(*cases)


# -- expectation, bias and standard deviation at a true value --------------------------------------


class NearLaw:
    """What the noise makes of a sum of products Xₖ·Πᵢ Yₖᵢ, X exact and Y nearly unbiased.

    The statistics are independent, so E of a product is the product of the E, and
    Var = Σₖₗ (E XₖXₗ · Πᵢ E YₖᵢYₗᵢ − E Xₖ·E Xₗ · Πᵢ E Yₖᵢ·E Yₗᵢ).
    """

    def __init__(self, f: sympy.Expr, terms: Sequence[Term]) -> None:
        self.f, self.terms = f, terms
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
        near = [_pair(factor, None, truth)[0] for factor in term.factors]
        return [self._rest(term, truth)[0], *near]

    def _covariance(self, k: int, other: int, truth: Truth) -> float:
        """Return the covariance of two products, from those of their factors."""
        first, second = self.terms[k], self.terms[other]
        a, b = self._rest(first, truth), self._rest(second, truth)
        common = a[1] if k == other else (self._both(k, other, truth) - a[1] - b[1]) / 2
        pairs = [(a[0] * b[0], common)]
        own = [{f.statistics[0]: f for f in term.factors} for term in (first, second)]
        symbols = sorted({*own[0], *own[1]}, key=str)
        pairs += [_pair(own[0].get(s), own[1].get(s), truth) for s in symbols]
        mean, total = 1.0, 0.0
        for m, c in pairs:  # Π(m + c) − Πm without cancellation
            total = total * (m + c) + mean * c
            mean *= m
        return total

    def _rest(self, term: Term, truth: Truth) -> tuple[float, float]:
        """Return mean and variance of the exact factor."""
        return (1.0, 0.0) if term.rest is None else term.rest.at(truth)

    def _both(self, k: int, other: int, truth: Truth) -> float:
        """Return the variance of the sum of two exact factors."""
        rest = self._added(k, other)
        return 0.0 if rest is None else rest.at(truth)[1]

    def _sum_of_rests(self, k: int, other: int) -> Exact | None:
        rests = [t.rest.estimator for t in (self.terms[k], self.terms[other]) if t.rest is not None]
        noises = {name: n for r in rests for name, n in r.noise.items()}
        if not noises:
            return None
        domains = {name: d for r in rests for name, d in r.domain.items()}
        f = sympy.Add(*(r.estimand for r in rests), 2 - len(rests))
        return Exact(Estimator(f, noises, domains))


def _pair(
    first: Exact | Near | None, second: Exact | Near | None, truth: Truth
) -> tuple[float, float]:
    """Return E Y·E W and the covariance of two factors of one statistic; a missing one is 1."""
    parts = [f for f in (first, second) if f is not None]
    one, two = parts[0].profile, parts[-1].profile
    q, knots = np.array([truth[parts[0].statistics[0]]]), np.union1d(one.knots, two.knots)
    a, b = one.law.means([one.g, two.g], q, knots)
    if len(parts) == 1:
        return float(a[0]), 0.0
    common = one.law.means([lambda x: (one.g(x) - a) * (two.g(x) - b)], q, knots)
    return float(a[0] * b[0]), float(common[0][0])
