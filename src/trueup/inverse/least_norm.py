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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy
import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.formula.text import text
from trueup.inverse.on_values import OnValues, table, values_at
from trueup.noise.mass import support
from trueup.noise.sum import SumNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

ACCEPTED = 1e-9
"""What |E g − f| may be, relative to |f| and a thousandth of its largest value."""

ROUGHLY = 1e-5
"""The same for the estimate of the variance."""

WILDEST = 1e3
"""The largest standard deviation that is of any use, relative to the largest value of f."""

_WANTED = 1e-13
_UNSEEN = 1e-14  # of the mean there: what the ends of a table may add to it
_ROUNDING, _GAIN = 1e-16, 0.01  # per value, in the logarithm of what is left: else it is done
_LOCAL = 1e-15  # of the largest value of f: smaller ones are not looked at for themselves
_ROUNDS = 200
_RIDGE = 5e-16
_TINY = 1e-17  # what the ridge makes up for anyway
MAX_WORK = 3e10
"""Multiplications for one factorisation."""
MAX_SIZE = 1e7
"""Numbers in the bands of the system: 80 MB, a few times over."""


def prior_weights(domain: Interval, q: Floats) -> Floats:
    """Return the default prior at integers: log-uniform on a positive domain, else uniform.

    Outside the domain it is zero.

    Examples
    --------
    >>> from trueup.domain import Integers
    >>> prior_weights(Integers(1, None), np.array([0.0, 1.0, 4.0]))
    array([0.  , 1.  , 0.25])
    """
    inside = domain.contains(q)
    size = np.where(inside, q, 1.0) if prior_name(domain) == "log-uniform" else np.ones_like(q)
    return np.where(inside, 1 / size, 0.0)


def prior_name(domain: Interval) -> str:
    """Return the name of the default prior."""
    return "log-uniform" if domain.low > 0 else "uniform"


def masses_of(noise: Noise, rate: float) -> tuple[int, Floats]:
    """Return the first integer that matters, and the masses from it on, for sums too."""
    first, masses = 0, np.ones(1)
    for part in noise.parts if isinstance(noise, SumNoise) else (noise,):
        start, own = support(part, rate)
        first, masses = first + start, np.convolve(masses, own)
    return first, masses


class Solution(NamedTuple):
    """A table g(first), g(first + 1), … and how far E g is from f, relative to f."""

    values: Floats
    error: float


class LeastNorm:
    """The system P·g = f for one noise at the integers of a window of the domain, factored once.

    For f that grows like e^{τq} it is solved for f·e^{−τq} and g·e^{−τx}, with p(k)·e^{τk}; masses
    count as far as e^{rate·|k|} lets them.
    """

    def __init__(
        self, noise: Noise, domain: Interval, window: Interval, tilt: float, rate: float
    ) -> None:
        low, high = (int(b) for b in window.bounds if b is not None)
        offset, self.masses = masses_of(noise, rate)
        self.first, count, width = low + offset, high - low + 1, len(self.masses)
        band = min(width - 1, high - low)
        work = float(count) * width * (band + 1)
        if work + float(count) * band**2 > MAX_WORK or (band + 1) * count > MAX_SIZE:
            raise TrueupError(
                f"{noise!r} on {domain} is too large a system to solve exactly",
                "narrow the domain, or use nearly_unbiased(f, noise, domain, max_bias=...)",
            )
        self.truths = np.arange(low, high + 1.0)
        likely = prior_weights(domain, np.arange(low - width, high + width + 1.0))
        mixture = np.convolve(likely, self.masses)[width : 2 * width + count - 1]
        self.likely = mixture / likely[width : width + count].min()
        x = self.first + np.arange(len(mixture))
        middle = (x[0] + x[-1]) / 2  # farther apart powers may be too large for doubles
        self._level, self._rise = (np.exp(tilt * (k - middle)) for k in (self.truths, x))
        self.masses = self.masses * np.exp(tilt * (offset + np.arange(width)))
        with np.errstate(divide="ignore"):
            weight = np.log(mixture) + 2 * tilt * (x - middle)
        weight = np.exp(weight - weight.max())
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
        return np.asarray(self._level * self._mean(g / self._rise))

    def _mean(self, g: Floats) -> Floats:
        return np.correlate(g, self.masses, "valid")

    def covariance(self, g: Floats, other: Floats) -> Floats:
        """Return the covariance of g(q + Z) and l(q + Z) for every q."""
        width, count = len(self.masses), len(self.truths)
        windows = [np.lib.stride_tricks.sliding_window_view(h, width) for h in (g, other)]
        means, found = [self.mean(h) for h in (g, other)], np.empty(count)
        step = max(1, 10_000_000 // width)
        for i in range(0, count, step):
            rows = slice(i, i + step)
            left, right = (w[rows] - m[rows, None] for w, m in zip(windows, means, strict=True))
            found[rows] = (left * right) @ self.masses
        return found

    def _constant(self, f: Floats) -> float:
        """Return the least value of f: a constant is its own estimator, and of least variance.

        Less a large one, small values would lose their digits.
        """
        return float(f[np.argmin(np.abs(f))]) if self._rise[0] == self._rise[-1] else 0.0

    def solve(self, f: Floats) -> Solution:
        """Return the g of least norm, with E g = f as exactly as doubles allow."""
        factor, root = self._factor
        f = f / self._level
        centre, top = self._constant(f), np.abs(f).max() + np.finfo(float).tiny
        size = np.maximum(np.abs(f), _LOCAL * top)
        size[f == 0] = top  # zeros have no size of their own
        g, best = np.zeros(len(f) + len(self.masses) - 1), np.empty(0)
        least = total = math.inf
        for _ in range(_ROUNDS):
            left = f - centre - self._mean(g)
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
        error = np.abs(f - self._mean(filled)) / (np.abs(f) + 1e-3 * top)
        return Solution(filled * self._rise, float(error.max()))


def _trimmed(values: Floats, likely: Floats, mean: float) -> int:
    """Return how many values at the start can be replaced by the next one.

    By that the mean moves by Σᵢ pᵢ·|vᵢ − vₛ| ≤ Σᵢ (p₀ + … + pᵢ)·|vᵢ₊₁ − vᵢ|.
    """
    moved = np.cumsum(np.cumsum(likely)[:-1] * np.abs(np.diff(values)))
    return int(np.searchsorted(moved, _UNSEEN * mean, side="right"))


@lru_cache(maxsize=32)
def system(
    noise: Noise, domain: Interval, window: Interval, tilt: float = 0.0, rate: float = 0.0
) -> LeastNorm:
    """Return the factored system, made once."""
    return LeastNorm(noise, domain, window, tilt, rate)


@dataclasses.dataclass(frozen=True, eq=False)
class Solved(OnValues):
    """A branch whose tables are solved for, one for every function, on the whole of {L..U}."""

    system: LeastNorm
    noise: Noise
    domain: Interval
    widest: float | None = WILDEST
    """The largest standard deviation that is accepted, relative to the largest value of f."""

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the least-norm solution as a table."""
        return self._table(self.solved(h, n).values, n)

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the estimator of the covariance, which is known at every true value."""
        left, right = (self.solved(e, n).values for e in (h, other))
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = self.system.covariance(left, right)
        return self._table(self._checked(covariance, h, self.system).values, n)

    def _checked(self, squares: Floats, h: sympy.Expr, system: LeastNorm) -> Solution:
        """Return the solution for squares and products, if doubles are enough."""
        if np.isfinite(squares).all():
            solution = system.solve(squares)
            if solution.error <= ROUGHLY:
                return solution
        raise TrueupError(
            f"no unbiased estimate of the variance of {text(h)} under {self.noise!r} on "
            f"{self.domain} in double precision",
            "use sd(q) at plausible true values, which is exact",
        )

    def _table(self, values: Floats, n: sympy.Symbol) -> sympy.Expr:
        """Return the values at the published numbers as a table."""
        system, rows = self.system, self._rows
        mean, start, stop = np.abs(system.mean(values)), rows.start, rows.stop
        if rows.start == 0:
            start = _trimmed(values[rows], system.likely[rows], mean[:3].max())
        if rows.stop == len(values):
            stop -= _trimmed(values[rows][::-1], system.likely[rows][::-1], mean[-3:].max())
        return table(system.first + start, values[start : max(stop, start + 1)], self.place(n))

    @property
    def _rows(self) -> slice:
        """The published numbers that belong to this branch."""
        return slice(0, len(self.system.reached))

    def solved(self, h: sympy.Expr, n: sympy.Symbol) -> Solution:
        """Return the table of g, checked by direct sums, or refuse it."""
        values = values_at(h, n, self.system.truths)
        solution = self.system.solve(values)
        if self.widest is not None:
            worst, sd = self._widest(solution)
            if sd > self.widest * float(np.abs(values).max()):
                why = (
                    f"its standard deviation would be {sd:.2g} at {n.name} = "
                    f"{self.system.truths[worst]:g}, where {text(h)} is {values[worst]:.3g}"
                )
                raise self._unusable(h, why)
        if solution.error > ACCEPTED:
            raise self._unusable(h, f"in doubles the mean is off by {solution.error:.1g}")
        return solution

    def _unusable(self, h: sympy.Expr, why: str) -> NoUnbiasedEstimator:
        return NoUnbiasedEstimator(
            f"no usable unbiased estimator of {text(h)} under {self.noise!r} on {self.domain} was "
            f"found: {why}",
            "raise the lower bound, or accept a small bias: "
            f"nearly_unbiased({text(h)!r}, {self.noise!r}, {self.domain!r}, max_bias=...)",
            proved=False,
        )

    def _widest(self, solution: Solution) -> tuple[int, float]:
        """Return where the standard deviation is largest, and how large."""
        variance = self.system.covariance(solution.values, solution.values)
        worst = int(np.argmax(variance))
        return worst, math.sqrt(variance[worst])

    def facts(self, h: sympy.Expr, n: sympy.Symbol) -> str:
        """Return how exact and how wide the estimator of h is, in words."""
        solution = self.solved(h, n)
        worst, sd = self._widest(solution)
        return (
            f"E g = f to {max(solution.error, 1e-16):.0e} of f, by direct sums; largest sd "
            f"{sd:.3g}, at {n.name} = {self.system.truths[worst]:g}"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class NearBound(Solved):
    """The same on a window at one bound; beyond ``last`` another branch goes on."""

    last: int = 0
    squares: LeastNorm | None = None
    """The system for products of two functions."""

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[u]·T[v] − T[u·v], with u and v measured from their least values."""
        u, v = (values_at(e, n, self.system.truths) for e in (h, other))
        u, v = (e - e[np.argmin(np.abs(e))] for e in (u, v))
        with np.errstate(over="ignore"):
            both = self._checked(u * v, h, self.squares or self.system)
        left, right = (self.system.solve(e).values for e in (u, v))
        return self._table(left * right - both.values, n)

    @property
    def _rows(self) -> slice:
        """The published numbers that belong to this branch."""
        end = self.last - self.system.first
        rows = super()._rows
        return slice(0, end + 1) if self.side == "below" else slice(end, rows.stop)
