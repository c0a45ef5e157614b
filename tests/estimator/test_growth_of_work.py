"""The work that a formula makes is counted before it is done: it is served soon, or refused."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.errors import TrueupError
from trueup.inverse.growth import growth
from work import at_most

CALLS = 16_000_000
"""5,400,000 were counted at most; what is tested took minutes, or did not end."""

INDEPENDENCE = "(a*d - b*c)**2*(a + b + c + d)/((a + b)*(c + d)*(a + c)*(b + d))"
CORRELATION = "(n*sxy - sx*sy)/sqrt((n*sxx - sx**2)*(n*syy - sy**2))"
CELLS = {"a": 5, "b": 6, "c": 7, "d": 8}


def independence(a: float, b: float, c: float, d: float) -> float:
    above = (a * d - b * c) ** 2 * (a + b + c + d)
    return above / ((a + b) * (c + d) * (a + c) * (b + d))


def brute_force(f, scale: float, low: int, values: tuple[int, ...], power: int = 1) -> float:
    """Return T[f^power] for discrete Laplace noise and a bound below, by all shifts of f."""
    alpha = math.exp(-1 / scale)
    lam, kappa = alpha / (1 - alpha) ** 2, alpha / (1 - alpha)
    axes = [
        [(low, 1 + kappa), (low + 1, -kappa)]
        if x <= low
        else [(x, 1 + 2 * lam), (x + 1, -lam), (x - 1, -lam)]
        for x in values
    ]
    return math.fsum(
        f(*(x for x, _ in point)) ** power * math.prod(w for _, w in point)
        for point in product(*axes)
    )


def counts(low: int, names: str = "abcd") -> tuple[dict[str, tu.Noise], dict[str, tuple]]:
    return dict.fromkeys(names, tu.DiscreteLaplace(1)), dict.fromkeys(names, (low, None))


@at_most(CALLS)
def test_a_power_of_two_counts_is_refused():
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown not to outgrow the noise"):
        tu.unbiased("1/(a**b + 1)", *counts(1, "ab"))


@at_most(CALLS)
def test_the_statistic_of_independence_is_served_with_its_variance():
    est = tu.unbiased(INDEPENDENCE, *counts(1))
    for values in ((5, 6, 7, 8), (5, 0, 7, 1)):
        given = dict(zip("abcd", values, strict=True))
        g = brute_force(independence, 1, 1, values)
        assert est(**given) == pytest.approx(g, rel=1e-10)
        variance = g**2 - brute_force(independence, 1, 1, values, 2)
        assert est.variance(**given) == pytest.approx(variance, rel=1e-9)
    assert math.isfinite(est.sd(**CELLS))


def test_rows_in_many_regions_are_served_whatever_was_asked_before():
    """A table of small cells of four counts lies below its bounds in 16 ways."""
    rows = np.random.default_rng(1).integers(-3, 9, (4, 400)).astype(float)
    est = tu.unbiased(INDEPENDENCE, *counts(1))
    known = est.variance(**dict(zip("abcd", rows, strict=True)))
    some = est.variance(**dict(zip("abcd", rows[:, :7], strict=True)))
    assert np.isfinite(known).all()
    assert np.array_equal(known[:7], some)


@at_most(CALLS)
def test_six_cells_that_add_up_take_no_work_like_three_to_the_sixth():
    names = "abcdef"
    est = tu.unbiased("1/(a + b + c + d + e + f + 1)", *counts(0, names))
    values = (2, 0, 4, 5, 3, 7)
    given = dict(zip(names, values, strict=True))
    g = brute_force(lambda *x: 1 / (sum(x) + 1), 1, 0, values)
    assert est(**given) == pytest.approx(g, rel=1e-10)
    variance = g**2 - brute_force(lambda *x: 1 / (sum(x) + 1), 1, 0, values, 2)
    assert est.variance(**given) == pytest.approx(variance, rel=1e-7)
    with pytest.raises(TrueupError, match="too large to compute"):
        est.sd(**given)


def test_cells_with_noises_of_their_own_that_add_up():
    scales = {"a": 0.5, "b": 1.0, "c": 2.0}
    noises = {name: tu.DiscreteLaplace(scale) for name, scale in scales.items()}
    est = tu.unbiased("1/(a + b + c + 1)", noises, dict.fromkeys("abc", (0, None)))
    lam = {k: math.exp(-1 / s) / (1 - math.exp(-1 / s)) ** 2 for k, s in scales.items()}
    axes = [[(0, 1 + 2 * lam[k]), (1, -lam[k]), (-1, -lam[k])] for k in "abc"]
    total = math.fsum(
        math.prod(w for _, w in point) / (4 + 5 + 6 + 1 + sum(s for s, _ in point))
        for point in product(*axes)
    )
    assert est(a=4, b=5, c=6) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("noise", [tu.DiscreteLaplace(1), tu.Laplace(1)])
def test_independent_factors_are_debiased_one_by_one(noise):
    est = tu.unbiased("a*d/(b*c)", dict.fromkeys("abcd", noise), dict.fromkeys("abcd", (1, None)))
    one = tu.unbiased("x", noise, (1, None)), tu.unbiased("1/x", noise, (1, None))
    parts = [one[0], one[1], one[1], one[0]]
    for values in ((5.0, 6.0, 7.0, 8.0), (0.0, 6.0, 1.0, 9.0)):
        found = [(e(x), e.variance(x)) for e, x in zip(parts, values, strict=True)]
        given = dict(zip("abcd", values, strict=True))
        assert est(**given) == pytest.approx(math.prod(g for g, _ in found), rel=1e-12)
        variance = math.prod(g**2 for g, _ in found) - math.prod(g**2 - v for g, v in found)
        assert est.variance(**given) == pytest.approx(variance, rel=1e-9)


def test_the_estimator_of_a_product_is_not_expanded():
    est = tu.unbiased("a*d/(b*c)", *counts(1))
    assert len(str(est.formula)) < 3000


@at_most(CALLS)
def test_laplace_derivatives_that_grow_too_long_are_refused():
    for f, names, low in ((INDEPENDENCE, "abcd", 1),):
        with pytest.raises(TrueupError, match="more than 6000 parts"):
            tu.unbiased(f, dict.fromkeys(names, tu.Laplace(1)), dict.fromkeys(names, (low, None)))


BOX = {
    "n": (100, 200),
    "sx": (0, 5),
    "sy": (0, 5),
    "sxx": (1, None),
    "syy": (1, None),
    "sxy": (0, None),
}


@pytest.mark.parametrize("noise", [tu.DiscreteLaplace(1), tu.Laplace(1)])
@at_most(CALLS)
def test_a_correlation_of_six_statistics_is_refused_with_the_reason(noise):
    with pytest.raises(TrueupError, match="parts"):
        tu.unbiased(CORRELATION, dict.fromkeys(BOX, noise), BOX)


@at_most(CALLS)
def test_a_correlation_of_five_counts_is_served():
    box = {name: bounds for name, bounds in BOX.items() if name != "n"}
    f = CORRELATION.replace("n*", "150*")
    est = tu.unbiased(f, dict.fromkeys(box, tu.DiscreteLaplace(1)), box)
    truth = {"sx": 3, "sy": 2, "sxx": 80, "syy": 90, "sxy": 50}

    def correlation(sx, sy, sxx, syy, sxy):
        return (150 * sxy - sx * sy) / np.sqrt((150 * sxx - sx**2) * (150 * syy - sy**2))

    wanted = brute_force(correlation, 1, -10, tuple(truth.values()))  # all inside their bounds
    assert est(**truth) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(TrueupError, match="at 243 points"):
        est.variance(**truth)


@pytest.mark.parametrize("f", ["(-1)**q", "(-2)**q + 1", "n*(-1)**(2*q)"])
def test_a_negative_number_has_no_power_that_is_not_whole(f):
    noises = {"q": tu.Laplace(1)} | ({"n": tu.Laplace(1)} if "n" in f else {})
    with pytest.raises(tu.NoUnbiasedEstimator):
        tu.unbiased(f, noises, {"q": (0, 5)})


def test_an_integer_may_not_halve_the_exponent_of_a_negative_number():
    with pytest.raises(tu.NoUnbiasedEstimator, match="not a finite number at q = 5"):
        tu.unbiased("(-1)**(q/2)", tu.DiscreteLaplace(1))


@pytest.mark.parametrize(
    "f", ["min(1/q, 0)", "tanh(1/q)", "1/(1 + 1/q)", "exp(-1/q**2)", "max(log(q), 0)"]
)
def test_a_pole_inside_another_function_is_a_pole(f):
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"not a (finite|real) number"):
        tu.unbiased(f, tu.DiscreteLaplace(1), (-2, None))


def test_a_statistic_that_cancels_may_be_passed():
    est = tu.unbiased("n + s - s", {"n": tu.Laplace(1), "s": tu.Laplace(1)})
    assert est(n=1.0, s=2.0) == est(n=1.0) == 1.0
    assert est.sd(n=1.0, s=2.0) == pytest.approx(math.sqrt(2))
    with pytest.raises(TrueupError, match="unknown t"):
        est(n=1.0, t=2.0)


def test_orders_where_terms_cancel_take_few_digits():
    """To tell 1 + e^{−t} from 1 at t = 10⁷ takes millions of digits; multiplied out it is seen."""
    t = sympy.Symbol("t", real=True)
    one = 1 + sympy.exp(-t)
    with at_most(100_000):  # 32,000
        assert growth(1 / (one**3 - one), t, 1).size == pytest.approx((1, 0))
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown to be smooth near q = 1"):
        tu.unbiased("atan(log(q))/(q**3 - q)", tu.Laplace(2), (0.1, None))


def test_the_degree_in_one_statistic_does_not_multiply_out_the_others():
    noises = {"s": tu.Mass({0: 0.7, 1: 0.3}), "n": tu.DiscreteLaplace(2)}
    with at_most(4_200_000):  # 1,400,000
        est = tu.unbiased("(n + s)/(1 + n**2)", noises, {"s": (-2.5, None), "n": (0.6, None)})
        sd = est.sd(s=1, n=3)
    alpha = math.exp(-0.5)
    ns = [(k + 3, (1 - alpha) / (1 + alpha) * alpha ** abs(k)) for k in range(-120, 121)]
    law = [(est(s=1 + z, n=n), p * w) for n, p in ns for z, w in ((0, 0.7), (1, 0.3))]
    mean = math.fsum(g * p for g, p in law)
    assert mean == pytest.approx(4 / 10, rel=1e-12)
    assert sd == pytest.approx(math.sqrt(math.fsum((g - mean) ** 2 * p for g, p in law)), rel=1e-9)


def test_the_sd_of_a_product_needs_the_laws_of_its_factors_only():
    noises = {"a": tu.DiscreteLaplace(2), "b": tu.Gaussian(3), "c": tu.DiscreteLaplace(1 / 3)}
    with at_most(3_000_000):  # 980,000
        est = tu.unbiased("a*(b - c)**2", noises)
        sd = est.sd(a=2, b=1.5, c=3)
    one = tu.unbiased("a", noises["a"]).sd(2) ** 2
    alpha, v = math.exp(-3), 9  # (x − y)² − v − Var c, of mean (b − c)²; u = x − y is b − c + noise
    masses = [(k, (1 - alpha) / (1 + alpha) * alpha ** abs(k)) for k in range(-12, 13)]
    moment = lambda k: math.fsum(p * z**k for z, p in masses)  # noqa: E731
    second, fourth = v + moment(2), 3 * v**2 + 6 * v * moment(2) + moment(4)
    two = 4 * 1.5**2 * second + fourth - second**2  # Var u², odd moments of the noise being 0
    assert sd == pytest.approx(math.sqrt(one * two + one * 1.5**4 + two * 2**2), rel=1e-9)


LITTLE = 1_500_000
"""500,000 were counted at most; before, circles were halved for half a minute."""


@pytest.mark.parametrize(
    ("formula", "noise", "domain", "reason"),
    [
        ("log(q - 1)/(q - 1/(q*q))", tu.Laplace(1), None, "not a real number"),
        ("q*log((7/4)/q)", tu.Laplace(10), (None, 40.5), "not a real number"),
        ("tanh((q*q - (q - 100))/sin(-2.5*q))", tu.Laplace(2), (-3, 3), "to be smooth near"),
    ],
    ids=["logarithm in a quotient", "logarithm of a quotient", "jumps at poles"],
)
def test_no_power_series_is_sought_where_there_is_no_limit(formula, noise, domain, reason):
    with at_most(LITTLE), pytest.raises(tu.NoUnbiasedEstimator, match=reason):
        tu.unbiased(formula, noise, domain)


@pytest.mark.parametrize(
    ("formula", "base"), [("exp(q/3)*q**4", math.exp(1 / 3)), ("3**q*q**4", 3)]
)
def test_high_powers_beside_exponentials_are_numbers(formula, base):
    """Series of M in exponentials, or in logarithms, had a hundred thousand parts."""
    with at_most(LITTLE):
        estimator = tu.unbiased(formula, tu.Uniform(2))
        nodes, weights = np.polynomial.legendre.leggauss(40)
        x = 0.7 + nodes
        exact = 0.7**4 * base**0.7
        assert estimator(x) @ weights / 2 == pytest.approx(exact, rel=1e-12)
        spread = (estimator(x) - exact) ** 2 @ weights / 2
        assert estimator.variance(x) @ weights / 2 == pytest.approx(spread, rel=1e-9)
