"""Intervals cover f(q) as often as they say: exact sums over the noise of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import trueup as tu

LEFT_OUT = 1e-9  # of the probability, beyond the integers that are summed over
TRUTHS = (0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 30, 99, 100, 101)


def discrete_laplace(scale: float) -> tuple[Any, Any]:
    k = np.arange(-math.ceil(25 * scale), math.ceil(25 * scale) + 1.0)
    alpha = math.exp(-1 / scale)
    return k, (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)


def rounded_laplace(scale: float) -> tuple[Any, Any]:
    def cdf(x: Any) -> Any:
        return np.where(x < 0, np.exp(-abs(x) / scale) / 2, 1 - np.exp(-abs(x) / scale) / 2)

    k = np.arange(-math.ceil(25 * scale), math.ceil(25 * scale) + 1.0)
    return k, cdf(k + 0.5) - cdf(k - 0.5)


CASES: dict[str, tuple[Callable[[float], float], int]] = {
    "where(n >= 1, 1/n, 0)": (lambda n: 1 / n if n >= 1 else 0, 0),
    "abs(n - 3)": (lambda n: abs(n - 3), 0),
    "sqrt(n)": (math.sqrt, 0),
    "n*(n - 1)/2": (lambda n: n * (n - 1) / 2, 0),
    "where(n == 0, 1, 0)": (lambda n: n == 0, 0),
    "where(n >= 10, 1, 0)": (lambda n: n >= 10, 0),
    "where(n < 5, 0, n)": (lambda n: 0 if n < 5 else n, 0),
    "max(n - 10, 0)": (lambda n: max(n - 10, 0), 0),
    "1/max(n, 1)": (lambda n: 1 / max(n, 1), 0),
    "min(n, 100)": (lambda n: min(n, 100), 0),
    "log(n + 1)": (lambda n: math.log(n + 1), 0),
    "n*log(n)": (lambda n: n * math.log(n), 1),
    "1/n": (lambda n: 1 / n, 1),
    "(n - 1/2)**(-3)": (lambda n: (n - 0.5) ** -3, 0),
}


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (tu.DiscreteLaplace(2), discrete_laplace(2)),
        (tu.DiscreteLaplace(10), discrete_laplace(10)),
        (tu.RoundedLaplace(2), rounded_laplace(2)),
    ],
    ids=lambda value: repr(value) if isinstance(value, tu.Noise) else "",
)
@pytest.mark.parametrize("f", CASES)
def test_functions_of_a_count_are_covered_at_every_true_value(
    f: str, noise: tu.Noise, law: tuple[Any, Any]
) -> None:
    function, start = CASES[f]
    est = tu.unbiased(f, noise, (start, None))
    k, p = law
    for q in TRUTHS:
        if q < start:
            continue
        low, high = est.interval(q + k)
        assert (low <= high).all()  # so neither is NaN
        true = function(q)
        slack = 1e-12 * abs(true)
        assert p[(low <= true + slack) & (true - slack <= high)].sum() >= 0.95 - LEFT_OUT


REAL: dict[str, Callable[[float], float]] = {
    "q**2": lambda q: q * q,
    "q*(q - 1)/2": lambda q: q * (q - 1) / 2,
    "q**3 - 2*q": lambda q: q**3 - 2 * q,
    "exp(q/10)": lambda q: math.exp(q / 10),
}


@pytest.mark.parametrize("f", REAL)
@pytest.mark.parametrize("noise", [tu.Laplace(2), tu.Gaussian(3), tu.Staircase(1)], ids=repr)
def test_functions_of_a_real_number_are_covered(f: str, noise: tu.Noise) -> None:
    """Whatever noise of the middle 95 % is added, the interval holds f(q)."""
    est = tu.unbiased(f, noise)
    z = np.linspace(noise.quantile(0.025), noise.quantile(0.975), 101)[1:-1]
    for q in (-30.0, -1.3, 0.0, 0.4, 1.0, 8.0):
        low, high = est.interval(q + z)
        true = REAL[f](q)
        slack = 1e-12 * abs(true)
        assert ((low <= true + slack) & (true - slack <= high)).all()


def test_the_interval_of_a_square_is_the_image_of_that_of_the_number() -> None:
    """x ± b·ln(1/α) squared: from 0 on where it holds 0."""
    est = tu.unbiased("q**2", tu.Laplace(1))
    wide = math.log(20)
    assert est.interval_method == "projection"
    for x in (-9.0, 1.0, 7.0):
        ends = sorted([(x - wide) ** 2, (x + wide) ** 2])
        low = 0.0 if abs(x) < wide else ends[0]
        assert est.interval(x) == pytest.approx((low, ends[1]), rel=1e-6, abs=1e-6)


def test_a_python_function_is_read_at_all_integers_in_reach() -> None:
    noise = tu.DiscreteLaplace(2)
    by_values = tu.unbiased(lambda n: abs(n - 3), noise, (0, None))
    by_formula = tu.unbiased("abs(n - 3)", noise, (0, None))
    x = np.arange(-9.0, 20.0)
    assert np.array_equal(by_values.interval(x), by_formula.interval(x))


def test_a_python_function_of_real_numbers_has_no_interval() -> None:
    est = tu.unbiased(math.cosh, tu.Laplace(0.3), derivatives=(math.sinh, math.cosh))
    with pytest.raises(tu.TrueupError, match="only where it is called") as refusal:
        est.interval(1.0)
    assert "\nHint: " in str(refusal.value)


def test_bare_moments_leave_a_normal_approximation_that_says_so() -> None:
    est = tu.unbiased("q**2", tu.Moments([0, 2, 0, 24]))
    assert est.interval_method == "normal approximation"
    assert "normal approximation" in est.explain()
    low, high = est.interval(3.0)
    half = 1.959963984540054 * est.stderr(3.0)
    assert (low, high) == pytest.approx((est(3.0) - half, est(3.0) + half), rel=1e-12)
