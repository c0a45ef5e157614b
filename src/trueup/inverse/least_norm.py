"""Any mass function on {L..U}: the unbiased estimator of least averaged variance.

Unbiasedness at every q of {L..U} is a banded system P·g = f, P(q, x) = p(x − q), with more unknowns
than equations. With m = Σ_q w(q) p(· − q), the law of x under the prior w, the averaged variance is
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

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.formula.text import text
from trueup.inverse.on_values import ONE, Tables
from trueup.noise.mass import support

if TYPE_CHECKING:
    import sympy
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

ACCEPTED = 1e-9
"""What |E g − f| may be, relative to |f| and a thousandth of its largest value nearby."""

ROUGHLY = 1e-5
"""The same for the estimate of the variance."""

WILDEST = 1e3
"""The largest standard deviation that is of any use, relative to the largest value of f."""

_WANTED = 1e-13  # of each value: what refinement aims at
_UNSEEN = 1e-14  # of the mean there: what the ends of a table may add to it
_ROUNDING, _GAIN = 1e-16, 0.01  # per value, in the logarithm of what is left: else it is done
_LOCAL = 1e-15  # of the largest value of f: smaller ones are not looked at for themselves
_ROUNDS = 200
_RIDGE = 5e-16
_TINY = 1e-17  # entries that the ridge makes up for anyway
MAX_WORK = 3e10
"""Multiplications for one factorisation: some ten seconds."""
MAX_SIZE = 1e7
"""Numbers in the bands of the system: 80 MB, a few times over."""


def prior_name(domain: Interval) -> str:
    """Return the name of the default prior: log-uniform on a positive domain, else uniform."""
    return "log-uniform" if domain.low > 0 else "uniform"


class LeastNorm:
    """The system P·g = f for one noise at the integers of a window of the domain, factored once."""

    def __init__(self, noise: Noise, domain: Interval, window: Interval) -> None:
        low, high = (int(b) for b in window.bounds if b is not None)
        offset, self.masses = support(noise)
        self.first, count, width = low + offset, high - low + 1, len(self.masses)
        band = min(width - 1, high - low)
        work = float(count) * width * (band + 1)
        if work + float(count) * band**2 > MAX_WORK or (band + 1) * count > MAX_SIZE:
            raise TrueupError(
                f"{noise!r} on {domain} is too large a system to solve exactly",
                "narrow the domain, or use nearly_unbiased(f, noise, domain, max_bias=...)",
            )
        self.truths = np.arange(low, high + 1.0)
        q = np.arange(low - width, high + width + 1.0)
        positive = domain.low > 0
        likely = np.where(domain.contains(q), 1 / np.where(q > 0, q, 1) if positive else 1.0, 0.0)
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

    def covariance(self, g: Floats, other: Floats) -> Floats:
        """Return the covariance of g(q + Z) and l(q + Z) for every q."""
        width, found = len(self.masses), np.empty(len(self.truths))
        windows = [np.lib.stride_tricks.sliding_window_view(h, width) for h in (g, other)]
        means = self.mean(g), self.mean(other)
        step = max(1, 10_000_000 // width)
        for i in range(0, len(found), step):
            rows = slice(i, i + step)
            left, right = (w[rows] - m[rows, None] for w, m in zip(windows, means, strict=True))
            with np.errstate(over="ignore", invalid="ignore"):
                found[rows] = (left * right) @ self.masses
        return found

    def solve(self, f: Floats) -> tuple[Floats, float]:
        """Return the g of least norm with E g = f, and how far E g is from f, relative to f.

        The least value of f is taken off first: a constant is its own estimator.
        """
        factor, root = self._factor
        centre, top = f[np.argmin(np.abs(f))], np.abs(f).max() + np.finfo(float).tiny
        size = np.maximum(np.abs(f), _LOCAL * top)
        size[f == 0] = top  # zeros have no size of their own
        g, best = np.zeros(len(f) + len(self.masses) - 1), np.empty(0)
        least = total = math.inf
        for _ in range(_ROUNDS):
            left = f - centre - self.mean(g)
            gaps = np.log(np.abs(left) / size + _ROUNDING)
            if gaps.max() > least - _GAIN and gaps.sum() > total - _GAIN * len(f):
                break
            best, least, total = g, min(least, gaps.max()), min(total, gaps.sum())
            if least < math.log(_WANTED):
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
class NearBound(Tables):
    """A branch whose tables are solved for, one for every function, on a window at a bound.

    ``rows`` are the published numbers that belong to the branch, counted from the first; ``widest``
    is the largest standard deviation that is accepted, relative to the largest value of f.
    """

    system: LeastNorm
    noise: Noise
    domain: Interval
    rows: slice
    widest: float = math.inf

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the least-norm solution as a table."""
        return self._shown({ONE: self.solved(h, n)[0]}, n)

    def tables(self, values: Floats, h: sympy.Expr) -> list[Floats]:
        """Return the solution for squares and products, if doubles are enough."""
        if np.isfinite(values).all():
            g, error = self.system.solve(values)
            if error <= ROUGHLY:
                return [g]
        raise TrueupError(
            f"no unbiased estimate of the variance of {text(h)} under {self.noise!r} on "
            f"{self.domain} in double precision",
            "use sd(q) at plausible true values, which is exact",
        )

    def solved(self, h: sympy.Expr, n: sympy.Symbol) -> tuple[Floats, float]:
        """Return the table of g and its error by direct sums, or refuse it."""
        values = self._values(h, n)
        g, error = self.system.solve(values)
        why = f"in doubles the mean is off by {error:.1g}" if error > ACCEPTED else ""
        if self.widest < math.inf:
            q, sd = self._most_spread(g)
            if sd > self.widest * float(np.abs(values).max()):
                f = values[self.truths == q][0]
                why = (
                    f"its standard deviation would be {sd:.2g} at {n.name} = {q:g}, where "
                    f"{text(h)} is {f:.3g}"
                )
        if why:
            raise NoUnbiasedEstimator(
                f"no usable unbiased estimator of {text(h)} under {self.noise!r} on {self.domain} "
                f"was found: {why}",
                "raise the lower bound, or accept a small bias: "
                f"nearly_unbiased({text(h)!r}, {self.noise!r}, {self.domain!r}, max_bias=...)",
                proved=False,
            )
        return g, error

    def _most_spread(self, g: Floats) -> tuple[float, float]:
        """Return where the standard deviation is largest, and how large."""
        variance = self.system.covariance(g, g)
        worst = int(np.argmax(variance))
        return float(self.truths[worst]), math.sqrt(variance[worst])

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


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Solved(NearBound):
    """The same on the whole of {L..U}, where the covariance is known at every true value."""

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the estimator of the covariance of both estimators."""
        left, right = (self.solved(e, n)[0] for e in (h, other))
        covariance = self.system.covariance(left, right)
        return self._shown({ONE: self.tables(covariance, h)[0]}, n)

    def facts(self, h: sympy.Expr, n: sympy.Symbol) -> str:
        """Return how exact and how wide the estimator of h is, in words."""
        g, error = self.solved(h, n)
        q, sd = self._most_spread(g)
        return (
            f"E g = f to {max(error, 1e-16):.0e} of f, by direct sums; largest sd {sd:.3g}, at "
            f"{n.name} = {q:g}"
        )
