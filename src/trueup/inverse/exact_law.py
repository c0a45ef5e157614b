"""Expectation, bias and standard deviation of an estimator at a true value, inside or outside.

They follow from those of its components, and those of a component from its independent factors:
the mean of a product is the product of the means, and with v the variance of a factor and m its
mean, v₁·(v₂ + m₂²) + m₁²·v₂ is the variance, in which nothing cancels.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.inverse.additive import TiedLaw
from trueup.inverse.existence import growing
from trueup.inverse.expectation import Expectation, exactly, too_large
from trueup.inverse.extended import Extended
from trueup.inverse.growth import Growth, growth
from trueup.inverse.on_integers import OnIntegers
from trueup.inverse.smooth import breaks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.inverse.component import Component, Region
    from trueup.inverse.solve import Inverse, Statistic

    Truth = Mapping[sympy.Symbol, float]
    Moments = tuple[float, float]

_MOST_CELLS, _MOST_REAL = 4, 2
"""Statistics in which f is no polynomial: for each there are three regions, and a sum, or panels
if one of them is continuous."""

_MEAN = sympy.Dummy("mean", real=True)


class ExactLaw:
    """What the noise makes of an estimator at a given truth."""

    def __init__(self, inverse: Inverse, statistics: Sequence[Statistic]) -> None:
        self.inverse, self.statistics = inverse, statistics

    @cached_property
    def _parts(self) -> list[list[Law | TiedLaw]]:
        """The laws of the factors of each component."""
        return [list(map(_law, _factors(c))) for c in self.inverse.components]

    def expectation(self, truth: Truth) -> float:
        """Return E g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        return sum(math.prod(law.mean(truth) for law in part) for part in self._parts)

    def bias(self, truth: Truth) -> float:
        """Return E g − f."""
        f = exactly(self.inverse.f, truth)
        f = exactly(self.inverse.estimand, truth) if math.isnan(f) else f
        return self.expectation(truth) - f

    def sd(self, truth: Truth) -> float:
        """Return the root of E (g − E g)²."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        if self.inverse.infinite:
            return math.nan if self.inverse.spread_is_unknown else math.inf
        total = sum(_variance([law.moments(truth) for law in part]) for part in self._parts)
        if not math.isfinite(total):
            raise TrueupError(
                "the variance exists, but could not be computed: the formula overflows on the way",
                "use less noise, bound the domain, or write the formula in a stabler way",
            )
        return math.sqrt(max(total, 0.0))


def _variance(factors: Sequence[Moments]) -> float:
    """Return the variance of a product of independent factors, from their means and variances."""
    mean, variance = 1.0, 0.0
    for m, v in factors:
        mean, variance = mean * m, variance * (v + m * m) + mean * mean * v
    return variance


def _factors(component: Component) -> Sequence[Component]:
    """Return the independent factors of a component, itself if it has but one."""
    if isinstance(component, OnIntegers) and len(component.functions) == 1:
        return [*_factors(component.rest[0]), *component.own]
    return component.independent or (component,)


def _law(component: Component) -> Law | TiedLaw:
    if isinstance(component, Extended) and component.breaks_along_a_line:
        return TiedLaw(component)
    return Law(component)


class Law:
    """Mean and variance of one component, with what its integrals need."""

    def __init__(self, component: Component) -> None:
        self.component = component

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self._mean.at(truth)

    def moments(self, truth: Truth) -> Moments:
        """Return E g and E (g − E g)², from one formula if there is one: no digits are lost."""
        mean, closed = self.mean(truth), self._square.closed
        if closed is not None and self._mean.closed is not None:
            return mean, exactly(closed.xreplace({_MEAN: self._mean.closed}), truth)
        return mean, self._square.at({**truth, _MEAN: mean})

    @cached_property
    def _mean(self) -> Expectation:
        return self._expectation(self.component.value, 1)

    @cached_property
    def _square(self) -> Expectation:
        return self._expectation(lambda region: (self.component.value(region) - _MEAN) ** 2, 2)

    def _expectation(self, pieces: Callable[[Region], sympy.Expr], power: int) -> Expectation:
        own = self.component
        cells = [c for c in own.cells if not own.f.is_polynomial(c.symbol)]
        if len(cells) > (_MOST_CELLS if all(c.noise.lattice for c in cells) else _MOST_REAL):
            raise too_large(len(own.cells))
        others = {w.symbol: w.noise for w in own.waves}
        growths = {s: (a.raised(power), b.raised(power)) for s, (a, b) in self._growths.items()}
        return Expectation(pieces, own.cells, others, growths, self._breaks)

    @cached_property
    def _growths(self) -> dict[sympy.Symbol, tuple[Growth, Growth]]:
        """How fast g grows on each side, per cell; beyond a condition f goes on as a line."""
        own, found = self.component, {}
        for cell in own.cells:
            g = growing(own, cell)
            sides = [growth(g, cell.symbol, direction) for direction in (-1, 1)]
            below, above = (
                size if math.isfinite(size.rate) else size._replace(rate=0.0) for size in sides
            )
            found[cell.symbol] = below, above
        return found

    @cached_property
    def _breaks(self) -> dict[sympy.Symbol, list[float]]:
        """Points in the domain at which f″ may jump, per cell."""
        own = self.component
        box = {c.symbol: c.domain for c in own.cells}
        return {
            c.symbol: [p.point for p in breaks(own.f, c.symbol, box)]
            for c in own.cells
            if c.operator.order
        }
