"""Logarithms of generating functions with two derivatives, and characteristic functions."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from noise.conftest import (
    Law,
    discrete_gaussian,
    discrete_laplace,
    gaussian,
    laplace,
    rounded_gaussian,
    rounded_laplace,
    staircase,
    table,
    uniform,
)
from trueup.noise import Laplace, Noiseless
from trueup.tables.many import characteristic, cumulants

LAWS = [
    laplace(2),
    laplace(0.7),
    gaussian(3),
    gaussian(0.25),
    uniform(2),
    staircase(3, 2),
    discrete_laplace(2),
    discrete_laplace(0.8),
    discrete_gaussian(0.3),
    discrete_gaussian(1),
    rounded_laplace(0.8),
    rounded_gaussian(0.3),
    rounded_gaussian(1),
    table({-1: Fraction(1, 4), 0: Fraction(1, 4), 3: Fraction(1, 2)}),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: repr(law.noise))
def test_cumulants_are_derivatives_of_the_logarithm_of_the_generating_function(law: Law) -> None:
    far = min(0.45 * law.noise.mgf_radius, 0.4)
    t = np.array([-far, -far / 3, 0.0, far / 7, far])
    found = np.stack(cumulants(law.noise, t), axis=1)
    for at, own in zip(t, found, strict=True):
        m0, m1, m2 = law.tilted(mpmath.mpf(at), 2)
        expected = [mpmath.log(m0), m1 / m0, m2 / m0 - (m1 / m0) ** 2]
        np.testing.assert_allclose(own, [float(v) for v in expected], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: repr(law.noise))
def test_characteristic_functions(law: Law) -> None:
    w = np.array([0.0, 0.3, 1.1, 3.0, -3.14, 9.0])
    expected = [complex(law.tilted(mpmath.mpc(0, v), 0)[0]) for v in w]
    np.testing.assert_allclose(characteristic(law.noise, w), expected, atol=1e-14)


def test_a_known_number_has_no_cumulants() -> None:
    t = np.array([-1.0, 0.0, 5.0])
    assert [k.tolist() for k in cumulants(Noiseless(), t)] == [[0, 0, 0]] * 3
    assert characteristic(Noiseless(), t).tolist() == [1, 1, 1]


def test_the_characteristic_function_of_a_sum_is_a_product() -> None:
    w = np.array([0.3, 2.0])
    product = characteristic(Laplace(1), w) * characteristic(Laplace(2), w)
    np.testing.assert_allclose(characteristic(Laplace(1) + Laplace(2), w), product)
