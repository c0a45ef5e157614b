"""Straight-line code for an engine that stops at overflow and underflow (PostgreSQL).

Every register becomes a column of a chain of subqueries, so that a guard can look at its operands
before the step is taken; OFFSET 0 keeps the planner from writing the registers out again. What
overflows is infinite and what underflows is zero, as IEEE arithmetic has it.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from trueup.kernels.laguerre_factors import factored
from trueup.sql import glot
from trueup.sql.glot import exp
from trueup.sql.magnitudes import HUGE, SMALL
from trueup.sql.writer import Writer, too_long

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.kernels.tape import Node
    from trueup.sql.glot import Sql

MAX_REGISTERS = 2_000
"""The length of the code: every one is a column."""

_MAX = sys.float_info.max
_MIN = 5e-324
_DUST = 9.9e291  # what can be added to any double
_EXP = (-745.0, 709.7827)


class Checked(Writer):
    """Write a tape as a scalar subquery in which no step can stop the query."""

    def subquery(self, finish: Callable[[Callable[[], Sql]], Sql]) -> Sql:
        """Return (SELECT finish(output) FROM …); ``finish`` gets a maker of copies."""
        if len(self.tape.nodes) > MAX_REGISTERS:
            raise too_long()
        for node in self.tape.nodes:
            self.built.append(self.step(node))
        output = self.tape.output
        levels = self._levels()
        inner: Sql | None = None
        for level in range(levels[output] + 1):
            new = [i for i, at in enumerate(levels) if at == level]
            kept = [i for i in self._read_later(levels, level) if levels[i] < level]
            columns = [exp.alias_(self.built[i], f"r{i}", quoted=True) for i in new]
            inner = self._select([*(self.use(i) for i in kept), *columns], inner)
        return self._select([finish(lambda: self.use(output))], inner, fence=False).subquery()

    def _select(self, columns: list[Sql], source: Sql | None, *, fence: bool = True) -> Sql:
        query = exp.select(*columns)
        if source is not None:
            query = query.from_(source.subquery("s", copy=False), copy=False)
        return query.offset(0, copy=False) if fence else query

    def _levels(self) -> list[int]:
        """Return for every register how many steps come before it; constants have no level."""
        levels: list[int] = []
        for i, node in enumerate(self.tape.nodes):
            before = [levels[a] for a in node.args]
            plain = node.op in ("const", "truth") and i != self.tape.output
            levels.append(-1 if plain else max(before, default=-1) + 1)
        return levels

    def _read_later(self, levels: list[int], level: int) -> list[int]:
        """Return the columns that this level must pass on."""
        later = {self.tape.output}
        for i, node in enumerate(self.tape.nodes):
            if levels[i] > level:
                later.update(a for a in node.args if levels[a] >= 0)
        return sorted(later)

    def use(self, register: int) -> Sql:
        """Return the column of a register."""
        node = self.tape.nodes[register]
        if node.op in ("const", "truth"):
            return self.built[register].copy()
        return exp.column(f"r{register}", quoted=True)

    def number(self, x: float) -> Sql:
        """Return a double with its type: constants are folded before anything runs."""
        return glot.typed(x, self.dialect)

    def infinite(self, *signs: int) -> Sql:
        """Return ∞ with the product of the signs of registers."""
        total = glot.infinity(self.dialect)
        for a in signs:
            total = glot.mul(glot.function("SIGN", self.use(a)), total)
        return total

    def magnitude(self, a: int) -> Sql:
        """Return |a|, NULL for NaN."""
        return glot.function("ABS", self.settled(a))

    # -- guarded steps -------------------------------------------------------------------------

    def _add(self, node: Node, a: int, b: int) -> Sql:
        return self._total(node, a, b, glot.add, lambda: self.settled(b))

    def _sub(self, node: Node, a: int, b: int) -> Sql:
        return self._total(node, a, b, glot.sub, lambda: exp.Neg(this=exp.paren(self.settled(b))))

    def _total(
        self, node: Node, a: int, b: int, op: Callable[[Sql, Sql], Sql], right: Callable[[], Sql]
    ) -> Sql:
        """Write a ± b: only if both are not small beside the largest double can it overflow."""
        plain = op(self.use(a), self.use(b))
        if self.spans[a].top + self.spans[b].top < HUGE:
            return plain
        branches = []
        for sign, large, beyond in ((1, "gt", "ge"), (-1, "lt", "le")):
            limit = glot.sub(self.number(sign * _MAX), self.use(a))
            over = glot.both(
                glot.compare(beyond, right(), limit),
                glot.compare(large, right(), self.number(sign * _DUST)),
            )
            far = glot.case([(over, glot.infinity(self.dialect, sign))], plain.copy())
            branches.append((glot.compare(large, self.settled(a), self.number(sign * _DUST)), far))
        return glot.case(branches, plain)

    def _mul(self, node: Node, a: int, b: int) -> Sql:
        left, right = self.spans[a], self.spans[b]
        plain = glot.mul(self.use(a), self.use(b))
        if left.top * right.top < HUGE and left.least * right.least > SMALL:
            return plain
        most = glot.div(self.number(_MAX), self.magnitude(b), zero=False)
        over = glot.both(
            glot.compare("gt", self.magnitude(a), self.number(1.0)),
            glot.compare("ge", self.magnitude(a), most),
        )
        half = glot.div(
            self.number(_MIN), glot.mul(self.number(2.0), self.magnitude(b)), zero=False
        )
        under = glot.both(
            glot.compare("le", self.magnitude(b), self.number(0.5)),
            glot.compare("le", self.magnitude(a), half),
        )
        large = glot.case([(over, self.infinite(a, b))], plain)
        return self._by_size(b, large, (under, self.number(0.0)), plain)

    def _div(self, node: Node, a: int, b: int) -> Sql:
        left, right = self.spans[a], self.spans[b]
        plain = glot.div(self.use(a), self.use(b), zero=right.zero)
        if left.top < HUGE * right.least and left.least > SMALL * right.top:
            return plain
        half = glot.mul(self.number(_MIN), glot.mul(self.number(0.5), self.magnitude(b)))
        under = glot.both(
            glot.compare("ge", self.magnitude(b), self.number(2.0)),
            glot.compare("le", self.magnitude(a), half),
            glot.compare("le", self.magnitude(a), self.number(_MAX)),
        )
        most = glot.mul(self.number(_MAX), self.magnitude(b))
        over = glot.compare("ge", self.magnitude(a), most)
        large = glot.case([(under, self.number(0.0))], plain)
        return self._by_size(b, large, (over, self.infinite(a, b)), plain)

    def _by_size(self, b: int, large: Sql, small: tuple[Sql, Sql], plain: Sql) -> Sql:
        """Return what is for |b| > 1, for b = 0 and |b| = 1 (plain), and for small b."""
        above = glot.compare("gt", self.magnitude(b), self.number(1.0))
        zero = glot.compare("eq", self.use(b), self.number(0.0))
        one = glot.compare("eq", self.magnitude(b), self.number(1.0))
        return glot.case(
            [(above, large), (glot.either(zero, one), plain.copy()), small], plain.copy()
        )

    def _power(self, node: Node, a: int) -> Sql:
        n = node.data
        plain = glot.function("POWER", self.use(a), self.number(float(n)))
        over = glot.compare("gt", self.magnitude(a), self.number(_MAX ** (1 / n) * (1 - 1e-14)))
        under = glot.compare("lt", self.magnitude(a), self.number(_MIN ** (1 / n)))
        signed = self.infinite(a) if n % 2 else self.infinite()
        return glot.case([(over, signed), (under, self.number(0.0))], plain)

    def _exp(self, node: Node, a: int) -> Sql:
        plain = glot.function("EXP", self.use(a))
        if _EXP[0] < self.spans[a].low and self.spans[a].high < _EXP[1]:
            return plain
        return self._exponential(self.settled(a), plain)

    def _exponential(self, z: Sql, value: Sql) -> Sql:
        """Return e^z as it is written, infinite or zero beyond the doubles."""
        over = glot.compare("gt", z, self.number(_EXP[1]))
        under = glot.compare("lt", z.copy(), self.number(_EXP[0]))
        return glot.case([(over, self.infinite()), (under, self.number(0.0))], value)

    def _pow(self, node: Node, a: int, b: int) -> Sql:
        """Write a^b for a > 0, or a < 0 and whole b, through the size of b·ln|a|."""
        whole = glot.compare("eq", glot.function("FLOOR", self.use(b)), self.use(b))
        negative = glot.compare("lt", self.use(a), self.number(0.0))
        at_zero = glot.compare("eq", self.use(a), self.number(0.0))
        rising = glot.compare("gt", self.use(b), self.number(0.0))
        none = glot.compare("eq", self.use(b), self.number(0.0))
        flat = glot.case([(none, self.number(1.0)), (rising, self.number(0.0))])
        branches = [
            (at_zero, flat),
            (glot.both(negative, exp.Not(this=exp.paren(whole))), exp.Null()),
            (glot.compare("lt", self.magnitude(b), self.number(1e-20)), self.number(1.0)),
        ]
        log = glot.function("LN", self.magnitude(a))
        z = glot.mul(log, glot.case([(self._moderate(b), self.use(b))], self._steep(b)))
        value = glot.function("POWER", self.use(a), self.use(b))
        return glot.case(branches, self._exponential(z, value))

    def _moderate(self, b: int) -> Sql:
        return glot.compare("le", self.magnitude(b), self.number(1e20))

    def _steep(self, b: int) -> Sql:
        return glot.mul(glot.function("SIGN", self.use(b)), self.number(1e20))

    def _laguerre(self, node: Node, t: int) -> Sql:
        plain = super()._laguerre(node, t)
        factors = factored(node.data)
        degree = len(factors.real) + 2 * len(factors.pairs)
        if self.spans[t].top <= factors.reach or not degree:
            return plain
        inside = glot.compare("le", self.magnitude(t), self.number(factors.reach))
        sign = int(math.copysign(1, factors.c))
        far = glot.infinity(self.dialect, sign)
        if degree % 2:
            far = glot.mul(glot.function("SIGN", self.use(t)), far)
        return glot.case([(inside, plain)], far)
