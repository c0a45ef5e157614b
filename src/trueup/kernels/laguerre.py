"""Laguerre series: summed by Clenshaw's recurrence, or written as the product of their factors.

The recurrence is stable at every degree. As text a series is a polynomial whose monomials are far
larger than itself, so the powers of t would lose all digits. The product
c·Π(t − rᵢ)·Π((t − αⱼ)² + βⱼ²) over its roots has an error as if t were off in its last digits.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import mpmath
from numpy.polynomial.laguerre import lagroots, lagtrim

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Value = TypeVar("Value", float, NDArray[np.float64])

MAX_DEGREE = 40
"""The highest degree of an extension that is written as SQL."""


def clenshaw(coefficients: Sequence[float], t: Value) -> Value:
    """Return Σₙ cₙ Lagₙ(t).

    Examples
    --------
    >>> clenshaw([0.0, 1.0, 2.0], 3.0)  # (1 − 3) + 2·(1 − 6 + 9/2)
    -3.0
    """
    first = second = 0.0 * t
    for n in range(len(coefficients) - 1, -1, -1):
        first, second = (
            coefficients[n] + first * (2 * n + 1 - t) / (n + 1) - second * (n + 1) / (n + 2),
            first,
        )
    return first


class Factors(NamedTuple):
    """c, the real roots, and real and imaginary parts of the others above the real line."""

    c: float
    real: tuple[float, ...]
    pairs: tuple[tuple[float, float], ...]

    @property
    def reach(self) -> float:
        """The |t| up to which no product of factors can overflow; infinite for a constant."""
        roots = [abs(r) for r in self.real] + [abs(a) + b for a, b in self.pairs for _ in "12"]
        if not roots:
            return math.inf
        log = math.log(sys.float_info.max) - math.log(abs(self.c))
        return math.exp(log / len(roots)) * (1 - 1e-12) - max(roots)


@lru_cache(maxsize=128)
def factored(coefficients: tuple[float, ...]) -> Factors:
    """Return Σ cₙ Lagₙ(t) by its roots.

    Examples
    --------
    >>> factored((0.0, 1.0, 2.0))  # (1 − t) + 2·(1 − 2t + t²/2) = t² − 5t + 3
    Factors(c=1.0, real=(0.6972243622680053, 4.302775637731995), pairs=())
    """
    if len(coefficients) - 1 > MAX_DEGREE:
        raise TrueupError(
            f"an extension of degree {len(coefficients) - 1} is too long for SQL, at most "
            f"{MAX_DEGREE} is possible",
            'extension="optimal" has the smallest variance and is shorter',
        )
    powers = _monomials(coefficients)
    with mpmath.workdps(60 + 2 * len(powers)):
        polynomial = [mpmath.mpf(p.numerator) / p.denominator for p in reversed(powers)]
        guesses = [mpmath.mpmathify(complex(g)) for g in lagroots(lagtrim(coefficients))]
        roots = guesses and mpmath.polyroots(
            polynomial, maxsteps=500, extraprec=200, roots_init=guesses
        )
        tiny = mpmath.mpf(10) ** -40
        real = tuple(sorted(float(r.real) for r in roots if abs(r.imag) < tiny))
        pairs = tuple(sorted((float(r.real), float(r.imag)) for r in roots if r.imag >= tiny))
    return Factors(float(powers[-1]), real, pairs)


def _monomials(coefficients: tuple[float, ...]) -> list[Fraction]:
    """Return the coefficients of the powers of t, exactly, without leading zeros."""
    powers = [Fraction(0)] * max(len(coefficients), 1)
    for n, c in enumerate(coefficients):
        for j in range(n + 1):
            powers[j] += Fraction(c) * Fraction((-1) ** j * math.comb(n, j), math.factorial(j))
    while len(powers) > 1 and not powers[-1]:
        powers.pop()
    return powers
