"""``cells=m``: the bias that makes the average of m like cells most accurate."""

import functools
import math
import pickle

import numpy as np
import pytest

import trueup as tu
from near.test_traded import ALPHA, LAMBDA, MASSES, STEPS, N, moments, unbiased

DOMAIN = {"n": (1, None)}
LARGEST = 5_000


@functools.cache
def ratio(cells):
    return tu.nearly_unbiased("s/n", {"s": N, "n": N}, DOMAIN, cells=cells)


def naive(x):
    return np.divide(1.0, x, out=np.zeros(len(x)), where=x != 0)


def clipped(x):
    return 1 / np.maximum(x, 1.0)


def error(g, n, usual):
    """Return the exact RMSE of Σ s·g(n + noise), s = usual·n, with noise on s too."""
    sizes, times = np.unique(n, return_counts=True)
    mean, variance = moments(g, sizes)
    s = usual * sizes
    bias = times @ (s * mean - usual)
    return math.sqrt(bias**2 + times @ (s**2 * variance + 2 * LAMBDA * (variance + mean**2)))


@pytest.mark.parametrize("usual", [0.5, 40.0])
@pytest.mark.parametrize("cells", [400, 20_000])
def test_a_total_of_many_cells_is_close_to_the_best_of_the_others(cells, usual):
    quantiles = (np.arange(cells) + 0.5) / cells
    n = np.floor((LARGEST + 1) ** quantiles).astype(int)
    ours = error(lambda x: ratio(cells)(s=np.ones(len(x)), n=x), n, usual)
    others = [error(g, n, usual) for g in (unbiased, clipped, naive)]
    assert ours <= 1.2 * min(others)


@pytest.mark.parametrize("cells", [400, 20_000])
def test_the_bias_stays_below_its_bound(cells):
    est = ratio(cells)
    n = np.unique(np.geomspace(1, 20_000, 400).astype(int))
    mean, _ = moments(lambda x: est(s=np.ones(len(x)), n=x), n)
    off = np.abs(n * mean - 1).max()
    assert 0.98 * est.bias_bound < off <= est.bias_bound
    assert f"averages of {cells} cells" in est.explain()
    assert f"|bias| ≤ {est.bias_bound:.3g}·|f|" in repr(est)


def test_bias_and_variance_are_weighed_by_the_number_of_cells():
    """No table of values has a smaller Σ (bias² + variance/m)/q, found by least squares."""
    m = 50
    est = tu.nearly_unbiased("1/n", N, tu.Integers(1, None), cells=m)
    q, x = np.arange(1, 161), np.arange(1 - 250, 161 + 250)
    law = np.zeros((len(q), len(x)))
    for row, k in enumerate(q):
        law[row, k - 1 : k - 1 + len(STEPS)] = MASSES
    weights = 1 / q / (1 / q) ** 2  # log-uniform, relative

    def price(values):
        mean = law @ values
        return weights @ ((mean - 1 / q) ** 2 + (law @ values**2 - mean**2) / m)

    free = (x >= -60) & (x <= 60)
    ours = est(x.astype(float))
    tail = law[:, ~free] @ ours[~free]
    rows = law[:, free]
    curved = np.diag(weights @ rows) / m + rows.T @ (weights[:, None] * rows) * (1 - 1 / m)
    right = rows.T @ (weights * (1 / q)) - (1 - 1 / m) * rows.T @ (weights * tail)
    best = ours.copy()
    best[free] = np.linalg.solve(curved, right)
    assert price(best) <= price(ours) <= 1.001 * price(best)
    assert price(ours) < 0.5 * min(price(unbiased(x.astype(float))), price(clipped(x)))


def test_more_cells_less_bias():
    bounds = [ratio(cells).bias_bound for cells in (400, 20_000, 10**8)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 1e-3
    assert ALPHA ** STEPS[-1] < 1e-20  # what the sums of these tests leave out


def test_gaussian_noise_and_zeros():
    assert tu.nearly_unbiased("1/n", tu.DiscreteGaussian(2), (2, 60), cells=30).relative
    log = tu.nearly_unbiased("log(n)", tu.DiscreteGaussian(2), (1, 60), cells=30)
    assert not log.relative
    assert 0 < log.bias_bound < 0.5
    few, many = (tu.nearly_unbiased("1/q", tu.Gaussian(1), (5, 20), cells=m) for m in (1, 1000))
    assert many.bias_bound < few.bias_bound
    again = pickle.loads(pickle.dumps(many))  # noqa: S301
    assert again.cells == 1000
    assert again(7.0) == many(7.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cells": 0}, "cells must be at least 1, got 0"),
        ({"cells": math.inf}, "cells"),
        ({"cells": 9, "max_bias": 0.1}, "exclude each other"),
    ],
    ids=["none", "infinite", "both"],
)
def test_bad_cells_are_refused(given, said):
    with pytest.raises(tu.TrueupError, match=said):
        tu.nearly_unbiased("1/n", N, (1, None), **given)


def test_the_bound_stated_holds_for_noisier_rows():
    few = tu.nearly_unbiased("s/n", {"s": N, "n": N}, DOMAIN, cells=100)
    more = tu.DiscreteLaplace(9)
    chosen = tu.nearly_unbiased("s/n", {"s": N, "n": more}, DOMAIN, cells=100)
    k, n = np.arange(-400, 401), np.arange(1, 60)

    def off(g):
        masses = more.pmf(k)
        mean = np.array([masses @ g(s=np.ones(len(k)), n=at + k) for at in n])
        return np.abs(n * mean - 1).max()

    kept = few._at_scales({"n": 9.0})
    assert off(chosen) > 1.1 * few.bias_bound
    assert 0.98 * few.bias_bound < off(kept) <= few.bias_bound
    less = tu.nearly_unbiased("s/n", {"s": N, "n": tu.DiscreteLaplace(2)}, DOMAIN, cells=100)
    same = few._at_scales({"n": 2.0})
    assert same.bias_bound == less.bias_bound < few.bias_bound
    x = np.arange(-5, 40)
    np.testing.assert_array_equal(same(s=x, n=x), less(s=x, n=x))
