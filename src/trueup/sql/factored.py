"""A part whose statistics separate: T[s·h(n)] = T[s]·T[h], one CASE for each, multiplied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.sql import glot, magnitudes
from trueup.sql.magnitudes import HUGE, SMALL, Span
from trueup.sql.parts import PartWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.kernels.grid import Part
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.parts import Finish
    from trueup.sql.safe_inputs import Box, Input

Factor = tuple[PartWriter, int]
"""What is multiplied, and how often."""


def writer_of(part: Part, inputs: Sequence[Input], dialect: Dialect) -> PartWriter | SumOfProducts:
    """Return what writes a part."""
    writer = SumOfProducts if part.products else PartWriter
    return writer(part, inputs, dialect)


class SumOfProducts:
    """Write a part as the sum of products that it is; asked as a :class:`PartWriter` is."""

    def __init__(self, part: Part, inputs: Sequence[Input], dialect: Dialect) -> None:
        self.dialect = dialect
        self.terms = [
            [(PartWriter(factor, inputs, dialect), n) for factor, n in product]
            for product in part.products
        ]

    @property
    def size(self) -> int:
        """The number of formulas."""
        return sum(writer.size for term in self.terms for writer, _ in term)

    @property
    def steps(self) -> int:
        """How many operations the formulas have, about."""
        return sum(writer.steps for term in self.terms for writer, _ in term)

    def span(self, box: Box) -> Span | None:
        """Return where the values lie; None if they are not safe in the box."""
        total = magnitudes.constant(0.0)
        for term in self.terms:
            product = self._product(term, box)
            if product is None:
                return None
            total = magnitudes.add(total, product)
        return total

    def _product(self, term: Sequence[Factor], box: Box) -> Span | None:
        """Return where a product lies; None if a step on the way is not safe."""
        total = magnitudes.constant(1.0)
        for writer, n in term:
            s = writer.span(box)
            if s is None:
                return None
            power = magnitudes.power(s, n) if n > 1 else s
            total = magnitudes.mul(total, power)
            if self.dialect.overflow == "stops" and max(power.top, total.top) > HUGE:
                return None
            if self.dialect.underflow and min(power.least, total.least) <= SMALL:
                return None
        return total

    def cases(self, box: Box, finish: Finish) -> Sql:
        """Return the sum of products, with its last step."""
        first, *others = [self._written(term, box) for term in self.terms]
        for other in others:
            first = glot.add(first, other, self.dialect)
        return finish(first, self.span(box) or magnitudes.LINE)

    def _written(self, term: Sequence[Factor], box: Box) -> Sql:
        """Return a product, its steps in the order in which they were found to be safe."""
        trees = [tree for writer, n in term for tree in self._power(writer.plain(box), n)]
        total, *rest = [tree for tree in trees if glot.value_of(tree) != 1]
        for tree in rest:
            total = glot.mul(total, tree, self.dialect)
        return total

    def _power(self, tree: Sql, n: int) -> list[Sql]:
        """Return the factors of a power: a column as often as it is read, or one power."""
        if n == 1 or isinstance(tree, glot.exp.Column):
            return [tree.copy() for _ in range(n)]
        return [glot.power(tree, n, self.dialect)]
