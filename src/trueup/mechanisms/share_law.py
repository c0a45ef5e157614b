"""The exact standard deviation of an unbiased share of k counts: sums over all that can come out.

Of k noisy counts a share reads its own y, their sum n and the number p of positive ones
(:mod:`trueup.mechanisms.many_counts`). The law of (n, p) over the other counts is built count by
count, and given (n, p) the share is linear in y: three moments of y are enough. A count, never
negative, has the masses (1 − α)/(1 + α)·α^|y − s| for y ≥ 1, and α^s/(1 + α) at 0: sums of
geometric windows, made by doubling them. All terms of the law are positive: the tails, which decide
where shares are large, have all their digits.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Moments = tuple[Floats, Floats, Floats]

_TAIL = 40.0  # e^−40 of a variance is below its last digit
_TILTS = (0.5, 0.8, 0.9, 0.95)  # of 1/scale, in Chernoff's bound of the tails
_CALM = 10.0  # from so many times k scales on, a share is near y/n
_HALF = 0.5  # below, the logarithm of α is that of 1 less its distance from 1
_CELLS = 1_000_000  # pairs (n, p) that are summed: more take long


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """Noisy counts of which p are positive: the share is a + b·(y − s) off, by their sum.

    ``far`` is how far that sum is from the true one, ``masses`` are Σ P, Σ P·(y − s), Σ P·(y − s)².
    """

    p: int
    far: NDArray[np.int64]
    a: Floats
    b: Floats
    masses: Moments

    def moments(self, shift: float) -> tuple[Floats, Floats]:
        """Return the sums of X and X², by the sum of all counts, X the share's error and more."""
        a, (m0, m1, m2) = self.a + shift, self.masses
        return a * m0 + self.b * m1, a**2 * m0 + 2 * a * self.b * m1 + self.b**2 * m2


@dataclasses.dataclass(frozen=True)
class ShareLaw:
    """Shares of k counts with noise of ratio α, of at least ``least`` records.

    Examples
    --------
    >>> round(ShareLaw(Fraction(1, 2), 3, 1).sd((4, 3, 3), 0), 4)
    0.2236
    """

    ratio: Fraction
    categories: int
    least: int

    @property
    def alpha(self) -> float:
        """α."""
        return float(self.ratio)

    @property
    def rest(self) -> float:
        """1 − α, with all its digits."""
        return float(1 - self.ratio)

    @property
    def kappa(self) -> float:
        """α/(1 − α)."""
        return self.alpha / self.rest

    def sd(self, counts: Sequence[int], i: int) -> float:
        """Return the standard deviation of the share of category i at the true counts."""
        first = second = 0.0
        for part in self.outcomes(counts, i):
            one, two = part.moments(0.0)
            first, second = first + float(one.sum()), second + float(two.sum())
        return math.sqrt(max(second - first**2, 0.0))

    def outcomes(self, counts: Sequence[int], i: int, above: int = -1) -> Iterator[Outcomes]:
        """Yield all that can come out, by the number of positive counts.

        ``above``: only where the noisy counts but that of category i have a larger sum.
        """
        size, own = sum(counts), counts[i]
        low, high = self.window(size)
        far = np.arange(low, high + 1)
        law = np.zeros((1, high - low + 1))
        law[0, -low] = 1.0
        sure = 0
        for s in (s for j, s in enumerate(counts) if j != i):
            law, more = self._with(law, s)
            sure += more
        law[:, far <= above - (size - own)] = 0.0
        for q, positive, masses in self._parts(law, own):
            at, rise = self.linear(counts, i, far, q + sure + positive, positive)
            yield Outcomes(q + sure + positive, far, at, rise, masses)

    # -- the law -----------------------------------------------------------------------------------

    def window(self, size: int) -> tuple[int, int]:
        """Return how far n is below and above the true sum in all that is summed.

        E e^{tZ} ≤ M^k bounds the tails for a tilt t. Where n is small a share can be as large as
        ((1 + α)/(1 − α))^2k, and the law must be known so much further.
        """
        if not self.alpha:
            return 0, 0
        scale, k = self._scale, self.categories
        largest = 2 * (2 * k * math.log((1 + self.alpha) / self.rest) + math.log(size + 2))
        calm, wild = (
            min(scale / t * (_TAIL + extra + k * self._tilted(t)) for t in _TILTS)
            for extra in (0.0, largest)
        )
        is_calm = size / 2 >= max(wild, calm, _CALM * k * scale)
        low, high = min(size, math.ceil(calm if is_calm else wild)), math.ceil(calm)
        if (low + high) * k > _CELLS:
            raise TrueupError(
                f"a standard deviation under this noise is a sum over {low + high:,} totals",
                f"at most {_CELLS // k:,} are summed: raise epsilon, or take fewer categories",
            )
        return -low, high

    def _tilted(self, t: float) -> float:
        """Return the logarithm of E e^{τZ} at τ = t/scale."""
        less, more = (-math.expm1((s * t - 1) / self._scale) for s in (1, -1))
        return math.log(self.rest / less) + math.log(self.rest / more)

    @property
    def _scale(self) -> float:
        return -1 / (math.log1p(-self.rest) if self.rest < _HALF else math.log(self.alpha))

    def _with(self, law: Floats, s: int) -> tuple[Floats, int]:
        """Return the law with one count more, and 1 if that count is surely positive."""
        positive = self._positive(law, s, 1)[0]
        if s >= law.shape[1]:
            return positive, 1
        zero = _moved(law, -s) * (self.alpha**s / (1 + self.alpha))
        grown = np.zeros((len(law) + 1, law.shape[1]))
        grown[:-1] += zero
        grown[1:] += positive
        return grown, 0

    def _positive(self, law: Floats, s: int, orders: int) -> list[Floats]:
        """Return Σ P(y)·(y − s)^r·law(n − y + s) over y ≥ 1 for r below ``orders``."""
        a, width = self.alpha, law.shape[-1]
        found = _geometric(law, a, width, orders, 1)
        down = _geometric(law, a, min(s, width), orders, -1)
        found[0] -= law  # y = s is in both, or in none where y ≥ 1 is y − s ≥ 1
        for r in range(orders):
            found[r] += (-1) ** r * down[r]
            found[r] *= self.rest / (1 + a)
        return found

    def _parts(self, law: Floats, s: int) -> Iterator[tuple[int, bool, Moments]]:
        """Yield the number of other positive counts, whether the own one is, and its moments."""
        for q, one in enumerate(law):
            m0, m1, m2 = self._positive(one, s, 3)
            yield q, True, (m0, m1, m2)
            if s < len(one):
                zero = _moved(one, -s) * (self.alpha**s / (1 + self.alpha))
                yield q, False, (zero, -s * zero, s**2 * zero)

    # -- the share ---------------------------------------------------------------------------------

    def linear(
        self, counts: Sequence[int], i: int, far: NDArray[np.int64], p: int, positive: bool
    ) -> tuple[Floats, Floats]:
        """Return a and b of the share less its true value, a + b·(y − s), for each n.

        Written as differences from the truth: for many records both are nearly the same.
        """
        k, size = self.categories, sum(counts)
        n = np.asarray(far + float(size), dtype=np.float64)
        bend, slope = self._slope(n, p)
        edge = self.kappa * self._slope(n - 1, p - 1)[1] if p else np.zeros(len(n))
        contrast = counts[i] - size / k
        rise = slope
        if size:
            rise = bend - np.where(n > 0, far / np.maximum(n, 1), 1) / size
        at = contrast * rise - far / k * slope + (positive - p / k) * edge
        return at, slope

    def _slope(self, n: Floats, p: int) -> tuple[Floats, Floats]:
        """Return B_p(n) − 1/n and B_p(n); n < p has no probability."""
        bend, slope = np.zeros(len(n)), np.zeros(len(n))
        first, own = np.searchsorted(n, [p, p + self.least])
        bend[own:] = self._bend(n[own:], p)
        slope[own:] = bend[own:] + 1 / n[own:]
        below = n[first:own]
        slope[first:own] = self._continued(below, p)
        bend[first:own] = slope[first:own] - np.where(below > 0, 1 / np.maximum(below, 1), 0.0)
        return bend, slope

    def _bend(self, n: Floats, p: int) -> Floats:
        """Return (1 − λδ²)^p·(1 − κΔ)^{k−p} of 1/n, less 1/n.

        δ²ʲ(−Δ)ⁱ of 1/n is (2j + i)!/((n − j)·…·(n + j + i)), positive.
        """
        kappa, total = self.kappa, np.zeros(len(n))
        central = 1 / n
        for j in range(p + 1):
            if j:
                central = central * (2 * j / (n - j)) * ((2 * j - 1) / (n + j))
            sign = math.comb(p, j) * (-kappa * (1 + kappa)) ** j
            term = central
            for i in range(self.categories - p + 1):
                if i:
                    term = term * ((2 * j + i) / (n + (j + i)))
                if i or j:
                    total += sign * math.comb(self.categories - p, i) * kappa**i * term
        return total

    def _continued(self, n: Floats, p: int) -> Floats:
        """Return (1 + κ∇)^p of the polynomial, by its differences at the last of its points.

        There B falls, its differences alternate in sign, and the terms of the polynomial are
        positive.
        """
        k, kappa, total = self.categories, self.kappa, np.zeros(len(n))
        last = self.least + k - 1
        choose = _binomials(last - n, k)
        for m in range(k):
            step, term = 0.0, math.factorial(m) / math.prod(range(last - m, last + 1))
            for i in range(k + 1):
                term *= (m + i) / (last + i) if i else 1.0
                step += math.comb(k, i) * kappa**i * term
            for j in range(min(m, p) + 1):
                total += step * math.comb(p, j) * (-kappa) ** j * choose[m - j]
        return total


def _binomials(x: Floats, most: int) -> list[Floats]:
    """Return x·(x − 1)·…/m! for m below ``most``."""
    found = [np.ones(len(x))]
    for m in range(1, most):
        found.append(found[-1] * (x - m + 1) / m)
    return found


def _moved(law: Floats, by: int) -> Floats:
    """Return a law at n − ``by``; what leaves the window is dropped."""
    width = law.shape[-1]
    moved = np.zeros_like(law)
    if 0 <= by < width:
        moved[..., by:] = law[..., : width - by]
    elif -width < by < 0:
        moved[..., :by] = law[..., -by:]
    return moved


def _geometric(law: Floats, a: float, length: int, orders: int, sign: int) -> list[Floats]:
    """Return Σ aᵈ·dʳ·law(n − sign·d) over d below ``length``, for r below ``orders``.

    Sums over twice as many d are those over the first and over the second half.
    """
    found, size = [np.zeros_like(law) for _ in range(orders)], 0

    def add(into: Floats, values: Floats, factor: float) -> None:
        if size < law.shape[-1] and factor:
            here, there = slice(size, None), slice(0, law.shape[-1] - size)
            here, there = (here, there) if sign > 0 else (there, here)
            into[..., here] += factor * values[..., there]

    for bit in f"{length:b}":
        for r in reversed(range(orders)):  # none is changed before the others have read it
            for m in reversed(range(r + 1)):
                add(found[r], found[m], a**size * math.comb(r, m) * float(size) ** (r - m))
        size *= 2
        if bit == "1":
            for r in range(orders):
                add(found[r], law, a**size * float(size) ** r)
            size += 1
    return found
