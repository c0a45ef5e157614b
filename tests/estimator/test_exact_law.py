"""Expectation, bias and standard deviation at a true value."""

from __future__ import annotations

import math

import pytest

import oracle
import trueup as tu


@pytest.mark.parametrize("truth", [(math.nan, 3), (1, math.inf), (-math.inf, 3), (1, math.nan)])
@pytest.mark.parametrize("f", ["s/n", "s + n", "s/(n + s**2)"])
def test_a_true_value_that_is_no_number_has_no_law(f: str, truth: tuple[float, float]) -> None:
    est = tu.unbiased(f, dict.fromkeys("sn", tu.Laplace(1)), dict.fromkeys("sn", (1, None)))
    at = dict(zip("sn", truth, strict=True))
    assert all(math.isnan(asked(**at)) for asked in (est.expectation, est.bias, est.sd))


@pytest.mark.parametrize(
    "f",
    [
        "where(a != 1, a, where(c <= 2, (c - 2)**2, 0))",
        "where(a == 1, max(c - 2, 0)**2/(1 + c**2), a*c)",
    ],
)
@pytest.mark.parametrize(("a", "c"), [(1, 7.0), (0, 3.9), (-3, -20.0)])
def test_what_breaks_at_one_whole_value_of_another_statistic(f: str, a: int, c: float) -> None:
    """Along c the curvature jumps at 2 if a is 1, and nowhere otherwise."""
    noise = {"a": tu.DiscreteLaplace(1), "c": tu.Laplace(10)}
    est = tu.unbiased(f, noise, {"c": (None, 7)})
    whole = oracle.Axis(oracle.discrete_laplace(1), a)
    line = oracle.Axis(oracle.laplace(10), c, (2.0, 7.0))
    mean, variance = oracle.moments(lambda a, c: est(a=a, c=c), whole, line)
    assert est.expectation(a=a, c=c) == pytest.approx(mean, abs=1e-9)
    assert est.sd(a=a, c=c) == pytest.approx(math.sqrt(variance), rel=1e-9)
