"""The law of a product of independent factors follows from theirs, however many there are."""

import math

import numpy as np
import pytest

import trueup as tu


def _moments(f, q, scale, low):
    """Return E g and E g² for one count by direct sums over discrete Laplace noise."""
    alpha = math.exp(-1 / scale)
    lam, kappa = alpha / (1 - alpha) ** 2, alpha / (1 - alpha)
    x = np.arange(low - 200, q + 300)
    mass = (1 - alpha) / (1 + alpha) * alpha ** np.abs(x - q)
    inner = np.maximum(x, low + 1)
    g = f(inner) - lam * (f(inner + 1) - 2 * f(inner) + f(inner - 1))
    g = np.where(x <= low, f(low) - kappa * (f(low + 1) - f(low)), g)
    return mass @ g, mass @ g**2


def test_the_sd_of_an_odds_ratio():
    truth = {"a": 7, "b": 9, "c": 12, "d": 5}
    est = tu.unbiased(
        "a*d/(b*c)",
        dict.fromkeys("abcd", tu.DiscreteLaplace(2)),
        dict.fromkeys("abcd", (1, None)),
    )
    first = second = 1.0
    for name, q in truth.items():
        f = (lambda x: 1.0 * x) if name in "ad" else (lambda x: 1.0 / x)
        mean, square = _moments(f, q, 2, 1)
        first, second = first * mean, second * square
    assert first == pytest.approx(7 * 5 / (9 * 12), rel=1e-10)
    assert est.sd(**truth) == pytest.approx(math.sqrt(second - first**2), rel=1e-9)
    outside = est.expectation(**{**truth, "b": 0})
    assert outside == pytest.approx(7 * 5 * _moments(lambda x: 1.0 / x, 0, 2, 1)[0] / 12, rel=1e-9)


def test_signs_that_alternate_under_integer_noise():
    """(−1)ⁿ is a function on the integers: g = (−1)ⁿ(1 + 4λ)."""
    alpha = math.exp(-1)
    expected = -(1 + 4 * alpha / (1 - alpha) ** 2)
    assert tu.unbiased("(-1)**n", tu.DiscreteLaplace(1))(3) == pytest.approx(expected, rel=1e-12)


def test_a_sum_over_very_many_integers_is_refused():
    est = tu.unbiased("1/n", tu.DiscreteLaplace(10**6), (1, None))
    with pytest.raises(tu.TrueupError, match="too wide for an exact sum"):
        est.sd(5)
