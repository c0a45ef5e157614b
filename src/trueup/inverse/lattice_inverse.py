"""The inverse of any noise on the integers, on {L..U}, half-lines and all integers.

Far from bounds the estimator is a weighted sum over neighbours, T[f](x) = Σ vⱼ f(x + j), where
Σ p(k) vₘ₋ₖ = δₘ: v has the generating function 1/φ of the noise's masses p, and is computed by
FFT. Near a bound more than one estimator is unbiased. On a window {L..L+2d}, d the reach of v, the
one of least averaged variance is a weighted least norm: every unbiased estimator on the window is
T[f̃] for some f̃ beyond its ends, so at x ≥ L + d it is T[f] again, and the two fit together exactly.

Unbiasedness on a window is a banded system P·g = f, P(q, x) = p(x − q), with more unknowns than
equations. With m = Σ_q w(q) p(· − q), the law of x under the prior w, the averaged variance is
Σ m(x) g(x)² plus a constant, so the best g is the solution of least norm under the weight m,

    g = M⁻¹Pᵀμ,     P M⁻¹ Pᵀ μ = f.

P has singular values as small as the generating function at high frequencies, e^{−π²σ²/2} for
Gaussian noise. A ridge at the level of rounding keeps the banded Cholesky factor of P M⁻¹ Pᵀ
positive, and the residual f − P·g, summed directly, is put in again until it is gone (iterated
refinement). What has not gone, or has a standard deviation beyond use, is refused.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy
import sympy

from trueup.domain import Integers
from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.exact import symbolic
from trueup.formula.text import text
from trueup.inverse.on_values import ONE, STEEPEST, Stencil, Tables
from trueup.noise.mass import NEGLIGIBLE, Mass, support
from trueup.noise.operator import Branch, Operator, Side, X

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

_POINTS = 2**12  # of the transform: the weights of noise that is of any use fall faster
_LARGEST = 1e9  # weight: the doubles of f have seven digits to spare then
_ROUNDING = 3e-16  # of the transform: 1/φ is off by that much times 1/φ²
_EXACT = 1e-11  # of the largest weight: what rounding may take, which n² multiplies by 10⁴ and more

_ACCEPTED = 1e-9  # what |E g − f| may be, relative to |f| and a thousandth of its largest nearby
_ROUGHLY = 1e-5  # the same for the estimate of the variance
_WIDEST = 1e3  # the largest standard deviation of any use, relative to the largest value of f
_WANTED = 1e-13  # of each value: what refinement aims at
_GAIN = 0.01  # of what is left: with less than that in a round it is done
_LOCAL = 1e-15  # of the largest value of f: smaller ones are not looked at for themselves
_ROUNDS = 200
_RIDGE = 5e-16
_TINY = 1e-17  # entries that the ridge makes up for anyway
_UNSEEN = 1e-14  # of the mean there: what the ends of a table may add to it
_MOST_WORK = 3e10  # multiplications for one factorisation: some ten seconds
_MOST_NUMBERS = 1e7  # in the bands of the system: 80 MB, a few times over


@lru_cache(maxsize=64)
def weights(noise: Noise) -> dict[int, float] | None:
    """Return the weights of f(x + j), j ≠ 0, that are above rounding; None if 1/φ has none.

    Examples
    --------
    >>> from trueup.noise import DiscreteLaplace
    >>> found = weights(DiscreteLaplace(1) + DiscreteLaplace(1))
    >>> {j: round(v, 6) for j, v in found.items()}
    {1: -5.231907, 2: 0.84764, -1: -5.231907, -2: 0.84764}
    """
    first, masses = support(noise)
    folded = np.bincount((first + np.arange(len(masses))) % _POINTS, masses, _POINTS)
    with np.errstate(all="ignore"):
        inverted = 1 / np.fft.fft(folded)
        v = np.fft.ifft(inverted).real
        spread = math.sqrt(float(np.mean(np.abs(inverted) ** 4)) / _POINTS)
    size, far = np.abs(v).max(), np.abs(v[_POINTS // 4 : -_POINTS // 4]).max()
    error = _ROUNDING * (spread + 4 * size)
    if not (size <= _LARGEST and far <= error <= _EXACT * size):
        return None
    near = (side * j for side in (1, -1) for j in range(1, _POINTS // 4))
    return {j: float(v[j]) for j in near if abs(v[j]) > error}


def rounded(noise: Noise) -> Mass:
    """Return the masses of a symmetric continuous noise rounded to the nearest integer.

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> round(rounded(Laplace(1) + Laplace(2)).pmf(0), 6)
    0.163776
    """
    reach = math.ceil(-float(noise.quantile(NEGLIGIBLE)))
    below = noise.cdf(np.arange(-reach - 0.5, 0.0))  # lower tails keep their digits
    half = np.diff(below)[::-1]
    masses = {k: float(half[k - 1]) for k in range(1, reach + 1)}
    return Mass({0: 1 - 2 * float(below[-1]), **masses, **{-k: p for k, p in masses.items()}})


def rounding(noise: Noise, domain: Interval) -> Operator | None:
    """Return the inverse of continuous noise on an integer, which is rounded first."""
    law = rounded(noise)
    found = None if weights(law) is None else operator(law, domain, stated=noise)
    if found is None:
        return None
    half = sympy.Rational(1, 2)
    branches = tuple(dataclasses.replace(b, at=sympy.floor(X + half)) for b in found.branches)
    low, high = found.starts
    theorem = f"published values rounded to the nearest integer; {found.theorem}"
    return dataclasses.replace(
        found, branches=branches, theorem=theorem, edges=(low + half, high - half), jumps=0.5
    )


def operator(
    noise: Noise, domain: Interval, rate: float = 0.0, stated: Noise | None = None
) -> Operator | None:
    """Return the inverse on a domain for f that grows like e^{rate·|x|}, None if there is none.

    ``stated`` is the noise to be named, if that is another one.
    """
    finite, stated = None not in domain.bounds, stated or noise
    prior = f"under a {prior_name(domain)} prior"
    ends = symbolic(domain.low), symbolic(domain.high)

    def near(side: Side, window: Interval, rows: slice) -> Solved:
        known = system(noise, domain, window)
        return Solved(
            side,
            None,
            {},
            first=known.first,
            truths=known.truths,
            system=known,
            noise=stated,
            domain=domain,
            rows=rows,
        )

    found = weights(noise)
    reach = max(map(abs, found), default=1) if found else 1
    usable = found is not None and 2 * rate * reach <= STEEPEST
    if finite and (not usable or domain.high - domain.low < 4 * reach):
        theorem = (
            f"{stated!r} on {domain}: the unbiased estimator of least variance {prior}, by "
            "weighted least norm"
        )
        branch = near("inside", domain, slice(None))
        return Operator((branch,), theorem, *ends, edges=(-sympy.oo, sympy.oo))
    if found is None or not usable:
        return None
    inside = {j: (v,) for j, v in found.items()}
    branches: list[Branch] = [Stencil("inside", None, {}, weights=inside)]
    edges = [-sympy.oo, sympy.oo]
    theorem = f"{stated!r}: g = f + Σ vⱼ·(f(x+j) − f(x)), |j| ≤ {reach}, inverts its masses"
    if domain.bounds != (None, None):
        theorem += f"; near a bound of least variance {prior} among all that are unbiased"
    for i, (bound, inward) in enumerate(zip(domain.bounds, (1, -1), strict=True)):
        if bound is not None:
            last, far = int(bound) + inward * (reach - 1), int(bound) + 2 * inward * reach
            edges[i] = sympy.Integer(last)
            window = Integers(min(int(bound), far), max(int(bound), far))
            end = last - system(noise, domain, window).first
            rows = slice(end, None) if i else slice(0, end + 1)
            branches.append(near("above" if i else "below", window, rows))
    return Operator(tuple(branches), theorem, *ends, edges=(edges[0], edges[1]))


def prior_name(domain: Interval) -> str:
    """Return the name of the default prior: log-uniform on a positive domain, else uniform."""
    return "log-uniform" if domain.low > 0 else "uniform"


# -- near bounds -----------------------------------------------------------------------------------


class LeastNorm:
    """The system P·g = f for one noise at the integers of a window of the domain, factored once."""

    def __init__(self, noise: Noise, domain: Interval, window: Interval) -> None:
        low, high = (int(b) for b in window.bounds if b is not None)
        offset, self.masses = support(noise)
        self.first, count, width = low + offset, high - low + 1, len(self.masses)
        band = min(width - 1, high - low)
        work = float(count) * width * (band + 1) + float(count) * band**2
        if work > _MOST_WORK or (band + 1) * count > _MOST_NUMBERS:
            raise TrueupError(
                f"{noise!r} on {domain} is too large a system to solve exactly",
                "narrow the domain, or use nearly_unbiased(f, noise, domain, max_bias=...)",
            )
        self.truths = np.arange(low, high + 1.0)
        q = np.arange(low - width, high + width + 1.0)
        positive = domain.low > 0
        inside = (float(domain.low) <= q) & (q <= float(domain.high))
        likely = np.where(inside, 1 / np.where(q > 0, q, 1) if positive else 1.0, 0.0)
        mixture = np.convolve(likely, self.masses)[width : 2 * width + count - 1]
        self.likely = mixture / likely[width : width + count].min()
        weight = mixture / mixture.max()
        self.reached = weight > 1e-290  # 1/weight is a double
        self._inverse = np.where(self.reached, 1 / np.where(self.reached, weight, 1.0), 0.0)
        self._factor = self._factored(band)

    def _factored(self, band: int) -> tuple[Floats, Floats]:
        """Return the banded Cholesky factor of P M⁻¹ Pᵀ, scaled to a unit diagonal plus a ridge."""
        p, count = self.masses, len(self.truths)
        gram = np.zeros((band + 1, count))
        for d in range(band + 1):
            pairs = p[d:] * p[: len(p) - d]
            gram[d, : count - d] = np.correlate(self._inverse[d:], pairs, "valid")[: count - d]
        root = np.sqrt(gram[0])
        for d in range(band + 1):
            gram[d, : count - d] /= root[: count - d] * root[d:]
        ridge, width = _RIDGE, 1 + int(np.flatnonzero(np.abs(gram).max(axis=1) > _TINY)[-1])
        while True:
            gram[0] = 1 + ridge
            try:
                return scipy.linalg.cholesky_banded(gram[:width], lower=True), root
            except np.linalg.LinAlgError:
                ridge *= 4

    def mean(self, g: Floats) -> Floats:
        """Return E g(q + Z) for every q of the window."""
        return np.correlate(g, self.masses, "valid")

    def solve(self, f: Floats) -> tuple[Floats, float]:
        """Return the g of least norm with E g = f, and how far E g is from f, relative to f.

        The least value of f is taken off first: a constant is its own estimator.
        """
        factor, root = self._factor
        centre, top = f[np.argmin(np.abs(f))], np.abs(f).max() + np.finfo(float).tiny
        size = np.maximum(np.abs(f), _LOCAL * top)
        size[f == 0] = top  # zeros have no size of their own
        g, best, least = np.zeros(len(f) + len(self.masses) - 1), np.empty(0), math.inf
        for _ in range(_ROUNDS):
            left = f - centre - self.mean(g)
            gap = float((np.abs(left) / size).max())
            if not gap < (1 - _GAIN) * least:
                break
            best, least = g, gap
            if gap < _WANTED:
                break
            mu = scipy.linalg.cho_solve_banded((factor, True), left / root) / root
            g = g + np.convolve(mu, self.masses) * self._inverse
        places = np.arange(len(best))
        filled = centre + np.interp(places, places[self.reached], best[self.reached])
        near = scipy.ndimage.maximum_filter1d(np.abs(f), 2 * len(self.masses) + 1)
        error = np.abs(f - self.mean(filled)) / (np.abs(f) + 1e-3 * np.where(near > 0, near, top))
        return filled, float(error.max())


system = lru_cache(maxsize=32)(LeastNorm)
"""The factored system, made once."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Solved(Tables):
    """A branch whose tables are solved for, one for every function, on a window of the domain.

    ``rows`` are the published numbers that belong to the branch, counted from the first.
    """

    system: LeastNorm
    noise: Noise
    domain: Interval
    rows: slice

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the least-norm solution as a table."""
        return self._shown({ONE: self._checked(h, n)}, n)

    def tables(self, values: Floats, h: sympy.Expr) -> list[Floats]:
        """Return the solution for squares and products, if doubles are enough."""
        if np.isfinite(values).all():
            g, error = self.system.solve(values)
            if error <= _ROUGHLY:
                return [g]
        raise TrueupError(
            f"no unbiased estimate of the variance of {text(h)} under {self.noise!r} on "
            f"{self.domain} in double precision",
            "use sd(q) at plausible true values, which is exact",
        )

    def _checked(self, h: sympy.Expr, n: sympy.Symbol) -> Floats:
        """Return the table of g, or refuse it for its error by direct sums or for its spread."""
        values = self._values(h, n)
        g, error = self.system.solve(values)
        why = f"in doubles the mean is off by {error:.1g}" if error > _ACCEPTED else ""
        if self.rows == slice(None):
            top = np.abs(values).max() + np.finfo(float).tiny
            variance = self.system.mean((g / top) ** 2) - (values / top) ** 2
            worst = int(np.argmax(variance))
            if variance[worst] > _WIDEST**2:
                why = (
                    f"its standard deviation would be {top * math.sqrt(variance[worst]):.2g} at "
                    f"{n.name} = {self.truths[worst]:g}, where {text(h)} is {values[worst]:.3g}"
                )
        if why:
            raise NoUnbiasedEstimator(
                f"no usable unbiased estimator of {text(h)} under {self.noise!r} on {self.domain} "
                f"was found: {why}",
                "raise the lower bound, or accept a small bias: "
                f"nearly_unbiased({text(h)!r}, {self.noise!r}, {self.domain!r}, max_bias=...)",
                proved=False,
            )
        return g

    def _trimmed(self, values: Floats) -> tuple[int, Floats]:
        """Return the table of the rows, without what hardly ever comes at the ends of the axis."""
        mean, likely = np.abs(self.system.mean(values)), self.system.likely
        start, stop, _ = self.rows.indices(len(values))
        if start == 0:
            start = _unseen(values[:stop], likely[:stop], mean[:3].max())
        if stop == len(values):
            stop -= _unseen(values[:start:-1], likely[:start:-1], mean[-3:].max())
        return self.first + start, values[start : max(stop, start + 1)]


def _unseen(values: Floats, likely: Floats, mean: float) -> int:
    """Return how many values at the start can be replaced by the next one.

    By that the mean moves by Σᵢ pᵢ·|vᵢ − vₛ| ≤ Σᵢ (p₀ + … + pᵢ)·|vᵢ₊₁ − vᵢ|.
    """
    moved = np.cumsum(np.cumsum(likely)[:-1] * np.abs(np.diff(values)))
    return int(np.searchsorted(moved, _UNSEEN * mean, side="right"))
