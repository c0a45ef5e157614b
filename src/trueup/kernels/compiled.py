"""Run a fused program compiled by numba: one pass over memory, on all cores.

The generated functions let go of the interpreter's lock and are run by the threads of
:mod:`trueup.kernels.sweep`, so no threading layer of numba is involved and forks stay safe.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._version import __version__
from trueup.extras import optional
from trueup.kernels.interpreted import UFUNCS
from trueup.kernels.sweep import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trueup.kernels.generated import Source, Stage
    from trueup.kernels.grid import Grid
    from trueup.kernels.sweep import Block, Run, Worker

READY = 2_048
"""Rows of an array from which a kernel that is loaded is used."""
ON_DISK = 2_000_000
"""Rows seen so far from which numba is imported and a kernel loaded from disk: 0.4 s once."""
NEW = 8_000_000
"""Rows seen so far from which it is compiled: a second once, then it lies on disk."""

DIRECT = 524_288  # rows per block when nothing but the kernel runs: a huge page per column
STAGED = 32_768  # and when blocks pass through NumPy between stages: they stay in the cache

LOST, BROKEN = 1, 2
"""What the last stage reports: rows out of the range of doubles on the way; broken numbers."""

Kernels = dict[str, "Callable[..., int]"]

_LOCK = threading.RLock()
_LOADED: dict[str, Kernels] = {}


class Compilation:
    """The compiled form of some outputs of some grids: made when enough rows have been seen.

    All targets give the same digits, so it does not matter when. TRUEUP_NUMBA=0 does without,
    TRUEUP_NUMBA=1 compiles at once and says what is in the way.

    Where a quick form leaves rows out, ``rest`` is the whole one: made when enough of them were.
    """

    def __init__(
        self, grids: Sequence[Grid], outputs: Sequence[str], shortened: bool = True
    ) -> None:
        self.grids, self.outputs, self.shortened = tuple(grids), tuple(outputs), shortened
        self.rest = Compilation(grids, outputs, shortened=False) if shortened else None
        self.rows = 0
        self.source: Source | None = None
        self.kernels: Kernels | None = None
        self.possible = True

    def ready(self, rows: int) -> bool:
        """Whether to use the kernels for an array of so many rows; loads or compiles them."""
        wish = os.environ.get("TRUEUP_NUMBA")
        if not self.possible or wish == "0":
            return False
        if self.kernels is None:
            self.rows += rows
            if self.rows >= ON_DISK or wish == "1":
                with _LOCK:
                    self._make(demanded=wish == "1")
        return self.kernels is not None and (rows >= READY or wish == "1")

    def _make(self, demanded: bool) -> None:
        if demanded:
            optional("numba", "fast", "TRUEUP_NUMBA=1")
        if self.kernels is not None or not self.possible:
            return
        try:
            self.source = self.source or self._write()
            if self.source is not None:
                self.kernels = load(self.source, must_exist=self.rows < NEW and not demanded)
        except Exception:
            self.possible = False  # numba broken, no space left, ...: NumPy does it
            if demanded:
                raise

    def _write(self) -> Source | None:
        from trueup.kernels.fused import fuse
        from trueup.kernels.generated import write

        wanted = has_numba() and (self.shortened or any(g.is_shortened for g in self.grids))
        program = fuse(self.grids, self.outputs, self.shortened) if wanted else None
        self.possible = program is not None
        return program and write(program)

    def worker(self, again: Worker) -> Worker:
        """Return what runs the kernels, with another target for rows that need a second look."""
        assert self.source is not None and self.kernels is not None  # noqa: S101, PT018 (ready)
        source, kernels, rest = self.source, self.kernels, self.rest
        return lambda rows: _Thread(source, kernels, rows, again, rest)

    @property
    def block(self) -> int:
        """The rows of a block; all buffers of all threads together stay below 32 MiB."""
        buffers = len(_buffered(self.source)) if self.source is not None else 0
        return min(STAGED, 2**22 // (buffers * cores())) if buffers else DIRECT


class _Thread:
    """What one thread runs: compiled stages, NumPy's functions between them, its own buffers."""

    def __init__(
        self,
        source: Source,
        kernels: Kernels,
        rows: int,
        again: Worker,
        rest: Compilation | None = None,
    ) -> None:
        self.source, self.kernels, self.again, self.rest = source, kernels, again, rest
        self.constants = _frozen(np.array(source.constants, float))
        self.buffers = {register: np.empty(rows) for register in _buffered(source)}
        self.slow: Run | None = None

    def __call__(self, inputs: list[Block], outs: list[Block]) -> None:
        values: dict[int, Any] = {i: _frozen(x) for i, x in enumerate(inputs)}
        values |= self.source.numbers
        rows = len(outs[0])
        beyond: list[str] = []
        for stage in self.source.stages[:-1]:
            if stage.writes:
                targets = [self.buffers[r][:rows] for r in stage.writes]
                self._run(stage, values, targets)
                values |= zip(stage.writes, targets, strict=True)
            for call in stage.calls:
                target = self.buffers[call.node][:rows]
                with np.errstate(
                    over="call", under="call", call=lambda kind, _: beyond.append(kind)
                ):
                    UFUNCS[call.op](*(values[a] for a in call.args), out=target)
                values[call.node] = _frozen(target)
        state = self._run(self.source.stages[-1], values, outs)
        if state or beyond:
            self._look_again(inputs, outs, BROKEN if beyond else state)

    def _run(self, stage: Stage, values: dict[int, Any], targets: list[Block]) -> int:
        kernel = self.kernels[stage.name]
        return kernel(self.constants, *(values[r] for r in stage.reads), *targets)

    def _look_again(self, inputs: list[Block], outs: list[Block], state: int) -> None:
        """Compute rows that are lost, or all, with NumPy, which also says what is not whole.

        Many rows that a quick form left out are computed by a kernel of the whole form.
        """
        self.slow = self.slow or self.again(len(outs[0]))
        if state & BROKEN:
            self.slow(inputs, outs)
            return
        rows = np.logical_or.reduce([np.isnan(out) for out in outs])
        rows &= ~np.logical_or.reduce([np.isnan(x) for x in inputs])
        count = int(rows.sum())
        some = [np.empty(count) for _ in outs]
        run = self.slow
        if self.rest is not None and self.rest.ready(count):
            run = self.rest.worker(self.again)(count)
        run([x[rows] for x in inputs], some)
        for out, result in zip(outs, some, strict=True):
            out[rows] = result


def _buffered(source: Source) -> list[int]:
    """Return the registers that are kept between two stages."""
    stages = source.stages[:-1]
    return [r for s in stages for r in (*s.writes, *(call.node for call in s.calls))]


def has_numba() -> bool:
    """Whether numba is installed.

    Examples
    --------
    >>> has_numba() in (True, False)
    True
    """
    try:
        return importlib.util.find_spec("numba") is not None
    except (ImportError, ValueError):
        return False


def load(source: Source, must_exist: bool = False) -> Kernels | None:
    """Return the compiled stages of a source; None if they have to exist on disk and do not."""
    import hashlib
    import importlib.metadata

    from trueup.kernels import cache

    versions = (__version__, importlib.metadata.version("numba"), sys.version)
    shape = "\n".join([*versions, source.text])
    name = f"trueup_kernel_{hashlib.sha256(shape.encode()).hexdigest()[:24]}"
    with _LOCK:
        if name not in _LOADED:
            if must_exist and not cache.is_compiled(name):
                return None
            try:
                _LOADED[name] = _compile(name, cache.store(name, source.text), source)
            except Exception:  # a file cut short, for one: start afresh
                cache.discard(name)
                _LOADED[name] = _compile(name, cache.store(name, source.text), source)
        return _LOADED[name]


def _compile(name: str, path: Path, source: Source) -> Kernels:
    numba = optional("numba", "fast", "a compiled kernel")
    if numba.config.DISABLE_JIT:
        raise RuntimeError("numba's compiler is switched off")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018  (it is a .py file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba looks functions up by their module
    spec.loader.exec_module(module)
    given = numba.types.Array(numba.types.float64, 1, "C", readonly=True)
    made = numba.types.float64[::1]
    kernels: Kernels = {}
    for stage in source.stages:
        if stage.writes:
            kinds = [given] * (1 + len(stage.reads)) + [made] * len(stage.writes)
            compiler = numba.njit(
                numba.types.int64(*kinds), cache=True, nogil=True, error_model="numpy"
            )
            kernels[stage.name] = compiler(getattr(module, stage.name))
    return kernels


def _frozen(array: Block) -> Block:
    view = array.view()
    view.flags.writeable = False
    return view
