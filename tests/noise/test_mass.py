"""Noise given by a table of masses: what it says, what it is made from, what it refuses."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from noise.conftest import mgf
from trueup.errors import TrueupError
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mass,
    Noise,
    RoundedLaplace,
)
from trueup.noise.mass import support
from trueup.noise.record import from_record, to_record

SKEW = {-2: Fraction(1, 10), 0: Fraction(1, 2), 1: Fraction(3, 10), 5: Fraction(1, 10)}


@st.composite
def tables(draw):
    """Draw integers with masses of sum 1, as floats or as fractions."""
    places = draw(st.lists(st.integers(-12, 12), min_size=1, max_size=9, unique=True))
    parts = [draw(st.integers(1, 50)) for _ in places]
    exact = draw(st.booleans())
    total = sum(parts)
    return {
        k: Fraction(p, total) if exact else p / total for k, p in zip(places, parts, strict=True)
    }


@settings(max_examples=60)
@given(tables())
def test_the_law_is_the_table(masses):
    noise = Mass(masses)
    k = np.arange(-15, 16)
    exact = np.array([float(masses.get(int(j), 0)) for j in k])
    np.testing.assert_allclose(noise.pmf(k), exact, rtol=1e-12)
    np.testing.assert_allclose(noise.cdf(k), np.cumsum(exact), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(noise.cdf(k + 0.5), np.cumsum(exact), rtol=1e-12, atol=1e-15)
    for order in range(5):
        moment = float(sum(Fraction(p) * j**order for j, p in masses.items()))
        assert float(noise.moment(order)) == pytest.approx(moment, rel=1e-12, abs=1e-12)
    with mpmath.workdps(30):
        for c in (0.3, -1.1, 2j, 0.2 + 1j):
            m = mpmath.fsum(mpmath.mpf(float(p)) * mpmath.exp(c * j) for j, p in masses.items())
            assert abs(complex(mgf(noise, c)) - complex(m)) <= 1e-12 * abs(mpmath.exp(12 * 1.1))
    for p in (0.01, 0.3, 0.77):
        smallest = next(int(j) for j in k if noise.cdf(int(j)) >= p)
        assert noise.quantile(p) == smallest


def test_quantiles_at_the_steps_and_ends_of_a_table():
    p = np.array([0, 0.25, 0.2500001, 0.5, 0.5000001, 1])
    assert Mass({-2: 0.25, 0: 0.25, 3: 0.5}).quantile(p).tolist() == [-2, -2, 0, 0, 3, 3]
    assert Mass({4: 1}).quantile(p).tolist() == [4] * 6
    assert Mass({4: 1}).cdf([3, 4, 5]).tolist() == [0, 1, 1]


def test_exact_masses_stay_exact():
    noise = Mass(SKEW)
    assert noise.moment(1) == Fraction(3, 5)
    assert noise.variance == Fraction(16, 5) - Fraction(9, 25)
    assert noise.tilted(0, 2)[2] == Fraction(16, 5)
    assert not noise.symmetric
    assert noise == Mass(reversed(SKEW.items())) == Mass({**SKEW, 7: 0})
    assert hash(noise) == hash(Mass(SKEW))


def test_floats_are_divided_by_a_sum_close_to_one_once():
    noise = Mass({0: 0.3 + 1e-12, 1: 0.7})
    assert math.fsum(p for _, p in noise.masses) == pytest.approx(1, abs=1e-16)
    assert Mass(dict(noise.masses)) == noise


def test_the_table_of_a_sum():
    noise = DiscreteLaplace(1) + RoundedLaplace(2) + DiscreteGaussian(0.7)
    first, masses = support(noise)
    total = Mass(enumerate(masses.tolist(), start=first))
    parts = (DiscreteLaplace(1), RoundedLaplace(2), DiscreteGaussian(0.7))
    assert float(total.variance) == pytest.approx(sum(float(p.variance) for p in parts), rel=1e-12)
    for t in (0.05, 1j):
        product = math.prod([complex(mgf(p, t)) for p in parts], start=1 + 0j)
        assert abs(complex(mgf(total, t)) - product) < 1e-12


@pytest.mark.parametrize(
    ("frozen", "first", "last"),
    [(scipy.stats.geom(0.1), 1, 438), (scipy.stats.geom(0.1, loc=-30), -29, 408)],
    ids=["from 1", "from -29"],
)
def test_the_support_of_a_noise_with_one_long_tail(frozen, first, last):
    """0.9^{k−1} ≥ 1e-20 up to k = 438: the side that ends early must not end the other one."""
    start, masses = support(Noise.from_scipy(frozen))
    assert (start, start + len(masses) - 1) == (first, last)
    np.testing.assert_allclose(masses, 0.1 * 0.9 ** np.arange(438.0), rtol=1e-10)


def test_support_of_what_leans():
    first, masses = support(Noise.from_scipy(scipy.stats.poisson(3, loc=-2)))
    assert first == -2
    assert masses.sum() == pytest.approx(1, abs=1e-15)
    assert masses[1] == pytest.approx(3 * math.exp(-3), rel=1e-12)


@pytest.mark.parametrize(
    "noise",
    [Mass(SKEW), Mass({-1: 0.25, 0: 0.5, 1: 0.25}), Mass({-1: 0.1, 2: 0.9})],
    ids=lambda n: str(n)[:30],
)
def test_records_read_back(noise):
    assert from_record(to_record(noise)) == noise


@pytest.mark.parametrize(
    ("masses", "message"),
    [
        ({0: 0.5, 1: 0.4}, "sum to 0.9, not to 1"),
        ({0: Fraction(1, 3), 1: Fraction(1, 3)}, "sum to 2/3, not to 1"),
        ({}, "sum to 0"),
        ({0: 1.5, 1: -0.5}, "negative"),
        ({0: math.nan, 1: 1.0}, "finite"),
        ({0: math.inf}, "finite"),
        ({0.5: 1.0}, "integers up to 1048576, got one at 0.5"),
        ({"0": 1.0}, "place in the table"),
        ({0: "1"}, "mass at 0"),
        ({None: 1.0}, "place in the table"),
        ([(0, 0.5), (0, 0.5)], "two masses at 0"),
        ({2**40: 1.0}, "integers up to"),
        ([0.5, 0.5], "must be a table"),
        (3, "must be a table"),
        (None, "must be a table"),
        ("abc", "must be a table"),
    ],
    ids=str,
)
def test_bad_tables(masses, message):
    with pytest.raises(TrueupError, match=message) as caught:
        Mass(masses)
    assert "\nHint: " in str(caught.value)


@pytest.mark.parametrize("noise", [DiscreteLaplace(1e7), DiscreteLaplace(1e7) + DiscreteLaplace(1)])
def test_what_is_too_wide_for_a_table(noise):
    with pytest.raises(TrueupError, match=r"too wide for a table(.|\n)*Hint: "):
        support(noise)


@pytest.mark.parametrize("masses", [{0: 1.5, 1: -0.5}, {0: 1, 3: Fraction(1, 2), 4: -0.5}], ids=str)
def test_a_negative_mass_is_named(masses):
    """Also where all of them sum to 1."""
    with pytest.raises(TrueupError, match=r"the mass at [14] is negative, got -0\.5"):
        Mass(masses)
