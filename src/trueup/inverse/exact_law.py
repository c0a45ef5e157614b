"""Expectation, bias and standard deviation of an estimator at a true value, inside or outside."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.inverse.existence import domain_of, is_rough
from trueup.inverse.expectation import Expectation
from trueup.inverse.growth import growth
from trueup.inverse.regularity import singularities
from trueup.kernels.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.inverse.component import Component, Region
    from trueup.inverse.solve import Inverse, Statistic

    Truth = Mapping[sympy.Symbol, float]


_MEAN = sympy.Dummy("mean", real=True)


class ExactLaw:
    """What the noise makes of an estimator at a given truth."""

    def __init__(self, inverse: Inverse, statistics: Sequence[Statistic]) -> None:
        self.inverse, self.statistics = inverse, statistics
        self.parts = [_Part(component) for component in inverse.components]

    def expectation(self, truth: Truth) -> float:
        """Return E g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        return (
            self._estimand(truth) if self._inside(truth) else sum(p.mean(truth) for p in self.parts)
        )

    def bias(self, truth: Truth) -> float:
        """Return E g − f."""
        expected = self.expectation(truth)
        if math.isnan(expected):
            return math.nan
        return 0.0 if self._inside(truth) else expected - self._estimand(truth)

    def sd(self, truth: Truth) -> float:
        """Return the root of Var g = E V̂ (outside the domain: E (g − E g)²)."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        if self.inverse.infinite:
            return math.inf
        inside = self._inside(truth)
        total = sum(p.estimated(truth) if inside else p.spread(truth) for p in self.parts)
        if not math.isfinite(total):
            raise TrueupError(
                "the variance exists, but could not be computed: the formula overflows on the way",
                "use less noise, bound the domain, or write the formula in a stabler way",
            )
        return math.sqrt(max(total, 0.0))

    def _inside(self, truth: Truth) -> bool:
        return all(truth[s.symbol] in s.domain for s in self.statistics)

    def _estimand(self, truth: Truth) -> float:
        columns = {s: np.array([q]) for s, q in truth.items()}
        return float(evaluate(self.inverse.f, columns)[0])


class _Part:
    """One component with what its integrals need."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.others = {
            s: n for w in component.waves for s, n in zip(w.statistics, w.noises, strict=True)
        }

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self._mean.at(truth)

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        return self._square.at({**truth, _MEAN: self.mean(truth)})

    def estimated(self, truth: Truth) -> float:
        """Return E V̂."""
        return self._variance.at(truth)

    @cached_property
    def _mean(self) -> Expectation:
        return self._expectation(self.component.value, 1)

    @cached_property
    def _square(self) -> Expectation:
        return self._expectation(lambda region: (self.component.value(region) - _MEAN) ** 2, 2)

    @cached_property
    def _variance(self) -> Expectation:
        return self._expectation(self.component.variance, 2)

    def _expectation(self, pieces: Callable[[Region], sympy.Expr], power: int) -> Expectation:
        rates = {s: (a * power, b * power) for s, (a, b) in self._rates.items()}
        return Expectation(pieces, self.component.cells, self.others, rates, self._breaks)

    @cached_property
    def _rates(self) -> dict[sympy.Symbol, tuple[float, float]]:
        """How fast g grows on each unbounded side, per cell."""
        cells = self.component.cells
        g = self.component.value(tuple(0 for _ in cells))
        found = {}
        for cell in cells:
            sides = ((-1, cell.operator.low), (1, cell.operator.high))
            left, right = (
                max(growth(g, cell.symbol, d).rate, 0.0) if end.is_infinite else 0.0
                for d, end in sides
            )
            found[cell.symbol] = (left, right)
        return found

    @cached_property
    def _breaks(self) -> dict[sympy.Symbol, tuple[float, ...]]:
        """Points inside the domain at which f″ may jump, per single cell."""
        return {
            c.cells[0].symbol: tuple(
                s.point for s in singularities(self.component.f, c.symbol, domain_of(c))
            )
            for c in self.component.coordinates
            if len(c.cells) == 1 and is_rough(c)
        }
