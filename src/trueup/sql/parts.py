"""One summand of an estimator as SQL: CASE over the bounds, a formula or a table in each region."""

from __future__ import annotations

import dataclasses
import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.formula.opaque import Table
from trueup.kernels.grid import nearest
from trueup.kernels.tape import BOOLEAN
from trueup.sql import glot, magnitudes
from trueup.sql.decided import decided
from trueup.sql.glot import exp
from trueup.sql.rewriting import rewrite
from trueup.sql.safe_inputs import Range, is_safe, within
from trueup.sql.writer import MAX, Writer, lookup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.kernels.grid import Part, Region
    from trueup.kernels.tape import Tape
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.magnitudes import Span
    from trueup.sql.safe_inputs import Box, Input


@dataclasses.dataclass(frozen=True)
class Finish:
    """The last step: nothing, or the square root; with ``guard`` NULL for what is not finite."""

    dialect: Dialect
    root: bool = False
    guard: bool = False

    def number(self, x: float) -> float:
        """Return the last step of a constant."""
        if not self.root:
            return x
        return math.sqrt(x) if x >= 0 else math.nan

    def __call__(self, value: Sql, s: Span) -> Sql:
        """Return the last step of an expression with its span."""
        unsure = self.guard and (s.nan or s.top > magnitudes.HUGE)
        if not self.root:
            return self._finite(value) if unsure else glot.as_double(value, self.dialect)
        root = glot.of_double("SQRT", value.copy(), self.dialect)
        if unsure:
            return self._only(glot.between(value, 0.0, MAX, self.dialect), root)
        if s.low >= 0:
            return root
        zero = glot.literal(0.0)
        plain = self._only(glot.compare("ge", value.copy(), zero, self.dialect), root)
        return min((plain, self._clamped(value)), key=lambda tree: len(tree.sql(self.dialect.name)))

    def _finite(self, value: Sql) -> Sql:
        size = glot.of_double("ABS", value.copy(), self.dialect)
        most = glot.literal(MAX)
        return self._only(glot.compare("le", size, most, self.dialect), value)

    def _clamped(self, value: Sql) -> Sql:
        """Return the root of a value written once: what is negative is clamped, then NULL."""
        mark = glot.number(_NEGATIVE, self.dialect)
        value = glot.extreme(self.dialect.greatest, value, mark.copy(), self.dialect)
        value = exp.Nullif(this=value, expression=mark)
        return glot.function("SQRT", glot.function("ABS", value))

    def _only(self, condition: Sql, value: Sql) -> Sql:
        return glot.case([(condition, value)], None, self.dialect)


_CHOICES = {*BOOLEAN, "where", "max", "min"}
_NEGATIVE = -1e-300  # for all negative numbers; one above it has the root of its size, 1e-150


class PartWriter:
    """Write one part of a grid; ``inputs`` are the columns of the whole grid."""

    def __init__(self, part: Part, inputs: Sequence[Input], dialect: Dialect) -> None:
        self.part, self.dialect, self.inputs = part, dialect, inputs
        branches = ([0, *sorted({b.below, b.above} - {0})] for b in part.bounds)
        self.regions: list[Region] = list(product(*branches))
        self.size = len(self.regions)
        self.tapes: dict[Region, Tape] = {}
        self.known: dict[Region, Values] = {}

    @property
    def steps(self) -> int:
        """How many operations its formulas have, about."""
        return self.size * len(self.part.piece(self.part.inside).tape.steps)

    def tape(self, region: Region) -> Tape:
        """Return the rewritten tape of a region."""
        if region not in self.tapes:
            everywhere = (Range(-MAX, MAX),) * len(self.inputs)
            tape, given = self.part.piece(region).tape, self.given(region, everywhere)
            if given is not None and any(node.op in _CHOICES for node in tape.steps):
                tape = decided(tape, magnitudes.spans(tape, given))
            self.tapes[region] = rewrite(tape, self.dialect)
        return self.tapes[region]

    def given(self, region: Region, box: Box) -> list[Span] | None:
        """Return where the inputs lie in a region; None if it has no points in the box."""
        spans = [x.span(given) for x, given in zip(self.inputs, box, strict=True)]
        for bounds, branch in zip(self.part.bounds, region, strict=True):
            whole = self.inputs[bounds.input].whole
            inside = within(spans[bounds.input], bounds, branch, whole=whole)
            if inside is None:
                return None
            spans[bounds.input] = inside
        return [spans[i] for i in self.part.reads]

    def span(self, box: Box) -> Span | None:
        """Return where the values lie; None if they are not safe in the box."""
        found = magnitudes.NOTHING
        for region in self.regions:
            given = self.given(region, box)
            if given is None:
                continue
            if self._is_table(region):
                found = magnitudes.union(found, magnitudes.hull(self._values(region).values))
                continue
            tape = self.tape(region)
            spans = magnitudes.spans(tape, given, cut=self.dialect.underflow)
            if not is_safe(tape, spans, self.dialect):
                return None
            found = magnitudes.union(found, spans[tape.outputs[0]])
        return found

    def cases(self, box: Box, finish: Finish | None) -> Sql:
        """Return CASE over the bounds of the cells, one after the other, with the last step.

        Without a last step it is an operand: CASE, a column or a number.
        """

        def choose(region: Region) -> Sql:
            if len(region) == len(self.part.bounds):
                return self._write(region, box, finish)
            b = self.part.bounds[len(region)]
            branches = [
                (self._beyond(op, b.input, at), choose((*region, i)))
                for op, at, i in (("le", b.low, b.below), ("ge", b.high, b.above))
                if i
            ]
            inside = choose((*region, 0))
            if all(value == inside for _, value in branches):
                return inside
            return glot.case(branches, inside, self.dialect)

        return choose(())

    def _beyond(self, op: str, i: int, at: float) -> Sql:
        """Return whether an input is at or beyond a bound, or what singles hold for the bound."""
        leaf, near = self.inputs[i].leaf, nearest(at)
        beyond = glot.compare(op, leaf.copy(), glot.literal(at), self.dialect)
        if near is None or self.inputs[i].whole or (near < at) == (op == "le"):
            return beyond
        single = glot.literal(near)
        return glot.either(beyond, glot.compare("eq", leaf.copy(), single, self.dialect))

    def _write(self, region: Region, box: Box, finish: Finish | None) -> Sql:
        given = self.given(region, box)
        if given is None:
            return glot.typed(math.nan, self.dialect)
        if self._is_table(region):
            known = self._values(region)
            k = self.inputs[self.part.reads[0]].leaf
            values = [finish.number(v) if finish else v for v in known.values]
            return lookup(k.copy, known.low, values, self.dialect, known.beyond)
        tape = self.tape(region)
        if tape.constant is not None:
            return self._constant(finish.number(tape.constant) if finish else tape.constant)
        spans = magnitudes.spans(tape, given, cut=self.dialect.underflow)
        leaves = [self.inputs[i].leaf for i in self.part.reads]
        value = Writer(tape, spans, leaves, self.dialect).write()
        return finish(value, spans[tape.outputs[0]]) if finish else value

    def _constant(self, x: float) -> Sql:
        """Return a number, as an operand or a branch of a CASE."""
        if not math.isfinite(x):
            return glot.typed(x, self.dialect)
        return glot.literal(x)

    # -- tables --------------------------------------------------------------------------------

    def _tables(self, region: Region) -> list[Any]:
        return [node.data for node in self.part.piece(region).tape.steps if node.op == "call"]

    def _is_table(self, region: Region) -> bool:
        """Whether the values at the whole numbers of a table say everything."""
        tables = self._tables(region)
        alone = len(self.part.reads) == 1 and self.inputs[self.part.reads[0]].whole
        read = alone and bool(tables) and all(isinstance(t, Table) for t in tables)
        return read and self._values(region).settled

    def _values(self, region: Region) -> Values:
        """Return the values of the part at and around its tables."""
        if region not in self.known:
            tables = self._tables(region)
            first = min(t.low for t in tables) - 1
            last = max(t.low + len(t.values) for t in tables)
            self.known[region] = _read(self.part.piece(region).block, first, last)
        return self.known[region]


class SumOfProducts:
    """Write a part whose statistics separate: T[s·h(n)] = T[s]·T[h], one CASE for each, multiplied.

    It is asked as a :class:`PartWriter` is.
    """

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

    def _product(self, term: Sequence[tuple[PartWriter, int]], box: Box) -> Span | None:
        """Return where a product lies; None if a step on the way is not safe."""
        total = magnitudes.constant(1.0)
        for writer, n in term:
            s = writer.span(box)
            if s is None:
                return None
            power = magnitudes.power(s, n) if n > 1 else s
            total = magnitudes.mul(total, power)
            if self.dialect.overflow == "stops" and max(power.top, total.top) > magnitudes.HUGE:
                return None
            if self.dialect.underflow and min(power.least, total.least) <= magnitudes.SMALL:
                return None
        return total

    def cases(self, box: Box, finish: Finish) -> Sql:
        """Return the sum of products, with its last step."""
        first, *others = [self._written(term, box) for term in self.terms]
        for other in others:
            first = glot.add(first, other, self.dialect)
        return finish(first, self.span(box) or magnitudes.LINE)

    def _written(self, term: Sequence[tuple[PartWriter, int]], box: Box) -> Sql:
        """Return a product, its steps in the order in which they were found to be safe."""
        trees = [tree for writer, n in term for tree in self._power(writer.cases(box, None), n)]
        total, *rest = [tree for tree in trees if glot.value_of(tree) != 1]
        for tree in rest:
            total = glot.mul(total, tree, self.dialect)
        return total

    def _power(self, tree: Sql, n: int) -> list[Sql]:
        """Return the factors of a power: a column as often as it is read, or one power."""
        if n == 1 or isinstance(tree, exp.Column):
            return [tree.copy() for _ in range(n)]
        return [glot.power(tree, n, self.dialect)]


class Values(NamedTuple):
    """A part at the whole numbers from ``low`` on.

    ``beyond`` says on which side the last value goes on for ever, ``settled`` that it does so, or
    is undefined, on both sides.
    """

    low: int
    values: NDArray[np.float64]
    beyond: tuple[bool, bool]
    settled: bool


_FAR = np.array([0.0, 1.0, 2.0, 13.0, 1e6])


def _read(program: Any, first: int, last: int) -> Values:
    """Return the values between two numbers, and what happens beyond them."""

    def at(k: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            values = np.empty(len(k))
            program([k], values)
            return values

    sides = [at(first - _FAR), at(last + _FAR)]
    beyond = [bool(np.isfinite(side).all() and (side == side[0]).all()) for side in sides]
    settled = all(b or not np.isfinite(side).any() for b, side in zip(beyond, sides, strict=True))
    values = at(np.arange(first, last + 1, dtype=float))
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return Values(first, np.array([np.nan]), (False, False), settled)
    values = values[known[0] : known[-1] + 1]
    return Values(first + int(known[0]), values, (beyond[0], beyond[1]), settled)
