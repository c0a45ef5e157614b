"""Much noise: sums over thousands of counts, and integrals over the plane, against all of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from trueup.mechanisms import GroupMean, Mean, TwoTotalsMean


@pytest.mark.parametrize("n", [1, 300, 20_000])
def test_a_mean_under_much_noise(n):
    """The unbiased 1/n of a discrete count, from all its values and their probabilities."""
    b = 2_000.0
    a = math.exp(-1 / b)
    y = np.arange(n - round(50 * b), n + round(50 * b) + 1)
    p = (1 - a) / (1 + a) * a ** np.abs(y - n).astype(float)
    kappa, lam, u = a / (1 - a), a / (1 - a) ** 2, np.maximum(y, 2).astype(float)
    g = np.where(y > 1, 1 / u - lam * (1 / (u + 1) - 2 / u + 1 / (u - 1)), 1 + kappa / 2)
    spread = p @ (g - 1 / n) ** 2
    mechanism = Mean(1 / b, 1 / b, count_noise="discrete")
    variance = float(mechanism.noise["s"].variance) * (p @ g**2) + (0.4 * n) ** 2 * spread
    assert mechanism.sd(n, 0.1) == pytest.approx(math.sqrt(variance), rel=1e-8)


@pytest.mark.parametrize("truth", [(1, 0), (20, 60)])
def test_a_group_mean_under_much_noise(truth):
    """Two counts with a convention for no records: every pair, its label and its probability."""
    mechanism = GroupMean(0.02, empty=0)  # 40 scales are 2,000 counts
    a = math.exp(-1 / float(mechanism.noise.scale))
    size = max(truth) + round(46 / 0.02)
    y = np.arange(size + 2.0)
    n = y[:, None] + y
    f = np.divide(y[None, :], n, out=np.zeros_like(n), where=n > 0)
    lam = a / (1 - a) ** 2
    for axis in (0, 1):
        f = np.moveaxis(f, axis, 0)
        inside = f[1:-1] - lam * (f[2:] - 2 * f[1:-1] + f[:-2])
        f = np.moveaxis(np.concatenate([(f[:1] - a * f[1:2]) / (1 - a), inside]), 0, axis)
    k = np.arange(f.shape[0])
    w = np.where(k > 0, 1 - a, 1.0) / (1 + a)
    p, q = (w * a ** np.abs(k - s) for s in truth)
    exact = math.sqrt(p @ (f - truth[1] / sum(truth)) ** 2 @ q)
    assert mechanism.sd(sum(truth), truth[1] / sum(truth)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "n", "mean"), [(1e-6, 1, 0.1), (1e-6, 10**7, 0.1), (1e-4, 603_915, 0), (1, 4, 0.3)]
)
def test_two_totals_under_much_noise(epsilon, n, mean):
    """The squared error of the published value, integrated over the quadrant by brute force."""
    mechanism = TwoTotalsMean(epsilon)
    b, g, truth = 1 / epsilon, mechanism.quadrant.value, (n * (1 - mean), n * mean)
    x, w = np.polynomial.legendre.leggauss(16)

    def spread(ends, at):
        """Integrate over panels, beyond 1 by a factor of 1.2 and by the scale at most."""
        steps = np.concatenate([[0, 0.25, 0.5, 0.75], 1.2 ** np.arange(400.0)])
        even = np.arange(0, ends[-1], b)
        edges = np.unique([e for e in (*steps, *even, *ends) if e <= ends[-1]])
        half = np.diff(edges)[:, None] / 2
        return np.sum(half * w * at(edges[:-1, None] + half * (1 + x)))

    def density(y, s):
        return np.exp(-np.abs(y - s) / b) / (2 * b)

    def error(zeros, ones):
        return (g(zeros, ones) - mean) ** 2

    none = [0.5 * math.exp(-s / b) for s in truth]
    far = max(1.0, n) + 60 * b
    total = none[0] * none[1] * error(0.0, 0.0)
    total += none[0] * spread([truth[1], far], lambda y: error(0 * y, y) * density(y, truth[1]))
    total += none[1] * spread([truth[0], far], lambda y: error(y, 0 * y) * density(y, truth[0]))

    def across(u):
        """The integral over y₁ from 0 to u, in pieces between the truths and every scale."""
        found = np.zeros_like(u)
        cuts = np.clip([0 * u, u - truth[0], truth[1] + 0 * u, u], 0, u)
        cuts = np.sort(cuts, axis=0)
        pieces = 16
        for low, high in pairwise(cuts):
            for i in range(pieces):
                half = (high - low) / pieces / 2
                y = (low + 2 * i * half)[..., None] + half[..., None] * (1 + x)
                p = density(y, truth[1]) * density(u[..., None] - y, truth[0])
                found += half * (w * p * error(u[..., None] - y, y)).sum(axis=-1)
        return found

    total += spread([n, far], across)
    assert mechanism.sd(n, mean) == pytest.approx(math.sqrt(total), rel=1e-7)
