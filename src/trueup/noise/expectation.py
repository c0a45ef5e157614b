"""Integrate or sum numerically over a law that is only known through its log-density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueup.noise.elementwise import Floats

Integrand = Callable[[Floats], Any]
"""Points on the last axis to values, one row for each thing that is averaged."""

MAX_TERMS = 2**22
"""Sums give up after so many terms in one block."""


def integrated(f: Integrand, low: float, high: float, start: float, unit: float) -> Any:
    """Return ∫ f over [low, high], split at distances from the start that double.

    None if the error is estimated above 1e-9 of the largest row.

    Examples
    --------
    >>> integrated(lambda z: np.exp(-abs(z))[None], -np.inf, np.inf, 0.0, 1.0)
    array([2.])
    """
    from scipy.integrate import quad_vec

    def row(z: float) -> Any:
        return np.nan_to_num(f(np.asarray(z)))

    reach = unit * 2.0 ** np.arange(-3, 13)
    points = np.sort(np.concatenate([start - reach, [start], start + reach]))
    low, high = max(low, start - 1e18 * unit), min(high, start + 1e18 * unit)
    inside = points[(points > low) & (points < high)]
    options: dict[str, Any] = {"epsabs": 1e-300, "epsrel": 1e-13, "norm": "max", "limit": 3000}
    with np.errstate(all="ignore"):
        value, error = quad_vec(row, low, high, points=inside, **options)
    return value if error <= 1e-9 * np.max(np.abs(value)) else None


def summed(f: Integrand, low: float, high: float, start: float) -> Any:
    """Return Σ f over the integers from low to high, outwards from the start.

    None if the terms do not become negligible.

    Examples
    --------
    >>> summed(lambda k: 0.5 ** abs(k)[None], -np.inf, np.inf, 0.0)
    array([3.])
    """
    sides = [_side(f, start, high, 1), _side(f, start - 1, low, -1)]
    return None if any(side is None for side in sides) else sum(sides)


def _side(f: Integrand, start: float, end: float, step: int) -> Any:
    """Return Σ f from the start to the end in growing blocks, until a block adds nothing."""
    total, size, first = 0.0, 64, start
    while size <= MAX_TERMS:
        count = min(size, max(int((end - first) * step) + 1, 0)) if math.isfinite(end) else size
        with np.errstate(all="ignore"):
            block = np.nan_to_num(f(first + step * np.arange(float(count))))
        total = total + block.sum(axis=-1)
        if count < size or (np.abs(block).sum(axis=-1) <= 1e-18 * np.abs(total)).all():
            return total
        first, size = first + step * count, size * 2
    return None
