"""Staircase noise: closed-form moments against piecewise quadrature, for any ε, Δ and γ."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noise.conftest import mgf
from trueup.noise import Staircase


def quadrature(noise, f):
    """Return E f(Z) by Gauss-Legendre on every step, with the definition typed in anew."""
    eps, delta, gamma = float(noise.epsilon), float(noise.sensitivity), noise.gamma
    gamma = 1 / (1 + math.exp(eps / 2)) if gamma is None else float(gamma)
    x, w = np.polynomial.legendre.leggauss(12)
    a = (1 - math.exp(-eps)) / (2 * delta * (gamma + math.exp(-eps) * (1 - gamma)))
    k = np.arange(int(90 / eps) + 2)[:, None]
    total = 0.0
    for low, high, level in ((0, gamma, 0), (gamma, 1, 1)):
        z = delta * (k + (high + low) / 2 + (high - low) / 2 * x)
        weight = a * np.exp(-eps * (k + level)) * w * delta * (high - low) / 2
        total += ((f(z) + f(-z)) * weight).sum()
    return total


steps = st.tuples(st.floats(0.05, 8), st.floats(0.1, 10), st.none() | st.floats(0, 1))


@settings(deadline=None, max_examples=60)
@given(steps)
def test_moments(parameters):
    noise = Staircase(*parameters)
    for k in (2, 4, 6):
        assert noise.moment(k) == pytest.approx(quadrature(noise, lambda z, k=k: z**k), rel=1e-12)


@settings(deadline=None, max_examples=30)
@given(steps, st.floats(-0.7, 0.7), st.floats(-3, 3))
def test_mgf(parameters, share, frequency):
    noise = Staircase(*parameters)
    t = complex(share * noise.mgf_radius, frequency / float(noise.sensitivity))
    expected = quadrature(noise, lambda z: np.exp(t * z))
    assert mgf(noise, t) == pytest.approx(expected, rel=1e-11, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(steps, st.floats(1e-100, 1 - 1e-9))
def test_quantile_inverts_the_cdf(parameters, p):
    noise = Staircase(*parameters)
    assert noise.cdf(noise.quantile(p)) == pytest.approx(p, rel=1e-11)


@settings(deadline=None, max_examples=30)
@given(steps)
def test_privacy_loss_is_epsilon(parameters):
    """Shifted by at most Δ, the density changes by at most the factor e^ε."""
    noise = Staircase(*parameters)
    x = np.linspace(-6, 6, 1201) * float(noise.sensitivity) + 1e-7
    for share in (0.1, 0.5, 0.99, 1):
        ratio = noise.pdf(x) / noise.pdf(x + share * float(noise.sensitivity))
        assert abs(np.log(ratio)).max() <= float(noise.epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_default_gamma_minimises_the_absolute_error(epsilon):
    best = quadrature(Staircase(epsilon), abs)
    for gamma in (0, 0.01, 0.3, 0.5, 1):
        assert quadrature(Staircase(epsilon, 1, gamma), abs) >= best * (1 - 1e-12)


@pytest.mark.parametrize("reach", [0.5, 2.0, 3.0, 7.25])
def test_the_density_is_constant_between_breaks_up_to_the_reach(reach):
    noise = Staircase(1, 0.5, 0.25)
    edges = {k / 2 + part / 8 for k in range(16) for part in (0, 1)}
    wanted = {sign * edge for edge in edges if edge <= reach for sign in (-1, 1)}
    assert {edge for edge in noise.breaks(reach) if abs(edge) <= reach} == wanted


def test_small_and_large_epsilon():
    """ε → 0 looks like Laplace(Δ/ε); a large ε leaves almost nothing but the first step."""
    assert Staircase(1e-5).variance == pytest.approx(2e10, rel=1e-4)
    assert Staircase(1e-5).moment(4) == pytest.approx(24e20, rel=1e-4)
    assert 0 < Staircase(60).variance < 1e-12
    assert Staircase(60).cdf(-2) == pytest.approx(math.exp(-120) / 2, rel=1e-12)
