"""E g = f and E V̂ = Var g, by quadrature and sums that know nothing of the library.

Every Hypothesis example is one drawn case: a function, a noise, a domain and a true value.
``CASES`` says how many each family draws at the full depth, 2,300 in all (``depth.py``); the last
test counts those that ran.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import depth
import oracle
import trueup as tu
from estimator import drawn
from estimator.drawn import (
    RAN,
    Check,
    Formula,
    axis,
    called,
    close,
    decimals,
    scales,
    truth,
    word,
)

CASES = {
    "laplace_line": 300,
    "laplace_half": 260,
    "laplace_interval": 180,
    "laplace_zero": 80,
    "laplace_extension": 160,
    "discrete_line": 120,
    "discrete_bounded": 150,
    "discrete_below": 60,
    "discrete_table": 100,
    "discrete_callable": 80,
    "gaussian": 100,
    "discrete_gaussian": 100,
    "staircase": 90,
    "uniform": 90,
    "student_t": 90,
    "scipy": 100,
    "moments": 100,
    "two_statistics": 80,
    "cells": 50,
    "three_statistics": 10,
}


def number(family: str) -> int:
    """Return how many cases of a family are drawn."""
    return depth.examples(CASES[family], least=10)


def cases(family: str) -> settings:
    """Return the settings of a family."""
    return settings(max_examples=number(family))


# -- Laplace -----------------------------------------------------------------------------


@cases("laplace_line")
@given(st.data())
def test_laplace_on_the_line(data: st.DataObject) -> None:
    RAN["laplace_line"] += 1
    b = data.draw(scales())
    f = data.draw(
        st.one_of(
            drawn.polynomials(),
            drawn.waves(powers=2),
            drawn.exponentials(b, (0.05, 0.2, 0.42)),
            drawn.exponentials(b, (0.55, 0.65, 0.8)),
            drawn.piecewise(),
            drawn.huber(),
            drawn.smooth(),
        )
    )
    q = data.draw(decimals(-6, 6))
    check = Check(tu.unbiased(f.text, tu.Laplace(b)))
    finite = f.finite_variance(b, None, None)
    check.unbiased(f(q), axis(oracle.laplace(b), q, f), finite=finite)


@cases("laplace_half")
@given(st.data())
def test_laplace_on_half_lines(data: st.DataObject) -> None:
    RAN["laplace_half"] += 1
    b, bound = data.draw(scales()), data.draw(decimals(0.3, 5))
    f, left = data.draw(drawn.positive()), data.draw(st.booleans())
    q, wrong = bound + data.draw(decimals(0, 12)), bound - data.draw(decimals(0.01, 6))
    domain: tuple[Any, Any] = (bound, None)
    if left:
        f, bound, q, wrong, domain = drawn.mirrored(f), -bound, -q, -wrong, (None, -bound)
    check = Check(tu.unbiased(f.text, tu.Laplace(b), domain))
    law = oracle.laplace(b)
    check.unbiased(f(q), axis(law, q, f, bound))
    check.outside(f(wrong), axis(law, wrong, f, bound))


@st.composite
def intervals(draw: Any, low: float = 0.3, high: float = 4.0) -> tuple[float, float]:
    """Draw bounds, sometimes equal."""
    start = draw(decimals(low, high))
    return start, start + draw(st.one_of(st.just(0), decimals(0.05, 8)))


@cases("laplace_interval")
@given(st.data())
def test_laplace_on_intervals(data: st.DataObject) -> None:
    RAN["laplace_interval"] += 1
    b, (low, high) = data.draw(scales()), data.draw(intervals())
    f = data.draw(st.one_of(drawn.positive(bounded=True), drawn.polynomials(), drawn.smooth()))
    q = low + data.draw(st.floats(0, 1)) * (high - low)
    wrong = data.draw(st.sampled_from([low - 1.5, high + 2.5]))
    check = Check(tu.unbiased(f.text, tu.Laplace(b), (low, high)))
    law = oracle.laplace(b)
    q = min(q, high)
    check.unbiased(f(q), axis(law, q, f, low, high))
    check.outside(f(wrong), axis(law, wrong, f, low, high))


@cases("laplace_zero")
@given(st.data())
def test_laplace_from_zero(data: st.DataObject) -> None:
    """Powers on [0, ∞): g may be infinite at 0; below 3/2 its square is not integrable."""
    RAN["laplace_zero"] += 1
    b = data.draw(scales())
    p = data.draw(st.sampled_from([1.2, 1.3, "(3/2)", 1.6, 1.7, 1.9, 2.3, 2.5, 3.2, "(5/2)"]))
    other = ["abs(q)", "max(q, 0)", "sqrt(q + 1)", "log(q + 1)", "q/(q + 2)", "q*sqrt(q + 1)"]
    text = data.draw(st.sampled_from([f"q**{p}", f"q**{p} - 2*q", f"3*q**{p} + 1", *other]))
    q = data.draw(st.one_of(st.just(0), decimals(0, 12)))
    f = Formula(text)
    finite = "**" not in text or p not in (1.2, 1.3, "(3/2)")
    place = axis(oracle.laplace(b), q, f, 0.0, singular=True)
    Check(tu.unbiased(text, tu.Laplace(b), (0, None))).unbiased(f(q), place, finite=finite)


@cases("laplace_extension")
@given(st.data())
def test_the_paper_s_extension(data: st.DataObject) -> None:
    RAN["laplace_extension"] += 1
    b, k = data.draw(scales(0.5, 3)), data.draw(st.integers(2, 12))
    low = data.draw(decimals(0.5, 4))
    high = data.draw(st.one_of(st.none(), decimals(0.5, 6).map(lambda w: low + w)))
    f = data.draw(st.one_of(drawn.positive(bounded=high is not None), drawn.polynomials(0, 3)))
    q = low + data.draw(st.floats(0, 1)) * (8 if high is None else high - low)
    q = q if high is None else min(q, high)
    check = Check(tu.unbiased(f.text, tu.Laplace(b), (low, high), extension=k))
    law, wrong = oracle.laplace(b), low - data.draw(decimals(0.1, 3))
    check.unbiased(f(q), axis(law, q, f, low, high))
    check.outside(f(wrong), axis(law, wrong, f, low, high))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_extension_above_a_bound_and_of_a_ratio(k: int) -> None:
    f = Formula("1/q")
    above = Check(tu.unbiased("1/q", tu.Laplace(2), (None, -1), extension=k))
    for q in (-1.0, -4.5):
        above.unbiased(1 / q, axis(oracle.laplace(2), q, f, -1.0))
    noise = {"s": tu.Gaussian(1), "n": tu.Laplace(2)}
    ratio = Check(tu.unbiased("s/n", noise, {"n": (1, None)}, extension=k), ("s", "n"))
    place = oracle.Axis(oracle.laplace(2), 3.0, (1.0,), math.inf, 0.2)
    ratio.unbiased(1.5, oracle.Axis(oracle.gaussian(1), 4.5), place)


@pytest.mark.parametrize("c", [1e-9, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize(("text", "power"), [("1/q", -1), ("sqrt(q)", 0.5), ("q**2", 2)])
def test_units_do_not_matter(text: str, power: float, c: float) -> None:
    """Measure q, b and L in another unit: everything scales like f."""
    one = tu.unbiased(text, tu.Laplace(2), (1, 50))
    other = tu.unbiased(text, tu.Laplace(2 * c), (c, 50 * c))
    x = np.array([-3.0, 0.5, 1.5, 7.0, 49.0, 60.0])
    for name in ("__call__", "expectation", "sd", "stderr"):
        scaled = getattr(other, name)(c * x) / c**power
        np.testing.assert_allclose(scaled, getattr(one, name)(x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("steepness", [1, 20, 50])
def test_steep_functions(steepness: int) -> None:
    """A detail much narrower than the noise is not missed."""
    text = f"tanh({steepness}*q)"
    check = Check(tu.unbiased(text, tu.Laplace(1)))
    for q in (0.3, -2.0):
        place = oracle.Axis(oracle.laplace(1), q, (0.0,), 1 / steepness)
        check.unbiased(math.tanh(steepness * q), place)


def test_the_extension_of_degree_500() -> None:
    """E g = f to 1e-9; the sd is that of the least-norm series, summed here."""
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=500)
    for q in (1.0, 1.7, 4.0, 20.0):
        place = oracle.Axis(oracle.laplace(2), q, (1.0,), feature=0.25)
        assert abs(oracle.expect(est, place, order=20) - 1 / q) <= 1e-9
        assert abs(est.expectation(q) - 1 / q) <= 1e-9


# -- discrete Laplace --------------------------------------------------------------------


@st.composite
def lattice_formulas(draw: Any, b: float) -> Formula:
    """Draw any function on the integers: kinks and jumps are welcome."""
    a, v = draw(st.integers(-4, 8)), word(draw(decimals(-2, 2)))
    c = draw(st.sampled_from([0.1, 0.4])) / float(b) * draw(drawn.signs())
    text = draw(
        st.sampled_from(
            [
                f"where(q > {a}, 1, 0)",
                f"where(q == {a}, {v}, 1)",
                f"abs(q - {a})",
                f"max(q, {a})",
                f"min(q, {a})**2",
                f"where(q >= {a}, sqrt(q - {a}), {v})",
                f"where(q < {a}, q, {v}*q**2)",
                f"exp({word(c)}*q)",
                f"{v}*q**3 - q",
                "1/(q**2 + 1)",
                "cos(q) + sin(2*q)/3",
                "log(abs(q) + 1)",
                "sqrt(abs(q))",
                f"where(q != 0, 1/abs(q), {v})",
            ]
        )
    )
    return Formula(text)


@cases("discrete_line")
@given(st.data())
def test_discrete_laplace_on_the_integers(data: st.DataObject) -> None:
    RAN["discrete_line"] += 1
    b = data.draw(scales(0.2, 5))
    f, q = data.draw(lattice_formulas(b)), data.draw(st.integers(-9, 12))
    check = Check(tu.unbiased(f.text, tu.DiscreteLaplace(b)))
    check.unbiased(f(q), axis(oracle.discrete_laplace(b), q, f))


@st.composite
def integer_domains(draw: Any, low: int = 1) -> tuple[int | None, int | None]:
    """Draw half-lines, intervals, pairs of neighbours, single integers."""
    start = draw(st.integers(low, 6))
    width = draw(st.sampled_from([None, None, 0, 1, 2, 3, 9, 40]))
    return start, None if width is None else start + width


@cases("discrete_bounded")
@given(st.data())
def test_discrete_laplace_with_bounds(data: st.DataObject) -> None:
    RAN["discrete_bounded"] += 1
    b, (low, high) = data.draw(scales(0.2, 5)), data.draw(integer_domains())
    f = data.draw(st.one_of(lattice_formulas(b), drawn.positive(bounded=high is not None)))
    q = data.draw(st.integers(low, low + 15 if high is None else high))
    wrong = data.draw(st.sampled_from([low - 1, low - 4, (high or 0) + 3]))
    if high is not None:  # what outgrows the noise by far cancels to nothing in doubles
        assume(abs(f(high)) < 1e6 * math.exp((high - low) / b))
    domain = data.draw(st.sampled_from([(low, high), tu.Integers(low, high)]))
    check = Check(tu.unbiased(f.text, tu.DiscreteLaplace(b), domain))
    law = oracle.discrete_laplace(b)
    check.unbiased(f(q), axis(law, q, f))
    check.outside(f(wrong), axis(law, wrong, f))


@cases("discrete_below")
@given(st.data())
def test_discrete_laplace_below_a_bound(data: st.DataObject) -> None:
    RAN["discrete_below"] += 1
    b, high = data.draw(scales(0.2, 5)), data.draw(st.integers(-6, -1))
    f = drawn.mirrored(data.draw(st.one_of(lattice_formulas(b), drawn.positive())))
    q = high - data.draw(st.integers(0, 15))
    check = Check(tu.unbiased(f.text, tu.DiscreteLaplace(b), (None, high)))
    check.unbiased(f(q), axis(oracle.discrete_laplace(b), q, f))


@cases("discrete_table")
@given(st.data())
def test_discrete_laplace_and_tables(data: st.DataObject) -> None:
    RAN["discrete_table"] += 1
    b, low = data.draw(scales(0.2, 5)), data.draw(st.integers(-5, 5))
    values = data.draw(st.lists(decimals(-5, 5), min_size=1, max_size=12))
    i = data.draw(st.integers(0, len(values) - 1))
    table = {low + j: v for j, v in enumerate(values)}
    check = Check(tu.unbiased(table, tu.DiscreteLaplace(b)))
    check.unbiased(values[i], oracle.Axis(oracle.discrete_laplace(b), low + i))


def _stepwise(n: float) -> float:
    """Return something only a Python function can say; scalars only."""
    n = int(n)
    return math.log(n) if n > 3 else float(n % 2)


CALLABLES = {
    "scalar": _stepwise,
    "vectorised": lambda n: np.sqrt(np.abs(n)) - (n > 2),
    "bits": lambda n: float(int(n).bit_count()),
    "constant": lambda n: 3,
}


@cases("discrete_callable")
@given(st.data())
def test_discrete_laplace_and_python_functions(data: st.DataObject) -> None:
    RAN["discrete_callable"] += 1
    b, f = data.draw(scales(0.2, 4)), CALLABLES[data.draw(st.sampled_from(sorted(CALLABLES)))]
    low = data.draw(st.one_of(st.none(), st.integers(-5, 5)))
    high = data.draw(st.one_of(st.none(), st.integers(5, 30)))
    q = data.draw(st.integers(-6 if low is None else low, 9 if high is None else high))
    check = Check(tu.unbiased(f, tu.DiscreteLaplace(b), (low, high)))
    check.unbiased(float(f(q)), oracle.Axis(oracle.discrete_laplace(b), q))


# -- exponential polynomials under other noise -------------------------------------------


@st.composite
def exponential_polynomials(draw: Any, fastest: float, steepest: float) -> Formula:
    """Draw sums of x^p e^{cx}, waves with |u| ≤ fastest, |c| ≤ steepest."""
    v, c = word(draw(decimals(-2, 2))), draw(decimals(0.05, 1)) * steepest
    u, s = word(draw(decimals(0.1, 1)) * fastest), word(c * draw(drawn.signs()))
    text = draw(
        st.sampled_from(
            [
                f"cos({u}*q)",
                f"{v}*sin({u}*q) + q",
                f"q*sin({u}*q)",
                f"q**2*cos({u}*q + 1)",
                f"exp({s}*q)",
                f"q**2*exp({s}*q) - {v}",
                f"sinh({s}*q)",
                f"cosh({s}*q)*q",
                f"exp({s}*q)*cos({u}*q)",
                f"sin({u}*q)**2",
                f"sin({u}*q)*cos({u}*q)*q",
            ]
        )
    )
    return Formula(text)


def one_of_both(fastest: float, steepest: float, degree: int = 4) -> st.SearchStrategy[Formula]:
    """Return polynomials and exponential polynomials."""
    return st.one_of(drawn.polynomials(0, degree), exponential_polynomials(fastest, steepest))


@cases("gaussian")
@given(st.data())
def test_gaussian(data: st.DataObject) -> None:
    RAN["gaussian"] += 1
    s = data.draw(scales())
    f, q = data.draw(one_of_both(1.5 / float(s), 0.9 / float(s))), data.draw(decimals(-4, 4))
    Check(tu.unbiased(f.text, tu.Gaussian(s))).unbiased(f(q), axis(oracle.gaussian(s), q, f))


@cases("discrete_gaussian")
@given(st.data())
def test_discrete_gaussian(data: st.DataObject) -> None:
    RAN["discrete_gaussian"] += 1
    s = data.draw(scales(0.3, 6))
    speed = min(1.5 / float(s), 1.2)
    f, q = data.draw(one_of_both(speed, speed / 2)), data.draw(st.integers(-4, 6))
    law = oracle.discrete_gaussian(s)
    Check(tu.unbiased(f.text, tu.DiscreteGaussian(s))).unbiased(f(q), axis(law, q, f))


@cases("staircase")
@given(st.data())
def test_staircase(data: st.DataObject) -> None:
    RAN["staircase"] += 1
    e, d = data.draw(scales(0.5, 4)), data.draw(scales(0.5, 2))
    gamma = data.draw(st.one_of(st.none(), decimals(0, 1)))
    rate = float(e) / float(d)
    f = data.draw(one_of_both(min(1.2, 1.2 / float(d)), min(0.42 * rate, 1.2), degree=3))
    q = data.draw(decimals(-4, 4))
    check = Check(tu.unbiased(f.text, tu.Staircase(e, d, gamma)))
    check.unbiased(f(q), axis(oracle.staircase(e, d, gamma), q, f))


@cases("uniform")
@given(st.data())
def test_uniform(data: st.DataObject) -> None:
    RAN["uniform"] += 1
    w = data.draw(scales(0.3, 4))
    f, q = data.draw(one_of_both(4.5 / float(w), 1.0)), data.draw(decimals(-4, 4))
    Check(tu.unbiased(f.text, tu.Uniform(w))).unbiased(f(q), axis(oracle.uniform(w), q, f))


@cases("student_t")
@given(st.data())
def test_student_t(data: st.DataObject) -> None:
    """Polynomials below order ν, variance below ν/2."""
    RAN["student_t"] += 1
    df, s = data.draw(st.sampled_from([5, 6, 7.5, 9, 12])), data.draw(scales(0.3, 2))
    q = data.draw(decimals(-3, 3))
    degree = data.draw(st.integers(1, 4))
    f = dataclasses.replace(data.draw(drawn.polynomials(degree, degree)), feature=math.inf)
    check = Check(tu.unbiased(f.text, tu.StudentT(df, s)))
    check.unbiased(f(q), axis(oracle.student_t(df, s), q, f), finite=2 * degree < df)


@st.composite
def scipy_laws(draw: Any) -> tuple[Any, oracle.Law, bool]:
    """Draw a frozen scipy distribution, the same law written by hand, and whether it is integer."""
    s = float(draw(scales(0.4, 1.5)))
    mu = draw(st.integers(1, 5))
    name = draw(st.sampled_from(["norm", "logistic", "triang", "expon", "poisson"]))
    if name == "norm":
        return scipy.stats.norm(scale=s), oracle.gaussian(s), False
    if name == "logistic":
        return scipy.stats.logistic(scale=s), oracle.logistic(s), False
    if name == "triang":
        law = oracle.triangular(-s, -s + 0.25 * 3 * s, 2 * s)
        return scipy.stats.triang(0.25, loc=-s, scale=3 * s), law, False
    if name == "expon":
        return scipy.stats.expon(loc=-s, scale=s), oracle.exponential(-s, s), False
    return scipy.stats.poisson(mu, loc=-mu), oracle.poisson(mu, -mu), True


@cases("scipy")
@given(st.data())
def test_scipy_laws(data: st.DataObject) -> None:
    RAN["scipy"] += 1
    frozen, law, whole = data.draw(scipy_laws())
    f = data.draw(drawn.polynomials(0, 2))  # of whose square scipy states the moments
    q = data.draw(st.integers(-4, 6) if whole else decimals(-4, 4))
    check = Check(tu.unbiased(f.text, tu.Noise.from_scipy(frozen)))
    check.unbiased(f(q), axis(law, q, f))


# -- only moments are known --------------------------------------------------------------


@st.composite
def three_points(draw: Any) -> list[tuple[int, Fraction]]:
    """Draw three integers and their probabilities, exact."""
    values = draw(st.lists(st.integers(-4, 4), min_size=3, max_size=3, unique=True))
    weights = draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
    return [(v, Fraction(w, sum(weights))) for v, w in zip(values, weights, strict=True)]


@cases("moments")
@given(three_points(), drawn.polynomials(1, 4), decimals(-4, 4))
def test_moments(atoms: list[tuple[int, Fraction]], f: Formula, q: float) -> None:
    RAN["moments"] += 1
    raw = [sum(p * Fraction(v) ** k for v, p in atoms) for k in range(1, 9)]
    place = oracle.Axis(oracle.points(atoms), q)
    Check(tu.unbiased(f.text, tu.Moments(raw))).unbiased(f(q), place)


# -- several statistics ------------------------------------------------------------------


def _pair(kind: str, scale: Any) -> tuple[tu.Noise, oracle.Law]:
    noise = {
        "laplace": (tu.Laplace, oracle.laplace),
        "gaussian": (tu.Gaussian, oracle.gaussian),
        "uniform": (tu.Uniform, oracle.uniform),
        "discrete_laplace": (tu.DiscreteLaplace, oracle.discrete_laplace),
        "discrete_gaussian": (tu.DiscreteGaussian, oracle.discrete_gaussian),
    }[kind]
    return noise[0](scale), noise[1](scale)


SMOOTH = (math.inf, 0.2)
"""Integrands like 1/n or log(n): wide panels, narrow ones only near a bound."""
FREE = ["laplace", "gaussian", "uniform", "discrete_laplace", "discrete_gaussian"]
BOUNDED = ["laplace", "discrete_laplace"]
RATIOS = [
    "s/n",
    "s**2/n**2",
    "s*log(n)",
    "(s - 1)/sqrt(n)",
    "s/n + s**2",
    "s*n",
    "(s + n)**2/n",
    "sin(s/3)*log(n) + 1/n",
    "exp(s/8)/n",
]


@cases("two_statistics")
@given(st.data())
def test_ratios(data: st.DataObject) -> None:
    """One statistic with a bound, one without, in mixed families."""
    RAN["two_statistics"] += 1
    text = data.draw(st.sampled_from(RATIOS))
    (s_noise, s_law), (n_noise, n_law) = (
        _pair(data.draw(st.sampled_from(kinds)), data.draw(scales(0.5, 2)))
        for kinds in (FREE, BOUNDED)
    )
    low, s = data.draw(st.integers(1, 4)), data.draw(st.integers(-5, 9))
    n = low + data.draw(st.integers(0, 12))
    est = tu.unbiased(text, {"s": s_noise, "n": n_noise}, {"n": (low, None)})
    axes = oracle.Axis(s_law, s, feature=9.0), oracle.Axis(n_law, n, (low,), *SMOOTH)
    check = Check(est, ("s", "n"))
    check.unbiased(truth(text, s=s, n=n), *axes)
    if n == low:  # now and then, what a wrong bound costs
        wrong = dataclasses.replace(axes[1], q=low - 3)
        check.outside(truth(text, s=s, n=low - 3), axes[0], wrong)


CELLS = ["1/(n + m)", "log(n + m)", "sqrt(n + m)", "n/(n + m)", "(n - m)/(n + m)", "1/(n*m)"]
LATTICE_CELLS = ["max(n, m)", "where(n > m, 1, 0)", "min(n, 3)*m", "abs(n - m)/(n + m)"]


@cases("cells")
@given(st.data())
def test_sums_of_cells(data: st.DataObject) -> None:
    """Each cell with its own bounds; kinks where both noises are on the integers."""
    RAN["cells"] += 1
    kinds = data.draw(st.tuples(st.sampled_from(BOUNDED), st.sampled_from(BOUNDED)))
    whole = kinds == ("discrete_laplace", "discrete_laplace")
    text = data.draw(st.sampled_from(CELLS + LATTICE_CELLS * whole))
    pairs = [_pair(kind, data.draw(scales(0.5, 2))) for kind in kinds]
    lows = [data.draw(st.integers(1, 3)) for _ in kinds]
    highs = [data.draw(st.sampled_from([None, low, low + 1, low + 7])) for low in lows]
    q = [
        data.draw(st.integers(low, low + 9 if high is None else high))
        for low, high in zip(lows, highs, strict=True)
    ]
    noise = dict(zip("nm", (p[0] for p in pairs), strict=True))
    est = tu.unbiased(text, noise, dict(zip("nm", zip(lows, highs, strict=True), strict=True)))
    axes = [
        oracle.Axis(law, at, tuple(b for b in (low, high) if b is not None), *SMOOTH)
        for (_, law), at, low, high in zip(pairs, q, lows, highs, strict=True)
    ]
    f = truth(text, **dict(zip("nm", q, strict=True)))
    Check(est, ("n", "m")).unbiased(f, *axes)


THREE = ["(a - b)/n", "a/(b + n)", "1/(a + b + n)", "a*b/n", "log(a + b + n)", "a**2*b - n"]


@cases("three_statistics")
@given(st.data())
def test_three_statistics(data: st.DataObject) -> None:
    RAN["three_statistics"] += 1
    text = data.draw(st.sampled_from(THREE))
    pairs = [_pair("discrete_laplace", data.draw(scales(0.25, 0.5))) for _ in "abn"]
    q = {name: data.draw(st.integers(2, 7)) for name in "abn"}
    est = tu.unbiased(
        text,
        dict(zip("abn", (p[0] for p in pairs), strict=True)),
        {"a": (1, None), "b": (2, None), "n": (1, 8)},
    )
    axes = [oracle.Axis(p[1], q[name]) for p, name in zip(pairs, "abn", strict=True)]
    Check(est, ("a", "b", "n")).unbiased(truth(text, **q), *axes)


@pytest.mark.parametrize("text", depth.few(["1/(a + b + n)", "a*log(b + n)"], 1))
def test_three_laplace_cells(text: str) -> None:
    noise = {"a": tu.Laplace(1), "b": tu.Laplace(Fraction(1, 2)), "n": tu.Laplace(0.7)}
    est = tu.unbiased(text, noise, {"a": (1, None), "b": (2, 9), "n": (3, None)})
    q = {"a": 2.0, "b": 3.5, "n": 6.0}
    bounds = {"a": (1.0,), "b": (2.0, 9.0), "n": (3.0,)}
    axes = [
        oracle.Axis(oracle.laplace(b, laguerre=True), q[name], bounds[name], *SMOOTH)
        for name, b in (("a", 1), ("b", 0.5), ("n", 0.7))
    ]
    f, names = truth(text, **q), ("a", "b", "n")
    mean, variance = oracle.moments(called(est, names), *axes, order=20)
    spread = oracle.expect(called(est.variance, names), *axes, order=20)
    assert close(mean, f)
    assert close(spread, variance)
    with pytest.raises(tu.TrueupError, match="too large to compute"):
        est.sd(**q)


# -- the count ---------------------------------------------------------------------------


def test_two_thousand_cases_are_drawn() -> None:
    assert sum(CASES.values()) >= 2000
    for family, ran in RAN.items():  # those that ran here: all of them in one process
        assert ran >= number(family), f"{family}: {ran} of {number(family)} cases"
