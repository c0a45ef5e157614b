"""The reference is right: known expectations, and a loud failure where it is not accurate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import oracle
from oracle import Axis, expect, moments

LAWS = {
    "laplace": (oracle.laplace(2), 0.0, 8.0),
    "gaussian": (oracle.gaussian(1.5), 0.0, 2.25),
    "student": (oracle.student_t(5, 2), 0.0, 20 / 3),
    "uniform": (oracle.uniform(3), 0.0, 0.75),
    "logistic": (oracle.logistic(1.3), 0.0, 1.69 * math.pi**2 / 3),
    "triangular": (oracle.triangular(-1, 0.5, 2), 0.5, (1 + 0.25 + 4 + 0.5 + 2 - 1) / 18),
    "exponential": (oracle.exponential(-2, 2), 0.0, 4.0),
    "poisson": (oracle.poisson(3, -3), 0.0, 3.0),
    "discrete laplace": (oracle.discrete_laplace(2), 0.0, 0.5 / math.sinh(0.25) ** 2),
    "points": (oracle.points([(-1, 0.25), (0, 0.5), (1, 0.25)]), 0.0, 0.5),
}
STAIRS = [(1, 1, None), (3, 2, 0.3), (0.3, 1, 0.0), (2, 0.5, 1.0)]


@pytest.mark.parametrize("name", LAWS)
def test_mean_and_variance(name: str) -> None:
    law, mean, variance = LAWS[name]
    for q in (0.0, 7.25):
        assert math.isclose(expect(np.ones_like, Axis(law, q, feature=math.inf)), 1, rel_tol=1e-14)
        got = moments(lambda x: x, Axis(law, q, feature=math.inf))
        np.testing.assert_allclose(got, (q + mean, variance), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("stairs", STAIRS, ids=str)
def test_staircases(stairs: Any) -> None:
    """E e^{cZ} by the geometric series, in closed form."""
    e, d, gamma = stairs
    g, r, c = 1 / (1 + math.exp(e / 2)) if gamma is None else gamma, math.exp(-e), 0.2 * e / d
    top = (1 - r) / (2 * d * (g + r * (1 - g)))
    one_side = [
        top
        / (t * (1 - r * math.exp(t * d)))
        * (math.expm1(t * g * d) + r * (math.exp(t * d) - math.exp(t * g * d)))
        for t in (c, -c)
    ]
    mean = expect(lambda x: np.exp(c * x), Axis(oracle.staircase(e, d, gamma), 0.0))
    assert math.isclose(mean, sum(one_side), rel_tol=1e-13)


def test_discrete_gaussian() -> None:
    """Narrow: three atoms by hand. Wide: like the continuous one, e^{σ²c²/2}."""
    side = math.exp(-1 / (2 * 0.25**2))
    narrow = expect(np.square, Axis(oracle.discrete_gaussian(0.25), 0.0))
    assert math.isclose(narrow, 2 * side / (1 + 2 * side), rel_tol=1e-9)
    wide = expect(lambda x: np.exp(x / 5), Axis(oracle.discrete_gaussian(5), 0.0))
    assert math.isclose(wide, math.exp(0.5), rel_tol=1e-13)


def test_long_tails_are_followed() -> None:
    for c in (0.2, 0.45):
        mean = expect(lambda x, c=c: np.exp(c * x), Axis(oracle.laplace(2), 1.0))
        assert math.isclose(mean, math.exp(c) / (1 - 4 * c**2), rel_tol=1e-12)
    wave = expect(lambda x: np.cos(2 * x), Axis(oracle.student_t(5, 1, oscillating=True), 0.7))
    y = 2 * math.sqrt(5)
    exact = math.cos(1.4) * math.exp(-y) * (1 + y + y**2 / 3)
    assert math.isclose(wave, exact, rel_tol=1e-12)


def test_several_statistics() -> None:
    axes = (
        Axis(oracle.laplace(1), 4.0, feature=9.0),
        Axis(oracle.discrete_laplace(0.5), 3),
        Axis(oracle.uniform(1), 2.0),
    )
    mean = expect(lambda x, y, z: x * y**2 * z, *axes, order=12)
    assert math.isclose(mean, 8 * (9 + 0.5 / math.sinh(1) ** 2), rel_tol=1e-12)


def test_a_missed_kink_fails_loudly() -> None:
    with pytest.raises(oracle.OracleError, match="disagree"):
        expect(np.abs, Axis(oracle.laplace(2), 1.3))
    right = expect(np.abs, Axis(oracle.laplace(2), 1.3, breaks=(0.0,)))
    assert math.isclose(right, 1.3 + 2 * math.exp(-0.65), rel_tol=1e-14)


def test_a_divergent_integral_fails_loudly() -> None:
    with pytest.raises(oracle.OracleError, match="tails"):
        expect(lambda x: np.exp(x), Axis(oracle.laplace(1), 0.0))
    with pytest.raises(oracle.OracleError, match="tails"):
        expect(lambda x: x**4, Axis(oracle.student_t(4), 0.0, feature=math.inf))
    with pytest.raises(oracle.OracleError, match="not finite"):
        expect(lambda x: np.where(x > 1, np.nan, x), Axis(oracle.laplace(1), 0.0, (1.0,)))
