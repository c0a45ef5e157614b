"""Numbers and arrays run the same tape: both must agree with mpmath on every operation."""

import math
import operator
import weakref
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import TrueupError
from trueup.kernels import tape
from trueup.kernels.blocks import NUMPY, clenshaw, evaluate
from trueup.kernels.compiled import function

x, y = sympy.symbols("x y", real=True)

UNARY = [
    sympy.exp, sympy.sin, sympy.cos, sympy.tan, sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh,
    sympy.asinh, sympy.Abs, lambda e: sympy.log(e**2 + 1), lambda e: sympy.sqrt(e**2 + 1),
    lambda e: sympy.asin(sympy.sin(e) / 2), lambda e: sympy.acos(sympy.cos(e) / 2),
    lambda e: sympy.acosh(e**2 + 1), lambda e: sympy.atanh(sympy.tanh(e) / 2),
    lambda e: 1 / (e**2 + 1), lambda e: (e**2 + 1) ** sympy.Rational(1, 3), lambda e: e**5,
    sympy.sign,
]  # fmt: skip
BINARY = [
    sympy.Add, sympy.Mul, lambda a, b: a - b, lambda a, b: a / (b**2 + 1), sympy.Max, sympy.Min,
    lambda a, b: sympy.Piecewise((a, a < b), (2 * b, sympy.And(a > 1, b > 1)), (a * b, True)),
    lambda a, b: sympy.Piecewise((a, sympy.Or(a >= b, sympy.Not(b <= 0))), (b, True)),
    lambda a, b: sympy.Piecewise((a, sympy.Ne(a, b)), (1, True)),
]  # fmt: skip

expressions = st.recursive(
    st.sampled_from([x, y, sympy.Integer(2), sympy.Rational(1, 3), sympy.Float(0.7)]),
    lambda inner: st.one_of(
        st.builds(lambda f, e: f(e), st.sampled_from(UNARY), inner),
        st.builds(lambda f, a, b: f(a, b), st.sampled_from(BINARY), inner, inner),
    ),
    max_leaves=6,
)


values = st.floats(-3, 3).filter(lambda v: not 0 < abs(v) < 1e-60)  # whose squares are doubles


@given(expressions, values, values)
def test_scalar_and_array_agree_with_sympy(expr, a, b):
    lowered = tape.lower([expr], (x, y))
    with np.errstate(all="ignore"):
        out = np.broadcast_to(tape.run(lowered, [np.full(3, a), np.full(3, b)], NUMPY)[0], 3)
    exact = expr.subs({x: sympy.Float(a, 40), y: sympy.Float(b, 40)}).evalf(30)
    if not (exact.is_real and exact.is_finite and abs(exact) < 1e200):
        return
    size = sum(abs(float(t.subs({x: a, y: b}))) for t in sympy.Add.make_args(expr)) + 1
    assert np.allclose(out, float(exact), rtol=1e-9, atol=1e-9 * size)
    assert function(lowered)(a, b) == pytest.approx(out[0], rel=1e-12, abs=1e-12 * size)


def laguerre(n, t):
    """Lag_n(t) from its definition, in fractions."""
    return sum(
        Fraction((-1) ** k * math.comb(n, k), math.factorial(k)) * t**k for k in range(n + 1)
    )


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=12), st.floats(0, 30))
def test_clenshaw_sums_laguerre_series(coefficients, t):
    exact = float(sum(Fraction(c) * laguerre(n, Fraction(t)) for n, c in enumerate(coefficients)))
    size = float(
        sum(abs(Fraction(c)) * laguerre(n, -Fraction(t)) for n, c in enumerate(coefficients))
    )
    assert abs(clenshaw(coefficients, t) - exact) <= 1e-14 * size + 1e-300


def test_common_subexpressions_share_a_register():
    lowered = tape.lower([sympy.exp(x) + 1 / sympy.exp(x) ** 2 + sympy.exp(x) * y], (x, y))
    assert sum(node.op == "exp" for node in lowered.steps) <= 2


def test_what_is_read_no_more_is_let_go():
    lowered = tape.lower([sum(sympy.sin(k * x) for k in range(1, 30))], (x,))
    alive = weakref.WeakSet()

    def kept(function):
        def made(*args):
            value = Value(function(*(a.x if isinstance(a, Value) else a for a in args)))
            alive.add(value)
            assert len(alive) < 35, "29 constants and a few values"
            return value

        return made

    (found,) = tape.run(lowered, [Value(0.5)], {op: kept(f) for op, f in NUMPY.items()})
    assert found.x == pytest.approx(sum(math.sin(k / 2) for k in range(1, 30)))


class Value:
    """A number that can be missed."""

    def __init__(self, x):
        self.x = x


def test_a_formula_that_is_too_costly_is_refused(monkeypatch):
    monkeypatch.setattr(tape, "MAX_OPERATIONS", 10)
    with pytest.raises(TrueupError, match="more than 10 operations"):
        tape.lower([sum(sympy.sin(k * x) for k in range(1, 30))], (x,))


def test_constants_are_correctly_rounded():
    assert tape.as_float(sympy.exp(sympy.Rational(-1, 3))) == math.exp(-1 / 3)
    assert tape.as_float(1 / sympy.sinh(sympy.Rational(1, 10**8)) ** 2) == 1e16


@given(st.floats(-1e9, 1e9))
def test_floor(a):
    lowered = tape.lower([3 * sympy.floor(x) - x], (x,))
    (out,) = tape.run(lowered, [np.full(2, a)], NUMPY)
    assert out[0] == out[1] == function(lowered)(a) == 3.0 * math.floor(a) - a


def test_a_tape_has_several_outputs_that_share_their_steps():
    lowered = tape.lower([sympy.exp(x) + y, 2 * sympy.exp(x)], (x, y))
    assert sum(step.op == "exp" for step in lowered.steps) == 1
    ops = {"const": float, "exp": math.exp, "add": operator.add, "mul": operator.mul}
    assert tape.run(lowered, [0.0, 5.0], ops) == [6.0, 2.0]


def test_an_overflow_on_the_way_is_no_infinity_of_the_result():
    """log(1 + e^800) is 800; that it is infinite is no answer."""
    points = np.array([-800.0, 3.0, 800.0])
    found = evaluate(x / sympy.log(2 + sympy.exp(x)), {x: points})
    assert found[:2] == pytest.approx([-800 / math.log(2), 3 / math.log(2 + math.exp(3))])
    assert math.isnan(found[2])
    assert evaluate(sympy.log(x), {x: np.array([math.inf])}) == [math.inf]
