"""Arrays: a tape in NumPy, block by block so that all stays in the cache, on all cores.

Arrays of every dtype and layout come in; nothing is copied but blocks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from trueup.formula.opaque import Table, value
from trueup.formula.operations import OPERATIONS
from trueup.kernels.tape import lower, run

Block: TypeAlias = NDArray[Any]
Run: TypeAlias = Callable[[list[Block], list[Block]], None]
"""Fills blocks of results from blocks of inputs: all of doubles, contiguous, of one length."""

BLOCK = 32_768
"""Rows at a time: a handful of columns stay in the cache, and calls cost little beside them."""

_MANY = 100_000  # rows from which it pays to use several threads
_MOST_THREADS = 16
_SHARES = 8  # of each thread: a slow one leaves some to the others
_WALK: Any = ["external_loop", "buffered", "ranged", "delay_bufalloc", "zerosize_ok"]


# -- operations ------------------------------------------------------------------------------------


def clenshaw(coefficients: Sequence[float], t: Any) -> Any:
    """Return Σₙ cₙ Lagₙ(t) by Clenshaw's recurrence, which is stable at every degree.

    Examples
    --------
    >>> clenshaw([0.0, 1.0, 2.0], 3.0)  # (1 − 3) + 2·(1 − 6 + 9/2)
    -3.0
    """
    first = second = 0.0 * t
    for n in range(len(coefficients) - 1, -1, -1):
        c = coefficients[n]
        step = c + first * (2 * n + 1 - t) / (n + 1) - second * (n + 1) / (n + 2)
        first, second = step, first
    return first


def _call(function: Callable[..., Any], *args: Any) -> Block:
    """Apply a function that the user wrote for single numbers, once to each that occurs."""
    if isinstance(function, Table):
        return np.asarray(function(*args))
    points, rows = np.unique(np.broadcast_arrays(*args), axis=1, return_inverse=True)
    known = [
        math.nan if any(map(math.isnan, point)) else value(function, *point)
        for point in points.T.tolist()
    ]
    return np.array(known)[rows.ravel()]


def _where(condition: Any, a: Any, b: Any) -> Any:
    """Choose; what holds in every row costs no pass."""
    return a if np.all(condition) else np.where(condition, a, b)


NUMPY: dict[str, Callable[..., Any]] = {
    **{name: row.ufunc for name, row in OPERATIONS.items()},
    "const": float,
    "truth": bool,
    "where": _where,
    "laguerre": clenshaw,
    "call": _call,
}
"""The operations on arrays."""


# -- expressions -----------------------------------------------------------------------------------


_SLOW = ("log", "sqrt", "pow", "asinh", "acosh", "atan")
_OF_FINITE = NUMPY | {  # unknown at infinity: log(1 + e^800) is not infinite
    op: lambda x, *more, f=NUMPY[op]: f(np.where(np.isinf(x), np.nan, x), *more) for op in _SLOW
}
_lowered = lru_cache(maxsize=256)(lambda expr, symbols: lower([expr], symbols))


def evaluate(
    expr: sympy.Expr, columns: Mapping[sympy.Symbol, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return an expression's values; poles are infinite, what is undefined is NaN.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> evaluate(1 / q, {q: np.array([0.0, 2.0])})
    array([inf, 0.5])
    """
    out = np.empty(max((len(c) for c in columns.values()), default=1))
    with np.errstate(all="ignore"):
        ops = NUMPY if any(np.isinf(c).any() for c in columns.values()) else _OF_FINITE
        (out[...],) = run(_lowered(expr, tuple(columns)), [*columns.values()], ops)
    return out


# -- blocks ----------------------------------------------------------------------------------------


def sweep(
    fill: Run, arrays: Sequence[Block], outputs: int, dtype: np.dtype[Any], rows: int = BLOCK
) -> list[Block]:
    """Return new arrays of the common shape, filled block by block, large ones by all cores.

    Examples
    --------
    >>> def double(inputs, outs):
    ...     np.multiply(inputs[0], 2, out=outs[0])
    >>> sweep(double, [np.arange(5)], 1, np.dtype("f4"), rows=2)
    [array([0., 2., 4., 6., 8.], dtype=float32)]
    """
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    full = [a for a in arrays if a.size > 1]
    by_columns = len(shape) > 1 and full != [] and all(a.flags.f_contiguous for a in full)
    results = [np.empty(shape, dtype, "F" if by_columns else "C") for _ in range(outputs)]
    every = [*arrays, *results]
    roles = ["readonly"] * len(arrays) + ["writeonly"] * outputs
    flags: Any = [[role, "contig", "aligned"] for role in roles]

    def work(ends: tuple[int, int]) -> None:
        doubles = [np.dtype(float)] * len(every)
        walk: Any = np.nditer(every, _WALK, flags, doubles, casting="unsafe", buffersize=rows)
        with np.errstate(all="ignore"), walk as blocks:
            blocks.iterrange = ends
            blocks.reset()
            for block in blocks:
                fill(list(block[: len(arrays)]), list(block[len(arrays) :]))

    size = results[0].size
    threads = cores() if size >= _MANY else 1
    share = rows * max(1, -(-size // (rows * threads * _SHARES)))
    shares = [(first, min(first + share, size)) for first in range(0, size, share)]
    if threads == 1:
        list(map(work, shares))
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, shares))
    return results


def cores() -> int:
    """Return the number of threads worth starting; TRUEUP_THREADS sets it.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    wanted = os.environ.get("TRUEUP_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        available = os.cpu_count() or 1
    return min(available, _MOST_THREADS)
