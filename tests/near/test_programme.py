"""The convex programme: its quadratic form against the law, its optimum against other solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import trueup as tu
from trueup.near.curve import Zone
from trueup.near.programme import Programme, programme
from trueup.near.smoothing import Smoothing

pytest.importorskip("clarabel", reason="the programme is solved by Clarabel")

Q = np.arange(0.0, 6.0)
WEIGHTS = np.array([1.0, 2.0, 1.0, 0.5, 0.25, 0.25]) / 5
TRUTH = np.sqrt(Q)
TOLERANCE = np.full(6, 0.05)


def table(start):
    """Return the programme of a table on −4..9 under discrete Laplace noise, and the smoothing."""
    by = Smoothing(tu.DiscreteLaplace(1))
    zone = Zone(-4, 9, 1.0, "whole", True)
    nodes = by.nodes(Q, np.empty(0))
    made = programme(nodes, [zone], np.zeros(len(nodes.x)), WEIGHTS, TRUTH, TOLERANCE, start)
    return made, by, zone


def law(by, zone, unknowns):
    values = lambda x: unknowns[(np.clip(x, -4, 9) + 4).astype(int)]  # noqa: E731
    return by.law(values, Q, np.empty(0))


def test_the_form_is_the_averaged_variance():
    rng = np.random.default_rng(1)
    start = rng.normal(size=14)
    made, by, zone = table(start)
    losses, variances = [], []
    for _ in range(4):
        v = rng.normal(size=14)
        mean, variance = law(by, zone, start + v)
        np.testing.assert_allclose(made.mean @ v + made.offset, mean, atol=1e-12)
        losses.append(v @ made.quadratic @ v / 2 + made.linear @ v)
        variances.append(WEIGHTS @ variance)
    change = np.diff(variances) / np.diff(losses)  # up to a factor and a constant
    np.testing.assert_allclose(change, change[0], rtol=1e-9)
    assert change[0] > 0
    assert np.diag(made.quadratic).max() == pytest.approx(1)


def test_a_spline_with_a_series_beside_it():
    """Where the zone does not hold, g is the series."""
    by = Smoothing(tu.Laplace(1))
    zone = Zone(-2.0, 1.0, 0.5, "left", False, (1.0, 1.0, 0.0))
    nodes = by.nodes(Q, zone.edges)
    unknowns = np.linspace(-1, 2, zone.size)
    made = programme(nodes, [zone], nodes.x, WEIGHTS, TRUTH, TOLERANCE, np.zeros(zone.size))
    spline = zone.spline(unknowns)
    g = lambda x: np.where(x <= 1, spline(np.clip(x, -2, 1)), x)  # noqa: E731
    mean, _ = by.law(g, Q, zone.edges)
    np.testing.assert_allclose(made.mean @ unknowns + made.offset, mean, atol=1e-10)


@pytest.mark.parametrize("shrink", [0.0, 0.3])
def test_the_least_variance(shrink):
    made, by, zone = table(np.sqrt(np.clip(np.arange(-4.0, 10.0), 0, None)))
    found = made.least_variance(shrink)
    mean, variance = law(by, zone, found)
    assert (np.abs(mean - TRUTH) <= (1 - shrink) * 0.05 * (1 + 1e-6)).all()
    best = WEIGHTS @ variance

    def averaged(u):
        return WEIGHTS @ law(by, zone, u)[1]

    limits = scipy.optimize.NonlinearConstraint(
        lambda u: law(by, zone, u)[0] - TRUTH, -(1 - shrink) * 0.05, (1 - shrink) * 0.05
    )
    other = scipy.optimize.minimize(
        averaged, found + 0.05, constraints=[limits], method="SLSQP", options={"maxiter": 60}
    )
    assert best <= other.fun * (1 + 1e-4)
    assert (np.abs(mean - TRUTH) > (1 - shrink) * 0.05 * (1 - 1e-4)).any()  # a bound is met


def small(truth, tolerance):
    """Two unknowns, three true values."""
    mean = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    quadratic = np.array([[1.0, 0.2], [0.2, 0.5]])
    zero = np.zeros(2)
    return Programme(mean, np.zeros(3), quadratic, zero, truth, tolerance, zero + 1)


def test_the_least_bias():
    """|v₁ − 0|, |(v₁ + v₂)/2 − 4|, |v₂ − 2| are all at most t from t = 3/2 on."""
    made = small(np.array([0.0, 4.0, 2.0]), np.ones(3))
    assert made.least_bias() == pytest.approx(1.5, abs=1e-6)
    halves = small(np.array([0.0, 4.0, 2.0]), np.full(3, 2.0))
    assert halves.least_bias() == pytest.approx(0.75, abs=1e-6)
    assert small(np.array([1.0, 2.0, 3.0]), np.ones(3)).least_bias() == pytest.approx(0, abs=1e-6)


def test_no_solution_is_none():
    assert small(np.array([0.0, 4.0, 2.0]), np.ones(3)).least_variance(0.0) is None
