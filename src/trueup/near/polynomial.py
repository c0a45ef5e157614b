"""The best polynomial where only moments of the noise are known.

A polynomial p has the unbiased estimator T[p], which needs as many moments as p has degrees; as an
estimator of f its bias is exactly p(q) − f(q). Its variance is a quadratic form in the coefficients
of p, known as soon as twice as many moments are. Among the polynomials of the degrees that this
allows the one of least prior-averaged mean squared error is chosen, or the one of least variance
with |p − f| ≤ τ on the domain.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.formula.text import text
from trueup.inverse.exact_law import ExactLaw
from trueup.inverse.grids import grid
from trueup.inverse.solve import Inverse, Statistic, invert
from trueup.near.certificate import distance
from trueup.near.construct import Reached, check_bounded, tightened, unreachable, up
from trueup.near.programme import Programme

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from trueup.kernels.grid import Grid
    from trueup.near.question import Question

    Floats = NDArray[np.float64]

HIGHEST = 12
"""The highest degree tried."""

_POINTS, _SHOWN = 257, 65
_BETTER = 1 - 1e-6


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """The unbiased estimator of a polynomial near f, and a bound on the distance of the two."""

    question: Question
    polynomial: sympy.Expr
    degree: int
    bound: float
    variance_bias: float = 0.0

    @property
    def relative(self) -> bool:
        """Whether the bound is relative to |f|."""
        return self.question.relative

    @property
    def statistics(self) -> tuple[Statistic]:
        """The one statistic it reads."""
        question = self.question
        return (Statistic(question.symbol, question.noise, question.domain),)

    @cached_property
    def inverse(self) -> Inverse:
        """The exact inverse of the polynomial."""
        return invert(self.polynomial, self.statistics)

    @cached_property
    def law(self) -> _Law:
        """What the noise makes of it."""
        return _Law(self.question.f, ExactLaw(self.inverse, self.statistics))

    def variance_grid(self, statistics: Sequence[Statistic]) -> Grid:
        """Return the unbiased variance, ready for numbers and arrays."""
        return grid(self.inverse.components, statistics, "variance")

    @property
    def profile(self) -> Polynomial:
        """Standard deviations over the domain, of its own."""
        return self

    @cached_property
    def _sds(self) -> tuple[Floats, Floats]:
        question = self.question
        q = np.linspace(question.low, question.high, _SHOWN)
        sds = np.array([self.law.sd({question.symbol: float(v)}) for v in q])
        return q, sds / question.size(q)

    @property
    def largest(self) -> tuple[float, float]:
        """The largest standard deviation, and where it is."""
        q, sds = self._sds
        top = int(np.argmax(sds))
        return float(sds[top]), float(q[top])

    @property
    def average(self) -> float:
        """The root of the variance averaged over the prior."""
        q, sds = self._sds
        weights = self.question.prior(q)
        return math.sqrt(float(weights @ sds**2) / float(weights.sum()))


class _Law:
    """The law of the estimator of p, as an estimator of f."""

    def __init__(self, f: sympy.Expr, law: ExactLaw) -> None:
        self.f, self.expectation, self.sd = f, law.expectation, law.sd

    def bias(self, truth: Any) -> float:
        """Return p − f."""
        point = {s: sympy.Float(q, 30) for s, q in truth.items()}
        return self.expectation(truth) - float(self.f.xreplace(point))


def approximate(question: Question, bounded: bool) -> Polynomial:
    """Return the estimator of the best polynomial.

    If ``bounded`` it has the least variance among those with |p − f| ≤ τ, otherwise the least mean
    squared error, of the average of so many cells as the question names.
    """
    _check(question)
    fits = _fits(question)
    if not bounded:
        return _fitted(question, fits)
    found = _within(question, fits)
    if isinstance(found, Polynomial):
        return found
    raise unreachable(question, _reached(question, found))


def _fits(question: Question) -> list[_Fit]:
    """Return the polynomials of every degree whose variance is known."""
    known = question.noise.highest_moment
    highest = HIGHEST if known is None else min(HIGHEST, known // 2)
    if not highest:
        raise TrueupError(
            f"two moments of the noise must be known for a variance, here are {known}",
            "give at least the mean and the mean square: Moments([m1, m2])",
        )
    return [_Fit(question, degree) for degree in range(1, highest + 1)]


def _check(question: Question) -> None:
    if math.isinf(question.low) or math.isinf(question.high):
        raise TrueupError(
            f"no polynomial stays close to {text(question.f)} on {question.domain}",
            "give a domain that is bounded on both sides",
        )
    if not question.smooth:
        raise TrueupError(
            f"{text(question.f)} is not smooth: its distance from a polynomial is not bounded here",
            "write f as a smooth formula, or name the family of the noise",
        )
    check_bounded(question)


class _Fit:
    """Polynomials of one degree in t = (q − middle)/radius, by Chebyshev coefficients."""

    def __init__(self, question: Question, degree: int) -> None:
        self.question, self.degree = question, degree
        low, high = symbolic(question.domain.low), symbolic(question.domain.high)
        self.middle, self.radius = (low + high) / 2, (high - low) / 2
        angles = np.linspace(0, math.pi, _POINTS)
        self.t = np.cos(angles)
        self.q = float(self.middle) + float(self.radius) * self.t
        self.basis = np.asarray(np.polynomial.chebyshev.chebvander(self.t, degree), float)
        weights = question.prior(self.q) * np.sin(angles) + 1e-12
        self.size = question.size(self.q)
        self.weights = weights / weights.sum() / self.size**2
        self.truth = question.truth(self.q)

    @cached_property
    def variance(self) -> Floats:
        """The matrix V such that the averaged variance of the estimator of Σ cₖTₖ is c·V·c."""
        n = self.degree + 1
        powers = np.zeros((n, n))
        for k in range(n):
            powers[k, : k + 1] = np.polynomial.chebyshev.cheb2poly(np.eye(n)[k])[: k + 1]
        form = np.array([[self._covariance(i, j) for j in range(n)] for i in range(n)])
        return np.asarray(powers @ form @ powers.T)

    @cached_property
    def _moments(self) -> list[float]:
        radius = float(self.radius)
        count = 2 * self.degree + 1
        return [float(self.question.noise.moment(k)) / radius**k for k in range(count)]

    @cached_property
    def _estimators(self) -> list[Floats]:
        """The polynomials T[tᵏ] = Σ C(k, i) νᵢ tᵏ⁻ⁱ, lowest power first."""
        nu, m = [1.0], self._moments
        for k in range(1, self.degree + 1):
            nu.append(-sum(comb(k, j) * nu[j] * m[k - j] for j in range(k)))
        orders = range(self.degree + 1)
        return [np.array([comb(k, i) * nu[k - i] for i in range(k + 1)]) for k in orders]

    def _covariance(self, i: int, j: int) -> float:
        """Return the averaged covariance of T[tⁱ] and T[tʲ]."""
        both = np.polynomial.polynomial.polymul(self._estimators[i], self._estimators[j])
        mean = np.zeros(len(both))  # E of the product: E (t + z)ᵏ = Σ C(k, l) tᵏ⁻ˡ E zˡ
        for k, c in enumerate(both):
            for drop in range(k + 1):
                mean[k - drop] += c * comb(k, drop) * self._moments[drop]
        mean[i + j] -= 1.0
        return float(self.weights @ np.polynomial.polynomial.polyval(self.t, mean))

    def expr(self, coefficients: Floats) -> sympy.Expr:
        """Return the polynomial as a formula, its coefficients the fractions that they are."""
        plain = np.polynomial.chebyshev.cheb2poly(coefficients)
        t = (self.question.symbol - self.middle) / self.radius
        exact = [sympy.Rational(*float(c).as_integer_ratio()) for c in plain]
        return sympy.Add(*(c * t**k for k, c in enumerate(exact)))


def _fitted(question: Question, fits: Iterable[_Fit]) -> Polynomial:
    """Return the polynomial of least mean squared error."""
    best, least = None, math.inf
    for fit in fits:
        spread = fit.variance / (question.cells or 1.0)
        gram = fit.basis.T @ (fit.weights[:, None] * fit.basis) + spread
        right = fit.basis.T @ (fit.weights * fit.truth)
        found = np.asarray(np.linalg.lstsq(gram, right, rcond=1e-13)[0], float)
        gap = fit.basis @ found - fit.truth
        error = float(fit.weights @ gap**2 + found @ spread @ found)
        if error < least * _BETTER:
            best, least = (fit, found), error
    assert best is not None  # noqa: S101  (there is at least one degree)
    p = best[0].expr(best[1])
    return Polynomial(question, p, best[0].degree, distance(question, p))


def _reached(question: Question, least: float) -> Reached | None:
    """Return a distance that can be reached, not far from the least that was seen."""
    for factor in (1.01, 1.05, 1.3, 2.0, 4.0):
        if math.isfinite(least):
            asked = dataclasses.replace(question, max_bias=up(least * factor))
            found = _within(asked, _fits(asked))
            if isinstance(found, Polynomial):
                return Reached(asked.max_bias, found.bound)
    return None


def _within(question: Question, fits: Iterable[_Fit]) -> Polynomial | float:
    """Return the polynomial of least variance among those close enough to f.

    If there is none, the least distance that seems possible.
    """
    best, least, closest = None, math.inf, math.inf
    for fit in fits:
        found = _of_degree(fit)
        if isinstance(found, float):
            closest = min(closest, found)
        elif found[1] < least * _BETTER:
            best, least = found
    return closest if best is None else best


def _of_degree(fit: _Fit) -> tuple[Polynomial, float] | float:
    """Return the polynomial of one degree and its variance, or the least distance possible."""
    question, programme = fit.question, _programme(fit)

    def solve(shrink: float) -> tuple[tuple[Polynomial, float], float] | None:
        found = programme.least_variance(shrink)
        if found is None:
            return None
        p, variance = fit.expr(found), float(found @ fit.variance @ found)
        bound = distance(question, p)
        return (Polynomial(question, p, fit.degree, bound), variance), bound

    found = tightened(solve, 2e-3, question.max_bias)
    return programme.least_bias() * question.max_bias if found is None else found


def _programme(fit: _Fit) -> Programme:
    start = np.asarray(np.polynomial.chebyshev.chebfit(fit.t, fit.truth, fit.degree), float)
    return Programme(
        fit.basis,
        fit.basis @ start,
        2 * fit.variance,
        2 * fit.variance @ start,
        fit.truth,
        fit.question.max_bias * fit.size,
        start,
        flat=1e-6,
    )
