"""Kinks under Laplace noise: rounded off by a parabola, as far as the bias allows."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import sympy

import trueup as tu
from trueup.domain import Interval
from trueup.near.question import Question, read_prior, rounded_off


def law(est: tu.Estimator, q: float, b: float, marks: list[float]) -> tuple[float, float]:
    """Return mean and standard deviation of g(q + Z) by panels that break at q and at the marks."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    steps = b * np.array([1.0, 2, 4, 7, 11, 16, 22, 30, 45])
    edges = np.unique(np.concatenate([[q], q - steps, q + steps, marks]))
    x = np.concatenate([(a + c) / 2 + (c - a) / 2 * nodes for a, c in pairwise(edges)])
    w = np.concatenate([(c - a) / 2 * weights for a, c in pairwise(edges)])
    density, values = w * np.exp(-np.abs(x - q) / b) / (2 * b), np.asarray(est(x))
    mean = float(density @ values)
    return mean, math.sqrt(float(density @ (values - mean) ** 2))


def test_the_bias_is_that_of_the_parabola() -> None:
    """J·(h − |q − a|)²/(4h) within h of a kink, with |J|·h/4 the bias allowed; none elsewhere."""
    b, allowed, kinks = 1.0, 0.02, {-1.0: 2.0, 2.0: 1.0}
    est = tu.nearly_unbiased("abs(q + 1) + max(q, 2)", tu.Laplace(b), (-4, 4), max_bias=allowed)
    assert allowed * 0.99 <= est.bias_bound <= allowed
    assert "closed form" in est.explain()
    reach = {a: 4 * allowed / jump for a, jump in kinks.items()}
    marks = [a + side * h for a, h in reach.items() for side in (-1, 0, 1)]
    for q in (*np.linspace(-4, 4, 7), *marks, *(a + h / 3 for a, h in reach.items())):
        bump = sum(kinks[a] * max(h - abs(q - a), 0) ** 2 / (4 * h) for a, h in reach.items())
        right = abs(q + 1) + max(q, 2) + bump
        mean, sd = law(est, q, b, [*marks, -4, 4])
        assert math.isclose(mean, right, abs_tol=1e-6)
        assert math.isclose(est.expectation(q), mean, abs_tol=1e-6)
        assert math.isclose(est.bias(q), bump, abs_tol=1e-6)
        assert math.isclose(est.sd(q), sd, rel_tol=1e-6)


q = sympy.Symbol("q", real=True)


def rounded(f: sympy.Expr, low: float, high: float) -> tuple[sympy.Expr, float, float] | None:
    domain = Interval(low, high)
    prior = read_prior("uniform", domain, False)
    return rounded_off(Question(f, q, tu.Laplace(1), domain, 0.02, False, prior))


def test_a_kink_at_a_bound_of_the_domain_is_none() -> None:
    """On [−4, 4] both are |q| + 4 − q."""
    kinked, plain = (rounded(f, -4, 4) for f in (abs(q) + abs(q - 4), abs(q) + 4 - q))
    assert kinked is not None
    assert plain is not None
    assert kinked[1:] == plain[1:]
    for x in (-4.0, -1.0, -0.03, 0.0, 0.01, 2.0, 4.0):
        found = [float(f.subs(q, x)) for f in (kinked[0], plain[0])]
        assert math.isclose(*found, rel_tol=1e-12)
    assert rounded(abs(q - 4), -4, 4) is None


def test_only_kinks_are_rounded_off() -> None:
    """|eᵠ − 1 − q| is smooth, but that it never changes its sign is not seen."""
    bend = sympy.Abs(sympy.exp(q) - 1 - q)
    assert rounded(abs(q), -5, 2) is not None
    for f in (abs(q) + bend, bend, q**2):
        assert rounded(f, -5, 2) is None
