"""Sums of e^{−k²/(2σ²)} over the integers: all of them, tilted, or a tail.

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

from trueup.noise.closed_forms import gaussian_tilted

if TYPE_CHECKING:
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field

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


def direct_sums(variance: Any, c: Any, order: int, field: Field) -> list[Any]:
    """Return Σₖ kʲ e^{ck − k²/(2v)} for j = 0..order, summed around the largest term.

    Examples
    --------
    >>> from trueup.noise.fields import Digits
    >>> [round(float(s), 6) for s in direct_sums(mpmath.mpf(1), 0, 2, Digits())]
    [2.506628, 0.0, 2.506628]
    """
    centre = int(mpmath.nint(mpmath.re(c) * variance))
    reach = int(sigmas(order) * mpmath.sqrt(variance)) + 2
    ks = range(centre - reach, centre + reach + 1)
    masses = [field.exp(c * k - k * k / (2 * variance)) for k in ks]
    return [
        mpmath.fsum(k**j * mass for k, mass in zip(ks, masses, strict=True))
        for j in range(order + 1)
    ]


def dual_sums(variance: Any, c: Any, order: int, field: Field) -> list[Any]:
    """Return the same by Poisson summation: √(2πv) Σₘ E[Xʲ e^{(c + 2πim)X}], X ~ N(0, v).

    Examples
    --------
    >>> from trueup.noise.fields import Digits
    >>> [round(float(s), 6) for s in dual_sums(mpmath.mpf(1), 0, 2, Digits())]
    [2.506628, 0.0, 2.506628]
    """
    turn, sigma = 2 * mpmath.pi, mpmath.sqrt(variance)
    centre = -int(mpmath.nint(mpmath.im(c) / turn))
    reach = int(sigmas(order) / (turn * sigma)) + 2
    sums = [mpmath.mpf(0)] * (order + 1)
    for m in range(centre - reach, centre + reach + 1):
        term = gaussian_tilted(variance, c + mpmath.mpc(0, turn * m), order, field)
        sums = [s + t for s, t in zip(sums, term, strict=True)]
    weight = sigma * mpmath.sqrt(turn)
    return [weight * (s if mpmath.im(c) else mpmath.re(s)) for s in sums]


def sigmas(order: int) -> Any:
    """Return how many standard deviations hold xʲ e^{−x²/2} to the working precision."""
    return mpmath.sqrt(2 * mpmath.log(10) * mpmath.mp.dps) + 2 * math.sqrt(order)


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
