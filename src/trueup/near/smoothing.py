"""x = q + Z as nodes and weights: all the integers that matter, or panels that break where g does.

On the line every panel lies between two neighbours among the knots of g and the points where the
density is not smooth, so on each of them Gauss–Legendre integrates a polynomial (or the series)
times a smooth density: the error is that of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_BEYOND = 1e-19
_ABOVE = 1 - 2.0**-53
"""The probability left out on either side, and what is kept below where that is not symmetric."""

_MOST = 200_000
"""Integers in a window."""

_SLAB = 2_000_000
"""Nodes at a time."""


class Nodes(NamedTuple):
    """Points x and a sparse matrix: E g(q + Z) is ``weights @ g(x)``, one row for each q."""

    x: Floats
    weights: scipy.sparse.csr_array


class Smoothing:
    """What noise does to a function: q ↦ E g(q + Z)."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        quartiles = float(noise.quantile(0.75)) - float(noise.quantile(0.25))
        spread = quartiles / 1.349
        if noise.highest_moment is None or noise.highest_moment > 1:
            spread = max(spread, 0.2 * math.sqrt(float(noise.variance)))
        self.unit = max(spread, 0.5) if noise.lattice else spread
        self.low, self.high = self._window()
        if not self.low < self.high:
            raise TrueupError(f"{noise!r} adds nothing to the true value", "use unbiased()")

    def _window(self) -> tuple[float, float]:
        low = float(self.noise.quantile(_BEYOND))
        high = -low if self.symmetric else float(self.noise.quantile(_ABOVE))
        if self.noise.lattice and high - low > _MOST:
            raise TrueupError(
                f"{self.noise!r} spreads over more than {_MOST} integers",
                "at this scale the continuous noise is the same to all digits: use Gaussian, "
                "Laplace, …",
            )
        return low, high

    @cached_property
    def symmetric(self) -> bool:
        """Whether the law is symmetric about 0, seen at its quantiles."""
        if self.noise.quantile(_ABOVE) > -self.noise.quantile(_BEYOND):
            return False
        z = np.unique(np.abs(np.asarray(self.noise.quantile([0.001, 0.1, 0.3, 0.7, 0.9, 0.999]))))
        step = 1.0 if self.noise.lattice else 0.0
        left, right = np.asarray(self.noise.cdf(-z)), 1 - np.asarray(self.noise.cdf(z - step))
        return bool(np.allclose(left, right, rtol=1e-9, atol=1e-14))

    def below(self, z: Floats) -> Floats:
        """Return P(Z ≤ z)."""
        z = np.asarray(z, float)
        finite = np.isfinite(z)
        known = np.asarray(self.noise.cdf(np.where(finite, z, 0.0)), float)
        return np.where(finite, known, np.where(z > 0, 1.0, 0.0))

    def above(self, z: Floats) -> Floats:
        """Return P(Z ≥ z), to good relative accuracy under symmetric noise."""
        if self.symmetric:
            return self.below(-np.asarray(z, float))
        step = 1.0 if self.noise.lattice else 0.0
        found = 1 - self.below(np.ceil(z) - step if step else z) + 2.0**-53
        return np.where(np.asarray(z) > float(self.noise.quantile(1.0)), 0.0, found)

    def moment(self, k: int) -> float:
        """Return a bound on E|Z|ᵏ: exact for even k, by Cauchy and Schwarz for odd k."""
        if k % 2:
            return math.sqrt(self.moment(k - 1) * self.moment(k + 1))
        return float(self.noise.moment(k))

    # -- expectations ------------------------------------------------------------------------------

    def law(self, g: Callable[[Floats], Floats], q: Floats, knots: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of g(q + Z) at each q."""
        means, variances = [np.empty(0)], [np.empty(0)]
        for part in self._parts(q, len(knots)):
            x, weights = self.nodes(part, knots)
            values = g(x)
            mean = weights @ values
            centred = weights.copy()
            centred.data *= (
                values[weights.indices] - np.repeat(mean, np.diff(weights.indptr))
            ) ** 2
            means.append(np.asarray(mean, float))
            variances.append(np.asarray(centred.sum(axis=1), float).ravel())
        return np.concatenate(means), np.concatenate(variances)

    def means(
        self, functions: Sequence[Callable[[Floats], Floats]], q: Floats, knots: Floats
    ) -> list[Floats]:
        """Return the means of several functions of q + Z at each q."""
        found: list[list[Floats]] = [[np.empty(0)] for _ in functions]
        for part in self._parts(q, len(knots)):
            x, weights = self.nodes(part, knots)
            for function, means in zip(functions, found, strict=True):
                means.append(weights @ function(x))
        return [np.concatenate(means) for means in found]

    def _parts(self, q: Floats, knots: int) -> Iterator[Floats]:
        each = len(self._masses) if self.noise.lattice else (knots + len(self._edges)) * len(_NODES)
        return iter(np.array_split(q, max(1, math.ceil(len(q) * each / _SLAB))))

    def nodes(self, q: Floats, knots: Floats) -> Nodes:
        """Return the nodes of x = q + Z for all q; g is smooth between the knots."""
        return self._integers(q) if self.noise.lattice else self._panels(q, knots)

    @cached_property
    def masses(self) -> tuple[int, Floats]:
        """The first integer of the window and the probabilities from there on."""
        return round(self.low), self._masses

    @cached_property
    def _masses(self) -> Floats:
        return np.asarray(self.noise.pmf(np.arange(self.low, self.high + 1)), float)

    def _integers(self, q: Floats) -> Nodes:
        count, width = len(q), len(self._masses)
        start, span = q.min() + self.low, q.max() - q.min()
        data = np.tile(self._masses, count)
        if span <= 4 * count * width:
            columns = (q - q.min())[:, None] + np.arange(width)
            x = np.arange(start, start + span + width)
        else:
            columns = np.arange(float(count * width)).reshape(count, width)
            x = (q[:, None] + self.low + np.arange(width)).ravel()
        rows = np.arange(0, count * width + 1, width)
        matrix = scipy.sparse.csr_array(
            (data, columns.ravel().astype(np.int64), rows), shape=(count, len(x))
        )
        return Nodes(x, matrix)

    @cached_property
    def _edges(self) -> Floats:
        """Where panels end under the density alone: its breaks, and steps that widen far out."""
        reach = max(-self.low, self.high)
        near = self.unit * np.arange(0.5, 8.5, 0.5)
        far = near[-1] * 1.3 ** np.arange(1, 1 + max(0, math.ceil(math.log(reach / near[-1], 1.3))))
        steps = np.concatenate([near, far[far < reach]])
        ends = [float(self.noise.quantile(p)) for p in (0.0, 1.0)]
        breaks = [*self.noise.breaks(reach), *(e for e in ends if math.isfinite(e))]
        edges = np.concatenate([-steps, steps, breaks, [self.low, self.high]])
        return np.unique(np.clip(edges, self.low, self.high))

    def error(self, g: Callable[[Floats], Floats], q: Floats, knots: Floats) -> float:
        """Return how far E g may be off at these q: the change when all panels are halved."""
        if self.noise.lattice:
            return 0.0
        coarse, fine = self._panels(q, knots), self._panels(q, knots, halved=True)
        change = coarse.weights @ g(coarse.x) - fine.weights @ g(fine.x)
        missing = np.abs(1 - fine.weights.sum(axis=1))
        return float(np.abs(change).max() + missing.max() * np.abs(g(fine.x)).max())

    def _panels(self, q: Floats, knots: Floats, halved: bool = False) -> Nodes:
        column = q[:, None]
        inner = np.clip(knots[None, :], column + self.low, column + self.high)
        edges = np.sort(np.concatenate([column + self._edges, inner], axis=1), axis=1)
        if halved:
            edges = np.sort(np.hstack([edges, (edges[:, 1:] + edges[:, :-1]) / 2]), axis=1)
        half = np.diff(edges, axis=1)[..., None] / 2
        x = edges[:, :-1, None] + half * (1 + _NODES)
        density = np.asarray(self.noise.pdf((x - column[..., None]).ravel()), float)
        weights = half * _WEIGHTS * density.reshape(x.shape)
        count, width = len(q), x[0].size
        rows = np.arange(0, count * width + 1, width)
        matrix = scipy.sparse.csr_array(
            (weights.ravel(), np.arange(count * width), rows), shape=(count, count * width)
        )
        return Nodes(x.ravel(), matrix)
