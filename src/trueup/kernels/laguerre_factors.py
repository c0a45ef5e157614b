"""Laguerre series as text: a polynomial written as the product of its factors.

A Laguerre series of degree k is a polynomial whose monomials are far larger than itself, so the
powers of t would lose all digits. The product c·Π(t − rᵢ)·Π((t − αⱼ)² + βⱼ²) over its roots has
an error as if t were off in its last digits.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import mpmath
from numpy.polynomial.laguerre import lagroots, lagtrim

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEGREE = 40
"""The highest degree of an extension that is written as SQL."""

_STEPS = 10


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
        roots = _roots(polynomial, lagroots(lagtrim(coefficients)))
        tiny = mpmath.mpf(10) ** -40
        real = tuple(sorted(float(r.real) for r in roots if abs(r.imag) < tiny))
        pairs = tuple((float(r.real), float(r.imag)) for r in roots if r.imag >= tiny)
    return Factors(float(powers[-1]), real, pairs)


def _roots(polynomial: list[Any], guesses: Iterable[complex]) -> list[Any]:
    """Return all roots: guesses improved by Newton's method, if that keeps them apart."""
    roots = [mpmath.mpmathify(complex(g)) for g in guesses]
    for _ in range(_STEPS):
        values = [mpmath.polyval(polynomial, r, derivative=True) for r in roots]
        if any(slope == 0 for _, slope in values):
            break
        roots = [r - v / slope for r, (v, slope) in zip(roots, values, strict=True)]
    apart = {(mpmath.nstr(r.real, 20), mpmath.nstr(r.imag, 20)) for r in roots}
    if len(apart) == len(roots):
        return roots
    return list(mpmath.polyroots(polynomial, maxsteps=500, extraprec=200))


def _monomials(coefficients: tuple[float, ...]) -> list[Fraction]:
    """Return the coefficients of the powers of t, exactly, without leading zeros."""
    powers = [Fraction(0)] * max(len(coefficients), 1)
    for n, c in enumerate(coefficients):
        for j in range(n + 1):
            powers[j] += Fraction(c) * Fraction((-1) ** j * math.comb(n, j), math.factorial(j))
    while len(powers) > 1 and not powers[-1]:
        powers.pop()
    return powers
