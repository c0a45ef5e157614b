"""Unbiased functions of two counts, zeros and ones, under equal discrete Laplace noise.

A noise of mass ∝ α^|k| on a count that is never negative is undone by

    T f(y) = f(y) − λ·(f(y+1) − 2f(y) + f(y−1)),  y ≥ 1;    T f(y) = (f(0) − α·f(1))/(1 − α),  y ≤ 0

with λ = α/(1 − α)², and for two counts by T in each: nine values of f at most, taken here in exact
fractions. The mean of no records is no number. Below ``least`` records f is continued by the far
rule Π(1 − S)(1 − αS)f = 0, from the top down: of all continuations the one with the least variance
wherever both counts are larger (for the mean of no records: ½).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.limit.table import exp_below
from trueup.mechanisms.lattice_sums import nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Cell = tuple[int, int]
Function = Callable[[int, int], Fraction]

_BITS = 200
_STEEPEST = 2000  # e^−2000 is 0 to a double, like all below, which take long
_TAIL = 40  # scales from the truth e^−40 of the probability is left: below the last digit of all
_WIDEST = 200_000  # counts to each side of the truth: more take long, and a gigabyte
_ORDERS = 4
"""E X, E X², E XH, E H² of an estimate X with a dither of factor H."""


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


def dither(zeros: int, ones: int) -> Fraction:
    """Return φ(n) = n/(n² + 1): near 1/n, which takes the rounding out, and 0 without records."""
    n = zeros + ones
    return Fraction(n, n * n + 1)


def whole_dither(zeros: int, ones: int) -> Fraction:
    """Return φ(n) = 1/n, which takes all of the rounding out of the mean of some records."""
    return Fraction(1, zeros + ones)


class TwoCounts:
    """T for two counts under noise of mass ∝ α^|k|.

    Examples
    --------
    >>> counts = TwoCounts(Fraction(1, 2))
    >>> mean = counts.continued(share, 1)
    >>> str(mean(0, 0)), str(counts.inverse(mean, (0, 1))), str(counts.inverse(mean, (2, 5)))
    ('1/2', '17/6', '289/420')
    """

    def __init__(self, alpha: Fraction, phi: Function = dither) -> None:
        self.alpha = alpha
        self.phi = phi if phi is dither else self.continued(phi, 1)
        self._apart = int(phi is dither)  # φ(n) = n/(n² + 1) or 1/n
        self._scale = -1 / math.log(alpha)
        self._powers: list[Floats] = [np.zeros(0)] * 3
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

    def stencil(self, size: int) -> Floats:
        """Return T of functions of one count in floats: a row for each noisy count up to a size."""
        matrix = np.zeros((size + 1, size + 2))
        for y in range(size + 1):
            for k, weight in self._positive if y else self._zero:
                matrix[y, y + k] = float(weight)
        return matrix

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

    def probability(self, cell: Cell, truth: Cell) -> Fraction:
        """Return the probability of a clamped noisy pair."""
        far = sum(abs(y - s) for y, s in zip(cell, truth, strict=True))
        return self.mass(cell[0]) * self.mass(cell[1]) * self.alpha**far

    def masses(self, cells: NDArray[np.int64], truth: Cell) -> Floats:
        """Return the probabilities of many pairs, in floats."""
        a = float(self.alpha)
        far = np.abs(cells - np.array(truth, float)).sum(axis=1)
        masses = np.where(cells > 0, (1 - a) / (1 + a), 1 / (1 + a))
        return np.asarray(masses.prod(axis=1) * a**far)

    def beyond(self, truth: Cell, box: int, centre: Fraction, inner: float = 1.0) -> Floats:
        """Return the part of (E X, E X², E XH, E H²) from pairs with a count above ``box``.

        X is the label less ``centre``. There the mean's label is ½ + ½(y₁ − y₀)·A(n) if both counts
        are positive: sums over n. ``inner`` multiplies the probability of those pairs.
        """
        total = np.zeros(_ORDERS)
        for zeros, ones in (
            ((box + 1, math.inf), (1, math.inf)),
            ((1, box), (box + 1, math.inf)),
        ):
            total += inner * self._inside(truth, zeros, ones, centre)
        for side in (0, 1):
            total += self._edge(truth[side], truth[1 - side], box + 1, bool(side), centre)
        return total

    def _window(self, s: int, low: float, high: float) -> tuple[int, int]:
        """Return the least and the largest distance of counts in a range from the truth."""
        reach = math.ceil(-_TAIL / math.log(self.alpha))
        if reach > _WIDEST:
            raise TrueupError(
                f"a standard deviation under this noise is a sum over {reach:g} counts and more",
                f"at most {_WIDEST} are summed, from epsilon = {_TAIL / _WIDEST:g} on",
            )
        return int(max(low - s, -reach)), int(min(high - s, reach))

    def _inside(
        self,
        truth: Cell,
        zeros: tuple[float, float],
        ones: tuple[float, float],
        centre: Fraction,
    ) -> Floats:
        x, y, size = self._window(truth[0], *zeros), self._window(truth[1], *ones), sum(truth)
        if x[0] > x[1] or y[0] > y[1]:
            return np.zeros(_ORDERS)
        breaks = (0, *x, *y, x[0] + y[1], x[1] + y[0])  # where a case of _convolved ends
        k, w = nodes(x[0] + y[0], x[1] + y[1], breaks, self._scale, size)
        c0, c1, c2 = (w * c for c in self._convolved(x, y, k))
        n, apart = size + k.astype(float), float(truth[1] - truth[0])
        slope, h = self._slope(n), self._dither(n, 2)
        # A(n) − 1/size, written out: for many records both are nearly the same
        rise = self._bend(n) - k / (n * size) if size else slope
        true = Fraction(truth[1], size) if size else Fraction(1, 2)
        base = float(true - centre) + 0.5 * apart * rise
        first = base * c0 + 0.5 * slope * c1
        square = base**2 * c0 + base * slope * c1 + 0.25 * slope**2 * c2
        return np.array([first.sum(), square.sum(), (h * first).sum(), (h**2 * c0).sum()])

    def _convolved(self, x: Cell, y: Cell, k: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Return Σ P(i)·P(k − i)·(k − 2i)^r for r = 0, 1, 2, over i in x with k − i in y.

        α^(|i| + |k − i|) is α^|k| for i between 0 and k, and α^(|k| + 2d) at a distance d from
        there: sums of powers, and running sums of α^(2d)·d^r.
        """
        a, width = float(self.alpha), np.abs(k)
        low, high = np.maximum(x[0], k - y[1]), np.minimum(x[1], k - y[0])
        bottom, top = np.minimum(k, 0), np.maximum(k, 0)
        first, last = np.maximum(low, bottom), np.minimum(high, top)
        count, mid = np.maximum(last - first + 1, 0).astype(float), (k - first - last).astype(float)
        sums = [count, count * mid, count * (mid**2 + (count**2 - 1) / 3)]
        running = self._running(max(x[1] - x[0], y[1] - y[0]) + abs(x[0]) + abs(y[0]) + 2)
        for near, far, sign in (
            (low - top, high - top, -1),
            (bottom - high, bottom - low, 1),
        ):
            start, end = np.maximum(near - 1, 0), np.maximum(far, 0)
            g0, g1, g2 = (np.where(end > start, g[end] - g[start], 0.0) for g in running)
            sums[0] += g0
            sums[1] += sign * (width * g0 + 2 * g1)
            sums[2] += width**2 * g0 + 4 * width * g1 + 4 * g2
        weight = ((1 - a) / (1 + a)) ** 2 * a**width
        return weight * sums[0], weight * sums[1], weight * sums[2]

    def _running(self, length: int) -> list[Floats]:
        """Return Σ α^(2d)·d^r over 0 < d ≤ D for D up to a length at least; the longest is kept."""
        if length > len(self._powers[0]):
            d = np.arange(float(length))
            powers = float(self.alpha) ** (2 * d) * (d > 0)
            self._powers = [np.cumsum(powers * d**r) for r in range(3)]
        return self._powers

    def _edge(self, none: int, some: int, low: int, mirrored: bool, centre: Fraction) -> Floats:
        """Return the part of the pairs (0, y), y ≥ low; ``mirrored``: of (y, 0)."""
        least, most = self._window(some, low, math.inf)
        if least > most:
            return np.zeros(_ORDERS)
        a, (d, w) = float(self.alpha), nodes(least, most, (0,), self._scale, some)
        y, p = (
            np.asarray(float(some) + d, np.float64),
            w * (1 - a) / (1 + a) ** 2 * a**none * a ** np.abs(d),
        )
        kappa, lam = a / (1 - a), a / (1 - a) ** 2
        above = kappa / (y + 1) - 2 * kappa * lam / (y * (y + 1) * (y + 2))
        x = float(-centre) - above if mirrored else float(1 - centre) + above
        h = self._dither(y, 1)
        return np.array([(p * m).sum() for m in (x, x**2, x * h, h**2)])

    def _slope(self, n: Floats) -> Floats:
        """Return A(n): T of (s₁ − s₀)/n is (y₁ − y₀)·A(n) where it reads no hole."""
        return np.asarray(1 / n + self._bend(n))

    def _bend(self, n: Floats) -> Floats:
        """Return A(n) − 1/n."""
        a = float(self.alpha)
        lam, square = a / (1 - a) ** 2, n**2
        return np.asarray(-4 * lam / (n * (square - 1)) * (1 - 6 * lam / (square - 4)))

    def _dither(self, n: Floats, positive: int) -> Floats:
        """Return T φ, a function of n where one or both counts are positive."""
        a = float(self.alpha)
        stencil = np.array([1.0])
        for factor in [(1, -a)] * 2 + [(-a, 1)] * positive:
            stencil = np.convolve(stencil, factor) / (1 - a)
        at = n[:, None] + np.arange(-positive, 3)
        return np.asarray((at / (at**2 + self._apart)) @ stencil)
