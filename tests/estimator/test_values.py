"""What goes in and what comes out: numbers, arrays, NaN, text forms, intervals."""

from __future__ import annotations

import functools
import json
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import sympy

import trueup as tu

NAN = math.nan
TWO = {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(2)}

LINE: dict[str, Callable[[], tu.Estimator]] = {
    "reciprocal": lambda: tu.unbiased("1/q", tu.Laplace(2), (1, None)),
    "identity": lambda: tu.unbiased("q", tu.Laplace(2)),
    "constant": lambda: tu.unbiased("3", tu.Laplace(2)),
    "point": lambda: tu.unbiased("1/q", tu.Laplace(2), (4, 4)),
    "interval": lambda: tu.unbiased("log(q)", tu.Laplace(0.5), (1, 6)),
    "below": lambda: tu.unbiased("exp(q)", tu.Laplace(2), (None, 3)),
    "extension": lambda: tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=5),
    "long extension": lambda: tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=80),
    "piecewise": lambda: tu.unbiased("where(q < 1, q**2, 2*q - 1)", tu.Laplace(1)),
    "flat piece": lambda: tu.unbiased("where(q < 1, 0, (q - 1)**2)", tu.Laplace(1)),
    "smooth": lambda: tu.unbiased("atan(q) + log(q**2 + 1)", tu.Laplace(1)),
    "gaussian": lambda: tu.unbiased("q**3*exp(q/5) + sin(q)", tu.Gaussian(1)),
    "staircase": lambda: tu.unbiased("q**2", tu.Staircase(1)),
    "uniform": lambda: tu.unbiased("cos(q)", tu.Uniform(1)),
    "student": lambda: tu.unbiased("q**2", tu.StudentT(9)),
    "moments": lambda: tu.unbiased("q**2 - q", tu.Moments([0, 1, Fraction(1, 2), 3])),
    "scipy": lambda: tu.unbiased("q**2", tu.Noise.from_scipy(scipy.stats.logistic(scale=2))),
    "callable": lambda: tu.unbiased(np.exp, tu.Laplace(0.25), derivatives=(np.exp, np.exp)),
}
LATTICE: dict[str, Callable[[], tu.Estimator]] = {
    "count": lambda: tu.unbiased("n", tu.DiscreteLaplace(2), (0, None)),
    "indicator": lambda: tu.unbiased("where(n > 5, 1, 0)", tu.DiscreteLaplace(2)),
    "kink": lambda: tu.unbiased("abs(n - 3)", tu.DiscreteLaplace(2), (0, 9)),
    "neighbours": lambda: tu.unbiased("1/n", tu.DiscreteLaplace(2), (2, 3)),
    "single": lambda: tu.unbiased("1/n", tu.DiscreteLaplace(2), (2, 2)),
    "table": lambda: tu.unbiased({0: 1.5, 1: -2, 2: 0, 3: 4}, tu.DiscreteLaplace(1)),
    "python": lambda: tu.unbiased(lambda n: float(int(n) % 3), tu.DiscreteLaplace(1), (0, 9)),
    "discrete gaussian": lambda: tu.unbiased("n**2", tu.DiscreteGaussian(1)),
    "poisson": lambda: tu.unbiased("n**2", tu.Noise.from_scipy(scipy.stats.poisson(2, loc=-2))),
}
EVERY = {**LINE, **LATTICE}


@functools.cache
def made(name: str) -> tu.Estimator:
    """Return the estimator of that name, made once."""
    return EVERY[name]()


every = pytest.mark.parametrize("name", EVERY)
X = np.array([-7.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 40.0])


def same(actual: Any, expected: Any, rtol: float = 1e-12) -> None:
    """Assert equal numbers up to rounding, NaN where NaN."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-12)


# -- numbers and arrays ------------------------------------------------------------------


@every
def test_a_number_gives_a_float(name: str) -> None:
    est = made(name)
    for x in (2.0, 2, np.float64(2), np.int64(2), np.float32(2)):
        for value in (est(x), est.variance(x), est.expectation(x), est.bias(x), est.sd(x)):
            assert type(value) is float
        assert est(x) == est(2.0)
    if name != "callable":  # between points a Python function is not known
        assert [type(v) for v in est.interval(2.0)] == [float, float]


@every
def test_arrays_agree_with_numbers(name: str) -> None:
    est = made(name)
    for method in (est, est.variance):
        one_by_one = [method(float(x)) for x in X]
        same(method(X), one_by_one)
        same(method(X.tolist()), one_by_one)
        same(method(tuple(X.tolist())), one_by_one)
        same(method(X.astype(int)), one_by_one)
        same(method(X.astype(np.int16)), one_by_one)
        same(method(X.reshape(5, 1, 2)), np.reshape(one_by_one, (5, 1, 2)))
        same(method(X[::-2]), one_by_one[::-2])
        same(method(np.asfortranarray(X.reshape(2, 5).T)), np.reshape(one_by_one, (2, 5)).T)
        same(method(np.broadcast_to(X, (3, 10))), np.broadcast_to(one_by_one, (3, 10)))
        assert method(np.array(2.0)).shape == ()
        assert method(X).dtype == np.float64


@every
def test_large_arrays_are_cut_into_blocks(name: str) -> None:
    x = np.tile(X, 30_001)
    same(made(name)(x), np.tile(made(name)(X), 30_001))


@every
def test_the_input_is_left_alone(name: str) -> None:
    x = X.copy()
    x.flags.writeable = False
    made(name)(x)
    made(name).variance(x)
    np.testing.assert_array_equal(x, X)


@every
def test_float32_is_kept(name: str) -> None:
    est = made(name)
    small = est(X.astype(np.float32))
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, est(X), rtol=2e-4, atol=2e-4 * np.max(np.abs(est(X))))


@every
def test_nothing_in_nothing_out(name: str) -> None:
    est = made(name)
    for empty in ([], np.empty((0, 3)), np.array([], dtype=np.float32)):
        assert est(empty).shape == np.shape(empty)
        assert est.variance(empty).shape == np.shape(empty)


@every
def test_nan_stays_nan(name: str) -> None:
    est = made(name)
    assert math.isnan(est(NAN))
    assert math.isnan(est.variance(NAN))
    assert math.isnan(est.stderr(NAN))
    assert all(math.isnan(v) for v in est.interval(NAN))
    x = X.copy()
    x[::3] = NAN
    same(np.isnan(est(x)), np.isnan(x))
    same(np.isnan(est.variance(x)), np.isnan(x))
    same(est(x)[~np.isnan(x)], est(X)[~np.isnan(x)])
    assert math.isnan(est.expectation(NAN))
    assert math.isnan(est.sd(NAN))


def test_none_in_an_object_array_is_nan() -> None:
    values = made("identity")(np.array([1.0, None, 3.0], dtype=object))
    same(values, [1.0, NAN, 3.0])


@pytest.mark.parametrize("name", ["reciprocal", "identity", "below", "count", "neighbours"])
def test_infinite_values_are_beyond_the_limit(name: str) -> None:
    est = made(name)
    same([est(-math.inf), est(math.inf)], [NAN, NAN])
    same(est(np.array([-math.inf, math.inf])), [NAN, NAN])


def test_huge_values_do_not_warn() -> None:
    x = np.array([-1e300, -1e18, 1e18, 1e300])
    for est in map(made, EVERY):
        est(x)
        est.variance(x)


# -- several statistics ------------------------------------------------------------------


def test_several_statistics_broadcast() -> None:
    est = tu.unbiased("s/n", TWO, {"n": (1, None)})
    s, n = np.array([[1.0], [2.5]]), np.array([-3, 1, 8])
    expected = [[est(s=float(a), n=int(c)) for c in n] for a in s[:, 0]]
    same(est(s=s, n=n), expected)
    same(est(n=n, s=s), expected)
    same(est(s=2.5, n=n), expected[1])
    same(est(s=[1.0, 2.5], n=8), [row[2] for row in expected])
    assert est(s=s, n=n).shape == est.variance(s=s, n=n).shape == (2, 3)
    assert type(est(s=1.0, n=2)) is float
    assert est.sd(s=s, n=np.array([1, 2, 8])).shape == (2, 3)
    assert est(s=np.float32([1, 2]), n=np.int8([1, 2])).dtype == np.float32


def test_nan_in_one_of_several_statistics() -> None:
    est = tu.unbiased("s/n", TWO, {"n": (1, None)})
    assert math.isnan(est(s=NAN, n=-5))
    assert math.isnan(est(s=1.0, n=NAN))
    same(np.isnan(est(s=[NAN, 1.0, 1.0], n=[1.0, NAN, 2.0])), [True, True, False])


def test_pandas_in_array_out() -> None:
    frame = pd.DataFrame({"s": [1.0, 2.5, NAN], "n": [3, -1, 8]}, index=[7, 8, 9])
    values = made("reciprocal")(frame["s"])
    assert type(values) is np.ndarray
    same(values, made("reciprocal")(frame["s"].to_numpy()))
    est = tu.unbiased("s/n", TWO, {"n": (1, None)})
    both = est(s=frame["s"], n=frame["n"])
    assert type(both) is np.ndarray
    same(both, est(s=frame["s"].to_numpy(), n=frame["n"].to_numpy()))


# -- text forms --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in EVERY if n != "python"])
def test_pickling(name: str) -> None:
    est = made(name)
    again = pickle.loads(pickle.dumps(est))  # noqa: S301
    np.testing.assert_array_equal(again(X), est(X))
    np.testing.assert_array_equal(again.variance(X), est.variance(X))
    assert repr(again) == repr(est)


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("python", "callable")])
def test_json(name: str) -> None:
    est = made(name)
    text = est.to_json()
    json.loads(text)
    again = tu.Estimator.from_json(text)
    np.testing.assert_array_equal(again(X), est(X))
    np.testing.assert_array_equal(again.variance(X), est.variance(X))
    assert again.to_json() == text
    assert repr(again) == repr(est)
    assert again.domain == est.domain
    assert again.noise == est.noise


def test_json_of_several_statistics_and_odd_bounds() -> None:
    noise = {"s": tu.Laplace(Fraction(1, 3)), "a b": tu.Laplace(0.1)}
    est = tu.unbiased("s/`a b`", noise, {"a b": (Fraction(1, 3), 1e22)})
    again = tu.Estimator.from_json(est.to_json())
    values = {"s": [1.0, 2.0, 3.0], "a b": [0.1, Fraction(1, 3), 4.0]}
    np.testing.assert_array_equal(again(**values), est(**values))
    assert again.domain == est.domain


@every
def test_repr_and_explanation(name: str) -> None:
    est = made(name)
    assert repr(est).startswith("<unbiased estimator of ")
    assert all(repr(noise) in repr(est) for noise in est.noise.values())
    lines = est.explain().splitlines()
    assert lines[0].startswith("Unbiased estimator of ")
    words = [line.split(":")[0].strip() for line in lines[1:]]
    assert {"published", "theorem", "estimate", "variance", "interval"} <= set(words)
    assert all(repr(noise) in est.explain() for noise in est.noise.values())


def test_explanations_name_the_theorem() -> None:
    said = {name: made(name).explain() for name in EVERY}
    assert "f − b²·f″" in said["identity"]
    assert "Laplace" in said["reciprocal"]
    assert "minimum" in said["reciprocal"] or "best" in said["reciprocal"]
    assert "degree 5" in said["extension"] or "extension" in said["extension"]
    assert "are not checked" in said["callable"]


# -- formulas ----------------------------------------------------------------------------


def at(formula: sympy.Expr, x: float) -> float:
    """Return the expression's value, computed by sympy itself."""
    symbols = formula.free_symbols
    exact = sympy.Rational(x)
    return float(formula.subs(dict.fromkeys(symbols, exact)).evalf(30))


SYMBOLIC = [n for n in EVERY if n not in ("table", "python", "callable", "long extension")]


@pytest.mark.parametrize("name", SYMBOLIC)
def test_the_formula_is_what_is_computed(name: str) -> None:
    est = made(name)
    points = [-7.0, 0.0, 1.0, 2.0, 5.0, 9.0]
    points += [] if name in LATTICE else [0.3, 1.0625, 3.7]
    for x in points:
        assert math.isclose(at(est.formula, x), est(x), rel_tol=1e-11, abs_tol=1e-11)
        assert math.isclose(
            at(est.variance_formula, x), est.variance(x), rel_tol=1e-10, abs_tol=1e-10
        )


def test_the_formula_of_two_statistics() -> None:
    est = tu.unbiased("s/n", {"s": tu.Laplace(1), "n": tu.Laplace(2)}, {"n": (1, None)})
    s, n = sorted(est.formula.free_symbols, key=lambda v: v.name)[::-1]
    for x, y in ((1.5, -2.0), (-3.0, 1.0), (2.0, 7.0)):
        values = {s: sympy.Rational(x), n: sympy.Rational(y)}
        assert math.isclose(float(est.formula.subs(values)), est(s=x, n=y), rel_tol=1e-12)
        spread = float(est.variance_formula.subs(values))
        assert math.isclose(spread, est.variance(s=x, n=y), rel_tol=1e-12)


def test_notebooks_show_mathematics() -> None:
    assert r"\begin{cases}" in made("reciprocal")._repr_latex_()


def test_the_inputs_can_be_read_back() -> None:
    est = tu.unbiased("s/n", TWO, {"n": (1, None)})
    assert est.statistics == ("s", "n")
    assert est.noise == TWO
    assert est.domain["n"] == tu.Integers(1, None)
    assert est.domain["s"] == tu.Interval()
    assert str(est.estimand) == "s/n"


# -- ways to say the same ----------------------------------------------------------------


def test_every_way_to_give_a_function() -> None:
    q = sympy.Symbol("q")
    given = ["q**3 - 2*q", q**3 - 2 * q, np.polynomial.Polynomial([0, -2, 0, 1])]
    given.append(np.polynomial.Chebyshev([0, -1.25, 0, 0.25]))
    for f in given:
        same(
            tu.unbiased(f, tu.Laplace(2), (1, 5))(X),
            tu.unbiased(given[0], tu.Laplace(2), (1, 5))(X),
        )
    own = tu.unbiased(
        lambda v: v**3 - 2 * v,
        tu.Laplace(2),
        (1, 5),
        derivatives=(lambda v: 3 * v**2 - 2, lambda v: 6 * v),
    )
    same(own(X), tu.unbiased(given[0], tu.Laplace(2), (1, 5))(X))
    same(own.variance(X), tu.unbiased(given[0], tu.Laplace(2), (1, 5)).variance(X))


def test_a_python_function_under_laplace_noise() -> None:
    est = tu.unbiased(
        lambda v: 1 / v,
        tu.Laplace(2),
        (1, None),
        derivatives=(lambda v: -1 / v**2, lambda v: 2 / v**3),
    )
    same(est(X), made("reciprocal")(X))
    for q in (1.0, 3.0, 0.2):
        same(est.expectation(q), made("reciprocal").expectation(q), 1e-9)
        same(est.sd(q), made("reciprocal").sd(q), 1e-9)


def test_exact_and_float_scales_agree() -> None:
    for b in (0.5, Fraction(1, 2), np.float64(0.5)):
        same(
            tu.unbiased("1/q", tu.Laplace(b), (1, None))(X),
            1 / np.maximum(X, 1) - 0.5 / np.maximum(X, 1) ** 3 + np.where(X <= 1, 1.0, 0.0),
        )


def test_an_unused_statistic_is_no_obstacle() -> None:
    est = tu.unbiased("2*s", {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)})
    assert est(s=3.0) == 6.0


# -- standard errors and intervals -------------------------------------------------------


def test_the_standard_error_is_the_root() -> None:
    for name in ("reciprocal", "piecewise", "count"):
        same(made(name).stderr(X), np.sqrt(made(name).variance(X)))
    est = tu.unbiased("s/n", TWO, {"n": (1, None)})
    s, n = np.linspace(-9, 9, 50)[:, None], np.arange(-5, 20)
    spread = est.variance(s=s, n=n)
    assert (spread < 0).any()
    same(np.isnan(est.stderr(s=s, n=n)), spread < 0)


def covered(est: tu.Estimator, q: float, b: float, level: float) -> float:
    """Return P(interval covers f(q)): the ends of the set of good x by bisection, then the cdf."""
    f = float(est.expectation(q))

    def good(x: float) -> bool:
        low, high = est.interval(x, level=level)
        return low <= f <= high

    assert good(q)
    ends = []
    for direction in (-1, 1):
        near, far = 0.0, 60 * b
        if good(q + direction * far):
            ends.append(math.inf)
            continue
        for _ in range(80):
            middle = (near + far) / 2
            near, far = (middle, far) if good(q + direction * middle) else (near, middle)
        ends.append(near)
    return 1 - sum(math.exp(-end / b) / 2 for end in ends)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("q", [1.0, 1.4, 3.0, 7.0, 12.5, 80.0])
def test_intervals_cover(q: float, level: float) -> None:
    est = made("reciprocal")
    assert est.interval_method == "exact"
    assert covered(est, q, 2.0, level) >= level - 1e-9


def test_intervals_stay_in_the_range() -> None:
    x = np.linspace(-60, 60, 241)
    for name, least, most in (("reciprocal", 0, 1), ("interval", 0, math.log(6)), ("below", 0, 21)):
        low, high = made(name).interval(x)
        assert np.all(low <= high)
        assert np.all(low >= least)
        assert np.all(high <= most)


def test_a_wider_level_gives_a_wider_interval() -> None:
    narrow, wide = (made("reciprocal").interval(X, level=v) for v in (0.8, 0.99))
    assert np.all(wide[0] <= narrow[0])
    assert np.all(wide[1] >= narrow[1])


@pytest.mark.parametrize(
    "bound", ["1E9999999", "1e-9999999", "9" * 1000, "9" * 5000, "1/" + "9" * 3000, "nan", 3]
)
def test_bounds_in_json_that_no_double_holds_are_refused(bound: object) -> None:
    record = json.loads(tu.unbiased("1/q", tu.Laplace(2), (1, None)).to_json())
    record["domain"]["q"] = [bound, None]
    with pytest.raises(tu.TrueupError):
        tu.Estimator.from_json(json.dumps(record))


@pytest.mark.parametrize(
    "value", [10**1000, -(10**5000), Fraction(1, 10**400), Decimal("1E9999999")], ids=range(4)
)
def test_numbers_that_no_double_holds_are_refused(value: object) -> None:
    with pytest.raises(tu.TrueupError, match="beyond double precision"):
        tu.unbiased("q", tu.Laplace(1), (value, None))
    with pytest.raises(tu.TrueupError, match="beyond double precision"):
        tu.Laplace(value)
