"""Steps of a tape that are decided: comparisons that always hold, the larger of two that is known.

In the region n ≥ 1, where(n > 0, 1/n, 0) is 1/n and max(n + 1, 1) is n + 1.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

from trueup.kernels.tape import Emitter, Step, Tape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.sql.magnitudes import Span


_ORDERS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


def decided(tape: Tape, spans: Sequence[Span]) -> Tape:
    """Return the tape without the choices that are no choices, given what registers can be.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> from trueup.sql import magnitudes
    >>> n = sympy.Symbol("n", real=True)
    >>> tape = lower([sympy.Piecewise((1 / n, n > 0), (0, True))], [n])
    >>> short = decided(tape, magnitudes.spans(tape, [magnitudes.span(1.0, 1e100)]))
    >>> [node.op for node in short.steps]
    ['input', 'const', 'div']
    """
    return _Deciding(tape, spans).result()


class _Deciding(Emitter):
    def __init__(self, tape: Tape, spans: Sequence[Span]) -> None:
        super().__init__()
        self.tape, self.spans = tape, spans
        self.registers: dict[int, int] = {}

    def result(self) -> Tape:
        for i in range(len(self.tape.inputs)):
            self.emit("input", data=i)
        output = self.register(self.tape.outputs[0])
        return Tape(self.tape.inputs, tuple(self.steps), (output,))

    def register(self, i: int) -> int:
        """Return where an old register is on the new tape."""
        if i not in self.registers:
            same = self._same(self.tape.steps[i])
            self.registers[i] = self._copied(i) if same is None else self.register(same)
        return self.registers[i]

    def _same(self, node: Step) -> int | None:
        """Return the register that an operation always equals, if there is one."""
        if node.op == "where":
            held = self._truth(node.args[0])
            return None if held is None else node.args[1 if held else 2]
        if node.op in ("max", "min"):
            a, b = node.args
            first = self._holds("ge" if node.op == "max" else "le", a, b)
            return None if first is None else (a if first else b)
        return None

    def _copied(self, i: int) -> int:
        node, truth = self.tape.steps[i], self._truth(i)
        if truth is not None:
            return self.emit("truth", data=truth)
        moved = self._moved(node) if node.op in _ORDERS else None
        if moved is not None:
            return self.emit(node.op, self.register(moved[0]), self.emit("const", data=moved[1]))
        return self.emit(node.op, *map(self.register, node.args), data=node.data)

    def _moved(self, node: Step) -> tuple[int, float] | None:
        """Return (x, b) if x + a < b′ is the same comparison as x < b for all doubles x."""
        left, right = (self.tape.steps[i] for i in node.args)
        if left.op not in ("add", "sub") or right.op != "const":
            return None
        inputs = [i for i in left.args if self.tape.steps[i].op == "input"]
        numbers = [self.tape.steps[i].data for i in left.args if self.tape.steps[i].op == "const"]
        if (
            len(inputs) != 1
            or len(numbers) != 1
            or (left.op == "sub" and inputs[0] != left.args[0])
        ):
            return None
        a, compare = numbers[0] if left.op == "add" else -numbers[0], _ORDERS[node.op]
        b = right.data - a
        beside = (b, math.nextafter(b, math.inf), math.nextafter(b, -math.inf))
        same = all(compare(x + a, right.data) == compare(x, b) for x in beside)
        return (inputs[0], b) if same else None

    def _truth(self, i: int) -> bool | None:
        """Return whether a condition always or never holds; None if it depends."""
        node = self.tape.steps[i]
        if node.op == "truth":
            return bool(node.data)
        if node.op in ("and", "or"):
            found = {self._truth(a) for a in node.args}
            ends = node.op == "or"
            return ends if ends in found else (not ends if found == {not ends} else None)
        if node.op == "not":
            held = self._truth(node.args[0])
            return None if held is None else not held
        if node.op in _ORDERS:
            return self._holds(node.op, *node.args)
        return None

    def _holds(self, op: str, a: int, b: int) -> bool | None:
        left, right = self.spans[a], self.spans[b]
        if left.lost or right.lost:
            return None
        if op in ("gt", "ge"):
            held = self._holds("lt" if op == "ge" else "le", a, b)
            return None if held is None else not held
        if left.high < right.low or (op == "le" and left.high == right.low):
            return True
        return False if left.low > right.high or (op == "lt" and left.low == right.high) else None
