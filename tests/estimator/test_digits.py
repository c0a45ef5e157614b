"""Digits where doubles are short of them: wide integer noise, overflow, small kinks, 0/0."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import depth
import trueup as tu


@pytest.mark.parametrize("b", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("times", [3, 10, 100])
def test_wide_integer_noise_keeps_its_digits(b: float, times: int) -> None:
    est = tu.unbiased("1/n", tu.DiscreteLaplace(b), (1, None))
    with mpmath.workdps(60):
        n = mpmath.mpf(times * b)
        lam = 1 / (4 * mpmath.sinh(1 / (2 * mpmath.mpf(b))) ** 2)
        up, down = 1 / (n + 1) - 1 / n, 1 / (n - 1) - 1 / n
        value = 1 / n - lam * (up + down)
        variance = lam * (up**2 + down**2) + lam**2 * (up + down) ** 2
        x = float(n)
        assert abs(est(x) / value - 1) < 1e-9
        assert abs(est.variance(x) / variance - 1) < 1e-9


@pytest.mark.parametrize("f", ["1/n", "log(n)"])
def test_integer_noise_too_wide_for_second_differences_is_refused(f: str) -> None:
    with pytest.raises(tu.TrueupError, match="too wide"):
        tu.unbiased(f, tu.DiscreteLaplace(1001), (1, None))


@pytest.mark.parametrize("x", [-200.0, -40.0, 0.3, 40.0, 200.0])
def test_small_and_large_exponentials(x: float) -> None:
    est = tu.unbiased("1/(1 + exp(-q))", tu.Laplace(2))
    with mpmath.workdps(40):
        s = 1 / (1 + mpmath.exp(-mpmath.mpf(x)))
        exact = float(s - 4 * s * (1 - s) * (1 - 2 * s))
    assert est(x) == pytest.approx(exact, rel=1e-12, abs=1e-300)
    assert est(np.array([x, 1.0]))[0] == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        ("abs(q)/1e10", "kink at 0"),
        ("where(q > 0, 1e-10, 0)", "jump at 0"),
        ("1e-60/q", "pole at 0"),
    ],
)
def test_small_is_not_smooth(f: str, reason: str) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match=reason):
        tu.unbiased(f, tu.Laplace(0.2))


@pytest.mark.parametrize(
    ("f", "domain"),
    [
        ("1/(a - b)", {"a": (1, None), "b": (500, None)}),
        ("log(a - b)", {"a": (1000, None), "b": (1, None)}),
    ],
)
def test_poles_far_from_the_bounds_are_found(f: str, domain: dict[str, tuple[int, None]]) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator):
        tu.unbiased(f, {"a": tu.DiscreteLaplace(1), "b": tu.DiscreteLaplace(1)}, domain)


def test_a_jump_spoils_the_exact_interval() -> None:
    est = tu.unbiased("where(q > 5, q**2 - 1000, q**2)", tu.DiscreteLaplace(3), (0, None))
    assert est.interval_method == "projection"
    assert tu.unbiased("q", tu.Laplace(1)).interval_method == "exact"
    assert tu.unbiased("q/(1 + q)", tu.Laplace(1), (0, None)).interval_method == "exact"


def test_a_common_factor_is_cancelled_and_other_zeros_over_zero_are_refused() -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown to be smooth near q = 0"):
        tu.unbiased("(exp(q) - 1)/q", tu.Laplace(0.2))
    assert str(tu.unbiased("(q**2 - 1)/(q - 1)", tu.Laplace(1)).formula) == "q + 1"


def test_products_of_integer_statistics() -> None:
    noise = {"n": tu.DiscreteLaplace(0.5), "m": tu.DiscreteLaplace(0.5)}
    est = tu.unbiased("1/(n*m)", noise, {"n": (1, None), "m": (1, None)})
    one = tu.unbiased("1/n", noise["n"], (1, None))
    assert est(n=3, m=5) == pytest.approx(one(3.0) * one(5.0), rel=1e-13)


MOVED = {
    "(q - 1000)**6": "q**6",
    "((q - 1000)**2)**3": "q**6",
    "q**2 - 2000*q + 1000001": "q**2 + 1",
    "exp(q/5)*(q - 1000)**4": "exp(q/5)*q**4*exp(200)",
    "(q - 1000)**2 + (q - 1000)**3": "q**2 + q**3",
}
NOISES = [tu.Gaussian(1), tu.DiscreteGaussian(2), tu.Laplace(1), tu.Mass({0: 0.7, 1: 0.3})]


@pytest.mark.parametrize(("moved", "noise"), depth.crossed([*MOVED], NOISES), ids=str)
def test_a_formula_far_from_zero_is_as_exact_as_near(moved: str, noise: tu.Noise) -> None:
    formula = MOVED[moved]
    near, far = tu.unbiased(formula, noise), tu.unbiased(moved, noise)
    assert far(1003.0) == pytest.approx(near(3.0), rel=1e-9)
    assert far.variance(1003.0) == pytest.approx(near.variance(3.0), rel=1e-9)
    assert far.sd(1003.0) == pytest.approx(near.sd(3.0), rel=1e-9)


def test_several_statistics_far_from_zero() -> None:
    noise = {"s": tu.Gaussian(2), "q": tu.Gaussian(1)}
    near, far = tu.unbiased("s*q**4", noise), tu.unbiased("s*(q - 1000)**4", noise)
    assert far(s=1.0, q=1003.0) == pytest.approx(near(s=1.0, q=3.0), rel=1e-9)
    assert far.sd(s=1.0, q=1003.0) == pytest.approx(near.sd(s=1.0, q=3.0), rel=1e-9)


@pytest.mark.parametrize("q", [1.524572352371616, 1.5, 0.7])
def test_a_step_that_is_narrow_beside_the_noise_is_not_missed(q: float) -> None:
    """Two rules with wide panels agree to the last digit, and both pass over the step at ½."""
    est = tu.unbiased("tanh(50*(q - 0.5))", tu.Laplace(1.7))
    assert est.expectation(q) == pytest.approx(np.tanh(50 * (q - 0.5)), abs=1e-9)
