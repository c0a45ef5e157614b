"""Arrays: a tape in NumPy, block by block so that all stays in the cache, on all cores.

Arrays of every dtype and layout come in; nothing is copied but blocks.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from trueup.formula.opaque import Table, value
from trueup.formula.operations import OPERATIONS
from trueup.kernels.tape import BOOLEAN, Step, Tape, lower, run

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


def is_total(tape: Tape) -> bool:
    """Whether a tape calls no function that the user wrote, which may know some numbers only."""
    return all(step.op != "call" or isinstance(step.data, Table) for step in tape.steps)


class _Kept(threading.local):
    """Buffers of one thread."""

    def __init__(self) -> None:
        self.buffers: list[Block] = []


class Program:
    """A tape of one formula in NumPy; the buffer of a value no longer read is used again."""

    def __init__(self, tape: Tape) -> None:
        (self.output,) = tape.outputs
        self.start = [s.data if s.op in ("const", "truth") else None for s in tape.steps]
        self.inputs = [(i, s.data) for i, s in enumerate(tape.steps) if s.op == "input"]
        self.slots: list[type] = []
        self.lines = list(self._assigned(tape.steps))
        self.kept = _Kept()

    def _assigned(self, steps: Sequence[Step]) -> Iterator[tuple[int, Any, tuple[int, ...], int]]:
        """Yield every operation with its register, its arguments, and the buffer it fills."""
        last = {a: i for i, step in enumerate(steps) for a in step.args}
        slot: dict[int, int] = {}
        free: dict[type, list[int]] = {float: [], bool: []}
        for i, (op, args, data) in enumerate(steps):
            if op in ("input", "const", "truth"):
                continue
            dying = [slot[a] for a in {*args} if last[a] == i and a in slot]
            early = dying if op in OPERATIONS else []  # elementwise: may write over what it reads
            for k in early:
                free[self.slots[k]].append(k)
            slot[i] = self._taken(bool if op in BOOLEAN else float, free)
            for k in dying[len(early) :]:
                free[self.slots[k]].append(k)
            yield i, _into(op, data), args, slot[i]

    def _taken(self, kind: type, free: dict[type, list[int]]) -> int:
        if free[kind]:
            return free[kind].pop()
        self.slots.append(kind)
        return len(self.slots) - 1

    def __call__(self, columns: Sequence[Block], out: Block) -> None:
        """Fill one block."""
        rows, kept = len(out), self.kept
        if not kept.buffers or len(kept.buffers[0]) < rows:
            kept.buffers = [np.empty(max(rows, 1), kind) for kind in self.slots]
        values = self.start.copy()
        for i, number in self.inputs:
            values[i] = columns[number]
        for i, function, args, slot in self.lines:
            target = out if i == self.output else kept.buffers[slot][:rows]
            function(*[values[a] for a in args], out=target)
            values[i] = target
        if values[self.output] is not out:
            out[...] = values[self.output]


def _into(op: str, data: Any) -> Callable[..., Any]:
    """Return an operation that fills ``out``."""
    if op in OPERATIONS:
        return OPERATIONS[op].ufunc  # type: ignore[no-any-return]
    if op == "where":
        return _chosen
    return lambda *args, out: np.copyto(out, NUMPY[op](data, *args))


def _chosen(condition: Any, a: Any, b: Any, out: Block) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


# -- expressions -----------------------------------------------------------------------------------

_SLOW = ("log", "sqrt", "pow", "asinh", "acosh", "atan")


def _of_finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is not known at infinity: log(1 + e^800) is no infinity."""
    return lambda x, *more: function(np.where(np.isinf(x), np.nan, x), *more)


_OVERFLOWING = NUMPY | {f"{op} of a step": _of_finite(NUMPY[op]) for op in _SLOW}


@lru_cache(maxsize=256)
def _tape(expr: sympy.Expr, symbols: tuple[sympy.Symbol, ...]) -> Tape:
    """Return the tape of an expression whose steps may overflow, though its inputs need not."""
    tape = lower([expr], symbols)
    steps = tuple(
        step._replace(op=f"{step.op} of a step")
        if step.op in _SLOW and tape.steps[step.args[0]].op not in ("input", "const")
        else step
        for step in tape.steps
    )
    return tape._replace(steps=steps)


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
        given = [np.broadcast_to(c, out.shape) for c in columns.values()]
        (out[...],) = run(_tape(expr, tuple(columns)), given, _OVERFLOWING)
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
