"""T[f] and its variance for one connected piece of f: region by region, as formulas.

A statistic whose noise publishes an operator is a :class:`Cell` with up to three branches (below,
inside, above its bounds). All other statistics are waves: f must be an exponential polynomial in
them. A region picks one branch per cell; there the estimator is a weighted sum of derivatives and
differences of f, and the variance V̂ = g² − T[f²] is a quadratic form in them (see
:mod:`trueup.inverse.jets`).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import sympy

from trueup.domain import Interval
from trueup.formula.substitution import at
from trueup.inverse import spectral
from trueup.inverse.jets import Jet, Keys, OnLattice, Weights, form, tensor, too_long
from trueup.inverse.separation import apart, factors_of
from trueup.inverse.signs import beside, without_kinks
from trueup.noise.operator import Branch, Operator, Taps, X

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.formula.linear import Condition
    from trueup.inverse.spectral import Complex, Frequencies
    from trueup.noise.base import Noise

Region = tuple[int, ...]
"""One branch index per cell."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One noisy statistic with the operator that its noise publishes."""

    symbol: sympy.Symbol
    operator: Operator
    noise: Noise

    @property
    def is_lattice(self) -> bool:
        """Whether it takes integer values only."""
        return self.noise.lattice or self.operator.whole

    @property
    def domain(self) -> Interval:
        """Where it can be."""
        domain = Interval(self.operator.low, self.operator.high)
        return domain.integers() if self.is_lattice else domain


@dataclasses.dataclass(frozen=True)
class Wave:
    """One statistic under noise known by M(t)."""

    symbol: sympy.Symbol
    noise: Noise

    def taps(self, c: sympy.Expr, order: int) -> Taps:
        """Return the coefficients of 1/M(c + t) up to the given order as derivatives."""
        series = spectral.reciprocal(self.noise, c, order)
        return {(j, 0): w for j, w in enumerate(series) if w != 0}


@dataclasses.dataclass(frozen=True)
class Component:
    """One additive piece of f whose statistics hang together.

    ``modes`` are f as a sum over waves.
    """

    f: sympy.Expr
    cells: tuple[Cell, ...]
    waves: tuple[Wave, ...]
    modes: dict[Frequencies, Complex]

    @property
    def statistics(self) -> tuple[sympy.Symbol, ...]:
        """The published numbers it reads."""
        return (*(c.symbol for c in self.cells), *(w.symbol for w in self.waves))

    @property
    def main(self) -> Component:
        """The component far from conditions that tie its statistics: itself if none do."""
        return self

    @property
    def tied(self) -> tuple[Condition, ...]:
        """The conditions between its statistics."""
        return ()

    def far_out(self, symbol: sympy.Symbol, direction: int) -> tuple[sympy.Expr, ...]:
        """Return the cases that f has far out on a side of a variable."""
        return (self.f,)

    @property
    def reads_integers(self) -> bool:
        """Whether g is a sum of values of f at integers: it grows no faster than f."""
        return not self.waves and all(c.is_lattice for c in self.cells)

    @property
    def facts(self) -> list[str]:
        """What is to be said of the estimator beyond the theorem."""
        return []

    def with_parameters(self, values: dict[sympy.Expr, sympy.Expr]) -> Component:
        """Return the component with numbers for symbols that are no statistics."""
        modes = {
            c: (re.xreplace(values), im.xreplace(values)) for c, (re, im) in self.modes.items()
        }
        return dataclasses.replace(self, f=at(self.f, values), modes=modes)

    def regions(self) -> Iterator[Region]:
        """Yield every choice of one branch per cell."""
        yield from product(*(range(len(c.operator.branches)) for c in self.cells))

    def value(self, region: Region) -> sympy.Expr:
        """Return g = T[f] where x lies in the region, worked out once."""
        if region not in self._worked_out:
            self._worked_out[region] = self._value(region)
        return self._worked_out[region]

    @cached_property
    def _worked_out(self) -> dict[Region, sympy.Expr]:
        return {}

    def _value(self, region: Region) -> sympy.Expr:
        if self.independent:
            return self._multiplied("value", region)
        if self.is_lattice:
            return self.on_lattice(region).value
        modes: dict[Frequencies, Complex] = {}
        for c, mode in self.modes.items():
            re, im = self._jets(mode, region)
            weights = self.weights(region, c, self.degrees(mode))
            modes[c] = spectral.total(
                spectral.times(_parts(w), (re[keys], im[keys])) for keys, w in weights.items()
            )
        return self._realise(modes)

    def variance(self, region: Region) -> sympy.Expr:
        """Return V̂ = g² − T[f²] where x lies in the region."""
        if self.independent:
            return self._multiplied("variance", region)
        return (
            self.on_lattice(region).variance if self.is_lattice else self.covariance(self, region)
        )

    def worked_out(self, what: str, region: Region) -> sympy.Expr:
        """Return value or variance where x lies in the region."""
        return self.value(region) if what == "value" else self.variance(region)

    @property
    def is_lattice(self) -> bool:
        """Whether f is read at integers only."""
        plain = type(self) is Component and bool(self.cells) and not self.waves
        return plain and all(c.noise.lattice for c in self.cells)

    def check_work(self) -> None:
        """Refuse an estimator that would take too long to write down."""
        if self.is_lattice and not self.independent:
            self.on_lattice(next(self.regions())).check_value()

    def on_lattice(self, region: Region) -> OnLattice:
        """Return what reads f at integers, for statistics that are all integers."""
        return OnLattice(self.f, self._taps(region), self.place(region))

    @cached_property
    def independent(self) -> tuple[Component, ...]:
        """The factors of f that share no statistic, as components; none if f has but one."""
        if type(self) is not Component:
            return ()
        found = []
        for symbols, factor in apart(factors_of(self.f if self.waves else self.modes[()][0])):
            part = self.of(factor, symbols)
            if part is None:
                return ()
            found.append(part)
        return tuple(found) if len(found) > 1 else ()

    def of(self, f: sympy.Expr, symbols: set[sympy.Basic]) -> Component | None:
        """Return another function, of some of the variables; None if it cannot be inverted."""
        waves = tuple(w for w in self.waves if w.symbol in symbols)
        cells = tuple(c for c in self.cells if c.symbol in symbols)
        whole = all(c.noise.lattice for c in cells)
        modes = spectral.decompose(f if whole else without_kinks(f), [w.symbol for w in waves])
        return None if modes is None else Component(f, cells, waves, modes)

    @property
    def squared(self) -> Component:
        """The component of f²."""
        found = self.of(self.f**2, set(self.statistics))
        assert found is not None  # noqa: S101  (so is f)
        return found

    def products(self, what: str) -> list[list[tuple[Component, str, int]]]:
        """Return value or variance as a sum of products of powers of independent factors.

        There are none if f is one factor. The value is Π gᵢ; the variance Π gᵢ² − Π T[fᵢ²] is, one
        factor after the other, so that no large terms cancel, V₁·T[f₂²] + g₁²·V₂. Factors without
        bounds come first: their squares are short.
        """
        factors = sorted(self.independent, key=lambda f: len(list(f.regions())))
        if what == "value":
            return [[(f, "value", 1) for f in factors]] if factors else []
        return [
            [
                (f, "variance", 1),
                *((g, "value", 2) for g in factors[:i]),
                *((g.squared, "value", 1) for g in factors[i + 1 :]),
            ]
            for i, f in enumerate(factors)
        ]

    def _multiplied(self, what: str, region: Region) -> sympy.Expr:
        branch = {cell.symbol: i for cell, i in zip(self.cells, region, strict=True)}
        total = []
        for term in self.products(what):
            sides = [tuple(branch[cell.symbol] for cell in part.cells) for part, _, _ in term]
            factors = (
                p.worked_out(own, s) ** n for (p, own, n), s in zip(term, sides, strict=True)
            )
            total.append(sympy.Mul(*factors))
        return sympy.Add(*total)

    def covariance(self, other: Component, region: Region) -> sympy.Expr:
        """Return T[f₁]·T[f₂] − T[f₁·f₂] for two functions of the same cells."""
        if (pairs := len(self.modes) * len(other.modes)) > _MOST_WAVES:
            raise too_long(f"the variance needs {pairs} products of two waves")
        modes: dict[Frequencies, Complex] = defaultdict(lambda: _ZERO)
        for (c1, p1), (c2, p2) in product(self.modes.items(), other.modes.items()):
            c = tuple(a + b for a, b in zip(c1, c2, strict=True))
            degrees = self.degrees(p1), self.degrees(p2)
            both = tuple(a + b for a, b in zip(*degrees, strict=True))
            left, right = (self.weights(region, *m) for m in ((c1, degrees[0]), (c2, degrees[1])))
            if (pairs := len(left) * len(right)) > _MOST_PAIRS:
                needs = f"the variance needs {pairs} products of derivatives and differences"
                raise too_long(f"{needs}, at most {_MOST_PAIRS} are possible")
            weights = form(left, right, self.weights(region, c, both))
            term = _quadratic(weights, self._jets(p1, region), self._jets(p2, region))
            modes[c] = (modes[c][0] + term[0], modes[c][1] + term[1])
        return self._realise(modes)

    def degrees(self, mode: Complex) -> tuple[int, ...]:
        """Return the degree of a polynomial factor in each wave."""
        return tuple(max(spectral.degree(p, w.symbol) for p in mode) for w in self.waves)

    def weights(
        self, region: Region, c: Frequencies = (), degrees: tuple[int, ...] = ()
    ) -> Weights:
        """Return T where x lies in the region, for a mode of some degree in each wave."""
        waves = zip(self.waves, c, degrees, strict=True)
        taps = self._taps(region).values()
        return tensor([*taps, *(w.taps(frequency, n) for w, frequency, n in waves)])

    def _branches(self, region: Region) -> list[tuple[Cell, Branch]]:
        return [(c, c.operator.branches[i]) for c, i in zip(self.cells, region, strict=True)]

    def _taps(self, region: Region) -> dict[sympy.Symbol, Taps]:
        """Return the operator of every cell."""
        return {
            cell.symbol: {k: w.xreplace({X: cell.symbol}) for k, w in branch.taps.items()}
            for cell, branch in self._branches(region)
        }

    def place(self, region: Region) -> dict[sympy.Symbol, sympy.Expr]:
        """Return where f is looked at: at the published numbers, or at their bounds."""
        bounds = {c.symbol: b.at for c, b in self._branches(region) if b.at is not None}
        return {s: bounds.get(s, s) for s in self.statistics}

    def _jets(self, mode: Complex, region: Region) -> tuple[Jet, Jet]:
        place = self.place(region)
        bounds = {
            c.symbol: (place[c.symbol], -1 if branch.side == "above" else 1)
            for c, branch in self._branches(region)
            if place[c.symbol].is_number and not c.noise.lattice
        }
        re, im = (beside(part, bounds) if bounds else part for part in mode)
        return Jet(re, self.statistics, place), Jet(im, self.statistics, place)

    def _realise(self, modes: dict[Frequencies, Complex]) -> sympy.Expr:
        return spectral.realise(modes, [w.symbol for w in self.waves])


_ZERO: Complex = (sympy.Integer(0), sympy.Integer(0))


_MOST_PAIRS = 4500  # products of two functionals: a millisecond each
_MOST_WAVES = 800  # products of two modes: two milliseconds each


def _parts(weight: sympy.Expr) -> Complex:
    """Return real and imaginary part of a weight; only waves have imaginary ones."""
    if not weight.has(sympy.I):
        return weight, sympy.Integer(0)
    re, im = sympy.expand(weight).as_real_imag()
    return re, im


def _quadratic(
    pairs: dict[tuple[Keys, Keys], sympy.Expr], left: tuple[Jet, Jet], right: tuple[Jet, Jet]
) -> Complex:
    """Return Σ K[k₁,k₂] · J₁[k₁] · J₂[k₂]."""
    return spectral.total(
        spectral.times(
            _parts(weight),
            spectral.times((left[0][k1], left[1][k1]), (right[0][k2], right[1][k2])),
        )
        for (k1, k2), weight in pairs.items()
        if not weight.is_zero
    )
