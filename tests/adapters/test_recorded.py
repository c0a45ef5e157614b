"""Tumult and the Census: objects as they were recorded."""

import enum
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup as tu


class NoiseMechanism(enum.Enum):
    """The names and values of tmlt.analytics' private enumeration."""

    LAPLACE = 1
    GEOMETRIC = 2
    DISCRETE_GAUSSIAN = 3
    EXPONENTIAL = 4
    GAUSSIAN = 5


class NoiseInfo:
    """A container like tmlt.analytics': items and iteration, no length."""

    def __init__(self, noise_info):
        self._noise_info = noise_info

    def __getitem__(self, n):
        return self._noise_info[n]

    def __iter__(self):
        return iter(self._noise_info)


def entry(mechanism, parameter):
    return {"noise_mechanism": mechanism, "noise_parameter": parameter}


@pytest.mark.parametrize(
    ("mechanism", "parameter", "noise"),
    [
        (NoiseMechanism.LAPLACE, 2.0, tu.Laplace(2)),
        (NoiseMechanism.GEOMETRIC, 2, tu.DiscreteLaplace(2)),
        (NoiseMechanism.GAUSSIAN, 6.25, tu.Gaussian(2.5)),
        (NoiseMechanism.DISCRETE_GAUSSIAN, 9.0, tu.DiscreteGaussian(3)),
        (NoiseMechanism.GEOMETRIC, 0, tu.Noiseless()),
        ("LAPLACE", Fraction(1, 3), tu.Laplace(Fraction(1, 3))),
    ],
    ids=str,
)
def test_one_tumult_mechanism(mechanism, parameter, noise):
    one = entry(mechanism, parameter)
    assert tu.from_tumult(one) == noise
    assert tu.from_tumult([one]) == noise
    assert tu.from_tumult(NoiseInfo([one])) == noise


def test_a_tumult_average_has_two_noises():
    info = NoiseInfo([entry(NoiseMechanism.LAPLACE, 5.0), entry(NoiseMechanism.GEOMETRIC, 2.0)])
    assert tu.from_tumult(info) == [tu.Laplace(5), tu.DiscreteLaplace(2)]


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ([entry(NoiseMechanism.EXPONENTIAL, 1.0)], "EXPONENTIAL mechanism: it selects a value"),
        ([entry("SPARSE_VECTOR", 1.0)], "SPARSE_VECTOR mechanism: the mechanism is not known"),
        ([entry(NoiseMechanism.LAPLACE, -1.0)], "must not be negative, got -1"),
        ([entry(NoiseMechanism.LAPLACE, float("inf"))], "must be finite"),
        ([], "names no mechanism"),
        ([{"noise_mechanism": 1}], "an entry has noise_mechanism and noise_parameter"),
        ("LAPLACE", "a list of mappings, got 'LAPLACE'"),
        (None, "a list of mappings, got None"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tumult_information_that_is_no_noise(info, reason):
    with pytest.raises(tu.TrueupError, match=f"(?s){reason}.*\nHint: "):
        tu.from_tumult(info)


def discrete_variance(sigma):
    """Return Σk²e^{−k²/(2σ²)} / Σe^{−k²/(2σ²)} with 40 digits."""
    with mpmath.workdps(40):
        weights = {
            k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(90)
        }
        moment = 2 * mpmath.fsum(k * k * w for k, w in weights.items())
        return moment / (2 * mpmath.fsum(weights.values()) - 1)


@given(st.floats(0.05, 4.5))
def test_the_census_variance_gives_sigma_to_the_last_digit(sigma):
    noise = tu.from_census(float(discrete_variance(sigma)))
    assert float(noise.scale) == pytest.approx(sigma, rel=5e-16)


def test_a_small_census_variance_is_not_sigma_squared():
    noise = tu.from_census(0.1)
    assert float(discrete_variance(noise.scale)) == pytest.approx(0.1, rel=1e-15)
    assert float(noise.scale) > 1.3 * 0.1**0.5


@pytest.mark.parametrize("variance", [4.0, 1e3, 12345.678])
def test_a_large_census_variance_is_sigma_squared(variance):
    assert float(tu.from_census(variance).scale) == variance**0.5


@pytest.mark.parametrize(
    "column", [list, tuple, np.array, pd.Series, pl.Series], ids=lambda c: c.__name__
)
def test_a_census_column(column):
    noises = tu.from_census(column([9.0, 16.0, 9.0, 0.0]))
    assert noises == [
        tu.DiscreteGaussian(3), tu.DiscreteGaussian(4), tu.DiscreteGaussian(3), tu.Noiseless()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("variance", "reason"),
    [
        (-1, "variance must not be negative, got -1"),
        (float("nan"), "variance must be finite"),
        ([1.0, float("inf")], "variance must be finite"),
        ("9", "variance must be a number, got '9'"),
        (None, "variance must be a number, got None"),
        (True, "variance must be a number, got True"),
        ([[1.0, 2.0]], r"one column, got the shape \(1, 2\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_variance(variance, reason):
    with pytest.raises(tu.TrueupError, match=f"(?s){reason}.*\nHint: "):
        tu.from_census(variance)
