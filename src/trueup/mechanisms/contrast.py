"""Contrasts over a total: (a·q)/n with Σaᵢ = 0, from k totals under equal Laplace noise.

The noises are exchangeable, so a·x is uncorrelated with every function of the noisy total
u = Σxᵢ, and (a·x)·G(u) is unbiased for (a·q)/n as soon as G is unbiased for 1/n under the sum of k
noises. With p = 1 − b²D² and V = a·Z, W = ΣZᵢ,

    E[V² e^{tW}] = A·2b²·(2/p^{k+2} − 1/p^{k+1}),    A = Σaᵢ²,

which gives both the exact variance and, with H unbiased for 1/n², an unbiased estimate of it:
y²·(G² − H) + A·K, where K is unbiased for 2b²·(2/p² − 1/p) applied to what H stands for.
"""

from __future__ import annotations

import math
from functools import cached_property
from math import comb, factorial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.polys.matrices import DomainMatrix

from trueup.estimator import unbiased
from trueup.exact import symbolic
from trueup.mechanisms.sum_quadrature import expect
from trueup.noise import Laplace, SumNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.noise import Noise


class Contrast:
    """The unbiased ratio of a contrast to the total, its variance, and an estimate of that.

    Parameters
    ----------
    totals
        How many totals are published, k ≥ 2.
    scale
        The scale b of the Laplace noise on each.
    at_least
        A known lower bound of the true total n.
    """

    def __init__(self, totals: int, scale: Exact, at_least: Exact) -> None:
        self.totals, self.scale, self.at_least = totals, scale, at_least
        self.noise = self._sum(totals)
        self.inverse: Estimator = unbiased("1/n", self.noise, (at_least, None))

    @cached_property
    def square(self) -> Estimator:
        """H, unbiased for 1/n²: only an estimate of the variance needs it."""
        return unbiased("1/n**2", self.noise, (self.at_least, None))

    def _sum(self, m: int) -> SumNoise:
        return SumNoise((Laplace(self.scale),) * m)

    def value(self, contrast: Any, total: Any) -> Any:
        """Return y·G(u)."""
        return contrast * self._inverse(total)

    def variance(self, contrast: Any, total: Any, norm: float) -> Any:
        """Return the unbiased estimate y²·(G² − H) + A·K of the variance of y·G(u)."""
        spread = self._inverse(total) ** 2 - self._square(total)
        return contrast**2 * spread + norm * self._correction(total)

    def _inverse(self, total: Any) -> Any:
        """Return G(u): (1 − b²D²)^k of 1/u above the bound."""
        series = _series(_binomial(self.totals), 0)
        return self._beside(total, self.inverse, lambda u, z: series(z) / u)

    def _square(self, total: Any) -> Any:
        """Return H(u): (1 − b²D²)^k of 1/u² above the bound."""
        series = _series(_binomial(self.totals), 1)
        return self._beside(total, self.square, lambda u, z: series(z) / u**2)

    def _beside(self, total: Any, below: Callable[[Any], Any], above: Callable[..., Any]) -> Any:
        """Return a function of (u, b/u) above the bound, where powers of b/u overflow nowhere."""
        u, at_least = np.asarray(total, float), float(self.at_least)
        safe = np.maximum(u, at_least)
        inside = above(safe, float(self.scale) / safe)
        return np.where(u > at_least, inside, below(np.minimum(u, at_least)))[()]

    def true_variance(self, contrast: float, n: float, norm: float) -> float:
        """Return Var y·G(u) = D²·Var G + 2b²A(2·E₊₂ G² − E₊₁ G²), exactly."""
        k, b, at = self.totals, float(self.scale), (float(n), float(self.scale))
        bound = float(self.at_least)
        centre = 1 / n if n >= bound else expect(self._inverse, *at, k, bound)
        own = expect(lambda u: (self._inverse(u) - centre) ** 2, *at, k, bound)
        once, twice = (
            expect(lambda u: self._inverse(u) ** 2, *at, k + more, bound) for more in (1, 2)
        )
        return contrast**2 * own + 2 * b**2 * norm * (2 * twice - once)

    def _correction(self, total: Any) -> Any:
        """Return K(u) = 2b²·(1 + b²D²)(1 − b²D²)^{k−2} F, where F is 1/u² and its extension."""
        series = _series(_operator(self.totals), 1)
        return self._beside(total, self._correction_below, lambda u, z: 2 * z**2 * series(z))

    def _correction_below(self, total: Any) -> Any:
        pi, rho = self._extended
        t = (float(self.at_least) - total) / float(self.scale)
        value = np.polynomial.polynomial.polyval
        return value(t, pi) + np.exp(-t) * value(t, rho)

    @cached_property
    def _extended(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The polynomials of K below the bound."""
        b, k = symbolic(self.scale), self.totals
        start = [
            (-b) ** n * (-1) ** n * factorial(n + 1) / symbolic(self.at_least) ** (n + 2)
            for n in range(2 * k)
        ]
        smooth, decaying = _apply(_operator(k), *_extension(start))
        scale = float(2 * b**2)
        pi, rho = (np.array([scale * float(c) for c in p]) for p in (smooth, decaying))
        return pi, rho


def inverse_moments(n: float, noise: Noise, at_least: float) -> tuple[float, float]:
    """Return the mean and the variance of the unbiased 1/n under (discrete) Laplace noise.

    Above the bound it is T 1/u, below it is constant: 1/L + b/L² or 1/L + κ/(L(L + 1)).

    Examples
    --------
    >>> [round(x, 6) for x in inverse_moments(4.0, Laplace(1), 1.0)]
    [0.25, 0.084324]
    """
    if isinstance(noise, Laplace):
        b = float(noise.scale)

        def g(u: Any) -> Any:
            safe, below = np.maximum(u, at_least), (1 + b / at_least) / at_least
            return np.where(u > at_least, (1 - 2 * (b / safe) ** 2) / safe, below)

        centre = 1 / n if n >= at_least else expect(g, n, b, 1, at_least)
        return centre, expect(lambda u: (g(u) - centre) ** 2, n, b, 1, at_least)
    a, low = math.exp(-1 / float(noise.scale)), math.ceil(at_least)  # type: ignore[attr-defined]
    reach = math.ceil(-40 / math.log(a))
    k = np.arange(-reach, reach + 1)
    y, p = np.maximum(n + k, low), a ** np.abs(k) * (1 - a) / (1 + a)
    lam, safe = a / (1 - a) ** 2, np.maximum(y, low + 1)
    inside = 1 / safe - 2 * lam / (safe * (safe**2 - 1))
    values = np.where(y > low, inside, (1 + a / (1 - a) / (low + 1)) / low)
    centre = 1 / n if n >= low else float(p @ values)
    return centre, float(p @ (values - centre) ** 2)


def _series(orders: dict[int, int], extra: int) -> Callable[[Any], Any]:
    """Return Σ c·(n + e)!·zⁿ over the orders n: bⁿDⁿ of u^{−1−e} is (n + e)!·(b/u)ⁿ·u^{−1−e}."""
    top = max(orders)
    coefficients = [float(orders.get(n, 0) * factorial(n + extra)) for n in range(top + 1)]
    return lambda z: np.polynomial.polynomial.polyval(z, coefficients)


def _binomial(k: int) -> dict[int, int]:
    """Return the coefficients of (1 − D²)^k by order of D."""
    return {2 * r: (-1) ** r * comb(k, r) for r in range(k + 1)}


def _operator(k: int) -> dict[int, int]:
    """Return the coefficients of (1 + D²)(1 − D²)^{k−2} by order of D."""
    orders: dict[int, int] = {}
    for r in range(k - 1):
        c = (-1) ** r * comb(k - 2, r)
        orders[2 * r] = orders.get(2 * r, 0) + c
        orders[2 * r + 2] = orders.get(2 * r + 2, 0) + c
    return orders


def _extension(start: list[sympy.Expr]) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
    """Return (π, ρ) with π(t) + ρ(t)·e^{−t} matching 2k derivatives at t = 0.

    This is the extension of f behind the least-norm estimator: (1 − ∂²)^k leaves a polynomial.
    """
    k = len(start) // 2
    matrix = sympy.zeros(2 * k, 2 * k)
    for j in range(2 * k):
        for r in range(k):
            matrix[j, r] = factorial(j) if j == r else 0
            matrix[j, k + r] = comb(j, r) * factorial(r) * (-1) ** (j - r) if j >= r else 0
    exact = DomainMatrix.from_Matrix(matrix).convert_to(sympy.QQ)
    solution = list(exact.lu_solve(_column(start)).to_Matrix())
    return solution[:k], solution[k:]


def _column(values: list[sympy.Expr]) -> DomainMatrix:
    """Return rational numbers as a column; floats are the fractions that they are."""
    exact = [v if v.is_Rational else sympy.Rational(*float(v).as_integer_ratio()) for v in values]
    return DomainMatrix.from_Matrix(sympy.Matrix(exact)).convert_to(sympy.QQ)


def _apply(
    orders: dict[int, int], pi: list[sympy.Expr], rho: list[sympy.Expr]
) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
    """Apply a polynomial in ∂ to π(t) + ρ(t)·e^{−t}."""
    total = [sympy.Integer(0)] * len(pi), [sympy.Integer(0)] * len(rho)
    for n in range(max(orders) + 1):
        if c := orders.get(n, 0):
            total = (
                [a + c * x for a, x in zip(total[0], pi, strict=True)],
                [a + c * x for a, x in zip(total[1], rho, strict=True)],
            )
        slope = _derivative(rho)
        pi, rho = _derivative(pi), [s - x for s, x in zip(slope, rho, strict=True)]
    return total


def _derivative(poly: list[sympy.Expr]) -> list[sympy.Expr]:
    return [(r + 1) * c for r, c in enumerate(poly[1:])] + [sympy.Integer(0)]
