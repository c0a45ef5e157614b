"""A grid as one SQL expression: CASE WHEN the inputs are in a box THEN the plain formula END.

In the box no step overflows, underflows or is undefined, and every number is ordinary. Beyond it
the result is NULL. Where no box is sure, engines with infinities compute with them and drop what
is not finite; the others refuse.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.sql import glot, magnitudes
from trueup.sql.parts import Finish, PartWriter, SumOfProducts
from trueup.sql.safe_inputs import Range, ordinary
from trueup.sql.writer import too_long

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.kernels.grid import Grid
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.safe_inputs import Box, Input

MAX_REGIONS = 300
"""How many formulas an estimator may consist of."""

MAX_STEPS = 4_000
"""Formulas times their operations: each takes a millisecond or two to write."""


_MAX = sys.float_info.max


class Assembly:
    """One grid being written, or its root, NULL where that is none; ``inputs`` are its columns."""

    def __init__(
        self, grid: Grid, inputs: Sequence[Input], dialect: Dialect, *, root: bool = False
    ) -> None:
        self.dialect, self.inputs, self.root = dialect, inputs, root
        self.parts = [
            (SumOfProducts if part.products else PartWriter)(part, inputs, dialect)
            for part in grid.parts
        ]
        if sum(part.size for part in self.parts) > MAX_REGIONS:
            raise too_long()
        if sum(part.steps for part in self.parts) > MAX_STEPS:
            raise too_long()

    def expression(self) -> Sql:
        """Return the expression."""
        box = ordinary(self.inputs, self._safe)
        sure = box is not None
        if self.dialect.overflow == "infinite" and (box is None or self._is_narrow(box)):
            sure, box = False, (Range(-_MAX, _MAX),) * len(self.inputs)
        if box is None:
            raise TrueupError(
                f"{self.dialect.name} stops at overflow, and no range of inputs is sure to "
                "stay clear of it in this estimator",
                "compute it in another engine, or in Python",
            )
        finish = Finish(self.dialect, self.root, guard=not sure)
        return glot.case([(self._inside(box), self._formula(box, finish))], None, self.dialect)

    def _is_narrow(self, box: Box) -> bool:
        return any(x.is_narrow(given) for x, given in zip(self.inputs, box, strict=True))

    # -- which rows ----------------------------------------------------------------------------

    def _safe(self, box: Box) -> bool:
        total = magnitudes.constant(0.0)
        for part in self.parts:
            s = part.span(box)
            if s is None:
                return False
            total = magnitudes.add(total, s)
        return total.top <= magnitudes.HUGE and not total.nan

    def _inside(self, box: Box) -> Sql:
        """Return the condition that every input is in the box: neither NULL nor NaN is."""
        conditions = []
        for x, given in zip(self.inputs, box, strict=True):
            if self.dialect.finite:
                conditions.append(glot.function(self.dialect.finite, x.leaf.copy()))
            conditions.append(
                self._scale(x, given) if x.limit is not None else self._size(x, given)
            )
            if x.whole:
                conditions.append(self._whole(x))
        return glot.both(*conditions)

    def _whole(self, x: Input) -> Sql:
        rounded = glot.function(self.dialect.floor, x.leaf.copy())
        return self._compare("eq", rounded, x.leaf.copy())

    def _size(self, x: Input, given: Range) -> Sql:
        within = glot.between(x.leaf.copy(), given.low, given.high, self.dialect)
        symmetric = given.low == -given.high
        if not given.least:
            if symmetric and self.dialect.literal == "text":  # so long that it stands but once
                return self._compare(
                    "le", glot.function("ABS", x.leaf.copy()), glot.literal(given.high)
                )
            return within
        zero = self._at(x, "eq", 0.0)
        size = glot.of_double("ABS", x.leaf.copy(), self.dialect)
        if symmetric:
            return glot.either(zero, glot.between(size, given.least, given.high, self.dialect))
        least = glot.literal(given.least)
        return glot.both(within, glot.either(zero, self._compare("ge", size, least)))

    def _scale(self, x: Input, given: Range) -> Sql:
        limit = math.inf if x.limit is None else x.limit
        below, high = ("lt", limit) if limit <= given.high else ("le", given.high)
        above = "ge" if given.least else "gt"
        return glot.both(self._at(x, above, given.least), self._at(x, below, high))

    def _compare(self, op: str, a: Sql, b: Sql) -> Sql:
        return glot.compare(op, a, b, self.dialect)

    def _at(self, x: Input, op: str, end: float) -> Sql:
        return self._compare(op, x.leaf.copy(), glot.literal(end))

    # -- what they get -------------------------------------------------------------------------

    def _formula(self, box: Box, finish: Finish) -> Sql:
        if len(self.parts) == 1:
            return self.parts[0].cases(box, finish)
        first, *others = [part.cases(box, Finish(self.dialect)) for part in self.parts]
        for other in others:
            first = glot.add(first, other, self.dialect)
        return finish(first, magnitudes.LINE)
