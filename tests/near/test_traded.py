"""Bias in exchange for variance where an unbiased estimator exists: (discrete) Laplace noise."""

import contextlib
import functools
import math

import numpy as np
import pytest

import trueup as tu

SCALE = 5
ALPHA = math.exp(-1 / SCALE)
KAPPA, LAMBDA = ALPHA / (1 - ALPHA), ALPHA / (1 - ALPHA) ** 2
STEPS = np.arange(-250, 251)
MASSES = (1 - ALPHA) / (1 + ALPHA) * ALPHA ** np.abs(STEPS)
N = tu.DiscreteLaplace(SCALE)


def moments(g, n):
    """Return E g and Var g at true counts, by direct sums."""
    x = np.asarray(n)[:, None] + STEPS
    values = g(x.ravel().astype(float)).reshape(x.shape)
    mean = values @ MASSES
    return mean, (values - mean[:, None]) ** 2 @ MASSES


def unbiased(x):
    """Return the unbiased estimate of 1/n for n ≥ 1, by its formula."""
    inside = np.maximum(x, 2.0)
    bent = 1 / (inside + 1) - 2 / inside + 1 / (inside - 1)
    return np.where(x <= 1, 1 + KAPPA / 2, 1 / inside - LAMBDA * bent)


@functools.cache
def ratio(bias):
    return tu.nearly_unbiased(
        "s/n", {"s": tu.Laplace(SCALE), "n": N}, {"n": (1, None)}, bias, relative=True
    )


def one_over_n(bias):
    """Return what s is multiplied by."""
    return lambda x: ratio(bias)(s=np.ones(x.shape), n=x)


@pytest.mark.parametrize(("bias", "better"), [(0.2, 2.5), (0.5, 7.0)])
def test_a_ratio_trades_variance_for_the_bias_that_is_allowed(bias, better):
    est = ratio(bias)
    assert 0.9 * bias < est.bias_bound <= bias
    n = np.unique(np.concatenate([np.arange(1, 400), np.geomspace(400, 50_000, 60).astype(int)]))
    mean, _ = moments(one_over_n(bias), n)
    off = np.abs(n * mean - 1)
    assert off.max() <= est.bias_bound
    assert off.max() > 0.95 * est.bias_bound
    mean, near = moments(one_over_n(bias), np.arange(1, 11))
    _, exact = moments(unbiased, np.arange(1, 11))
    assert (np.sqrt(exact / near) >= better).all()
    pay = 40 * 5.0  # (s, n) = (200, 5): the noise of s matters little
    variance = pay**2 * near[4] + 2 * SCALE**2 * (near[4] + mean[4] ** 2)
    assert est.sd(s=pay, n=5) == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert est.expectation(s=pay, n=5) == pytest.approx(pay * mean[4], rel=1e-9)


@pytest.mark.parametrize(("bias", "better"), [(0.2, 2.4), (0.5, 5.7)])
def test_what_is_gained_where_the_noise_of_s_is_large(bias, better):
    """At s = n the noise of s times E h² counts, h in place of 1/n, at least ((1 − bias)/n)²."""
    n, noise = np.arange(1, 11), 2 * SCALE**2
    total = []
    for h in (unbiased, one_over_n(bias)):
        mean, variance = moments(h, n)
        total.append(n**2 * variance + noise * (variance + mean**2))
    gained = np.sqrt(total[0] / total[1])
    most = np.sqrt(total[0] / noise) / ((1 - bias) / n)
    assert (gained >= better).all()
    assert (gained <= most).all()
    assert bias < 0.5 or most[0] < 7  # so 7 times, as s ≫ n gains, is out of reach at n = 1


def test_what_cannot_be_bounded_stays_unbiased():
    """|s|·β has no bound of its own, and log(n) no bias relative to it at n = 1."""
    noise, domain = {"s": tu.Laplace(SCALE), "n": N}, {"n": (1, None)}
    given = {"s": np.full(4, 3.0), "n": np.array([-3.0, 1.0, 2.0, 30.0])}
    for f, relative, told in (
        ("s/n", False, "multiplied by s, which is not bounded on the domain\nHint: use relative"),
        ("s*log(n)", True, None),
        ("s/(s**2 + n)", True, "no sum of products"),
    ):
        with pytest.warns(tu.BoundWarning, match=told) if told else contextlib.nullcontext():
            near = tu.nearly_unbiased(f, noise, domain, 0.2, relative=relative)
        assert near.bias_bound == 0
        exact = tu.unbiased(f, noise, domain)
        assert near(**given) == pytest.approx(exact(**given), rel=1e-12)
        assert near.variance(**given) == pytest.approx(exact.variance(**given), rel=1e-9)


def test_a_bias_too_small_to_help_leaves_the_unbiased_estimator():
    domain = tu.Integers(1, None)
    near = tu.nearly_unbiased("1/n", N, domain, max_bias=1e-9, relative=True)
    x = np.array([-4.0, 1.0, 2.0, 7.0, 40.0])
    assert near.bias_bound <= 1e-9
    assert near(x) == pytest.approx(unbiased(x), rel=1e-5)
