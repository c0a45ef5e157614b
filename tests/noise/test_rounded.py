"""Rounded noise: masses, moments and the inverse of rounded Laplace noise on all integers."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from noise.conftest import mgf
from trueup.noise import Gaussian, Laplace, RoundedGaussian, RoundedLaplace


def test_masses_as_shipped():
    """At b = 1 a rounded Laplace number is 0 with .3935, a discrete Laplace one with .4621."""
    noise = RoundedLaplace(1)
    assert noise.pmf(0) == pytest.approx(1 - math.exp(-0.5), rel=1e-15)
    for k in (1, -3, 10):
        mass = (math.exp(0.5) - math.exp(-0.5)) / 2 * math.exp(-abs(k))
        assert noise.pmf(k) == pytest.approx(mass, rel=1e-15)


@pytest.mark.parametrize("scale", [0.05, 0.4, 1, 7, 1e4, 1e6])
@pytest.mark.parametrize(
    ("family", "before"), [(RoundedLaplace, Laplace), (RoundedGaussian, Gaussian)]
)
def test_masses_are_differences_of_the_cdf_before_rounding(family, before, scale):
    """Upper tails, in mpmath: nothing cancels, at any scale."""
    with mpmath.workdps(60):
        b = mpmath.mpf(scale)
        tail = {
            Laplace: lambda x: mpmath.exp(-x / b) / 2,
            Gaussian: lambda x: mpmath.erfc(x / b / mpmath.sqrt(2)) / 2,
        }[before]
        for k in (0, 1, 2, 5, round(scale), round(3 * scale), round(30 * scale)):
            mass = 1 - 2 * tail(0.5) if k == 0 else tail(k - 0.5) - tail(k + 0.5)
            if mass > 1e-290:
                assert family(scale).pmf(k) == pytest.approx(float(mass), rel=3e-13)
                assert family(scale).pmf(-k) == family(scale).pmf(k)
            logarithm = family(scale).log_density(np.array([float(k)]))[0]
            assert logarithm == pytest.approx(float(mpmath.log(mass)), rel=1e-11)


@pytest.mark.parametrize("family", [RoundedLaplace, RoundedGaussian])
def test_draws_are_rounded_draws(family):
    before = {RoundedLaplace: Laplace, RoundedGaussian: Gaussian}[family]
    draws, continuous = family(2.7).sample(1000, rng=4), before(2.7).sample(1000, rng=4)
    np.testing.assert_array_equal(draws, np.rint(continuous))


@pytest.mark.parametrize("scale", [0.2, Fraction(1, 2), 1, 3, 50.5])
def test_variance_of_rounded_laplace_noise(scale):
    """Var = Σ k² p(k) = (1/s − s)·α(1 + α)/(1 − α)³, α = s² = e^{−1/b}."""
    with mpmath.workdps(40):
        s = mpmath.exp(
            -1 / (2 * mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator)
        )
        alpha = s**2
        variance = (1 / s - s) * alpha * (1 + alpha) / (1 - alpha) ** 3
    assert RoundedLaplace(scale).variance == pytest.approx(float(variance), rel=1e-14)


@pytest.mark.parametrize("sigma", [1, 4.5, 300, 1e6])
def test_variance_of_rounded_gaussian_noise(sigma):
    """Sheppard's correction: σ² + 1/12, up to 4·e^{−2π²σ²}(σ² + 1/(4π²))."""
    gap = 4 * math.exp(-2 * (math.pi * sigma) ** 2) * (sigma**2 + 1 / (4 * math.pi**2))
    exact = sigma**2 + 1 / 12
    assert RoundedGaussian(sigma).variance == pytest.approx(exact, rel=1e-15, abs=2 * gap)


@pytest.mark.parametrize("sigma", [0.2, 0.4, 0.9, 2.3])
@pytest.mark.parametrize("c", [1e-9, 0.7, 1j, 3.1j, 6.28j, -0.3 + 40j])
def test_tilted_moments_of_rounded_gaussian_noise_are_direct_sums(sigma, c):
    with mpmath.workdps(110):
        rate, s = mpmath.mpmathify(c), mpmath.mpf(sigma)
        tails = {k: mpmath.ncdf(-(k - mpmath.mpf(1) / 2) / s) for k in range(62)}
        terms = [(k, tails[abs(k)] - tails[abs(k) + 1]) for k in range(-60, 61)]
        for j, value in enumerate(RoundedGaussian(sigma).tilted(c, 6)):
            direct = mpmath.fsum(k**j * w * mpmath.exp(rate * k) for k, w in terms)
            size = mpmath.fsum(abs(k) ** j * w * mpmath.exp(rate.real * k) for k, w in terms)
            got = mpmath.mpmathify(sympy.N(value, 25))
            assert abs(got - direct) <= mpmath.mpf(10) ** -18 * abs(direct) + size * 1e-26


def test_mgf_at_a_whole_turn_is_one():
    for noise in (RoundedGaussian(0.3), RoundedGaussian(2), RoundedLaplace(2)):
        assert abs(mgf(noise, 2j * math.pi) - 1) < 1e-13


def test_rounding_discloses_nothing_more():
    assert RoundedLaplace.from_budget(3, 2) == RoundedLaplace(Fraction(2, 3))
    assert (
        RoundedGaussian.from_budget(epsilon=1, delta=1e-6).scale
        == Gaussian.from_budget(epsilon=1, delta=1e-6).scale
    )
