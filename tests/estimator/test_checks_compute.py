"""`expectation`, `bias` and `sd` look at the estimator: whoever breaks it sees the bias."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats
import sympy

import depth
import oracle
import trueup as tu
from trueup.inverse import spectral
from trueup.inverse.lattice_inverse import Solved
from trueup.inverse.on_values import Rows, Stencil
from trueup.noise import deconvolution
from trueup.noise.operator import IDENTITY

SMALLEST = 1e-4
"""Of the bias that a broken operator shows below; an intact one shows at most 1e-9."""


def wrong_kappa(operator):
    """Return the operator with a weight inside that is a tenth too large."""
    inside, *outer = operator.branches
    taps = {
        key: w if key == IDENTITY else w * sympy.Rational(11, 10) for key, w in inside.taps.items()
    }
    return dataclasses.replace(operator, branches=(dataclasses.replace(inside, taps=taps), *outer))


def wrong_branch(operator):
    """Return the operator that gives f at the bound beyond it, and nothing more."""
    inside, *outer = operator.branches
    bare = [dataclasses.replace(b, taps={IDENTITY: sympy.Integer(1)}) for b in outer]
    return dataclasses.replace(operator, branches=(inside, *bare))


def wrong_side(operator):
    """Return the operator whose slope at a bound has the sign of the other one."""
    inside, *outer = operator.branches
    turned = [
        dataclasses.replace(b, taps={k: w if k == IDENTITY else -w for k, w in b.taps.items()})
        for b in outer
    ]
    return dataclasses.replace(operator, branches=(inside, *turned))


LAPLACE = {
    "laplace": ("1/q", tu.Laplace(2), (1, None), (1.5,)),
    "laplace between bounds": ("q**3", tu.Laplace(1), (0, 2), (1.0,)),
    "discrete laplace": ("1/q", tu.DiscreteLaplace(2), (1, None), (1,)),
    "sum of laplace": ("1/q", tu.Laplace(1) + tu.Laplace(2), (1, None), (1.5,)),
    "two statistics": (
        "s/n",
        {"s": tu.Laplace(1), "n": tu.Laplace(2)},
        {"n": (1, None)},
        (3.0, 1.5),
    ),
    "a total": (
        "1/(s + n)",
        {"s": tu.Laplace(1), "n": tu.Laplace(1)},
        {"s": (1, None), "n": (1, None)},
        (1.5, 1.2),
    ),
}


SABOTAGES = {
    "none": lambda operator: operator,
    "wrong kappa": wrong_kappa,
    "wrong branch": wrong_branch,
    "wrong side": wrong_side,
}


def break_operators(monkeypatch, sabotage):
    for name in ("laplace", "discrete_laplace", "laplace_sum"):
        intact = getattr(deconvolution, name)

        def broken(*given, _intact=intact):
            return sabotage(_intact(*given))

        monkeypatch.setattr(deconvolution, name, broken)


@pytest.mark.parametrize("sabotage", SABOTAGES)
@pytest.mark.parametrize("case", LAPLACE)
def test_a_broken_operator_shows_its_bias(monkeypatch, case, sabotage):
    f, noise, domain, q = LAPLACE[case]
    break_operators(monkeypatch, SABOTAGES[sabotage])
    est = tu.unbiased(f, noise, domain)
    bias = est.bias(**named(est, q))
    assert abs(bias) < 1e-9 if sabotage == "none" else abs(bias) > SMALLEST


SPECTRAL = {
    "gaussian": ("q**4", tu.Gaussian(1), 2.0),
    "waves": ("cos(q)", tu.Gaussian(1), 0.4),
    "student": ("q**3", tu.StudentT(9), 2.0),
    "discrete gaussian": ("q**4", tu.DiscreteGaussian(2), 2),
    "staircase": ("q**2", tu.Staircase(1), 2.0),
    "uniform": ("q**2", tu.Uniform(1), 2.0),
    "scipy": ("q**2", tu.Noise.from_scipy(scipy.stats.logistic()), 2.0),
    "moments": ("q**2", tu.Moments([0, 2, 0, 24]), 2.0),
}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("case", SPECTRAL)
def test_a_broken_reciprocal_shows_its_bias(monkeypatch, case, broken):
    f, noise, q = SPECTRAL[case]
    if broken:
        intact = spectral.reciprocal.__wrapped__

        def reciprocal(noise, c, order):
            return tuple(
                w * sympy.Rational(101, 100) ** min(i + bool(c), 1)
                for i, w in enumerate(intact(noise, c, order))
            )

        monkeypatch.setattr(spectral, "reciprocal", reciprocal)
    bias = tu.unbiased(f, noise).bias(q)
    assert abs(bias) > SMALLEST if broken else abs(bias) < 1e-9


BY_VALUES = {
    "laplace on integers": ("1/n", tu.Laplace(2), tu.Integers(1, 40), 3, (Stencil, Rows)),
    "rounded laplace": ("1/n", tu.RoundedLaplace(2), (1, None), 3, (Stencil, Solved)),
    "least norm": (
        "1/n",
        tu.Mass({-1: 0.1, 0: 0.8, 1: 0.1}),
        tu.Integers(1, 9),
        3,
        (Solved,),
    ),
}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("case", BY_VALUES)
def test_broken_values_show_their_bias(monkeypatch, case, broken):
    f, noise, domain, q, branches = BY_VALUES[case]
    if broken:
        for branch in branches:
            intact = branch.value
            monkeypatch.setattr(branch, "value", lambda *a, _i=intact: sympy.Float(1.01) * _i(*a))
    bias = tu.unbiased(f, noise, domain).bias(q)
    assert abs(bias) > SMALLEST if broken else abs(bias) < 1e-9


AXES = {
    "laplace": [oracle.Axis(oracle.laplace(2), 1.5, (1.0,))],
    "laplace between bounds": [oracle.Axis(oracle.laplace(1), 1.0, (0.0, 2.0))],
    "discrete laplace": [oracle.Axis(oracle.discrete_laplace(2), 1)],
    "two statistics": [
        oracle.Axis(oracle.laplace(1), 3.0),
        oracle.Axis(oracle.laplace(2), 1.5, (1.0,)),
    ],
}


def named(est, values):
    return dict(zip(est.statistics, values, strict=True))


@pytest.mark.parametrize(("case", "sabotage"), depth.crossed([*AXES], [*SABOTAGES]))
def test_the_sd_is_that_of_the_estimates(monkeypatch, case, sabotage):
    """The expected variance estimate is the same for an intact estimator, and for no other."""
    f, noise, domain, q = LAPLACE[case]
    break_operators(monkeypatch, SABOTAGES[sabotage])
    est = tu.unbiased(f, noise, domain)
    truth = named(est, q)
    axes = dict(zip(("s", "n") if len(q) > 1 else ("q",), AXES[case], strict=True))
    axes = [axes[name] for name in est.statistics]
    mean, variance = oracle.moments(lambda *x: est(**named(est, x)), *axes)
    expected = oracle.expect(lambda *x: est.variance(**named(est, x)), *axes)
    assert est.expectation(**truth) == pytest.approx(mean, rel=1e-9)
    assert est.sd(**truth) ** 2 == pytest.approx(variance, rel=1e-9)
    intact = sabotage == "none"
    assert (expected == pytest.approx(variance, rel=1e-9)) is intact


FORMULAS = {
    "grows faster than all exponentials": "1/q + exp(q**2/9)",
    "grows faster than all powers": "where(q < 3, 1/q, exp(sqrt(q)))",
    "grows as fast as some tails fall": "exp(2*q) + 1/q",
    "not real beyond a bound": "1/(q*min(5, atanh(where(q > 0, 1/3, 2))))",
    "an order that is not told": "1/q + sinh(q**2)*exp(-q**2)",
    "a condition at a whole number": "where(q/q < min(q, 2), 100/q**2, max(q, 3))",
}

LAWS = {
    "ends on neither side": scipy.stats.skellam(2, 0.3),
    "far away": scipy.stats.skellam(0.1, 0.3, loc=5000),
    "light on the right": scipy.stats.poisson(0.3),
    "light, and far to the left": scipy.stats.poisson(0.3, loc=-40),
    "exponential on the right": scipy.stats.geom(0.8),
    "exponential, and far away": scipy.stats.geom(0.8, loc=5000),
    "exponential on both sides": scipy.stats.dlaplace(1, loc=-40),
    "ends on both sides": scipy.stats.binom(5, 0.1, loc=3),
    "gaps on the right": {0: 0.5, 7: 0.3, 30: 0.2},
    "gaps on both sides": {-41: 0.1, 0: 0.6, 7: 0.2, 30: 0.1},
    "gaps, and symmetric": {-30: 0.1, 0: 0.8, 30: 0.1},
}

BOUNDS = {"whole": (1, 4), "fractional": (0.1, 4.95), "one number": (2.5, 3.5)}


def masses(law):
    """Return integers and their probabilities, by scipy or as they are stated."""
    if isinstance(law, dict):
        return np.array([*law], float), np.array([*law.values()])
    k = np.arange(-300.0, 301.0) + law.ppf(0.5)
    return k, law.pmf(k)


@pytest.mark.parametrize(
    ("formula", "law", "bounds"), depth.crossed([*FORMULAS], [*LAWS], [*BOUNDS])
)
def test_sums_reach_all_masses(formula, law, bounds):
    """However f grows, and wherever the law sits: Σ p(k)·g(q + k), inside and outside."""
    f, law, (low, high) = FORMULAS[formula], LAWS[law], BOUNDS[bounds]
    noise = tu.Mass(law) if isinstance(law, dict) else tu.Noise.from_scipy(law)
    est, (k, p) = tu.unbiased(f, noise, (low, high)), masses(law)
    for q in (math.ceil(low), math.floor(high), math.floor(high) + 4):
        g = est(q + k)
        mean, size = p @ g, p @ abs(g)
        assert est.expectation(q) == pytest.approx(mean, rel=1e-11, abs=1e-11 * size)
        assert est.sd(q) ** 2 == pytest.approx(p @ (g - mean) ** 2, rel=1e-9, abs=1e-13 * size**2)
        if q <= high:
            assert abs(est.bias(q)) < 1e-10 * size


@pytest.mark.parametrize("law", LAWS)
def test_two_statistics_reach_all_masses(law):
    noises = {"a": tu.Noise.from_scipy(scipy.stats.poisson(0.3)), "b": tu.DiscreteLaplace(1)}
    law = LAWS[law]
    noises["c"] = tu.Mass(law) if isinstance(law, dict) else tu.Noise.from_scipy(law)
    est = tu.unbiased(
        "exp(sqrt(a))*exp(c**2/9)*b", noises, {"a": (0.5, 3), "b": (1, 3), "c": (1, 4)}
    )
    assert est.bias(a=2, b=3, c=4) == pytest.approx(0, abs=1e-9 * est.expectation(a=2, b=3, c=4))
