"""Up to its limits a formula is right in plain doubles, and everyday formulas have wide ones."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.formula.grammar import parse
from trueup.formula.operations import OPERATIONS
from trueup.kernels.grid import Grid, columns
from trueup.kernels.limits import LEAST, Limits, Range, limits
from trueup.kernels.tape import lower, run

Q = sympy.Symbol("q", real=True)
ANYWHERE, POSITIVE = Range(), Range(1.0)
FORMULAS = {
    "1/q": POSITIVE,
    "1/q**3 + 8/q**5": POSITIVE,
    "q**2/(q**2 + 1)": ANYWHERE,
    "sqrt(q)*log(q)": POSITIVE,
    "q**1.5": POSITIVE,
    "(1 + q**2)**(-3)": ANYWHERE,
    "log(2 + q**4)/(1 + q**2)": ANYWHERE,
    "q/log(1 + exp(q))": POSITIVE,
    "1/(1 + exp(-q))": ANYWHERE,
    "exp(-q/50)": POSITIVE,
    "exp(q)/(exp(2*q) + 1)": ANYWHERE,
    "sqrt(1 + exp(4*q))*exp(-2*q)": ANYWHERE,
    "q*exp(-q**2) + 3": ANYWHERE,
    "1/q**2": ANYWHERE,
    "q**30": ANYWHERE,
    "sin(q) + q": ANYWHERE,
    "2**q": ANYWHERE,
    "1/exp(-q)": ANYWHERE,
    "log(exp(-q)/3 + exp(-3*q))": ANYWHERE,
}
POINTS = [0.0, *(s * m * 10.0**k for k in range(-320, 309) for m in (1.0, 7.3) for s in (1, -1))]
POINTS += [float(k) for k in range(-800, 801, 7)]


def plain(tape: Any, given: Limits, x: np.ndarray) -> np.ndarray:
    """Return a tape in NumPy's doubles, NaN beyond its limits."""

    def exp(a: Any) -> Any:
        return np.where((a if given.vanishing else np.abs(a)) <= given.exponent, np.exp(a), np.nan)

    ops = {name: row.ufunc for name, row in OPERATIONS.items()}
    ops |= {"const": lambda c: c, "truth": lambda c: c, "where": np.where, "exp": exp}
    with np.errstate(all="ignore"):
        (found,) = run(tape, [x], ops)
    inside = np.abs(x) <= given.inputs
    if 0 in given.tiny:
        inside &= (np.abs(x) >= LEAST) | (x == 0)
    return np.where(inside, found, np.nan)


@pytest.mark.parametrize("text", FORMULAS)
def test_within_the_limits_doubles_do(text: str) -> None:
    within = FORMULAS[text]
    f = parse(text)
    tape = lower([f], [Q])
    given = limits(tape, [within])
    x = np.array([p for p in POINTS if within.low <= p <= within.high])
    found = plain(tape, given, x)
    truth = sympy.lambdify(Q, f, "mpmath")
    known = np.isfinite(found)
    assert known.sum() > 10
    with mpmath.workdps(750):
        for value, got in zip(x[known], found[known], strict=True):
            right = truth(mpmath.mpf(value))
            assert abs(got - right) <= 1e-9 * abs(right) + mpmath.mpf("1e-100"), (value, got)


@pytest.mark.parametrize(
    "text",
    ["1/q", "1/q**2", "q**2", "sqrt(q)", "log(q + 1)", "q*log(q)", "q**1.5", "q/(q + 10)",
     "q**3 - 2*q", "abs(q - 5)", "max(q, 1)", "where(q > 0, 1/q, 0)", "1/max(q, 1)"],
)  # fmt: skip
def test_everyday_formulas_have_wide_limits(text: str) -> None:
    for noise in (tu.Laplace(2), tu.DiscreteLaplace(5)):
        try:
            est = tu.unbiased(text, noise, (1, None))
        except tu.NoUnbiasedEstimator:  # a kink
            continue
        for f in (est.formula, est.variance_formula):
            inside = f.args[-1][0] if isinstance(f, sympy.Piecewise) else f
            assert limits(lower([inside], [Q]), [POSITIVE]).inputs >= 1e12


def test_what_grows_fast_ends_early() -> None:
    assert limits(lower([Q**90], [Q]), [ANYWHERE]).inputs == 1000
    assert limits(lower([Q**400], [Q]), [ANYWHERE]).inputs == 0
    assert limits(lower([sympy.Integer(2) ** Q], [Q]), [ANYWHERE]).exponent == 690
    assert limits(lower([(1 + sympy.exp(Q)) ** 90], [Q]), [ANYWHERE]).exponent == 6.9


def test_what_divides_ends_near_zero_in_numbers_and_arrays() -> None:
    other = sympy.Symbol("p", real=True)
    tape = lower([other / Q**4], [other, Q])
    given = limits(tape, [ANYWHERE, ANYWHERE])
    assert given.tiny == {1}  # the other one may be near zero, too
    assert not limits(lower([1 / Q], [Q]), [POSITIVE]).tiny
    grid = Grid.of(other / Q**4, (other, Q))
    for q, known in ((LEAST, True), (0.9 * LEAST, False), (1e-200, False)):
        (array,) = columns(grid, None, [np.array([1e-9]), np.array([q])], ["value"])
        assert np.isfinite(array[0]) == math.isfinite(grid.number(1e-9, q)) == known
