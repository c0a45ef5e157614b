"""The appendix's Newton step for a degree-k extension, in exact arithmetic, misprints included.

Below L the estimator is g(x) = Σ aᵢ xⁱ and its extension h solves g = h − b²h″, so

    h⁽ᵈ⁾(L) = Σⱼ aⱼ·s_d(j),    s_d(j) = Σ_l b^{2l} j!/(j − 2l − d)! L^{j − 2l − d}.

The three conditions on h at L fix a₀, a₁, a₂; the others minimise the mean of (g − c)² under the
density e^{(x−L)/b}/b on x < L. The prior enters through c alone, the mean of f under it, weighted
by e^{−q/b}: for 1/q on q ≥ 1 it lies in (0, 1]. The step starts at the parabola (a₃ = … = 0).

An unbiased g has one left mean, f(L) − b f′(L). The spread of its left part around it, the excess,
adds ½ e^{(L−q)/b}·excess to the variance at q, and is zero for the best estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, factorial
from typing import Any, NamedTuple

import sympy


@dataclass(frozen=True)
class Slips:
    """Which misprints of the appendix to follow.

    Attributes
    ----------
    powers
        The factors b^{2l} are missing.
    half
        ∂a₂/∂aᵢ lacks its factor ½.
    short
        The sum in ∂a₁/∂aᵢ ends at ⌊i/2 − 1⌋ instead of ⌊(i − 1)/2⌋.
    square
        ∂a₀/∂aᵢ has 2 + L² for 2b² + L².
    twice
        Gradient and Hessian count α = β twice.
    sign
        The terms with f(q) have the wrong sign in the gradient.
    """

    powers: bool = False
    half: bool = False
    short: bool = False
    square: bool = False
    twice: bool = False
    sign: bool = False


class Left(NamedTuple):
    """What a Newton step leaves below L: its mean and its excess, exact rationals."""

    mean: Any
    excess: Any


class NewtonStep:
    """One Newton step from the parabola.

    Parameters
    ----------
    f
        The estimand, in one symbol.
    low, scale, degree
        L, the noise scale b, and k.
    slips
        The misprints to follow, none by default.

    Examples
    --------
    >>> step = NewtonStep(1 / sympy.Symbol("q"), low=1, scale=2, degree=10)
    >>> left = step.left(prior=sympy.Rational(1, 2))
    >>> left.mean, round(float(left.excess), 4)
    (3, 14.2571)
    """

    def __init__(
        self, f: sympy.Expr, low: int, scale: int, degree: int, slips: Slips | None = None
    ) -> None:
        (q,) = f.free_symbols
        self.f = [f.diff(q, d).subs(q, low) for d in range(3)]
        self.slips, self.degree = slips or Slips(), degree
        self.low, self.scale = sympy.Rational(low), sympy.Rational(scale)
        self.step = sympy.Integer(1) if self.slips.powers else self.scale
        self.moments = [self._moment(j) for j in range(2 * degree + 1)]
        self.free = range(3, degree + 1)

    def left(self, prior: Any) -> Left:
        """Return the left part that the step arrives at; the step is linear in c."""
        start, slope = self._ends
        a = self._complete([x + prior * y for x, y in zip(start, slope, strict=True)])
        mean = _inner(a, [1], self.moments)
        return Left(mean, _inner(a, a, self.moments) - mean**2)

    @cached_property
    def _ends(self) -> tuple[list[Any], list[Any]]:
        """Return the free coefficients after the step: at c = 0, and their slope in c."""
        parabola = self._complete([sympy.Integer(0)] * len(self.free))
        slopes = [self._slopes(i) for i in self.free]
        moves = [_unit(i, d) for i, d in zip(self.free, slopes, strict=True)]
        pairs = list(zip(moves, slopes, strict=True))
        gradient = sympy.Matrix([self._gradient(v, d, parabola) for v, d in pairs])
        hessian = sympy.Matrix([[self._curvature(v, w, d, e) for w, e in pairs] for v, d in pairs])
        change = hessian.LUsolve(-gradient)
        return list(change[:, 0]), list(change[:, 1])

    def _moment(self, j: int) -> Any:
        """Return the mean of xʲ, x = L − b·t with t exponential."""
        L, b = self.low, self.scale
        return sum(comb(j, i) * L ** (j - i) * (-b) ** i * factorial(i) for i in range(j + 1))

    def _at_low(self, d: int, j: int) -> Any:
        """Return s_d(j), what aⱼ adds to the d-th derivative of h at L."""
        steps = range((j - d) // 2 + 1) if j >= d else range(0)
        return sum(
            (
                self.step ** (2 * n)
                * sympy.Rational(factorial(j), factorial(j - 2 * n - d))
                * self.low ** (j - 2 * n - d)
                for n in steps
            ),
            sympy.Integer(0),
        )

    def _complete(self, free: list[Any]) -> list[Any]:
        """Return all coefficients, a₀, a₁, a₂ from the conditions at L."""
        a = [sympy.Integer(0)] * 3 + free
        for d in (2, 1, 0):
            rest = sum(a[j] * self._at_low(d, j) for j in range(d + 1, self.degree + 1))
            a[d] = (self.f[d] - rest) / self._at_low(d, d)
        return a

    def _slopes(self, i: int) -> list[Any]:
        """Return ∂a₀/∂aᵢ, ∂a₁/∂aᵢ, ∂a₂/∂aᵢ, as they are or as they are printed."""
        L, s = self.low, self.slips
        second = -self._at_low(2, i) / (1 if s.half else 2)
        lost = self.step ** (i - 1) * factorial(i) if s.short and i % 2 else 0
        first = -2 * L * second - (self._at_low(1, i) - lost)
        corner = 2 + L**2 if s.square else 2 * self.step**2 + L**2
        return [-corner * second - L * first - self._at_low(0, i), first, second]

    def _gradient(self, move: list[Any], slopes: list[Any], start: list[Any]) -> list[Any]:
        """Return the gradient at c = 0, and its slope in c."""
        fixed = _inner(move, start, self.moments) + self._doubled(slopes, start)
        moving = _inner(move, [1], self.moments)
        return [2 * fixed, 2 * moving if self.slips.sign else -2 * moving]

    def _curvature(self, v: list[Any], w: list[Any], d: list[Any], e: list[Any]) -> Any:
        return 2 * (_inner(v, w, self.moments) + self._doubled(d, e))

    def _doubled(self, u: list[Any], w: list[Any]) -> Any:
        """Return the terms with α = β a second time, where the misprint is followed."""
        if not self.slips.twice:
            return 0
        return sum(u[a] * w[a] * self.moments[2 * a] for a in range(3))


def over_priors(step: NewtonStep) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges over all priors, c in [0, 1], of the left mean and of the excess.

    The mean is linear in c and the excess quadratic: the ends and the vertex tell.
    """
    half = sympy.Rational(1, 2)
    lefts = [step.left(c) for c in (0, half, 1)]
    start, middle, end = (left.excess for left in lefts)
    bend = 2 * (start - 2 * middle + end)
    vertex = (3 * start - 4 * middle + end) / (2 * bend) if bend else half
    if 0 < vertex < 1:
        lefts.append(step.left(vertex))
    means, excesses = ([float(x) for x in found] for found in zip(*lefts, strict=True))
    return (min(means), max(means)), (min(excesses), max(excesses))


def _unit(i: int, slopes: list[Any]) -> list[Any]:
    """Return the polynomial by which g moves with aᵢ."""
    return [*slopes, *([0] * (i - 3)), 1]


def _inner(u: list[Any], w: list[Any], moments: list[Any]) -> Any:
    return sum(x * y * moments[i + j] for i, x in enumerate(u) for j, y in enumerate(w) if x and y)
