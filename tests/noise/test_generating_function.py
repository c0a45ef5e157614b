"""Moments, E e^{tZ} and E[Zʲ e^{cZ}] of every family against sums and integrals."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

import depth
from noise.conftest import mgf
from trueup.errors import TrueupError
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Moments,
    Noise,
    Staircase,
    StudentT,
    Uniform,
)


def orders(law):
    top = law.noise.highest_moment
    return range(7 if top is None else min(top, 3) + 1)


def test_moments(light_law):
    for k in orders(light_law):
        expected = float(light_law.expect(lambda z, k=k: z**k)) if k % 2 == 0 else 0
        assert light_law.noise.moment(k) == pytest.approx(expected, rel=1e-12, abs=0)


def test_variance_is_the_second_moment(law):
    assert law.noise.variance == law.noise.moment(2)
    assert type(law.noise.variance) is type(law.noise.moment(2))


def test_odd_moments_are_exactly_zero(law):
    assert [law.noise.moment(k) for k in orders(law) if k % 2] == [0] * (len(orders(law)) // 2)
    assert law.noise.moment(0) == 1
    assert type(law.noise.moment(1)) is int


def test_mgf_on_the_real_line(law):
    for t in law.strip:
        for sign in (1, -1):
            expected = law.expect(lambda z, t=sign * t: mpmath.exp(mpmath.mpf(t) * z))
            assert mgf(law.noise, sign * t) == pytest.approx(float(expected), rel=1e-13)


def test_mgf_off_the_real_line(light_law):
    for t in (1.3j, -0.2j, 7j, *(s + 2j for s in light_law.strip[:1])):
        expected = complex(light_law.expect(lambda z, t=t: mpmath.exp(mpmath.mpmathify(t) * z)))
        value = mgf(light_law.noise, t)
        assert abs(value - expected) <= 1e-13 * abs(expected) + 1e-25


TILTS = depth.few([sympy.Float(-0.7) * sympy.I, sympy.I * 2, sympy.I / 3], 1)


def test_tilted_moments(light_law):
    real = [sympy.Rational(str(s)) for s in light_law.strip]
    for c in [*real, *(-s for s in real[:1]), *TILTS, *(s + sympy.I for s in real[:1])]:
        values = light_law.noise.tilted(c, 3)
        assert len(values) == 4
        with mpmath.workdps(34):
            references = light_law.tilted(mpmath.mpmathify(sympy.N(c, 40)), 3)
            for j, (value, expected) in enumerate(zip(values, references, strict=True)):
                got = mpmath.mpmathify(sympy.N(value, 25))
                assert abs(got - expected) <= 1e-17 * abs(expected) + 1e-26, (c, j)


def test_tilted_at_zero_are_the_moments(law):
    top = orders(law)[-1]
    expected = [law.noise.moment(k) for k in range(top + 1)]
    assert [float(v) for v in law.noise.tilted(0, top)] == [float(m) for m in expected]
    kinds = [v.is_Rational for v in law.noise.tilted(0, top)]
    assert kinds == [not isinstance(m, float) for m in expected]


def test_tilted_is_exact_where_there_is_a_closed_form():
    half, i = sympy.Rational(1, 2), sympy.I
    assert Laplace(1).tilted(half, 2) == [
        sympy.Rational(4, 3),
        sympy.Rational(16, 9),
        sympy.Rational(224, 27),
    ]
    assert Laplace(1).tilted(2 * i, 1) == [sympy.Rational(1, 5), 4 * i / 25]
    assert Gaussian(2).tilted(i, 2) == [sympy.exp(-2), 4 * i * sympy.exp(-2), -12 * sympy.exp(-2)]
    assert sympy.simplify(Uniform(2).tilted(half, 0)[0] - 2 * sympy.sinh(half)) == 0
    assert Uniform(2).tilted(sympy.pi * i, 0) == [0]
    assert Uniform(Fraction(1, 2)).tilted(8 * sympy.pi * i, 0) == [0]
    assert mgf(Uniform(2), 1j * math.pi) == pytest.approx(0, abs=1e-16)


def test_tilted_takes_floats_as_they_are():
    values = Laplace(1).tilted(0.5, 1)
    assert all(v.is_Float for v in values)
    assert Laplace(0.5).tilted(1, 0)[0] == pytest.approx(4 / 3, rel=1e-17)


@pytest.mark.parametrize("noise", [Uniform(2), Laplace(1), Staircase(1), DiscreteLaplace(3)])
@pytest.mark.parametrize("c", [1e-12, 1e-12j, 1e-40])
def test_small_tilts_lose_no_digits(noise, c):
    values = noise.tilted(c, 6)
    for j in range(0, 7, 2):
        moments = noise.moment(j), noise.moment(j + 2)
        assert complex(values[j]) == pytest.approx(float(moments[0]), rel=1e-14)
        if j < 6:
            assert complex(values[j + 1] / c) == pytest.approx(float(moments[1]), rel=1e-14)


@pytest.mark.parametrize(
    ("noise", "radius"),
    [
        (Laplace(2), 0.5),
        (Laplace(Fraction(1, 3)), 3),
        (DiscreteLaplace(4), 0.25),
        (Staircase(3, 2), 1.5),
        (Gaussian(2), math.inf),
        (DiscreteGaussian(2), math.inf),
        (Uniform(1), math.inf),
        (StudentT(3), 0),
    ],
)
def test_radius(noise, radius):
    assert noise.mgf_radius == radius
    assert type(noise.mgf_radius) is float
    if 0 < radius < math.inf:
        for factor in (1, -1, 1.5, 1 + 2j):
            side = "right" if complex(factor).real > 0 else "left"
            message = rf"e\^{{.*q}} outgrows the noise on the {side}"
            rate = radius * factor
            with pytest.raises(TrueupError, match=message):
                noise.tilted(rate, 0)


def test_outgrowing_message_names_the_function():
    with pytest.raises(TrueupError, match=r"e\^\{2q\} outgrows the noise on the right") as caught:
        Laplace(1).tilted(2, 1)
    assert "Hint: " in str(caught.value)


def test_too_large_for_a_float():
    assert Gaussian(1).tilted(100, 0) == [sympy.exp(5000)]
    with pytest.raises(TrueupError, match="exceeds a float"):
        DiscreteLaplace(1000).moment(200)
    assert Laplace(1000).moment(200) == math.factorial(200) * 1000**200


@pytest.mark.parametrize("noise", [Laplace(1), Moments([0, 1]), StudentT(3), DiscreteGaussian(1)])
@pytest.mark.parametrize("k", [-1, 1.0, 2.5, "2", None, True, 201, math.nan])
def test_orders_are_small_integers(noise: Noise, k):
    with pytest.raises(TrueupError, match="order of a moment"):
        noise.moment(k)
    with pytest.raises(TrueupError, match="order of a moment"):
        noise.tilted(0, k)


def test_order_may_be_a_numpy_integer():
    assert Laplace(2).moment(np.int64(2)) == 8


def test_high_orders():
    assert Gaussian(1).moment(200) == math.prod(range(1, 200, 2))
    assert Laplace(0.01).moment(200) == pytest.approx(
        float(mpmath.factorial(200) / mpmath.mpf(10) ** 400)
    )
    expected = 2 * mpmath.polylog(-60, mpmath.exp(-1)) * mpmath.tanh(0.5)
    assert DiscreteLaplace(1).moment(60) == pytest.approx(float(expected), rel=1e-12)
