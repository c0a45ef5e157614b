"""Means of Laguerre series over an exponential variable."""

from __future__ import annotations

import sympy

from trueup.noise.extension import LaguerreExtension, orthogonal

x = sympy.Symbol("x", real=True)
A, B = LaguerreExtension(3, 1, -x), LaguerreExtension(3, 2, -x)


def test_products_of_two_series_have_their_inner_product_as_mean():
    found = orthogonal(4 + 9 * A + 2 * A * B + 3 * B**2, x)
    assert found == 4 + 2 * A.inner(B) + 3 * B.inner(B)


def test_products_of_three_series_are_left_alone():
    for cubic in (A**3, A**2 * B, 5 + A * B + B**3):
        assert orthogonal(cubic, x) == cubic


def test_what_has_no_series_is_its_own_mean():
    assert orthogonal(x**2 + 1, x) == x**2 + 1
