"""Proven distances of two formulas, against their largest distance on a fine grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.domain import Interval
from trueup.near.certificate import distance, least
from trueup.near.question import Question, read_prior

q = sympy.Symbol("q", real=True)


def question(f, low, high, relative=False):
    domain = Interval(low, high)
    prior = read_prior("uniform", domain, False)
    return Question(sympy.sympify(f), q, tu.Gaussian(1), domain, 0.1, relative, prior)


PEAK = sympy.exp(-(((q - 25_050) / 5_000) ** 2))
CASES = {
    "at an end": (sympy.exp(q), 1 + q + q**2 / 2, 0, 1),
    "inside": (sympy.sin(q), sympy.Integer(0), 0, 3),
    "far from 0": (sympy.log(q), q / 100, 90, 130),
    "a wide domain": (1 / q, 1 / q + sympy.cos(q) / 50, 1, 60),
    "a peak between two points of a wide grid": (sympy.Integer(3), 3 + PEAK, 0, 51_200),
    "below": (sympy.Integer(1), 1 - q**2, -1, 2),
}


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_above_the_largest_distance_and_close_to_it(name, relative):
    f, p, low, high = CASES[name]
    if relative and name == "inside":
        f = f + 2
    grid = np.linspace(low, high, 20_001)
    values, others = (np.broadcast_to(sympy.lambdify(q, e)(grid), grid.shape) for e in (f, p))
    gap = np.abs(others - values) / (np.abs(values) if relative else 1.0)
    bound = distance(question(f, low, high, relative), p)
    assert gap.max() <= bound <= 1.0021 * gap.max()


def test_formulas_that_agree():
    assert distance(question(q**2, 0, 5), q**2) == 0


def test_the_least_size_on_a_cell():
    low, high = np.array([1.0, -2.0, -3.0]), np.array([2.0, 1.0, -1.5])
    np.testing.assert_array_equal(least(question(q, -3, 2), low, high), 1)
    found = least(question(q, -3, 2, relative=True), low, high)
    np.testing.assert_allclose(found, [1, 0, 1.5], rtol=1e-12)
    assert math.isclose(found[0], 1)
