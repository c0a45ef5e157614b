"""Noise known by moments only: the bias is the distance of a polynomial."""

import math

import numpy as np
import pytest

import trueup as tu
from near.laws import largest

MOMENTS = tu.Moments([0, 2, 0, 24, 0, 720, 0, 40320])  # those of Laplace(1)


@pytest.mark.parametrize(
    ("f", "truth", "bias", "relative"),
    [
        ("1/q", lambda q: 1 / q, 0.05, True),
        ("log(q)", np.log, 0.02, False),
        ("sqrt(q)", np.sqrt, 0.01, True),
    ],
    ids=["inverse", "log", "root"],
)
def test_the_bias_is_the_distance_of_a_polynomial(f, truth, bias, relative):
    est = tu.nearly_unbiased(f, MOMENTS, (5, 20), bias, relative=relative)
    q = np.linspace(5, 20, 31)
    p = np.polynomial.Polynomial.fit(q, est.expectation(q), 8)
    size = truth if relative else np.ones_like
    found = largest(lambda x: (p(x) - truth(x)) / size(x), 5.0, 20.0)
    assert 0.98 * est.bias_bound < found <= est.bias_bound * (1 + 1e-8)
    assert est.bias_bound <= bias
    assert est.bias(q) == pytest.approx(est.expectation(q) - truth(q), abs=1e-12)


def test_any_noise_with_these_moments_gives_that_expectation():
    est = tu.nearly_unbiased("1/q", MOMENTS, (5, 20), 0.05, relative=True)
    z = tu.Laplace(1).quantile((np.arange(200_000) + 0.5) / 200_000)
    for q in (5.0, 9.0, 20.0):
        values = est(q + z)
        assert values.mean() == pytest.approx(est.expectation(q), rel=1e-3)
        assert values.std() == pytest.approx(est.sd(q), rel=1e-2)
        variances = est.variance(q + z)
        assert variances.mean() == pytest.approx(est.sd(q) ** 2, rel=2e-2)


def test_without_a_bound_the_mean_squared_error_is_least():
    est = tu.nearly_unbiased("1/q", MOMENTS, (5, 20), prior="uniform")
    q = np.linspace(5, 20, 61)
    error = lambda e: float(np.mean(e.sd(q) ** 2 + e.bias(q) ** 2))  # noqa: E731
    least = error(est)
    for bias in (0.3, 0.1, 0.05):
        other = tu.nearly_unbiased("1/q", MOMENTS, (5, 20), bias, relative=True, prior="uniform")
        assert error(other) > least
    assert least < 0.9 * error(other)
    assert est.bias_bound == pytest.approx(np.abs(est.bias(q)).max(), rel=1e-2)


def test_student_t_by_its_moments_and_by_its_law():
    moments = tu.nearly_unbiased("log(q)", tu.StudentT(9), (5, 20))
    assert math.isfinite(moments.sd(7.0))
    law = tu.nearly_unbiased("log(q)", tu.StudentT(9), (5, 20), 0.01)
    assert law.bias_bound <= 0.01 < moments.bias_bound


@pytest.mark.parametrize("bias", [None, 0.3])
def test_a_degree_that_does_not_help_is_not_used(bias):
    """An odd function under symmetric noise has an odd estimator: degree 4 is as good as 3."""
    est = tu.nearly_unbiased("sin(q)", MOMENTS, (-2, 2), bias, prior="uniform")
    assert "(degree 3)" in est.explain()
    assert est(0.7) == pytest.approx(-est(-0.7))


def test_averages_of_a_function_with_zeros():
    """Least Σ bias² + variance/m over all lines a + b·t, by its normal equations: log(q), E Z² = 2.

    The estimator of a + b·t is a + b·(x − middle)/radius, of variance 2(b/radius)².
    """
    m = 30
    est = tu.nearly_unbiased("log(q)", tu.Moments([0, 2]), (1, 5), cells=m, prior="uniform")
    assert not est.relative
    q = np.linspace(1, 5, 20_001)
    t = (q - 3) / 2
    design = np.column_stack([np.ones_like(t), t])
    gram = design.T @ design / len(t) + np.diag([0, 2 / 4 / m])
    a, b = np.linalg.solve(gram, design.T @ np.log(q) / len(t))
    x = np.array([-1.0, 2.0, 6.0])
    np.testing.assert_allclose(est(x), a + b * (x - 3) / 2, rtol=1e-3)
    gap = np.abs(a + b * t - np.log(q)).max()
    assert est.bias_bound == pytest.approx(gap, rel=5e-3)


def test_what_moments_cannot_do():
    with pytest.raises(
        tu.TrueupError, match=r"(?s)least that was reached is 0\.\d+.*max_bias=0\.\d+ works"
    ) as e:
        tu.nearly_unbiased("1/q", MOMENTS, (1, 20), 0.001, relative=True)
    works = float(e.value.hint.split("max_bias=")[1].split(" ")[0])
    est = tu.nearly_unbiased("1/q", MOMENTS, (1, 20), works, relative=True)
    assert est.bias_bound <= works
    # |q·p(q) − 1| is least for q·p = 1 − T₅(t(q))/T₅(t(0)), p of degree 4, t: [1, 20] → [−1, 1]
    least = 1 / math.cosh(5 * math.acosh(21 / 19))
    assert least < works < 1.05 * least  # two digits
    with pytest.raises(tu.TrueupError, match="bounded on both sides"):
        tu.nearly_unbiased("1/q", MOMENTS, (1, None), 0.1)
    with pytest.raises(tu.TrueupError, match="two moments"):
        tu.nearly_unbiased("1/q", tu.Moments([0]), (1, 2), 0.1)
    with pytest.raises(tu.TrueupError, match="not smooth"):
        tu.nearly_unbiased("abs(q - 6)", MOMENTS, (5, 20), 0.1)
