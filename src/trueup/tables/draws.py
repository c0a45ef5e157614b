"""Which rows of a table are draws of their own: cells may repeat the number of their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

_BY_CHANCE = 0.001  # of a sorted table's values one in a thousand then counts for too little
_SORTED = 0.25  # of the steps, at most, against the order; of 20 states 1e-4 are so by chance
_NEXT: tuple[tuple[int, Literal["left", "right"]], ...] = ((-1, "left"), (1, "right"))


def drawn_anew(
    x: Floats, rows: NDArray[np.intp], noise: Noise, scale: Floats | None = None
) -> NDArray[np.intp]:
    """Return those of the rows that are draws of their own.

    Whole numbers are also equal by chance: a run of them is one draw, unless sorting made it.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, Laplace
    >>> x = np.array([3.0, 3, 7, 3])
    >>> drawn_anew(x, np.arange(4), Laplace(1)), drawn_anew(x, np.arange(4), DiscreteLaplace(1))
    (array([0, 2]), array([0, 2, 3]))
    """
    if not noise.lattice:
        return np.asarray(rows[np.unique(x[rows], return_index=True)[1]])
    new = (rows == 0) | (x[rows] != x[rows - 1])
    steps = np.diff(x[~np.isnan(x)])
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    if min(up, down) <= _SORTED * (up + down):  # whole, or within each group
        scales = np.empty(0) if scale is None else scale[scale > 0]
        least = noise.at_scale(float(scales.min())) if len(scales) else noise
        new |= _equal_by_chance(x, x[rows], least)
    return np.asarray(rows[new])


def _equal_by_chance(x: Floats, values: Floats, noise: Noise) -> NDArray[np.bool_]:
    """Return whether draws of their own can have hit each value as often as x has it.

    Draws around any truth fall on a value, rather than on the two next to it, at most as often
    as where the truth is that value: P(0) of P(−1) + P(0) + P(1).
    """
    step = noise.lattice
    low, middle, high = np.diff(np.asarray(noise.cdf(step * np.arange(-2.0, 2))))
    found, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    all_ = np.sort(x)
    first, last = (np.searchsorted(all_, found + k * step, side) for k, side in _NEXT)
    near = last - first
    odds = scipy.special.betainc(counts, near - counts + 1, middle / (low + middle + high))
    return np.asarray((odds > _BY_CHANCE)[where])
