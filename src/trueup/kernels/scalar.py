"""Run a tape on Python floats: a call costs microseconds, no array is made."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from trueup.formula.opaque import value
from trueup.kernels.laguerre import clenshaw

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.kernels.tape import Node, Tape


def _maximum(a: float, b: float) -> float:
    return a if a > b or a != a else b


def _minimum(a: float, b: float) -> float:
    return a if a < b or a != a else b


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": math.pow,
    "max": _maximum,
    "min": _minimum,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
    "abs": abs,
    "floor": lambda a: float(math.floor(a)),
    "sign": lambda a: math.copysign(1.0, a) if a else a,
    "where": lambda condition, a, b: a if condition else b,
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    **{
        name: getattr(math, name)
        for name in (
            [
                "sqrt",
                "exp",
                "log",
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
                "sinh",
                "cosh",
                "tanh",
                "asinh",
                "acosh",
                "atanh",
            ]
        )
    },
}


def _function(node: Node) -> Callable[..., Any]:
    if node.op == "laguerre":
        return lambda t: clenshaw(node.data, t)
    if node.op == "call":
        return lambda *args: value(node.data, *args)
    return _FUNCTIONS[node.op]


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
