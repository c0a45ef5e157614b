"""A tape as text of Python: a function of single numbers, and a loop that numba compiles.

The loop computes value and standard error at once: the regions of all parts become choices, what
outputs have in common is computed once. It lets go of the interpreter's lock and is run by the
threads of :mod:`trueup.kernels.blocks`.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.formula.opaque import value
from trueup.formula.operations import FUNCTIONS, OPERATIONS
from trueup.kernels.blocks import clenshaw
from trueup.kernels.tape import Emitter, Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.kernels.grid import Grid, Part, Region

    Block = NDArray[Any]

NEW = 8_000_000
"""Rows seen so far from which a loop is compiled: that takes about as long as NumPy for so many."""
ROWS = 131_072
"""Rows at a time, which need not stay in the cache."""

TEXT: dict[str, str] = {
    **{name: f"{name}({{}})" for name in FUNCTIONS},
    **{name: row.compiled for name, row in OPERATIONS.items() if row.compiled},
    "pow": "pow({}, {})",
    "where": "{1} if {0} else {2}",
}
"""The operations as text of Python, which numba compiles, too."""

WORDS: dict[str, Any] = {
    **{name: getattr(math, name) for name in (*FUNCTIONS, "pow", "floor") if name != "abs"},
    "nan": math.nan,
    "inf": math.inf,
}
"""What the names in the text mean."""

_MOST_STEPS = 1200  # which numba compiles in a few seconds
_MOST = 1.7976931348623157e308
_NUMBERS = ("const", "truth")


def statements(tape: Tape, names: Mapping[int, str]) -> Iterator[str]:
    r"""Yield a line for each step; ``names`` are those of registers that need none.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> tape = lower([1 / x - 1 / x**2], [x])
    >>> print(*statements(tape, {0: "x", 1: "1.0"}), sep="\n")
    r2 = 1.0 / x
    r3 = r2 * r2
    r4 = r2 - r3
    """
    for i, (op, args, data) in enumerate(tape.steps):
        if i not in names:
            given = [names.get(a, f"r{a}") for a in args]
            text = f"f{i}({', '.join(given)})" if data is not None else TEXT[op].format(*given)
            yield f"r{i} = {text}"


def _names(tape: Tape, row: str = "") -> dict[int, str]:
    """Return what stands for constants and for inputs of a row."""
    names = {i: f"({step.data!r})" for i, step in enumerate(tape.steps) if step.op in _NUMBERS}
    inputs = {i: f"x{s.data}{row}" for i, s in enumerate(tape.steps) if s.op == "input"}
    return names | inputs


# -- single numbers --------------------------------------------------------------------------------


def function(tape: Tape) -> Callable[..., float]:
    """Return a tape of one formula as a function of floats, which takes a microsecond.

    Python raises at poles and beyond its range: there NumPy has the answer.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> function(lower([1 / x - 8 / x**3], [x]))(4.0)
    0.125
    """
    names, space = _names(tape), dict(WORDS)
    for i, (op, _, data) in enumerate(tape.steps):
        if op == "laguerre":
            space[f"f{i}"] = lambda t, series=data: clenshaw(series, t)
        elif op == "call":
            space[f"f{i}"] = lambda *args, function=data: value(function, *args)
    inputs = ", ".join(f"x{i}" for i in range(len(tape.inputs)))
    (output,) = tape.outputs
    result = names.get(output, f"r{output}")
    text = "\n    ".join([f"def f({inputs}):", *statements(tape, names), f"return {result}"])
    exec(text, space)  # noqa: S102  (our own words, registers and numbers: no text of a user's)
    return space["f"]  # type: ignore[no-any-return]


# -- one tape of several outputs -------------------------------------------------------------------


def fuse(grids: Sequence[Grid], outputs: Sequence[str]) -> Tape | None:
    """Return the tape of all outputs; None if it is too long, or holds what has no text.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.grid import Grid
    >>> x = sympy.Symbol("x", real=True)
    >>> grid = Grid((x,), [([], (0,), lambda region: 4 * x)], frozenset())
    >>> fuse([grid, grid], ["variance", "stderr"]).steps[-1]
    Step(op='sqrt', args=(11,), data=None)
    """
    new = Emitter(most=_MOST_STEPS)
    inputs = [new.emit("input", data=i) for i in range(len(grids[0].inputs))]
    columns = []
    try:
        for grid, name in zip(grids, outputs, strict=True):
            total = _finite(new, inputs, grid)
            columns.append(new.emit("sqrt", total) if name == "stderr" else total)
    except TrueupError:
        return None
    if not all(step.op in (*TEXT, *_NUMBERS, "input") for step in new.steps):
        return None
    return Tape(grids[0].inputs, tuple(new.steps), tuple(columns))


def _finite(new: Emitter, inputs: Sequence[int], grid: Grid) -> int:
    """Return the register of a grid, NaN where it is not finite or an input is NaN."""
    terms = [
        new.fold("mul", [_chosen(new, inputs, f, ()) for f in term])
        for part in grid.parts
        for term in part.factors
    ]
    total = new.fold("add", terms)
    total = new.within(new.emit("abs", total), _MOST, total)
    nan = new.emit("const", data=math.nan)
    for i in sorted(grid.unread):
        total = new.emit("where", new.emit("eq", inputs[i], inputs[i]), total, nan)
    return total


def _chosen(new: Emitter, inputs: Sequence[int], part: Part, begun: Region) -> int:
    """Return the register of a choice between the regions that begin with some branches."""
    if len(begun) == len(part.bounds):
        return new.splice(part.piece(begun).guarded, [inputs[i] for i in part.reads])[0]
    b = part.bounds[len(begun)]
    chosen = _chosen(new, inputs, part, (*begun, 0))
    for branch, op, bound in ((b.above, "ge", b.high), (b.below, "le", b.low)):
        if branch:
            other = _chosen(new, inputs, part, (*begun, branch))
            beyond = new.emit(op, inputs[b.input], new.emit("const", data=bound))
            chosen = new.emit("where", beyond, other, chosen)
    return chosen


# -- its loop --------------------------------------------------------------------------------------


def printed(tape: Tape) -> str:
    """Return a tape as a function of its inputs and outputs.

    Examples
    --------
    >>> from trueup.kernels.tape import Step
    >>> steps = Step("input", data=0), Step("const", data=2.0), Step("div", (1, 0))
    >>> print(printed(Tape((), steps, (2,))))
    def loop(x0, y0):
        for i in range(y0.size):
            r2 = (2.0) / x0[i]
            y0[i] = r2
    """
    names = _names(tape, "[i]")
    inputs = [f"x{step.data}" for step in tape.steps if step.op == "input"]
    outputs = [f"y{k}" for k in range(len(tape.outputs))]
    results = zip(outputs, tape.outputs, strict=True)
    lines = [
        f"def loop({', '.join([*inputs, *outputs])}):",
        "    for i in range(y0.size):",
        *(f"        {line}" for line in statements(tape, names)),
        *(f"        {y}[i] = {names.get(r, f'r{r}')}" for y, r in results),
    ]
    return "\n".join(lines)


@lru_cache(maxsize=256)
def _loop(text: str, given: int, made: int) -> Callable[..., None]:
    """Return the compiled loop of a text that was printed from a tape."""
    numba: Any = optional("numba", "fast", "a compiled loop")
    if numba.config.DISABLE_JIT:
        raise RuntimeError("numba's compiler is switched off")
    space = dict(WORDS)
    exec(text, space)  # noqa: S102  (our own words, registers and numbers: no text of a user's)
    read = numba.types.Array(numba.types.float64, 1, "C", readonly=True)
    kinds = [read] * given + [numba.types.float64[::1]] * made
    compiler = numba.njit(numba.types.void(*kinds), nogil=True, error_model="numpy")
    return compiler(space["loop"])  # type: ignore[no-any-return]


class Compilation:
    """The compiled form of some outputs of some grids: made when enough rows have been seen.

    TRUEUP_NUMBA=0 does without, TRUEUP_NUMBA=1 compiles at once and says what is in the way.
    """

    def __init__(self, grids: Sequence[Grid], outputs: Sequence[str]) -> None:
        self.grids, self.outputs = tuple(grids), tuple(outputs)
        self.rows = 0
        self.loop: Callable[..., None] | None = None
        self.is_possible = True

    def ready(self, rows: int) -> bool:
        """Whether to use the loop, for an array of so many rows; compiles it."""
        wanted = os.environ.get("TRUEUP_NUMBA")
        self.rows += rows
        if wanted == "0" or not self.is_possible:
            return False
        if self.loop is None and (self.rows >= NEW or wanted == "1"):
            try:
                self._make()
            except Exception:  # numba is missing or broken: NumPy does it
                if wanted == "1":
                    raise
            self.is_possible = self.loop is not None
        return self.loop is not None

    def _make(self) -> None:
        tape = fuse(self.grids, self.outputs)
        if tape is not None:
            self.loop = _loop(printed(tape), len(tape.inputs), len(self.outputs))

    def __call__(self, inputs: Sequence[Block], outs: Sequence[Block]) -> None:
        """Fill blocks of outputs."""
        assert self.loop is not None  # noqa: S101  (it is ready)
        self.loop(*inputs, *outs)
