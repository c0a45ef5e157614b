"""From a budget to a scale: the guarantee holds, and a hair less noise would break it."""

import dataclasses
import inspect
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.errors import TrueupError
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RoundedGaussian,
    RoundedLaplace,
    Staircase,
)
from trueup.noise.gaussian import discrete_profile


@pytest.mark.parametrize(
    ("family", "given", "named", "both"),
    [
        (Laplace, (2,), {"epsilon": 1}, "scale and epsilon"),
        (Laplace, (), {"scale": 2, "epsilon": 1}, "scale and epsilon"),
        (DiscreteLaplace, (2,), {"sensitivity": 3}, "scale and sensitivity"),
        (Gaussian, (2,), {"rho": 1}, "scale and rho"),
    ],
)
def test_a_scale_and_a_budget_exclude_each_other(family, given, named, both):
    with pytest.raises(TrueupError, match=f"{both} exclude each other") as caught:
        family(*given, **named)
    assert f"write {family.__name__}(scale), or the privacy budget" in caught.value.hint


def test_pure_budgets_are_exact():
    assert Laplace.from_budget(3, 2) == Laplace(Fraction(2, 3))
    assert type(Laplace.from_budget(3, 2).scale) is Fraction
    assert Laplace.from_budget(0.5).scale == 2
    assert Laplace.from_budget(Fraction(1, 3), sensitivity=0.5).scale == 1.5
    assert DiscreteLaplace.from_budget(2, sensitivity=3) == DiscreteLaplace(Fraction(3, 2))
    assert Staircase.from_budget(2, 3) == Staircase(2, 3, None)


@pytest.mark.parametrize("family", [Laplace, DiscreteLaplace, RoundedLaplace])
@pytest.mark.parametrize("epsilon", [0.1, 1, Fraction(7, 3)])
def test_pure_privacy_loss(family, epsilon):
    noise = family.from_budget(epsilon, sensitivity=3)
    x = np.arange(-40, 41)
    density = noise.pmf if noise.lattice else noise.pdf
    loss = np.log(density(x) / density(x + 3))
    assert abs(loss).max() == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("family", [Gaussian, DiscreteGaussian, RoundedGaussian])
def test_concentrated_budgets(family):
    assert family.from_budget(rho=Fraction(1, 8)).scale == 2
    assert family.from_budget(rho=2, sensitivity=3).scale == Fraction(3, 2)
    assert family.from_budget(rho=0.125).scale == 2
    for rho in (1, 0.3, Fraction(1, 3), 1e-9):
        sigma = family.from_budget(rho=rho).scale
        assert Fraction(sigma) ** 2 * 2 * Fraction(rho) >= 1
        assert sigma == pytest.approx(1 / math.sqrt(2 * rho), rel=1e-15)


def gaussian_delta(sigma, epsilon, shift):
    """Return ∫ (p(x) − e^ε p(x + Δ))₊ dx for N(0, σ²), from the threshold upwards."""
    with mpmath.workdps(50):
        s, e, d = (mpmath.mpf(v) for v in (sigma, epsilon, shift))
        start = e * s**2 / d - d / 2
        tail = lambda x: mpmath.erfc(x / s / mpmath.sqrt(2)) / 2  # noqa: E731
        return tail(start) - mpmath.exp(e) * tail(start + d)


def discrete_delta(sigma, epsilon, shift):
    """Return Σ (p(k) − e^ε p(k + Δ))₊ over all integers near the mass."""
    reach = int(40 * sigma) + 3 * int(shift) + 20
    with mpmath.workdps(50):
        s, e = mpmath.mpf(sigma), mpmath.exp(mpmath.mpf(epsilon))
        weights = [mpmath.exp(-((k / s) ** 2) / 2) for k in range(-reach, reach + 1)]
        pairs = zip(weights, weights[int(shift) :], strict=False)
        return mpmath.fsum(p - e * q for p, q in pairs if p > e * q) / mpmath.fsum(weights)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "shift"), [(20, 0.8, 1), (3, 12, 1), (100, 0.15, 1), (4, 30, 9), (2, 0, 3)]
)
def test_the_discrete_profile_keeps_its_digits_where_hardly_anything_is_left(sigma, epsilon, shift):
    found = discrete_profile(float(sigma), float(epsilon), float(shift))
    assert found == pytest.approx(float(discrete_delta(sigma, epsilon, shift)), rel=1e-9, abs=0)


BUDGETS = [(1, 1e-5, 1), (0.1, 1e-6, 1), (3, 1e-9, 2), (0.5, 0.1, 1), (8, 1e-12, 5), (20, 0.3, 1)]


@pytest.mark.parametrize(("epsilon", "delta", "shift"), BUDGETS)
def test_gaussian_is_tight(epsilon, delta, shift):
    sigma = Gaussian.from_budget(epsilon=epsilon, delta=delta, sensitivity=shift).scale
    assert gaussian_delta(sigma, epsilon, shift) <= delta
    assert gaussian_delta(sigma * (1 - 1e-12), epsilon, shift) > delta


@pytest.mark.parametrize(("epsilon", "delta", "shift"), [*BUDGETS, (4, 0.01, 1), (0.01, 0.2, 1)])
def test_discrete_gaussian_is_tight(epsilon, delta, shift):
    sigma = DiscreteGaussian.from_budget(epsilon=epsilon, delta=delta, sensitivity=shift).scale
    assert discrete_delta(sigma, epsilon, shift) <= delta
    assert discrete_delta(sigma * (1 - 1e-6), epsilon, shift) > delta
    assert discrete_delta(sigma * (1 - 1e-11), epsilon, shift) > delta


def test_discrete_gaussian_at_a_large_scale():
    """Positive terms in floats, beyond the switch to the Euler-Maclaurin formula."""
    sigma = float(DiscreteGaussian.from_budget(epsilon=0.005, delta=1e-8).scale)
    assert sigma > 500

    def delta(s):
        k = np.arange(math.floor(0.005 * s**2 - 0.5) + 1, 20 * s)
        terms = np.exp(-0.5 * (k / s) ** 2) * -np.expm1(0.005 - (2 * k + 1) / (2 * s**2))
        return math.fsum(terms) / (s * math.sqrt(2 * math.pi))

    assert delta(sigma) == pytest.approx(1e-8, rel=1e-11)
    assert delta(sigma * (1 - 1e-6)) > 1e-8
    continuous = Gaussian.from_budget(epsilon=0.005, delta=1e-8).scale
    assert sigma == pytest.approx(continuous, rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "shift"), [(0.001, 1e-8, 1), (0.0005, 1e-3, 1), (3, 1e-6, 9000)]
)
def test_discrete_gaussian_from_two_thousand_on(epsilon, delta, shift):
    """There σ is that of continuous noise and a little more, also for larger noise."""
    sigma = float(DiscreteGaussian(epsilon=epsilon, delta=delta, sensitivity=shift).scale)

    def exact(s):
        k = np.arange(math.floor(epsilon * s**2 / shift - shift / 2) + 1, 25 * s)
        excess = epsilon - (2 * k * shift + shift**2) / (2 * s**2)
        terms = np.exp(-0.5 * (k / s) ** 2) * -np.expm1(excess)
        return math.fsum(terms) / (s * math.sqrt(2 * math.pi))

    assert sigma == pytest.approx(
        Gaussian(epsilon=epsilon, delta=delta, sensitivity=shift).scale, rel=1e-7
    )
    assert max(exact(sigma * x) for x in np.linspace(1, 1.001, 20)) <= delta


@settings(deadline=None, max_examples=25)
@given(st.floats(0.01, 10), st.floats(1e-12, 0.5), st.floats(0.1, 50))
def test_gaussian_is_tight_everywhere(epsilon, delta, shift):
    sigma = Gaussian.from_budget(epsilon=epsilon, delta=delta, sensitivity=shift).scale
    assert gaussian_delta(sigma, epsilon, shift) <= delta
    assert gaussian_delta(sigma * (1 - 1e-6), epsilon, shift) > delta


def test_classical_bound_is_beaten():
    sigma = Gaussian.from_budget(epsilon=0.5, delta=1e-5).scale
    assert sigma < math.sqrt(2 * math.log(1.25e5)) / 0.5


@pytest.mark.parametrize("family", [Gaussian, DiscreteGaussian, RoundedGaussian])
@pytest.mark.parametrize(
    "budget",
    [
        {},
        {"epsilon": 1},
        {"delta": 1e-5},
        {"rho": 1, "epsilon": 1},
        {"rho": 1, "epsilon": 1, "delta": 1e-5},
        {"rho": 0},
        {"rho": math.nan},
        {"rho": "1"},
        {"epsilon": -1, "delta": 1e-5},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 2},
        {"rho": 1, "sensitivity": 0},
        {"rho": 1, "sensitivity": None},
    ],
    ids=str,
)
def test_bad_gaussian_budgets(family, budget):
    with pytest.raises(TrueupError) as caught:
        family.from_budget(**budget)
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize("family", [Laplace, DiscreteLaplace, RoundedLaplace, Staircase])
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_pure_budgets(family, epsilon):
    with pytest.raises(TrueupError, match="epsilon must"):
        family.from_budget(epsilon)
    with pytest.raises(TrueupError, match="sensitivity must"):
        family.from_budget(1, epsilon)


def test_integer_statistics_move_by_integers():
    with pytest.raises(TrueupError, match="sensitivity must be an integer"):
        DiscreteLaplace.from_budget(1, sensitivity=0.5)
    with pytest.raises(TrueupError, match="sensitivity must be an integer"):
        DiscreteGaussian.from_budget(rho=1, sensitivity=Fraction(3, 2))
    assert DiscreteLaplace.from_budget(1, sensitivity=2.0).scale == 2


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(4, 0.00564), (4, 5.5e-9), (10, 1.3e-8), (1, 0.19), (20, 1e-9)]
)
def test_more_discrete_gaussian_noise_is_private_too(epsilon, delta):
    """δ(σ) has bumps: the returned σ lies beyond the last one that is too high."""
    sigma = DiscreteGaussian.from_budget(epsilon=epsilon, delta=delta).scale
    above = [discrete_delta(s, epsilon, 1) for s in np.linspace(sigma, 1.5 * sigma, 150)]
    assert max(above) <= delta


def test_bumps_exist():
    """More noise can mean less privacy: at ε = 10, σ = 0.5 would do, but not what follows."""
    assert discrete_delta(0.5, 10, 1) <= 1.3e-8 < discrete_delta(0.55, 10, 1)
    assert DiscreteGaussian.from_budget(epsilon=10, delta=1.3e-8).scale == pytest.approx(
        0.59139, rel=1e-4
    )


@pytest.mark.parametrize("family", [Laplace, DiscreteLaplace, RoundedLaplace, Staircase])
def test_a_pure_budget_by_name_makes_the_noise(family):
    assert family(epsilon=0.5) == family.from_budget(0.5)
    noise = family(epsilon=0.5, sensitivity=3)
    assert noise == family.from_budget(0.5, 3)
    assert eval(repr(noise), {family.__name__: family}) == noise  # noqa: S307
    assert pickle.loads(pickle.dumps(noise)) == noise  # noqa: S301


@pytest.mark.parametrize("family", [Gaussian, DiscreteGaussian, RoundedGaussian])
@pytest.mark.parametrize("budget", [{"rho": 0.5, "sensitivity": 2}, {"epsilon": 1, "delta": 1e-5}])
def test_a_gaussian_budget_by_name_makes_the_noise(family, budget):
    assert family(**budget) == family.from_budget(**budget)
    assert dataclasses.replace(family(**budget), scale=3) == family(3)


def test_a_budget_by_name_is_checked_like_any_other():
    with pytest.raises(TrueupError, match="epsilon"):
        Laplace(epsilon=-1)
    with pytest.raises(TrueupError, match=r"whole|integer"):
        DiscreteLaplace(epsilon=1, sensitivity=0.5)
    with pytest.raises(TrueupError, match="no parameter 'sensitvity'"):
        Laplace(epsilon=1, sensitvity=2)
    with pytest.raises(TrueupError, match="needs epsilon"):
        Laplace(sensitivity=2)
    assert list(inspect.signature(Laplace).parameters) == ["scale"]
