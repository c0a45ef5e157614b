"""Inputs of ordinary size: within these limits no step of a program leaves the range of doubles.

Every register is bounded by powers of two, from the inputs on; one comparison of each input then
does what a comparison after every product would do. A register that is exactly zero harms nobody,
and a division by zero shows: in the result, or in a further division, which is watched.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from trueup.kernels.tape import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trueup.kernels.tape import Step

    Exponents = tuple[float, float]

_SIZES = (300, 200, 150, 100, 70, 50, 30)  # powers of two, the widest that fits is taken
_LEAST, _MOST = -960.0, 960.0  # of registers: between them nothing is subnormal or infinite
_DIGITS = 53  # a difference of doubles is 0, or at least the last digit of the smaller one
_LOGICAL = {*BOOLEAN, "truth"}
_KNOWN = {"input", "const", "bound", "add", "sub", "mul", "div", "sqrt", "abs", "floor", "sign"}
_KNOWN |= {"max", "min", "where", "table"} | _LOGICAL


def is_bounded(nodes: Sequence[Step], registers: Iterable[int]) -> bool:
    """Whether every step is one whose size follows from those of its arguments."""
    return all(nodes[r].op in _KNOWN for r in registers)


def limits(nodes: Sequence[Step], registers: Sequence[int]) -> tuple[float, float]:
    """Return (least, most): inputs that are 0 or between them in size are ordinary.

    Examples
    --------
    >>> from trueup.kernels.tape import Step
    >>> square = (Step("input", data=0), Step("mul", (0, 0)), Step("mul", (1, 1)))
    >>> least, most = limits(square, [0, 1, 2])
    >>> most == 2.0**200, least * most
    (True, 1.0)
    """
    for size in _SIZES:
        if _fits(nodes, registers, float(size)):
            return 2.0**-size, 2.0**size
    return 1.0, 0.0  # every input gets a second look


def _fits(nodes: Sequence[Step], registers: Sequence[int], size: float) -> bool:
    found: dict[int, Exponents] = {}
    for r in registers:
        node = nodes[r]
        if node.op in _LOGICAL:
            continue
        args = [found[a] for a in node.args if a in found]
        found[r] = _exponents(node, args, size)
        if not (found[r][0] > _LEAST and found[r][1] < _MOST):
            return False
    return True


def _exponents(node: Step, args: Sequence[Exponents], size: float) -> Exponents:
    """Return log₂ of the least and the greatest size that a register has unless it is 0."""
    if node.op == "input":
        return -size, size
    if node.op in ("const", "bound"):
        number = abs(float(node.data))
        exponent = math.log2(number) if number and math.isfinite(number) else 0.0
        return exponent, exponent
    if node.op == "table":
        sizes = np.abs(node.data.values)
        sizes = np.log2(sizes[np.isfinite(sizes) & (sizes > 0)])
        return (float(sizes.min()), float(sizes.max())) if len(sizes) else (0.0, 0.0)
    low, high = min(a for a, _ in args), max(b for _, b in args)
    if node.op in ("add", "sub"):
        return low - _DIGITS, high + 1
    if node.op == "mul":
        return args[0][0] + args[1][0], args[0][1] + args[1][1]
    if node.op == "div":
        return args[0][0] - args[1][1], args[0][1] - args[1][0]
    if node.op == "sqrt":
        return low / 2, high / 2
    return (0.0, max(high, 0.0)) if node.op in ("floor", "sign") else (low, high)
