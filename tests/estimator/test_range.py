"""Over the whole range of doubles an answer is right, or beyond the limit and NaN.

The answers come from mpmath with 420 digits, through derivatives that sympy takes of its own.
"""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import trueup as tu

Q = sympy.Symbol("q", real=True)
B = sympy.Rational(1, 2)
ON_THE_LINE = [
    "log(1 + exp(q))",
    "1/(1 + exp(-q))",
    "1/(1 + exp(-50*q))",
    "tanh(q)",
    "exp(-q**2)",
    "q/(1 + q**2)",
    "1/(1 + q**2)**3",
    "sqrt(1 + q**2)",
    "log(1 + q**4)/(1 + q**2)",
    "q*exp(-q**2) + atan(q)",
    "exp(q)/(exp(2*q) + 1)",
]
_SIZES = [0.0, 5e-324, 1e-310, 1e-200, 1e-100, 1e-3, 0.3, 1.0, 7.4, 14.15, 26.9, 38.0, 99.0]
_SIZES += [175.0, 358.0, 700.0, 745.2, 1e4, 1e60, 1e103, 1e155, 1.7e308]
POINTS = sorted({sign * x for x in _SIZES for sign in (-1, 1)})


def _answers(text, scale, points):
    """Return f − b²f″ and 2b²f′² + b⁴f″² by mpmath; None where the answer is not a double."""
    f = sympy.parsing.sympy_parser.parse_expr(text, local_dict={"q": Q})
    first, second = f.diff(Q), f.diff(Q, 2)
    parts = [sympy.lambdify(Q, e, "mpmath") for e in (f, first, second)]
    found = []
    for x in points:
        with mpmath.workdps(420):
            y, d1, d2 = (part(mpmath.mpf(x)) for part in parts)
            b = mpmath.mpf(scale.p) / scale.q
            found.append((float(y - b**2 * d2), float(2 * b**2 * d1**2 + b**4 * d2**2)))
    return np.array(found)


ABSORBED = {"log(1 + exp(q))": 1e-15, "tanh(q)": 1e-23}
"""What is rounded away when 1 + e^q is 1: an error of digits, not of range."""


def _close(points, found, expected, floor=0.0):
    """Return where answers are right, or NaN far from 0."""
    allowed = np.maximum(1e-9 * np.abs(expected), max(floor, 1e-100))
    right = (np.abs(found - expected) <= allowed) | ~np.isfinite(expected)
    return right | (np.isnan(found) & (np.abs(points) > 7))


@pytest.mark.parametrize("text", ON_THE_LINE)
def test_values_and_variances(text):
    est, points = tu.unbiased(text, tu.Laplace(0.5)), np.array(POINTS)
    expected = _answers(text, B, POINTS)
    for truth, ask in zip(expected.T, (est, est.variance), strict=True):
        for found in (ask(points), np.array([ask(x) for x in POINTS])):
            wrong = ~_close(points, found, truth, ABSORBED.get(text, 0.0))
            assert not wrong.any(), (points[wrong], found[wrong], truth[wrong])


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_compiled_kernels_do_too(compiled, monkeypatch):
    if compiled == "1":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_NUMBA", compiled)
    for text in ("1/(1 + exp(-50*q))", "q/(1 + q**2)", "exp(q)/(exp(2*q) + 1)"):
        est = tu.unbiased(text, tu.Laplace(0.5))
        points = np.repeat(POINTS, 60)
        expected = np.repeat(_answers(text, B, POINTS), 60, axis=0)
        assert _close(points, est(points), expected[:, 0]).all()
        assert _close(points, est.variance(points), expected[:, 1]).all()


def test_what_grows_beyond_doubles_is_no_number():
    est = tu.unbiased("exp(q)", tu.Laplace(0.5))
    assert math.isnan(est(1e4))
    assert np.isnan(est(np.array([1e4, math.inf]))).all()
    assert math.isnan(tu.unbiased("q**2", tu.Laplace(0.5))(math.nan))


def test_frames_and_arrays_end_at_the_same_limit():
    pl = pytest.importorskip("polars")
    softplus = tu.unbiased("log(1 + exp(q))", tu.Laplace(1))
    q = [3.0, 200.0, 358.0, 800.0, -800.0, None]
    found = tu.debias(pl.DataFrame({"q": q}), y=softplus)
    array = softplus(np.array(q, float))
    assert found["y"].to_list()[:2] == pytest.approx([softplus(3.0), 200.0])
    assert [y is None or math.isnan(y) for y in found["y"]] == np.isnan(array).tolist()


def test_hyperbolic_functions_have_a_spread_under_uniform_noise() -> None:
    """E e^{±10} of the coefficients is not drawn into e^{±q}: g = A·cosh(x)·(w/2)/sinh(w/2)."""
    g = tu.unbiased("5*cosh(q)", tu.Uniform(10), (None, 42))

    def value(x: Any) -> Any:
        return 25 * mpmath.cosh(x) / mpmath.sinh(5)

    for q in (1, 50):
        ends = [q - 5, q + 5]
        mean = mpmath.quad(value, ends) / 10
        square = mpmath.quad(lambda x, mean=mean: (value(x) - mean) ** 2, ends) / 10
        assert math.isclose(g.expectation(float(q)), mean, rel_tol=1e-12)
        assert math.isclose(g.sd(float(q)), mpmath.sqrt(square), rel_tol=1e-12)


def test_a_spread_whose_square_overflows_is_refused() -> None:
    with pytest.raises(tu.TrueupError, match="overflows on the way"):
        tu.unbiased("exp(q/0.1)", tu.DiscreteLaplace(Fraction(1, 3)), (0.1, 40)).sd(40)
    noises = {"s": tu.Laplace(Fraction(1, 3)), "t": tu.Laplace(2)}
    with pytest.raises(tu.TrueupError, match="overflows on the way"):
        tu.unbiased("exp(10*s)*t", noises, {"s": (0.5, 40)}).sd(s=39.0, t=3.0)


def _between(rate: int, a: Any, b: Any) -> Any:
    """Return the integral of e^{rate·x} from a to b."""
    return (mpmath.exp(rate * mpmath.mpf(b)) - mpmath.exp(rate * mpmath.mpf(a))) / rate


def test_what_outgrows_the_noise_on_the_line_is_followed_to_the_bound() -> None:
    """The square of e^{2q} outgrows e^{−3|z|}: most of the variance lies at the far bound."""
    with mpmath.workdps(40):
        inside, t = (1 - mpmath.mpf(4) / 9) ** 2, mpmath.exp(3)  # at q = 1
        middle = inside * 1.5 * (_between(7, 0, 1) / t + _between(1, 1, 60) * t)
        ends = mpmath.mpf(1) / 9 / t + mpmath.mpf(25) / 9 * mpmath.exp(240 - 180) * t
        right = float(mpmath.sqrt(middle + ends / 2 - mpmath.exp(4)))
    estimator = tu.unbiased("exp(2*q)", tu.Laplace(Fraction(1, 3)), (0, 60))
    assert estimator.sd(1) == pytest.approx(right, rel=1e-9)


def test_what_outgrows_the_noise_on_the_integers_is_followed_to_the_bound() -> None:
    estimator = tu.unbiased("exp(2*q)", tu.DiscreteLaplace(Fraction(1, 3)), (1, 60))
    x = np.arange(-60.0, 120.0)
    mass = np.tanh(1.5) * np.exp(-3 * np.abs(x - 1))
    right = math.sqrt(mass @ (estimator(x) - math.exp(2)) ** 2)
    assert estimator.sd(1) == pytest.approx(right, rel=1e-9)


def test_a_variance_whose_sum_falls_like_a_power_is_refused_in_words() -> None:
    """Of e^q/q under α = e⁻²: g²·P falls like 1/k², and half of what is left lies beyond 2k."""
    for noise, domain in (
        (tu.DiscreteLaplace(Fraction(1, 2)), (1, None)),
        (tu.Laplace(Fraction(1, 2)), tu.Integers(1, None)),
    ):
        with pytest.raises(tu.TrueupError, match="almost as fast as the tail"):
            tu.unbiased("exp(q)/q", noise, domain).sd(q=2)


def test_conditions_between_statistics_that_always_hold_leave_the_variance() -> None:
    noise = {"a": tu.DiscreteLaplace(0.5), "b": tu.DiscreteLaplace(1)}
    bounds = {"a": (1, None), "b": (1, 7)}
    est = tu.unbiased("where(a/b > atan(0.1*a), a*b, cosh(a))", noise, bounds)
    plain = tu.unbiased("a*b", noise, bounds)
    assert est.variance(a=3, b=5) == plain.variance(a=3, b=5)
