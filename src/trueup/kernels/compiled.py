"""Large arrays: value and standard error in one loop, printed from a tape and compiled by numba.

The regions of all parts become choices, what outputs have in common is computed once. The loop lets
go of the interpreter's lock and is run by the threads of :mod:`trueup.kernels.blocks`.
"""

from __future__ import annotations

import importlib.util
import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.extras import optional
from trueup.formula.opaque import Table
from trueup.kernels.calls import TEXT, WORDS, statements
from trueup.kernels.tape import Emitter, Tape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.kernels.grid import Grid, Part, Region

    Block = NDArray[Any]

READY = 2_048
"""Rows of an array from which a loop that is compiled is used."""
NEW = 8_000_000
"""Rows seen so far from which it is compiled: that takes about as long as NumPy for so many."""
ROWS = 524_288
"""Rows of one column that fill a huge page of memory."""

_MOST_STEPS = 1200  # which numba compiles in a few seconds
_MOST_REGIONS = 27  # three statistics, each below, inside and above its bounds
_MOST = 1.7976931348623157e308
_NUMBERS = ("const", "truth")
_LOCK = threading.RLock()


# -- one tape --------------------------------------------------------------------------------------


def fuse(grids: Sequence[Grid], outputs: Sequence[str]) -> Tape | None:
    """Return the tape of all outputs, its inputs those of the grids; None if it is too long.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.grid import Grid
    >>> x = sympy.Symbol("x", real=True)
    >>> grid = Grid((x,), [([], (0,), lambda region: 4 * x)], frozenset())
    >>> fuse([grid, grid], ["variance", "stderr"]).steps[-1]
    Step(op='sqrt', args=(11,), data=None)
    """
    if any(_regions(part) > _MOST_REGIONS for grid in grids for part in grid.parts):
        return None
    fusion = _Fusion(len(grids[0].inputs))
    columns = []
    for grid, name in zip(grids, outputs, strict=True):
        total = fusion.grid(grid)
        columns.append(fusion.emit("sqrt", total) if name == "stderr" else total)
        if len(fusion.steps) > _MOST_STEPS or not fusion.is_possible:
            return None
    return Tape(grids[0].inputs, tuple(fusion.steps), tuple(columns))


def _regions(part: Part) -> int:
    """Return how many regions a part has, or the widest of its factors."""
    if part.products:
        return max(_regions(factor) for terms in part.products for factor, _ in terms)
    return math.prod(1 + bool(b.below) + bool(b.above) for b in part.bounds)


class _Fusion(Emitter):
    """The state of one fusion."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.inputs = [self.emit("input", data=i) for i in range(inputs)]
        self.nan = self.emit("const", data=math.nan)

    @property
    def is_possible(self) -> bool:
        """Whether every operation can be printed."""
        return all(
            step.op in (*TEXT, *_NUMBERS, "input") or isinstance(step.data, Table)
            for step in self.steps
        )

    def grid(self, grid: Grid) -> int:
        total = self.sum([self.part(part) for part in grid.parts])
        size = self.emit("abs", total)
        known = self.emit("le", size, self.emit("const", data=_MOST))
        for i in grid.unread:
            known = self.emit("and", known, self.emit("eq", self.inputs[i], self.inputs[i]))
        return self.emit("where", known, total, self.nan)

    def sum(self, registers: Sequence[int]) -> int:
        first, *rest = registers
        for register in rest:
            first = self.emit("add", first, register)
        return first

    def part(self, part: Part) -> int:
        """Return the register of a part: its products, or a choice between its regions."""
        if part.products:
            terms = [[self.part(f) for f, n in terms for _ in range(n)] for terms in part.products]
            return self.sum([self.product(factors) for factors in terms])
        return self.choose(part, ())

    def choose(self, part: Part, begun: Region) -> int:
        if len(begun) == len(part.bounds):
            return self.splice(part.piece(begun).guarded, part.reads)
        b = part.bounds[len(begun)]
        chosen = self.choose(part, (*begun, 0))
        for branch, op, bound in ((b.above, "ge", b.high), (b.below, "le", b.low)):
            if branch:
                other = self.choose(part, (*begun, branch))
                beyond = self.emit(op, self.inputs[b.input], self.emit("const", data=bound))
                chosen = self.emit("where", beyond, other, chosen)
        return chosen

    def splice(self, tape: Tape, reads: Sequence[int]) -> int:
        """Return the register of a tape's output, its steps copied here."""
        here: list[int] = []
        for op, args, data in tape.steps:
            if op == "input":
                here.append(self.inputs[reads[data]])
            else:
                here.append(self.emit(op, *(here[a] for a in args), data=data))
        return here[tape.outputs[0]]


# -- its text --------------------------------------------------------------------------------------


def printed(tape: Tape) -> str:
    """Return a tape as a function of its constants, tables, inputs and outputs.

    Constants are an argument: another noise scale is the same loop.

    Examples
    --------
    >>> from trueup.kernels.tape import Step
    >>> steps = Step("input", data=0), Step("const", data=2.0), Step("div", (1, 0))
    >>> print(printed(Tape((), steps, (2,))))
    def loop(c, x0, y0):
        r1 = c[0]
        for i in range(y0.size):
            r0 = x0[i]
            r2 = r1 / r0
            y0[i] = r2
    """
    numbers = [i for i, step in enumerate(tape.steps) if step.op in _NUMBERS]
    tables = [f"t{i}" for i, step in enumerate(tape.steps) if step.op == "call"]
    inputs = {i: f"x{step.data}" for i, step in enumerate(tape.steps) if step.op == "input"}
    outputs = [f"y{k}" for k in range(len(tape.outputs))]
    names = {i: f"r{i}" for i in (*numbers, *inputs)}
    lines = [
        *(f"r{i} = {x}[i]" for i, x in inputs.items()),
        *statements(tape, names, lambda i, table, k: f"look(t{i}, {k} - {table.low - 1.0!r})"),
        *(f"{y}[i] = r{register}" for y, register in zip(outputs, tape.outputs, strict=True)),
    ]
    head = f"def loop({', '.join(['c', *tables, *inputs.values(), *outputs])}):"
    before = [f"    r{i} = c[{k}]" for k, i in enumerate(numbers)]
    body = ["    for i in range(y0.size):", *(f"        {line}" for line in lines)]
    return "\n".join([head, *before, *body])


def _look(table: Any, k: float) -> float:
    """Return an entry of a table, which has a NaN at both ends."""
    k = k if k < table.size - 1.0 else table.size - 1.0
    return table[int(k if k > 0.0 else 0.0)]  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def _loop(text: str, given: int, made: int) -> Callable[..., None]:
    """Return the compiled loop of a text that was printed from a tape."""
    numba: Any = optional("numba", "fast", "a compiled kernel")
    if numba.config.DISABLE_JIT:
        raise RuntimeError("numba's compiler is switched off")
    space = WORDS | {"look": numba.njit(_look)}
    exec(text, space)  # noqa: S102  (our own words, registers and numbers: no text of a user's)
    read = numba.types.Array(numba.types.float64, 1, "C", readonly=True)
    kinds = [read] * given + [numba.types.float64[::1]] * made
    compiler = numba.njit(numba.types.void(*kinds), nogil=True, error_model="numpy")
    return compiler(space["loop"])  # type: ignore[no-any-return]


# -- when ------------------------------------------------------------------------------------------


class Compilation:
    """The compiled form of some outputs of some grids: made when enough rows have been seen.

    TRUEUP_NUMBA=0 does without, TRUEUP_NUMBA=1 compiles at once and says what is in the way.
    """

    rows_at_a_time = ROWS

    def __init__(self, grids: Sequence[Grid], outputs: Sequence[str]) -> None:
        self.grids, self.outputs = tuple(grids), tuple(outputs)
        self.rows = 0
        self.loop: Callable[..., None] | None = None
        self.given: list[Block] = []
        self.is_possible = True

    def ready(self, rows: int) -> bool:
        """Whether to use the loop for an array of so many rows; compiles it."""
        wanted = os.environ.get("TRUEUP_NUMBA")
        if not self.is_possible or wanted == "0":
            return False
        self.rows += rows
        if self.loop is None and (self.rows >= NEW or wanted == "1"):
            with _LOCK:
                self._make(demanded=wanted == "1")
        return self.loop is not None and (rows >= READY or wanted == "1")

    def _make(self, demanded: bool) -> None:
        if demanded:
            optional("numba", "fast", "TRUEUP_NUMBA=1")
        try:
            tape = fuse(self.grids, self.outputs) if self.loop is None and has_numba() else None
            if tape is not None:
                steps = tape.steps
                constants = np.array([s.data for s in steps if s.op in _NUMBERS], float)
                self.given = [constants, *(s.data.values for s in steps if s.op == "call")]
                given = len(self.given) + len(tape.inputs)
                self.loop = _loop(printed(tape), given, len(self.outputs))
        except Exception:  # numba is broken: NumPy does it
            if demanded:
                raise
        self.is_possible = self.loop is not None

    def __call__(self, inputs: Sequence[Block], outs: Sequence[Block]) -> None:
        """Fill blocks of outputs."""
        assert self.loop is not None  # noqa: S101  (it is ready)
        self.loop(*self.given, *inputs, *outs)


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
