"""Student t noise: which moments exist, and its characteristic function."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from noise.conftest import mgf
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
    with pytest.raises(TrueupError, match=f"has no moment of order {highest + 1}"):
        noise.tilted(1j, highest + 1)


def test_message():
    with pytest.raises(TrueupError, match=r"StudentT\(3, 1\) has no moment of order 4"):
        StudentT(3).moment(4)


def test_variance():
    assert StudentT(3, 2).variance == 12
    assert StudentT(2).variance == StudentT(1.5).variance == math.inf
    with pytest.raises(TrueupError, match="has no mean"):
        _ = StudentT(1).variance


@pytest.mark.parametrize("df", [1, 2.5, 4, 30])
@pytest.mark.parametrize("u", [0.05, 0.7, -3.0])
def test_characteristic_function(df, u):
    """Against the mixture of Gaussians, E e^{−u²s²/(2τ)} with τ ~ Gamma(ν/2, ν/2)."""
    nu = mpmath.mpf(df) / 2

    def mixture(tau):
        gamma = nu**nu * tau ** (nu - 1) * mpmath.exp(-nu * tau) / mpmath.gamma(nu)
        return gamma * mpmath.exp(-((2 * u) ** 2) / (2 * tau))

    with mpmath.workdps(25):
        expected = mpmath.quad(mixture, [0, 0.1, 0.5, 1, 2, 5, 20, 100])
    value = mgf(StudentT(df, 2), 1j * u)
    assert value.imag == 0
    assert value.real == pytest.approx(float(expected), rel=1e-13)
    assert df != 1 or value.real == pytest.approx(math.exp(-2 * abs(u)), rel=1e-14)


@pytest.mark.parametrize("u", [0.3, -1.1])
def test_tilted_moments_are_derivatives(u):
    """E[Zʲ e^{iuZ}] = (−i)ʲ φ⁽ʲ⁾(u), φ typed in anew and differentiated numerically."""
    nu = mpmath.mpf(11) / 2

    def phi(v):
        y = mpmath.sqrt(nu) * 3 * abs(v)
        return y ** (nu / 2) * mpmath.besselk(nu / 2, y) / mpmath.gamma(nu / 2) / 2 ** (nu / 2 - 1)

    values = StudentT(Fraction(11, 2), 3).tilted(sympy.Float(u) * sympy.I, 5)
    with mpmath.workdps(60):
        for j, value in enumerate(values):
            expected = mpmath.mpc(0, -1) ** j * mpmath.diff(phi, mpmath.mpf(u), j)
            got = mpmath.mpmathify(sympy.N(value, 25))
            assert abs(got - expected) <= 1e-17 * abs(expected)


def test_small_arguments_approach_the_moments():
    values = StudentT(9).tilted(sympy.I * sympy.Float(1e-9), 4)
    assert float(values[0]) == pytest.approx(1, rel=1e-14)
    assert float(values[2]) == pytest.approx(9 / 7, rel=1e-12)
    assert float(values[4]) == pytest.approx(3 * 81 / 35, rel=1e-12)


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
