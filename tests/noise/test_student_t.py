"""Student t noise: which moments exist, and its tails."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from trueup.errors import TrueupError
from trueup.noise import StudentT


@pytest.mark.parametrize("df", [3, 5, 7.5, 12, Fraction(21, 2)])
def test_moments_by_gamma_functions(df):
    noise = StudentT(df, 2)
    nu = mpmath.mpf(float(df))
    for k in range(0, noise.highest_moment + 1, 2):
        beta = mpmath.beta(k / 2 + 0.5, nu / 2 - k / 2) / mpmath.beta(0.5, nu / 2)
        assert noise.moment(k) == pytest.approx(float((4 * nu) ** (k / 2) * beta), rel=1e-12)


@pytest.mark.parametrize(
    ("df", "highest"), [(0.5, 0), (1, 0), (1.5, 1), (3, 2), (3.1, 3), (12, 11)]
)
def test_highest_moment(df, highest):
    noise = StudentT(df)
    assert noise.highest_moment == highest
    noise.moment(highest)
    with pytest.raises(TrueupError, match=f"has no moment of order {highest + 1}"):
        noise.moment(highest + 1)
    with pytest.raises(TrueupError, match=f"has no moment of order {highest + 1}"):
        noise.tilted(0, highest + 1)


def test_message():
    with pytest.raises(TrueupError, match=r"StudentT\(3, 1\) has no moment of order 4"):
        StudentT(3).moment(4)


def test_only_polynomials_are_debiased():
    with pytest.raises(TrueupError, match="generating function of StudentT"):
        StudentT(9).tilted(1j, 0)


def test_variance():
    assert StudentT(3, 2).variance == 12
    for df in (1, 1.5, 2):
        with pytest.raises(TrueupError, match="has no moment of order 2"):
            _ = StudentT(df).variance


@pytest.mark.parametrize("df", [0.3, 1, 3, 10, 30, 250])
def test_quantiles_into_the_far_tail(df):
    noise = StudentT(df)
    p = 10.0 ** np.arange(-300, 0, 7)
    x = noise.quantile(p)
    x, p = x[x > -1e300], p[x > -1e300]
    np.testing.assert_allclose(noise.cdf(x), p, rtol=1e-12 * (1 + df))
    assert (np.diff(x) > 0).all()


@pytest.mark.parametrize("df", [0.5, 2, 7, 40])
def test_tail_meets_the_incomplete_beta_function(df):
    with mpmath.workdps(30):
        for z in (1e3, 0.9e9, 1.1e9, 1e12):
            x = z * math.sqrt(df)
            share = 1 / (1 + mpmath.mpf(x) ** 2 / df)
            expected = mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, share, regularized=True) / 2
            assert StudentT(df).cdf(-x) == pytest.approx(float(expected), rel=1e-13, abs=1e-307)
