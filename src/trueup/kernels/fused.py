"""Fuse the regions of several grids into one straight-line program, for targets that compile.

Bounds become comparisons, regions become choices, summands are added, and what value and variance
have in common is computed once. A region that is costly and rarely entered is left out: it yields
NaN, and rows that are NaN although their inputs are not get a second look with NumPy.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from trueup.formula.opaque import Table
from trueup.kernels.tape import BOOLEAN, Emitter, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.kernels.grid import Grid, Part, Region
    from trueup.kernels.tape import Tape

_COSTS = {"input": 0, "const": 0, "bound": 0, "truth": 0, "div": 4, "sqrt": 4, "table": 4}
_COSTS |= dict.fromkeys(("add", "sub", "mul", "abs", "floor", "sign", "max", "min", "where"), 1)
_COSTS |= dict.fromkeys(BOOLEAN, 1)
_FUNCTION = 10
_TERM = 9  # of a Laguerre series
_OUTSIDE = 60
"""What the regions outside of the bounds may cost on every row, or as much as the inside."""
_CORNERS = 9
"""Regions up to which the corners (outside of two bounds and more) are looked at."""
_MOST_NODES = 1200
"""The size of a program that is compiled in a few seconds."""


class Program(NamedTuple):
    """Straight-line code for several outputs; register i holds the result of node i.

    ``results`` are the values and variances before roots are taken; ``whole`` are the inputs that
    must be whole numbers.
    """

    steps: tuple[Step, ...]
    inputs: int
    results: tuple[int, ...]
    outputs: tuple[int, ...]
    whole: tuple[int, ...]


def fuse(grids: Sequence[Grid], outputs: Sequence[str], shortened: bool = True) -> Program | None:
    """Return the program for one grid per output, None if it cannot be compiled.

    ``shortened`` takes the quick forms of parts, which leave rows out.
    """
    fusion = _Fusion(len(grids[0].inputs), shortened)
    results: dict[int, int] = {}
    for grid in grids:
        if id(grid) not in results:
            total = fusion.grid(grid)
            if total is None:
                return None
            results[id(grid)] = total
    columns = [
        fusion.emit("sqrt", results[id(grid)]) if name == "stderr" else results[id(grid)]
        for grid, name in zip(grids, outputs, strict=True)
    ]
    if len(fusion.steps) > _MOST_NODES:
        return None
    return Program(
        tuple(fusion.steps),
        fusion.inputs,
        tuple(results.values()),
        tuple(columns),
        tuple(sorted(grids[0].whole)),
    )


def cost(tape: Tape) -> float:
    """Return what a tape costs per row, infinite if it cannot be compiled.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> cost(lower([1 / x - 8 / x**3], [x]))
    8
    """
    return sum(_cost(node) for node in tape.steps)


def _cost(node: Step) -> float:
    if node.op == "laguerre":
        return _TERM * len(node.data)
    if node.op == "call":
        return _COSTS["table"] if isinstance(node.data, Table) else math.inf
    return _COSTS.get(node.op, _FUNCTION)


class _Fusion(Emitter):
    """The state of one fusion: nodes so far, each made once."""

    def __init__(self, inputs: int, shortened: bool) -> None:
        super().__init__()
        self.inputs, self.shortened = inputs, shortened
        self.registers = [self.emit("input", data=i) for i in range(inputs)]

    def grid(self, grid: Grid) -> int | None:
        total: int | None = None
        for part in grid.parts:
            if cost(part.quick(part.inside, self.shortened)) == math.inf:
                return None
            value = self.part(part)
            total = value if total is None else self.emit("add", total, value)
        return total

    def part(self, part: Part) -> int:
        """Return the register that chooses between a part's regions."""
        kept = _kept(part, self.shortened)
        leaves = {region: self.splice(tape, part.reads) for region, tape in kept.items()}
        return self.choose(part, leaves, ())

    def choose(self, part: Part, leaves: dict[Region, int], begun: Region) -> int:
        if len(begun) == len(part.bounds):
            return leaves.get(begun, self.emit("const", data=math.nan))
        b = part.bounds[len(begun)]
        chosen = self.choose(part, leaves, (*begun, 0))
        for branch, op, bound in ((b.above, "ge", b.high), (b.below, "le", b.low)):
            if branch:
                other = self.choose(part, leaves, (*begun, branch))
                beyond = self.emit(op, self.registers[b.input], self.emit("bound", data=bound))
                chosen = self.emit("where", beyond, other, chosen) if other != chosen else chosen
        return chosen

    def splice(self, tape: Tape, reads: Sequence[int]) -> int:
        """Return the register of a tape's output, its nodes copied here."""
        here: list[int] = []
        for op, args, data in tape.steps:
            if op == "input":
                here.append(self.registers[reads[data]])
            else:
                name = "table" if op == "call" else op
                here.append(self.emit(name, *(here[a] for a in args), data=data))
        return here[tape.outputs[0]]


def _kept(part: Part, shortened: bool) -> dict[Region, Tape]:
    """Return the tapes to compute on every row: the inside, and others while they are cheap."""
    inside = part.quick(part.inside, shortened)
    allowance = max(_OUTSIDE, cost(inside))
    kept = {part.inside: inside}
    sides = [sorted({0, b.below, b.above}) for b in part.bounds]
    few = math.prod(map(len, sides)) <= _CORNERS
    for region in sorted(product(*sides), key=lambda r: sum(map(bool, r))):
        if region != part.inside and (few or sum(map(bool, region)) == 1):
            tape = part.quick(region, shortened)
            if cost(tape) <= allowance:
                allowance -= cost(tape)
                kept[region] = tape
    return kept
