"""A tape as text of Python: a function of single numbers, and a loop that numba compiles.

The loop computes value and standard error at once: the regions of all parts become choices, what
outputs have in common is computed once. It lets go of the interpreter's lock and is run by the
threads of :mod:`trueup.kernels.blocks`.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.formula.opaque import value
from trueup.formula.operations import FUNCTIONS, OPERATIONS
from trueup.kernels.blocks import clenshaw
from trueup.kernels.tape import Emitter, Tape, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
_LARGEST = 1.7976931348623157e308
_FUNCTIONS = ("laguerre", "call")


def source(tape: Tape) -> tuple[str, dict[str, Any]]:
    r"""Return a tape as the text of a function of its inputs, and what the names in it mean.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> print(source(lower([2 / x - 1 / x**2, x], [x]))[0])
    def f(x0):
        r0 = (2.0) / x0
        r1 = (1.0) / x0
        r2 = r1 * r1
        r3 = r0 - r2
        return r3, x0
    """
    lines, words = list[str](), dict(WORDS)

    def line(text: str, *args: str) -> str:
        lines.append(f"r{len(lines)} = {text.format(*args)}")
        return f"r{len(lines) - 1}"

    def applied(function: Callable[..., Any], *args: str) -> str:
        name = f"f{len(words)}"
        words[name] = function
        return line(f"{name}({', '.join(args)})")

    ops: dict[str, Callable[..., str]] = {op: partial(line, text) for op, text in TEXT.items()}
    ops |= dict.fromkeys(["const", "truth"], "({!r})".format)
    ops["laguerre"] = lambda series, t: applied(partial(clenshaw, series), t)
    ops["call"] = lambda function, *args: applied(partial(value, function), *args)
    inputs = [f"x{i}" for i in range(len(tape.inputs))]
    results = run(tape, inputs, ops)
    text = [f"def f({', '.join(inputs)}):", *lines, f"return {', '.join(results)}"]
    return "\n    ".join(text), words


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
    return _defined("f", *source(tape))


def _defined(name: str, text: str, words: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of a text, beside others that it may call."""
    exec(text, words)  # noqa: S102  (our own words, registers and numbers: no text of a user's)
    return words[name]  # type: ignore[no-any-return]


# -- one tape of several outputs -------------------------------------------------------------------


def fuse(grids: Sequence[Grid], outputs: Sequence[str]) -> Tape | None:
    """Return the tape of all outputs; None if it is too long, or holds what has no text.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.grid import Grid
    >>> x = sympy.Symbol("x", real=True)
    >>> grid = Grid((x,), [([], (0,), lambda region: 4 * x)], frozenset())
    >>> fuse([grid, grid], ["variance", "stderr"]).steps[-1].op
    'sqrt'
    """
    new = Emitter(most=_MOST_STEPS)
    inputs = new.inputs(len(grids[0].inputs))
    columns = []
    try:
        for grid, name in zip(grids, outputs, strict=True):
            total = _finite(new, inputs, grid)
            columns.append(new.emit("sqrt", total) if name == "stderr" else total)
    except TrueupError:
        return None
    if any(step.op in _FUNCTIONS for step in new.steps):
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
    total = new.within(new.emit("abs", total), _LARGEST, total)
    nan = new.const(math.nan)
    for i in sorted(grid.unread):
        total = new.emit("where", new.emit("eq", inputs[i], inputs[i]), total, nan)
    return total


def _chosen(new: Emitter, inputs: Sequence[int], part: Part, begun: Region) -> int:
    """Return the register of a choice between the regions that begin with some branches."""
    if len(begun) == len(part.bounds):
        (result,) = run(part.piece(begun).guarded, [inputs[i] for i in part.reads], new.ops)
        return int(result)
    b = part.bounds[len(begun)]
    chosen = _chosen(new, inputs, part, (*begun, 0))
    for branch, op, bound in ((b.above, "ge", b.high), (b.below, "le", b.low)):
        if branch:
            other = _chosen(new, inputs, part, (*begun, branch))
            beyond = new.emit(op, inputs[b.input], new.const(bound))
            chosen = new.emit("where", beyond, other, chosen)
    return chosen


# -- its loop --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _loop(text: str, inputs: int, outputs: int) -> Callable[..., None]:
    """Return the compiled loop over rows of a function of so many inputs and outputs."""
    numba: Any = optional("numba", "fast", "a compiled loop")
    if numba.config.DISABLE_JIT:
        raise RuntimeError("numba's compiler is switched off")
    x, y = ([f"{name}{i}" for i in range(n)] for name, n in (("x", inputs), ("y", outputs)))
    rows, results = (", ".join(f"{name}[i]" for name in names) for names in (x, y))
    loop = [
        f"def loop({', '.join(x + y)}):",
        "for i in range(y0.size):",
        f"    {results} = f({rows})",
    ]
    row = numba.njit(_defined("f", text, dict(WORDS)), error_model="numpy")
    read = numba.types.Array(numba.types.float64, 1, "C", readonly=True)
    kinds = [read] * inputs + [numba.types.float64[::1]] * outputs
    compiler = numba.njit(numba.types.void(*kinds), nogil=True, error_model="numpy")
    return compiler(_defined("loop", "\n    ".join(loop), {"f": row}))  # type: ignore[no-any-return]


class Compilation:
    """The compiled form of some outputs of some grids: made when enough rows have been seen.

    TRUEUP_NUMBA=0 does without, TRUEUP_NUMBA=1 compiles at once and says what is in the way.
    """

    def __init__(self, grids: Sequence[Grid], outputs: Sequence[str]) -> None:
        self.grids, self.outputs = tuple(grids), tuple(outputs)
        self.rows = 0.0
        self.loop: Callable[..., None] | None = None

    def ready(self, rows: int) -> Callable[..., None] | None:
        """Return the loop if it is to be used, for an array of so many rows; compile it."""
        wanted = os.environ.get("TRUEUP_NUMBA")
        if wanted == "0":
            return None
        self.rows += rows
        if self.loop is None and (self.rows >= NEW or wanted == "1"):
            self.rows = -math.inf  # one attempt is enough
            try:
                tape = fuse(self.grids, self.outputs)
                if tape is not None:
                    self.loop = _loop(source(tape)[0], len(tape.inputs), len(self.outputs))
            except Exception:  # numba is missing or broken: NumPy does it
                if wanted == "1":
                    raise
        return self.loop
