"""Nodes and weights of x = q + Z, against moments and kinks in closed form."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import trueup as tu
from trueup.errors import TrueupError
from trueup.near.smoothing import Smoothing
from trueup.noise import Mass

SKEW = Mass({-1: 0.5, 0: 0.25, 2: 0.25})
LINE = [tu.Laplace(2), tu.Gaussian(0.5), tu.Staircase(1), tu.Uniform(3), tu.StudentT(9)]
SMOOTH = [tu.Gaussian(1), tu.StudentT(3), tu.ScipyNoise("logistic"), tu.ScipyNoise("gumbel_r")]
LATTICE = [tu.DiscreteLaplace(2), tu.DiscreteGaussian(1.5), tu.RoundedLaplace(0.7), SKEW]
Q = np.array([-3.0, 0.0, 0.5, 7.0])
NONE = np.empty(0)


@pytest.mark.parametrize("noise", LINE, ids=repr)
def test_squares_on_the_line(noise):
    """E (q + Z)² = q² + σ², Var (q + Z)² = 4q²σ² + E Z⁴ − σ⁴ for symmetric noise."""
    means, variances = Smoothing(noise).law(lambda x: x**2, Q, NONE)
    s, fourth = float(noise.variance), float(noise.moment(4))
    rough = 1e-3 if isinstance(noise, tu.StudentT) else 1e-9  # tails like a power are cut off
    np.testing.assert_allclose(means, Q**2 + s, rtol=rough)
    np.testing.assert_allclose(variances, 4 * Q**2 * s + fourth - s**2, rtol=100 * rough)


@pytest.mark.parametrize("noise", LATTICE, ids=repr)
@pytest.mark.parametrize("q", [[0.0, 3.0], [-5.0, 1e9]], ids=["near", "far apart"])
def test_squares_on_the_integers(noise, q):
    q = np.array(q)
    m = [float(noise.moment(k)) for k in range(5)]
    means, variances = Smoothing(noise).law(lambda x: x**2, q, NONE)
    mean = q**2 + 2 * q * m[1] + m[2]
    square = q**4 + 4 * q**3 * m[1] + 6 * q**2 * m[2] + 4 * q * m[3] + m[4]
    np.testing.assert_allclose(means, mean, rtol=1e-11)
    np.testing.assert_allclose(variances[:1], (square - mean**2)[:1], rtol=1e-9)
    s = m[2] - m[1] ** 2
    if q[1] > 1e6:  # there only 4q²σ² is left
        assert variances[1] == pytest.approx(4 * q[1] ** 2 * s, rel=1e-6)


def test_a_kink_at_a_knot():
    """E |q − 1 + Z| = |q − 1| + b·e^{−|q−1|/b} under Laplace noise."""
    b = 2.0
    means, variances = Smoothing(tu.Laplace(b)).law(lambda x: np.abs(x - 1), Q, np.array([1.0]))
    size = np.abs(Q - 1)
    wanted = size + b * np.exp(-size / b)
    np.testing.assert_allclose(means, wanted, rtol=1e-12)
    np.testing.assert_allclose(variances, size**2 + 2 * b**2 - wanted**2, rtol=1e-11)


def test_several_functions_at_once():
    by = Smoothing(tu.Gaussian(2))
    one, two = by.means([np.ones_like, lambda x: x], Q, np.array([0.3]))
    np.testing.assert_allclose(one, 1, rtol=1e-13)
    np.testing.assert_allclose(two, Q, atol=1e-12)


def test_the_error_shows_a_kink_that_is_no_knot():
    by = Smoothing(tu.Laplace(1))
    kinked = lambda x: np.abs(x - 0.123)  # noqa: E731
    assert by.error(np.cos, Q, NONE) < 1e-12
    assert by.error(kinked, Q, np.array([0.123])) < 1e-12
    assert by.error(kinked, Q, NONE) > 1e-6
    assert Smoothing(tu.DiscreteLaplace(1)).error(kinked, Q, NONE) == 0


def test_units():
    """A unit is the standard deviation of a Gaussian with the same quartiles."""
    assert Smoothing(tu.Gaussian(3)).unit == pytest.approx(3, rel=2e-4)
    assert Smoothing(tu.Laplace(1)).unit == pytest.approx(2 * math.log(2) / 1.349)
    assert Smoothing(tu.DiscreteLaplace(0.1)).unit == 0.5  # no less than half an integer
    rare = Mass({-100: 0.05, 0: 0.9, 100: 0.05})
    assert Smoothing(rare).unit == pytest.approx(0.2 * math.sqrt(1000))
    heavy = tu.StudentT(2)  # no variance
    assert Smoothing(heavy).unit == pytest.approx(2 * scipy.stats.t(2).ppf(0.75) / 1.349)
    with pytest.raises(TrueupError, match="adds nothing"):
        Smoothing(Mass({0: 1}))
    with pytest.raises(TrueupError, match="adds nothing"):
        Smoothing(Mass({0: 1 - Fraction(1, 10**20), 1: Fraction(1, 10**20)}))
    with pytest.raises(TrueupError, match="more than 200000 integers"):
        Smoothing(tu.DiscreteLaplace(10**4))


@pytest.mark.parametrize("noise", [*LINE, *LATTICE[:3]], ids=repr)
def test_symmetry_is_seen(noise):
    by = Smoothing(noise)
    assert by.symmetric
    assert by.high == -by.low == -float(noise.quantile(1e-19))


@pytest.mark.parametrize(
    "noise", [SKEW, tu.Noise.from_scipy(scipy.stats.expon(loc=-1))], ids=["table", "exponential"]
)
def test_skewness_is_seen(noise):
    by = Smoothing(noise)
    assert not by.symmetric
    assert by.low == noise.quantile(1e-19)
    assert by.high == noise.quantile(1 - 2.0**-53)


def test_probabilities_on_both_sides():
    by = Smoothing(SKEW)
    z = np.array([-math.inf, -2.0, -1.0, -0.5, 0.0, 1.0, 2.0, 2.5, math.inf])
    np.testing.assert_allclose(by.below(z), [0, 0, 0.5, 0.5, 0.75, 0.75, 1, 1, 1])
    np.testing.assert_allclose(
        by.above(z), [1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0, 0], rtol=1e-15, atol=1e-15
    )
    far = Smoothing(tu.Laplace(1)).above(np.array([50.0, math.inf]))
    np.testing.assert_allclose(far, [math.exp(-50) / 2, 0], rtol=1e-12)


def test_probabilities_above_under_skew_noise_on_the_line():
    """P(Z ≥ z) = e^{−(z+1)} for an exponential law that begins at −1."""
    by = Smoothing(tu.Noise.from_scipy(scipy.stats.expon(loc=-1)))
    z = np.array([-3.0, -1.0, -0.75, 0.0, 0.3, 5.5, math.inf])
    wanted = np.exp(-np.maximum(z + 1, 0))
    np.testing.assert_allclose(by.above(z), wanted, rtol=1e-12, atol=2.0**-52)
    np.testing.assert_allclose(by.below(z), 1 - wanted, rtol=1e-12)


@pytest.mark.parametrize("side", [-1000, 1000])
def test_what_rarely_happens_on_one_side_is_no_symmetry(side):
    rare = Fraction(1, 10**11)
    by = Smoothing(Mass({0: 1 - rare, side: rare}))
    assert by.low <= min(side, 0)
    assert by.high >= max(side, 0)
    far = by.above(np.array([1000.0])) if side > 0 else by.below(np.array([-1000.0]))
    assert far[0] == pytest.approx(1e-11, rel=1e-4)


@pytest.mark.parametrize("noise", SMOOTH, ids=repr)
def test_panels_leave_an_error_of_rounding_only(noise):
    """All of a law with poles of its own adds up to 1, and E 1/(1 + Z²) is that of quad."""
    by = Smoothing(noise)
    one, bump = by.means([np.ones_like, lambda x: 1 / (1 + x**2)], np.array([0.0]), NONE)
    assert one[0] == pytest.approx(1, abs=1e-14)
    parts = [scipy.integrate.quad(lambda z: noise.pdf(z) / (1 + z**2), *ends, epsabs=1e-14)
             for ends in ((-math.inf, -2), (-2, 0), (0, 2), (2, math.inf))]  # fmt: skip
    assert bump[0] == pytest.approx(sum(p[0] for p in parts), abs=1e-11)


def test_odd_moments_are_bounded():
    """E|Z|³ = 6b³ under Laplace noise; the bound is √(E Z²·E Z⁴)."""
    by = Smoothing(tu.Laplace(2))
    assert by.moment(4) == 24 * 16
    assert by.moment(3) == pytest.approx(math.sqrt(8 * 384))
    assert by.moment(3) >= 6 * 8


def test_masses_are_those_of_the_window():
    first, masses = Smoothing(SKEW).masses
    assert first == -1
    np.testing.assert_allclose(masses, [0.5, 0.25, 0, 0.25])
