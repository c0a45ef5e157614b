"""Zeros: all of them, or an honest "there may be more"."""

import math

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.enclosure import zeros
from trueup.enclosure.roots import factors
from trueup.enclosure.search import slope
from trueup.formula.grammar import parse
from work import at_most

q = sympy.Symbol("q", real=True)
inf = math.inf
root = math.sqrt(2)

KNOWN = {
    ("q - 2", -inf, inf): [2],
    ("q", 0, inf): [0],
    ("3*q + 1", 0, inf): [],
    ("q**2 - 2", -inf, inf): [-root, root],
    ("q**2 - 2", 0, inf): [root],
    ("q**2 + 1e-9", -inf, inf): [],
    ("q**2 + q + 1", -inf, inf): [],
    ("q**3 - q**2", -inf, inf): [0, 1],
    ("q**2 - 4*q + 4", -inf, inf): [2],
    ("(q - 2)**2*(q + 1)", -inf, inf): [-1, 2],
    ("q**2 - 4.4*q + 4.84", -inf, inf): [2.2],
    ("q**3 - 6.3*q**2 + 13.23*q - 9.261", -inf, inf): [2.1],
    ("q**5 - q - 1", -inf, inf): [1.1673039782614187],
    ("q**10 - 1e30", -inf, inf): [-1000, 1000],
    ("1 - q**2", -1, 1): [-1, 1],
    ("q**2 - 4", 2, 2): [2],
    ("q**2 - 4", 3, 2): [],
    ("(q + 1)**100 - 2", 0, inf): [2**0.01 - 1],
    ("q**2 - 3e-5*q + 2e-10", -inf, inf): [1e-5, 2e-5],
    ("sin(q)", -1, 7): [0, math.pi, 2 * math.pi],
    ("cos(q) - 1", -10, 10): [-2 * math.pi, 0, 2 * math.pi],
    ("sin(q) - q/2", -inf, inf): [-1.8954942670339809, 0, 1.8954942670339809],
    ("q - cos(q)", -inf, inf): [0.7390851332151607],
    ("q - sin(q)", -10, 10): [0],
    ("exp(q) - 2", -inf, inf): [math.log(2)],
    ("exp(q) - q**2", -inf, inf): [-0.7034674224983917],
    ("exp(-q)", -inf, inf): [],
    ("1 + exp(-q)", -inf, inf): [],
    ("exp(-q) - exp(-2*q)", -inf, inf): [0],
    ("exp(-q**2) - 0.5", -inf, inf): [-math.sqrt(math.log(2)), math.sqrt(math.log(2))],
    ("1/(1 + exp(-q)) - 0.25", -inf, inf): [-math.log(3)],
    ("2**q - 8", -inf, inf): [3],
    ("q**q - 4", 0, inf): [2],
    ("log(q)", 0.1, inf): [1],
    ("log(q)", -inf, inf): [1],
    ("log(q)**2 - 1", 0, inf): [math.exp(-1), math.e],
    ("q*log(q) + 0.2", 0, inf): [0.07865836028685176, 0.7716909740176942],
    ("q*log(q) + 1", 0, 5): [],
    ("sqrt(q) - 2", 0, inf): [4],
    ("sqrt(q - 1)", 0, inf): [1],
    ("q**0.5 - q", 0, inf): [0, 1],
    ("asin(q) - 0.5", -inf, inf): [math.sin(0.5)],
    ("tanh(q) - 0.5", -inf, inf): [math.atanh(0.5)],
    ("cosh(q) - 2", -inf, inf): [-math.acosh(2), math.acosh(2)],
    ("cosh(q) - (q - 0.5)*q", -inf, inf): [-3.10871755097087, -1.03234328362119],
    ("sinh(q) - q**3", -inf, inf): [
        -6.13535635254737,
        -1.10236187659612,
        0,
        1.10236187659612,
        6.13535635254737,
    ],
    ("1/q", -1, 1): [],
    ("1/q - 1/q**2", -inf, inf): [1],
    ("tan(q)", -2, 2): [0],
    ("tan(q) - 1", -2, 2): [math.pi / 4],
    ("abs(q - 1)", -inf, inf): [1],
    ("abs(q - 0.3) - 0.1", -inf, inf): [0.2, 0.4],
    ("abs(q - 0.3) + 0.1", -inf, inf): [],
    ("max(q - 1, 1 - q)", -5, 5): [1],
    ("max(q - 1, 2 - q)", -5, 5): [],
    ("min(q, 1) - 0.5", -inf, inf): [0.5],
    ("where(q < 1, -1, 1)", -inf, inf): [],
    ("where(q < 1, q, q - 5)", -inf, inf): [0, 5],
    ("where(q == 0.3, 0, 1)", -inf, inf): [0.3],
    ("where(q > 0.3, 0.7/q, 0.3)", -inf, inf): [],
}


@pytest.mark.parametrize(("text", "low", "high"), KNOWN)
def test_known_zeros(text, low, high):
    found = zeros(parse(text), q, low, high)
    assert found.complete
    assert found.points == pytest.approx(KNOWN[text, low, high], rel=1e-12, abs=1e-12)


INCOMPLETE = {
    "every q": ("sin(q)**2 + cos(q)**2 - 1", 0, 10),
    "a half-line": ("max(q - 1, 0)", -5, 5),
    "the constant 0": ("q - q", -5, 5),
    "endlessly many": ("sin(q)", -inf, inf),
    "more than the limit": ("sin(q)", 0, 1000),
    "a limit point": ("sin(1/q)", -1, 1),
    "beyond double precision": ("tanh(q) - 1", -inf, inf),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_says_when_there_may_be_more(name):
    text, low, high = INCOMPLETE[name]
    with at_most(500_000):  # 168,000 for the limit point
        assert not zeros(parse(text), q, low, high).complete


def test_the_limit_is_kept():
    found = zeros(parse("sin(q)"), q, 0, 100, limit=5)
    assert len(found.points) <= 5
    assert not found.complete
    assert zeros(parse("sin(q)"), q, 0, 100).points == pytest.approx(np.pi * np.arange(32))


def test_of_too_many_those_nearest_to_0_are_kept():
    found = zeros(parse("sin(q)"), q, -1000, 100, limit=5)
    assert not found.complete
    assert found.points == pytest.approx(np.pi * np.arange(-2, 3))
    doubtful = zeros(parse("1 - ((q - 1)/q)**2"), q, -inf, inf)  # beyond 1e15 it may be 0
    assert not doubtful.complete
    assert 0.5 in doubtful.points


_roots = st.lists(st.integers(-40, 40).map(lambda k: k / 8), min_size=1, max_size=6)


@settings(max_examples=30)
@given(_roots, st.sampled_from([(-inf, inf), (-2.0, 3.0), (0.0, inf)]))
def test_polynomials_with_drawn_roots(roots, interval):
    """Exact coefficients: multiple roots are found whatever their order."""
    expr = sympy.prod(q - sympy.Rational(r) for r in roots).expand()
    found = zeros(expr, q, *interval)
    expected = sorted({r for r in roots if interval[0] <= r <= interval[1]})
    assert found.complete
    assert found.points == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=20)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=4, unique=True), st.integers(1, 3))
def test_float_polynomials_with_multiple_roots(roots, multiplicity):
    """Rounded coefficients: a multiple root is known to about eps**(1/m) only."""
    factors_ = [q - sympy.Float(r / 4 + 0.05) for r in roots]
    expr = sympy.Mul(*factors_).expand() ** multiplicity * sympy.exp(q) + sympy.S.Zero
    expr = sympy.expand(sympy.Mul(*factors_)) if multiplicity == 1 else expr
    found = zeros(expr, q, -8, 8)
    assert found.complete
    assert found.points == pytest.approx(sorted(r / 4 + 0.05 for r in roots), abs=1e-9)


@settings(max_examples=25)
@given(
    st.floats(-3, 3), st.floats(0.1, 3), st.sampled_from(["exp(q/3)", "atan(q)", "q**3", "abs(q)"])
)
def test_no_sign_change_is_missed(shift, scale, text):
    """Every sign change on a fine grid has a zero in its cell."""
    expr = sympy.sin(sympy.Float(scale) * q) * 2 + parse(text) - sympy.Float(shift)
    found = zeros(expr, q, -6, 6)
    assert found.complete
    x = np.linspace(-6, 6, 2001)
    y = sympy.lambdify(q, expr, "numpy")(x)
    for index in np.flatnonzero(y[:-1] * y[1:] < 0):
        assert any(x[index] - 1e-9 <= p <= x[index + 1] + 1e-9 for p in found.points)
    assert np.abs(sympy.lambdify(q, expr, "numpy")(np.array(found.points))).max(initial=0) < 1e-9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exp(q)*(q - 1)**2/q", ["q - 1"]),
        ("1/q - 1/q**2", ["q - 1"]),
        ("abs(q - 1)**0.5*sin(q)", ["q - 1", "sin(q)"]),
        ("q**2 - 2*q + 1", ["q - 1"]),
        ("2**q/(1 + q**2)", ["2**q"]),
    ],
)
def test_factors(text, expected):
    assert set(map(str, factors(parse(text), q))) == set(expected)


@pytest.mark.parametrize(
    "text",
    [
        "abs(q - 1)*q",
        "max(q, 2 - q)**2",
        "min(q, 1, q**2)",
        "where(q < 1, q**2, 2*q)",
        "abs(sin(q))",
    ],
)
def test_slopes_agree_with_differences(text):
    expr = parse(text)
    f, g = (sympy.lambdify(q, e, "math") for e in (expr, slope(expr, q)))
    for x in (-2.3, -0.4, 0.35, 0.9, 1.7, 3.1):
        assert g(x) == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, abs=1e-5)


@pytest.mark.parametrize("text", ["q - 1.5", "q**2 - 3", "exp(q) - 3", "log(q) - 1", "2 + q**2"])
def test_simple_formulas_take_little_work(text):
    with at_most(45_000):  # 14,000 for the parabola
        zeros(parse(text), q, 0.1, inf)
