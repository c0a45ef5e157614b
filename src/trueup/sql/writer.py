"""A tape as one SQL expression: registers written out, undefined steps guarded to NULL."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS
from trueup.sql import glot
from trueup.sql.glot import exp
from trueup.sql.magnitudes import FAINT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.kernels.tape import Step, Tape
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.magnitudes import Span

MAX = sys.float_info.max
"""The largest double."""

MAX_NODES = 40_000
"""The size of an expression, in nodes of its tree."""
MAX_WORK = 80_000
"""Steps copied on the way to it, over all registers: each takes sqlglot some 50 µs."""

MAX_DEPTH = 120
"""How deep operations may be nested: engines and sqlglot read expressions recursively."""

_WAYS = 8  # branches of one CASE in a table


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
        What to write, as :func:`trueup.sql.rewriting.rewrite` made it.
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
        for node in self.tape.steps:
            self.built.append(self.step(node))
        return self.built[self.tape.outputs[0]]

    def _measure(self) -> None:
        """Refuse what would be too large or too deep, without writing it."""
        work = 0
        for node in self.tape.steps:
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
        """Return a number."""
        return glot.literal(x)

    def compare(self, op: str, a: Sql, x: float) -> Sql:
        """Return a comparison with a number."""
        return glot.compare(op, a, self.number(x), self.dialect)

    def case(self, branches: Sequence[tuple[Sql, Sql]], otherwise: Sql | None = None) -> Sql:
        """Return CASE WHEN … THEN … ELSE … END."""
        return glot.case(branches, otherwise, self.dialect)

    def function(self, name: str, a: int) -> Sql:
        """Return a function of a register."""
        return glot.of_double(name, self.use(a), self.dialect)

    def step(self, node: Step) -> Sql:
        """Return one operation."""
        rule: Callable[..., Sql] | None = getattr(self, "_" + node.op, None)
        if rule is not None:
            return rule(node, *node.args)
        if node.op in COMPARISONS:
            left, right = (self.settled(a) for a in node.args)
            return glot.compare(node.op, left, right, self.dialect)
        return self.function(node.op.upper(), node.args[0])

    def settled(self, a: int) -> Sql:
        """Return a register with NaN turned into NULL: engines differ in how NaN compares."""
        if not self.spans[a].nan:
            return self.use(a)
        return self.case([(self.compare("le", self.function("ABS", a), MAX), self.use(a))])

    # -- arithmetic ----------------------------------------------------------------------------

    def _input(self, node: Step) -> Sql:
        return self.leaves[node.data].copy()

    def _const(self, node: Step) -> Sql:
        if not math.isfinite(node.data):
            return glot.typed(math.nan, self.dialect)
        return self.number(node.data)

    def _add(self, node: Step, a: int, b: int) -> Sql:
        right = self.tape.steps[b]
        if right.op == "const" and right.data < 0:
            return glot.sub(self.use(a), self.number(-right.data), self.dialect)
        return glot.add(self.use(a), self.use(b), self.dialect)

    def _sub(self, node: Step, a: int, b: int) -> Sql:
        return glot.sub(self.use(a), self.use(b), self.dialect)

    def _mul(self, node: Step, a: int, b: int) -> Sql:
        left = self.tape.steps[a]
        if left.op == "const" and left.data == -1:
            return glot.negative(self.use(b), self.dialect)
        return glot.mul(self.use(a), self.use(b), self.dialect)

    def _div(self, node: Step, a: int, b: int) -> Sql:
        return glot.div(self.use(a), self.use(b), self.dialect, zero=self.spans[b].zero)

    def _power(self, node: Step, a: int) -> Sql:
        if node.data == 2 and self.tape.steps[a].op == "input":
            return glot.mul(self.use(a), self.use(a), self.dialect)
        return glot.power(self.use(a), node.data, self.dialect)

    def _pow(self, node: Step, a: int, b: int) -> Sql:
        """Write a^b for a > 0, for b = 0, for 0 to a positive power, and for whole b."""
        base, exponent = (glot.as_double(self.use(i), self.dialect) for i in (a, b))
        value = glot.function("POWER", base, exponent)
        if self.spans[a].low > 0:
            return value
        floor = self.function(self.dialect.floor, b)
        whole = glot.compare("eq", floor, self.use(b), self.dialect)
        defined = glot.both(
            glot.either(whole, self.compare("ge", self.use(a), 0.0)),
            glot.either(self.compare("ge", self.use(b), 0.0), self.compare("lt", self.use(a), 0.0)),
        )
        positive = self.compare("gt", self.use(a), 0.0)
        return self.case([(glot.either(positive, defined), value)])

    # -- functions that are not defined everywhere ------------------------------------------------

    def _sqrt(self, node: Step, a: int) -> Sql:
        root = self.function("SQRT", a)
        if self.spans[a].low >= 0:
            return root
        return self.case([(self.compare("ge", self.use(a), 0.0), root)])

    def _exp(self, node: Step, a: int) -> Sql:
        """Write e^z; zero where it is so small that a product of two might underflow."""
        value = self.function("EXP", a)
        if not self.dialect.underflow or self.spans[a].low > FAINT:
            return value
        return self.case([(self.compare("gt", self.use(a), FAINT), value)], self.number(0.0))

    def _log(self, node: Step, a: int) -> Sql:
        log = self.function(self.dialect.ln, a)
        if self.spans[a].low > 0:
            return log
        return self.case([(self.compare("gt", self.use(a), 0.0), log)])

    def _wave(self, node: Step, a: int) -> Sql:
        wave = self.function(node.op.upper(), a)
        if self.spans[a].top <= MAX:
            return wave
        return self.case([(self.compare("le", self.function("ABS", a), MAX), wave)])

    _sin = _cos = _tan = _wave

    def _within(self, node: Step, a: int) -> Sql:
        """Write a function that is defined up to ±1; atanh is infinite there."""
        value = self.function(node.op.upper(), a)
        strict = node.op == "atanh"
        if self.spans[a].top < 1 or (self.spans[a].top == 1 and not strict):
            return value
        inside = self.compare("lt" if strict else "le", self.function("ABS", a), 1.0)
        return self.case([(inside, value)])

    _asin = _acos = _atanh = _within

    def _acosh(self, node: Step, a: int) -> Sql:
        value = self.function("ACOSH", a)
        if self.spans[a].low >= 1:
            return value
        return self.case([(self.compare("ge", self.use(a), 1.0), value)])

    def _laguerre(self, node: Step, t: int) -> Sql:
        raise TrueupError(
            f"an extension of degree {len(node.data) - 1} has no SQL",
            'extension="optimal" has the smallest variance and is shorter',
        )

    # -- choices -------------------------------------------------------------------------------

    def _floor(self, node: Step, a: int) -> Sql:
        """Write ⌊a⌋; where FLOOR gives a bounded integer, round and step back."""
        rounded = self.function(self.dialect.floor, a)
        if self.dialect.floor == "FLOOR":
            return rounded
        above = glot.compare("gt", rounded.copy(), self.use(a), self.dialect)
        less = glot.sub(rounded, self.number(1.0), self.dialect)
        return self.case([(above, less)], rounded.copy())

    def _sign(self, node: Step, a: int) -> Sql:
        signs = (("gt", 1.0), ("lt", -1.0), ("eq", 0.0))
        return self.case(
            [(self.compare(op, self.settled(a), 0.0), self.number(s)) for op, s in signs]
        )

    def _extreme(self, node: Step, a: int, b: int) -> Sql:
        """Write the larger or smaller of two; GREATEST and LEAST drop nulls in some engines."""
        op, name = ("ge", self.dialect.greatest) if node.op == "max" else ("le", self.dialect.least)
        if not (self.spans[a].lost or self.spans[b].lost):
            return glot.extreme(name, self.use(a), self.use(b), self.dialect)
        first = glot.compare(op, self.settled(a), self.settled(b), self.dialect)
        second = glot.compare(op, self.settled(b), self.settled(a), self.dialect)
        return self.case([(first, self.use(a)), (second, self.use(b))])

    _max = _min = _extreme

    def _truth(self, node: Step) -> Sql:
        return self.compare("eq", self.number(1.0), 1.0 if node.data else 0.0)

    def _and(self, node: Step, a: int, b: int) -> Sql:
        return exp.Paren(this=exp.And(this=self.use(a), expression=self.use(b)))

    def _or(self, node: Step, a: int, b: int) -> Sql:
        return exp.Paren(this=exp.Or(this=self.use(a), expression=self.use(b)))

    def _not(self, node: Step, a: int) -> Sql:
        return exp.Not(this=exp.Paren(this=self.use(a)))

    def _where(self, node: Step, c: int, a: int, b: int) -> Sql:
        condition = self.use(c)
        yes, no = (condition, _defined(self.use(a), condition)), self.use(b)
        if self.spans[c].lost:
            return self.case([yes, (exp.Not(this=exp.Paren(this=self.use(c))), no)])
        if isinstance(no, exp.Case) and not no.this:
            further = [(e.this, e.args["true"]) for e in no.args["ifs"]]
            return self.case([yes, *further], no.args.get("default"))
        return self.case([yes], no)

    def _call(self, node: Step, *args: int) -> Sql:
        if not isinstance(node.data, Table):
            name = getattr(node.data, "__name__", repr(node.data))
            raise TrueupError(
                f"the Python function {name} cannot be written as SQL",
                "write it as a formula, or give its values as a table {k: value}",
            )
        values = [float(v) for v in node.data.values[1:-1]]
        return lookup(lambda: self.use(args[0]), node.data.low, values, self.dialect)


def _defined(value: Sql, condition: Sql) -> Sql:
    """Return a value that is taken under a condition; divisors that are never zero then, plain."""
    for guard in list(value.find_all(exp.Nullif)):
        if _excludes(condition, *_root(guard.this)):
            inner = guard.this
            plain = isinstance(inner, (exp.Func, exp.Cast))
            guard.replace(inner.copy() if plain else exp.Paren(this=inner.copy()))
    return value


def _root(divisor: Sql) -> tuple[Sql, float]:
    """Return where (x − c)ⁿ is zero: x and c."""
    while isinstance(divisor, (exp.Paren, exp.Mul)) or divisor.name == "POWER":
        if isinstance(divisor, exp.Mul) and divisor.left != divisor.right:
            break
        inside = divisor.expressions[0] if divisor.name == "POWER" else divisor.this
        divisor = inside
    c = glot.value_of(divisor.expression) if isinstance(divisor, exp.Sub) else None
    return (divisor, 0.0) if c is None else (divisor.this, c)


def _excludes(condition: Sql, x: Sql, c: float) -> bool:
    """Whether x = c contradicts a condition."""
    end = glot.value_of(condition.expression) if isinstance(condition, exp.Binary) else None
    if end is None or condition.this.find(exp.Column) != x.find(exp.Column):
        return False
    if not all(
        isinstance(e, (exp.Column, exp.Cast)) or e.name == "toFloat64" for e in (x, condition.this)
    ):
        return False
    kinds = {exp.GT: c <= end, exp.GTE: c < end, exp.LT: c >= end, exp.LTE: c > end}
    return kinds.get(type(condition), False)


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
            return glot.number(some[0], dialect) if math.isfinite(some[0]) else exp.Null()
        step = _WAYS ** max(0, _levels(len(some)) - 1)
        starts = range(0, len(some), step)
        *most, last = [tree(first + i, some[i : i + step]) for i in starts]
        ifs = [
            exp.If(
                this=glot.compare("lt", k(), glot.literal(float(first + i)), dialect),
                true=part,
            )
            for i, part in zip(starts[1:], most, strict=True)
        ]
        return exp.Case(ifs=ifs, default=last)

    first, last = (glot.literal(float(e)) for e in (low, low + len(values) - 1))
    known = tree(low, values)
    if beyond == (True, True):
        return _of_doubles(known, dialect)
    if beyond[0]:
        inside = glot.compare("le", k(), last, dialect)
    elif beyond[1]:
        inside = glot.compare("ge", k(), first, dialect)
    else:
        inside = glot.between(k(), low, low + len(values) - 1, dialect)
    return _of_doubles(exp.Case(ifs=[exp.If(this=inside, true=known)]), dialect)


def _of_doubles(tree: Sql, dialect: Dialect) -> Sql:
    """Return a tree of numbers as doubles: one cast where literals are decimals."""
    if isinstance(tree, exp.Case) and dialect.literal in ("exponent", "point"):
        return tree
    return glot.cast(tree, dialect) if isinstance(tree, exp.Case) else glot.as_double(tree, dialect)


def _levels(n: int) -> int:
    levels, room = 1, _WAYS
    while room < n:
        levels, room = levels + 1, room * _WAYS
    return levels
