"""The law of a product of independent factors follows from theirs, however many there are."""

import math

import mpmath
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


SEPARATE = {
    "log(a*d/(b*c))": (math.fsum, {"a": 1, "b": -1, "c": -1, "d": 1}, np.log),
    "sqrt(a*d/(b*c))": (math.prod, {"a": 0.5, "b": -0.5, "c": -0.5, "d": 0.5}, None),
    "exp(-a/9 - b/8 - c/7 - d/6)": (math.prod, {"a": 9, "b": 8, "c": 7, "d": 6}, np.exp),
}


@pytest.mark.parametrize("formula", SEPARATE)
def test_logarithms_powers_and_exponentials_of_positive_products_separate(formula):
    """Means and variances of one count each, by direct sums, give those of the four."""
    how, weights, function = SEPARATE[formula]
    truth = {"a": 7, "b": 9, "c": 12, "d": 5}
    est = tu.unbiased(
        formula, dict.fromkeys("abcd", tu.DiscreteLaplace(2)), dict.fromkeys("abcd", (1, None))
    )

    def one(name):
        w = weights[name]
        if function is np.log:
            return lambda x: w * np.log(x)
        return (lambda x: np.exp(-x / w)) if function is np.exp else (lambda x: x**w)

    moments = [_moments(one(name), q, 2, 1) for name, q in truth.items()]
    mean = how(first for first, _ in moments)
    variance = math.fsum(second - first**2 for first, second in moments)
    if how is math.prod:
        variance = math.prod(second for _, second in moments) - mean**2
    assert est.expectation(**truth) == pytest.approx(mean, rel=1e-10)
    assert est.sd(**truth) == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_signs_that_alternate_under_integer_noise():
    """(−1)ⁿ is a function on the integers: g = (−1)ⁿ(1 + 4λ). It is to be written as a wave."""
    alpha = math.exp(-1)
    expected = -(1 + 4 * alpha / (1 - alpha) ** 2)
    assert tu.unbiased("cos(pi*n)", tu.DiscreteLaplace(1))(3) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown"):
        tu.unbiased("(-1)**n", tu.DiscreteLaplace(1))


def _inverse(h, n, low, scale):
    """Return T[h](n) with 40 digits under discrete Laplace noise, bounded below."""
    alpha = mpmath.exp(-1 / mpmath.mpf(scale))
    if n <= low:
        return h(low) - alpha / (1 - alpha) * (h(low + 1) - h(low))
    return h(n) - alpha / (1 - alpha) ** 2 * (h(n + 1) - 2 * h(n) + h(n - 1))


@pytest.mark.parametrize("n", [-4, 1, 2, 3, 20, 400])
def test_the_variance_of_a_covariance_of_totals(n):
    """V̂ = g² − T[f²], T[f²] a sum of products of squares: (s + Z)² − 2λ for s²."""
    noise = {
        **dict.fromkeys(("sxy", "sx", "sy"), tu.DiscreteLaplace(5)),
        "n": tu.DiscreteLaplace(3),
    }
    est = tu.unbiased("sxy/n-sx*sy/n**2", noise, {"n": (1, None)})
    for sxy, sx, sy in [(20, 21, 22), (-3, 40, 7), (900, 800, 1000)]:
        with mpmath.workdps(40):
            alpha = mpmath.exp(-1 / mpmath.mpf(5))
            less = 2 * alpha / (1 - alpha) ** 2
            powers = [_inverse(lambda k, p=p: mpmath.mpf(k) ** -p, n, 1, 3) for p in range(5)]
            value = sxy * powers[1] - sx * sy * powers[2]
            square = (sxy**2 - less) * powers[2] - 2 * sxy * sx * sy * powers[3]
            square += (sx**2 - less) * (sy**2 - less) * powers[4]
            variance = value**2 - square
        at = {"sxy": sxy, "sx": sx, "sy": sy, "n": n}
        assert est(**at) == pytest.approx(float(value), rel=1e-9)
        assert est.variance(**at) == pytest.approx(float(variance), rel=1e-7)
