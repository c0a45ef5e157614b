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
    >>> fuse([Grid.of(4 * x, (x,))] * 2, ["variance", "stderr"]).steps[-1].op
    'sqrt'
    """
    new = Emitter(most=_MOST_STEPS)
    inputs = new.inputs(len(grids[0].inputs))
    nan = new.const(math.nan)

    def region(part: Part, region: Region) -> int:
        (result,) = run(part.piece(region).guarded, [inputs[i] for i in part.reads], new.ops)
        return int(result)

    columns = []
    try:
        for grid, name in zip(grids, outputs, strict=True):
            total = grid.fused(new, region, inputs.__getitem__)
            total = new.within(new.emit("abs", total), _LARGEST, total)
            for i in sorted(grid.unread):
                total = new.emit("where", new.emit("eq", inputs[i], inputs[i]), total, nan)
            columns.append(new.emit("sqrt", total) if name == "stderr" else total)
    except TrueupError:
        return None
    if any(step.op in ("laguerre", "call") for step in new.steps):
        return None
    return Tape(grids[0].inputs, tuple(new.steps), tuple(columns))


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


@lru_cache(maxsize=256)
def _compiled(
    grids: tuple[Grid, ...], outputs: tuple[str, ...]
) -> Callable[..., None] | Exception | None:
    """Return the loop for some outputs, None if it has no text, or what is in the way."""
    try:
        tape = fuse(grids, outputs)
        return tape and _loop(source(tape)[0], len(tape.inputs), len(outputs))
    except Exception as error:  # numba is missing or broken
        return error


def loop_of(grids: tuple[Grid, ...], outputs: tuple[str, ...]) -> Callable[..., None] | None:
    """Return the compiled loop if enough rows have been seen by the first of the grids.

    TRUEUP_NUMBA=0 does without, TRUEUP_NUMBA=1 compiles at once and says what is in the way.
    """
    wanted = os.environ.get("TRUEUP_NUMBA")
    if wanted == "0" or (wanted != "1" and grids[0].rows < NEW):
        return None
    found = _compiled(grids, outputs)
    if isinstance(found, Exception):
        if wanted == "1":
            raise found
        return None
    return found
