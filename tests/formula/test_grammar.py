"""The parser against Python's own reading of the same text, and against its build."""

import mpmath
import pytest
import sympy
from hypothesis import given, settings

import depth
from formula.drawn import direct, points, texts, value
from trueup.errors import FormulaError
from trueup.formula import build
from trueup.formula.grammar import parse

q, s, n = sympy.symbols("q s n", real=True)


@settings(max_examples=depth.examples(600))
@given(texts, points)
def test_means_what_python_means(text, point):
    try:
        expr = parse(text)
    except FormulaError:
        return
    expected = direct(text, point)
    if expected is None or abs(expected) > 1e6:
        return
    found = value(expr, point)
    if found is not None:
        assert mpmath.almosteq(found, expected, 1e-9, 1e-9), text


EXACT = {
    "-q**2": -(q**2),
    "2**-1": sympy.Rational(1, 2),
    "2**3**2": sympy.Integer(512),
    "-2**2": sympy.Integer(-4),
    "(-2)**2": sympy.Integer(4),
    "q - s - n": q - s - n,
    "q/s/n": q / (s * n),
    "q/s*n": q * n / s,
    "+q - -s": q + s,
    "1/3": sympy.Rational(1, 3),
    "1e3": sympy.Integer(1000),
    "2.0": sympy.Integer(2),
    "0.1": sympy.Float(0.1),
    ".5*q*2.": q,
    "2.5e-1": sympy.Float(0.25),
    "q**0.5*q**0.5": q,
    "e + E": sympy.Symbol("E", real=True) + sympy.Symbol("e", real=True),
    "pi*q": sympy.pi * q,
    "`pi`*q": sympy.Symbol("pi", real=True) * q,
    "q − s · n × 2": q - 2 * s * n,
    "abs(-q)": sympy.Abs(q),
    "max(q, 0)": sympy.Max(q, 0),
    "min(q, 2, 1)": sympy.Min(q, 1),
    "sqrt(q)": sympy.sqrt(q),
    "exp(1)": sympy.E,
    "exp(log(q))": q,
    "where(1 < 2, q, s)": q,
    "where(1 == 2, q, s)": s,
    "where(q < 1, 1, where(q < 2, 2, 3))": sympy.Piecewise((1, q < 1), (2, q < 2), (3, True)),
    "where(not q < 1 and s == 0, q, 0)": sympy.Piecewise(
        (q, sympy.And(q >= 1, sympy.Eq(s, 0))), (0, True)
    ),
    "where((q < 1 or s > 2) and q != s, 1, 0)": sympy.Piecewise(
        (1, sympy.And(sympy.Or(q < 1, s > 2), sympy.Ne(q, s))), (0, True)
    ),
    "where(q ≤ 1, 1, 0)": sympy.Piecewise((1, q <= 1), (0, True)),
    " q\n+ 1\t": q + 1,
    "where(0 < q <= 1, 1, 0)": sympy.Piecewise((1, sympy.And(q > 0, q <= 1)), (0, True)),
    "lambda + class*None": sympy.Add(
        sympy.Symbol("lambda", real=True),
        sympy.Symbol("class", real=True) * sympy.Symbol("None", real=True),
    ),
    "0**0": sympy.Integer(1),
}


@pytest.mark.parametrize("text", EXACT)
def test_reads(text):
    assert parse(text) == EXACT[text]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("größe", "größe"),
        ("人口", "人口"),
        ("_x1", "_x1"),
        ("`pay roll (€)`", "pay roll (€)"),
        ("`a``b`", "a`b"),
        ("`1/0`", "1/0"),
        ("`where`", "where"),
        ("`and`", "and"),
        ("True", "True"),
    ],
)
def test_names(text, name):
    assert parse(text) == sympy.Symbol(name, real=True)


def test_every_symbol_is_real():
    assert all(symbol.is_real for symbol in parse("q + `a b`*exp(s)").free_symbols)


def test_text_seen_before_is_the_same_object():
    assert parse("q**3 + 12345") is parse("q**3 + 12345")


WRONG = {
    "q +": ("invalid syntax", 4, "missing"),
    "(q": ("'(' was never closed", 1, "missing"),
    "q//s": ("'q//s' is not a value", 1, "write *"),
    "q << s": ("'q << s' is not a value", 1, "write *"),
    "max(**q)": ("'max(**q)' is not a value", 1, "write *"),
    "max(q, *s)": ("'*s' is not a value", 8, "write *"),
    "(q, s)": ("'(q, s)' is not a value", 1, "write *"),
    "2 (q)": ("unknown function '2'", 1, "write *"),
    "q)": ("unmatched ')'", 2, "missing"),
    "2 q": ("did not expect 'q'", 3, "write *"),
    "2q": ("did not expect 'q'", 2, "write *"),
    "(q)(s)": ("unknown function 'q'", 1, "write *"),
    "q^2": ("cannot read '^'", 2, "write **"),
    "q = 1": ("cannot read '='", 3, "right-hand side"),
    "q.real": ("cannot read '.'", 2, "backticks"),
    "q²": ("'q²' is not a name", 1, "**"),
    "sqr(q)": ("unknown function 'sqr'", 1, "did you mean sqrt?"),
    "Max(q, 1)": ("unknown function 'Max'", 1, "did you mean max?"),
    "q(s)": ("unknown function 'q'", 1, "write * to multiply"),
    "exp": ("'exp' is a word of the grammar", 1, "backticks"),
    "exp()": ("exp cannot take 0 arguments", 1, "exp(a)"),
    "exp(q, s)": ("exp cannot take 2 arguments", 1, "exp(a)"),
    "max(q)": ("max cannot take 1 argument", 1, "max(a, b)"),
    "where(q < 1, 2)": ("where cannot take 2 arguments", 1, "where(condition, a, b)"),
    "where(q, 1, 2)": ("'q' is not a condition", 7, "compare it"),
    "q < 1": ("'q < 1' is not a value", 1, "where(condition, 1, 0)"),
    "1 + (q < 1)": ("'q < 1' is not a value", 6, "where(condition, 1, 0)"),
    "where(q and s, 1, 0)": ("'q' is not a condition", 7, "compare it"),
    "where(where(q < 1, 1, 2) < 2, 1, 0)": ("compares a where(...)", 7, "constants"),
    "1/0": ("'1/0' divides by zero", 1, "real"),
    "q/(s - s)": ("divides by zero", 1, "real"),
    "q + log(-1)": ("'log(-1)' is not a finite real number", 5, "finite, real"),
    "log(0)": ("'log(0)' is not a finite real number", 1, "finite"),
    "sqrt(-1)": ("is not a finite real number", 1, "finite"),
    "sqrt(-q**2 - 1 + 1)": ("is not a finite real number", 1, "finite"),
    "asin(2)": ("is not a finite real number", 1, "finite"),
    "exp(1000)": ("'exp(1000)' is not a finite real number", 1, "finite"),
    "tan(pi/2)": ("is not a finite real number", 1, "finite"),
    "(-8)**(1/3)": ("is not a finite real number", 1, "finite"),
    "1e300*1e300*q": ("is not a finite real number", 1, "finite"),
    "1e-300*1e-300*q": ("is not a finite real number", 1, "finite"),
    "9**9**9": ("has the exponent 3.8742e+08, beyond 100", 1, "up to 100"),
    "q**101": ("has the exponent 101, beyond 100", 1, "up to 100"),
    "0**q": ("is a power of 0 whose exponent is no number", 1, "constants"),
    "((x**50)**50)**50": ("'(x**50)**50' has degree 2500, beyond 100", 2, "degrees up to 100"),
    "`": ("cannot read '`'", 1, "backtick"),
    "``": ("cannot read '`'", 1, "backtick"),
    "` `": ("' ' is not a name", 1, "backticks"),
}


@pytest.mark.parametrize("text", WRONG)
def test_says_what_is_wrong_and_where(text):
    problem, place, hint = WRONG[text]
    with pytest.raises(FormulaError) as caught:
        parse(text)
    lines = str(caught.value).split("\n")
    assert problem in lines[0]
    assert lines[0].endswith(f"at character {place}")
    assert lines[1] == f"  {text}"
    assert lines[2] == " " * (place + 1) + "^"
    assert lines[3].startswith("Hint: ")
    assert hint in lines[3]


def test_points_into_a_long_text():
    text = "q + " * 30 + "bad! + " + "q + " * 30 + "q"
    with pytest.raises(FormulaError) as caught:
        parse(text)
    _, line, caret, _ = str(caught.value).split("\n")
    assert len(line) < 70
    assert line[caret.index("^")] == "!"


@pytest.mark.parametrize("given_instead", [None, 1, b"q", ["q"], q, float("nan")])
def test_only_text(given_instead):
    with pytest.raises(FormulaError, match="must be text"):
        parse(given_instead)


@pytest.mark.parametrize(
    ("at_most", "beyond"),
    [
        ("1" * build.DIGITS, "1" * (build.DIGITS + 1)),
        ("3**80", "3**85"),
        ("1e308", "1e309"),
        ("1e-307", "1e-308"),
        ("q**100", "q**100.5"),
        ("q**-100", "q**-101"),
        ("(q**50)**2", "(q**50)**2*q"),
        ("(" * build.DEPTH + "q" + ")" * build.DEPTH, "(" * 61 + "q" + ")" * 61),
        ("-" * build.DEPTH + "q", "-" * (build.DEPTH + 1) + "q"),
        ("sin(" * build.CALLS + "q" + ")" * build.CALLS, "sin(" * 13 + "q" + ")" * 13),
        ("+".join(["q"] * 200), "+".join(["q"] * 201)),
        ("q" + " " * (build.CHARACTERS - 1), "q" + " " * build.CHARACTERS),
        ("max(a,b,c,d,e,f,g,h)", "max(a,b,c,d,e,f,g,max(h,i))"),
        ("+".join(["max(q,1)"] * 12), "+".join(["max(q,1)"] * 13)),
        (
            "where(" + " or ".join(f"q > {k}" for k in range(16)) + ", 1, 0)",
            "where(" + " or ".join(f"q > {k}" for k in range(17)) + ", 1, 0)",
        ),
    ],
)
def test_limits(at_most, beyond):
    parse(at_most)
    with pytest.raises(FormulaError):
        parse(beyond)


def test_intricate_constants_become_floats():
    nested = "2"
    for k in range(1, 12):
        nested = f"sqrt({nested} + {k})"
    assert parse(nested).is_Float
    assert parse("sqrt(2)/pi + 1") == sympy.sqrt(2) / sympy.pi + 1


def test_a_constant_that_a_power_makes_in_one_case_is_refused_as_it_is_alone():
    """Written out it could not be read back: where(q < 0, q**2, (-1)**(1/3)) is refused too."""
    for text in ("where(q < 0, q**2, 0 - 1)**(1/3)", "where(q < 0, q**2, (0 - 1)**(1/3))"):
        with pytest.raises(FormulaError, match="not a finite real number"):
            parse(text)
