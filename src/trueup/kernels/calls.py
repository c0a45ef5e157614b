"""Single numbers: a tape printed as a function of Python's floats, which takes a microsecond."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.formula.opaque import value
from trueup.formula.operations import FUNCTIONS, OPERATIONS
from trueup.kernels.blocks import clenshaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trueup.kernels.tape import Tape

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


def function(tape: Tape) -> Callable[..., float]:
    """Return a tape of one formula as a function of floats.

    Python raises at poles and beyond its range: there NumPy has the answer.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> function(lower([1 / x - 8 / x**3], [x]))(4.0)
    0.125
    """
    names, space = {}, dict(WORDS)
    for i, (op, _, data) in enumerate(tape.steps):
        if op in ("const", "truth"):
            names[i] = f"({data!r})"
        elif op == "input":
            names[i] = f"x{data}"
        elif op == "laguerre":
            space[f"f{i}"] = lambda t, series=data: clenshaw(series, t)
        elif op == "call":
            space[f"f{i}"] = lambda *args, function=data: value(function, *args)
    inputs = ", ".join(f"x{i}" for i in range(len(tape.inputs)))
    (output,) = tape.outputs
    result = names.get(output, f"r{output}")
    text = "\n    ".join([f"def f({inputs}):", *statements(tape, names), f"return {result}"])
    exec(text, space)  # noqa: S102  (our own words, registers and numbers: no text of a user's)
    return space["f"]  # type: ignore[no-any-return]
