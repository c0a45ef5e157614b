"""The sign of a formula on a box: proven by interval arithmetic on ever smaller cells."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.enclosure import enclose, sign
from trueup.formula.substitution import real

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.domain import Interval

_CELLS = 4096
_ROUNDS = 64  # halvings of a cell: beyond, what is undecided is a zero, or lies beyond all doubles


def definite(expr: sympy.Expr, box: Mapping[sympy.Symbol, Interval], *, strict: bool = True) -> int:
    """Return the sign an expression is proven to have on a closed box, 0 if undecided.

    With ``strict=False`` it may also be zero in places.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> a, b = sympy.symbols("a b", real=True)
    >>> definite(a + b, {a: Interval(1, None), b: Interval(0, None)})
    1
    """
    symbols = sorted(expr.free_symbols, key=str)
    cells = {s: (np.array([float(box[s].low)]), np.array([float(box[s].high)])) for s in symbols}
    proven: set[int] = set()
    if not symbols:
        value = real(expr)
        return 0 if value is None or (not value and strict) else -1 if value < 0 else 1
    for _ in range(_ROUNDS):
        signs = sign(expr, cells) if strict else _weak_sign(expr, cells)
        proven |= {int(s) for s in signs if s}
        open_cells = {s: (lo[signs == 0], hi[signs == 0]) for s, (lo, hi) in cells.items()}
        count = int((signs == 0).sum())
        if count == 0:
            return proven.pop() if len(proven) == 1 else 0
        if len(proven) == 2 or count * 2 ** len(symbols) > _CELLS:
            return 0
        cells = _bisect(open_cells)
    return 0


def _weak_sign(
    expr: sympy.Expr, cells: Mapping[sympy.Symbol, tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    low, high = enclose(expr, cells)
    return np.where(low >= 0, 1, np.where(high <= 0, -1, 0))


def _bisect(
    cells: dict[sympy.Symbol, tuple[np.ndarray, np.ndarray]],
) -> dict[sympy.Symbol, tuple[np.ndarray, np.ndarray]]:
    """Split every cell in two along every axis."""
    halves = {s: ((lo, m), (m, hi)) for s, (lo, hi) in cells.items() for m in [_middle(lo, hi)]}
    result: dict[sympy.Symbol, tuple[list[np.ndarray], list[np.ndarray]]]
    result = {s: ([], []) for s in cells}
    for choice in product((0, 1), repeat=len(cells)):
        for (symbol, pair), side in zip(halves.items(), choice, strict=True):
            result[symbol][0].append(pair[side][0])
            result[symbol][1].append(pair[side][1])
    return {s: (np.concatenate(lo), np.concatenate(hi)) for s, (lo, hi) in result.items()}


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a point inside: unbounded cells are cut far out, those over many decades in between.

    From 0 outwards the distances are 16, 256, 65536, ..., so that 1e300 is reached in ten rounds.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low / 2 + high / 2
        near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
        decades = ((low > 0) | (high < 0)) & (far > 4 * near)
        beyond = np.clip(np.maximum(4.0, near) ** 2, near, 1e300)
        size = np.where(np.isinf(far), beyond, np.sqrt(near) * np.sqrt(far))
        one_sided = decades | (np.isinf(far) & np.isfinite(near))
        middle = np.where(one_sided, np.where(np.isinf(low) | (high <= 0), -size, size), middle)
    return np.where(np.isinf(low) & np.isinf(high), 0.0, middle)
