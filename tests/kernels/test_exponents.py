"""Doubles with an exponent of their own: the same numbers, and no overflow on the way."""

import mpmath
import numpy as np
import pytest
import sympy

import trueup as tu
from trueup.kernels import exponents
from trueup.kernels.tape import lower

X = sympy.Symbol("x", real=True)
FORMULAS = {
    "logistic": (sympy.exp(X) / (1 + sympy.exp(X)) ** 2, lambda x: mpmath.sech(x / 2) ** 2 / 4),
    "powers": (
        sympy.exp(3 * X) / (1 + sympy.exp(X)) ** 3,
        lambda x: 1 / (1 + mpmath.exp(-x)) ** 3,
    ),
    "roots": (
        sympy.sqrt(1 + sympy.exp(4 * X)) * sympy.exp(-2 * X),
        lambda x: mpmath.sqrt(1 + mpmath.exp(-4 * x)),
    ),
    "logarithms": (
        sympy.log(1 + sympy.exp(9 * X)) - X,
        lambda x: mpmath.log(1 + mpmath.exp(9 * x)) - x,
    ),
    "cases": (
        sympy.Max(X, sympy.exp(X) / sympy.exp(X + 1)),
        lambda x: max(mpmath.mpf(x), mpmath.exp(-1)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_are_those_of_many_digits(name):
    expr, truth = FORMULAS[name]
    x = np.array([-640.0, -300.5, -2.0, -1e-3, 0.0, 0.7, 40.0, 333.0, 900.0])
    found = exponents.run(lower([expr], [X]), [x])
    with mpmath.workdps(700):
        right = [float(truth(mpmath.mpf(v))) for v in x]
    np.testing.assert_allclose(found, right, rtol=1e-12)


def test_an_integral_with_more_nodes_than_can_be_computed_with_digits_is_a_number():
    """Thousands of nodes overflow on the way to 0 or 1."""
    est = tu.unbiased("1/(1 + exp(-50*(q - 1)))", tu.Laplace(1))
    assert est.expectation(5.0) == pytest.approx(1.0, abs=1e-12)
    assert est.expectation(1.0) == pytest.approx(0.5, abs=1e-12)


def test_exponents_as_far_as_they_are_known_and_no_guess_beyond():
    """e^(e^28.7) is 2 to a power of 4·10¹²; of e^(e^35) a double holds no fraction."""
    x = np.array([28.0, 28.7, 34.0, 35.0])
    tower = sympy.exp(sympy.exp(X))
    found = exponents.run(lower([sympy.Piecewise((1, tower > X), (2, True))], [X]), [x])
    assert found[:3].tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(found[3])
    logarithm = exponents.run(lower([sympy.log(tower)], [X]), [x[:3]])
    np.testing.assert_allclose(logarithm, np.exp(x[:3]), rtol=1e-14)
