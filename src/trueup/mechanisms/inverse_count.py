"""The unbiased 1/n of a count under (discrete) Laplace noise: its mean and variance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.mechanisms.lattice_sums import nodes
from trueup.mechanisms.sum_quadrature import expect

if TYPE_CHECKING:
    from trueup.noise import Noise


def inverse_moments(n: float, noise: Noise, at_least: float) -> tuple[float, float]:
    """Return the mean and the variance of the unbiased 1/n under (discrete) Laplace noise.

    Above the bound it is T 1/u, below it is constant: 1/L + b/L² or 1/L + κ/(L(L + 1)).

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> [round(x, 6) for x in inverse_moments(4.0, Laplace(1), 1.0)]
    [0.25, 0.084324]
    """
    b = float(noise.unit)
    if not noise.lattice:

        def g(u: Any) -> Any:
            safe, below = np.maximum(u, at_least), (1 + b / at_least) / at_least
            return np.where(u > at_least, (1 - 2 * (b / safe) ** 2) / safe, below)

        centre = 1 / n if n >= at_least else expect(g, n, b, 1, at_least)
        return centre, expect(lambda u: (g(u) - centre) ** 2, n, b, 1, at_least)
    low = math.ceil(at_least)
    a, reach = math.exp(-1 / b), math.ceil(40 * b)
    k, w = nodes(-reach, reach, (0, low - int(n)), b, int(n))
    y, p = np.maximum(n + k, low), w * a ** np.abs(k) * (1 - a) / (1 + a)
    lam, safe = a / (1 - a) ** 2, np.maximum(y, low + 1)
    inside = 1 / safe - 2 * lam / (safe * (safe**2 - 1))
    values = np.where(y > low, inside, (1 + a / (1 - a) / (low + 1)) / low)
    centre = 1 / n if n >= low else float(p @ values)
    return centre, float(p @ (values - centre) ** 2)
