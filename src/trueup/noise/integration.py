"""Integrate or sum numerically over a law that is only known through its log-density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueup.noise.elementwise import Floats

Integrand = Callable[[Floats], Any]
"""Points on the last axis to values, one row for each thing that is averaged."""

MAX_TERMS = 2**20
"""Sums give up after so many terms in one block: two million in all, on each side."""

HALVINGS = 60
"""Integrals give up after so many halvings of the pieces that have not settled."""

MAX_PIECES = 2**14
"""Integrals give up with so many pieces unsettled: a wave on a tail that falls like a power."""

ROUNDING = 1e-15
"""Two ways to add up a piece differ by so much in doubles."""


def integrated(f: Integrand, low: float, high: float, start: float, unit: float) -> Any:
    """Return ∫ f over [low, high], or None if a row does not settle to 1e-9 of its size.

    Gauss-Legendre on pieces that double in length away from the start and from finite ends;
    pieces are halved until they settle.

    Examples
    --------
    >>> integrated(lambda z: np.exp(-abs(z))[None], -np.inf, np.inf, 0.0, 1.0)
    array([2.])
    """
    cuts = _cuts(low, high, start, unit)
    lows, highs = cuts[:-1], cuts[1:]
    whole = _gauss(f, lows, highs)
    size = np.abs(whole).sum(axis=-1, keepdims=True)
    if not np.isfinite(size).all():  # beyond all doubles
        return None
    total, error = np.zeros(whole.shape[:-1]), np.zeros(whole.shape[:-1])
    for _ in range(HALVINGS):
        middles = (lows + highs) / 2
        left, right = _gauss(f, lows, middles), _gauss(f, middles, highs)
        gap, both = np.abs(left + right - whole), np.abs(left) + np.abs(right)
        done = (gap <= 1e-16 * size + ROUNDING * both).all(axis=0)
        total = total + (left + right)[..., done].sum(axis=-1)
        error = gap[..., ~done].sum(axis=-1)
        lows = np.concatenate([lows[~done], middles[~done]])
        highs = np.concatenate([middles[~done], highs[~done]])
        whole = np.concatenate([left[..., ~done], right[..., ~done]], axis=-1)
        if len(lows) > MAX_PIECES or (error <= 1e-15 * size[..., 0]).all():
            break
    settled = (error <= 1e-9 * size[..., 0]).all()
    return total + whole.sum(axis=-1) if settled else None


def _cuts(low: float, high: float, start: float, unit: float) -> Floats:
    """Return the ends of the pieces."""
    reach = unit * np.exp2(np.arange(-3.0, 61.0))
    ends = [end for end in (low, high) if math.isfinite(end)]
    near = [end + sign * unit * np.exp2(-np.arange(61.0)) for end in ends for sign in (-1, 1)]
    cuts = np.concatenate([start - reach, [start], start + reach, ends, *near])
    return np.unique(cuts[(cuts >= low) & (cuts <= high)])


def _gauss(f: Integrand, lows: Floats, highs: Floats) -> Any:
    """Return the integral over each piece by 20 Gauss-Legendre points, one column a piece."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    radius, middle = (highs - lows)[:, None] / 2, (highs + lows)[:, None] / 2
    with np.errstate(all="ignore"):
        values = np.nan_to_num(f((middle + radius * nodes).ravel()))
        pieces = values.reshape(*values.shape[:-1], len(lows), len(nodes))
        return (pieces * (radius * weights)).sum(axis=-1)


def summed(f: Integrand, low: float, high: float, start: float) -> Any:
    """Return Σ f over the integers from low to high, outwards from the start.

    None if the terms do not become negligible, or exceed the doubles.

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
            sizes = np.abs(block).sum(axis=-1)
        if not np.isfinite(total).all():
            return None
        if count < size or (sizes <= 1e-18 * np.abs(total)).all():
            return total
        first, size = first + step * count, size * 2
    return None
