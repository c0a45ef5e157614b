"""Text and expression are two forms of the same thing."""

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup as tu
from formula.drawn import texts
from trueup.errors import FormulaError
from trueup.formula.grammar import parse
from trueup.formula.text import text

q, s, n = sympy.symbols("q s n", real=True)


@settings(max_examples=600)
@given(texts)
def test_reads_back(given_text):
    try:
        expr = parse(given_text)
    except FormulaError:
        return
    assert parse(text(expr)) == expr, text(expr)


WRITTEN = {
    q / 3: "q/3",
    -q / 3: "-q/3",
    1 / (3 * (q + 1)): "1/(3*q + 3)",
    s * (q + 1) / 3: "s*(q + 1)/3",
    sympy.Mul(-1, q + 1, 1 / s): "-(q + 1)/s",
    n - (q + 1) / s: "n - (q + 1)/s",
    sympy.Mul(-2, q + 1, 1 / s, n**-2): "-2*(q + 1)/n**2/s",
    q**-2: "1/q**2",
    1 / sympy.sqrt(q): "1/sqrt(q)",
    q ** sympy.Rational(1, 3): "q**(1/3)",
    (-2) ** q: "(-2)**q",
    2**-q: "2**(-q)",
    sympy.Rational(-1, 3): "-1/3",
    sympy.Float(0.1) * q: "0.1*q",
    sympy.E * q: "exp(1)*q",
    sympy.pi * q: "pi*q",
    sympy.Max(q, sympy.Abs(s)): "max(q, abs(s))",
    sympy.Symbol("pay roll", real=True): "`pay roll`",
    sympy.Symbol("a`b", real=True): "`a``b`",
    sympy.Symbol("max", real=True): "`max`",
    sympy.Piecewise((1, q < 1), (2, sympy.Or(q > 3, sympy.And(s < 1, n < 1))), (3, True)): (
        "where(q < 1, 1, where(q > 3 or n < 1 and s < 1, 2, 3))"
    ),
}


@pytest.mark.parametrize("expr", WRITTEN, ids=list(WRITTEN.values()))
def test_writes(expr):
    assert text(expr) == WRITTEN[expr]


@pytest.mark.parametrize("given_text", ["7**40", "q/7**40", "(1/7**20 + q)**2", "q**50*q**49/s"])
def test_long_numbers_and_high_powers_read_back(given_text):
    expr = parse(given_text)
    assert parse(text(expr)) == expr


@given(st.floats(1e-290, 1e290))
def test_floats_read_back_bit_by_bit(number):
    expr = sympy.Float(number) * q
    if not number.is_integer():
        assert parse(text(expr)) == expr


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip))
def test_any_name_reads_back(name):
    symbol = sympy.Symbol(name, real=True)
    assert parse(text(symbol)) == symbol


def test_what_the_grammar_lacks_is_still_written():
    f = sympy.Function("f")
    assert text(f(q) + 1) == "f(q) + 1"
    assert text(sympy.Heaviside(q)) == "Heaviside(q)"


@pytest.mark.parametrize(
    "names",
    [
        ("a", "b", "a·b"),  # the dot between is read as a sign, though Python takes it for a letter
        ("की", "मात्रा"),
        ("จำนวน",),
        ("தொகை",),
        ("e\u0301te\u0301",),
        ("℮", "a\u0301·b", "x²", "where"),
    ],
)
def test_names_of_any_script_read_back(names: tuple[str, ...]) -> None:
    expr = sympy.Add(*(k * sympy.Symbol(name, real=True) for k, name in enumerate(names, 1)))
    assert parse(text(expr)) == expr
    est = tu.unbiased(expr, dict.fromkeys(names, tu.Laplace(1)), {names[0]: (0, None)})
    again = tu.Estimator.from_json(est.to_json())
    assert again.estimand == expr
    assert again.domain == est.domain
