"""Discrete Laplace noise: closed forms at scales from 0.05 to a million."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from trueup.noise import DiscreteLaplace


@pytest.mark.parametrize("scale", [0.05, 0.3, 2, 1e3, 1e6, Fraction(1, 7), 1e12])
def test_moments_by_polylogarithms(scale):
    with mpmath.workdps(60):
        b = mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator
        alpha = mpmath.exp(-1 / b)
        noise = DiscreteLaplace(scale)
        variance = 2 * alpha / (1 - alpha) ** 2
        assert noise.variance == pytest.approx(float(variance), rel=1e-14)
        for k in (2, 4, 8):
            mass = (1 - alpha) / (1 + alpha)
            expected = 2 * mass * mpmath.polylog(-k, alpha)
            assert noise.moment(k) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("scale", [0.05, 1, 1e6])
def test_law_at_extremes(scale):
    with mpmath.workdps(40):
        alpha = mpmath.exp(-1 / mpmath.mpf(scale))
        noise = DiscreteLaplace(scale)
        for k in (0, 1, -2, int(3 * scale), int(300 * scale)):
            mass = (1 - alpha) / (1 + alpha) * alpha ** abs(k)
            assert noise.pmf(k) == pytest.approx(float(mass), rel=1e-13)
            below = alpha ** abs(k) / (1 + alpha)
            assert noise.cdf(-abs(k) - (k == 0)) == pytest.approx(
                float(below if k else alpha / (1 + alpha)), rel=1e-13
            )


def test_quantiles_of_many_at_once():
    p = np.linspace(0, 1, 10_001)
    k = DiscreteLaplace(5).quantile(p)
    assert k[0] == -np.inf
    assert k[-1] == np.inf
    assert (np.diff(k[1:-1]) >= 0).all()
    assert k[5000] == 0
