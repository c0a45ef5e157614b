"""Whether an estimator exists: bounds of sums, integers near which formulas fail."""

from __future__ import annotations

import math

import pytest

import trueup as tu


def test_infinite_curvature_at_a_bound_needs_the_optimal_extension() -> None:
    est = tu.unbiased("b**1.75", tu.Laplace(1), (0, None))
    assert math.isfinite(est(-1.0))
    assert est.expectation(3.0) == pytest.approx(3**1.75, rel=1e-9)
    with pytest.raises(tu.NoUnbiasedEstimator, match="infinite curvature"):
        tu.unbiased("b**1.75", tu.Laplace(1), (0, None), extension=10)
    smooth = tu.unbiased("b**3", tu.Laplace(1), (0, None), extension=10)
    assert smooth.expectation(3.0) == pytest.approx(27, rel=1e-9)
    noise, domain = dict.fromkeys("ab", tu.Laplace(1)), dict.fromkeys("ab", (0, None))
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown to be smooth"):
        tu.unbiased("(a + b)**1.75", noise, domain)


@pytest.mark.parametrize("pole", [-20, -1, 0, 20, 80, 120])
def test_a_python_function_is_tried_within_twenty_of_zero_and_of_its_bounds(pole: int) -> None:
    def f(n: float) -> float:
        return 1 / (n - pole)

    domain = (None, 100) if pole < 50 else (100, None) if pole > 100 else (-1000, 100)
    with pytest.raises(tu.NoUnbiasedEstimator, match=f"not a finite number at n = {pole} "):
        tu.unbiased(f, {"n": tu.DiscreteLaplace(1)}, {"n": domain})


@pytest.mark.parametrize("function", ["cos", "exp"])
def test_cases_within_a_wave_are_no_constant(function: str) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match="not a sum of terms"):
        tu.unbiased(f"{function}(0.1*where(c <= 0, 1, 2))", tu.Gaussian(1))


def test_a_pole_is_seen_and_a_bound_close_to_it_is_refused() -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match="pole at 3"):
        tu.unbiased("1/(q - 3)", tu.Laplace(1), (0, None))
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown to be smooth near q = 3"):
        tu.unbiased("1/(q - 3)", tu.Laplace(1), (3.0000001, None))
