"""Unbiased shares of k counts under equal discrete Laplace noise, none of the counts negative.

The share of category i is 1/k + x·ψ(n) with x = sᵢ − n/k and ψ = 1/n. A noise of mass ∝ α^|z| on a
count that is never negative is undone by (1 − αS)/(1 − α) where the noisy count y, taken as 0 if it
is negative, is 0, and by (1 − αS)(1 − αS⁻¹)/(1 − α)² where it is positive. S moves n by 1 and x by
cⱼ = 1 − 1/k or −1/k, and Σcⱼ = 0: of all k counts only their sum n, the number p of positive ones
and the category's own y remain,

    T[xψ] = x·B_p(n) + (1{yᵢ > 0} − p/k)·κ·B_{p−1}(n − 1),    B_r = (1 + κ∇)^r·B,    κ = α/(1 − α),

with B = (1 − κΔ)^k·ψ. Below ``least`` records B is continued by the polynomial of degree k − 1
through B(least), …, B(least + k − 1): the far rule. The share of no records then is 1/k.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[[int], Fraction]

_BITS = 200
"""What ψ is rounded to where it is continued, beyond the bits that differences of it cancel."""

_KEPT = 4096


class ManyCounts:
    """T for the shares of k counts under noise of mass ∝ α^|z|, and for their squares.

    Parameters
    ----------
    alpha
        The ratio of the noise.
    categories
        k, at least 2.
    least
        A public lower bound of the sum of all counts, at least 1.

    Examples
    --------
    >>> counts = ManyCounts(Fraction(1, 2), 3)
    >>> [str(share) for share in counts.shares((0, 1, 2))]
    ['-1/4', '-1/20', '13/10']
    >>> [str(share) for share in counts.shares((0, 0, 0))]
    ['1/3', '1/3', '1/3']
    """

    def __init__(self, alpha: Fraction, categories: int, least: int = 1) -> None:
        self.alpha, self.categories, self.least = alpha, categories, least
        self.kappa = alpha / (1 - alpha)
        # tables of cells ask for the same few totals again and again
        functions = (self._smooth, self._square, self._across)
        self.slope, self._curved, self._rest = (
            lru_cache(_KEPT)(partial(self._at, f)) for f in functions
        )

    # -- estimates ---------------------------------------------------------------------------------

    def shares(self, noisy: Sequence[int]) -> list[Fraction]:
        """Return the unbiased shares; their sum is 1."""
        part = Fraction(1, self.categories)
        return [part + value for value in self._contrasts([max(0, y) for y in noisy])]

    def variances(self, noisy: Sequence[int]) -> list[Fraction]:
        """Return the unbiased variances g² − T[f²] = (g − 1/k)² − T[x²ψ²] of the shares.

        With U = (1 − κΔ)^k·ψ² and c the sum, a the sum of squares of cⱼ over the p positive counts,

            T[x²ψ²] = x²·U_p(n) + (2xc − a)·κU_{p−1}(n − 1) + (c² − a)·κ²U_{p−2}(n − 2) + R_p(n),

        where R = −(1 − 1/k)·κ(κ + 1)·S(1 − κΔ)^{k−2}·ψ².
        """
        cell = [max(0, y) for y in noisy]
        k, n, p = self.categories, sum(cell), sum(y > 0 for y in cell)
        first, second, third = (self._curved(n - m, p - m) * self.kappa**m for m in range(3))
        rest = self._rest(n, p)
        found = []
        for y, value in zip(cell, self._contrasts(cell), strict=True):
            x, own = y - Fraction(n, k), int(y > 0)
            c, a = own - Fraction(p, k), own * (1 - Fraction(2, k)) + Fraction(p, k * k)
            square = x**2 * first + (2 * x * c - a) * second + (c**2 - a) * third + rest
            found.append(value**2 - square)
        return found

    def _contrasts(self, cell: Sequence[int]) -> list[Fraction]:
        """Return T[xψ] for every category."""
        k, n, p = self.categories, sum(cell), sum(y > 0 for y in cell)
        slope, edge = self.slope(n, p), self.kappa * self.slope(n - 1, p - 1)
        return [(y - Fraction(n, k)) * slope + ((y > 0) - Fraction(p, k)) * edge for y in cell]

    def _at(self, f: Function, n: int, p: int) -> Fraction:
        """Return (1 + κ∇)^p·f at n: B_p, U_p or R_p; 0 where nothing multiplies it."""
        return _stencil(p, self.kappa, f, n) if p >= 0 else Fraction(0)

    # -- functions of the sum ----------------------------------------------------------------------

    @cached_property
    def _smooth(self) -> Function:
        """B, and below ``least`` the polynomial."""
        k, least = self.categories, self.least
        own = cache(lambda n: _stencil(k, -self.kappa, _inverse, n, forward=True))
        below = cache(lambda n: _newton(self._steps, n - least))
        return lambda n: own(n) if n >= least else below(n)

    @cached_property
    def _steps(self) -> list[Fraction]:
        """ΔᵐB at ``least``, m = 0, …, k − 1."""
        points = range(self.least, self.least + self.categories)
        return _differences([self._smooth(n) for n in points])

    @cached_property
    def _continued(self) -> Function:
        """ψ, and below ``least`` what (1 − κΔ)^k takes to the polynomial.

        That is a polynomial R and α^{least − n}·h(n), with h a polynomial of degree k − 1 again,
        given by ψ itself at ``least`` and the next k − 1 numbers.
        """
        alpha, k, least = self.alpha, self.categories, self.least
        lost = 2 * k * math.log2((1 + float(alpha)) / float(1 - alpha))
        unit = 2 ** (_BITS + math.ceil(lost))
        # (1 − κΔ)^{−k} is a finite sum on polynomials
        steps, kappa = self._steps, self.kappa
        inverse = [math.comb(k - 1 + i, i) * kappa**i for i in range(k)]
        flat = [
            sum((w * c for w, c in zip(inverse, steps[m:], strict=False)), Fraction(0))
            for m in range(k)
        ]
        rest = [alpha**m * (_inverse(least + m) - _newton(flat, m)) for m in range(k)]
        falling = _differences(rest)

        @cache
        def below(n: int) -> Fraction:
            part = _power(alpha, least - n, unit)
            return _newton(flat, n - least) + part * _newton(falling, n - least)

        return lambda n: _inverse(n) if n >= least else below(n)

    @cached_property
    def _square(self) -> Function:
        """U = (1 − κΔ)^k·ψ²."""
        k, f = self.categories, self._continued
        return cache(lambda n: _stencil(k, -self.kappa, lambda m: f(m) ** 2, n, forward=True))

    @cached_property
    def _across(self) -> Function:
        """R."""
        k, f, kappa = self.categories, self._continued, self.kappa
        factor = -(1 - Fraction(1, k)) * kappa * (kappa + 1)
        return cache(
            lambda n: factor * _stencil(k - 2, -kappa, lambda m: f(m) ** 2, n + 1, forward=True)
        )


def _stencil(r: int, c: Fraction, f: Function, n: int, forward: bool = False) -> Fraction:
    """Return (1 + c∇)^r·f at n, or (1 + cΔ)^r·f: sums of r + 1 values."""
    sign = 1 if forward else -1
    own, other = (1 - c, c) if forward else (1 + c, -c)
    return sum(
        (math.comb(r, j) * own ** (r - j) * other**j * f(n + sign * j) for j in range(r + 1)),
        Fraction(0),
    )


def _inverse(n: int) -> Fraction:
    return Fraction(1, n)


def _differences(values: list[Fraction]) -> list[Fraction]:
    """Return the first values of all differences."""
    found = []
    while values:
        found.append(values[0])
        values = [b - a for a, b in pairwise(values)]
    return found


def _newton(steps: list[Fraction], x: int) -> Fraction:
    """Return the polynomial with these differences at 0, at a whole number of any sign."""
    total, choose = Fraction(0), 1
    for m, step in enumerate(steps):
        total += step * choose
        choose = choose * (x - m) // (m + 1)
    return total


def _power(base: Fraction, exponent: int, unit: int) -> Fraction:
    """Return a power of a number below 1 in whole units, rounded on the way."""
    if exponent < 2:
        return base**exponent
    half = _power(base, exponent // 2, unit) ** 2 * base ** (exponent % 2)
    return Fraction(round(half * unit), unit)
