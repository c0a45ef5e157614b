"""Integrals over Laplace noise by Gauss rules on panels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_WIDTH = 1.5  # of a panel in scales: there e^{−t} times a polynomial is resolved by 24 nodes
_REACH = 78.0  # scales: t⁶·e^{−t}, of two noises and a square, is then beyond what a double sees
_UNDERFLOW = 800  # scales from the centre a double holds no probability


def expect(h: Callable[[Any], Any], centre: float, scale: float, bound: float) -> float:
    """Return E h(centre + Z), Z Laplace noise, h smooth on both sides of a bound.

    Examples
    --------
    >>> round(expect(lambda u: u**2, 3.0, 2.0, 1.0), 9)  # 3² + 2·2²
    17.0
    """

    def at(u: NDArray[np.float64]) -> Any:
        return np.asarray(h(u)) * np.exp(-np.abs(u - centre) / scale) / (2 * scale)

    return integrate(at, panels(centre, scale, bound))


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


def panels(centre: float, scale: float, bound: float) -> NDArray[np.float64]:
    """Return the ends of the panels: evenly spread, with breaks at the centre and the bound.

    Above the bound functions may be steep like a power of 1/u: panels grow from there.
    """
    near = abs(centre - bound) < _UNDERFLOW * scale
    low, high = (min(centre, bound), max(centre, bound)) if near else (centre, centre)
    low, high = low - _REACH * scale, high + _REACH * scale
    evenly = np.linspace(low, high, 1 + math.ceil((high - low) / (_WIDTH * scale)))
    steep = bound * 1.125 ** np.arange(1, 80)  # u⁻⁸ changes by e⁻¹ on each
    steep = steep[np.diff(steep, append=np.inf) < _WIDTH * scale]
    points = np.concatenate([evenly, steep, [bound, centre]])
    return np.unique(points[(points >= low) & (points <= high)])
