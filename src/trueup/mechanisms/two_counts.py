"""Unbiased functions of two counts, zeros and ones, under equal discrete Laplace noise.

A noise of mass ∝ α^|k| on a count that is never negative is undone by

    T f(y) = f(y) − λ·(f(y+1) − 2f(y) + f(y−1)),  y ≥ 1;    T f(y) = (f(0) − α·f(1))/(1 − α),  y ≤ 0

with λ = α/(1 − α)², and for two counts by T in each: nine values of f at most, taken here in exact
fractions. The mean of no records is no number. Below ``least`` records f is continued by the far
rule Π(1 − S)(1 − αS)f = 0, from the top down: of all continuations the one with the least variance
wherever both counts are larger (for the mean of no records: ½).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

from trueup.limit.table import exp_below

Cell = tuple[int, int]
Function = Callable[[int, int], Fraction]

_BITS = 200
_STEEPEST = 2000  # e^−2000 is 0 to a double, like all below, which take long


def alpha_of(scale: float) -> Fraction:
    """Return e^{−1/scale} to 200 bits or more, never less than e^−2000.

    Examples
    --------
    >>> float(alpha_of(1.0))
    0.36787944117144233
    """
    near = 1 / exp_below(min(1 / Fraction(scale), Fraction(_STEEPEST)), _BITS + 20)
    return rounded(near, near)


def rounded(value: Fraction, alpha: Fraction) -> Fraction:
    """Return a number to 200 binary places, or so many that α⁴ still has 130 bits."""
    small = alpha.denominator.bit_length() - alpha.numerator.bit_length()
    bits = _BITS + 4 * max(0, small - 16)
    return Fraction(round(value * 2**bits), 2**bits)


def share(zeros: int, ones: int) -> Fraction:
    """Return the mean of 0/1 records."""
    return Fraction(ones, zeros + ones)


class TwoCounts:
    """T for two counts under noise of mass ∝ α^|k|.

    Examples
    --------
    >>> counts = TwoCounts(Fraction(1, 2))
    >>> mean = counts.continued(share, 1)
    >>> str(mean(0, 0)), str(counts.inverse(mean, (0, 1))), str(counts.inverse(mean, (2, 5)))
    ('1/2', '17/6', '289/420')
    """

    def __init__(self, alpha: Fraction) -> None:
        self.alpha = alpha
        lam = alpha / (1 - alpha) ** 2
        self._positive = ((-1, -lam), (0, 1 + 2 * lam), (1, -lam))
        self._zero = ((0, 1 / (1 - alpha)), (1, -alpha / (1 - alpha)))

    def inverse(self, f: Function, cell: Cell) -> Fraction:
        """Return T f at a noisy pair, not negative: unbiased for f at every pair of counts."""
        (zeros, ones), nothing = cell, Fraction(0)
        across = self._positive if ones else self._zero
        return sum(
            (
                a * sum((b * f(zeros + i, ones + j) for j, b in across), nothing)
                for i, a in (self._positive if zeros else self._zero)
            ),
            nothing,
        )

    def continued(self, f: Function, least: int) -> Function:
        """Return f, and its continuation by the far rule below ``least`` records."""
        weights = (Fraction(1), -(1 + self.alpha), self.alpha)
        corner = [(i, j) for i in range(3) for j in range(3) if i or j]

        @cache
        def at(zeros: int, ones: int) -> Fraction:
            terms = (weights[i] * weights[j] * value(zeros + i, ones + j) for i, j in corner)
            return -sum(terms, Fraction(0))

        def value(zeros: int, ones: int) -> Fraction:
            return f(zeros, ones) if zeros + ones >= least else at(zeros, ones)

        return value

    # -- probabilities -----------------------------------------------------------------------------

    def mass(self, y: int) -> Fraction:
        """Return w with P(y|s) = w·α^|s − y| for the count y, clamped at 0."""
        return (1 - self.alpha if y else 1) / (1 + self.alpha)

    def probability(self, cell: Cell, truth: Cell) -> float:
        """Return the probability of a clamped noisy pair."""
        far = sum(abs(y - s) for y, s in zip(cell, truth, strict=True))
        return float(self.mass(cell[0]) * self.mass(cell[1])) * float(self.alpha) ** far
