"""The law of a mean of two noisy counts with a dither: sums over all pairs that can come out.

The mean is the share of one of two counts (:mod:`trueup.mechanisms.share_law`). The factor of its
dither, T φ, depends on the sum n of both counts and on the number p of positive ones alone:
(1 − αS)²(1 − αS⁻¹)^p φ/(1 − α)^{2 + p}.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from trueup.mechanisms.share_law import Outcomes, ShareLaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trueup.mechanisms.share_law import Floats
    from trueup.mechanisms.two_counts import Cell


@dataclasses.dataclass(frozen=True)
class PairLaw:
    """The mean of pairs (zeros, ones) with a count above ``box``, φ of numbers of records.

    Examples
    --------
    >>> law = PairLaw(ShareLaw(Fraction(1, 2), 2, 1), lambda n: n / (n**2 + 1))
    >>> law.moments((4, 6), Fraction(3, 5)).round(4).tolist()
    [0.0, 0.0349, 0.0006, 0.0212]
    """

    shares: ShareLaw
    phi: Callable[[Floats], Floats] | None = None
    box: int = -1

    def moments(self, truth: Cell, centre: Fraction, positive: Sequence[int] = (0, 1, 2)) -> Floats:
        """Return the part of E X, E X², E XH, E H²: X the mean less ``centre``, H the dither's.

        About the true mean: about 0 the variance of many records would be lost in rounding.
        ``positive``: of pairs with so many positive counts.
        """
        size, total = sum(truth), np.zeros(4)
        true = Fraction(truth[1], size) if size else Fraction(1, 2)
        for part in (part for part in self._parts(truth) if part.p in positive):
            (first, second), h = part.moments(float(true - centre)), self._dither(size, part)
            total += [first.sum(), second.sum(), h @ first, h**2 @ part.masses[0]]
        return total

    def _parts(self, truth: Cell) -> Iterator[Outcomes]:
        """Yield all pairs: by their sum where the zeros are above the box, else one by one."""
        (zeros, ones), (low, high) = truth, self.shares.window(sum(truth))
        yield from self.shares.outcomes((ones, zeros), 0, self.box)
        a = self.shares.alpha
        for y in range(self.box + 1) if zeros - self.box <= -low else ():
            moved = np.arange(max(self.box + 1 - ones, low), high + 1)
            far = moved + (y - zeros)
            p = a ** abs(y - zeros) * a ** np.abs(moved) * (self.shares.rest / (1 + a) ** 2)
            p = p * self.shares.rest if y else p
            at, rise = self.shares.linear((ones, zeros), 0, far, 1 + (y > 0), True)
            yield Outcomes(1 + (y > 0), far, at, rise, (p, p * moved, p * moved**2))

    def _dither(self, size: int, part: Outcomes) -> Floats:
        """Return T φ; 0 where so many of the two counts cannot be positive."""
        if self.phi is None:
            return np.zeros(len(part.far))
        a, n, stencil = self.shares.alpha, float(size) + part.far, np.array([1.0])
        for factor in [(1.0, -a)] * 2 + [(-a, 1.0)] * part.p:
            stencil = np.convolve(stencil, factor) / self.shares.rest
        at = np.maximum(n, part.p) - part.p
        found = sum(c * self.phi(at + i) for i, c in enumerate(stencil))
        return np.where(n >= part.p, found, 0.0)
