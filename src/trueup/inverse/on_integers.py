"""Statistics whose inverse reads f at many points, alone or in products with other statistics.

The tensor product of operators on f = Σ aᵢ(others)·hᵢ(n) is T[f] = Σ T[aᵢ]·T[hᵢ], and the variance
T[f]² − T[f²] follows from the covariances of the factors, Aᵢⱼ = T[aᵢ]T[aⱼ] − T[aᵢaⱼ] and Hᵢⱼ:

    Σᵢⱼ (T[aᵢ]T[aⱼ]·Hᵢⱼ + T[hᵢ]T[hⱼ]·Aᵢⱼ − Aᵢⱼ·Hᵢⱼ).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.inverse import laplace_on_integers, lattice_inverse, spectral
from trueup.inverse.component import Cell, Component
from trueup.inverse.growth import growth
from trueup.inverse.on_values import OnValues, Tables
from trueup.inverse.separation import Products, separated

if TYPE_CHECKING:
    from trueup.inverse.component import Region
    from trueup.inverse.solve import Statistic
    from trueup.inverse.spectral import Complex, Frequencies
    from trueup.noise.operator import Operator

_LEAST, _MOST = 1e-6, 1e4
"""Scales of Laplace noise on an integer: below, the doubles near a true value are too few."""


@dataclasses.dataclass(frozen=True)
class OnIntegers(Component):
    """A sum of products: factors of the other statistics, and functions of one.

    Its last cell is the statistic whose operator reads f at integers.
    """

    factors: tuple[Component, ...] = ()
    functions: tuple[sympy.Expr, ...] = ()
    _made: dict[tuple[object, ...], sympy.Expr] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def value(self, region: Region) -> sympy.Expr:
        """Return Σ T[aᵢ]·T[hᵢ]."""
        values = self._values(region)
        return sympy.Add(*(a * h for a, h in zip(*values, strict=True)))

    def variance(self, region: Region) -> sympy.Expr:
        """Return V̂ = g² − T[f²]."""
        return self.covariance(self, region)

    def covariance(self, other: Component, region: Region) -> sympy.Expr:
        """Return T[f₁]·T[f₂] − T[f₁·f₂]."""
        assert isinstance(other, OnIntegers)  # noqa: S101  (functions of the same cells)
        left, right = self._values(region), other._values(region)
        total = []
        for i, h in enumerate(self.functions):
            for j, k in enumerate(other.functions):
                own = self._known(self._branch(region), "covariance", h, k)
                rest = self.rest[i].covariance(other.rest[j], region[:-1])
                total.append(left[0][i] * right[0][j] * own)
                if rest != 0:
                    total += [left[1][i] * right[1][j] * rest, -own * rest]
        return sympy.Add(*total)

    def with_parameters(self, values: dict[sympy.Expr, sympy.Expr]) -> OnIntegers:
        """Return the component with numbers for parameters of the factors."""
        factors = tuple(f.with_parameters(values) for f in self.factors)
        changed = super().with_parameters(values)
        assert isinstance(changed, OnIntegers)  # noqa: S101
        return dataclasses.replace(changed, factors=factors)

    def check_work(self) -> None:
        """Refuse tables that are of no use, or that doubles do not hold."""
        branch = self.cells[-1].operator.branches[0]
        if isinstance(branch, Tables):
            for h in self.functions:
                self._known(branch, "value", h)

    @cached_property
    def own(self) -> list[Component]:
        """The functions hᵢ, each as a component of the last cell alone."""
        plain: dict[Frequencies, Complex] = {(): (sympy.Integer(1), sympy.Integer(0))}
        unit = Component(sympy.Integer(1), (), (), plain)
        last = self.cells[-1:]
        return [OnIntegers(h, last, (), plain, (unit,), (h,), self._made) for h in self.functions]

    def _values(self, region: Region) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
        """Return all T[aᵢ] and all T[hᵢ]."""
        branch = self._branch(region)
        own = [self._known(branch, "value", h) for h in self.functions]
        return [f.value(region[:-1]) for f in self.rest], own

    @cached_property
    def rest(self) -> list[Component]:
        """The factors, with the cells and waves that this component has."""
        own = self.cells[:-1]
        return [dataclasses.replace(f, cells=own, waves=self.waves) for f in self.factors]

    def _branch(self, region: Region) -> OnValues:
        branch = self.cells[-1].operator.branches[region[-1]]
        assert isinstance(branch, OnValues)  # noqa: S101
        return branch

    def _known(self, branch: OnValues, what: str, *functions: sympy.Expr) -> sympy.Expr:
        """Return what was made before: tables are functions with an identity of their own.

        A covariance is the same both ways.
        """
        key = (id(branch), what, *sorted(functions, key=sympy.default_sort_key))
        if key not in self._made:
            self._made[key] = getattr(branch, what)(*functions, self.cells[-1].symbol)
        return self._made[key]


def chosen(f: sympy.Expr, used: list[Statistic], extension: object) -> tuple[Cell, Products] | None:
    """Return a statistic that is to be read at integers, and f as a sum of products around it.

    Laplace noise on an integer has an inverse of its own, unless f does not separate: then the
    estimator on the line serves. A sum of Laplace noises on an integer is rounded. Noise on the
    integers without an operator of its own comes to this if f is no exponential polynomial in the
    statistic; under rounded Laplace noise, bounds are worth it for those too.
    """
    for s in used:
        plain, products = s.noise.inverse(s.domain, extension), None
        needed = s.noise.lattice and plain is None
        exponential = needed and spectral.decompose(f, [s.symbol]) is not None
        bounded = s.noise.many_points == "echoes" and s.domain.bounds != (None, None)
        better = plain is not None and s.domain.lattice > s.noise.lattice and extension == "optimal"
        if better or (needed and (bounded or not exponential)):
            products = separated(f, s.symbol)
            operator = None if products is None else _operator(s, products)
            if products is not None and operator is not None:
                return Cell(s.symbol, operator, s.noise), products
        if needed and not exponential:
            raise _inseparable(f, s) if products is None else _not_found(s, products)
        if s.noise.many_points == "cells":
            _check_slopes(f, s)
    return None


def _operator(s: Statistic, products: Products) -> Operator | None:
    """Return the inverse for a statistic that is read at integers, None if none is known."""
    rate = _rate(products, s)
    if s.noise.lattice:
        return lattice_inverse.operator(s.noise, s.domain, rate)
    if s.noise.many_points == "cells":
        within = _LEAST <= s.noise.unit <= _MOST
        return laplace_on_integers.operator(s.noise, s.domain, rate) if within else None
    if rate > 0 or all(h.is_polynomial(s.symbol) for _, h in products):
        return None  # the table of masses has an end
    return lattice_inverse.rounding(s.noise, s.domain)


def _not_found(s: Statistic, products: Products) -> NoUnbiasedEstimator:
    worst = max((h for _, h in products), key=lambda h: len(str(h)))
    name = s.symbol.name
    reason = (
        f"it grows like e^({_rate(products, s):.3g}·|{name}|), too fast for the noise"
        if lattice_inverse.weights(s.noise) is not None
        else f"it is not a sum of terms {name}^k·e^(c·{name}), the noise is too wide for the "
        "inverse of its masses, and the domain has no end"
    )
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {text(worst)} under {s.noise!r} on {s.domain} was found: "
        f"{reason}",
        "bound the domain on both sides, or accept a small bias: "
        "nearly_unbiased(f, noise, domain, max_bias=...)",
        proved=False,
    )


def _rate(products: Products, s: Statistic) -> float:
    """Return how fast the functions grow exponentially on open sides.

    Between two bounds every side counts: far from both the neighbours are read as everywhere.
    """
    finite = None not in s.domain.bounds
    sides = [d for d, b in zip((-1, 1), s.domain.bounds, strict=True) if finite or b is None]
    return max([0.0, *(growth(h, s.symbol, d).rate for _, h in products for d in sides)])


def _check_slopes(f: sympy.Expr, s: Statistic) -> None:
    """Refuse a function known by its values only where its derivatives would be needed."""
    for e in f.atoms(Opaque):
        slope = e.derivative
        if s.symbol in e.free_symbols and (slope is None or slope.derivative is None):
            raise TrueupError(
                f"{e} is known by its values only, which under {s.noise!r} is enough for one "
                f"integer statistic with a scale from {_LEAST:g} to {_MOST:g} and "
                "extension='optimal'",
                "write it as a formula"
                + (", or give derivatives=(f1, f2)" if len(e.free_symbols) == 1 else ""),
            )


def _inseparable(f: sympy.Expr, s: Statistic) -> TrueupError:
    name = s.symbol.name
    return TrueupError(
        f"{text(f)} is not a sum of products of a function of {name} and functions of the other "
        f"statistics, which {s.noise!r} on {name} needs",
        "write it as such a sum, publish the combined number with a noise of its own, or use "
        "DiscreteLaplace noise",
    )
