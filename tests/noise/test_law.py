"""Every family: masses, cdf and quantiles against sums and integrals of a density typed in anew."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup import errors
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mass,
    RoundedGaussian,
    RoundedLaplace,
    Staircase,
)

POINTS = [-7.3, -2.0, -1.0, -0.4, 0.0, 0.1, 0.5, 1.0, 2.6]


def density(noise, x):
    return noise.pmf(x) if noise.lattice else noise.pdf(x)


def test_reference_has_mass_one(law):
    assert abs(law.expect(lambda z: 1) - 1) < 1e-20


def test_density(law):
    for x in POINTS:
        expected = 0 if law.noise.lattice and x % 1 else float(law.density(mpmath.mpf(x)))
        assert density(law.noise, x) == pytest.approx(expected, rel=1e-13, abs=1e-300)


def test_cdf_is_the_integral_of_the_density(law):
    for x in (-3.0, -1.2, 0.0, 0.7, 2.0):
        assert law.noise.cdf(x) == pytest.approx(float(law.below(x)), rel=1e-12, abs=1e-300)


def test_cdf_rises_from_0_to_1(law):
    x = np.linspace(-30, 30, 601)
    values = law.noise.cdf(x)
    assert (np.diff(values) >= -1e-16).all()
    assert law.noise.cdf(-math.inf) == 0
    assert law.noise.cdf(math.inf) == 1


def test_quantile_inverts_the_cdf(law):
    p = np.array([1e-290, 1e-30, 1e-6, 0.01, 0.2, 0.4999, 0.5, 0.63, 0.9, 0.999])
    x = law.noise.quantile(p)
    if law.noise.lattice:
        assert (law.noise.cdf(x) >= p).all()
        assert (law.noise.cdf(x - 1) < p).all()
        assert (x == np.floor(x)).all()
    elif math.isinf(law.noise.quantile(0)):
        np.testing.assert_allclose(law.noise.cdf(x), p, rtol=1e-12)
    else:
        np.testing.assert_allclose(law.noise.cdf(x), p, rtol=1e-12, atol=1e-16)


def test_quantile_ends(law):
    low, high = law.noise.quantile(0), law.noise.quantile(1)
    assert low == -high
    if isinstance(law.noise, Mass):
        assert high == law.noise.masses[-1][0]
    else:
        assert math.isinf(high) or high == law.noise.width / 2
    assert math.isnan(law.noise.quantile(math.nan))


def test_quantile_kind(law):
    assert type(law.noise.quantile(0.9)) is (int if law.noise.lattice else float)


@pytest.mark.parametrize("p", [-0.1, 1.1, [0.5, 2], "0.5", None, 1j])
def test_quantile_wants_probabilities(law, p):
    with pytest.raises(errors.TrueupError, match="p must be"):
        law.noise.quantile(p)


def test_numbers_give_numbers_and_arrays_arrays(law):
    for method in (lambda x: density(law.noise, x), law.noise.cdf):
        assert type(method(0)) is float
        assert type(method(np.float64(1))) is float
        assert type(method(np.array(1.0))) is float
        square = method(np.array([[0, 1], [2, -1]]))
        assert square.shape == (2, 2)
        assert square[0, 1] == method(1)
        assert method([]).shape == (0,)


def test_nan_and_huge_arguments_stay_quiet(law):
    for method in (lambda x: density(law.noise, x), law.noise.cdf):
        assert np.isnan(method([math.nan])).all()
        assert np.isfinite(method([-math.inf, -1e300, -1e160, 1e160, 1e300, math.inf])).all()
    assert density(law.noise, math.inf) == density(law.noise, -math.inf) == 0


@pytest.mark.parametrize("x", ["1", None, [1, "2"], 1j, {}, [[1], [2, 3]]])
def test_arguments_must_be_real_numbers(law, x):
    with pytest.raises(errors.TrueupError, match="must be real numbers"):
        law.noise.cdf(x)


def test_the_other_density_is_refused(law):
    with pytest.raises(errors.TrueupError, match=r"use p[dm]f"):
        law.noise.pdf(0) if law.noise.lattice else law.noise.pmf(0)


@pytest.mark.parametrize(
    "family", [DiscreteLaplace, DiscreteGaussian, RoundedLaplace, RoundedGaussian]
)
@settings(deadline=None, max_examples=40)
@given(scale=st.floats(0.05, 1e5), p=st.floats(1e-200, 1 - 1e-12))
def test_quantile_on_the_integers_is_the_smallest(family, scale, p):
    noise = family(scale)
    k = noise.quantile(p)
    assert noise.cdf(k - 1) < p <= noise.cdf(k)


@pytest.mark.parametrize(
    ("noise", "x", "expected"),
    [
        (Laplace(2), -1200, mpmath.exp(-600) / 2),
        (Gaussian(2), -60, mpmath.ncdf(-30)),
        (DiscreteLaplace(2), -1200, mpmath.exp(-600) / (1 + mpmath.exp(-0.5))),
        (RoundedLaplace(2), -1200, mpmath.exp(-599.75) / 2),
        (RoundedGaussian(2), -60, mpmath.ncdf(-29.75)),
        (Staircase(1, 2), -1200, mpmath.exp(-600) / 2),
        (DiscreteGaussian(1e6), -3e7, None),
        (DiscreteGaussian(40), -1200, None),
    ],
    ids=repr,
)
def test_far_lower_tail_keeps_its_digits(noise, x, expected):
    if expected is None:
        sigma, k = float(noise.scale), np.arange(12 * noise.scale)
        terms = np.exp(-k * (2 * -x + k) / (2 * sigma**2))
        expected = mpmath.exp(-((x / mpmath.mpf(sigma)) ** 2) / 2) * math.fsum(terms)
        expected /= sigma * mpmath.sqrt(2 * mpmath.pi)
    assert noise.cdf(x) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("noise", [Laplace(2), DiscreteLaplace(2)], ids=repr)
def test_masked_arrays_are_refused(noise):
    x = np.ma.array([0.25, 7.0, 0.5], mask=[0, 1, 0])
    for function in (density.__get__(noise), noise.cdf, noise.quantile):
        with pytest.raises(errors.TrueupError, match="masked array, of which 1 entries are masked"):
            function(x)
