"""Derivatives written as polynomials in generators, against sympy's own at numbers."""

from __future__ import annotations

from itertools import islice

import pytest
import sympy

from trueup.inverse.high_derivatives import MOST_TERMS, derivatives

Q = sympy.Symbol("q", real=True)
C = sympy.Symbol("c", positive=True)
FORMULAS = [
    2**Q,
    3 ** (Q**2 / 5) * Q,
    C**Q + Q,
    Q**C,
    sympy.sqrt(1 + Q**2),
    sympy.log(2 + Q) / Q,
    sympy.atan(Q / 2),
    sympy.tanh(Q),
    sympy.sin(Q) * sympy.cosh(Q),
    1 / (C + Q),
    (Q + 3) / (Q**2 + 1),
]


@pytest.mark.parametrize("f", FORMULAS, ids=str)
def test_derivatives_are_those_of_the_formula(f: sympy.Expr) -> None:
    place = {Q: sympy.Rational(7, 3), C: sympy.Rational(5, 4)}
    found = list(islice(derivatives(f, Q), 5))
    assert len(found) == 5
    for k, derivative in enumerate(found):
        expected = f.diff(Q, k).evalf(30, subs=place)
        assert abs(derivative.evalf(30, subs=place) - expected) < 1e-20 * (1 + abs(expected))


def test_a_quotient_of_polynomials_has_short_derivatives_of_every_order() -> None:
    """1/(q·(q + 1)·(q + 2)) in partial fractions has (−1)ᵏ·k!·Σ cᵢ/(q + i)ᵏ⁺¹."""
    f = 1 / (Q * (Q + 1) * (Q + 2)) + 1 / (Q + 3) ** 2
    found = list(islice(derivatives(f, Q), 41))
    assert len(found) == 41
    at = sympy.Rational(3, 2)
    parts = sum(c / (at + i) ** 41 for i, c in enumerate((sympy.Rational(1, 2), -1, sympy.S.Half)))
    expected = sympy.factorial(40) * (parts + 41 / (at + 3) ** 42)
    assert found[40].xreplace({Q: at}) == expected


def test_derivatives_end_before_they_are_long() -> None:
    f = sympy.sin(Q) * sympy.exp(sympy.sqrt(1 + Q**2)) * sympy.log(Q + 2) / (Q + sympy.sqrt(Q))
    orders = list(islice(derivatives(f, Q), 60))
    assert 2 < len(orders) < 60
    assert all(len(sympy.Add.make_args(d)) <= MOST_TERMS for d in orders)
