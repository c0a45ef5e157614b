"""Arrays: a tape in NumPy, block by block so that all stays in the cache, on all cores.

Arrays of every dtype and layout come in; nothing is copied but blocks.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from trueup.formula.opaque import value
from trueup.formula.operations import OPERATIONS
from trueup.kernels.tape import lower, run

Block: TypeAlias = NDArray[Any]
Run: TypeAlias = Callable[[list[Block], list[Block]], None]
"""Fills blocks of results from blocks of inputs: all of doubles, contiguous, of one length."""

BLOCK = 32_768
"""Rows at a time: a handful of columns stay in the cache, and calls cost little beside them."""

_MANY = 100_000  # rows from which it pays to use several threads
_MOST_THREADS = 16
_DOUBLE = np.dtype(float)


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
    """Apply a function that the user wrote, to columns if it can, else row by row."""
    columns = np.broadcast_arrays(*args)
    known = ~np.logical_or.reduce([np.isnan(c) for c in columns])
    some = [c[known] for c in columns]
    found = np.full(known.shape, np.nan)
    try:
        result = np.asarray(function(*some))
    except Exception:  # whatever a function for single numbers does with columns
        result = np.asarray(None)
    if result.dtype.kind in "biuf" and result.shape == some[0].shape:
        found[known] = result
    else:
        rows = zip(*(c.tolist() for c in some), strict=True)
        found[known] = [value(function, *row) for row in rows]
    return found


NUMPY: dict[str, Callable[..., Any]] = {
    **{name: row.ufunc for name, row in OPERATIONS.items()},
    "const": float,
    "truth": bool,
    "where": np.where,
    "laguerre": clenshaw,
    "call": _call,
}
"""The operations on arrays."""


# -- expressions -----------------------------------------------------------------------------------


def _of_finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is unknown at infinity: log(1 + e^800) is not infinite."""
    return lambda x, *more: function(np.where(np.isinf(x), np.nan, x), *more)


_SLOW = ("log", "sqrt", "pow", "asinh", "acosh", "atan")
_OVERFLOWING = NUMPY | {op: _of_finite(NUMPY[op]) for op in _SLOW}
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
        ops = NUMPY if any(np.isinf(c).any() for c in columns.values()) else _OVERFLOWING
        (out[...],) = run(_lowered(expr, tuple(columns)), [*columns.values()], ops)
    return out


def value_at(expr: sympy.Expr, truth: Mapping[sympy.Symbol, float]) -> float:
    """Return an expression's value at one number for each symbol.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> value_at(1 / q, {q: 2.0})
    0.5
    """
    return float(evaluate(expr, {s: np.array([q]) for s, q in truth.items()})[0])


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
    turned = len(shape) > 1 and all(a.flags.f_contiguous for a in arrays if a.size > 1)
    if turned and all(a.shape == shape for a in arrays if a.size > 1):
        arrays, shape = [a.T for a in arrays], shape[::-1]
    else:
        turned = False
    results = [np.empty(shape, dtype) for _ in range(outputs)]
    flat = [_flat(a, shape) for a in arrays]
    targets = [r.reshape(-1) for r in results]
    size = results[0].size
    if not all(a.dtype == _DOUBLE and a.flags.c_contiguous for a in (*flat, *targets)):
        rows = min(rows, BLOCK)  # what passes through buffers has to stay in the cache

    def work(first: int) -> None:
        last = min(first + rows, size)
        columns = [_column(a, first, last) for a in flat]
        wanted = [t[first:last] for t in targets]
        outs = wanted if dtype == _DOUBLE else [np.empty(last - first) for _ in wanted]
        fill(columns, outs)
        for target, out in zip(wanted, outs, strict=True):
            if target is not out:
                target[...] = out

    _each(work, range(0, size, rows), cores() if size >= _MANY else 1)
    return [r.T for r in results] if turned else results


def _flat(array: Block, shape: tuple[int, ...]) -> Block:
    """Return an array in one dimension; single numbers stay single."""
    if array.size == 1:
        return array.reshape(())
    return np.broadcast_to(array, shape).reshape(-1)


def _column(array: Block, first: int, last: int) -> Block:
    """Return rows as contiguous doubles."""
    if array.ndim == 0:
        return np.full(last - first, array, float)
    return np.require(array[first:last], _DOUBLE, ["C", "A"])


def _each(fill: Callable[[int], None], starts: range, threads: int) -> None:
    """Fill every block, on so many threads; the first block's failure is raised."""
    todo, lock = iter(starts), threading.Lock()
    failures: list[tuple[int, Exception]] = []

    def work() -> None:
        with np.errstate(all="ignore"):
            while True:
                with lock:
                    first = next(todo, None) if not failures else None
                if first is None:
                    return
                try:
                    fill(first)
                except Exception as error:  # raised again in the calling thread
                    failures.append((first, error))

    helpers = [threading.Thread(target=work) for _ in range(min(threads, len(starts)) - 1)]
    started = list(itertools.takewhile(_starts, helpers))
    work()
    for helper in started:
        helper.join()
    if failures:
        raise min(failures, key=lambda failure: failure[0])[1]


def _starts(thread: threading.Thread) -> bool:
    """Start a thread; tell whether the system had one to spare."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


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
