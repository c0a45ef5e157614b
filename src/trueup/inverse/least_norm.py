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
from trueup.exact import symbolic
from trueup.formula.text import text
from trueup.inverse import prior
from trueup.inverse.on_values import OnValues, table, values_at
from trueup.noise.mass import support
from trueup.noise.operator import Operator

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
_LOCAL = 1e-9  # values of f down to this part of the largest are met as well as that
_ROUNDS = 200
_RIDGE = 5e-16
_TINY = 1e-17  # what the ridge makes up for anyway
MAX_WORK = 3e10
"""Multiplications for one factorisation."""
MAX_SIZE = 1e7
"""Numbers in the bands of the system: 80 MB, a few times over."""


class Solution(NamedTuple):
    """A table g(first), g(first + 1), … and how far E g is from f, relative to f."""

    values: Floats
    error: float


class LeastNorm:
    """The system P·g = f for one noise and one domain, factored once."""

    def __init__(self, noise: Noise, domain: Interval) -> None:
        low, high = (int(b) for b in domain.bounds if b is not None)
        offset, self.masses = support(noise)
        self.first, count = low + offset, high - low + 1
        band = min(len(self.masses) - 1, high - low)
        work = float(count) * len(self.masses) * (band + 1)
        if work + float(count) * band**2 > MAX_WORK or (band + 1) * count > MAX_SIZE:
            raise TrueupError(
                f"{noise!r} on {domain} is too large a system to solve exactly",
                "narrow the domain, or use nearly_unbiased(f, noise, domain, max_bias=...)",
            )
        self.truths = np.arange(low, high + 1.0)
        mixture = np.convolve(prior.weights(domain, self.truths), self.masses)
        self.reached = mixture > 0
        self._inverse = np.where(self.reached, 1 / np.where(self.reached, mixture, 1.0), 0.0)
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
        """Return E g(q + Z) for every q of the domain."""
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

    def spread(self, g: Floats) -> Floats:
        """Return the standard deviation of g(q + Z) for every q."""
        return np.sqrt(self.covariance(g, g))

    def solve(self, f: Floats) -> Solution:
        """Return the g of least norm, with E g = f as exactly as doubles allow.

        Constants are their own estimators, so only f less its least value is solved for: less a
        large one, small values would lose their digits.
        """
        factor, root = self._factor
        centre, top = f[np.argmin(np.abs(f))], np.abs(f).max() + np.finfo(float).tiny
        size = np.where(np.abs(f) > _LOCAL * top, np.abs(f), top)  # zeros have no size of their own
        g, best, least = np.zeros(len(f) + len(self.masses) - 1), np.empty(0), math.inf
        for _ in range(_ROUNDS):
            left = f - centre - self.mean(g)
            gap = float(np.max(np.abs(left) / size))
            if gap > 0.99 * least:
                break
            best, least = g, gap
            if gap < _WANTED:
                break
            mu = scipy.linalg.cho_solve_banded((factor, True), left / root) / root
            g = g + np.convolve(mu, self.masses) * self._inverse
        places = np.arange(len(best))
        filled = centre + np.interp(places, places[self.reached], best[self.reached])
        error = np.abs(f - self.mean(filled)) / (np.abs(f) + 1e-3 * top)
        return Solution(filled, float(error.max()))


@lru_cache(maxsize=32)
def system(noise: Noise, domain: Interval) -> LeastNorm:
    """Return the factored system, made once."""
    return LeastNorm(noise, domain)


@dataclasses.dataclass(frozen=True, eq=False)
class Solved(OnValues):
    """The branch whose tables are solved for: one table for every function."""

    noise: Noise | None = None
    domain: Interval | None = None

    @property
    def _system(self) -> LeastNorm:
        assert self.noise is not None  # noqa: S101  (both are given)
        assert self.domain is not None  # noqa: S101
        return system(self.noise, self.domain)

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the least-norm solution as a table."""
        return table(self._system.first, self.solved(h, n).values, n)

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return the estimator of the covariance, which is known at every true value."""
        left, right = (self.solved(e, n).values for e in (h, other))
        solution = self._system.solve(self._system.covariance(left, right))
        if solution.error > ROUGHLY:
            raise TrueupError(
                f"no unbiased estimate of the variance of {text(h)} under {self.noise!r} in double "
                f"precision: it would be off by {solution.error:.1g}",
                "use sd(q) at plausible true values, which is exact",
            )
        return table(self._system.first, solution.values, n)

    def solved(self, h: sympy.Expr, n: sympy.Symbol) -> Solution:
        """Return the table of g, checked by direct sums, or refuse it."""
        values = values_at(h, n, self._system.truths)
        solution = self._system.solve(values)
        sd = self._system.spread(solution.values)
        worst, size = int(np.argmax(sd)), float(np.abs(values).max())
        if solution.error <= ACCEPTED and sd[worst] <= WILDEST * size:
            return solution
        why = (
            f"its standard deviation would be {sd[worst]:.2g} at {n.name} = "
            f"{self._system.truths[worst]:g}, where {text(h)} is {values[worst]:.3g}"
        )
        if solution.error > ACCEPTED:
            why += f" or more, and in double precision the mean is off by {solution.error:.1g}"
        raise NoUnbiasedEstimator(
            f"no usable unbiased estimator of {text(h)} under {self.noise!r} on {self.domain} was "
            f"found: {why}",
            "raise the lower bound, or accept a small bias: "
            f"nearly_unbiased({text(h)!r}, {self.noise!r}, {self.domain!r}, max_bias=...)",
            proved=False,
        )

    def facts(self, h: sympy.Expr, n: sympy.Symbol) -> str:
        """Return how exact and how wide the estimator of h is, in words."""
        solution = self.solved(h, n)
        sd = self._system.spread(solution.values)
        worst = int(np.argmax(sd))
        return (
            f"E g = f to {max(solution.error, 1e-16):.0e} of f, by direct sums; largest sd "
            f"{sd[worst]:.3g}, at {n.name} = {self._system.truths[worst]:g}"
        )


def operator(noise: Noise, domain: Interval) -> Operator:
    """Return the least-norm inverse on a finite set of integers."""
    theorem = (
        f"{noise!r} on {domain}: the unbiased estimator of least variance under "
        f"a {prior.name(domain)} prior, by weighted least norm"
    )
    branch = Solved("inside", None, {}, noise, domain)
    ends = symbolic(domain.low), symbolic(domain.high)
    return Operator((branch,), theorem, *ends, edges=(-sympy.oo, sympy.oo))
