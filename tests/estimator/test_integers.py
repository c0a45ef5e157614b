"""Statistics that are integers: any function of them, under rounded, tabled and Laplace noise.

The references are sums over masses typed in anew (``oracle``), and for the choice among all
unbiased estimators a weighted least norm by pseudo-inverse, which shares nothing with the library.
"""

from __future__ import annotations

import json
import math
import pickle
import sqlite3
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import depth
import oracle
import trueup as tu
from estimator.drawn import Check, Formula, axis, close, decimals, scales, truth
from oracle import Axis, Law, expect, moments

# -- laws --------------------------------------------------------------------------------


def rounded_laplace(b: float) -> Law:
    """Mass 1 − s at 0, ½(1/s − s)·e^{−|k|/b} elsewhere, s = e^{−1/(2b)}."""
    s = math.exp(-1 / (2 * b))

    def density(k: Any) -> Any:
        return np.where(k == 0, 1 - s, (1 / s - s) / 2 * np.exp(-np.abs(k) / b))

    return Law(density, 1.0, tuple(f * b + 4 for f in (41, 90, 180, 360, 700)), lattice=True)


def rounded_gaussian(sigma: float) -> Law:
    """Mass Φ((k + ½)/σ) − Φ((k − ½)/σ), from upper tails."""

    def density(k: Any) -> Any:
        size = np.abs(k)
        return scipy.stats.norm.sf((size - 0.5) / sigma) - scipy.stats.norm.sf((size + 0.5) / sigma)

    return Law(density, 1.0, tuple(f * sigma + 3 for f in (11, 16, 24)), lattice=True)


# -- what is estimated -------------------------------------------------------------------

TEXTS = [
    "1/q", "1/q**2", "log(q)", "sqrt(q)", "q*log(q)", "q/(q + 2)", "abs(q - 3)", "q**2 - 1/q",
    "where(q > 4, 1, 0)", "max(q, 3)**1.5", "sin(q/2)/q", "exp(-q/2)", "q", "q**3", "2",
]  # fmt: skip


@st.composite
def functions(draw: Any) -> Formula:
    """Draw a function of the positive integers."""
    return Formula(draw(st.sampled_from(TEXTS)))


@st.composite
def domains(draw: Any, finite: bool = False) -> tuple[int, int | None]:
    """Draw half-lines, intervals of all lengths, single integers."""
    low = draw(st.integers(1, 5))
    widths = [0, 1, 2, 3, 9, 25, 70] + ([] if finite else [None, None])
    width = draw(st.sampled_from(widths))
    return low, None if width is None else low + width


def inside(data: st.DataObject, low: int, high: int | None) -> int:
    """Draw a true value, near the bounds more often."""
    top = low + 60 if high is None else high
    near = [low, min(low + 1, top), min(low + 7, top), top]
    return data.draw(st.one_of(st.sampled_from(near), st.integers(low, top)))


# -- rounded Laplace noise ---------------------------------------------------------------


@settings(max_examples=depth.examples(70))
@given(st.data())
def test_rounded_laplace_with_bounds(data: st.DataObject) -> None:
    b, (low, high) = data.draw(scales(0.15, 6)), data.draw(domains())
    f = data.draw(functions())
    q = inside(data, low, high)
    wrong = data.draw(st.sampled_from([low - 1, low - 4, (high or 0) + 3]))
    check = Check(tu.unbiased(f.text, tu.RoundedLaplace(b), (low, high)))
    law = rounded_laplace(float(b))
    check.unbiased(f(q), axis(law, q, f))
    if wrong > 0:
        check.outside(f(wrong), axis(law, wrong, f))


@settings(max_examples=depth.examples(14))
@given(st.data())
def test_rounded_laplace_below_a_bound_and_on_all_integers(data: st.DataObject) -> None:
    b = data.draw(scales(0.15, 4))
    text = data.draw(
        st.sampled_from(["abs(q)", "where(q > -2, 1, 0)", "1/(q**2 + 1)", "q**2", "q"])
    )
    f, high = Formula(text), data.draw(st.sampled_from([None, 4, -3]))
    q = (0 if high is None else high) - data.draw(st.integers(0, 40))
    check = Check(tu.unbiased(f.text, tu.RoundedLaplace(b), (None, high)))
    check.unbiased(f(q), axis(rounded_laplace(float(b)), q, f))


def test_growing_functions_need_more_neighbours() -> None:
    for b, c in ((2, 0.2), (1, -0.4), (0.2, -1.2)):
        f = Formula(f"exp({c}*q)/q")
        check = Check(tu.unbiased(f.text, tu.RoundedLaplace(b), (1, None)))
        for q in (1, 3, 20):
            check.unbiased(f(q), axis(rounded_laplace(b), q, f))


def test_falling_faster_than_the_echoes() -> None:
    """Far out e^{−3n} is below the echo of its first value: unbiased relative to that."""
    est, law = tu.unbiased("exp(-3*n)", tu.RoundedLaplace(0.2), (1, None)), rounded_laplace(0.2)
    for q in (1, 2, 3, 8, 20):
        assert abs(expect(est, Axis(law, q)) - math.exp(-3 * q)) <= 1e-16


@pytest.mark.parametrize("b", [Fraction(1, 2), 1, 2.5, 10])
@pytest.mark.parametrize("text", ["1/n", "log(n)", "sqrt(n)", "where(n > 20, 1/n, n)"])
def test_rounded_laplace_is_unbiased_on_1_to_300_in_mpmath(b: Any, text: str) -> None:
    """Sums of 40 digits over the estimator's own table, to 1e-12 relative."""
    est = tu.unbiased(text, tu.RoundedLaplace(b), (1, 300))
    reach = math.ceil(60 * b)
    x = np.arange(1 - reach, 301 + reach, dtype=float)
    values = est(x)
    with mpmath.workdps(40):
        s = mpmath.exp(-1 / (2 * mpmath.mpf(float(b))))
        masses = [(1 / s - s) / 2 * s ** (2 * k) for k in range(reach + 1)]
        masses[0] = 1 - s
        for q in (1, 2, 3, 25, 26, 27, 150, 276, 299, 300):
            terms = (
                masses[abs(k)] * float(values[q + k - 1 + reach]) for k in range(-reach, reach + 1)
            )
            mean, f = float(mpmath.fsum(terms)), float(truth(text, n=q))
            assert abs(mean - f) <= 1e-12 * max(abs(f), 1.0) * max(1.0, float(b))


@pytest.mark.parametrize("b", [0.5, 1, 2])
def test_rounded_laplace_beats_treating_it_as_laplace(b: float) -> None:
    """Read as (discrete) Laplace noise 1/n is biased; read as Laplace it also varies more."""
    law = rounded_laplace(b)
    best = tu.unbiased("1/n", tu.RoundedLaplace(b), (1, None))
    continuous = tu.unbiased("1/n", tu.Laplace(b), (1, None))
    discrete = tu.unbiased("1/n", tu.DiscreteLaplace(b), (1, None))
    for q in (1, 2, 3, 5, 10, 25):
        mean, variance = moments(best, Axis(law, q))
        assert math.isclose(mean, 1 / q, rel_tol=1e-8)
        read = moments(lambda x: continuous(np.asarray(x, float)), Axis(law, q))
        assert variance < read[1]
        assert abs(read[0] - 1 / q) > 1e-5 / q
        assert abs(moments(discrete, Axis(law, q))[0] - 1 / q) > 1e-5 / q


@pytest.mark.parametrize("b", [0.3, 1, 4])
@pytest.mark.parametrize(("low", "high"), [(1, 2), (1, 3), (1, 12), (-4, 9), (2, 75)])
def test_rounded_laplace_has_the_least_averaged_variance(b: float, low: int, high: int) -> None:
    """Against the pseudo-inverse of the whole system over x = low − reach .. high + reach."""
    reach, law = math.ceil(60 * b), rounded_laplace(b)
    q, x = np.arange(low, high + 1.0), np.arange(low - reach, high + reach + 1.0)
    f = np.cos(q) + 1 / (q + 7)
    est = tu.unbiased(dict(zip(q.astype(int).tolist(), f, strict=True)), tu.RoundedLaplace(b))
    best = least_norm(law, q, x, f, 1 / q if low > 0 else np.ones_like(q))
    masses = np.array([law.density(x - v) for v in q])
    assert np.allclose(masses @ est(x), f, rtol=0, atol=1e-12 * max(1, b * b))
    likely = np.abs(x - np.clip(x, low, high)) < 20 * b + 2
    assert np.allclose(
        est(x)[likely], best[likely], rtol=1e-7, atol=1e-7 * np.abs(best[likely]).max()
    )


def least_norm(law: Law, q: Any, x: Any, f: Any, prior: Any) -> Any:
    """Return the unbiased g that minimises Σ prior·variance, by the pseudo-inverse."""
    masses = np.array([law.density(x - v) for v in q])
    root = np.sqrt(prior @ masses)
    return np.linalg.pinv(masses / root, rcond=1e-15) @ f / root


# -- any mass function -------------------------------------------------------------------


@st.composite
def tabled(draw: Any) -> tuple[tu.Noise, Law]:
    """Draw a mass function, symmetric or not, that keeps most of its mass in one place."""
    kind = draw(st.sampled_from(["gaussian", "rounded", "table", "skellam", "sum"]))
    if kind == "gaussian":
        s = draw(decimals(0.3, 1.5))
        return tu.DiscreteGaussian(s), oracle.discrete_gaussian(s)
    if kind == "rounded":
        s = draw(decimals(0.3, 1.4))
        return tu.RoundedGaussian(s), rounded_gaussian(s)
    if kind == "skellam":
        mu = draw(decimals(0.2, 1.0))
        law = scipy.stats.skellam(mu, mu / 2)
        return tu.Noise.from_scipy(law), Law(law.pmf, 1.0, (25.0,), lattice=True)
    if kind == "sum":
        b = draw(decimals(0.3, 1.5))
        k = np.arange(-300, 301.0)
        both = np.convolve(rounded_laplace(b).density(k), oracle.discrete_laplace(b).density(k))
        density = lambda z: both[(np.asarray(z) + 600).astype(int)]  # noqa: E731
        noise = tu.RoundedLaplace(b) + tu.DiscreteLaplace(b)
        return noise, Law(density, 1.0, (45 * b + 8, 60 * b + 8), lattice=True)
    places = draw(st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=4, unique=True))
    parts = [draw(st.integers(1, 9)) for _ in places]
    total = sum(parts) * draw(st.integers(3, 6))
    masses = {k: Fraction(p, total) for k, p in zip(places, parts, strict=True)}
    masses[0] = 1 - sum(masses.values())
    return tu.Mass(masses), oracle.points(list(masses.items()))


@settings(max_examples=90)
@given(st.data())
def test_any_mass_function(data: st.DataObject) -> None:
    (noise, law), (low, high) = data.draw(tabled()), data.draw(domains(finite=True))
    f, q = data.draw(functions()), inside(data, low, high)
    check = Check(tu.unbiased(f.text, noise, (low, high)))
    check.unbiased(f(q), axis(law, q, f))
    wrong = data.draw(st.sampled_from([low - 2, (high or 0) + 3]))
    if wrong > 0:
        check.outside(f(wrong), axis(law, wrong, f))


@settings(max_examples=depth.examples(40))
@given(st.data())
def test_any_mass_function_has_the_least_averaged_variance(data: st.DataObject) -> None:
    (noise, law), low = data.draw(tabled()), data.draw(st.sampled_from([1, 3, -5]))
    count = data.draw(st.integers(2, 30))
    values = data.draw(st.lists(decimals(-5, 5), min_size=count, max_size=count))
    q = np.arange(low, low + count, dtype=float)
    reach = math.ceil(max(law.reaches))
    x = np.arange(q[0] - reach, q[-1] + reach + 1)
    prior = 1 / q if low > 0 else np.ones_like(q)
    masses = np.array([law.density(x - v) for v in q])
    reached = prior @ masses > 1e-14
    best = np.zeros_like(x)
    best[reached] = least_norm(law, q, x[reached], np.array(values), prior)
    size = max(np.abs(values)) + 1
    try:
        est = tu.unbiased({int(k): v for k, v in zip(q, values, strict=True)}, noise)
    except tu.NoUnbiasedEstimator:
        assert math.sqrt(max(masses @ best**2)) > size  # the best of all is of no use, either
        return
    own, other = (prior @ masses @ g**2 for g in (est(x), best))
    assert np.allclose(masses @ est(x), values, rtol=0, atol=1e-9 * size)
    assert own <= other + 1e-6 * abs(other) + 1e-9 * size**2


def test_wide_noise_away_from_the_bound() -> None:
    """Discrete Gaussian noise, σ = 10, on {60..3000}: 1/n unbiased to 1e-12, at an sd of 17 %."""
    est = tu.unbiased("1/n", tu.DiscreteGaussian(10), (60, 3000))
    law = oracle.discrete_gaussian(10)
    for q in (60, 61, 500, 3000):
        mean, variance = moments(est, Axis(law, q))
        assert math.isclose(mean, 1 / q, rel_tol=1e-11)
        assert math.isclose(est.sd(q), math.sqrt(variance), rel_tol=1e-9)
        assert abs(est.bias(q)) <= 1e-11 / q
    assert est.sd(60) * 60 == pytest.approx(0.1717, rel=1e-3)
    assert math.isclose(expect(est.variance, Axis(law, 60)), est.sd(60) ** 2, rel_tol=1e-6)


def test_polynomials_stay_closed_forms() -> None:
    """An exponential polynomial is left to the generating function, bounds or not."""
    est = tu.unbiased("n**2", tu.DiscreteGaussian(2), (1, 40))
    free = tu.unbiased("n**2", tu.DiscreteGaussian(2))
    assert est.formula == free.formula
    assert tu.unbiased("n**2", tu.RoundedLaplace(1)).formula.is_polynomial()


# -- Laplace noise on an integer ---------------------------------------------------------


def unit_cells(b: float, q: float, high: float = 60.0) -> Axis:
    """Return the axis of Laplace noise for what jumps at every integer."""
    reach = 41 * b
    breaks = np.arange(math.floor(q - reach), math.ceil(q + reach) + 1)
    return Axis(oracle.laplace(b), q, tuple(map(float, breaks)), min(1.0, b))


@settings(max_examples=depth.examples(36))
@given(st.data())
def test_laplace_on_integers(data: st.DataObject) -> None:
    b, (low, high) = data.draw(decimals(0.08, 1.5)), data.draw(domains())
    f, q = data.draw(functions()), inside(data, low, high)
    est = tu.unbiased(f.text, tu.Laplace(b), tu.Integers(low, high))
    check = Check(est)
    check.unbiased(f(q), unit_cells(b, q))
    wrong = data.draw(st.sampled_from([low - 0.5, low + 0.25, float(low)]))
    check.outside(f(wrong), unit_cells(b, wrong))


@pytest.mark.parametrize("high", [40, 60, 71, 80, 90, 200])
def test_windows_at_bounds_stay_inside_the_domain(high: int) -> None:
    est = tu.unbiased("1/q", tu.Laplace(0.23), tu.Integers(1, high))
    for q in (1, 2, high // 2, high):
        assert close(expect(est, unit_cells(0.23, q)), 1 / q)


def test_the_best_unbiased_identity() -> None:
    """Variance .0666 at b = .2, where plain x has .0800 and rounding .0838; .0053 at b = .1."""
    for b, variance in ((0.2, 0.0666), (0.1, 0.0053)):
        est = tu.unbiased("n", tu.Laplace(b), tu.Integers())
        assert est.sd(7) ** 2 == pytest.approx(variance, abs=5e-5)
        x = np.array([-3.7, 0.2, 5.9, 100.01])
        k, half = np.floor(x), 1 / (2 * b)
        closed = k + 0.5 + np.tanh((x - k - 0.5) / b) / np.tanh(half) / 2
        np.testing.assert_allclose(est(x), closed, rtol=1e-13)
    rounded = moments(np.rint, Axis(oracle.laplace(0.2), 7.0, tuple(np.arange(-4.5, 20)), 0.2))[1]
    assert rounded == pytest.approx(0.0838, abs=5e-5)


@pytest.mark.parametrize("b", [0.1, 0.4, 1.5])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_laplace_on_integers_has_the_least_averaged_variance(b: float, count: int) -> None:
    """Against the pseudo-inverse over quadrature nodes, one column a node, under the same prior."""
    values = [math.cos(3 * k) + k for k in range(count)]
    est = tu.unbiased(dict(enumerate(values)), tu.Laplace(b), tu.Integers(0, count - 1))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    panels = math.ceil(3 / b)
    edges = np.linspace(0, count - 1, panels * (count - 1) + 1)
    half = np.diff(edges)[:, None] / 2
    x, w = (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
    q = np.arange(float(count))
    masses = w * np.exp(-np.abs(x - q[:, None]) / b) / (2 * b)
    ends = [np.exp(-np.abs(q - end) / b) / 2 for end in (q[0], q[-1])]
    masses = np.column_stack([ends[0], masses, ends[1]])
    prior = np.full(count, -math.expm1(-1 / b))
    prior[[0, -1]] = 1
    root = np.sqrt(prior @ masses)
    best = np.linalg.pinv(masses / root) @ values / root
    own = est(np.concatenate([[-5.0], x, [count + 4.0]]))
    np.testing.assert_allclose(masses @ own, values, rtol=0, atol=1e-11)
    np.testing.assert_allclose(own, best, rtol=0, atol=1e-9 * np.abs(best).max())


def test_the_gain_over_the_real_line() -> None:
    whole = tu.unbiased("1/n", tu.Laplace(2), tu.Integers(1, None))
    line = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    shares = (whole.sd([1, 11]) / line.sd([1, 11])) ** 2
    assert shares == pytest.approx([0.2632, 0.4189], abs=1e-3)


def test_a_clamped_laplace_release_of_an_integer() -> None:
    """Clamped to [L, U] the release has atoms at the bounds: the same estimator serves."""
    b = 0.7
    for low, high in ((1, None), (1, 4), (1, 90)):
        est = tu.unbiased("1/n", tu.Laplace(b), tu.Integers(low, high))
        top = math.inf if high is None else high
        for q in (1, 2, 4):
            clamp = lambda x, low=low, top=top: est(np.clip(x, low, top))  # noqa: B023, E731
            assert close(expect(clamp, unit_cells(b, q)), 1 / q)
    est = tu.unbiased("1/n", tu.RoundedLaplace(b), (1, None))
    assert close(expect(lambda x: est(np.maximum(x, 0)), Axis(rounded_laplace(b), 2)), 0.5)


@pytest.mark.parametrize("low", [None, 4])
def test_laplace_on_integers_up_to_a_bound(low: int | None) -> None:
    """At the upper bound and below it, on the half-line and on a long interval."""
    est = tu.unbiased("abs(n - 90)", tu.Laplace(0.15), tu.Integers(low, 96))
    for q in (96, 95, 90, 84, 60):
        mean, variance = moments(est, unit_cells(0.15, q))
        assert close(mean, abs(q - 90))
        assert close(est.sd(q), math.sqrt(variance))
    mirrored = tu.unbiased("abs(n + 90)", tu.Laplace(0.15), tu.Integers(-96, None))
    x = np.array([71.9, 80.02, 90.5, 95.4, 96.2, 97.5, 300.0])
    np.testing.assert_allclose(est(x), mirrored(-x), rtol=1e-12)


def test_tables_and_functions_of_an_integer_under_laplace_noise() -> None:
    table = {2: 5.0, 3: -1.0, 4: 2.5}
    for f in (table, lambda n: {2: 5.0, 3: -1.0, 4: 2.5}[int(n)]):
        est = tu.unbiased(f, tu.Laplace(0.6), tu.Integers(2, 4))
        for q, value in table.items():
            assert close(expect(est, unit_cells(0.6, q)), value)
    with pytest.raises(tu.TrueupError, match="known by its values only"):
        tu.unbiased(table, tu.Laplace(1))
    with pytest.raises(tu.TrueupError, match="needs its first and second derivative"):
        tu.unbiased(lambda n: n, tu.Laplace(1), (1, None))


def test_what_does_not_separate_is_estimated_on_the_line() -> None:
    noise = {"a": tu.Laplace(1), "n": tu.Laplace(1)}
    for domain in ({"a": (1, None), "n": tu.Integers(1, None)}, {"a": (1, None), "n": (1, None)}):
        est = tu.unbiased("1/(a + n)", noise, domain)
        assert est(a=2.0, n=3.3) == tu.unbiased(
            "1/(a + n)", noise, {"a": (1, None), "n": (1, None)}
        )(a=2.0, n=3.3)
    paper = tu.unbiased("1/n", tu.Laplace(1), tu.Integers(1, None), extension=4)
    assert paper(0.3) == tu.unbiased("1/n", tu.Laplace(1), (1, None), extension=4)(0.3)


# -- several statistics ------------------------------------------------------------------

SEVERAL = [
    ("s/n", {"s": "laplace", "n": "rounded"}, {"n": (1, None)}),
    ("s/n", {"s": "gaussian", "n": "rounded"}, {"n": (1, 6)}),
    ("s/n", {"s": "discrete gaussian", "n": "discrete gaussian"}, {"n": (1, 20)}),
    ("s**2/n + n", {"s": "discrete", "n": "rounded"}, {"s": (0, None), "n": (1, None)}),
    ("(s - n)**2/n", {"s": "gaussian", "n": "table"}, {"n": (2, 9)}),
    ("log(s)/n + s", {"s": "rounded", "n": "table"}, {"s": (1, None), "n": (1, 12)}),
    ("log(s)/n - 2*s*n", {"s": "rounded", "n": "rounded"}, {"s": (1, 7), "n": (1, None)}),
    ("exp(-s/2 - n)/n", {"s": "laplace", "n": "rounded"}, {"s": (0, None), "n": (1, None)}),
    ("s/n", {"s": "discrete", "n": "whole"}, {"n": tu.Integers(1, 9)}),
    ("abs(s - 2)*sqrt(n)", {"s": "whole", "n": "rounded"}, {"s": tu.Integers(0, 5), "n": (1, 4)}),
]  # fmt: skip

LAWS = {
    "laplace": (tu.Laplace(1), lambda q: Axis(oracle.laplace(1), q, (0.0,))),
    "gaussian": (tu.Gaussian(1), lambda q: Axis(oracle.gaussian(1), q)),
    "discrete": (tu.DiscreteLaplace(0.5), lambda q: Axis(oracle.discrete_laplace(0.5), q)),
    "discrete gaussian": (
        tu.DiscreteGaussian(0.8),
        lambda q: Axis(oracle.discrete_gaussian(0.8), q),
    ),
    "rounded": (tu.RoundedLaplace(0.7), lambda q: Axis(rounded_laplace(0.7), q)),
    "table": (
        tu.Mass({-1: Fraction(1, 8), 0: Fraction(5, 8), 2: Fraction(1, 4)}),
        lambda q: Axis(oracle.points([(-1, 0.125), (0, 0.625), (2, 0.25)]), q),
    ),
    "whole": (tu.Laplace(0.5), lambda q: unit_cells(0.5, q)),
}


@pytest.mark.parametrize(("text", "kinds", "domain"), SEVERAL, ids=lambda v: str(v)[:60])
def test_products_with_other_statistics(text: str, kinds: Any, domain: Any) -> None:
    est = tu.unbiased(text, {name: LAWS[kind][0] for name, kind in kinds.items()}, domain)
    check = Check(est, tuple(kinds), order=12)
    for point in depth.few(((3.0, 2.0), (2.0, 4.0)), 1):
        axes = [LAWS[kind][1](q) for kind, q in zip(kinds.values(), point, strict=True)]
        check.unbiased(float(truth(text, **dict(zip(kinds, point, strict=True)))), *axes)
    outside = [LAWS[kind][1](q) for kind, q in zip(kinds.values(), (1.0, 1.0), strict=True)]
    f = float(truth(text, **dict.fromkeys(kinds, 1.0)))
    check.outside(f, *outside)


def test_three_statistics() -> None:
    noise = {"s": tu.Laplace(1), "m": tu.RoundedLaplace(0.5), "n": tu.DiscreteGaussian(0.6)}
    est = tu.unbiased("s*log(m)/n", noise, {"m": (1, 9), "n": (1, 12)})
    axes = (
        Axis(oracle.laplace(1), 3.0),
        Axis(rounded_laplace(0.5), 4),
        Axis(oracle.discrete_gaussian(0.6), 2),
    )
    Check(est, ("s", "m", "n"), order=12).unbiased(3 * math.log(4) / 2, *axes)


# -- an ordinary estimator ---------------------------------------------------------------

MAKERS = {
    "rounded half line": lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (1, None)),
    "rounded interval": lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (1, 200)),
    "rounded short": lambda: tu.unbiased("abs(n - 3)", tu.RoundedLaplace(1), (1, 9)),
    "gaussian": lambda: tu.unbiased("log(n)", tu.DiscreteGaussian(1), (1, 30)),
    "table": lambda: tu.unbiased("1/n", tu.Mass({-1: 0.2, 0: 0.7, 1: 0.1}), (1, 30)),
    "whole": lambda: tu.unbiased("1/n", tu.Laplace(0.5), tu.Integers(1, None)),
    "whole short": lambda: tu.unbiased("sqrt(n)", tu.Laplace(0.5), tu.Integers(0, 6)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_numbers_arrays_json_and_pickle(name: str) -> None:
    est = MAKERS[name]()
    x = np.array([-40.0, -1, 0, 1, 2, 5, 24, 25, 26, 199, 260])
    if name.startswith("whole"):
        x = np.concatenate([x, x + 0.37, [np.nextafter(1, 2), 6.0]])
    for method in ("__call__", "variance", "stderr"):
        values = getattr(est, method)(x)
        np.testing.assert_allclose([getattr(est, method)(float(v)) for v in x], values, rtol=1e-12)
        for other in (tu.Estimator.from_json(est.to_json()), pickle.loads(pickle.dumps(est))):  # noqa: S301
            np.testing.assert_array_equal(getattr(other, method)(x), values)
    assert json.loads(est.to_json())["trueup"] == 1
    assert math.isnan(est(math.nan))
    assert np.isnan(est(np.array([math.nan, 3.0]))).tolist() == [True, False]
    assert math.isnan(est.sd(math.nan))
    assert est.formula.free_symbols == est.estimand.free_symbols
    assert "prior" in est.explain()


def test_intervals_of_an_integer_cover() -> None:
    est = tu.unbiased("1/n", tu.Laplace(0.4), tu.Integers(1, 50))
    for q in (1, 3, 40):
        low, high = est.interval(q + tu.Laplace(0.4).sample(4000, rng=q), level=0.8)
        covered = ((low <= 1 / q) & (1 / q <= high)).mean()
        assert covered >= 0.8 - 3 * math.sqrt(0.16 / 4000)
    assert est.interval(7.4, level=0.5) == (1 / 7, 1 / 7)


def test_a_scale_per_row_takes_integers_for_real_numbers() -> None:
    est = tu.unbiased("1/n", tu.Laplace(1), tu.Integers(1, None))
    line = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    grid = est._scaled(("n",)).grid("value")
    assert grid.number(5.3, 2.0) == pytest.approx(line(5.3), rel=1e-14)
    mixed = tu.unbiased("s/n", {"s": tu.Laplace(1), "n": tu.RoundedLaplace(1)}, {"n": (1, None)})
    other = tu.unbiased("s/n", {"s": tu.Laplace(3), "n": tu.RoundedLaplace(1)}, {"n": (1, None)})
    variance = mixed._scaled(("s",)).grid("variance").number(4.2, 6.0, 3.0)
    assert variance == pytest.approx(other.variance(s=4.2, n=6), rel=1e-12)
    with pytest.raises(tu.TrueupError, match="no scale that could differ"):
        mixed._scaled(("n",))


def test_arithmetic_on_published_values() -> None:
    n = tu.noisy(9, tu.RoundedLaplace(1), domain=(1, None), name="n")
    s = tu.noisy(51.5, tu.Laplace(2), name="s")
    mean = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.RoundedLaplace(1)}, {"n": (1, None)})
    assert (s / n).estimate == pytest.approx(mean(s=51.5, n=9), rel=1e-13)
    assert (s / n).variance == pytest.approx(mean.variance(s=51.5, n=9), rel=1e-12)


# -- refusals ----------------------------------------------------------------------------

REFUSED = {
    "wild": (
        lambda: tu.unbiased("1/n", tu.DiscreteGaussian(4), (1, 150)),
        r"no usable unbiased estimator of 1/n .* standard deviation would be .* at n = 1(?s:.*)"
        r"nearly_unbiased\('1/n', DiscreteGaussian\(4\), Integers\(1, 150\), max_bias",
    ),
    "no end": (
        lambda: tu.unbiased("1/n", tu.DiscreteGaussian(3), (1, None)),
        r"the domain has no end(?s:.*)bound the domain on both sides",
    ),
    "pole": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (-3, 9)),
        r"not a finite number at n = 0",
    ),
    "pole on all integers": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(1)),
        r"not a finite number at n = 0",
    ),
    "pole under a table": (
        lambda: tu.unbiased("1/n", tu.Mass({0: 0.5, 1: 0.5}), (0, 9)),
        r"not a finite number at n = 0",
    ),
    "pole of an integer": (
        lambda: tu.unbiased("1/n", tu.Laplace(1), tu.Integers(0, None)),
        r"not a finite number at n = 0",
    ),
    "outgrows": (
        lambda: tu.unbiased("exp(n)/n", tu.RoundedLaplace(2), (1, None)),
        r"outgrows the noise|grows like",
    ),
    "steep": (
        lambda: tu.unbiased("exp(0.8*n)/n", tu.RoundedLaplace(0.2), (1, None)),
        r"grows like e\^\(0\.8",
    ),
    "too wide": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(2e4), (1, None)),
        r"too wide for the inverse of its masses",
    ),
    "does not separate": (
        lambda: tu.unbiased(
            "1/(s + n)",
            {"s": tu.Laplace(1), "n": tu.RoundedLaplace(1)},
            {"s": (1, None), "n": (1, None)},
        ),
        r"1/\(n \+ s\) is not a sum of products",
    ),
    "too large": (
        lambda: tu.unbiased("1/n", tu.DiscreteGaussian(300), (5000, 10**7)),
        r"too large a system",
    ),
    "half a number": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (1, None))(2.5),
        r"whole numbers, got 2\.5",
    ),
    "half a truth": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (1, None)).sd(2.5),
        r"must be an integer under integer noise, got 2\.5",
    ),
    "an empty domain": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (1.2, 1.8)),
        r"holds no integer",
    ),
    "values only, extended": (
        lambda: tu.unbiased(math.sqrt, tu.Laplace(1), tu.Integers(1, None), extension=4),
        r"known by its values only",
    ),
    "values only, of two statistics": (
        lambda: tu.unbiased(
            lambda s, n: s / n,
            {"s": tu.Laplace(1), "n": tu.Laplace(1)},
            {"s": tu.Integers(1, 9), "n": tu.Integers(1, 9)},
        ),
        r"known by its values only",
    ),
    "values only, hardly any noise": (
        lambda: tu.unbiased({1: 2.0, 2: 3.0}, tu.Laplace(1e-9), tu.Integers(1, 2)),
        r"known by its values only",
    ),
    "extension": (
        lambda: tu.unbiased("1/n", tu.RoundedLaplace(1), (1, None), extension=3),
        r"for Laplace noise only",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(tu.TrueupError, match=message) as caught:
        call()
    assert "\nHint: " in str(caught.value)


def test_infinite_variance_is_said() -> None:
    """e^{n/3} under b = 2 is unbiased, but its square has no expectation."""
    est = tu.unbiased("exp(n/3)", tu.RoundedLaplace(2), (1, None))
    assert "variance:   infinite" in est.explain()
    law = Law(rounded_laplace(2).density, 1.0, (700.0, 1300.0), lattice=True)
    for q in (1, 6):
        assert math.isclose(expect(est, Axis(law, q)), math.exp(q / 3), rel_tol=1e-9)
    assert est.sd(3) == math.inf
    with pytest.raises(tu.InfiniteVariance):
        est.variance(3)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 1.8])
def test_tables_with_zeros_under_discrete_gaussian_noise(sigma: float, unit: float) -> None:
    """A zero has no size of its own that E g could be compared with."""
    values = unit * np.eye(15)[2]
    est = tu.unbiased(
        lambda q: values[np.clip(np.asarray(q, int), 0, 14)],
        tu.DiscreteGaussian(sigma),
        tu.Integers(0, 14),
    )
    k = np.arange(-60.0, 61.0)
    masses = np.exp(-(k**2) / (2 * sigma**2))
    masses /= masses.sum()
    means = [est(q + k) @ masses for q in range(15)]
    assert np.abs(means - values).max() <= 1e-9 * unit


def test_values_of_any_size_keep_their_digits() -> None:
    """f spans 1.7 to 6e15, its variance 0.2 to 1e31: the small ones are as exact as the others."""
    masses = {-1: 0.1, 0: 0.8, 1: 0.1}
    est = tu.unbiased("(exp(q + 2) - 1)/(q + 2)", tu.Mass(masses), (-1, 38))
    for q in (-1, 0, 5, 38):
        g, v = ([h(float(q + k)) for k in masses] for h in (est, est.variance))
        mean = math.fsum(p * x for p, x in zip(masses.values(), g, strict=True))
        spread = math.fsum(p * (x - mean) ** 2 for p, x in zip(masses.values(), g, strict=True))
        estimated = math.fsum(p * x for p, x in zip(masses.values(), v, strict=True))
        assert mean == pytest.approx((math.exp(q + 2) - 1) / (q + 2), rel=1e-13)
        assert estimated == pytest.approx(spread, rel=1e-12)


def test_squares_beyond_the_doubles_are_refused() -> None:
    """e^{2n}, n ≤ 200, is finite, its square not."""
    est = tu.unbiased("exp(2*n)/n", tu.Mass({-1: 0.1, 0: 0.8, 1: 0.1}), (1, 200))
    with pytest.raises(tu.TrueupError, match="in double precision"):
        est.variance(60)


def test_values_of_which_doubles_lose_the_small_ones_are_refused() -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match="in doubles the mean is off"):
        tu.unbiased("exp(3*n)/n", tu.Mass({-1: 0.1, 0: 0.8, 1: 0.1}), (1, 80))


# -- sums of noises ----------------------------------------------------------------------


def sum_of(b: float, c: float) -> Law:
    """Return the law of a sum of discrete Laplace noises, by convolution."""
    k = np.arange(-1500, 1501.0)
    both = np.convolve(oracle.discrete_laplace(b).density(k), oracle.discrete_laplace(c).density(k))
    density = lambda z: both[(np.asarray(z) + 3000).astype(int)]  # noqa: E731
    return Law(density, 1.0, (45.0 * max(b, c), 90.0 * max(b, c)), lattice=True)


@pytest.mark.parametrize(("b", "c"), [(2, 3), (1, 1), (0.5, 6)])
@pytest.mark.parametrize("f", ["1/n", "log(n)", "max(n, 4)", "exp(-n/50)/n"])
def test_sums_of_discrete_laplace_noises_on_a_half_line(b: float, c: float, f: str) -> None:
    est, law = (
        tu.unbiased(f, tu.DiscreteLaplace(b) + tu.DiscreteLaplace(c), (1, None)),
        sum_of(b, c),
    )
    for q in (1, 2, 7, 60):
        mean, variance = moments(est, Axis(law, q))
        assert mean == pytest.approx(float(truth(f, n=q)), rel=1e-9, abs=1e-12)
        assert est.sd(q) == pytest.approx(math.sqrt(variance), rel=1e-8)
        assert expect(est.variance, Axis(law, q)) == pytest.approx(variance, rel=1e-7)


def test_sums_of_discrete_laplace_noises_have_the_least_averaged_variance() -> None:
    """On a half-line as on a long interval that begins at the same bound."""
    noise, law = tu.DiscreteLaplace(2) + tu.DiscreteLaplace(3), sum_of(2, 3)
    half = tu.unbiased("1/n", noise, (1, None))
    q, x = np.arange(1.0, 121.0), np.arange(-80.0, 201.0)
    best = least_norm(law, q, x, 1 / q, 1 / q)
    near = (x > -40) & (x < 60)
    assert np.allclose(half(x)[near], best[near], rtol=0, atol=1e-5 * np.abs(best).max())


def test_sums_of_discrete_laplace_noises_in_sql() -> None:
    est = tu.unbiased("1/n", tu.DiscreteLaplace(2) + tu.DiscreteLaplace(3), (1, None))
    for output, method in (("value", est), ("stderr", est.stderr)):
        x = np.array([-300.0, -12, 0, 1, 2, 3, 4, 30])
        text = est.sql("sqlite", output=output)
        assert len(text) < 20_000
        with sqlite3.connect(":memory:") as base:
            base.execute("CREATE TABLE cells (n)")
            base.executemany("INSERT INTO cells VALUES (?)", [(v,) for v in x.tolist()])
            found = base.execute("SELECT " + text + " FROM cells")  # noqa: S608
            values = [math.nan if v is None else v for (v,) in found]
        assert np.allclose(values, method(x), rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("f", ["1/n", "log(n)"])
def test_a_sum_of_laplace_noises_uses_that_a_count_is_whole(f: str) -> None:
    """Rounded to the nearest integer: the sd at 1 is a ninth of the one for real numbers."""
    noise, domain = tu.Laplace(2) + tu.Laplace(1), tu.Integers(1, 200)
    est, line = tu.unbiased(f, noise, domain), tu.unbiased(f, noise, (1, 200))
    assert "rounded to the nearest integer" in est.explain()
    assert est.sd(1) < {"1/n": 2.9, "log(n)": 2.82}[f] < line.sd(1) / 3
    k = np.arange(-200.0, 201.0)
    masses = noise.cdf(k + 0.5) - noise.cdf(k - 0.5)
    for q in (1, 2, 40, 200):
        g = est(q + k + 0.25)
        mean = masses @ g
        assert mean == pytest.approx(float(truth(f, n=q)), abs=1e-12)
        assert est.sd(q) == pytest.approx(math.sqrt(masses @ (g - mean) ** 2), rel=1e-9)
        assert masses @ est.variance(q + k - 0.4) == pytest.approx(est.sd(q) ** 2, rel=1e-8)
    assert est(4.49) == est(3.51) != est(3.49)


@pytest.mark.parametrize("c", ["1e-12", "1e-7", "3e-5", "0.3"])
@pytest.mark.parametrize("f", ["1/({c} - n)", "where(n < 0, s, s)/({c} - n)"])
def test_a_step_keeps_the_digits_of_a_small_decimal(f: str, c: str) -> None:
    """1e-12 − (n + 1) at n = −1 is 1e-12, to the last digits: f − λ(f₊ − 2f + f₋)."""
    noises = {"n": tu.DiscreteLaplace(1), "s": tu.Laplace(1)}
    names = ["n", "s"] if "s" in f else ["n"]
    est = tu.unbiased(f.format(c=c), {k: noises[k] for k in names}, {"n": (None, 0)})
    alpha = math.exp(-1)
    for n in (-3, -2, -1):
        here, right, left = (1 / (float(c) - k) for k in (n, n + 1, n - 1))
        truth = here - alpha / (1 - alpha) ** 2 * (right - 2 * here + left)
        assert est(**{"n": n, "s": 1.0} if "s" in f else {"n": n}) == pytest.approx(truth, 1e-10)
