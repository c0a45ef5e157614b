"""Sums of e^{−k²/(2σ²)} over the integers: all of them, or a tail."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

if TYPE_CHECKING:
    from trueup.noise.elementwise import Floats

SMOOTH = 500
"""From this σ on, tails come from the Euler-Maclaurin formula instead of a table."""


def theta(sigma: float) -> float:
    """Return Σₖ e^{−k²/(2σ²)}: σ√(2π) up to 4·e^{−2π²σ²}, which is below 1e-34 from σ = 2 on.

    Examples
    --------
    >>> theta(1e6) / math.sqrt(2 * math.pi)
    1000000.0
    """
    if sigma > 2:
        return sigma * math.sqrt(2 * math.pi)
    return 1 + 2 * math.fsum(math.exp(-0.5 * (k / sigma) ** 2) for k in range(1, 20))


def tail_sum(n: Floats, sigma: float) -> Floats:
    """Return Tₙ = Σ_{k≥n} e^{−k²/(2σ²)}, to good relative accuracy for large n too.

    Examples
    --------
    >>> tail_sum(np.array([1.0, 2.0]), 1.0)
    array([0.75331414, 0.14678348])
    """
    if sigma >= SMOOTH:
        x = np.minimum(n / sigma, 50.0)
        integral = sigma * math.sqrt(2 * math.pi) * scipy.special.ndtr(-x)
        return np.asarray(integral + np.exp(-0.5 * x**2) * edge_weight(x, sigma))
    table = _tails(sigma)
    index = np.nan_to_num(np.minimum(n, table.size - 1), nan=0.0).astype(np.int64)
    return np.where(np.isnan(n), n, table[index])


@functools.lru_cache(maxsize=16)
def _tails(sigma: float) -> Floats:
    """Return Tₙ = Σ_{k≥n} e^{−k²/(2σ²)} for n = 0, 1, … until it underflows, then 0."""
    k = np.arange(math.ceil(39 * sigma) + 2)
    masses = np.exp(-0.5 * (k / sigma) ** 2)
    table = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    table.setflags(write=False)
    return table


def edge_weight(x: Any, sigma: Any) -> Any:
    """Return w in Σ_{k≥n} h(k) = ∫_n^∞ h + w h(n) for h(u) = e^{−u²/(2σ²)}, x = n/σ.

    Euler-Maclaurin: w = ½ + Σⱼ B₂ⱼ/(2j)! He_{2j−1}(x) / σ^{2j−1}, He the Hermite polynomials.

    Examples
    --------
    >>> edge_weight(0.0, 10.0)
    0.5
    """
    y, v = x / sigma, 1 / (sigma * sigma)
    third, fifth = y**3 - 3 * v * y, y**5 - 10 * v * y**3 + 15 * v * v * y
    return (y / 12 + 0.5) - third / 720 + fifth / 30240
