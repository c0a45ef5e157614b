"""Run a tape: on Python floats, or on arrays in cache-sized blocks that are written into buffers.

A call with floats costs microseconds, no array is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.formula.opaque import value
from trueup.formula.operations import OPERATIONS
from trueup.kernels.laguerre import clenshaw
from trueup.kernels.tape import BOOLEAN, Step, Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Block = NDArray[Any]

BLOCK = 16_384
"""Rows per block: a handful of buffers of this size stay in the second-level cache."""

UFUNCS: dict[str, Callable[..., Any]] = {name: row.ufunc for name, row in OPERATIONS.items()}
"""The operations that NumPy has."""


_GIVEN = {"const", "truth", "input"}
_WATCHED = {"mul", "div", "exp", "pow", "sinh", "cosh"}  # what can leave the range of doubles
_LEAST, _MOST = 1e-305, 1e305  # a safe distance from where doubles lose digits, or end


def scalar(tape: Tape) -> Callable[..., float]:
    """Return the tape as a function of Python floats.

    Where Python raises (a pole, an overflow), or a step leaves the range in which doubles have all
    their digits, the array program has the answer; the caller falls back on it.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> scalar(lower([1 / x - 8 / x**3], [x]))(4.0)
    0.125
    """
    start: list[Any] = [n.data if n.op in ("const", "truth") else None for n in tape.steps]
    inputs = [i for i, n in enumerate(tape.steps) if n.op == "input"]
    steps = [(i, _function(n), n.args) for i, n in enumerate(tape.steps) if n.op not in _GIVEN]
    output = tape.outputs[0]
    watched = [(i, n.args) for i, n in enumerate(tape.steps) if n.op in _WATCHED]

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


def _function(node: Step) -> Callable[..., Any]:
    if node.op == "laguerre":
        return lambda t: clenshaw(node.data, t)
    if node.op == "call":
        return lambda *args: value(node.data, *args)
    if node.op == "where":
        return lambda condition, a, b: a if condition else b
    return OPERATIONS[node.op].numeric


def _where(condition: Any, a: Any, b: Any, out: Block) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def _laguerre(series: tuple[float, ...]) -> Callable[..., None]:
    return lambda t, out: np.copyto(out, clenshaw(series, t))


def _call(function: Callable[..., Any]) -> Callable[..., None]:
    def apply(*args: Any, out: Block) -> None:
        columns = [np.broadcast_to(a, out.shape) for a in args]
        known = ~np.logical_or.reduce([np.isnan(c) for c in columns])
        columns = [c[known] for c in columns]
        result = _vectorised(function, columns)
        if result is None:
            rows = zip(*(c.tolist() for c in columns), strict=True)
            result = np.array([value(function, *row) for row in rows])
        out[...] = np.nan
        out[known] = result

    return apply


def _vectorised(function: Callable[..., Any], columns: list[Block]) -> Block | None:
    """Return what a function makes of whole columns, None if that is not a column of numbers."""
    try:
        result = np.asarray(function(*columns))
    except Exception:  # whatever a function for single numbers does with columns
        return None
    numbers = result.dtype.kind in "biuf" and result.shape == columns[0].shape
    return result.astype(float) if numbers else None


class _Step(NamedTuple):
    register: int
    apply: Callable[..., Any]
    args: tuple[int, ...]
    slot: int


class ArrayProgram:
    """A tape with its buffers assigned: the buffer of a value no longer read is used again."""

    def __init__(self, tape: Tape) -> None:
        self.output = tape.outputs[0]
        self.given = [n.data if n.op in ("const", "truth") else None for n in tape.steps]
        self.inputs = [i for i, n in enumerate(tape.steps) if n.op == "input"]
        self.slots: list[type] = []
        self.steps = list(self._assign(tape.steps))

    def _assign(self, nodes: Sequence[Step]) -> Iterator[_Step]:
        last = {a: i for i, node in enumerate(nodes) for a in node.args}
        slot_of: dict[int, int] = {}
        free: dict[type, list[int]] = {float: [], bool: []}
        for i, node in enumerate(nodes):
            if node.op in _GIVEN:
                continue
            dying = [slot_of[a] for a in {*node.args} if last[a] == i and a in slot_of]
            in_place = node.op in UFUNCS  # elementwise: may write over what it reads
            if in_place:
                self._release(dying, free)
            slot_of[i] = self._take(bool if node.op in BOOLEAN else float, free)
            if not in_place:
                self._release(dying, free)
            yield _Step(i, implementation(node), node.args, slot_of[i])

    def _release(self, slots: Sequence[int], free: dict[type, list[int]]) -> None:
        for slot in slots:
            free[self.slots[slot]].append(slot)

    def _take(self, kind: type, free: dict[type, list[int]]) -> int:
        if free[kind]:
            return free[kind].pop()
        self.slots.append(kind)
        return len(self.slots) - 1

    def run(self, inputs: Sequence[Block], out: Block) -> None:
        """Compute one block into ``out``."""
        buffers: list[Block] = [np.empty(len(out), kind) for kind in self.slots]
        values: list[Any] = self.given.copy()
        for register, block in zip(self.inputs, inputs, strict=True):
            values[register] = block
        for register, apply, args, slot in self.steps:
            target = out if register == self.output else buffers[slot]
            apply(*[values[a] for a in args], out=target)
            values[register] = target
        if values[self.output] is not out:
            out[...] = values[self.output]


def implementation(node: Step) -> Callable[..., Any]:
    """Return what computes a node into ``out``."""
    if node.op == "where":
        return _where
    if node.op == "laguerre":
        return _laguerre(node.data)
    if node.op == "call":
        return _call(node.data)
    return UFUNCS[node.op]
