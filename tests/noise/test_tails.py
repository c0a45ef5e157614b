"""Rates and powers of tails, read off the values of a density at doubling distances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trueup.noise.scipy_noise import tail


@pytest.mark.parametrize("unit", [1.0, -1.0, 0.25], ids=["right", "left", "narrow"])
@pytest.mark.parametrize("rate", [1e-3, 0.5, 3.0, 700.0])
def test_exponential_tails(rate, unit):
    found = tail(lambda x: -rate * np.abs(x) + 5, 0.0, unit)
    assert found == (rate, math.inf)


@pytest.mark.parametrize("power", [1.5, 2.0, 7.0])
def test_exponential_tails_with_a_power(power):
    """x^{−p} e^{−2x} falls with rate 2: the power does not count beside it."""
    assert tail(lambda x: -2 * x - power * np.log(x), 0.0, 1.0) == (2.0, math.inf)


@pytest.mark.parametrize("index", [1.1, 2.0, 4.5])
def test_tails_like_a_power(index):
    assert tail(lambda x: -index * np.log(np.abs(x)), 0.0, -3.0) == (0.0, index)


def test_tails_between_powers_and_exponentials():
    """A log-normal tail falls faster than every power, and slower than every exponential."""
    assert tail(lambda x: -(np.log(x) ** 2) / 2, 0.0, 1.0) == (0.0, math.inf)
    assert tail(lambda x: -np.sqrt(x), 0.0, 1.0) == (0.0, math.inf)


def test_tails_faster_than_every_exponential():
    assert tail(lambda x: -(x**2), 0.0, 1.0) == (math.inf, math.inf)


def test_four_values_are_needed():
    """At 4, 8, 16 and 32 units; with fewer the density has ended."""

    def ending(end):
        return tail(lambda x: np.where(x < end, -3 * x, -np.inf), 0.0, 1.0)

    assert ending(33) == (3.0, math.inf)
    assert ending(31) == (math.inf, math.inf)


def test_rates_have_twelve_digits():
    """What follows is rounding of the density: a rate compares equal to the one it stands for."""
    assert tail(lambda x: -(1e6 + 1e-7) * x, 0.0, 1.0)[0] == 1e6
    assert tail(lambda x: -(1e-6 + 1e-19) * x, 0.0, 1.0)[0] == 1e-6
    assert tail(lambda x: -(1e6 + 1e-4) * x, 0.0, 1.0)[0] == 1e6 + 1e-4
