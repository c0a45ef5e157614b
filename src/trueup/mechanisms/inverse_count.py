"""The unbiased 1/n of a count under (discrete) Laplace noise: its mean and variance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.mechanisms.quadrature import expect

if TYPE_CHECKING:
    from trueup.noise import Noise

_MOST = 100_000
"""Counts on each side of the truth that are summed over."""


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

        centre = 1 / n if n >= at_least else expect(g, n, b, at_least)
        return centre, expect(lambda u: (g(u) - centre) ** 2, n, b, at_least)
    low = math.ceil(at_least)
    a, reach = math.exp(-1 / b), math.ceil(40 * b)
    if reach > _MOST:
        raise TrueupError(
            f"a standard deviation under this noise is a sum over {2 * reach:,} counts",
            f"at most {2 * _MOST:,} are summed: raise epsilon, or take continuous noise",
        )
    k = np.arange(-reach, reach + 1)
    y, p = np.maximum(n + k, low), a ** np.abs(k) * (1 - a) / (1 + a)
    lam, safe = a / (1 - a) ** 2, np.maximum(y, low + 1)
    inside = 1 / safe - 2 * lam / (safe * (safe**2 - 1))
    values = np.where(y > low, inside, (1 + a / (1 - a) / (low + 1)) / low)
    centre = 1 / n if n >= low else float(p @ values)
    return centre, float(p @ (values - centre) ** 2)
