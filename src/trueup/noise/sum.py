"""The noise of a sum of independently noisy numbers."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.noise import deconvolution
from trueup.noise.base import Noise
from trueup.noise.laplace import Laplace

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field
    from trueup.noise.operator import Operator

MAX_PARTS = 64


@dataclasses.dataclass(frozen=True, repr=False)
class SumNoise(Noise):
    """State the law of Z₁ + … + Zₘ, independent: M(t) = Π Mᵢ(t). Made by ``noise + noise``.

    Sums of Laplace noises have a closed density: by partial fractions of Π 1/(1 − bᵢ²t²) it is a
    combination of e^{−|x|/b} times polynomials in |x|. Other sums are known by their moments and
    generating function.

    Examples
    --------
    >>> total = Laplace(1) + Laplace(2)
    >>> total, total.variance
    (Laplace(1) + Laplace(2), 10)
    """

    parts: tuple[Noise, ...]

    def __post_init__(self) -> None:
        if len(self.parts) > MAX_PARTS:
            raise TrueupError(
                f"a sum of {len(self.parts)} noises, at most {MAX_PARTS} are possible",
                "publish the total with a noise of its own",
            )

    @property
    def lattice(self) -> bool:  # type: ignore[override]
        """Whether all summands take integer values only."""
        return all(part.lattice for part in self.parts)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether all summands are."""
        return all(part.symmetric for part in self.parts)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator | None:
        """Return Π(1 − bᵢ²D²) inside the domain, least-norm beyond, for a sum of Laplace noises."""
        scales = self._scales
        if scales is None:
            return None
        return deconvolution.laplace_sum([symbolic(b) for b in scales], domain)

    @property
    def _scales(self) -> list[Exact] | None:
        """The scales, if all summands are Laplace."""
        scales = [p.scale for p in self.parts if isinstance(p, Laplace)]
        return scales if len(scales) == len(self.parts) else None

    @property
    def mgf_radius(self) -> float:
        """The smallest of the summands'."""
        return min(part.mgf_radius for part in self.parts)

    @property
    def tail_power(self) -> float:
        """One less than the summands: a gamma-like tail."""
        return len(self.parts) - 1.0

    @property
    def highest_moment(self) -> int | None:
        """The smallest of the summands'."""
        known = [p.highest_moment for p in self.parts if p.highest_moment is not None]
        return min(known, default=None)

    @property
    def variance(self) -> Exact:
        """The sum of the variances."""
        return sum(part.variance for part in self.parts)

    def _moment(self, k: int) -> Exact:
        moments = [[part.moment(j) for j in range(k + 1)] for part in self.parts]
        total: Exact = _convolve(moments)[k]
        return total

    def _check_strip(self, c: sympy.Expr, order: int) -> None:
        for part in self.parts:
            part._check_strip(c, order)

    @property
    def _is_exact(self) -> bool:
        return all(part._is_exact and part.exact_tilt for part in self.parts)

    def _working_digits(self, c: sympy.Expr, order: int) -> int:
        return sum(part._working_digits(c, order) for part in self.parts)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        return _convolve([part._tilted(c, order, field) for part in self.parts])

    # -- the law of a sum of Laplace noises -----------------------------------------------------

    @cached_property
    def _terms(self) -> tuple[list[tuple[float, Floats]], list[tuple[float, Floats]]]:
        """Density and upper tail for x ≥ 0 as Σ e^{−x/b} · polynomial(x)."""
        if self._scales is None:
            raise TrueupError(
                f"the density of {self!r} has no closed form", "use its moments, or simulate it"
            )
        density = [(float(b), poly) for b, poly in _partial_fractions(Counter(self._scales))]
        return density, [(b, _tail_polynomial(b, poly)) for b, poly in density]

    def _density(self, x: Floats) -> Floats:
        return _series(self._terms[0], np.abs(x))

    def _cdf(self, x: Floats) -> Floats:
        tail = _series(self._terms[1], np.abs(x))
        return np.where(x < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        return np.asarray(np.vectorize(self._quantile_of, otypes=[float])(p))

    def _quantile_of(self, p: float) -> float:
        terms = self._terms[1]
        side, tail = (1.0, 1 - p) if p > 0.5 else (-1.0, p)
        if tail == 0:
            return side * math.inf
        if tail == 0.5:
            return 0.0
        reach = 2 * sum(float(b) for b in self._scales or ()) * (1 - math.log(tail))
        from scipy import optimize

        level = lambda x: math.log(max(float(_series(terms, np.array(x))), 5e-324)) - math.log(tail)  # noqa: E731
        return side * float(optimize.brentq(level, 0.0, reach, xtol=1e-14 * reach, rtol=1e-15))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return sum(part._sample(shape, rng) for part in self.parts)


def add(left: Noise, right: Noise) -> Noise:
    """Return the noise of a sum, its summands sorted."""
    parts = [p for n in (left, right) for p in (n.parts if isinstance(n, SumNoise) else (n,))]
    return SumNoise(tuple(sorted(parts, key=repr)))


def _convolve(sequences: list[list[Any]]) -> list[Any]:
    """Return the moments of a sum from the moments of its summands."""
    total = sequences[0]
    for other in sequences[1:]:
        total = [
            sum(comb(j, k) * total[k] * other[j - k] for k in range(j + 1))
            for j in range(len(total))
        ]
    return total


def _partial_fractions(scales: Counter[Exact]) -> list[tuple[Exact, Floats]]:
    """Return the density for x ≥ 0 as pairs (b, polynomial): residues of Π (1 − bᵢ²t²)^{−mᵢ}.

    At the pole t = −1/b of order m the density is Σ over r < m of a coefficient times x^r e^{−x/b};
    the coefficients come from the Taylor series of the rest of the product there.
    """
    t = sympy.Dummy("t")
    result = []
    for b, m in scales.items():
        s = symbolic(b)
        rest = sympy.Mul(*(1 - symbolic(c) ** 2 * t**2 for c in scales.elements() if c != b))
        # M(t) = 1 / ((1 + bt)^m (1 − bt)^m rest); the density on x ≥ 0 is −Res e^{−tx} M(t) at 1/b.
        u = sympy.Dummy("u")
        other = (((1 + s * t) ** m) * rest).subs(t, (1 + u) / s)
        series = sympy.series(1 / other, u, 0, m).removeO()
        coefficients = [sympy.nsimplify(series.coeff(u, k)) for k in range(m)]
        # (1 − bt)^m = (−u)^m; e^{−tx} = e^{−x/b} e^{−ux/b}.
        poly = [
            float(
                (-1) ** (m - 1) * coefficients[m - 1 - r] * (-1 / s) ** r / (sympy.factorial(r) * s)
            )
            for r in range(m)
        ]
        result.append((b, np.array(poly)))
    return result


def _tail_polynomial(b: float, poly: Floats) -> Floats:
    """Return q with ∫ₓ^∞ p(y) e^{−y/b} dy = q(x) e^{−x/b}: q = b·(p + b·p′ + b²·p″ + …)."""
    total, term = np.zeros_like(poly), np.array(poly)
    factor = b
    while term.size and term.any():
        total[: term.size] += factor * term
        term, factor = np.asarray(np.polynomial.polynomial.polyder(term), float), factor * b
    return total


def _series(terms: list[tuple[float, Floats]], x: Floats) -> Floats:
    total: Floats = np.zeros_like(x)
    for b, poly in terms:
        total = np.asarray(
            total + np.exp(-x / b) * np.polynomial.polynomial.polyval(x, poly), float
        )
    return total
