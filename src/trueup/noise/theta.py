"""Sums of e^{−k²/(2σ²)} over the integers: all of them, or a tail.

Poisson summation turns a sum that is long for large σ into one that is short:
Σₖ e^{−k²/(2σ²)} = σ√(2π) Σₘ e^{−2π²σ²m²}.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import scipy

if TYPE_CHECKING:
    from trueup.noise.elementwise import Floats

CROSSING = 0.4
"""σ = 1/√(2π): the direct and the dual sum converge equally fast."""

SMOOTH = 500
"""From this σ on, tails come from the Euler-Maclaurin formula instead of a table."""


def theta(sigma: float) -> float:
    """Return Σₖ e^{−k²/(2σ²)} by the shorter of the direct and the dual sum.

    Examples
    --------
    >>> theta(1e6) / math.sqrt(2 * math.pi)
    1000000.0
    """
    direct = sigma < CROSSING
    rate = 0.5 / sigma**2 if direct else 2 * (math.pi * sigma) ** 2
    total = 1 + 2 * math.fsum(math.exp(-rate * m * m) for m in range(1, 6))
    return total if direct else total * sigma * math.sqrt(2 * math.pi)


def tail_sum(n: Floats, sigma: float) -> Floats:
    """Return Tₙ = Σ_{k≥n} e^{−k²/(2σ²)}, to good relative accuracy for large n too.

    Examples
    --------
    >>> tail_sum(np.array([1.0, 2.0]), 1.0)
    array([0.75331414, 0.14678348])
    """
    return smooth_tail(n, sigma) if sigma >= SMOOTH else table_tail(n, sigma)


@functools.lru_cache(maxsize=16)
def _tail_table(sigma: float) -> Floats:
    """Return Tₙ = Σ_{k≥n} e^{−k²/(2σ²)} for n = 0, 1, … until it underflows, then 0."""
    k = np.arange(math.ceil(39 * sigma) + 2)
    masses = np.exp(-0.5 * (k / sigma) ** 2)
    table = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    table.setflags(write=False)
    return table


def table_tail(n: Floats, sigma: float) -> Floats:
    """Return Tₙ from the table."""
    table = _tail_table(sigma)
    index = np.nan_to_num(np.minimum(n, table.size - 1), nan=0.0).astype(np.int64)
    return np.where(np.isnan(n), n, table[index])


def smooth_tail(n: Floats, sigma: float) -> Floats:
    """Return Tₙ by the Euler-Maclaurin formula."""
    x = np.minimum(n / sigma, 50.0)
    integral = sigma * math.sqrt(2 * math.pi) * scipy.special.ndtr(-x)
    return np.asarray(integral + np.exp(-0.5 * x**2) * edge_weight(x, sigma, 4))


def edge_weight(x: Any, sigma: Any, terms: int) -> Any:
    """Return w in Σ_{k≥n} h(k) = ∫_n^∞ h + w h(n) for h(u) = e^{−u²/(2σ²)}, x = n/σ.

    Euler-Maclaurin: w = ½ + Σⱼ B₂ⱼ/(2j)! He_{2j−1}(x) / σ^{2j−1}, He the Hermite polynomials.

    Examples
    --------
    >>> edge_weight(0.0, 10.0, 4)
    0.5
    """
    weight, previous, hermite = 0.5 + 0 * x, 1 + 0 * x, x / sigma  # Heₙ(x)/σⁿ for n = 0, 1
    for j in range(1, terms + 1):
        coefficient = mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j)
        number = coefficient if isinstance(x, mpmath.mpf) else float(coefficient)
        weight = weight + number * hermite
        for n in (2 * j - 1, 2 * j):
            previous, hermite = hermite, (x * hermite - n * previous / sigma) / sigma
    return weight
