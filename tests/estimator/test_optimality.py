"""The constant beyond a bound is best; the figures of the theory; the paper's misprints."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.laguerre import lagval

import depth
import oracle
import trueup as tu
from estimator import drawn
from estimator.drawn import close, decimals, scales
from oracle import Axis, expect, moments

SLACK = 1e-9
RECIPROCAL = {"f": "1/q", "noise": tu.Laplace(2), "domain": (1, None)}


def sd_never_above(best: tu.Estimator, other: Any, axes: list[Axis]) -> None:
    """Assert Var of the best estimator ≤ Var of the other, both unbiased, at every true value."""
    for place in axes:
        (mean, least), (same, more) = moments(best, place), moments(other, place)
        assert close(mean, same)
        assert least <= more + SLACK * max(1.0, more)
        assert close(best.sd(place.q) ** 2, least)


# -- against the paper's extension -------------------------------------------------------


@settings(max_examples=depth.examples(40))
@given(st.data())
def test_the_optimum_is_never_above_an_extension(data: st.DataObject) -> None:
    b, low = data.draw(scales(0.5, 3)), data.draw(decimals(0.5, 4))
    f, k = data.draw(drawn.positive()), data.draw(st.integers(2, 20))
    best, paper = (
        tu.unbiased(f.text, tu.Laplace(b), (low, None), extension=e) for e in ("optimal", k)
    )
    places = [Axis(oracle.laplace(b), low + t * float(b), (low,)) for t in (0, 0.5, 2, 6)]
    sd_never_above(best, paper, places)
    for place in places:
        assert best.sd(place.q) <= paper.sd(place.q) * (1 + SLACK)


# -- against any competitor --------------------------------------------------------------


@st.composite
def weightless(draw: Any) -> Any:
    """Draw h(t), t > 0, with ∫ h e^{−t} dt = 0: Laguerre series without c₀, or a bounded wave."""
    if draw(st.booleans()):
        series = draw(st.lists(decimals(-2, 2), min_size=1, max_size=5))
        return lambda t: lagval(t, [0.0, *series])
    a, u = draw(decimals(-3, 3)), draw(decimals(0.3, 4))
    return lambda t: a * (np.cos(u * t) - 1 / (1 + u**2))


@settings(max_examples=depth.examples(60))
@given(st.data())
def test_the_optimum_beats_random_competitors(data: st.DataObject) -> None:
    b, low = data.draw(scales(0.5, 3)), data.draw(decimals(0.5, 4))
    f, below = data.draw(drawn.positive()), data.draw(weightless())
    high = data.draw(st.one_of(st.none(), decimals(1, 6).map(lambda w: low + w)))
    above = (lambda t: 0 * t) if high is None else data.draw(weightless())
    top = math.inf if high is None else high
    best = tu.unbiased(f.text, tu.Laplace(b), (low, high))

    def competitor(x: Any) -> Any:
        left, right = np.maximum(low - x, 0) / float(b), np.maximum(x - top, 0) / float(b)
        return best(x) + np.where(x < low, below(left), 0) + np.where(x > top, above(right), 0)

    bounds = (low,) if high is None else (low, high)
    ends = min(top, low + 5 * float(b))
    places = [Axis(oracle.laplace(b), q, bounds) for q in (low, (low + ends) / 2, ends)]
    sd_never_above(best, competitor, places)


@settings(max_examples=depth.examples(60))
@given(st.data())
def test_the_discrete_optimum_beats_random_competitors(data: st.DataObject) -> None:
    """Add any h on x ≤ L with Σ_j h(L − j) α^j = 0."""
    b, low = data.draw(scales(0.5, 3)), data.draw(st.integers(1, 4))
    f = data.draw(drawn.positive())
    h = np.array(data.draw(st.lists(decimals(-3, 3), min_size=2, max_size=9)))
    h[0] = -math.fsum(h[1:] * np.exp(-np.arange(1, len(h)) / float(b)))
    best = tu.unbiased(f.text, tu.DiscreteLaplace(b), (low, None))

    def competitor(x: Any) -> Any:
        steps = (low - x).astype(int)
        inside = (steps >= 0) & (steps < len(h))
        return best(x) + np.where(inside, h[np.clip(steps, 0, len(h) - 1)], 0)

    places = [Axis(oracle.discrete_laplace(b), low + q) for q in (0, 1, 3, 8)]
    sd_never_above(best, competitor, places)


# -- figures of the theory ---------------------------------------------------------------


def left_side(h: Any, b: float, low: float) -> float:
    """Return ∫₀^∞ h(L − bt) e^{−t} dt: one half of a Laplace law around L."""
    below = lambda x: np.where(x < low, 2 * h(np.minimum(x, low)), 0.0)  # noqa: E731
    return expect(below, Axis(oracle.laplace(b), low, feature=0.5))


EXCESSES = [(3, 130.857, 5e-4), (5, 44.194, 5e-4), (10, 14.2570835958854, 1e-10)]
EXCESSES += [(20, 5.882, 5e-4), (50, 2.128, 5e-4)]


@pytest.mark.parametrize(("k", "figure", "rounding"), EXCESSES)
def test_the_excess_of_degree_k(k: int, figure: float, rounding: float) -> None:
    est = tu.unbiased(**RECIPROCAL, extension=k)
    assert close(left_side(est, 2, 1), 3.0)
    excess = left_side(lambda x: (est(x) - 3) ** 2, 2, 1)
    assert abs(excess - figure) <= rounding
    best = tu.unbiased(**RECIPROCAL)
    for q in (1.0, 4.0):  # the excess enters with the probability of x < L
        below = math.exp(-(q - 1) / 2) / 2
        assert close(est.sd(q) ** 2 - best.sd(q) ** 2, below * excess)


def test_the_excess_decays_like_one_over_k_minus_3() -> None:
    """Σ c_n² → (b f' − b² f'')²/(k − 3): here 100/(k − 3), with k = 500 near 1/5."""
    best = tu.unbiased(**RECIPROCAL).sd(1.0) ** 2
    for k in (100, 500):
        excess = 2 * (tu.unbiased(**RECIPROCAL, extension=k).sd(1.0) ** 2 - best)
        assert abs(excess * (k - 3) / 100 - 1) < 1e-6


def least_norm_excess(k: int, slope: Fraction, bend: Fraction) -> Fraction:
    """Return Σ c_n² of the least-norm solution of the two constraints, in exact rationals."""
    rows = [[Fraction(2) ** (n - 1) for n in range(1, k + 1)], [Fraction(1)] * k]
    (a, m), (_, d) = [[sum(x * y for x, y in zip(r, t, strict=True)) for t in rows] for r in rows]
    right = (slope, slope - bend)
    det = a * d - m * m
    u, v = (d * right[0] - m * right[1]) / det, (a * right[1] - m * right[0]) / det
    return u * right[0] + v * right[1]


@pytest.mark.parametrize("k", [2, 3, 10, 50, 200, 500])
def test_the_extension_is_the_least_norm_solution(k: int) -> None:
    """1/q, L = 1, b = 2: b f' = −2, b² f'' = 8; exact arithmetic beside the library's floats."""
    excess = least_norm_excess(k, Fraction(-2), Fraction(8))
    est, best = tu.unbiased(**RECIPROCAL, extension=k), tu.unbiased(**RECIPROCAL)
    assert close(2 * (est.sd(1.0) ** 2 - best.sd(1.0) ** 2), float(excess))


@pytest.mark.parametrize("b", [1, 2, Fraction(1, 3), 0.7])
def test_the_identity_with_a_bound(b: Any) -> None:
    """Var = 2b² − (b²/2)(e^{−(q−L)/b} + e^{−(U−q)/b}): 1.5 b² at q = L, 0.75 of the plain one."""
    b2 = float(b) ** 2
    free, half = tu.unbiased("q", tu.Laplace(b)), tu.unbiased("q", tu.Laplace(b), (0, None))
    assert close(half.sd(0.0) ** 2, 1.5 * b2, 1e-12)
    assert close(half.sd(0.0) ** 2 / free.sd(0.0) ** 2, 0.75, 1e-12)
    both = tu.unbiased("q", tu.Laplace(b), (0, 3))
    for q in (0.0, 0.4, 1.5, 3.0):
        gain = math.exp(-q / float(b)) + math.exp(-(3 - q) / float(b))
        assert close(both.sd(q) ** 2, 2 * b2 - b2 / 2 * gain, 1e-11)
        assert close(moments(both, Axis(oracle.laplace(b), q, (0, 3)))[1], both.sd(q) ** 2)


def test_the_identity_on_a_tiny_interval() -> None:
    """Towards b² for U − L ≪ b."""
    assert abs(tu.unbiased("q", tu.Laplace(2), (0, 1e-6)).sd(0.0) ** 2 - 4) < 1e-5


@pytest.mark.parametrize("b", [0.4, 1, 2, 5])
def test_the_discrete_identity_with_bounds(b: float) -> None:
    """Var = 2λ − λ(α^{q−L} + α^{U−q})/(1+α)."""
    alpha = math.exp(-1 / b)
    lam = alpha / (1 - alpha) ** 2
    est = tu.unbiased("q", tu.DiscreteLaplace(b), (2, 9))
    for q in (2, 3, 6, 9):
        gain = (alpha ** (q - 2) + alpha ** (9 - q)) / (1 + alpha)
        assert close(est.sd(q) ** 2, 2 * lam - lam * gain, 1e-11)
        assert close(moments(est, Axis(oracle.discrete_laplace(b), q))[1], est.sd(q) ** 2)


@settings(max_examples=depth.examples(40))
@given(drawn.positive(), scales(), decimals(0.4, 3), decimals(0.05, 6))
def test_what_a_wrong_bound_costs(f: drawn.Formula, b: Any, low: float, by: float) -> None:
    """q < L: E g = f(L) − b f'(L)(1 − e^{−(L−q)/b}); the slope is measured from g itself."""
    est = tu.unbiased(f.text, tu.Laplace(b), (low, None))
    value = float(f(low))
    slope = (value - est(low)) / float(b)
    expected = value - float(b) * slope * (1 - math.exp(-by / float(b)))
    assert close(est.expectation(low - by), expected)
    assert close(expect(est, Axis(oracle.laplace(b), low - by, (low,))), expected)


CLOSED = [
    ("1/q", lambda x: -(x**-2.0), lambda x: 2 * x**-3.0),
    ("log(q)", lambda x: 1 / x, lambda x: -(x**-2.0)),
    ("sqrt(q)", lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
    ("exp(-q)", lambda x: -np.exp(-x), lambda x: np.exp(-x)),
    ("q**2", lambda x: 2 * x, lambda x: 2 + 0 * x),
]


@pytest.mark.parametrize(("text", "slope", "bend"), CLOSED)
def test_closed_forms_of_laplace(text: str, slope: Any, bend: Any) -> None:
    """State g = f − b f' | f − b² f'' | f + b f' and V̂ = b² f'² | 2b² f'² + b⁴ f''² | b² f'²."""
    b, low, high = 1.5, 0.5, 4.0
    est = tu.unbiased(text, tu.Laplace(b), (low, high))
    f = drawn.Formula(text)
    x = np.linspace(0.51, 3.99, 23)
    np.testing.assert_allclose(est(x), f(x) - b**2 * bend(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        est.variance(x), 2 * b**2 * slope(x) ** 2 + b**4 * bend(x) ** 2, rtol=1e-12
    )
    for at in (-7.0, 0.0, low):
        assert close(est(at), f(low) - b * slope(low), 1e-12)
        assert close(est.variance(at), b**2 * slope(low) ** 2, 1e-12)
    for at in (high, 4.5, 99.0):
        assert close(est(at), f(high) + b * slope(high), 1e-12)
        assert close(est.variance(at), b**2 * slope(high) ** 2, 1e-12)


def test_closed_forms_of_discrete_laplace() -> None:
    b, low, high = 1.5, 1, 6
    alpha = math.exp(-1 / b)
    kappa, lam = alpha / (1 - alpha), alpha / (1 - alpha) ** 2
    f = lambda n: 1 / n**2  # noqa: E731
    est = tu.unbiased("1/n**2", tu.DiscreteLaplace(b), (low, high))
    x = np.arange(2.0, 6.0)
    up, down = f(x + 1) - f(x), f(x) - f(x - 1)
    np.testing.assert_allclose(est(x), f(x) - lam * (up - down), rtol=1e-12)
    spread = lam * (up**2 + down**2) + lam**2 * (up - down) ** 2
    np.testing.assert_allclose(est.variance(x), spread, rtol=1e-12)
    first, last = f(2) - f(1), f(6) - f(5)
    for at in (1, 0, -9):
        assert close(est(at), f(1) - kappa * first, 1e-12)
        assert close(est.variance(at), lam * first**2, 1e-12)
    for at in (6, 7, 30):
        assert close(est(at), f(6) + kappa * last, 1e-12)
        assert close(est.variance(at), lam * last**2, 1e-12)


def test_variance_of_one_statistic_is_never_negative() -> None:
    x = np.linspace(-30, 40, 2001)
    for text, domain in (("1/q", (1, None)), ("sin(q)", None), ("q**3 - q", (-2, 5))):
        assert np.all(tu.unbiased(text, tu.Laplace(2), domain).variance(x) >= 0)
        whole = tu.unbiased(text, tu.DiscreteLaplace(2), domain)
        assert np.all(whole.variance(np.arange(-30.0, 40.0)) >= 0)


def test_a_zero_clamped_count_is_read_as_minus_b_or_minus_kappa() -> None:
    b = 2.0
    assert tu.unbiased("n", tu.Laplace(2), (0, None))(0.0) == -2.0
    alpha = math.exp(-1 / b)
    counted = tu.unbiased("n", tu.DiscreteLaplace(2), (0, None))
    assert close(counted(0), -alpha / (1 - alpha), 1e-14)
    assert abs(counted(0) + b) > 0.4


def test_a_point_domain() -> None:
    for noise in (tu.Laplace(2), tu.DiscreteLaplace(2)):
        est = tu.unbiased("1/q", noise, (4, 4))
        assert est(-3) == est(9) == 0.25
        assert est.variance(7) == 0.0
        assert est.sd(4) == 0.0


# -- the paper's misprints ---------------------------------------------------------------


def shifted(coefficients: list[Fraction], factor: Any, b: Fraction) -> list[Fraction]:
    """Return c_i − b² factor(i) c_{i+2}."""
    padded = [*coefficients, 0, 0]
    return [c - b**2 * factor(i) * padded[i + 2] for i, c in enumerate(coefficients)]


COEFFICIENTS = [Fraction(1), Fraction(-2), Fraction(3), Fraction(1, 2), Fraction(-1), Fraction(2)]


def test_the_relation_of_coefficients() -> None:
    """a_i = b_i − b²(i+2)(i+1)b_{i+2} makes E g = f; the appendix's i(i−1) does not."""
    b, q = Fraction(3, 2), 1.25
    right = shifted(COEFFICIENTS, lambda i: (i + 2) * (i + 1), b)
    wrong = shifted(COEFFICIENTS, lambda i: i * (i - 1), b)
    f = np.polynomial.Polynomial([float(c) for c in COEFFICIENTS])
    est = tu.unbiased(f, tu.Laplace(b))
    x = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(est(x), np.polynomial.Polynomial([float(a) for a in right])(x))
    place = Axis(oracle.laplace(b), q)
    means = [expect(np.polynomial.Polynomial([float(a) for a in c]), place) for c in (right, wrong)]
    assert close(means[0], f(q), 1e-12)
    assert abs(means[1] - f(q)) > 1


def mean_coefficients(a: list[Fraction], b: Fraction) -> list[Fraction]:
    """Return b_i = a_i + Σ_l b^{2l} (i+2l)!/i! a_{i+2l}."""
    return [
        sum(
            b ** (j - i) * Fraction(math.factorial(j), math.factorial(i)) * a[j]
            for j in range(i, len(a), 2)
        )
        for i in range(len(a))
    ]


def test_the_inverse_relation_needs_powers_of_b() -> None:
    """E Σ a_i x^i = Σ b_i q^i with b^{2l}; without it (b = 1 in the formula) it is wrong."""
    b, q = Fraction(3, 2), 0.75
    g = np.polynomial.Polynomial([float(c) for c in COEFFICIENTS])
    mean = expect(g, Axis(oracle.laplace(b), q))
    right, printed = (
        np.polynomial.Polynomial([float(c) for c in mean_coefficients(COEFFICIENTS, scale)])
        for scale in (b, Fraction(1))
    )
    assert close(mean, right(q), 1e-12)
    assert abs(mean - printed(q)) > 1


def constraint_rows(k: int, b: float) -> np.ndarray:
    """Return h(1), h'(1), h''(1) as rows in a_0..a_k, where h has the coefficients of E g."""
    columns = [np.eye(k + 1)[i] for i in range(k + 1)]
    rows = [
        [float(v) for v in mean_coefficients([Fraction(c) for c in e], Fraction(b))]
        for e in columns
    ]
    powers = np.arange(k + 1)
    h = np.array(rows)  # row i: the coefficients b_j of E x^i
    return np.array([h.sum(1), h @ powers, h @ (powers * (powers - 1))])


def left_mean(k: int, printed: bool, target: float) -> float:
    """Return c_0 of the polynomial that the constraints and the least squares error leave."""
    rows = constraint_rows(k, 1.0 if printed else 2.0)
    basis = [np.polynomial.laguerre.lag2poly(np.eye(k + 1)[n]) for n in range(k + 1)]
    in_t = np.zeros((k + 1, k + 1))
    for n, poly in enumerate(basis):
        in_t[: len(poly), n] = poly
    to_x = np.zeros((k + 1, k + 1))  # t = (1 − x)/2
    for j in range(k + 1):
        poly = np.polynomial.polynomial.polypow([0.5, -0.5], j)
        to_x[: len(poly), j] = poly
    constraints = rows @ to_x @ in_t
    wish = np.zeros(k + 1)
    wish[0] = target
    gap = np.array([1.0, -1.0, 2.0]) - constraints @ wish
    return float((wish + np.linalg.pinv(constraints) @ gap)[0])


def test_the_left_mean_is_3() -> None:
    """1/q, L = 1, b = 2, k = 10: the printed constraints leave 2.00 to 2.19, as the prior says."""
    targets = (0.0, 0.4, 1.0)  # the prior's mean of f, all it contributes
    assert np.allclose([left_mean(10, printed=False, target=t) for t in targets], 3, atol=1e-9)
    biased = [left_mean(10, printed=True, target=t) for t in targets]
    assert round(biased[0], 2) == 2.0
    assert round(biased[-1], 2) == 2.19
    for extension in ("optimal", 2, 3, 10, 40):
        est = tu.unbiased(**RECIPROCAL, extension=extension)
        assert close(left_side(est, 2, 1), 3.0)
        assert close(expect(est, Axis(oracle.laplace(2), 1.0, (1.0,), feature=0.5)), 1.0)
