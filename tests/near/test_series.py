"""The cut-off series: exact where it must be, its remainder against quadrature."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.domain import Interval
from trueup.near.question import Question, read_prior
from trueup.near.series import Series, Terms, _times, bound_on, graded, jet, orders
from trueup.near.smoothing import Smoothing
from trueup.noise import Mass

q = sympy.Symbol("q", real=True)


def question(f, noise, low=1, high=None):
    domain = Interval(low, high)
    return Question(f, q, noise, domain, 0.1, False, read_prior("uniform", domain, False))


def series(f, noise, order, **bounds):
    terms = Terms(question(f, noise, **bounds))
    assert order in orders(terms)
    return Series(terms, order)


def test_polynomials_become_hermite_polynomials():
    """Under Gaussian noise (1/M)(D) q⁴ = q⁴ − 6σ²q² + 3σ⁴."""
    found = series(q**4, tu.Gaussian(2), 4).expr
    assert sympy.expand(found - (q**4 - 24 * q**2 + 48)) == 0
    shorter = series(q**4, tu.Gaussian(2), 2).expr
    assert sympy.expand(shorter - (q**4 - 24 * q**2)) == 0


def test_laplace_series_end():
    """1/M(t) = 1 − b²t²: all orders give f − b²f″."""
    for order in (2, 6):
        found = series(1 / q, tu.Laplace(3), order).expr
        assert sympy.simplify(found - (1 / q - 18 / q**3)) == 0


def test_the_variance_of_a_square():
    """x² − σ² has the unbiased variance 4σ²x² − 2σ⁴."""
    found = series(q**2, tu.Gaussian(3), 4).variance.expr
    assert sympy.expand(found - (36 * q**2 - 2 * 81)) == 0
    line = series(q, tu.Gaussian(3), 2).variance.expr
    assert line == 9


def test_the_variance_of_a_square_under_skew_noise():
    """With moments m₁.. of Z the series is that of S[f]² − S[f²], term by term."""
    noise = Mass({-1: Fraction(1, 2), 0: Fraction(1, 4), 2: Fraction(1, 4)})
    w = Terms(question(q**2, noise)).weights
    square = lambda f, top: sum(w[j] * sympy.diff(f, q, j) for j in range(top + 1))  # noqa: E731
    wanted = sympy.expand(square(q**2, 2) ** 2 - square(q**4, 4))
    found = series(q**2, noise, 4).variance.expr
    for x in (0, 1, 5):
        assert float(found.subs(q, x)) == pytest.approx(float(wanted.subs(q, x)), rel=1e-9)


def bias(s, at):
    """Return E S(q + Z) − f(q) for a standard Gaussian Z, by Gauss-Hermite quadrature."""
    z, w = np.polynomial.hermite_e.hermegauss(40)
    g = sympy.lambdify(q, s.expr)(at + z)
    return float(w @ g / w.sum()) - float(s.terms.question.f.subs(q, at))


def leading(f, order, at, end):
    """Return Σⱼ |wⱼ|·max|f⁽ᵐ⁺¹⁾|·E|Z|ᵏ/k!, k = m + 1 − j, for a standard Gaussian Z.

    The largest derivative is the one half way to the end of the stretch; odd moments are bounded.
    """
    even = lambda k: math.prod(range(1, k, 2))  # noqa: E731
    moment = lambda k: math.sqrt(even(k - 1) * even(k + 1)) if k % 2 else even(k)  # noqa: E731
    top = abs(float(sympy.diff(f, q, order + 1).subs(q, at - (at - end) / 2)))
    weights = [1 / (2 ** (j // 2) * math.factorial(j // 2)) for j in range(0, order + 1, 2)]
    powers = [order + 1 - j for j in range(0, order + 1, 2)]
    parts = (w * moment(k) / math.factorial(k) for w, k in zip(weights, powers, strict=True))
    return top * sum(parts)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("f", [1 / q, sympy.log(q), sympy.sqrt(q)], ids=str)
def test_the_remainder_bounds_the_bias_and_is_the_term_of_taylor(f, order):
    noise = tu.Gaussian(1)
    s = series(f, noise, order, low=2)
    for at in (14.0, 25.0, 40.0):
        cell = np.array([at]), np.array([at + 0.5])
        (bound,) = s.remainder(cell, (2.0, math.inf), 0.0, Smoothing(noise))
        assert abs(bias(s, at)) <= bound
        wanted = leading(f, order, at, 2.0)
        assert wanted * (1 - 1e-9) <= bound <= 2 * wanted  # cells are a tenth wide


def test_what_lies_outside_counts_with_its_probability():
    """Near the end of the stretch the remainder grows by |g| outside times P(outside)."""
    noise = tu.Laplace(1)
    s = series(1 / q, noise, 2)
    cell = np.array([6.0]), np.array([7.0])
    none, some = (s.remainder(cell, (2.0, 30.0), g, Smoothing(noise))[0] for g in (0.0, 10.0))
    gone = math.exp(-4) / 2 + math.exp(-23) / 2
    assert some - none == pytest.approx(10 * gone, rel=1e-9)


def test_orders_need_moments():
    assert orders(Terms(question(1 / q, tu.Gaussian(1)))) == [2, 4, 6, 8, 10]
    assert orders(Terms(question(1 / q, tu.StudentT(7)))) == [2]  # six moments
    assert orders(Terms(question(1 / q, tu.StudentT(5)))) == []


def test_the_first_term_left_out():
    """After order 2 under Gaussian noise comes σ⁴/8·f⁗: the third vanishes."""
    terms = Terms(question(1 / q, tu.Gaussian(2)))
    x = np.array([3.0, 10.0])
    np.testing.assert_allclose(terms.size(2, x), 2 * 24 / x**5, rtol=1e-12)
    lapl = Terms(question(1 / q, tu.Laplace(2)))
    np.testing.assert_array_equal(lapl.size(2, x), 0)
    np.testing.assert_allclose(lapl.size(1, x), 4 * 2 / x**3, rtol=1e-12)


def test_a_formula_and_three_derivatives():
    assert jet(q**5, q) == (q**5, 5 * q**4, 20 * q**3, 60 * q**2)


def test_bounds_on_cells():
    low, high = np.array([-3.0, 0.5]), np.array([1.0, 2.0])
    np.testing.assert_allclose(bound_on(q, q, low, high), [3, 2], rtol=1e-12)
    found = bound_on(sympy.Rational(-7, 3), q, low, high)
    assert (found >= 7 / 3).all()
    np.testing.assert_allclose(found, 7 / 3, rtol=1e-14)


def test_nothing_times_infinity():
    a, b = np.array([math.inf, 2.0, 3.0]), np.array([0.0, 5.0, 0.0])
    np.testing.assert_array_equal(_times(a, b), [0.0, 10.0, 0.0])


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 50.0), (3.0, math.inf), (-math.inf, 2.0), (-math.inf, math.inf)]
)
def test_graded_edges(low, high):
    """A quarter of a unit at finite ends, each cell at most a tenth wider than its neighbour."""
    edges = graded(low, high, 2.0)
    widths = np.diff(edges)
    assert (widths > 0).all()
    if math.isfinite(low):
        assert edges[0] == low
        assert widths[0] == pytest.approx(0.5)
    if math.isfinite(high):
        assert edges[-1] == high
        assert widths[-1] == pytest.approx(0.5)
    if math.isinf(high):
        assert edges[-1] >= 1e15
    if low == 3:
        np.testing.assert_allclose(widths[1:60] / widths[:59], 1.1, rtol=1e-6)
