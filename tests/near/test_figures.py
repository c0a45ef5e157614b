"""What the theory promises: 1/n under discrete Gaussian noise, default prior."""

import time

import numpy as np
import pytest

import trueup as tu
from near.laws import sums


@pytest.mark.parametrize(
    ("sigma", "low", "high", "bias", "most", "seconds"),
    [(2, 1, 150, 0.05, 1.9, 5), (3, 12, 400, 0.01, 0.26, 5), (10, 60, 3000, 0.005, 0.18, 5)],
    ids=["sigma 2", "sigma 3", "sigma 10"],
)
def test_largest_relative_sd(sigma, low, high, bias, most, seconds):
    start = time.process_time()
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(sigma), (low, high), bias, relative=True)
    assert time.process_time() - start < seconds
    q = np.arange(low, high + 1)
    mean, variance = sums(est, sigma, low, high)
    seen = np.abs(mean * q - 1).max()
    assert seen <= est.bias_bound <= bias
    assert seen > 0.99 * bias  # the bound is used up: more variance would buy less bias
    deviations = np.sqrt(variance) * q
    assert deviations.max() <= most
    assert est.max_sd == pytest.approx(deviations.max(), rel=1e-6)
    assert est.worst == q[deviations.argmax()]
    plug_in = sums(lambda x: 1 / np.maximum(x, low), sigma, low, high)[0]
    assert np.abs(plug_in * q - 1).max() > 2 * bias  # the same sums see what is biased


def test_a_million_integers_are_as_quick_as_a_thousand():
    start = time.process_time()
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(10), (60, 10**6), 0.005, relative=True)
    assert time.process_time() - start < 10
    q = np.arange(60, 10**6 + 1)
    mean, variance = sums(est, 10, 60, 10**6)
    assert np.abs(mean * q - 1).max() <= est.bias_bound <= 0.005
    assert (np.sqrt(variance[:1000]) * q[:1000]).max() <= 0.18
    assert np.abs(mean * q - 1)[1000:].max() < 1e-8  # far out it is the series, unbiased


def test_an_unbounded_domain():
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(3), (12, None), 0.01, relative=True)
    for low in (12, 10**5, 10**9):
        q = np.arange(low, low + 200)
        mean, _ = sums(est, 3, low, low + 199)
        assert np.abs(mean * q - 1).max() <= est.bias_bound <= 0.01


def test_noise_of_many_integers_takes_a_spline():
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(100), (600, None), 0.005, relative=True)
    q = np.arange(600, 3000)
    mean, variance = sums(est, 100, 600, 2999)
    assert np.abs(mean * q - 1).max() <= est.bias_bound <= 0.005
    assert (
        np.sqrt(variance) * q
    ).max() <= 0.18  # as for sigma 10 from 60 on: only the ratio counts
