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
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Moments = tuple[Floats, Floats, Floats]

_TAIL = 40.0  # e^−40 of a variance is below its last digit
_TILTS = (0.5, 0.8, 0.9, 0.95)  # of 1/scale, in Chernoff's bound of the tails
_CALM = 10.0  # from so many times k scales on, a share is near y/n
_HALF = 0.5  # below, the logarithm of α is that of 1 less its distance from 1
_CELLS = 1_000_000  # pairs (n, p) that are summed: more take long


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
        size, own = sum(counts), counts[i]
        low, high = self._window(size)
        law = np.zeros((1, high - low + 1))
        law[0, -low] = 1.0
        others = [s for j, s in enumerate(counts) if j != i]
        sure = 0
        for s in others:
            law, more = self._with(law, s)
            sure += more
        first = second = 0.0
        for q, positive, moments in self._parts(law, own):
            at, rise = self._linear(counts, i, np.arange(low, high + 1), q + sure, positive)
            m0, m1, m2 = moments
            first += float((at * m0 + rise * m1).sum())
            second += float((at**2 * m0 + 2 * at * rise * m1 + rise**2 * m2).sum())
        return math.sqrt(max(second - first**2, 0.0))

    # -- the law -----------------------------------------------------------------------------------

    def _window(self, size: int) -> tuple[int, int]:
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
        a, width = self.alpha, law.shape[1]
        up = _geometric(law, a, width, orders, 1)
        if not s:  # y ≥ 1 is y − s ≥ 1
            up[0] = up[0] - law
        down = _geometric(law, a, min(s, width), orders, -1)
        down[0] = down[0] - law if s else down[0]
        mass = self.rest / (1 + a)
        return [mass * (u + (-1) ** r * d) for r, (u, d) in enumerate(zip(up, down, strict=True))]

    def _parts(self, law: Floats, s: int) -> list[tuple[int, bool, Moments]]:
        """Return the number of other positive counts, whether the own one is, and its moments."""
        found: list[tuple[int, bool, Moments]] = []
        m0, m1, m2 = self._positive(law, s, 3)
        found += [(q, True, (m0[q], m1[q], m2[q])) for q in range(len(law))]
        if s < law.shape[1]:
            zero = _moved(law, -s) * (self.alpha**s / (1 + self.alpha))
            found += [(q, False, (z, -s * z, s**2 * z)) for q, z in enumerate(zero)]
        return found

    # -- the share ---------------------------------------------------------------------------------

    def _linear(
        self, counts: Sequence[int], i: int, far: NDArray[np.int64], q: int, positive: bool
    ) -> tuple[Floats, Floats]:
        """Return a and b of the share less its true value, a + b·(y − s), for each n.

        Written as differences from the truth: for many records both are nearly the same.
        """
        k, size, p = self.categories, sum(counts), q + positive
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
        own = n - p >= self.least
        with np.errstate(divide="ignore"):
            inverse = np.where(n > 0, 1 / n, 0.0)
        if own.any():
            bend[own] = self._bend(n[own], p)
            slope[own] = bend[own] + inverse[own]
        below = ~own & (n >= p)
        if below.any():
            slope[below] = self._continued(n[below], p)
            bend[below] = slope[below] - inverse[below]
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
    """Return Σ aᵈ·dʳ·law(n − sign·d) over d below ``length``, for r below ``orders``."""
    one = [law, *(np.zeros_like(law) for _ in range(orders - 1))]
    if length <= 1:
        return one if length else [np.zeros_like(law) for _ in range(orders)]
    half = length // 2
    found = _geometric(law, a, half, orders, sign)
    found = _joined(found, found, a, half, sign)
    return _joined(found, one, a, length - 1, sign) if length % 2 else found


def _joined(
    near: list[Floats], far: list[Floats], a: float, length: int, sign: int
) -> list[Floats]:
    """Return the sums over a window, and over another one that begins where it ends."""
    moved = [_moved(f, sign * length) * a**length for f in far]
    return [
        here + sum(math.comb(r, m) * float(length) ** (r - m) * moved[m] for m in range(r + 1))
        for r, here in enumerate(near)
    ]
