"""Pass over arrays once, block by block, on all cores: every array target is driven from here."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Block = NDArray[Any]
    Run = Callable[[list[Block], list[Block]], None]
    """Fills blocks of results from blocks of inputs: all of doubles, contiguous, of one length."""

    Worker = Callable[[int], Run]
    """Makes what one thread runs, with buffers of its own for blocks of at most so many rows."""

_DOUBLE = np.dtype(float)
_BUFFERED = 32_768  # rows per block that passes through buffers: they have to stay in the cache
_MOST_THREADS = 16


def sweep(
    worker: Worker,
    arrays: Sequence[Block],
    outputs: int,
    dtype: np.dtype[Any],
    rows: int,
    threads: int = 1,
) -> list[Block]:
    """Return new arrays of the common shape, filled block by block.

    Nothing is copied but blocks: what is not contiguous, not of doubles or a single number is
    brought into form in buffers that stay in the cache.

    Examples
    --------
    >>> def double(inputs, outs):
    ...     np.multiply(inputs[0], 2, out=outs[0])
    >>> sweep(lambda rows: double, [np.arange(5)], 1, np.dtype("f4"), rows=2, threads=2)
    [array([0., 2., 4., 6., 8.], dtype=float32)]
    """
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    if dtype != _DOUBLE or not all(_is_direct(a, shape) for a in arrays):
        rows = min(rows, _BUFFERED)
    if not all(_is_plain(a, shape) for a in arrays):
        return _scattered(worker(rows), arrays, outputs, dtype, rows)
    results = [np.empty(shape, dtype) for _ in range(outputs)]
    if results[0].size:
        flat = [a.reshape(-1) for a in arrays]
        share = -(-results[0].size // threads)
        _Pass(worker, flat, [r.reshape(-1) for r in results], min(rows, share)).on(threads)
    return results


def cores() -> int:
    """Return the number of threads worth starting; TRUEUP_THREADS sets it.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    wish = os.environ.get("TRUEUP_THREADS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        available = os.cpu_count() or 1
    return min(available, _MOST_THREADS)


def _is_plain(array: Block, shape: tuple[int, ...]) -> bool:
    if array.shape != shape:
        return array.size == 1
    return array.ndim <= 1 or array.flags.c_contiguous


def _is_direct(array: Block, shape: tuple[int, ...]) -> bool:
    flags = array.flags
    is_double = array.dtype == _DOUBLE and flags.c_contiguous and flags.aligned
    return array.shape == shape and is_double


class _Pass:
    """One pass: the blocks not yet begun, and what went wrong in which."""

    def __init__(
        self, worker: Worker, arrays: list[Block], results: list[Block], rows: int
    ) -> None:
        self.worker, self.arrays, self.results = worker, arrays, results
        self.total = results[0].size
        self.size = rows
        self.starts = deque(range(0, self.total, self.size))
        self.failures: list[tuple[int, Exception]] = []

    def on(self, threads: int) -> None:
        """Do it on so many threads, this one among them; the first block's failure is raised."""
        helpers = [
            threading.Thread(target=self.work) for _ in range(min(threads, len(self.starts)) - 1)
        ]
        try:
            for helper in helpers:
                with contextlib.suppress(RuntimeError):  # no thread can be started: do without
                    helper.start()
            self.work()
        finally:
            self.starts.clear()
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
        if self.failures:
            raise min(self.failures, key=lambda failure: failure[0])[1]

    def work(self) -> None:
        """Fill blocks until none is left."""
        readers = [_Reader(a, self.total, self.size) for a in self.arrays]
        buffers = [None if r.dtype == _DOUBLE else np.empty(self.size) for r in self.results]
        run = self.worker(self.size)
        with np.errstate(all="ignore"):
            while (first := self.next()) is not None:
                try:
                    self.fill(run, first, readers, buffers)
                except Exception as error:  # raised again in the calling thread
                    self.failures.append((first, error))
                    self.starts.clear()

    def next(self) -> int | None:
        try:
            return self.starts.popleft()
        except IndexError:
            return None

    def fill(
        self, run: Run, first: int, readers: list[_Reader], buffers: list[Block | None]
    ) -> None:
        last = min(first + self.size, self.total)
        targets = [r[first:last] for r in self.results]
        pairs = zip(targets, buffers, strict=True)
        outs = [target if own is None else own[: last - first] for target, own in pairs]
        run([reader(first, last) for reader in readers], outs)
        for target, out in zip(targets, outs, strict=True):
            if target is not out:
                target[...] = out


class _Reader:
    """Blocks of one input, as they are or brought into form in a buffer."""

    def __init__(self, array: Block, total: int, size: int) -> None:
        self.array = array
        self.single = array.size == 1 != total
        self.direct = _is_direct(array, (total,))
        self.buffer = np.empty(0 if self.direct else size)
        if self.single:
            self.buffer[...] = array

    def __call__(self, first: int, last: int) -> Block:
        if self.single:
            return self.buffer[: last - first]
        if self.direct:
            return self.array[first:last]
        block = self.buffer[: last - first]
        block[...] = self.array[first:last]
        return block


def _scattered(
    run: Run, arrays: Sequence[Block], outputs: int, dtype: np.dtype[Any], rows: int
) -> list[Block]:
    """Return the results for arrays of several dimensions that broadcast or lie otherwise."""
    roles: list[Any] = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]] * outputs
    with np.errstate(all="ignore"):
        blocks = np.nditer(
            [*arrays, *(None for _ in range(outputs))],
            flags=["external_loop", "buffered", "zerosize_ok"],
            op_flags=roles,
            op_dtypes=[*(_DOUBLE for _ in arrays), *(dtype for _ in range(outputs))],
            casting="same_kind",
            buffersize=rows,
        )
        with blocks:
            for block in blocks:
                inputs, targets = block[: len(arrays)], block[len(arrays) :]
                outs = [np.empty(len(t)) for t in targets]
                run([np.ascontiguousarray(x) for x in inputs], outs)
                for target, out in zip(targets, outs, strict=True):
                    target[...] = out
            results: list[Block] = list(blocks.operands[len(arrays) :])
            return results
