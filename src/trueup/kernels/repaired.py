"""An expression on arrays: fast in doubles, and again with more digits where doubles run out."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.formula.opaque import Opaque
from trueup.kernels import exponents
from trueup.kernels.arrays import ArrayProgram
from trueup.kernels.digits import DigitsProgram
from trueup.kernels.range_errors import doubtful
from trueup.kernels.tape import Tape, lower

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sympy
    from numpy.typing import NDArray

    Block = NDArray[Any]


_FEW = 256
"""Nodes of an integral that are computed with more digits: some tenths of a second."""


class RepairedProgram:
    """An array program that looks again at rows that overflow or underflow on the way.

    Parameters
    ----------
    expr
        The expression.
    inputs
        Its variables.
    tape
        What it was lowered to.
    """

    def __init__(self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...], tape: Tape) -> None:
        self.expr, self.inputs, self.tape = expr, inputs, tape
        self.array = ArrayProgram(tape)

    @cached_property
    def digits(self) -> DigitsProgram | None:
        """The program with as many digits as it takes, None if a Python function is called."""
        if not self.inputs or self.expr.has(Opaque):
            return None
        return DigitsProgram(lower(self.expr, self.inputs, exact=True))

    def run(
        self,
        columns: Sequence[Block],
        out: Block,
        rows: Block | None = None,
        most: int | None = None,
    ) -> None:
        """Compute one block into ``out``; only some rows are looked at again.

        With ``most`` they are nodes of an integral: many of them are looked at in doubles that do
        not overflow, and at most so many with more digits.
        """
        raised: list[str] = []
        with np.errstate(all="call", call=lambda kind, flag: raised.append(kind)):
            self.array.run(columns, out)
        if raised or not np.isfinite(out).all():
            self._repair(columns, out, rows, most)

    def _repair(
        self, columns: Sequence[Block], out: Block, rows: Block | None, most: int | None
    ) -> None:
        known = [np.isfinite(c) for c in columns]
        if rows is not None:
            known.append(rows)
        some = np.flatnonzero(np.logical_and.reduce(known)) if known else np.empty(0, np.intp)
        if not len(some):
            return
        given = [c[some] for c in columns]
        at = np.flatnonzero(doubtful(self.tape, given))
        if most is not None and len(at) > _FEW:
            at = self._without_overflow(given, at, out, some)
        if not len(at) or (most is not None and len(at) > most) or self.digits is None:
            return
        points = np.stack([c[at] for c in given])
        unique, back = np.unique(points, axis=1, return_inverse=True)
        found = np.array([self.digits(point) for point in unique.T.tolist()])[back.ravel()]
        kept = ~np.isnan(found)
        out[some[at[kept]]] = found[kept]

    def _without_overflow(
        self, given: Sequence[Block], at: Block, out: Block, some: Block
    ) -> Block:
        """Compute rows in doubles that do not overflow; return those that are no numbers still."""
        if not exponents.possible(self.tape):
            return at
        found = exponents.run(self.tape, [c[at] for c in given])
        kept = np.isfinite(found)
        out[some[at[kept]]] = found[kept]
        return at[~kept]
