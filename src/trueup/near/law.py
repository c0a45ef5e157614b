"""Expectation, bias and standard deviation of a nearly unbiased estimator at a true value."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from trueup.estimator import Estimator
from trueup.kernels.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sympy

    from trueup.inverse.solve import Statistic
    from trueup.near.component import Factor, Term

    Truth = Mapping[sympy.Symbol, float]


class NearLaw:
    """What the noise makes of a sum of products Xₖ·Πᵢ Yₖᵢ, X exact and Y nearly unbiased.

    The statistics are independent, so E of a product is the product of the E, and
    Var = Σₖₗ (E XₖXₗ · Πᵢ E YₖᵢYₗᵢ − E Xₖ·E Xₗ · Πᵢ E Yₖᵢ·E Yₗᵢ).
    """

    def __init__(
        self, f: sympy.Expr, terms: Sequence[Term], statistics: Sequence[Statistic]
    ) -> None:
        self.f, self.terms, self.statistics = f, terms, statistics
        self._added = lru_cache(maxsize=None)(self._sum_of_rests)

    def expectation(self, truth: Truth) -> float:
        """Return E g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        return sum(math.prod(self._means(term, truth)) for term in self.terms)

    def bias(self, truth: Truth) -> float:
        """Return E g − f."""
        columns = {s: np.array([q]) for s, q in truth.items()}
        return self.expectation(truth) - float(evaluate(self.f, columns)[0])

    def sd(self, truth: Truth) -> float:
        """Return the root of Var g."""
        if not all(map(math.isfinite, truth.values())):
            return math.nan
        total = 0.0
        for k in range(len(self.terms)):
            for other in range(k + 1):
                total += (1 + (other < k)) * self._covariance(k, other, truth)
        return math.sqrt(max(total, 0.0))

    def _means(self, term: Term, truth: Truth) -> list[float]:
        near = [_mean(factor, truth) for factor in term.factors]
        return [self._rest(term, truth)[0], *near]

    def _covariance(self, k: int, other: int, truth: Truth) -> float:
        """Return the covariance of two products, from those of their factors."""
        first, second = self.terms[k], self.terms[other]
        means, extra = [], []
        a, b = self._rest(first, truth), self._rest(second, truth)
        means.append(a[0] * b[0])
        extra.append(a[1] if k == other else (self._both(k, other, truth) - a[1] - b[1]) / 2)
        for symbol in sorted({f.symbol for t in (first, second) for f in t.factors}, key=str):
            pair = [[f for f in t.factors if f.symbol == symbol] for t in (first, second)]
            average, common = _pair(pair[0], pair[1], truth)
            means.append(average)
            extra.append(common)
        product = 1.0
        total = 0.0
        for m, c in zip(means, extra, strict=True):  # Π(m + c) − Πm without cancellation
            total = total * (m + c) + product * c
            product *= m
        return total

    def _rest(self, term: Term, truth: Truth) -> tuple[float, float]:
        """Return mean and variance of the exact factor."""
        if term.rest is None:
            return 1.0, 0.0
        return _exact(term.rest, truth)

    def _both(self, k: int, other: int, truth: Truth) -> float:
        """Return the variance of the sum of two exact factors."""
        rest = self._added(k, other)
        return 0.0 if rest is None else _exact(rest, truth)[1]

    def _sum_of_rests(self, k: int, other: int) -> Estimator | None:
        rests = [t.rest for t in (self.terms[k], self.terms[other])]
        exprs = [1 if r is None else r.estimand for r in rests]
        noises = {name: n for r in rests if r is not None for name, n in r.noise.items()}
        if not noises:
            return None
        domains = {name: d for r in rests if r is not None for name, d in r.domain.items()}
        return Estimator(exprs[0] + exprs[1], noises, domains)


def _exact(estimator: Estimator, truth: Truth) -> tuple[float, float]:
    own = {s.symbol: truth[s.symbol] for s in estimator._statistics}
    return estimator._law.expectation(own), estimator._law.sd(own) ** 2


def _mean(factor: Factor, truth: Truth) -> float:
    solution = factor.solution
    q = np.array([truth[factor.symbol]])
    return float(solution.smoothing.law(solution.curve, q, solution.curve.knots)[0][0])


def _pair(first: list[Factor], second: list[Factor], truth: Truth) -> tuple[float, float]:
    """Return E Y·E W and the covariance of two factors of one statistic; a missing one is 1."""
    if not first or not second:
        return _mean((first or second)[0], truth), 0.0
    one, two = first[0].solution, second[0].solution
    q = np.array([truth[first[0].symbol]])
    knots = np.union1d(one.curve.knots, two.curve.knots)
    a, b = (float(m[0]) for m in one.smoothing.means([one.curve, two.curve], q, knots))
    common = one.smoothing.means([lambda x: (one.curve(x) - a) * (two.curve(x) - b)], q, knots)
    return a * b, float(common[0][0])
