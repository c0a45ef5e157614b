"""Contrasts over a total: (a·q)/n with Σaᵢ = 0, from k totals under equal Laplace noise.

The noises are exchangeable, so a·x is uncorrelated with every function of the noisy total
u = Σxᵢ, and (a·x)·G(u) is unbiased for (a·q)/n as soon as G is unbiased for 1/n under the sum of k
noises. With p = 1 − b²D² and V = a·Z, W = ΣZᵢ,

    E[V² e^{tW}] = A·2b²·(2/p^{k+2} − 1/p^{k+1}),    A = Σaᵢ²,

which gives both the exact variance and, with H unbiased for 1/n², an unbiased estimate of it:
y²·(G² − H) + A·K, where K is unbiased for 2b²·(2/p² − 1/p) applied to what H stands for.
"""

from __future__ import annotations

from functools import cached_property
from math import comb, factorial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.polys.matrices import DomainMatrix

from trueup.estimator import unbiased
from trueup.exact import symbolic
from trueup.inverse.component import Cell
from trueup.inverse.expectation import Expectation
from trueup.noise import Laplace, SumNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.exact import Exact

_N = sympy.Symbol("n", real=True)


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
        self.square: Estimator = unbiased("1/n**2", self.noise, (at_least, None))

    def _sum(self, m: int) -> SumNoise:
        return SumNoise((Laplace(self.scale),) * m)

    def value(self, contrast: Any, total: Any) -> Any:
        """Return y·G(u)."""
        return contrast * self.inverse(total)

    def variance(self, contrast: Any, total: Any, norm: float) -> Any:
        """Return the unbiased estimate y²·(G² − H) + A·K of the variance of y·G(u)."""
        spread = self.inverse(total) ** 2 - self.square(total)
        return contrast**2 * spread + norm * self._correction(total)

    def true_variance(self, contrast: float, n: float, norm: float) -> float:
        """Return Var y·G(u) = D²·Var G + 2b²A(2·E₊₂ G² − E₊₁ G²), exactly."""
        once, twice = (moment.at({_N: n}) for moment in self._second_moments)
        own = float(self.inverse.sd(float(n))) ** 2
        return contrast**2 * own + 2 * float(self.scale) ** 2 * norm * (2 * twice - once)

    @cached_property
    def _second_moments(self) -> list[Expectation]:
        """E G² under the sum of k + 1 and of k + 2 noises."""
        component = self.inverse._inverse.components[0]
        operator = component.cells[0].operator
        found = []
        for more in (1, 2):
            cell = Cell(_N, operator, self._sum(self.totals + more))
            found.append(Expectation(lambda r: component.value(r) ** 2, [cell], {}, {}, {}))
        return found

    def _correction(self, total: Any) -> Any:
        """Return K(u) = 2b²·(1 + b²D²)(1 − b²D²)^{k−2} F, where F is 1/u² and its extension."""
        u = np.asarray(total, float)
        inside, below = self._corrections
        at_least = float(self.at_least)
        t = (at_least - np.minimum(u, at_least)) / float(self.scale)
        safe = np.maximum(u, at_least)
        return np.where(u > at_least, inside(safe), below(t))

    @cached_property
    def _corrections(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        b, k = symbolic(self.scale), self.totals
        orders = _operator(k)
        powers = [  # Dⁿ u⁻² = (−1)ⁿ (n + 1)! u⁻²⁻ⁿ; the orders are even
            (float(2 * b**2 * c * b**n * factorial(n + 1)), n + 2) for n, c in orders.items()
        ]
        start = [
            (-b) ** n * (-1) ** n * factorial(n + 1) / symbolic(self.at_least) ** (n + 2)
            for n in range(2 * k)
        ]
        smooth, decaying = _apply(orders, *_extension(start))
        scale = float(2 * b**2)
        pi, rho = (np.array([scale * float(c) for c in p]) for p in (smooth, decaying))
        value = np.polynomial.polynomial.polyval

        def inside(u: NDArray[np.float64]) -> Any:
            return sum(c / u**n for c, n in powers)

        return inside, lambda t: value(t, pi) + np.exp(-t) * value(t, rho)


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
