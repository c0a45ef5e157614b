"""Run a tape on Python floats: a call costs microseconds, no array is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.formula.opaque import value
from trueup.formula.operations import OPERATIONS
from trueup.kernels.laguerre import clenshaw

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.kernels.tape import Node, Tape


def _function(node: Node) -> Callable[..., Any]:
    if node.op == "laguerre":
        return lambda t: clenshaw(node.data, t)
    if node.op == "call":
        return lambda *args: value(node.data, *args)
    if node.op == "where":
        return lambda condition, a, b: a if condition else b
    return OPERATIONS[node.op].numeric


def scalar(tape: Tape) -> Callable[..., float]:
    """Return the tape as a function of Python floats.

    Where Python raises (a pole, an overflow), or a step leaves the range in which doubles have all
    their digits, the array program has the answer; the caller falls back on it.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> scalar(lower(1 / x - 8 / x**3, [x]))(4.0)
    0.125
    """
    start: list[Any] = [n.data if n.op in ("const", "truth") else None for n in tape.nodes]
    inputs = [i for i, n in enumerate(tape.nodes) if n.op == "input"]
    steps = [(i, _function(n), n.args) for i, n in enumerate(tape.nodes) if n.op not in _GIVEN]
    output = tape.output
    watched = [(i, n.args) for i, n in enumerate(tape.nodes) if n.op in _WATCHED]

    def run(*values: float) -> float:
        registers = start.copy()
        for i, x in zip(inputs, values, strict=True):
            registers[i] = x
        for i, function, args in steps:
            registers[i] = function(*[registers[a] for a in args])
        for i, args in watched:
            size = abs(registers[i])
            if not _LEAST < size < _MOST and (size or all(registers[a] for a in args)):
                raise FloatingPointError  # zero is zero only where an argument is
        result: float = registers[output]
        return result

    return run


_GIVEN = {"const", "truth", "input"}
_WATCHED = {"mul", "div", "exp", "pow", "sinh", "cosh"}  # what can leave the range of doubles
_LEAST, _MOST = 1e-305, 1e305  # a safe distance from where doubles lose digits, or end
