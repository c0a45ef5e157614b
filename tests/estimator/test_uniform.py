"""Uniform noise: every function with a slope, against quadrature and polygamma functions."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.inverse.uniform_midpoints import Fading
from work import at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def panels(q: float, width: float, marks: list[float]) -> Iterator[tuple[Any, Any]]:
    """Yield nodes and weights of q + Z, in panels that end where a midpoint meets a mark."""
    low, high = q - width / 2, q + width / 2
    ends = {low, high}
    for mark in marks:
        first = math.ceil((low - mark) / width - 0.5)
        ends |= {mark + (first + j + 0.5) * width for j in range(-1, 3)}
    inner = sorted(e for e in ends if low <= e <= high)
    for a, b in itertools.pairwise(inner):
        yield (a + b) / 2 + (b - a) / 2 * NODES, (b - a) / 2 / width * WEIGHTS


def moments(
    estimator: tu.Estimator, q: float, width: float, marks: list[float]
) -> tuple[float, float, float]:
    """Return E g, Var g and E V̂."""
    rules = list(panels(q, width, marks))
    values = [estimator(x) for x, _ in rules]
    mean = sum(g @ w for g, (_, w) in zip(values, rules, strict=True))
    variance = sum((g - mean) ** 2 @ w for g, (_, w) in zip(values, rules, strict=True))
    estimated = sum(estimator.variance(x) @ w for x, w in rules)
    return mean, variance, estimated


def spline(q: float) -> float:
    return q**2 if q < 2 else 4 * q - 4 if q < 3 else 8 + 0.5 * (q - 3)


SPLINE = "where(q < 2, q**2, where(q < 3, 4*q - 4, 8 + (q - 3)/2))"

BOUNDED: list[tuple[str, Callable[[float], float], float, float, float, list[float]]] = [
    ("1/q", lambda q: 1 / q, 1, 1, 5, []),
    ("1/q", lambda q: 1 / q, 0.3, 1, 2.5, []),
    ("1/q", lambda q: 1 / q, 7, 1, 2.5, []),
    ("log(q)", math.log, 1.7, 0.5, 9, []),
    ("sqrt(q)", math.sqrt, 1, 0.25, 4, []),
    ("abs(q - 3)", lambda q: abs(q - 3), 0.8, 1, 5, [3]),
    ("q/(1 + q**2)", lambda q: q / (1 + q * q), 2, -3, 4, []),
    ("exp(-q**2)", lambda q: math.exp(-q * q), 1, -1, 2, []),
    (SPLINE, spline, 1.1, 0, 5, [2, 3]),
]


@pytest.mark.parametrize(("text", "f", "width", "low", "high", "kinks"), BOUNDED)
def test_bounded_domains(
    text: str, f: Callable[[float], float], width: float, low: float, high: float, kinks: Any
) -> None:
    estimator = tu.unbiased(text, tu.Uniform(width), (low, high))
    for q in (low, low + 0.37 * (high - low), high):
        mean, variance, estimated = moments(estimator, q, width, [low, high, *kinks])
        assert mean == pytest.approx(f(q), abs=1e-12)
        assert estimated == pytest.approx(variance, rel=1e-9, abs=1e-13)
        assert estimator.sd(q) ** 2 == pytest.approx(variance, rel=1e-9, abs=1e-13)
        assert estimator.expectation(q) == pytest.approx(f(q), abs=1e-14)


HALF_LINES: list[tuple[str, Callable[[float], float], float, Any, list[float]]] = [
    ("1/q", lambda q: 1 / q, 1, (1, None), []),
    ("1/q", lambda q: 1 / q, 2.5, (None, -0.5), []),
    ("log(q)", math.log, 0.7, (0.25, None), []),
    ("sqrt(q)", math.sqrt, 1, (0.5, None), []),
    ("sqrt(1 + q**2)", lambda q: math.sqrt(1 + q * q), 1, (0, None), []),
    ("abs(q - 3)", lambda q: abs(q - 3), 1.3, (1, None), [3]),
    ("q/(1 + q**2)", lambda q: q / (1 + q * q), 1.5, (0, None), []),
    ("exp(-q**2)", lambda q: math.exp(-q * q), 1, (0, None), []),
    ("exp(-q)/q", lambda q: math.exp(-q) / q, 1, (1, None), []),
    (SPLINE, spline, 1, (0, None), [2, 3]),
]


@pytest.mark.parametrize(("text", "f", "width", "domain", "kinks"), HALF_LINES)
def test_half_lines(
    text: str, f: Callable[[float], float], width: float, domain: Any, kinks: Any
) -> None:
    estimator = tu.unbiased(text, tu.Uniform(width), domain)
    bound, inward = (domain[0], 1) if domain[1] is None else (domain[1], -1)
    for q in (bound, bound + 1.7 * inward, bound + 9.3 * inward):
        mean, variance, estimated = moments(estimator, q, width, [bound, *kinks])
        assert mean == pytest.approx(f(q), rel=1e-12, abs=1e-15)
        assert estimated == pytest.approx(variance, rel=1e-9)
        assert estimator.sd(q) ** 2 == pytest.approx(variance, rel=1e-9)


HARDLY_SUMMED: list[tuple[str, Callable[[float], float], float, Any]] = [
    ("tanh(q**2)", lambda q: math.tanh(q * q), 1, (0, None)),
    (
        "log(q)*sqrt(1 + q**2)/(1 + q)",
        lambda q: math.log(q) * math.sqrt(1 + q * q) / (1 + q),
        0.1,
        (2, None),
    ),
]
"""One way to split the sum is left, or few derivatives are short."""


@pytest.mark.parametrize(("text", "f", "width", "domain"), HARDLY_SUMMED)
def test_a_sum_that_can_hardly_be_split_is_exact(
    text: str, f: Callable[[float], float], width: float, domain: Any
) -> None:
    estimator = tu.unbiased(text, tu.Uniform(width), domain)
    for q in (domain[0], domain[0] + 1.7):
        mean = sum(estimator(x) @ w for x, w in panels(q, width, [domain[0]]))
        assert mean == pytest.approx(f(q), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("j", [1, 2, 4])
def test_a_term_of_the_series_of_a_product_is_that_of_one_function(j: int) -> None:
    q = sympy.Symbol("q", real=True)
    branch = Fading("inside", None, {}, sympy.Rational(3, 2), sympy.S.One)
    left, right = 1 / q, sympy.log(q)
    term, whole = branch.term((left, right), q, j), branch.term((left * right,), q, j)
    for x in (1, 4, 30):
        assert float(term.subs(q, x)) == pytest.approx(float(whole.subs(q, x)), rel=1e-12)


@pytest.mark.parametrize("width", [1, 2, 0.3])
def test_polygamma_functions(width: float) -> None:
    """Trigamma for 1/q, digamma for log q, from the edge on to the far end."""
    inverse = tu.unbiased("1/q", tu.Uniform(width), (1, None))
    logarithm = tu.unbiased("log(q)", tu.Uniform(width), (1, None))
    for x in (1 - width / 2 + 1e-6, 1.3, 4.0, 77.0, 1e5, 1e12):
        u = mpmath.mpf(x) / mpmath.mpf(width) + mpmath.mpf(1) / 2
        digamma = float(mpmath.psi(0, u) + mpmath.log(width))
        assert inverse(x) == pytest.approx(float(mpmath.psi(1, u) / width), rel=3e-15)
        assert logarithm(x) == pytest.approx(digamma, rel=3e-15, abs=1e-15)


def test_the_variance_keeps_its_digits_far_away() -> None:
    """V̂ → w²f′²/12 = w²/(12 q⁴)."""
    estimator = tu.unbiased("1/q", tu.Uniform(1), (1, None))
    assert estimator.variance(1e6) == pytest.approx(1e-24 / 12, rel=1e-8)


def alignment(
    estimator: tu.Estimator, wave: Callable[[Any], Any], width: float, low: float, high: float
) -> float:
    """Return E g(x)·h(x), averaged over true values in [low, high], for a function of period w."""
    shifts = {bound + k * width for bound in (low, high) for k in range(-9, 9)}
    ends = sorted({low, high, *(s for s in shifts if low < s < high)})
    total = 0.0
    for a, b in itertools.pairwise(ends):
        for u, v in zip(*np.polynomial.legendre.leggauss(20), strict=True):
            q = (a + b) / 2 + (b - a) / 2 * u
            rules = panels(q, width, [low, high])
            total += (b - a) / 2 * v * sum((estimator(x) * wave(x)) @ w for x, w in rules)
    return total / (high - low)


@pytest.mark.parametrize(("width", "high"), [(1.0, 4.3), (0.7, 3.0), (3.0, 2.0)])
def test_no_periodic_function_lowers_the_averaged_variance(width: float, high: float) -> None:
    """Var(g + h) − Var g = 2 E g·h + E h² for h of period w and mean 0: E g·h averages to 0."""
    estimator = tu.unbiased("1/q", tu.Uniform(width), (1, high))
    other = tu.unbiased("1/q", tu.Uniform(width), (1, None))
    for k in (1, 3):
        for kind in (np.sin, np.cos):

            def wave(x: Any, kind: Any = kind, k: int = k) -> Any:
                return kind(2 * np.pi * k * x / width)

            assert abs(alignment(estimator, wave, width, 1, high)) < 1e-12
    assert abs(alignment(other, wave, width, 1, high)) > 1e-6


def test_products_with_other_statistics() -> None:
    mean = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.Uniform(1)}, {"n": (1, None)})
    alone = tu.unbiased("1/n", tu.Uniform(1), (1, None))
    assert mean(s=3.0, n=2.2) == pytest.approx(3 * alone(2.2), rel=1e-14)
    # Var(s)·E g² + s²·Var g, with Var(s) = 2·2²
    assert mean.sd(s=3.0, n=2.0) ** 2 == pytest.approx(
        8 * (alone.sd(2.0) ** 2 + 0.25) + 9 * alone.sd(2.0) ** 2, rel=1e-9
    )
    both = tu.unbiased("s*abs(n - 3)", {"s": tu.Uniform(2), "n": tu.Uniform(1)}, {"n": (1, 9)})
    assert both.expectation(s=3.0, n=2.0) == pytest.approx(3.0, rel=1e-12)


def test_outside_the_domain_the_bias_is_computed() -> None:
    estimator = tu.unbiased("1/q", tu.Uniform(1), (1, 4))
    mean, _, _ = moments(estimator, 0.8, 1, [1, 4])
    assert estimator.expectation(0.8) == pytest.approx(mean, rel=1e-11)
    assert estimator(-5.0) == estimator(0.5)
    assert estimator(99.0) == estimator(4.5)


def test_removable_points_and_given_slopes() -> None:
    sinc = tu.unbiased("sin(q)/q", tu.Uniform(1), (-1, 2))
    assert sinc.expectation(0.0) == pytest.approx(1.0, abs=1e-14)
    assert moments(sinc, 0.0, 1, [-1, 2])[0] == pytest.approx(1.0, abs=1e-12)
    given = tu.unbiased(
        lambda q: 1 / q,
        tu.Uniform(1),
        (1, 4),
        derivatives=(lambda q: -(q**-2.0), lambda q: 2 * q**-3.0),
    )
    assert given(2.2) == pytest.approx(tu.unbiased("1/q", tu.Uniform(1), (1, 4))(2.2), rel=1e-14)


def test_it_is_written_down_and_read_back() -> None:
    for domain in ((1, 4), (1, None)):
        estimator = tu.unbiased("1/q", tu.Uniform(1), domain)
        again = tu.Estimator.from_json(estimator.to_json())
        assert again(2.3) == estimator(2.3)
        duckdb = pytest.importorskip("duckdb")
        for output, function in (("value", estimator), ("variance", estimator.variance)):
            column = estimator.sql(output=output)
            for x in (0.2, 0.5, 1.5, 2.3, 4.6):
                query = f"SELECT {column} FROM (SELECT {x}::DOUBLE AS q)"  # noqa: S608
                (found,) = duckdb.execute(query).fetchone()
                assert found == pytest.approx(function(x), rel=1e-11, abs=1e-13)


def test_it_is_explained() -> None:
    assert "flat prior" in tu.unbiased("1/q", tu.Uniform(1), (1, 4)).explain()
    assert "the one that fades" in tu.unbiased("1/q", tu.Uniform(1), (1, None)).explain()
    assert "variance grows with |q|" in tu.unbiased("cos(2*pi*q)", tu.Uniform(1)).explain()


@pytest.mark.parametrize(
    ("formula", "domain", "proved", "reason"),
    [
        ("where(q > 2, 1, 0)", (0, 5), True, "jump at 2"),
        ("1/q", (-1, 1), True, "pole at 0"),
        ("1/q", (0, None), True, "pole at 0"),
        ("where(q == 2, 5, 1/q)", (1, 4), True, "not its limit"),
        ("sqrt(q)", (-1, 4), True, "not a real number"),
        ("sqrt(q)", (0, 4), False, "infinite slope at 0"),
        ("log(q)", (1, 100), False, "at most 64 slopes"),
        ("abs(q)", None, False, "the domain has no end"),
        ("sin(q**2)", (0, None), False, "could not be summed"),
    ],
)
def test_what_is_refused(formula: str, domain: Any, proved: bool, reason: str) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match=reason) as caught:
        tu.unbiased(formula, tu.Uniform(1), domain)
    assert caught.value.proved is proved
    assert ("was found" in str(caught.value)) is not proved


def test_a_width_per_row_is_refused() -> None:
    with pytest.raises(tu.TrueupError, match="only polynomials can be debiased"):
        tu.unbiased("1/q", tu.Uniform(1), (1, None))._scaled(("q",))


def test_bounds_without_a_double_between_them_are_refused():
    with pytest.raises(tu.TrueupError, match="was found"):
        tu.unbiased("min(sqrt(q), q)", tu.Uniform(3), (0.9999999999999999, 1))


@pytest.mark.parametrize("far", [1e4, 1e6, 1e8])
def test_a_function_that_hardly_varies_has_a_variance(far: float) -> None:
    """Of f less its mean half the digits are left, and of its square none in doubles."""
    est = tu.unbiased(f"1/((q - 100) + {far!r})", tu.Uniform(1), (100, 100.1))
    x = 100.03 + (np.arange(2000) + 0.5) / 2000 - 0.5
    assert np.mean(est.variance(x)) == pytest.approx(np.var(est(x)), rel=1e-5)
    assert est.sd(100.03) == pytest.approx(np.std(est(x)), rel=1e-5)


def test_covariances_too_many_to_write_down_are_refused_before_any_is_made() -> None:
    """Counted, not timed: it took minutes, while sd(q) is exact and takes none."""
    noises = {"a": tu.DiscreteLaplace(10), "b": tu.Uniform(0.3)}
    est = tu.unbiased("((b + a)/(1 + b**2))**3", noises, {"a": (0, None), "b": (None, 40.1)})
    with at_most(1_000_000), pytest.raises(tu.TrueupError, match="4 sums of slopes"):
        est.variance(a=3, b=2.0)
    assert 0 < est.sd(a=3, b=39.0) < 1


def test_covariances_of_few_sums_of_slopes_are_written_down() -> None:
    """E V̂ is Var g: exact sums along a, midpoints along b."""
    noises = {"a": tu.DiscreteLaplace(1), "b": tu.Uniform(1)}
    est = tu.unbiased("a/b + a**2/(1 + b)", noises, {"a": (0, None), "b": (2, None)})
    z, u = np.arange(-60, 61), (np.arange(400) + 0.5) / 400 - 0.5
    alpha = math.exp(-1)
    mass = (1 - alpha) / (1 + alpha) * alpha ** np.abs(z) / len(u)
    x = {"a": np.repeat(2.0 + z, len(u)), "b": np.tile(3.3 + u, len(z))}
    weights = np.repeat(mass, len(u))
    g = est(**x)
    variance = weights @ (g - weights @ g) ** 2
    assert weights @ est.variance(**x) == pytest.approx(variance, rel=1e-4)
