"""x = q + Z as nodes and weights: all the integers that matter, or panels that break where g does.

On the line every panel lies between two neighbours among the knots of g and the points where the
density is not smooth, so on each of them Gauss–Legendre integrates a polynomial (or f) times a
smooth density. How far that is off is seen at every true value: the panels are halved.
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
    Function = Callable[[Floats], Floats]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_BEYOND = 1e-19
_ABOVE = 1 - 2.0**-53
"""The probability left out on either side, and what is kept below where that is not symmetric."""

_MOST = 200_000
"""Integers in a window."""

_SLAB = 2_000_000
"""Nodes at a time."""

_FINEST, _SHARE = 0.5, 0.2
"""The unit is at least so much on the integers, and this share of the standard deviation."""


class Nodes(NamedTuple):
    """Points x and a sparse matrix: E g(q + Z) is ``weights @ g(x)``, one row for each q."""

    x: Floats
    weights: scipy.sparse.csr_array


class Law:
    """What noise does to a function: q ↦ E g(q + Z)."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        spread = (float(noise.quantile(0.75)) - float(noise.quantile(0.25))) / 1.349
        self.has_variance = noise.highest_moment is None or noise.highest_moment > 1
        if self.has_variance:
            spread = max(spread, _SHARE * math.sqrt(float(noise.variance)))
        self.unit = max(spread, _FINEST) if noise.lattice else spread
        self.low = float(noise.quantile(_BEYOND))
        self.high = -self.low if self.symmetric else float(noise.quantile(_ABOVE))
        if not self.low < self.high:
            raise TrueupError(f"{noise!r} adds nothing to the true value", "use unbiased()")
        if noise.lattice and self.high - self.low > _MOST:
            raise TrueupError(
                f"{noise!r} spreads over more than {_MOST} integers",
                "at this scale the continuous noise is the same to all digits: use Gaussian, "
                "Laplace, …",
            )

    @cached_property
    def symmetric(self) -> bool:
        """Whether the law is symmetric about 0, seen at its quantiles."""
        if self.noise.quantile(_ABOVE) > -self.noise.quantile(_BEYOND):
            return False
        z = np.unique(np.abs(np.asarray(self.noise.quantile([0.001, 0.1, 0.3, 0.7, 0.9, 0.999]))))
        left = np.asarray(self.noise.cdf(-z))
        right = 1 - np.asarray(self.noise.cdf(z - float(self.noise.lattice)))
        return bool(np.allclose(left, right, rtol=1e-9, atol=1e-14))

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Return |E Z| and E Z²; infinite where there is no variance."""
        if not self.has_variance:
            return math.inf, math.inf
        mean = abs(float(self.noise.moment(1)))
        return (0.0 if self.symmetric else mean), float(self.noise.variance) + mean**2

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
        found = 1 - self.below(np.ceil(z) - 1 if self.noise.lattice else z) + 2.0**-53
        return np.where(np.asarray(z) > float(self.noise.quantile(1.0)), 0.0, found)

    # -- expectations ------------------------------------------------------------------------------

    def at(self, g: Function, q: Floats, knots: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of g(q + Z) at each q."""
        means, variances = [np.empty(0)], [np.empty(0)]
        for x, weights in self._slabs(q, knots):
            values = g(x)
            mean = np.asarray(weights @ values, float)
            centred = weights.copy()
            centred.data *= (
                values[weights.indices] - np.repeat(mean, np.diff(weights.indptr))
            ) ** 2
            means.append(mean)
            variances.append(np.asarray(centred.sum(axis=1), float).ravel())
        return np.concatenate(means), np.concatenate(variances)

    def means(
        self, functions: Sequence[Function], q: Floats, knots: Floats, halved: bool = False
    ) -> Floats:
        """Return the means of several functions of q + Z, one row for each."""
        found = [np.empty((len(functions), 0))]
        for x, weights in self._slabs(q, knots, halved):
            found.append(np.array([weights @ function(x) for function in functions]))
        return np.hstack(found)

    def _slabs(self, q: Floats, knots: Floats, halved: bool = False) -> Iterator[Nodes]:
        lattice = self.noise.lattice
        each = len(self.masses) if lattice else (len(knots) + len(self._edges)) * len(_NODES)
        for part in np.array_split(q, max(1, math.ceil(len(q) * each / _SLAB))):
            if len(part):
                yield self._panels(part, knots, halved) if not lattice else self._integers(part)

    def nodes(self, q: Floats, knots: Floats) -> Nodes:
        """Return the nodes of x = q + Z for all q; g is smooth between the knots."""
        return self._integers(q) if self.noise.lattice else self._panels(q, knots)

    @cached_property
    def masses(self) -> Floats:
        """The probabilities of the integers from ``low`` on."""
        return np.asarray(self.noise.pmf(np.arange(self.low, self.high + 1)), float)

    def _integers(self, q: Floats) -> Nodes:
        """Return the nodes; neighbouring true values share theirs."""
        count, width = len(q), len(self.masses)
        start, span = q.min() + self.low, q.max() - q.min()
        shared = span <= 4 * count * width and bool((q == np.floor(q)).all())
        if shared:
            columns = (q - q.min())[:, None] + np.arange(width)
            x = np.arange(start, start + span + width)
        else:
            columns = np.arange(float(count * width)).reshape(count, width)
            x = (q[:, None] + self.low + np.arange(width)).ravel()
        rows = np.arange(0, count * width + 1, width)
        matrix = scipy.sparse.csr_array(
            (np.tile(self.masses, count), columns.ravel().astype(np.int64), rows),
            shape=(count, len(x)),
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

    def _panels(self, q: Floats, knots: Floats, halved: bool = False) -> Nodes:
        column = q[:, None]
        inner = np.clip(knots[None, :], column + self.low, column + self.high)
        edges = np.sort(np.concatenate([column + self._edges, inner], axis=1), axis=1)
        if halved:
            edges = np.sort(np.hstack([edges, (edges[:, 1:] + edges[:, :-1]) / 2]), axis=1)
        half = np.diff(edges, axis=1)[..., None] / 2
        x = edges[:, :-1, None] + half * (1 + _NODES)
        weights = half * _WEIGHTS
        some = weights > 0  # between knots beyond the window panels are empty
        weights[some] *= np.asarray(self.noise.pdf((x - column[..., None])[some]), float)
        rows = np.concatenate([[0], np.cumsum(some.sum(axis=(1, 2)))])
        matrix = scipy.sparse.csr_array(
            (weights[some], np.arange(rows[-1]), rows), shape=(len(q), rows[-1])
        )
        return Nodes(x[some], matrix)
