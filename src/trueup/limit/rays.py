"""The cone of private columns and its cheapest ray.

A release publishes a label y with probability p(q) when the truth is q. The column p is private
when p(q) ≤ ρ p(q ± 1) for every pair of neighbours. These columns form a cone whose extreme rays
step up or down by exactly the factor ρ from each q to the next, so that the cheapest of the
2^{m−1} rays is found by one pass over q.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

_FLOOR = -1e200
"""A price so low that what is added to it no longer matters."""

_BISECTIONS = 80
"""More than it takes, should rounding keep an interval from getting shorter."""


def shapes(rising: Bools, ratio: float) -> Floats:
    """Return the rays with the given steps as columns, the largest entry of each being 1.

    Examples
    --------
    >>> shapes(np.array([[True], [False]]), 2.0).ravel()
    array([0.5, 1. , 0.5])
    """
    steps = np.cumsum(np.where(rising, 1.0, -1.0), axis=0)
    heights = np.vstack([np.zeros((1, rising.shape[1])), steps])
    return np.asarray(np.exp(math.log(ratio) * (heights - heights.max(axis=0))))


def least(prices: Floats, ratio: float) -> tuple[Floats, Bools]:
    """Return min Σ_q p(q) prices(q) over rays with p(first) = 1, and the steps of the best ray.

    Each column of prices is a problem of its own. Working backwards, the rest of a ray is worth
    S(q) = prices(q) + min(ρ S(q+1), S(q+1)/ρ): step up where the rest is negative.

    Examples
    --------
    >>> value, rising = least(np.array([[1.0], [1.0], [-1.0]]), 2.0)
    >>> value, rising.ravel()
    (array([-1.]), array([ True,  True]))
    """
    size = len(prices)
    rising = np.empty((size - 1, prices.shape[1]), dtype=bool)
    rest = prices[-1]
    for q in range(size - 2, -1, -1):
        np.less(rest, 0, out=rising[q])
        step = np.where(rising[q], ratio, 1 / ratio)
        rest = prices[q] + np.maximum(rest * step, _FLOOR)
    return rest, rising


def cheapest(prices: Floats, gauge: Floats, ratio: float, ceiling: float) -> tuple[Floats, Bools]:
    """Return min Σ p·prices / Σ p·gauge over all rays p, and the steps of the best ray.

    Only minima below the ceiling are looked for: where there is none, the value is the ceiling
    and the steps mean nothing. The ratio of some ray is below v exactly when prices − v·gauge has
    a negative least value: bisect, and use that ray's own ratio.

    Examples
    --------
    >>> value, _ = cheapest(np.array([[3.0], [1.0]]), np.array([0.5, 0.5]), 2.0, 9.0)
    >>> round(float(value[0]), 8)  # p = (1, 2): (3 + 2) / 1.5
    3.33333333
    """
    value = np.full(prices.shape[1], ceiling)
    rising = np.zeros((len(prices) - 1, prices.shape[1]), dtype=bool)
    low = (prices / gauge[:, None]).min(axis=0)
    active, trial = np.flatnonzero(low < ceiling), value
    for _ in range(_BISECTIONS):
        part = prices[:, active]
        least_value, steps = least(part - trial[active] * gauge[:, None], ratio)
        below = least_value < 0
        ray = shapes(steps[:, below], ratio)
        found, kept = active[below], active[~below]
        value[found] = np.einsum("qn,qn->n", ray, part[:, below]) / (gauge @ ray)
        rising[:, found], low[kept] = steps[:, below], trial[kept]
        trial = (low + value) / 2
        active = active[(value - low)[active] > 1e-8 * (1 + np.abs(value[active]))]
        if not active.size:
            break
    return value, rising
