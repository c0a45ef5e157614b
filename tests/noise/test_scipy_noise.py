"""Noise read from scipy.stats: law, existence of moments, generating function."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats as ss

import trueup as tu
from trueup.errors import TrueupError
from trueup.noise import DiscreteLaplace, Gaussian, Laplace, Noise, ScipyNoise, StudentT
from work import at_most

read = Noise.from_scipy


def test_repr_and_normal_form():
    assert repr(read(ss.norm(scale=2))) == "ScipyNoise('norm', loc=0, scale=2)"
    assert read(ss.norm(0, 2)) == read(ss.norm(loc=0.0, scale=2.0)) == ScipyNoise("norm", scale=2)
    assert repr(read(ss.t(5, scale=0.5))) == "ScipyNoise('t', 5, loc=0, scale=0.5)"
    assert repr(read(ss.poisson(mu=3, loc=-3))) == "ScipyNoise('poisson', 3, loc=-3)"
    assert read(ss.t(5)) != read(ss.t(6))


def test_lattice():
    assert read(ss.poisson(3)).lattice
    assert read(ss.poisson(3, loc=-3.0)).lattice
    assert not read(ss.norm()).lattice
    with pytest.raises(TrueupError, match=r"loc must be an integer, got 0\.5"):
        read(ss.poisson(3, loc=0.5))


LAWS = [ss.norm(1, 2), ss.laplace(scale=3), ss.t(4.5), ss.gamma(2.5), ss.beta(2, 3), ss.poisson(3)]


@pytest.mark.parametrize("frozen", LAWS, ids=lambda f: f.dist.name)
def test_law_is_scipys(frozen):
    noise = read(frozen)
    x = np.array([-2.0, 0.0, 0.4, 1.0, 3.0])
    density, theirs = (noise.pmf, frozen.pmf) if noise.lattice else (noise.pdf, frozen.pdf)
    np.testing.assert_array_equal(density(x), theirs(x))
    np.testing.assert_allclose(noise.cdf(x), frozen.cdf(x), rtol=1e-14)
    np.testing.assert_array_equal(noise.quantile([0.1, 0.5]), frozen.ppf([0.1, 0.5]))
    assert noise.variance == pytest.approx(frozen.var(), rel=1e-12)
    assert type(noise.cdf(1)) is float


@pytest.mark.parametrize(
    ("ours", "frozen"),
    [
        (Gaussian(2), ss.norm(scale=2)),
        (Laplace(3), ss.laplace(scale=3)),
        (StudentT(9, 2), ss.t(9, scale=2)),
        (DiscreteLaplace(2), ss.dlaplace(0.5)),
    ],
    ids=["gaussian", "laplace", "student", "discrete_laplace"],
)
def test_moments_agree_with_our_families(ours, frozen):
    noise = read(frozen)
    for k in range((noise.highest_moment or 8) + 1):
        assert noise.moment(k) == pytest.approx(float(ours.moment(k)), rel=1e-10, abs=1e-9)


@pytest.mark.parametrize(
    ("frozen", "highest"),
    [
        (ss.norm(), 4),
        (ss.lognorm(1), 4),
        (ss.weibull_min(0.5), 4),
        (ss.t(3), 2),
        (ss.t(4.5, loc=3, scale=10), 4),
        (ss.cauchy(), 0),
        (ss.pareto(2.5), 2),
        (ss.uniform(), 4),
        (ss.exponweib(2, 3), 0),
    ],
    ids=lambda f: getattr(getattr(f, "dist", None), "name", ""),
)
def test_highest_moment(frozen, highest):
    noise = read(frozen)
    assert noise.highest_moment == highest
    if highest is not None:
        assert math.isfinite(noise.moment(highest))
        with pytest.raises(TrueupError, match=f"no known moment of order {highest + 1}"):
            noise.moment(highest + 1)


def test_variance_that_is_infinite_or_does_not_exist():
    for law in (ss.t(1.5), ss.cauchy()):
        with pytest.raises(TrueupError, match="no known moment of order 2"):
            _ = read(law).variance


def test_poisson_moments_are_touchard_polynomials():
    noise = read(ss.poisson(3))
    for k in range(5):
        expected = mpmath.exp(-3) * mpmath.nsum(
            lambda j, k=k: j**k * 3**j / mpmath.factorial(j), [0, mpmath.inf]
        )
        assert noise.moment(k) == pytest.approx(float(expected), rel=1e-12)


def test_quantile_starts_at_the_support():
    assert read(ss.poisson(3)).quantile(0) == 0
    assert read(ss.expon()).quantile(0) == 0


@pytest.mark.parametrize(
    "bad",
    [
        ss.norm,
        "norm",
        None,
        3,
        ss.norm(scale=[1, 2]),
        ss.norm(scale=-1),
        ss.norm(scale=math.nan),
        ss.t(-1),
        ss.multivariate_normal([0, 0]),
        ss.rv_histogram(np.histogram([1, 2, 2, 3]))(),
        ss.rv_discrete(values=([1, 2], [0.5, 0.5]))(),
    ],
    ids=lambda b: type(b).__name__,
)
def test_refusals(bad):
    with pytest.raises(TrueupError) as caught:
        read(bad)
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize("arguments", [("no_such_law",), ("describe",), (3,), ("norm", 1), ("t",)])
def test_bad_names_and_shapes(arguments):
    with pytest.raises(TrueupError):
        ScipyNoise(*arguments)


def test_what_needs_more_than_moments_is_refused():
    for formula in ("exp(q/10)", "cos(q)"):
        with pytest.raises(TrueupError, match=r"generating function of ScipyNoise.* is not known"):
            tu.unbiased(formula, read(ss.norm(scale=2)))
    with pytest.raises(TrueupError, match="no known moment of order 5"):
        tu.unbiased("q**5", read(ss.uniform()))


def test_integers_between_bounds_need_masses_only():
    estimator = tu.unbiased("1/n", read(ss.poisson(0.5)), tu.Integers(1, 6))
    assert estimator.expectation(3) == pytest.approx(1 / 3, rel=1e-9)


# -- large parameters: right, or refused -----------------------------------------------------------


def hypergeometric_variance(population: int, marked: int, drawn: int) -> Fraction:
    share = Fraction(marked, population)
    return drawn * share * (1 - share) * Fraction(population - drawn, population - 1)


@pytest.mark.parametrize(
    ("law", "mean", "variance"),
    [
        (ss.hypergeom(10**6, 10**5, 10**4), 1000, hypergeometric_variance(10**6, 10**5, 10**4)),
        (ss.binom(10**9, 0.25), 10**9 // 4, Fraction(3 * 10**9, 16)),
        (ss.poisson(10**4, loc=-(10**4)), 0, 10**4),
        (ss.nbinom(10**4, 0.25), 3 * 10**4, 12 * 10**4),
        (ss.geom(2.0**-10), 2**10, 2**20 - 2**10),
        (ss.norm(loc=1e9), 10**9, 1),
        (ss.poisson(3, loc=1e9), 10**9 + 3, 3),
        (ss.dlaplace(0.5), 0, 1 / (2 * math.sinh(0.25) ** 2)),
    ],
    ids=lambda v: v.dist.name if hasattr(v, "dist") else "",
)
def test_moments_of_large_parameters(law: Any, mean: Any, variance: Any) -> None:
    noise = read(law)
    assert float(noise.moment(1)) == pytest.approx(float(mean), rel=1e-9, abs=1e-9)
    assert float(noise.variance) == pytest.approx(float(variance), rel=1e-8)
    square = tu.unbiased("q**2", noise)(float(mean))  # x² − 2μx + 2μ² − E Z² at x = μ
    assert square == pytest.approx(-float(variance), rel=1e-6, abs=1e-9 * float(mean) ** 2)


@pytest.mark.parametrize(
    "law",
    [
        ss.nbinom(1e-9, 1e-9),
        ss.nbinom(1e-4, 1e-5),
        ss.zipf(3.5),
        ss.betabinom(10**9, 2, 3),
        ss.dlaplace(1e-8),
        ss.boltzmann(1e-9, 10**8),
        ss.geom(2.0**-26),
        ss.skellam(1e12, 1e12),
    ],
    ids=lambda law: repr((law.dist.name, *law.args)),
)
def test_integer_laws_that_fit_no_table_are_refused(law: Any) -> None:
    with at_most(400_000), pytest.raises(TrueupError, match=r"too wide|too much is in its tails"):
        _ = read(law).variance


@pytest.mark.parametrize("law", [ss.vonmises(2), ss.kstwobign(), ss.exponweib(2, 3)])
def test_moments_that_scipy_does_not_state_are_refused(law: Any) -> None:
    with pytest.raises(TrueupError, match="no known moment of order 1"):
        read(law).moment(1)


def test_a_moment_that_the_tails_hold_is_refused() -> None:
    """Masses below 1e-20 of the largest are left out."""
    noise = read(ss.geom(0.1))
    assert float(noise.moment(4)) == pytest.approx(float(ss.geom(0.1).moment(4)), rel=1e-9)
    with pytest.raises(TrueupError, match="too much is in its tails"):
        read(ss.yulesimon(11)).moment(4)


@pytest.mark.parametrize("law", [ss.beta(2, 0.7, loc=5, scale=3), ss.dgamma(0.3), ss.gamma(1e8)])
def test_the_fourth_moment(law: Any) -> None:
    noise, (mean, variance, skew, excess) = read(law), law.stats(moments="mvsk")
    fourth = (excess + 3) * variance**2 + 4 * skew * variance**1.5 * mean
    fourth += 6 * variance * mean**2 + mean**4
    assert float(noise.moment(4)) == pytest.approx(float(fourth), rel=1e-12)


def test_cdf_and_quantile_where_scipy_adds_up_masses() -> None:
    law = ss.betabinom(50, 2, 3, loc=-7)
    noise, k = read(law), np.array([-8, -7, 0, 2.5, 20, 43, 44])
    assert noise.cdf(k) == pytest.approx(law.cdf(k), abs=1e-15)
    assert noise.cdf([-math.inf, math.inf]).tolist() == [0, 1]
    p = [0.001, 0.1, 0.5, 0.9, 0.999]
    found = noise.quantile(p)
    assert (noise.cdf(found) >= p).all()
    assert (noise.cdf(found - 1) < p).all()


def test_the_cdf_of_a_law_on_the_integers_is_constant_between_them() -> None:
    """1 − 2·B(2, 12) at 2 and at 2.6, where scipy evaluates its formula at 2.6."""
    assert read(ss.yulesimon(11)).cdf([2, 2.6]) == pytest.approx([77 / 78] * 2, rel=1e-12)
