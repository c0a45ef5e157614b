"""Numbers of mpmath as numbers of sympy."""

import mpmath
import pytest
import sympy

from trueup.noise.series import symbol_of


@pytest.mark.parametrize("digits", [5, 20, 33])
def test_a_part_five_digits_below_the_last_one_is_rounding(digits: int) -> None:
    with mpmath.workdps(60):
        least = mpmath.mpf(10) ** (-digits - 5)
        for size in (1, mpmath.mpf(10) ** 30):
            below, above = (mpmath.mpc(3, 4 * share * least) * size for share in (0.7, 0.8))
            assert symbol_of(below, digits).is_real
            assert not symbol_of(above, digits).is_real
            assert sympy.re(symbol_of(below / 1j, digits)) == 0
