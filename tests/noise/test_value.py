"""Every family is a frozen value: equality, hash, repr, pickle, exact parameters, refusals."""

import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import sympy

import trueup.noise
from trueup.errors import TrueupError
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mass,
    Moments,
    Noise,
    RoundedGaussian,
    RoundedLaplace,
    ScipyNoise,
    Staircase,
    StudentT,
    Uniform,
)

NAMES = {name: getattr(trueup.noise, name) for name in trueup.noise.__all__} | {
    "Fraction": Fraction
}

OTHERS = [
    Mass({-1: Fraction(1, 3), 0: 0, 4: Fraction(2, 3)}),
    Mass({-2: 0.1, 0: 0.85, 5: 0.05}),
    Moments([0, 2, Fraction(1, 3), 24]),
    Moments([0.5]),
    Staircase(2, 1, 0.5),
    Noise.from_scipy(scipy.stats.norm(scale=2)),
    Noise.from_scipy(scipy.stats.gamma(2.5, loc=-1, scale=0.5)),
    Noise.from_scipy(scipy.stats.poisson(3)),
]


def check_value(noise):
    again = eval(repr(noise), NAMES)  # noqa: S307
    for other in (again, pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):  # noqa: S301
        assert other == noise
        assert hash(other) == hash(noise)
        assert type(other) is type(noise)
        assert repr(other) == repr(noise)
    assert noise != "noise"


def test_values(law):
    check_value(law.noise)


@pytest.mark.parametrize("noise", OTHERS, ids=repr)
def test_other_values(noise):
    check_value(noise)
    noise.moment(1)  # fills caches
    check_value(noise)


def test_frozen(law):
    name = dataclasses.fields(law.noise)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(law.noise, name, 3)


def test_families_differ():
    assert Laplace(2) != DiscreteLaplace(2)
    assert Laplace(2) != Laplace(3)
    assert len({Laplace(2), Laplace(2.0), Laplace(Decimal(2)), Gaussian(2)}) == 2


def test_repr():
    assert repr(Laplace(2.0)) == "Laplace(2)"
    assert repr(Gaussian(Fraction(1, 3))) == "Gaussian(Fraction(1, 3))"
    assert repr(Staircase(1)) == "Staircase(1, 1, None)"
    assert repr(Moments((0, 2))) == "Moments([0, 2])"
    assert repr(StudentT(df=5)) == "StudentT(5, 1)"
    assert repr(ScipyNoise("t", 5)) == "ScipyNoise('t', 5, loc=0, scale=1)"


@pytest.mark.parametrize(
    "value", [2, 2.0, np.int64(2), np.float32(2), Decimal(2), Fraction(2), sympy.Integer(2)]
)
def test_whole_parameters_become_integers(value):
    noise = Laplace(value)
    assert type(noise.scale) is int
    assert repr(noise) == "Laplace(2)"


ONE_PARAMETER = [
    Laplace, DiscreteLaplace, RoundedLaplace, Gaussian, DiscreteGaussian, RoundedGaussian, Uniform,
    StudentT, Staircase,
]  # fmt: skip
BAD = [0, -1, 0.0, -0.5, math.nan, math.inf, -math.inf, "2", None, True, 1j, [1], 10**400, 1e-300]


@pytest.mark.parametrize("family", ONE_PARAMETER)
@pytest.mark.parametrize("bad", BAD, ids=lambda b: str(b)[:8])
def test_bad_parameters(family, bad):
    name = dataclasses.fields(family)[0].name
    with pytest.raises(TrueupError, match=f"{name} (must|is too|is beyond)") as caught:
        family(bad)
    assert "\nHint: " in str(caught.value)
    assert repr(bad)[:20] in str(caught.value)


@pytest.mark.parametrize("family", [StudentT, Staircase])
@pytest.mark.parametrize("bad", BAD, ids=lambda b: str(b)[:8])
def test_bad_second_parameters(family, bad):
    with pytest.raises(TrueupError, match=r"(must|is too|is beyond)"):
        family(1, bad)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan, "0.5", True])
def test_bad_gamma(gamma):
    with pytest.raises(TrueupError, match="gamma must"):
        Staircase(1, 1, gamma)


def test_huge_epsilon_leaves_no_staircase():
    with pytest.raises(TrueupError, match="epsilon is too large"):
        Staircase(701)
    assert math.isfinite(Staircase(700).variance)


def test_exactness():
    third = Fraction(1, 3)
    assert Laplace(third).variance == Fraction(2, 9)
    assert Gaussian(third).moment(4) == Fraction(1, 27)
    assert Uniform(third).variance == Fraction(1, 108)
    assert type(Uniform(6).variance) is int
    assert StudentT(5, third).variance == Fraction(5, 27)
    assert StudentT(5, third).moment(4) == 25 * 3 * Fraction(1, 81) / 3
    assert type(StudentT(5.5, 1).variance) is float
    assert type(Laplace(0.3).variance) is float
    assert type(DiscreteLaplace(2).variance) is float
    assert type(DiscreteGaussian(2).variance) is float


def test_of_noise_itself_nothing_is_known():
    for ask in (Noise().pdf, Noise().cdf, Noise().moment):
        with pytest.raises(TrueupError, match=r"of Noise\(\) is not known"):
            ask(2)


def test_all_is_sorted():
    assert trueup.noise.__all__ == sorted(trueup.noise.__all__)
