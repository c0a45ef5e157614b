"""Expectation, bias and standard deviation at a true value."""

from __future__ import annotations

import math

import pytest

import trueup as tu


@pytest.mark.parametrize("truth", [(math.nan, 3), (1, math.inf), (-math.inf, 3), (1, math.nan)])
@pytest.mark.parametrize("f", ["s/n", "s + n", "s/(n + s**2)"])
def test_a_true_value_that_is_no_number_has_no_law(f: str, truth: tuple[float, float]) -> None:
    est = tu.unbiased(f, dict.fromkeys("sn", tu.Laplace(1)), dict.fromkeys("sn", (1, None)))
    at = dict(zip("sn", truth, strict=True))
    assert all(math.isnan(asked(**at)) for asked in (est.expectation, est.bias, est.sd))
