"""Expressions from the user's own sympy: the same limits, the same result."""

import pytest
import sympy
from hypothesis import given

from formula.drawn import texts
from trueup.errors import FormulaError
from trueup.formula.grammar import parse
from trueup.formula.source import admit
from work import at_most

q, s = sympy.symbols("q s", real=True)
x = sympy.Symbol("x")

CALLS = 60_000
"""6,100 were counted at most."""


@given(texts)
def test_what_parses_is_admitted_unchanged(text):
    try:
        expr = parse(text)
    except FormulaError:
        return
    assert admit(expr) == expr


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (sympy.Symbol("q") ** 2, q**2),
        (sympy.Symbol("q", positive=True) + sympy.Symbol("s", integer=True), q + s),
        (sympy.E**x + sympy.exp(1), sympy.exp(sympy.Symbol("x", real=True)) + sympy.E),
        (sympy.Float(2.0) * q, 2 * q),
        (sympy.Max(q, s, 1), sympy.Max(q, s, 1)),
        (sympy.Piecewise((q, q < 1), (s, True)), sympy.Piecewise((q, q < 1), (s, True))),
        (sympy.sqrt(sympy.Symbol("q") ** 2), sympy.Abs(q)),
    ],
)
def test_admitted(expr, expected):
    assert admit(expr) == expected


@pytest.mark.parametrize(
    ("expr", "named"),
    [
        (sympy.gamma(q), "gamma(q)"),
        (sympy.erf(q) + 1, "erf(q)"),
        (sympy.sign(q), "sign(q)"),
        (sympy.Heaviside(q), "Heaviside(q)"),
        (sympy.Function("f")(q), "f(q)"),
        (sympy.I * q, "I"),
        (sympy.oo, "oo"),
        (sympy.nan, "nan"),
        (sympy.zoo, "zoo"),
        (sympy.Integral(q, (q, 0, 1)), "Integral"),
        (sympy.Derivative(sympy.Function("f")(q), q), "Derivative"),
        (sympy.Sum(q, (q, 0, 10)), "Sum"),
        (sympy.Symbol("A", commutative=False), "not real"),
        (sympy.Symbol("z", imaginary=True), "not real"),
        (sympy.Piecewise((q, q < 1)), "no value where"),
        (q**101, "exponent 101"),
        (sympy.Pow(sympy.Pow(q + 1, 100), 3, evaluate=False), "degree 300"),
        (sympy.asin(2), "asin(2)"),
        (sympy.sqrt(-1 - q**2) * 0 + sympy.sqrt(-2), "I"),
        (q < 1, "must be a sympy expression"),
        (sympy.Matrix([q]), "must be a sympy expression"),
        (sympy.Float("1e400") * q, "finite"),
        (sympy.Integer(10) ** 500, "digits"),
        (sum(sympy.Symbol(f"a{k}") for k in range(500)), "too large"),
    ],
    ids=lambda given_value: str(given_value)[:30],
)
def test_refused_by_name(expr, named):
    with at_most(CALLS), pytest.raises(FormulaError) as caught:
        admit(expr)
    assert named in str(caught.value)
    assert "\nHint: " in str(caught.value)


def test_a_shared_tree_of_huge_size_is_refused_at_once():
    expr = q
    for k in range(40):
        expr = sympy.sin(expr) + sympy.cos(expr) * (k + 1)
    with at_most(CALLS), pytest.raises(FormulaError):
        admit(expr)
