"""An exponent like 0.1 is a short fraction to whoever computes exactly, not p/2⁵⁵."""

from __future__ import annotations

import pytest
import sympy

import trueup as tu
from trueup.formula.substitution import decimal
from work import at_most

CALLS = 6_000_000
"""1,900,000 were counted at most; before, sympy multiplied out 2^3602879701896397."""

Q = sympy.Symbol("q", real=True)


def test_exponents_are_short_fractions_or_stay_and_factors_are_what_they_are() -> None:
    assert decimal(Q**0.1) == Q ** sympy.Rational(1, 10)
    assert decimal(Q ** (1 / 3)) == Q ** sympy.Rational(1, 3)
    assert decimal(0.1 * Q) == Q / 10
    odd = sympy.Float(0.12345678901234567)
    assert decimal(Q**odd) == Q**odd


@at_most(CALLS)
def test_a_tenth_root_in_an_extremum_is_refused_with_the_reason() -> None:
    formula = "min(cos(tanh(where(q <= 7, q, 0.5))), min(min(q, q*q), q**0.1))"
    with pytest.raises(tu.NoUnbiasedEstimator, match="jumps"):
        tu.unbiased(formula, tu.Laplace(1), (4, None))


@at_most(CALLS)
def test_an_interval_for_a_tenth_root_of_an_integer() -> None:
    est = tu.unbiased("max(1.5**0.5, q + q)**0.1", tu.DiscreteLaplace(2), tu.Integers(-5, None))
    low, high = est.interval(12)
    assert 1 <= low < est(12) < high < 2
