"""What the theory promises: 1/n under discrete Gaussian noise, default prior."""

import numpy as np
import pytest

import trueup as tu
from near.laws import sums


@pytest.mark.parametrize(
    ("sigma", "low", "high", "bias", "most"),
    [(2, 1, 150, 0.05, 1.9), (3, 12, 400, 0.01, 0.26), (10, 60, 3000, 0.005, 0.18)],
    ids=["sigma 2", "sigma 3", "sigma 10"],
)
def test_largest_relative_sd(sigma, low, high, bias, most):
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(sigma), (low, high), bias, relative=True)
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


def test_a_million_integers():
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(10), (60, 10**6), 0.005, relative=True)
    q = np.arange(60, 10**6 + 1)
    mean, variance = sums(est, 10, 60, 10**6)
    assert np.abs(mean * q - 1).max() <= est.bias_bound <= 0.005
    assert (np.sqrt(variance[:1000]) * q[:1000]).max() <= 0.18
    far = np.abs(mean * q - 1)[10_000:]
    assert far.max() < 0.0001  # far out it is 1/x, with a bias of σ²/n² of 1/n


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


DONE = [
    ("1/n", tu.Gaussian(3), (12, 400), {"max_bias": 0.01}, 12, 0.207),
    ("1/n", tu.Laplace(2), (1, None), {"max_bias": 0.2}, 41, 0.0735),
    ("1/n", tu.DiscreteLaplace(5), (1, None), {"cells": 400}, 9, 4.585),
    ("1/n", tu.DiscreteLaplace(5), (1, None), {"cells": 20_000}, 9, 12.365),
]


@pytest.mark.parametrize(("f", "noise", "domain", "wish", "at", "most"), DONE, ids=str)
def test_relative_sd_at_a_true_value(f, noise, domain, wish, at, most):
    est = tu.nearly_unbiased(f, noise, domain, relative=True, **wish)
    assert est.sd(at) * at <= most
    assert est.bias_bound <= wish.get("max_bias", 1)
    assert est.variance_bias <= 0.15
    assert f"relative to ({f})²" in est.explain()


def test_estimates_of_variances_are_nearly_unbiased_where_that_is_hard():
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(3), (1, 100), cells=50)
    q = np.arange(1, 101)
    ratio = sums(est.variance, 3, 1, 100)[0] / est.sd(q) ** 2
    assert np.abs(ratio - 1).max() <= est.variance_bias * (1 + 1e-6) <= 0.15
    assert "too large or too small at most on average" in est.explain()
