"""The narwhals target: every operation against mpmath, and the refusals."""

import math

import mpmath
import narwhals as nw
import numpy as np
import pytest
import sympy

import trueup as tu
from extras import needs
from trueup.frames.expressions import expression
from trueup.kernels.tape import lower

pl = needs("polars")

X = sympy.Symbol("x", real=True)
SMALL = [1e-300, 1e-20, 1e-9, 1e-4, 0.01, 0.3, 0.5, 0.9, 0.999999]
WIDE = [*SMALL, 1.0, 1.0000001, 1.5, 4.0, 20.0, 300.0]
RANGES = {
    "exp": WIDE, "log": WIDE, "sin": SMALL, "cos": SMALL, "tan": SMALL, "sqrt": WIDE,
    "sinh": WIDE, "cosh": WIDE, "tanh": WIDE, "asinh": [*WIDE, 1e9, 1e200],
    "acosh": [1.0, 1.0000001, 1.01, 1.5, 4.0, 1e9, 1e200], "atanh": SMALL,
    "asin": [*SMALL, 1.0], "acos": [*SMALL, 1.0], "atan": [*WIDE, 1e9, 1e300],
}  # fmt: skip


def run(expr, x):
    frame = nw.from_native(pl.DataFrame({"x": np.asarray(x, float)}))
    made = expression(lower([expr], [X]), [nw.col("x")])
    return frame.select(made.alias("y"))["y"].to_list()


@pytest.mark.parametrize("name", RANGES)
def test_functions_keep_their_digits(name):
    x = RANGES[name]
    if name not in ("log", "sqrt", "acosh"):
        x = [*x, 0.0, *(-v for v in x)]
    got = run(getattr(sympy, name)(X), x)
    with mpmath.workdps(40):
        want = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x]
        for v, g, w in zip(x, got, want, strict=True):
            assert abs(g - w) <= 1e-15 * 8 * abs(w), (v, g, float(w))


@pytest.mark.parametrize(
    ("expr", "function"),
    [
        (sympy.Max(X, 2), lambda v: max(v, 2)),
        (sympy.Min(X, -X), lambda v: min(v, -v)),
        (sympy.Abs(X) ** sympy.Rational(5, 3), lambda v: abs(v) ** (5 / 3)),
        (sympy.sign(X), lambda v: (v > 0) - (v < 0)),
        (sympy.floor(X) + sympy.floor(-X / 3), lambda v: math.floor(v) + math.floor(-v / 3)),
        (X**7 / (1 + X**2), lambda v: v**7 / (1 + v**2)),
        (
            sympy.Piecewise((X, sympy.And(X > 1, X <= 3)), (-X, sympy.Or(X < -2, sympy.Eq(X, 0)))),
            lambda v: v if 1 < v <= 3 else -v if v < -2 or v == 0 else math.nan,
        ),
        (sympy.Piecewise((1, sympy.Ne(X, 2)), (0, True)), lambda v: float(v != 2)),
    ],
    ids=["max", "min", "power", "sign", "floor", "rational", "cases", "unequal"],
)
def test_operations(expr, function):
    x = [-3.0, -2.0, -0.5, 0.0, 0.7, 1.0, 2.0, 3.0, 5.0]
    assert np.allclose(run(expr, x), [function(v) for v in x], rtol=1e-14, equal_nan=True)


def test_python_functions_are_refused_by_name():
    def half(q):
        return q / 2

    est = tu.unbiased(half, tu.DiscreteLaplace(1), (0, 9))
    frame = pl.DataFrame({"q": [1, 2, 3]})
    with pytest.raises(tu.TrueupError, match=r"(?s)function half cannot run.*collect"):
        tu.debias(frame.lazy(), e=est)
    assert tu.debias(frame, e=est)["e"].to_list() == est(frame["q"].to_numpy()).tolist()


def test_long_tables_are_refused():
    long = {k: float(k % 7) for k in range(5000)}
    est = tu.unbiased(long, tu.DiscreteLaplace(1))
    with pytest.raises(tu.TrueupError, match="5000 entries is too long"):
        tu.debias(pl.LazyFrame({"q": [1]}), e=est)


def test_long_formulas_are_refused():
    expr = X
    for _ in range(20):
        expr = (1 + expr) ** 2
    with pytest.raises(tu.TrueupError, match="too long for an expression"):
        run(expr, [0.5])


def test_broken_numbers_are_null_where_nothing_can_be_raised():
    est = tu.unbiased("1/n", tu.DiscreteLaplace(1), (1, None))
    out = tu.debias(pl.LazyFrame({"n": [3.0, 3.5, float("nan")]}), e=est).collect()
    assert out["e"].to_list()[:2] == [est(3.0), None]
    assert math.isnan(out["e"][2])


def test_extensions_of_a_degree_are_refused():
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None), 5)
    frame = pl.DataFrame({"q": [4.0]}).lazy()
    with pytest.raises(tu.TrueupError, match="degree 5 cannot run inside an engine"):
        tu.debias(frame, y=est)


def test_a_number_that_is_added_reads_no_input():
    noise = {"s": tu.DiscreteLaplace(5), "n": tu.DiscreteLaplace(2)}
    growth = tu.unbiased("100*(s/n - 1)", noise, "s >= 0, n >= 1")
    frame = pl.DataFrame({"s": [20, 400], "n": [3, 90]})
    lazy = tu.debias(frame.lazy(), interval=0.95, growth=growth).collect()
    eager = tu.debias(frame, interval=0.95, growth=growth)
    for name in ("growth", "growth_stderr", "growth_low", "growth_high"):
        assert lazy[name].to_list() == pytest.approx(eager[name].to_list(), rel=1e-9)
