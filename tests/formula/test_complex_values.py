"""Formulas at complex numbers against sympy's own digits, and what is not analytic."""

from __future__ import annotations

import mpmath
import pytest
import sympy

from trueup.formula.complex_values import NotAnalyticError, complex_values, real_value
from trueup.formula.operations import FUNCTIONS

Q = sympy.Symbol("q", real=True)
ANALYTIC = sorted(set(FUNCTIONS) - {"abs"})


@pytest.mark.parametrize("name", ANALYTIC)
def test_every_function_of_the_grammar_is_continued(name: str) -> None:
    f = FUNCTIONS[name].symbolic(Q / 3 + 1) + sympy.pi * Q ** sympy.Rational(5, 2)
    z = sympy.Rational(3, 4) + sympy.I / 5
    [value] = complex_values(f, Q, [mpmath.mpc("0.75", mpmath.mpf(1) / 5)])
    known = mpmath.mpmathify(f.xreplace({Q: z}).evalf(30))
    assert abs(value - known) <= 1e-15 * abs(known)  # 1/5 was given as a double


def test_what_cancels_is_computed_with_more_digits() -> None:
    f = (Q - sympy.sin(Q)) / Q**3
    value = real_value(f, Q, sympy.Rational(1, 10**60), 40)
    assert value is not None
    assert abs(value - sympy.Rational(1, 6)) < sympy.Rational(1, 10**39)


@pytest.mark.parametrize(
    "f",
    [sympy.Abs(Q), sympy.Max(Q, 1), 1 / (Q - 1), sympy.exp(sympy.exp(sympy.exp(sympy.exp(3 * Q))))],
    ids=["absolute value", "extremum", "pole", "too large"],
)
def test_what_has_no_value_is_not_analytic(f: sympy.Expr) -> None:
    with pytest.raises(NotAnalyticError):
        complex_values(f, Q, [mpmath.mpc(1)])
