"""How far two formulas are apart on an interval, proven by interval arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.enclosure import enclose
from trueup.inverse.jets import derivative
from trueup.near.series import bound_on

if TYPE_CHECKING:
    import sympy
    from numpy.typing import NDArray

    from trueup.near.question import Question

    Floats = NDArray[np.float64]

_FIRST, _MOST = 512, 200_000
_NARROW = 1e-12
_CLOSE = 1.002
"""How far above the largest distance seen the bound may stay."""


def least(question: Question, low: Floats, high: Floats) -> Floats:
    """Return what a bias is divided by: the least |f| on cells if relative, else 1."""
    if not question.relative:
        return np.ones(low.shape)
    below, above = enclose(question.f, {question.symbol: (low, high)})
    return np.maximum(np.maximum(below, -above), 0.0)


def distance(question: Question, p: sympy.Expr) -> float:
    """Return a bound on |p − f| over a bounded domain, relative to |f| if asked so.

    On a cell of width δ a function with |d″| ≤ c is at most c·δ²/8 above its ends; cells are halved
    until that is close to the largest distance seen.
    """
    symbol, gap = question.symbol, p - question.f
    bend = derivative(gap, symbol, 2)
    edges = np.linspace(question.low, question.high, _FIRST + 1)
    low, high = edges[:-1], edges[1:]
    proven, seen, looked = 0.0, 0.0, 0
    while len(low):
        looked += len(low)
        ends = [bound_on(gap, symbol, q, q) for q in (low, high)]
        shares = [e / question.size(q) for e, q in zip(ends, (low, high), strict=True)]
        seen = max(seen, *(float(s.max()) for s in shares))
        sag = (high - low) ** 2 / 8 * bound_on(bend, symbol, low, high)
        bound = np.fmin(np.maximum(*ends) + sag, bound_on(gap, symbol, low, high))
        bound = bound / least(question, low, high)
        done = bound <= max(_CLOSE * seen, proven)
        done |= (high - low <= _NARROW * (edges[-1] - edges[0])) | (looked > _MOST)
        proven = max(proven, float(np.max(bound[done], initial=0.0)))
        low, high = low[~done], high[~done]
        middle = low / 2 + high / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return proven
