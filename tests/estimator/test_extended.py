"""Formulas near conditions and away from them, and tables of small counts in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.inverse.extended import first_that_holds
from trueup.kernels.evaluate import evaluate

NOISE = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(3)}
S, N = sympy.symbols("s n", real=True)

SLANTED = [
    ("s/n", "0 <= s <= n, n >= 1", {}),
    ("s/n", "0 <= s <= n", {"empty": 0}),
    ("s/(n + 2)", "2 <= s <= 2*n + 1, n >= 3", {}),
    ("s/n", "s <= n, n >= 1", {}),
]


@pytest.mark.parametrize("what", ["value", "variance"])
@pytest.mark.parametrize(("f", "domain", "options"), SLANTED, ids=str)
def test_a_table_of_small_counts_has_the_values_of_the_formula(
    f: str, domain: str, options: dict[str, Any], what: str
) -> None:
    """Where there is a table, rows beyond it are left out; 40 is within it, 300 beyond."""
    est = tu.unbiased(f, NOISE, domain, **options)
    asked = est if what == "value" else est.variance
    (component,) = est._inverse.components
    lows = [float(cell.operator.low) for cell in component.cells]
    for region in component.regions():
        quick = component.quick(region, what)
        if quick is None:
            continue
        axes = [
            np.array([-2.0] if branch else [low + 1, low + 2, low + 5, low + 40, low + 300])
            for low, branch in zip(lows, region, strict=True)
        ]
        s, n = (axis.ravel() for axis in np.meshgrid(*axes))
        found, expected = evaluate(quick, {S: s, N: n}), asked(s=s, n=n)
        told = ~np.isnan(found)
        assert told[(s < 60) & (n < 60)].all()
        assert found[told] == pytest.approx(expected[told], rel=1e-12)
    tables = sum(component.quick(region, what) is not None for region in component.regions())
    assert tables == (0 if lows[0] == -np.inf else 3 if options else 2)


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
