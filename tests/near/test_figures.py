"""What the theory promises: 1/n under discrete Gaussian noise, default prior."""

import numpy as np
import pytest

import trueup as tu
from near.laws import sums
from trueup.near import construct
from trueup.near.plan import Plan


@pytest.fixture
def solved(monkeypatch):
    """The programmes that were solved: how many true values and how many unknowns they had."""
    sizes = []

    class Watched(Plan):
        def __init__(self, *given):
            super().__init__(*given)
            sizes.append(self.programme.mean.shape)

    monkeypatch.setattr(construct, "Plan", Watched)
    return sizes


@pytest.mark.parametrize(
    ("sigma", "low", "high", "bias", "most", "unknowns"),
    [(2, 1, 150, 0.05, 1.9, 26), (3, 12, 400, 0.01, 0.26, 30), (10, 60, 3000, 0.005, 0.18, 91)],
    ids=["sigma 2", "sigma 3", "sigma 10"],
)
def test_largest_relative_sd(sigma, low, high, bias, most, unknowns, solved):
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(sigma), (low, high), bias, relative=True)
    assert solved == [(unknowns, unknowns)]  # near the bounds only: elsewhere it is the series
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


def test_a_million_integers_take_no_more_work_than_a_thousand(solved):
    tu.nearly_unbiased("1/n", tu.DiscreteGaussian(10), (60, 3000), 0.005, relative=True)
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(10), (60, 10**6), 0.005, relative=True)
    assert solved[1:] == solved[:1]
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
