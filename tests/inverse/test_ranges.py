"""Ranges on boxes: never too small, not much too large, and sure only where f is continuous."""

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import depth
from formula.drawn import FUNCTIONS, NAMES, SYMBOLS, texts, value
from trueup.errors import FormulaError, TrueupError
from trueup.formula.grammar import parse
from trueup.formula.linear import conditions
from trueup.inverse.ranges import Walk

q, s = SYMBOLS["q"], SYMBOLS["s"]
inf = np.inf

_centres = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.25]) | st.floats(-20, 20)
_widths = st.sampled_from([0.0, 1e-12, 0.1, 1.0, 7.0, 60.0])
_cells = st.builds(lambda c, w, side: (c - w * side, c + w), _centres, _widths, st.booleans())
_boxes = st.fixed_dictionaries(dict.fromkeys(NAMES, _cells))
_places = st.fixed_dictionaries({name: st.floats(0, 1) for name in NAMES})


def arrays(boxes):
    ends = {name: np.array([box[name] for box in boxes]).T for name in NAMES}
    return {SYMBOLS[name]: (low, high) for name, (low, high) in ends.items()}


def inside(box, place):
    """Return a point of the box, ends included."""
    point = {name: low + place[name] * (high - low) for name, (low, high) in box.items()}
    return {name: min(max(x, box[name][0]), box[name][1]) for name, x in point.items()}


def on(expr, *cells):
    """Return the range of a univariate formula on cells, as pairs."""
    expr = parse(expr) if isinstance(expr, str) else expr
    low, high = (np.array(ends, float) for ends in zip(*cells, strict=True))
    found = Walk({q: (low, high)}).range(expr)
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


@settings(max_examples=depth.examples(500))
@given(texts, st.lists(_boxes, min_size=1, max_size=4), st.lists(_places, min_size=1, max_size=3))
def test_holds_every_value(text, boxes, places):
    try:
        expr = parse(text)
    except FormulaError:
        return
    low, high, sure = Walk(arrays(boxes)).range(expr)
    strict = Walk(arrays(boxes), analytic=True).range(expr).sure
    assert not np.isnan(low).any()
    assert not np.isnan(high).any()
    assert not (strict & ~sure).any()
    for index, box in enumerate(boxes):
        for place in places:
            found = value(expr, inside(box, place))
            if found is None:
                continue
            assert low[index] <= found <= high[index], text


@settings(max_examples=depth.examples(200))
@given(texts, _boxes, st.lists(_places, min_size=5, max_size=5))
def test_what_is_sure_has_values_that_hang_together(text, box, places):
    """Where f is sure to be continuous, small steps change it little: no jump, no pole, no gap."""
    try:
        expr = parse(text)
    except FormulaError:
        return
    found = Walk(arrays([box])).range(expr)
    if not found.sure[0] or found.high[0] - found.low[0] > 1e3:
        return
    for place in places:
        values = [value(expr, inside(box, {**place, "q": t})) for t in np.linspace(0, 1, 65)]
        known = [v for v in values if v is not None]
        # arguments beyond a million are left out by the oracle, nothing else is undefined
        assert len(known) in (0, len(values)) or max(map(abs, known)) < 1e7
        if len(known) == len(values):
            assert found.low[0] <= min(known)
            assert found.high[0] >= max(known)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=depth.examples(60))
@given(st.floats(-30, 30), st.floats(0, 3))
def test_one_function_is_sharp_to_the_last_places(name, low, width):
    (found,) = on(f"{name}(q)", (low, low + width))
    reference = [value(parse(f"{name}(q)"), {"q": x}) for x in np.linspace(low, low + width, 9)]
    reference = [float(x) for x in reference if x is not None]
    if len(reference) == 9 and np.isfinite(found).all():
        assert found[0] <= min(reference)
        assert found[1] >= max(reference)
        if name in ("exp", "log", "atan", "sinh", "asinh", "tanh", "sqrt"):
            slack = 1e-13 * max(1e-300, *map(abs, reference))
            assert found[0] >= min(reference) - slack
            assert found[1] <= max(reference) + slack


@settings(max_examples=depth.examples(100))
@given(st.floats(-5, 5), st.floats(0, 3))
def test_agrees_with_the_intervals_of_mpmath(low, width):
    expr = parse("(q**2 - 3*q + 1)/(q**2 + 1) + exp(-q/2)")
    (found,) = on(expr, (low, low + width))
    x = mpmath.iv.mpf([low, low + width])
    theirs = (x**2 - 3 * x + 1) / (x**2 + 1) + mpmath.iv.exp(-x / 2)
    assert found[0] == pytest.approx(float(theirs.a), rel=1e-12, abs=1e-12)
    assert found[1] == pytest.approx(float(theirs.b), rel=1e-12, abs=1e-12)


EXACT = {
    ("q**2", (-1, 2)): (0, 4),
    ("q**3", (-1, 2)): (-1, 8),
    ("q**-2", (-1, 2)): (0.25, inf),
    ("q**2 - 4*q + 4", (2, 2)): (0, 0),
    ("3*q - 1", (0.5, 2)): (0.5, 5),
    ("1/q", (-1, 2)): (-inf, inf),
    ("1/q", (0, 2)): (0.5, inf),
    ("1/q", (-4, 0)): (-inf, -0.25),
    ("abs(q)", (-3, 2)): (0, 3),
    ("max(q, 1)", (-3, 2)): (1, 2),
    ("min(q, 1)", (-3, 2)): (-3, 1),
    ("sqrt(q)", (-1, 4)): (0, 2),
    ("sin(q)", (0, 7)): (-1, 1),
    ("cos(q)", (-1e300, 1e300)): (-1, 1),
    ("cosh(q)", (-inf, inf)): (1, inf),
    ("tan(q)", (1, 2)): (-inf, inf),
    ("where(q < 1, 1, 2)", (0, 0.5)): (1, 1),
    ("where(q < 1, 1, 2)", (0, 1)): (1, 2),
    ("where(q < 1, 1, 2)", (1, 5)): (2, 2),
    ("where(q == 1, 5, 2)", (1, 1)): (5, 5),
    ("where(q != 1, 5, 2)", (1, 1)): (2, 2),
    ("where(q > 0 and q < 1, 1, 2)", (0.25, 0.5)): (1, 1),
    ("where(q < 0 or q > 1, 1, 2)", (0.25, 0.5)): (2, 2),
    ("q - q**2", (-inf, inf)): (-inf, inf),
    ("q*exp(-q)", (0, inf)): (0, inf),
    ("exp(q)", (-inf, inf)): (0, inf),
    ("0.5*q", (1, 3)): (0.5, 1.5),
    ("1e-200*q", (1e-200, 1e-150)): (0, 5e-324),
}


@pytest.mark.parametrize(("text", "cell"), EXACT)
def test_ranges(text, cell):
    (found,) = on(text, cell)
    assert found == pytest.approx(EXACT[text, cell], rel=1e-13)
    assert found[0] <= EXACT[text, cell][0]
    assert found[1] >= EXACT[text, cell][1]


def test_log_reaching_zero_is_bounded_above():
    (found,) = on("log(q)", (-1, 2))
    assert found == (-inf, pytest.approx(np.log(2)))


def test_constants_are_enclosed():
    for expr in (sympy.pi, sympy.sqrt(2), sympy.Rational(1, 3), sympy.exp(1), sympy.Float(0.1)):
        low, high, _ = Walk({}).range(expr)
        assert sympy.Float(float(low[0]), 40) <= expr.evalf(40) <= sympy.Float(float(high[0]), 40)
        assert high[0] - low[0] <= 4e-15


def test_powers_of_negative_numbers_may_be_anything():
    cells = {q: (np.array([1.0]), np.array([3.0]))}
    low, high, sure = Walk(cells, frozenset({q})).range(parse("(-2)**q"))
    assert (low[0], high[0], sure[0]) == (-inf, inf, False)


def test_functions_without_a_formula_may_be_anything():
    f = sympy.Function("f")
    assert on(f(q), (0, 1)) == [(-inf, inf)]


def test_a_missing_box_is_named():
    with pytest.raises(TrueupError, match="no box is given for s"):
        Walk({q: (np.zeros(1), np.ones(1))}).range(q + s)


CELLS = {q: (np.array([-1.0, 0.5, 0.0]), np.array([1.0, 2.0, 1.0]))}
SURE = {
    "1/q": [False, True, False],
    "log(q)": [False, True, False],
    "sqrt(q)": [False, True, True],
    "where(q < 0, 1, 2)": [False, True, True],
    "abs(q)": [True, True, True],
    "max(q, 0.25)": [True, True, True],
    "tan(q/2)": [True, True, True],
    "tan(2*q)": [False, False, False],
    "asin(q)": [True, False, True],
    "atanh(q)": [False, False, False],
    "q**0.3": [False, True, True],
    "q**-0.3": [False, True, False],
    "atan(1/q)": [False, True, False],
    "exp(where(q < 0, 1, 2))": [False, True, True],
    "where(q > 0 and log(q) < 9, 1, 2)": [False, True, False],
    "where(q < -2 and log(q) < 9, 1, 2)": [True, True, True],
}
ANALYTIC = {
    "sqrt(q)": [False, True, False],
    "abs(q)": [False, True, False],
    "max(q, 0.25)": [False, True, False],
    "asin(q)": [False, False, False],
    "q**3": [True, True, True],
    "where(q < 0, 1, 2)": [False, True, True],
}


def test_sure_cells_have_neither_poles_nor_jumps_nor_edges():
    walk = Walk(CELLS)
    assert {text: walk.range(parse(text)).sure.tolist() for text in SURE} == SURE


def test_analytic_cells_have_no_kinks_and_no_infinite_slopes_either():
    walk = Walk(CELLS, analytic=True)
    assert {text: walk.range(parse(text)).sure.tolist() for text in ANALYTIC} == ANALYTIC
    free = Walk(CELLS, frozenset({q}), analytic=True)
    assert free.range(parse("abs(q) + where(q < 0.1, 1, 2)")).sure.all()


def test_what_is_told_of_a_sum_is_used():
    cells = {q: (np.zeros(2), np.array([9.0, 0.5])), s: (np.zeros(2), np.array([9.0, 0.25]))}
    walk = Walk(cells)
    walk.tell(conditions("q + s >= 1")[1])
    assert walk.allowed.tolist() == [True, False]
    assert walk.range(1 / (q + s)).sure[0]


def test_many_cells_at_once_agree_with_one_at_a_time():
    expr = parse("sin(q)*s + where(q < s, q**2, 1/(q - 3)) + abs(s)**0.5")
    rng = np.random.default_rng(7)
    low = rng.uniform(-4, 4, (2, 50))
    high = low + rng.exponential(1, (2, 50))
    box = {q: (low[0], high[0]), s: (low[1], high[1])}
    together = np.array(Walk(box).range(expr)[:2])
    for k in range(50):
        one = {symbol: (a[k : k + 1], b[k : k + 1]) for symbol, (a, b) in box.items()}
        np.testing.assert_array_equal(together[:, k], np.ravel(Walk(one).range(expr)[:2]))
