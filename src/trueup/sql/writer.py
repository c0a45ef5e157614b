"""A tape as one SQL expression: registers written out, undefined steps guarded to NULL."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.formula.opaque import Table
from trueup.kernels.laguerre_factors import factored
from trueup.sql import glot
from trueup.sql.glot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.kernels.tape import Node, Tape
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.magnitudes import Span

MAX_NODES = 40_000
"""The size of an expression, in nodes of its tree."""
MAX_WORK = 80_000
"""Steps copied on the way to it, over all registers: each takes sqlglot some 50 µs."""

MAX_DEPTH = 120
"""How deep operations may be nested: engines and sqlglot read expressions recursively."""

_SHORT = 12  # nodes of a base up to which its square is written as a product
_CHAIN = 6  # the highest power of a column that is written as a product
_WAYS = 8  # branches of one CASE in a table
_FUNCTIONS = {
    name: name.upper()
    for name in ("exp", "abs", "atan", "sinh", "cosh", "tanh", "asinh", "sin", "cos", "tan")
} | {name: name.upper() for name in ("asin", "acos", "acosh", "atanh")}


def too_long() -> TrueupError:
    """Return the refusal of an estimator whose SQL has no reasonable size."""
    return TrueupError(
        "the estimator is too long for SQL: without variables every step is written out",
        "debias the parts of the formula one by one, or compute it in Python",
    )


class Writer:
    """Write registers out, each from the registers that it reads.

    Parameters
    ----------
    tape
        What to write, as :func:`trueup.sql.products.rewrite` made it.
    spans
        How large and small every register can be: guards are written where they are needed.
    leaves
        What stands for the inputs.
    """

    def __init__(
        self, tape: Tape, spans: Sequence[Span], leaves: Sequence[Sql], dialect: Dialect
    ) -> None:
        self.tape, self.spans, self.leaves, self.dialect = tape, spans, leaves, dialect
        self.built: list[Sql] = []
        self.sizes: list[int] = []
        self.depths: list[int] = []
        self.cost = self.depth = 0

    def write(self) -> Sql:
        """Return the output."""
        self._measure()
        for node in self.tape.nodes:
            self.built.append(self.step(node))
        output = self.tape.nodes[self.tape.output]
        if output.op == "const":
            return glot.typed(output.data, self.dialect)
        return self.built[self.tape.output]

    def _measure(self) -> None:
        """Refuse what would be too large or too deep, without writing it."""
        work = 0
        for node in self.tape.nodes:
            self.cost, self.depth = 1, 0
            self.step(node)
            self.sizes.append(self.cost)
            self.depths.append(self.depth + 1)
            work += self.cost
            if self.cost > MAX_NODES or work > MAX_WORK or self.depths[-1] > MAX_DEPTH:
                raise too_long()

    def use(self, register: int) -> Sql:
        """Return a copy of a register that was written before; while measuring, a stand-in."""
        self.cost += self.sizes[register]
        self.depth = max(self.depth, self.depths[register])
        return self.built[register].copy() if self.built else exp.Null()

    def number(self, x: float) -> Sql:
        """Return a double."""
        return glot.number(x, self.dialect)

    def step(self, node: Node) -> Sql:
        """Return one operation."""
        rule: Callable[..., Sql] | None = getattr(self, "_" + node.op, None)
        if rule is not None:
            return rule(node, *node.args)
        if node.op in ("lt", "le", "gt", "ge", "eq", "ne"):
            return glot.compare(node.op, *(self.settled(a) for a in node.args))
        return glot.function(_FUNCTIONS[node.op], self.use(node.args[0]))

    def only_if(self, condition: Sql, value: Sql, needed: bool) -> Sql:
        """Return the value, or NULL where the condition does not hold."""
        return glot.case([(condition, value)]) if needed else value

    def settled(self, a: int) -> Sql:
        """Return a register with NaN turned into NULL: engines differ in how NaN compares."""
        if not self.spans[a].nan:
            return self.use(a)
        return glot.case([(self.known(a), self.use(a))])

    def known(self, a: int) -> Sql:
        """Return the condition that a register is neither NULL nor NaN."""
        size = glot.function("ABS", self.use(a))
        return glot.compare("le", size, glot.infinity(self.dialect))

    def branch(self, a: int) -> Sql:
        """Return a register where it stands alone: a constant with its type."""
        node = self.tape.nodes[a]
        if node.op == "const" and math.isfinite(node.data):
            return glot.typed(node.data, self.dialect)
        return self.use(a)

    # -- arithmetic ----------------------------------------------------------------------------

    def _input(self, node: Node) -> Sql:
        return self.leaves[node.data].copy()

    def _const(self, node: Node) -> Sql:
        if node.data != node.data:
            return glot.typed(node.data, self.dialect)
        if abs(node.data) > sys.float_info.max:
            return glot.infinity(self.dialect, 1 if node.data > 0 else -1)
        return self.number(node.data)

    def _add(self, node: Node, a: int, b: int) -> Sql:
        right = self.tape.nodes[b]
        if right.op == "const" and right.data < 0:
            return glot.sub(self.use(a), self.number(-right.data))
        return glot.add(self.use(a), self.use(b))

    def _sub(self, node: Node, a: int, b: int) -> Sql:
        return glot.sub(self.use(a), self.use(b))

    def _mul(self, node: Node, a: int, b: int) -> Sql:
        left = self.tape.nodes[a]
        if left.op == "const" and left.data == -1:
            value = self.use(b)
            plain = isinstance(value, (exp.Cast, exp.Func, exp.Paren, exp.Case, exp.Column))
            return exp.Neg(this=value if plain else exp.Paren(this=value))
        return glot.mul(self.use(a), self.use(b))

    def _div(self, node: Node, a: int, b: int) -> Sql:
        return glot.div(self.use(a), self.use(b), zero=self.spans[b].zero)

    def _power(self, node: Node, a: int) -> Sql:
        leaf = self.tape.nodes[a].op == "input"
        if (leaf and node.data <= _CHAIN) or (node.data == 2 and self.sizes[a] <= _SHORT):
            total = self.use(a)
            for _ in range(node.data - 1):
                total = glot.mul(total, self.use(a))
            return total
        return glot.function("POWER", self.use(a), self.number(float(node.data)))

    def _pow(self, node: Node, a: int, b: int) -> Sql:
        """Write a^b for a > 0, for b = 0, for 0 to a positive power, and for whole b."""
        value = glot.function("POWER", self.branch(a), self.branch(b))
        if self.spans[a].low > 0:
            return value
        zero = self.number(0.0)
        positive = glot.compare("gt", self.branch(a), zero)
        whole = glot.compare(
            "eq", glot.function(self.dialect.floor, self.branch(b)), self.branch(b)
        )
        rising = glot.compare("ge", self.branch(b), zero.copy())
        defined = glot.both(
            glot.either(whole, glot.compare("ge", self.branch(a), zero.copy())),
            glot.either(rising, glot.compare("lt", self.branch(a), zero.copy())),
        )
        return glot.case([(glot.either(positive, defined), value)])

    # -- functions that are not defined everywhere ------------------------------------------------

    def _sqrt(self, node: Node, a: int) -> Sql:
        root = glot.function("SQRT", self.use(a))
        if self.spans[a].low >= 0:
            return root
        return glot.case([(glot.compare("ge", self.use(a), self.number(0.0)), root)])

    def _log(self, node: Node, a: int) -> Sql:
        log = glot.function(self.dialect.ln, self.use(a))
        if self.spans[a].low > 0:
            return log
        branches = [(glot.compare("gt", self.use(a), self.number(0.0)), log)]
        if self.spans[a].zero and self.dialect.overflow != "forbidden":
            zero = glot.compare("eq", self.use(a), self.number(0.0))
            branches.append((zero, glot.infinity(self.dialect, -1)))
        return glot.case(branches)

    def _wave(self, node: Node, a: int) -> Sql:
        wave = glot.function(_FUNCTIONS[node.op], self.use(a))
        if self.spans[a].top <= sys.float_info.max:
            return wave
        size = glot.function("ABS", self.use(a))
        finite = glot.compare("le", size, self.number(sys.float_info.max))
        return glot.case([(finite, wave)])

    _sin = _cos = _tan = _wave

    def _within(self, node: Node, a: int) -> Sql:
        """Write a function that is defined up to ±1; atanh is infinite there."""
        value = glot.function(_FUNCTIONS[node.op], self.use(a))
        strict = node.op == "atanh"
        if self.spans[a].top < 1 or (self.spans[a].top == 1 and not strict):
            return value
        size = glot.function("ABS", self.use(a))
        inside = glot.compare("lt" if strict else "le", size, self.number(1.0))
        return glot.case([(inside, value)])

    _asin = _acos = _atanh = _within

    def _acosh(self, node: Node, a: int) -> Sql:
        value = glot.function("ACOSH", self.use(a))
        if self.spans[a].low >= 1:
            return value
        return glot.case([(glot.compare("ge", self.use(a), self.number(1.0)), value)])

    def _laguerre(self, node: Node, t: int) -> Sql:
        c, real, pairs = factored(node.data)
        total = self.number(c)
        for root in real:
            op = glot.sub if root >= 0 else glot.add
            total = glot.mul(total, op(self.use(t), self.number(abs(root))))
        for re, im in pairs:
            op = glot.sub if re >= 0 else glot.add
            shifted = [op(self.use(t), self.number(abs(re))) for _ in range(2)]
            total = glot.mul(total, glot.add(glot.mul(*shifted), self.number(im * im)))
        return total

    # -- choices -------------------------------------------------------------------------------

    def _floor(self, node: Node, a: int) -> Sql:
        """Write ⌊a⌋; where FLOOR gives a bounded integer, round and step back."""
        rounded = glot.function(self.dialect.floor, self.use(a))
        if self.dialect.floor == "FLOOR":
            return rounded
        above = glot.compare("gt", rounded.copy(), self.use(a))
        return glot.case([(above, glot.sub(rounded, self.number(1.0)))], rounded.copy())

    def _sign(self, node: Node, a: int) -> Sql:
        zero = self.number(0.0)
        signs = (("gt", 1.0), ("lt", -1.0), ("eq", 0.0))
        return glot.case(
            [
                (glot.compare(op, self.settled(a), zero.copy()), glot.typed(s, self.dialect))
                for op, s in signs
            ]
        )

    def _extreme(self, node: Node, a: int, b: int) -> Sql:
        """Write the larger or smaller of two; GREATEST and LEAST drop nulls in some engines."""
        op = "ge" if node.op == "max" else "le"
        first = (glot.compare(op, self.settled(a), self.settled(b)), self.branch(a))
        second = (glot.compare(op, self.settled(b), self.settled(a)), self.branch(b))
        return glot.case([first, second])

    _max = _min = _extreme

    def _truth(self, node: Node) -> Sql:
        return glot.compare("eq", self.number(1.0), self.number(1.0 if node.data else 0.0))

    def _and(self, node: Node, a: int, b: int) -> Sql:
        return exp.Paren(this=exp.And(this=self.use(a), expression=self.use(b)))

    def _or(self, node: Node, a: int, b: int) -> Sql:
        return exp.Paren(this=exp.Or(this=self.use(a), expression=self.use(b)))

    def _not(self, node: Node, a: int) -> Sql:
        return exp.Not(this=exp.Paren(this=self.use(a)))

    def _where(self, node: Node, c: int, a: int, b: int) -> Sql:
        yes, no = (self.use(c), self.branch(a)), self.branch(b)
        if self.spans[c].lost:
            return glot.case([yes, (exp.Not(this=exp.Paren(this=self.use(c))), no)])
        if isinstance(no, exp.Case) and not no.this:
            further = [(e.this, e.args["true"]) for e in no.args["ifs"]]
            return glot.case([yes, *further], no.args.get("default"))
        return glot.case([yes], no)

    def _call(self, node: Node, *args: int) -> Sql:
        if not isinstance(node.data, Table):
            name = getattr(node.data, "__name__", repr(node.data))
            raise TrueupError(
                f"the Python function {name} cannot be written as SQL",
                "write it as a formula, or give its values as a table {k: value}",
            )
        values = [float(v) for v in node.data.values[1:-1]]
        return lookup(lambda: self.use(args[0]), node.data.low, values, self.dialect)


def lookup(
    k: Callable[[], Sql],
    low: int,
    values: Sequence[float],
    dialect: Dialect,
    beyond: tuple[bool, bool] = (False, False),
) -> Sql:
    """Return the value at a whole number k: a tree of CASE.

    Outside the table it is NULL, or, where ``beyond`` says so, the first and the last value.
    """

    def tree(first: int, some: Sequence[float]) -> Sql:
        if len(some) == 1:
            return glot.typed(some[0], dialect)
        step = _WAYS ** max(0, _levels(len(some)) - 1)
        starts = range(0, len(some), step)
        *most, last = [tree(first + i, some[i : i + step]) for i in starts]
        ends = [glot.number(float(first + i), dialect) for i in starts[1:]]
        branches = [
            (glot.compare("lt", k(), end), part) for end, part in zip(ends, most, strict=True)
        ]
        return glot.case(branches, last)

    first, last = (glot.number(float(e), dialect) for e in (low, low + len(values) - 1))
    if beyond == (True, True):
        inside = glot.compare("eq", k(), k())
    elif beyond[0]:
        inside = glot.compare("le", k(), last)
    else:
        inside = glot.compare("ge", k(), first) if beyond[1] else glot.between(k(), first, last)
    return glot.case([(inside, tree(low, values))])


def _levels(n: int) -> int:
    levels, room = 1, _WAYS
    while room < n:
        levels, room = levels + 1, room * _WAYS
    return levels
