"""Ratios of sums over few cells, however small: by the exact inverse of the sum of their noises.

Under Laplace noises it is that of :func:`trueup.unbiased`. On the integers the estimator h under
one discrete Laplace noise is known at every published number, and g = Π(1 − λᵢδ²)h over the
others is unbiased under all of them: E g(y + Z) = h(y) at every integer y.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import InfiniteVariance, TrueupError
from trueup.estimator import Estimator
from trueup.noise.laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sympy
    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

FEW = 8
"""So many cells at most: the exact inverse of more Laplace noises cancels, term by term."""

CANCELLED = 1e7
"""What differences may cancel at most, Π(1 + 4λ): nine digits are left."""


class FewCells:
    """The ratio of sums over some cells, for one choice of their noises.

    Parameters
    ----------
    estimator
        What is unbiased under the noises that are left.
    differences
        For statistics with further noises, the weights of Π(1 − λδ²).

    Examples
    --------
    >>> from trueup.estimator import unbiased
    >>> noise = DiscreteLaplace(1)
    >>> one = FewCells(unbiased("q", noise, (1, None)), {"q": differences([noise])})
    >>> [round(number, 6) for number in one.at({"q": 9.0})]  # 2·1.841…, the variances added up
    [9.0, 3.682694]
    """

    def __init__(self, estimator: Estimator, differences: Mapping[str, Floats]) -> None:
        self.estimator = estimator
        names = estimator.statistics
        each = [differences.get(name, np.ones(1)) for name in names]
        grids = np.meshgrid(*(np.arange(len(w)) - len(w) // 2 for w in each), indexing="ij")
        self.shifts = {name: shift.ravel() for name, shift in zip(names, grids, strict=True)}
        self.weights = np.ones(1)
        for w in each:
            self.weights = np.multiply.outer(self.weights, w).ravel()

    def at(self, sums: Mapping[str, float]) -> tuple[float, float]:
        """Return the estimate at published sums and its variance, NaN where that is infinite."""
        points = {name: sums[name] + shift for name, shift in self.shifts.items()}
        own = self.estimator(**points)
        value = float(self.weights @ own)
        try:
            square = own**2 - self.estimator.variance(**points)
        except InfiniteVariance:
            return value, math.nan
        return value, value**2 - float(self.weights @ square)


def of_sums(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    tied: Sequence[Condition],
    noises: Mapping[str, Sequence[Noise]],
    cells: int,
) -> FewCells | None:
    """Return the ratio of sums over cells with these noises, None where no exact one is known.

    f is a function of the sums; what is known of each cell holds of sums, ``cells`` times.
    """
    left, further = {}, {}
    for s in statistics:
        name = s.symbol.name
        parts = sorted(noises[name], key=lambda z: float(z.variance))
        straight = f.diff(s.symbol, 2) == 0
        if len(parts) > 1 and not straight and all(isinstance(z, DiscreteLaplace) for z in parts):
            further[name] = differences(parts[:-1])
            parts = parts[-1:]
        elif len(parts) > 1 and not (straight or all(z.by_curvature for z in parts)):
            return None
        left[name] = sum(parts[1:], parts[0])
    if math.prod(float(np.abs(w).sum()) for w in further.values()) > CANCELLED:
        return None
    domain = {
        s.symbol.name: type(s.domain)(*(b if b is None else cells * b for b in s.domain.bounds))
        for s in statistics
    }
    for more in (tied, ()) if tied else ((),):  # what holds on more is unbiased too
        known = domain | {c.key: (cells * c.low, None) for c in more}
        with contextlib.suppress(TrueupError):
            return FewCells(Estimator(f, left, known), further)
    return None


def differences(noises: Sequence[Noise]) -> Floats:
    """Return the weights of Π(1 − λδ²), λ = ½·Var Z.

    Examples
    --------
    >>> differences([DiscreteLaplace(1)]).round(4)
    array([-0.9207,  2.8413, -0.9207])
    """
    weights = np.ones(1)
    for noise in noises:
        half = float(noise.variance) / 2
        weights = np.convolve(weights, [-half, 1 + 2 * half, -half])
    return weights
