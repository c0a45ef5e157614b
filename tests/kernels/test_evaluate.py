"""Rows that are computed again are those on which the range of doubles costs digits, no others."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.formula.grammar import parse
from trueup.kernels.evaluate import doubtful
from trueup.kernels.tape import lower

Q = sympy.Symbol("q", real=True)


@pytest.mark.parametrize("f", ["cos(sqrt(q))", "exp(q**(1/3))**0.1", "atan(q**1.5)**0.1"])
def test_the_root_of_0_costs_nothing(f: str) -> None:
    assert not doubtful(lower([parse(f)], (Q,)), [np.array([0.0, 1.0, 4.0])]).any()


@pytest.mark.parametrize("f", ["cos(sqrt(q**2.5)/q**1.25)", "asin(q**20.5)"])
def test_a_power_that_underflows_does(f: str) -> None:
    assert doubtful(lower([parse(f)], (Q,)), [np.array([1e-300, 0.5])]).tolist() == [True, False]


def test_a_row_does_not_depend_on_the_others() -> None:
    """Where another row is not a number, no digit of this one changes."""
    f = "where(n <= 1, exp((s - 1)**(1/3))**0.1, (n - 1)**3 - n)"
    est = tu.unbiased(f, dict.fromkeys("sn", tu.DiscreteLaplace(1)), "s >= n, n >= 1")
    s, n = (axis.ravel() for axis in np.meshgrid(np.arange(-5.0, 15.0), np.arange(-5.0, 15.0)))
    some = np.arange(s.size) % 3 > 0
    assert np.array_equal(est(s=np.where(some, s, np.nan), n=n)[some], est(s=s, n=n)[some])
