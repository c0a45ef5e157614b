"""T[f] and its variance for one connected piece of f: region by region, as formulas.

A statistic whose noise publishes an operator is a :class:`Cell` with up to three branches (below,
inside, above its bounds); cells that f sees only through their sum share a coordinate. All other
statistics are waves: f must be an exponential polynomial in them. A region picks one branch per
cell; there the estimator is a weighted sum of derivatives and differences of f, and the variance
V̂ = g² − T[f²] is a quadratic form in them (see :mod:`trueup.inverse.jets`).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import sympy

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.formula.substitution import at
from trueup.inverse import spectral
from trueup.inverse.jets import Jet, Keys, OnLattice, Weights, compose, form, tensor
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


@dataclasses.dataclass(frozen=True)
class Coordinate:
    """A variable of f: one cell, or the sum of several."""

    symbol: sympy.Symbol
    cells: tuple[Cell, ...]

    @property
    def is_lattice(self) -> bool:
        """Whether it takes integer values only."""
        return all(c.noise.lattice or c.operator.whole for c in self.cells)

    @property
    def domain(self) -> Interval:
        """Where it can be: the sum of its cells' domains."""
        operators = [c.operator for c in self.cells]
        ends = sympy.Add(*(o.low for o in operators)), sympy.Add(*(o.high for o in operators))
        return Interval(*ends).integers() if self.is_lattice else Interval(*ends)

    @property
    def order(self) -> int:
        """The highest derivative of f along it that an estimator reads."""
        return sum(c.operator.order for c in self.cells)


@dataclasses.dataclass(frozen=True)
class Wave:
    """A variable of f that is a statistic, or a sum of them, under noise known by M(t)."""

    symbol: sympy.Symbol
    statistics: tuple[sympy.Symbol, ...]
    noises: tuple[Noise, ...]

    def taps(self, c: sympy.Expr, order: int) -> Taps:
        """Return the coefficients of Π 1/Mᵢ(c + t) up to the given order as derivatives."""
        series = [
            {(j, 0): w for j, w in enumerate(spectral.reciprocal(n, c, order))} for n in self.noises
        ]
        return {k: w for k, w in compose(series).items() if k[0] <= order and w != 0}


@dataclasses.dataclass(frozen=True)
class Component:
    """One additive piece of f whose statistics hang together.

    ``modes`` are f as a sum over waves.
    """

    f: sympy.Expr
    coordinates: tuple[Coordinate, ...]
    waves: tuple[Wave, ...]
    modes: dict[Frequencies, Complex]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, coordinate by coordinate."""
        return tuple(cell for c in self.coordinates for cell in c.cells)

    @property
    def statistics(self) -> tuple[sympy.Symbol, ...]:
        """The published numbers it reads."""
        return (*(c.symbol for c in self.cells), *(s for w in self.waves for s in w.statistics))

    @property
    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """The variables of f."""
        return (*(c.symbol for c in self.coordinates), *self._spectral)

    @cached_property
    def estimand(self) -> sympy.Expr:
        """F in the statistics themselves."""
        point = {c.symbol: sympy.Add(*(cell.symbol for cell in c.cells)) for c in self.coordinates}
        point |= {w.symbol: sympy.Add(*w.statistics) for w in self.waves}
        return self.f.xreplace(point)

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
        return not self.waves and all(c.is_lattice for c in self.coordinates)

    @property
    def facts(self) -> list[str]:
        """Str is to be said of the estimator beyond the theorem."""
        return []

    def with_parameters(self, values: dict[sympy.Expr, sympy.Expr]) -> Component:
        """Return the component with numbers for symbols that are no statistics."""
        modes = {
            c: (re.xreplace(values), im.xreplace(values)) for c, (re, im) in self.modes.items()
        }
        return dataclasses.replace(self, f=at(self.f, values), modes=modes)

    @property
    def _spectral(self) -> tuple[sympy.Symbol, ...]:
        return tuple(w.symbol for w in self.waves)

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
        coordinates = tuple(c for c in self.coordinates if c.symbol in symbols)
        whole = all(cell.noise.lattice for c in coordinates for cell in c.cells)
        modes = spectral.decompose(f if whole else without_kinks(f), [w.symbol for w in waves])
        return None if modes is None else Component(f, coordinates, waves, modes)

    @property
    def squared(self) -> Component:
        """The component of f²."""
        found = self.of(self.f**2, set(self.symbols))
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
        _check_work(len(self.modes) * len(other.modes), _MOST_WAVES, "two waves")
        modes: dict[Frequencies, Complex] = defaultdict(lambda: _ZERO)
        for (c1, p1), (c2, p2) in product(self.modes.items(), other.modes.items()):
            c = tuple(a + b for a, b in zip(c1, c2, strict=True))
            degrees = self.degrees(p1), self.degrees(p2)
            both = tuple(a + b for a, b in zip(*degrees, strict=True))
            left, right = (self.weights(region, *m) for m in ((c1, degrees[0]), (c2, degrees[1])))
            _check_work(len(left) * len(right), _MOST_PAIRS, "derivatives and differences")
            pairs = form(left, right, self.weights(region, c, both))
            term = _quadratic(pairs, self._jets(p1, region), self._jets(p2, region))
            modes[c] = (modes[c][0] + term[0], modes[c][1] + term[1])
        return self._realise(modes)

    def degrees(self, mode: Complex) -> tuple[int, ...]:
        """Return the degree of a polynomial factor in each wave."""
        return tuple(max(spectral.degree(p, s) for p in mode) for s in self._spectral)

    def weights(
        self, region: Region, c: Frequencies = (), degrees: tuple[int, ...] = ()
    ) -> Weights:
        """Return T where x lies in the region, for a mode of some degree in each wave."""
        waves = zip(self.waves, c, degrees, strict=True)
        taps = self._taps(region).values()
        return tensor([*taps, *(w.taps(frequency, n) for w, frequency, n in waves)])

    def _branches(self, region: Region) -> dict[sympy.Symbol, Branch]:
        pairs = zip(self.cells, region, strict=True)
        return {cell.symbol: cell.operator.branches[i] for cell, i in pairs}

    def _taps(self, region: Region) -> dict[sympy.Symbol, Taps]:
        """Return the operator of every coordinate."""
        branches = self._branches(region)
        return {
            c.symbol: compose(
                {k: w.xreplace({X: cell.symbol}) for k, w in branches[cell.symbol].taps.items()}
                for cell in c.cells
            )
            for c in self.coordinates
        }

    def place(self, region: Region) -> dict[sympy.Symbol, sympy.Expr]:
        """Return where f is looked at: at the published numbers, or at their bounds."""
        bounds = {s: b.at for s, b in self._branches(region).items() if b.at is not None}
        places = {
            c.symbol: sympy.Add(*(bounds.get(cell.symbol, cell.symbol) for cell in c.cells))
            for c in self.coordinates
        }
        return places | {w.symbol: sympy.Add(*w.statistics) for w in self.waves}

    def _jets(self, mode: Complex, region: Region) -> tuple[Jet, Jet]:
        place, branches = self.place(region), self._branches(region)
        bounds = {
            c.symbol: (place[c.symbol], -1 if branches[c.cells[0].symbol].side == "above" else 1)
            for c in self.coordinates
            if place[c.symbol].is_number and not all(k.noise.lattice for k in c.cells)
        }
        re, im = (beside(part, bounds) if bounds else part for part in mode)
        return Jet(re, self.symbols, place), Jet(im, self.symbols, place)

    def _realise(self, modes: dict[Frequencies, Complex]) -> sympy.Expr:
        statistics = [sympy.Add(*w.statistics) for w in self.waves]
        return spectral.realise(modes, statistics)


_ZERO: Complex = (sympy.Integer(0), sympy.Integer(0))


_MOST_PAIRS = 3000  # products of two functionals: a millisecond each
_MOST_WAVES = 800  # products of two modes: two milliseconds each


def _check_work(pairs: int, most: int, what: str) -> None:
    """Refuse a quadratic form that would take too long to write down."""
    if pairs > most:
        raise TrueupError(
            f"the variance needs {pairs} products of {what}, at most {most} are possible",
            "publish totals with a noise of their own, or debias parts that are then added",
        )


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
