"""Kinks under Laplace noise: rounded off by a parabola, as far as the bias allows."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

import trueup as tu


def expectation(est: tu.Estimator, q: float, b: float, marks: list[float]) -> float:
    """Return E g(q + Z) by panels that break at q and at the marks."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    steps = b * np.array([1.0, 2, 4, 7, 11, 16, 22, 30, 45])
    edges = np.unique(np.concatenate([[q], q - steps, q + steps, marks]))
    x = np.concatenate([(a + c) / 2 + (c - a) / 2 * nodes for a, c in pairwise(edges)])
    w = np.concatenate([(c - a) / 2 * weights for a, c in pairwise(edges)])
    return float((w * np.exp(-np.abs(x - q) / b) / (2 * b)) @ est(x))


def test_the_bias_is_that_of_the_parabola() -> None:
    """J·(h − |q − a|)²/(4h) within h of a kink, with |J|·h/4 the bias allowed; none elsewhere."""
    b, allowed, kinks = 1.0, 0.02, {-1.0: 2.0, 2.0: 1.0}
    est = tu.nearly_unbiased("abs(q + 1) + max(q, 2)", tu.Laplace(b), (-4, 4), max_bias=allowed)
    assert allowed * 0.99 <= est.bias_bound <= allowed
    reach = {a: 4 * allowed / jump for a, jump in kinks.items()}
    marks = [a + side * h for a, h in reach.items() for side in (-1, 0, 1)]
    for q in (*np.linspace(-4, 4, 7), *marks, *(a + h / 3 for a, h in reach.items())):
        bump = sum(kinks[a] * max(h - abs(q - a), 0) ** 2 / (4 * h) for a, h in reach.items())
        right = abs(q + 1) + max(q, 2) + bump
        assert math.isclose(expectation(est, q, b, [*marks, -4, 4]), right, abs_tol=1e-6)
