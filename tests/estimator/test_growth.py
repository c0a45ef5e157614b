"""Orders of growth, and what they decide: expectations and variances on an unbounded side."""

from __future__ import annotations

import math

import pytest
import sympy

import trueup as tu
from trueup.inverse.growth import growth

Q = sympy.Symbol("q", real=True)


@pytest.mark.parametrize("noise", [tu.Laplace(1), tu.DiscreteLaplace(1)], ids=repr)
@pytest.mark.parametrize(
    ("power", "logarithms", "finite"),
    [
        (-0.25, 0, False),
        (-0.5, 0, False),
        (-0.5, -0.5, False),
        (-0.5, -1, True),
        (-0.75, 0, True),
        (-0.75, 3, True),
    ],
)
def test_a_variance_is_finite_where_the_square_has_an_integral(
    power: float, logarithms: float, finite: bool, noise: tu.Noise
) -> None:
    """At the rate of the noise ∫ x^p·(log x)^k dx decides: p < −1, or p = −1 and k < −1."""
    assert has_variance(f"exp(q/2)*q**{power}*log(q)**{logarithms}", noise) == finite


def has_variance(f: str, noise: tu.Noise) -> bool:
    """Return whether the library says so."""
    est = tu.unbiased(f, noise, (3, None))
    try:
        return math.isfinite(est.variance(9.0))
    except tu.InfiniteVariance:
        assert est.sd(9.0) == math.inf
        return False


@pytest.mark.parametrize(
    ("f", "finite"),
    [
        ("exp(q/2 + sqrt(q))", False),
        ("exp(q/2)/q*cosh(sqrt(q))", False),
        ("exp(q/2)*atan(q)", False),
        ("exp(q/2)*atan(1/q)", True),
        ("exp(q/2)*tanh(exp(-q/4))", True),
    ],
)
def test_factors_that_fall_make_room_for_the_rate_of_the_noise(f: str, finite: bool) -> None:
    assert has_variance(f, tu.Laplace(1)) == finite


def test_an_iterated_logarithm_is_bounded_by_a_logarithm() -> None:
    twice = sympy.log(sympy.log(Q))
    assert growth(twice, Q, 1).size == growth(sympy.log(Q), Q, 1).size
    assert growth(1 / twice, Q, 1).size == (math.inf, 0.0)
    assert growth(twice / Q**0.001, Q, 1).size < (0.0, 0.0)


@pytest.mark.parametrize(
    ("f", "proved"),
    [
        ("where(sin(m) + cos(m) > 1.9, exp(3*q), 1)", False),  # it never is
        ("where(m > 100, exp(3*q), exp(2*q))", False),
        ("where(q > 100, exp(3*q), m)", True),
    ],
)
def test_growth_is_proved_if_the_case_that_grows_is_seen_far_out(f: str, proved: bool) -> None:
    noise = dict.fromkeys("qm", tu.DiscreteLaplace(1))
    with pytest.raises(tu.NoUnbiasedEstimator) as info:
        tu.unbiased(f, noise, dict.fromkeys("qm", (0, None)))
    assert info.value.proved == proved


@pytest.mark.parametrize(
    ("f", "size"),
    [
        (1 / sympy.sin(sympy.pi * Q), (math.inf, 0.0)),
        (1 / (sympy.sqrt(Q + 1) - sympy.sqrt(Q)), (math.inf, 0.0)),
        (1 / (Q * (Q + 1) - Q**2), (0.0, -1.0)),
    ],
)
def test_where_leading_terms_may_cancel_the_order_is_a_bound(f: sympy.Expr, size: object) -> None:
    assert growth(f, Q, 1).size == size


@pytest.mark.parametrize(
    ("f", "direction", "size"),
    [
        (sympy.Min(Q, 1, sympy.exp(Q)), 1, (0.0, 0.0)),
        (sympy.Min(Q, 1, sympy.exp(Q)), -1, (0.0, 1.0)),
        (sympy.Max(Q, -1, -sympy.exp(Q)), 1, (0.0, 1.0)),
        (sympy.Max(1, sympy.exp(Q)), 1, (1.0, 0.0)),
        (sympy.Max(1, sympy.exp(Q) * sympy.sin(Q)), 1, (1.0, 0.0)),
        (sympy.Min(Q**2, sympy.exp(sympy.exp(Q))), 1, (math.inf, 0.0)),
    ],
)
def test_a_minimum_grows_like_the_argument_that_it_is_far_out(
    f: sympy.Expr, direction: int, size: tuple[float, float]
) -> None:
    """Where waves take turns, or a value far out is beyond reach, the largest is a bound."""
    assert growth(f, Q, direction).size == size


def test_a_minimum_with_what_grows_fast_has_a_variance() -> None:
    """Var g by the exact sum under discrete Laplace noise."""
    noise, alpha = tu.DiscreteLaplace(0.5), math.exp(-2)
    est = tu.unbiased("min(n, 1, exp(n))", noise)
    k = range(-60, 61)
    mass = [(1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in k]
    variance = math.fsum(p * (est(1 + z) - 1) ** 2 for z, p in zip(k, mass, strict=True))
    assert est.sd(1) == pytest.approx(math.sqrt(variance), rel=1e-12)
