"""Expectation, bias and standard deviation of an estimator at a true value, inside or outside."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.formula.build import parts_of
from trueup.inverse.component import Component
from trueup.inverse.existence import domain_of, growing, grows_like_f, is_rough
from trueup.inverse.expectation import (
    Expectation,
    Settled,
    TooLargeError,
    exactly,
    fewest_nodes,
)
from trueup.inverse.extended import Extended
from trueup.inverse.growth import growth
from trueup.inverse.on_integers import OnIntegers
from trueup.inverse.on_values import OnValues
from trueup.inverse.points import Trouble, ends_of
from trueup.inverse.smooth import breaks
from trueup.inverse.tied_law import TiedLaw
from trueup.kernels.blocks import value_at
from trueup.kernels.tape import MAX_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.inverse.component import Region
    from trueup.inverse.solve import Inverse, Statistic

    Truth = Mapping[sympy.Symbol, float]


_MOST_WORK = 2_000_000_000  # nodes times operations: NumPy does a thousand million in a second

_SMALLER = (0, 64, 128, 256, 480)
"""Powers of two by which g is divided where its square overflows; 4⁴⁸⁰ is still a double."""

_MEAN, _OTHER_MEAN = (sympy.Dummy(name, real=True) for name in ("mean", "mean of the other"))


class ExactLaw:
    """What the noise makes of an estimator at a given truth."""

    def __init__(self, inverse: Inverse, statistics: Sequence[Statistic]) -> None:
        self.inverse, self.statistics = inverse, statistics
        self._parts: dict[int, list[Part]] = {}

    def parts(self, power: int = 0) -> list[Part]:
        """Return the components of g/2ᵖ with their integrals."""
        if power not in self._parts:
            unit = sympy.Integer(2) ** -power
            self._parts[power] = [part_of(c, unit) for c in self.inverse.components]
        return self._parts[power]

    def expectation(self, truth: Truth) -> float:
        """Return E g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        for part in self.parts():
            part.check(truth)
        return sum(p.mean(truth) for p in self.parts())

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
        for power in _SMALLER:
            total = sum(p.spread(truth) for p in self.parts(power))
            if math.isfinite(total):
                return math.ldexp(math.sqrt(max(total, 0.0)), power)
        raise TrueupError(
            "the variance exists, but could not be computed: the formula overflows on the way",
            "use less noise, bound the domain, or write the formula in a stabler way",
        )


def part_of(component: Component, unit: sympy.Expr = sympy.S.One) -> Part:
    """Return a component, times a unit, with its integrals, or with those of its factors."""
    if isinstance(component, OnIntegers):
        return ProductPart(component, unit)
    if isinstance(component, Extended) and component.breaks_along_a_line:
        return TiedPart(component, unit)
    factors = component.independent
    return FactoredPart(component, factors, unit) if len(factors) > 1 else Part(component, unit)


class Part:
    """One component, times a unit, with what its integrals need."""

    def __init__(self, component: Component, unit: sympy.Expr = sympy.S.One) -> None:
        self.component, self.unit = component, unit
        self._last: tuple[tuple[float, ...], Settled] | None = None
        self.others = {
            s: n for w in component.waves for s, n in zip(w.statistics, w.noises, strict=True)
        }

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self._settled(truth).value

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing; the spread does not need its digits."""
        self._settled(truth).check(truth)

    def _settled(self, truth: Truth) -> Settled:
        """Return E g with its sizes; the last one is kept, since all the others ask for it."""
        at = tuple(truth.values())
        if self._last is None or self._last[0] != at:
            self._check_work(truth)
            self._last = at, self._mean.settled(truth)
        return self._last[1]

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)², from one formula where there is one: no digits are lost between."""
        mean, square = self._mean.closed, self._square.closed
        if mean is not None and square is not None:
            return exactly(square.xreplace({_MEAN: mean}), truth)
        return self._square.at({**truth, _MEAN: self.mean(truth)})

    def _check_work(self, truth: Truth) -> None:
        """Refuse, before anything is written down, what has too many nodes times operations.

        Counted are statistics that must be summed or integrated over: f is no polynomial in them.
        """
        component = self.component
        nodes, points = 1, 1
        for coordinate in component.coordinates:
            for cell in coordinate.cells:
                points *= len(getattr(cell.operator.branches[0], "taps", (0,)))
                if not component.f.is_polynomial(coordinate.symbol):
                    nodes *= fewest_nodes(cell, truth[cell.symbol])
        if nodes * points * parts_of(component.f, MAX_OPERATIONS) > _MOST_WORK:
            raise TooLargeError.over(len(component.cells))

    def covariance(self, other: Part, truth: Truth) -> float:
        """Return E (g − E g)(l − E l) for another function of the same cells."""
        if not self.component.statistics:
            return 0.0
        if id(other) not in self._products:
            self._products[id(other)] = self._expectation(
                lambda region: (self._value(region) - _MEAN) * (other._value(region) - _OTHER_MEAN),
                2,
            )
        means = {_MEAN: self.mean(truth), _OTHER_MEAN: other.mean(truth)}
        return self._products[id(other)].at({**truth, **means})

    @cached_property
    def _products(self) -> dict[int, Expectation]:
        return {}

    @cached_property
    def _mean(self) -> Expectation:
        return self._expectation(self._value, 1)

    @cached_property
    def _square(self) -> Expectation:
        return self._expectation(lambda region: (self._value(region) - _MEAN) ** 2, 2)

    def _value(self, region: Region) -> sympy.Expr:
        return self.component.value(region) * self.unit

    def _expectation(self, pieces: Callable[[Region], sympy.Expr], power: int) -> Expectation:
        rates = {s: (a * power, b * power) for s, (a, b) in self._rates.items()}
        degrees = {s: power * degree for s, degree in self._degrees.items()}
        return Expectation(
            pieces,
            self.component.cells,
            self.others,
            rates,
            {s: [p.point for p in points] for s, points in self._breaks.items()},
            degrees,
            {s: _infinite(points) for s, points in self._breaks.items()},
        )

    @cached_property
    def _degrees(self) -> dict[sympy.Symbol, float]:
        """How fast g grows as a power, per cell that is read at integers: like f."""
        f, coordinates = self.component.f, self.component.coordinates
        return {
            c.symbol: max(growth(f, c.symbol, direction).power for direction in (-1, 1))
            for c in coordinates
            if isinstance(c.cells[0].operator.branches[0], OnValues)
        }

    @cached_property
    def _rates(self) -> dict[sympy.Symbol, tuple[float, float]]:
        """How fast g grows on each side, per cell; beyond bounds it does not."""
        found = {}
        homes = [(cell, c) for c in self.component.coordinates for cell in c.cells]
        for cell, coordinate in homes:
            like_f = grows_like_f(self.component)
            g = self.component.estimand if like_f else growing(self.component, coordinate)
            rates = [growth(g, cell.symbol, d).rate for d in (-1, 1)]
            # beyond a condition f goes on as a line: what it would be there does not count
            left, right = (max(r, 0.0) if math.isfinite(r) else 0.0 for r in rates)
            found[cell.symbol] = (left, right)
        return found

    @cached_property
    def _breaks(self) -> dict[sympy.Symbol, tuple[Trouble, ...]]:
        """Points in the domain at which f″ may jump, per cell; for cells of a sum at bounds."""
        f, found = self.component.f, {}
        box = {c.symbol: domain_of(c) for c in self.component.coordinates}
        for c in filter(is_rough, self.component.coordinates):
            points = tuple(breaks(f, c.symbol, box))
            if len(c.cells) == 1:
                found[c.cells[0].symbol] = points
                continue
            for cell in c.cells:  # where all of them are at their bounds
                pairs = zip(
                    ends_of(box[c.symbol]), (cell.operator.low, cell.operator.high), strict=True
                )
                bounds = {end: own for end, own in pairs if not cell.noise.lattice}
                found[cell.symbol] = tuple(
                    dataclasses.replace(p, exact=bounds[p.exact])
                    for p in points
                    if p.exact in bounds
                )
        return found


def _infinite(points: Sequence[Trouble]) -> list[sympy.Expr]:
    """Return where the curvature is infinite, but integrable."""
    return [p.exact for p in points if p.exact is not None and p.exponent < 0]


class TiedPart(Part):
    """Two statistics that a condition ties, one of them at least under continuous noise."""

    component: Extended

    @cached_property
    def _tied(self) -> TiedLaw:
        return TiedLaw(self.component)

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self._moments(truth)[0] * float(self.unit)

    def check(self, truth: Truth) -> None:
        """Nothing is lost in sums around f."""

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        return self._moments(truth)[1] * float(self.unit) ** 2

    def _moments(self, truth: Truth) -> tuple[float, float]:
        at = tuple(truth.values())
        if self._known is None or self._known[0] != at:
            f = value_at(self.component.f, truth)
            found = self._tied.moments(truth, f if math.isfinite(f) else 0.0)
            self._known = at, found
        return self._known[1]

    _known: tuple[tuple[float, ...], tuple[float, float]] | None = None


class FactoredPart(Part):
    """A product of independent factors: Var Πgᵢ = Π(Var gᵢ + (E gᵢ)²) − Π(E gᵢ)²."""

    def __init__(
        self, component: Component, factors: Sequence[Component], unit: sympy.Expr
    ) -> None:
        super().__init__(component, unit)
        share = unit ** sympy.Rational(1, len(factors))  # whichever of them it is that overflows
        self.factors = [Part(factor, share) for factor in factors]

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return math.prod(part.mean(truth) for part in self.factors)

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing."""
        for part in self.factors:
            part.check(truth)

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        return self._product(truth, [part.spread(truth) for part in self.factors])

    def _product(self, truth: Truth, variances: Sequence[float]) -> float:
        """Return the variance of the product, one factor after the other: no digits cancel."""
        total, square = 0.0, 1.0
        for part, variance in zip(self.factors, variances, strict=True):
            mean = part.mean(truth)
            total = total * (variance + mean * mean) + square * variance
            square *= mean * mean
        return total


class ProductPart(Part):
    """A sum of products aᵢ·hᵢ of independent things: its law follows from theirs.

    E g = Σ E aᵢ·E hᵢ, and Var g = Σᵢⱼ (Aᵢⱼ·Hᵢⱼ + Aᵢⱼ·E hᵢ·E hⱼ + E aᵢ·E aⱼ·Hᵢⱼ) with the
    covariances A and H of the factors.
    """

    component: OnIntegers

    @cached_property
    def _factors(self) -> list[tuple[Part, Part]]:
        pairs = zip(self.component.rest, self.component.own, strict=True)
        return [(part_of(a, self.unit), Part(h)) for a, h in pairs]

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return sum(a.mean(truth) * h.mean(truth) for a, h in self._factors)

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing."""
        for pair in self._factors:
            for part in pair:
                part.check(truth)

    def spread(self, truth: Truth) -> float:
        """Return E (g − E g)²."""
        return self.covariance(self, truth)

    def covariance(self, other: Part, truth: Truth) -> float:
        """Return the covariance of two sums of products over the same cells."""
        assert isinstance(other, ProductPart)  # noqa: S101
        total = 0.0
        for a, h in self._factors:
            for b, k in other._factors:
                outer, inner = a.covariance(b, truth), h.covariance(k, truth)
                means = a.mean(truth) * b.mean(truth), h.mean(truth) * k.mean(truth)
                total += outer * inner + outer * means[1] + means[0] * inner
        return total
