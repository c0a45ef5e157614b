"""A grid as one SQL expression, with three degrees of caution.

Where every input has an ordinary size no step can go wrong, and the plain formula is written: this
is what nearly every row takes. Beyond that, engines with infinities compute the same formula and
drop what is not finite; PostgreSQL, which stops at overflow and underflow, takes guarded steps; and
engines without infinities give NULL.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.kernels.tape import Node, Tape
from trueup.sql import glot, magnitudes
from trueup.sql.checked import Checked
from trueup.sql.limits import Range, ordinary
from trueup.sql.parts import Finish, PartWriter
from trueup.sql.writer import too_long

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.kernels.grid import Grid
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.limits import Box, Input

MAX_REGIONS = 300
"""How many formulas an estimator may consist of."""

MAX_STEPS = 4_000
"""Formulas times their operations: each takes a millisecond or two to write."""


class Assembly:
    """One grid being written.

    Parameters
    ----------
    grid
        The function.
    inputs
        The columns, in the order of the grid's inputs.
    root
        Whether to write the square root of the function, NULL where it is negative.
    """

    def __init__(
        self, grid: Grid, inputs: Sequence[Input], dialect: Dialect, *, root: bool = False
    ) -> None:
        self.dialect, self.inputs, self.root = dialect, inputs, root
        self.parts = [PartWriter(part, inputs, dialect) for part in grid.parts]
        self.everywhere: Box = (Range(),) * len(inputs)
        if sum(len(part.regions) for part in self.parts) > MAX_REGIONS:
            raise too_long()
        if sum(len(part.regions) * part.steps for part in self.parts) > MAX_STEPS:
            raise too_long()

    def expression(self) -> Sql:
        """Return the expression."""
        if self.dialect.overflow == "forbidden":
            box = ordinary(self.inputs, self._safe)
            if box is None:
                raise TrueupError(
                    f"{self.dialect.name} stops at overflow, and no range of inputs is sure to "
                    "stay clear of it in this estimator",
                    "compute it in another engine, or in Python",
                )
            return glot.case([(self._inside(box), self._plain(box))])
        if self._safe(self.everywhere):
            return glot.case([(self._known(), self._plain(self.everywhere))])
        box = ordinary(self.inputs, self._safe)
        beyond = glot.case([(self._known(), self._beyond())])
        if box is None:
            return beyond
        return glot.case([(self._inside(box), self._plain(box))], beyond)

    # -- which rows ----------------------------------------------------------------------------

    def _safe(self, box: Box) -> bool:
        total = magnitudes.constant(0.0)
        for part in self.parts:
            s = part.span(box)
            if s is None:
                return False
            total = magnitudes.add(total, s)
        return total.top <= magnitudes.HUGE and not total.nan

    def _known(self) -> Sql:
        """Return the condition that no input is NULL, NaN or not what can be published."""
        conditions = []
        for x in self.inputs:
            if x.limit is not None:
                conditions += self._scale(x, 0.0, sys.float_info.max)
            else:
                conditions += [self._at_most(x, glot.infinity(self.dialect)), *self._whole(x)]
        return glot.both(*conditions)

    def _inside(self, box: Box) -> Sql:
        """Return the condition that every input is in the box."""
        conditions = []
        for x, (least, most) in zip(self.inputs, box, strict=True):
            if x.limit is not None:
                conditions += self._scale(x, least, most)
                continue
            conditions += [self._at_most(x, self._number(most)), *self._whole(x)]
            if least:
                size = glot.function("ABS", x.leaf.copy())
                large = glot.compare("ge", size, self._number(least))
                zero = glot.compare("eq", x.leaf.copy(), self._number(0.0))
                conditions.append(glot.either(large, zero))
        return glot.both(*conditions)

    def _number(self, x: float) -> Sql:
        return glot.number(x, self.dialect)

    def _at_most(self, x: Input, most: Sql) -> Sql:
        return glot.compare("le", glot.function("ABS", x.leaf.copy()), most)

    def _whole(self, x: Input) -> list[Sql]:
        if not x.whole:
            return []
        rounded = glot.function(self.dialect.floor, x.leaf.copy())
        return [glot.compare("eq", rounded, x.leaf.copy())]

    def _scale(self, x: Input, least: float, most: float) -> list[Sql]:
        limit = math.inf if x.limit is None else x.limit
        below, high = ("lt", limit) if limit <= most else ("le", most)
        return [
            glot.compare("ge" if least else "gt", x.leaf.copy(), self._number(least)),
            glot.compare(below, x.leaf.copy(), self._number(high)),
        ]

    # -- what they get -------------------------------------------------------------------------

    def _plain(self, box: Box) -> Sql:
        finish = Finish(self.dialect, self.root)
        if len(self.parts) == 1:
            return self.parts[0].cases(box, finish)
        value = _added([part.cases(box, Finish(self.dialect)) for part in self.parts])
        return finish(value.copy, magnitudes.LINE)

    def _beyond(self) -> Sql:
        finish = Finish(self.dialect, self.root, guard=True)
        if len(self.parts) == 1:
            return self.parts[0].cases(self.everywhere, finish, beyond=True)
        plain = Finish(self.dialect)
        parts = [part.cases(self.everywhere, plain, beyond=True) for part in self.parts]
        if self.dialect.overflow != "raises":
            return finish(_added(parts).copy, magnitudes.LINE)
        tape = _sum(len(parts))
        unsure = [magnitudes.LINE._replace(null=True, nan=True)] * len(parts)
        code = Checked(tape, magnitudes.spans(tape, unsure), parts, self.dialect)
        return code.subquery(lambda make: finish(make, magnitudes.LINE))


def _added(parts: Sequence[Sql]) -> Sql:
    total = parts[0]
    for part in parts[1:]:
        total = glot.add(total, part)
    return total


def _sum(n: int) -> Tape:
    """Return the tape of x₁ + … + xₙ."""
    nodes = [Node("input", (), i) for i in range(n)]
    for i in range(1, n):
        nodes.append(Node("add", (len(nodes) - 1 if i > 1 else 0, i)))
    return Tape(tuple(sympy.symbols(f"p:{n}", real=True)), tuple(nodes), len(nodes) - 1)
