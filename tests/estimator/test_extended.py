"""Formulas near conditions and away from them."""

from __future__ import annotations

import numpy as np
import pytest

import trueup as tu

NOISE = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(3)}


@pytest.mark.parametrize("what", ["__call__", "variance"])
def test_at_the_bound_away_from_the_condition_the_formula_is_the_plain_one(what: str) -> None:
    """With s = 0 and n from 2 on no point with s > n is read."""
    tied = tu.unbiased("s/n", NOISE, "0 <= s <= n, n >= 1")
    plain = tu.unbiased("s/n", NOISE, "s >= 0, n >= 1")
    n = np.arange(2.0, 50.0)
    found, expected = (getattr(est, what)(s=np.zeros(48), n=n) for est in (tied, plain))
    assert found == pytest.approx(expected, rel=1e-12)
