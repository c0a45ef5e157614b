"""Expectation, bias and standard deviation of an estimator at a true value, inside or outside."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.inverse.additive import TiedLaw
from trueup.inverse.component import Component
from trueup.inverse.existence import domain_of, growing, grows_like_f, is_rough
from trueup.inverse.expectation import Expectation, Settled, TooLargeError, exactly
from trueup.inverse.extended import Extended
from trueup.inverse.growth import Growth, growth
from trueup.inverse.on_integers import OnIntegers
from trueup.inverse.on_values import OnValues
from trueup.inverse.smooth import breaks
from trueup.kernels.blocks import value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.inverse.component import Cell, Coordinate, Region
    from trueup.inverse.solve import Inverse, Statistic

    Truth = Mapping[sympy.Symbol, float]

_MOST_CELLS = 4
"""Statistics in which f is no polynomial: for each there are three regions, and a sum."""

_MEAN, _OTHER_MEAN = (sympy.Dummy(name, real=True) for name in ("mean", "mean of the other"))


class ExactLaw:
    """What the noise makes of an estimator at a given truth."""

    def __init__(self, inverse: Inverse, statistics: Sequence[Statistic]) -> None:
        self.inverse, self.statistics = inverse, statistics

    @cached_property
    def _parts(self) -> list[Law]:
        return [law_of(c) for c in self.inverse.components]

    def expectation(self, truth: Truth) -> float:
        """Return E g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        for part in self._parts:
            part.check(truth)
        return sum(p.mean(truth) for p in self._parts)

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
        total = sum(p.spread(truth) for p in self._parts)
        if not math.isfinite(total):
            raise TrueupError(
                "the variance exists, but could not be computed: the formula overflows on the way",
                "use less noise, bound the domain, or write the formula in a stabler way",
            )
        return math.sqrt(max(total, 0.0))


def law_of(component: Component) -> Law:
    """Return the integrals of a component, or of the factors that it is made of."""
    if isinstance(component, OnIntegers):
        pairs = zip(component.rest, component.own, strict=True)
        return Products([(law_of(a), OneComponent(h)) for a, h in pairs])
    if isinstance(component, Extended) and component.breaks_along_a_line:
        return AlongALine(component)
    first, *others = component.independent or (component,)
    law: Law = OneComponent(first)
    for factor in others:
        law = Products([(law, OneComponent(factor))])
    return law


class Law:
    """Mean and variance of a part of an estimator at true values."""

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        raise NotImplementedError

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing; the spread does not need its digits."""

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        raise NotImplementedError

    def covariance(self, other: Law, truth: Truth) -> float:
        """Return E (g − E g)(l − E l) for another function of the same cells."""
        raise NotImplementedError


class OneComponent(Law):
    """One component, with what its integrals need."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self._last: tuple[tuple[float, ...], Settled] | None = None
        self._products: dict[int, Expectation] = {}
        self.others = {
            s: n for w in component.waves for s, n in zip(w.statistics, w.noises, strict=True)
        }

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self._settled(truth).value

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing."""
        self._settled(truth).check(truth)

    def _settled(self, truth: Truth) -> Settled:
        """Return E g with its sizes; the last one is kept, since all the others ask for it."""
        at = tuple(truth.values())
        if self._last is None or self._last[0] != at:
            self._last = at, self._mean.settled(truth)
        return self._last[1]

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)², from one formula where there is one: no digits are lost between."""
        mean, square = self._mean.closed, self._square.closed
        if mean is not None and square is not None:
            return exactly(square.xreplace({_MEAN: mean}), truth)
        return self._square.at({**truth, _MEAN: self.mean(truth)})

    def covariance(self, other: Law, truth: Truth) -> float:
        """Return E (g − E g)(l − E l) for another function of the same cells."""
        assert isinstance(other, OneComponent)  # noqa: S101
        if other is self:
            return self.spread(truth)
        if not self.component.statistics:
            return 0.0
        if id(other) not in self._products:
            self._products[id(other)] = self._expectation(
                lambda region: (
                    (self.component.value(region) - _MEAN)
                    * (other.component.value(region) - _OTHER_MEAN)
                ),
                2,
            )
        means = {_MEAN: self.mean(truth), _OTHER_MEAN: other.mean(truth)}
        return self._products[id(other)].at({**truth, **means})

    @cached_property
    def _mean(self) -> Expectation:
        return self._expectation(self.component.value, 1)

    @cached_property
    def _square(self) -> Expectation:
        return self._expectation(lambda region: (self.component.value(region) - _MEAN) ** 2, 2)

    def _expectation(self, pieces: Callable[[Region], sympy.Expr], power: int) -> Expectation:
        own = self.component
        curved = [c for c in own.coordinates if not own.f.is_polynomial(c.symbol)]
        if sum(len(c.cells) for c in curved) > _MOST_CELLS:
            raise TooLargeError.over(len(own.cells))
        growths = {s: (a.raised(power), b.raised(power)) for s, (a, b) in self._growths.items()}
        return Expectation(pieces, own.cells, self.others, growths, self._breaks)

    @cached_property
    def _growths(self) -> dict[sympy.Symbol, tuple[Growth, Growth]]:
        """How fast g grows on each side, per cell."""
        homes = [(cell, c) for c in self.component.coordinates for cell in c.cells]
        return {cell.symbol: self._growth(cell, home) for cell, home in homes}

    def _growth(self, cell: Cell, home: Coordinate) -> tuple[Growth, Growth]:
        own = self.component
        at_integers = isinstance(home.cells[0].operator.branches[0], OnValues)
        g = own.estimand if grows_like_f(own) or at_integers else growing(own, home)
        below, above = (_followed(growth(g, cell.symbol, d)) for d in (-1, 1))
        return below, above

    @cached_property
    def _breaks(self) -> dict[sympy.Symbol, list[float]]:
        """Points in the domain at which f″ may jump, per cell; for cells of a sum at bounds."""
        coordinates = self.component.coordinates
        box = {c.symbol: domain_of(c) for c in coordinates}
        return {
            c.cells[0].symbol: [p.point for p in breaks(self.component.f, c.symbol, box)]
            for c in coordinates
            if is_rough(c) and len(c.cells) == 1
        }


def _followed(size: Growth) -> Growth:
    """Return the growth that counts: beyond a condition f goes on as a line."""
    return size if math.isfinite(size.rate) else size._replace(rate=0.0)


class AlongALine(Law):
    """Two statistics that a condition ties, one of them at least under continuous noise."""

    def __init__(self, component: Extended) -> None:
        self.component = component
        self._known: dict[tuple[float, ...], tuple[float, float]] = {}

    @cached_property
    def _tied(self) -> TiedLaw:
        return TiedLaw(self.component)

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self._moments(truth)[0]

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        return self._moments(truth)[1]

    def _moments(self, truth: Truth) -> tuple[float, float]:
        at = tuple(truth.values())
        if at not in self._known:
            f = value_at(self.component.f, truth)
            found = self._tied.moments(truth, f if math.isfinite(f) else 0.0)
            self._known = {at: found}
        return self._known[at]


class Products(Law):
    """A sum of products aᵢ·hᵢ of independent things: its law follows from theirs.

    E g = Σ E aᵢ·E hᵢ, and Var g = Σᵢⱼ (Aᵢⱼ·Hᵢⱼ + Aᵢⱼ·E hᵢ·E hⱼ + E aᵢ·E aⱼ·Hᵢⱼ) with the
    covariances A and H of the factors.
    """

    def __init__(self, factors: Sequence[tuple[Law, OneComponent]]) -> None:
        self.factors = factors

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return sum(a.mean(truth) * h.mean(truth) for a, h in self.factors)

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing."""
        for pair in self.factors:
            for part in pair:
                part.check(truth)

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        return self.covariance(self, truth)

    def covariance(self, other: Law, truth: Truth) -> float:
        """Return the covariance of two sums of products over the same cells."""
        assert isinstance(other, Products)  # noqa: S101
        total = 0.0
        for a, h in self.factors:
            for b, k in other.factors:
                outer, inner = a.covariance(b, truth), h.covariance(k, truth)
                means = a.mean(truth) * b.mean(truth), h.mean(truth) * k.mean(truth)
                total += outer * inner + outer * means[1] + means[0] * inner
        return total
