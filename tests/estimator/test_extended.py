"""Formulas near conditions and away from them, and tables of small counts in their place."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.inverse.extended import first_that_holds
from trueup.kernels.blocks import evaluate

NOISE = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(3)}
S, N = sympy.symbols("s n", real=True)

SLANTED = [
    ("s/n", "0 <= s <= n, n >= 1", {}),
    ("s/n", "0 <= s <= n", {"empty": 0}),
    ("s/(n + 2)", "2 <= s <= 2*n + 1, n >= 3", {}),
    ("s/n", "s <= n, n >= 1", {}),
]


@pytest.mark.parametrize("what", ["value", "variance"])
def test_at_the_bound_away_from_the_condition_the_formula_is_the_plain_one(what: str) -> None:
    """With s = 0 and n from 2 on no point with s > n is read."""
    tied = tu.unbiased("s/n", NOISE, "0 <= s <= n, n >= 1")
    plain = tu.unbiased("s/n", NOISE, "s >= 0, n >= 1")
    (component,), (box,) = tied._inverse.components, plain._inverse.components
    found, expected = (getattr(c, what)((1, 0)) for c in (component, box))
    assert not found.has(sympy.Piecewise)
    n = np.arange(2.0, 50.0)
    assert evaluate(found, {N: n}) == pytest.approx(evaluate(expected, {N: n}), rel=1e-12)


def test_what_follows_a_case_that_always_holds_is_not_worked_out() -> None:
    def otherwise() -> sympy.Expr:
        raise AssertionError

    never, always = (S, sympy.false), (N, sympy.true)
    assert first_that_holds([never, always, (S, N > 0)], otherwise) == N
    found = first_that_holds([(S, N > 0), always, (S, N > 1)], otherwise)
    assert found.args == ((S, N > 0), (N, True))
    assert first_that_holds([never], lambda: N) == N
    assert first_that_holds([(S, N > 0)], lambda: N).args == ((S, N > 0), (N, True))
