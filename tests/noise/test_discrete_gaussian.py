"""Discrete Gaussian noise: both theta sums, and the extremes σ = 0.3 and σ = 10⁶."""

import math

import mpmath
import numpy as np
import pytest
import sympy

from noise.conftest import mgf
from trueup.noise import DiscreteGaussian
from trueup.noise.gaussian import theta


@pytest.fixture(scope="module")
def million():
    """Return k and e^{−k²/(2σ²)} for σ = 10⁶, k = 0 .. 10⁷."""
    k = np.arange(10_000_001, dtype=float)
    return k, np.exp(-0.5 * (k / 1e6) ** 2)


def test_moments_at_a_million(million):
    k, weights = million
    total = 2 * weights[1:].sum() + 1
    noise = DiscreteGaussian(10**6)
    for order in (2, 4, 6):
        expected = 2 * (k**order * weights).sum() / total
        assert noise.moment(order) == pytest.approx(expected, rel=1e-12)
    assert noise.variance == 1e12


def test_law_at_a_million(million):
    _, weights = million
    noise = DiscreteGaussian(1e6)
    total = 2 * weights[1:].sum() + 1
    assert noise.pmf(0) == pytest.approx(1 / total, rel=1e-13)
    for n in (1, 17, 999_999, 3_000_000, 6_000_000):
        tail = weights[n:].sum() / total
        assert noise.cdf(-n) == pytest.approx(tail, rel=1e-13)
        assert noise.cdf(n - 1) == pytest.approx(1 - tail, abs=1e-13 * tail + 1e-15)
        assert noise.cdf(n - 0.5) == noise.cdf(n - 1)
    p = np.array([1e-12, 0.1, 0.5, 0.9999])
    k = noise.quantile(p)
    assert (noise.cdf(k) >= p).all()
    assert (noise.cdf(k - 1) < p).all()


def test_at_three_tenths():
    with mpmath.workdps(40):
        weights = {k: mpmath.exp(-(k**2) / (2 * mpmath.mpf(0.3) ** 2)) for k in range(-12, 13)}
        total = sum(weights.values())
        noise = DiscreteGaussian(0.3)
        for order in range(2, 40, 2):
            expected = sum(k**order * w for k, w in weights.items()) / total
            assert noise.moment(order) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("sigma", [0.2, 0.4, 0.9, 2.3, 5.0])
@pytest.mark.parametrize("c", [1e-9, 0.7, 1j, 3.1j, -0.3 + 40j])
def test_tilted_moments_are_direct_sums(sigma, c):
    with mpmath.workdps(110):
        rate, variance = mpmath.mpmathify(c), mpmath.mpf(sigma) ** 2
        terms = [(k, mpmath.exp(-(k**2) / (2 * variance))) for k in range(-120, 121)]
        total = mpmath.fsum(w for _, w in terms)
        for j, value in enumerate(DiscreteGaussian(sigma).tilted(c, 6)):
            direct = mpmath.fsum(k**j * w * mpmath.exp(rate * k) for k, w in terms) / total
            size = mpmath.fsum(abs(k) ** j * w * mpmath.exp(rate.real * k) for k, w in terms)
            got = mpmath.mpmathify(sympy.N(value, 25))
            assert abs(got - direct) <= mpmath.mpf(10) ** -18 * abs(direct) + size * 1e-26


@pytest.mark.parametrize("sigma", [0.05, 0.3, 0.399, 0.401, 1, 30, 1e6])
def test_normaliser_is_a_theta_function(sigma):
    with mpmath.workdps(40):
        nome = mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2))
        dual = sigma * mpmath.sqrt(2 * mpmath.pi)
        expected = mpmath.jtheta(3, 0, nome) if sigma < 40 else dual
    assert theta(sigma) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("sigma", [499.9, 500.0, 3000.0])
def test_tails_are_direct_sums(sigma):
    """From σ = 500 on they come from the Euler-Maclaurin formula."""
    for n in (1, 40, 900, 4000, 15000, 17000):
        k = np.arange(n, n + 12 * sigma)
        shares = np.exp(-0.5 * (k / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
        assert DiscreteGaussian(sigma).cdf(-n) == pytest.approx(math.fsum(shares), rel=1e-12)


def test_high_order_at_a_middling_scale():
    with mpmath.workdps(40):
        terms = [(k, mpmath.exp(-(mpmath.mpf(k) ** 2) / 2)) for k in range(-60, 61)]
        for order in (50, 120):
            expected = sum(k**order * w for k, w in terms) / sum(w for _, w in terms)
            assert DiscreteGaussian(1).moment(order) == pytest.approx(float(expected), rel=1e-14)


def test_characteristic_function_where_direct_sums_cancel():
    """At iπ only the two nearest dual terms count: 2 e^{−σ²π²/2}."""
    expected = 2 * math.exp(-50 * math.pi**2)
    assert mgf(DiscreteGaussian(10), 1j * math.pi).real == pytest.approx(expected, rel=1e-11)
