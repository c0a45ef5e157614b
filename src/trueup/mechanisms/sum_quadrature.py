"""Expectations under a sum of m equal Laplace noises, by Gauss rules on panels.

The density of the sum of m Laplace(1) noises is e^{−|t|}·p(|t|) with

    p(t) = Σ_j (m − 1 + j)! / (j! (m − 1 − j)! (m − 1)! 2^{m+j}) · t^{m−1−j},    j = 0 … m − 1,

all terms positive, so that nothing cancels for any m.
"""

from __future__ import annotations

import math
from functools import lru_cache
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_WIDTH = 1.5  # of a panel in scales: there e^{−t} times a polynomial is resolved by 24 nodes
_UNDERFLOW = 800  # scales from the centre a double holds no probability


def density(m: int, t: NDArray[np.float64]) -> Any:
    """Return the density of the sum of m Laplace(1) noises.

    Examples
    --------
    >>> density(2, np.array([0.0])).tolist()
    [0.25]
    """
    size = np.abs(t)
    return np.exp(-size) * np.polynomial.polynomial.polyval(size, _coefficients(m))


@lru_cache(maxsize=64)
def _coefficients(m: int) -> NDArray[np.float64]:
    found = [
        factorial(m - 1 + j)
        / (factorial(j) * factorial(m - 1 - j) * factorial(m - 1) * 2 ** (m + j))
        for j in range(m)
    ]
    return np.array(found[::-1])


def expect(h: Callable[[Any], Any], centre: float, scale: float, m: int, bound: float) -> float:
    """Return E h(centre + Z), Z the sum of m Laplace noises, h smooth on both sides of a bound.

    Above the bound h may be steep like a power of 1/u: panels grow from there geometrically.

    Examples
    --------
    >>> round(expect(lambda u: u**2, 3.0, 2.0, 2, 1.0), 9)  # 3² + 2·2·2²
    25.0
    """
    at = lambda u: np.asarray(h(u)) * density(m, (u - centre) / scale) / scale  # noqa: E731
    return integrate(at, panels(centre, scale, m, bound))


def integrate(h: Callable[[Any], Any], edges: NDArray[np.float64]) -> float:
    """Return the integral of a function that is smooth between the edges of panels.

    Examples
    --------
    >>> round(integrate(lambda u: u**2, np.array([0.0, 1.0, 3.0])), 9)
    9.0
    """
    half = np.diff(edges)[:, None] / 2
    u = edges[:-1, None] + half * (1 + _NODES)
    return float(np.sum(half * _WEIGHTS * np.asarray(h(u.ravel())).reshape(u.shape)))


def panels(centre: float, scale: float, m: int, bound: float) -> NDArray[np.float64]:
    """Return the ends of the panels: evenly spread, with breaks at the centre and the bound."""
    # below the bound h² grows like |t|^{2m}, and the density has |t|^m: the peak of t^{3m}·e^{−t}
    # is at 3m, and three times that, and 60, is beyond what a double sees
    reach = scale * (60 + 9 * m)
    near = abs(centre - bound) < _UNDERFLOW * scale
    low, high = (min(centre, bound), max(centre, bound)) if near else (centre, centre)
    low, high = low - reach, high + reach
    evenly = np.linspace(low, high, 1 + math.ceil((high - low) / (_WIDTH * scale)))
    steep = bound * (1 + 1 / (4 * m)) ** np.arange(1, 40 * m)  # u^{−4m} changes by e⁻¹ on each
    steep = steep[np.diff(steep, append=np.inf) < _WIDTH * scale]
    points = np.concatenate([evenly, steep, [bound, centre]])
    return np.unique(points[(points >= low) & (points <= high)])
