"""A tape as one SQL expression: a table of operations over sqlglot trees, every step a double.

SQL has no variables, so a step that is read twice is written twice. Products are gathered before
they are written: 8·(1/n)·(1/n) is ``8 / n / n``. An operation is one of doubles as soon as one
operand is: a column is cast only where nothing beside it is a double. Where an operation is
undefined the result is NULL.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.sql.dialects import Dialect

exp: Any = optional("sqlglot", "tables", "writing SQL").exp
Sql: TypeAlias = Any
"""A sqlglot tree; every one handed out is new, so that it can be put into another."""

MAX_LENGTH = 20_000
"""The length of a text that a person asks for, in characters."""

MAX_QUERY = 100_000
"""The length of an expression in a query of ours: engines read it in a tenth of a second."""

_CHARACTERS = 4  # of an operand with its operation, at least
_CHAIN = 4  # the highest power written as a product: POWER takes ten times as long
_SHORT = 2  # operands of a factor up to which its powers are products
_WAYS = 8  # branches of one CASE in a table
_NEGATIVE = -1e-300  # stands for all negative variances
COMPOSED = ("sinh", "cosh", "tanh")
"""Functions that are written by others where an engine lacks them."""
_KINDS = {"lt": "LT", "le": "LTE", "gt": "GT", "ge": "GTE", "eq": "EQ", "ne": "NEQ"}


def too_long(length: int, most: int = MAX_LENGTH) -> TrueupError:
    """Return the refusal of an estimator whose SQL has no reasonable size."""
    return TrueupError(
        f"the estimator is too long for SQL: {length:,} characters or more, at most {most:,}",
        "debias the parts of the formula one by one, or compute it in Python",
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Factor:
    """What can be written again and again: a column, a sum, a function of something.

    Its values lie between ``low`` and ``high``; ``null`` says whether it may be NULL within the
    limits, ``operands`` how long it is, and ``members`` what it is the sum ("add"), the
    largest ("ge") or the smallest ("le") of, as ``kind`` says.
    """

    write: Callable[[], Sql]
    low: float = -math.inf
    high: float = math.inf
    null: bool = False
    operands: int = 1
    kind: str = ""
    members: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if self.operands * _CHARACTERS > MAX_QUERY:
            raise too_long(self.operands * _CHARACTERS, MAX_QUERY)


class Number(NamedTuple):
    """c · Π aⁿ / Π bᵐ, between ``low`` and ``high``."""

    c: float
    above: Counter[Factor]
    below: Counter[Factor]
    low: float
    high: float

    @property
    def operands(self) -> int:
        """How long it is as text, in operands."""
        return 1 + sum(f.operands * n for side in self[1:3] for f, n in side.items())

    @property
    def null(self) -> bool:
        """Whether it may be NULL within the limits."""
        return any(f.null for side in self[1:3] for f in side) or any(map(_has_zero, self.below))

    @property
    def constant(self) -> bool:
        """Whether it is a number."""
        return not self.above and not self.below


class Condition(NamedTuple):
    """A condition that depends on the row; one that does not is a bool."""

    write: Callable[[], Sql]
    null: bool
    operands: int


def constant(x: float) -> Number:
    """Return a number; what is not finite is NULL."""
    if not math.isfinite(x):
        return single(Factor(exp.Null, null=True))
    return Number(x, Counter(), Counter(), x, x)


def single(factor: Factor) -> Number:
    """Return a factor as a number."""
    return Number(1.0, Counter([factor]), Counter(), factor.low, factor.high)


def _has_zero(x: Factor | Number) -> bool:
    return x.low <= 0 <= x.high


def _times(a: float, b: float) -> float:
    """Return a·b, where 0·∞ is 0."""
    return a * b if a and b else 0.0


def _interval(*ends: float) -> tuple[float, float]:
    if any(end != end for end in ends):
        return -math.inf, math.inf
    return min(ends), max(ends)


class Arithmetic:
    """The operations in one dialect.

    Parameters
    ----------
    dialect
        The engine.
    exponent
        The largest |a| for which eᵃ is computed; beyond it is NULL.
    vanishing
        Whether eᵃ may be as good as 0 for a below −``exponent``, instead of NULL.
    """

    def __init__(
        self, dialect: Dialect, exponent: float = math.inf, vanishing: bool = False
    ) -> None:
        self.dialect, self.exponent, self.vanishing = dialect, exponent, vanishing
        self.table: dict[str, Callable[..., Any]] = {
            **{name: partial(self.function, name) for name in FUNCTIONS},
            **{name: partial(self.comparison, name) for name in COMPARISONS},
            "const": constant,
            "truth": bool,
            "add": self.add,
            "sub": self.sub,
            "mul": self.mul,
            "div": self.div,
            "pow": self.pow,
            "sqrt": self.sqrt,
            "exp": self.exp,
            "abs": self.abs,
            "sign": self.sign,
            "floor": self.floor,
            "where": self.where,
            "max": partial(self.extreme, "ge"),
            "min": partial(self.extreme, "le"),
            "and": partial(self.connected, exp.And),
            "or": partial(self.connected, exp.Or),
            "not": self.negated,
            "laguerre": _no_series,
            "call": self.call,
            **{name: partial(self.hyperbolic, name) for name in COMPOSED},
        }

    # -- products and sums -------------------------------------------------------------------------

    def mul(self, a: Number, b: Number) -> Number:
        """Return a·b."""
        c = a.c * b.c
        if c and not 1e-200 < abs(c) < 1e200:  # the constant stays one of the factors
            a, c = a._replace(c=1.0, above=a.above + Counter([self._fixed(a.c)])), b.c
        above, below = a.above + b.above, a.below + b.below
        low, high = _interval(*(_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)))
        if c > 0 and all(n % 2 == 0 for side in (above, below) for n in side.values()):
            low = max(low, 0.0)
        shared = above & below
        if all(not _has_zero(f) for f in shared):
            above, below = above - shared, below - shared
        return Number(c, above, below, low, high)

    def div(self, a: Number, b: Number) -> Number:
        """Return a/b; NULL where b is zero."""
        if not b.c:
            return constant(math.nan)
        low, high = (-math.inf, math.inf) if _has_zero(b) else _interval(1 / b.low, 1 / b.high)
        return self.mul(a, Number(1 / b.c, b.below, b.above, low, high))

    def _fixed(self, x: float) -> Factor:
        return Factor(lambda: literal(x, self.dialect), x, x)

    def add(self, a: Number, b: Number) -> Number:
        """Return a + b."""
        terms = tuple(_gathered([*_members(a, "add"), *_members(b, "add")]))
        if len(terms) < 2:
            return terms[0] if terms else constant(0.0)
        low, _ = _interval(a.low + b.low)
        _, high = _interval(a.high + b.high)
        operands = sum(t.operands for t in terms)
        null = any(t.null for t in terms)
        return single(Factor(lambda: self._sum(terms), low, high, null, operands, "add", terms))

    def sub(self, a: Number, b: Number) -> Number:
        """Return a − b."""
        return self.add(a, _scaled(b, -1.0))

    def _sum(self, terms: Sequence[Number]) -> Sql:
        """Write a sum, what is added before what is subtracted."""
        first, *rest = sorted(terms, key=lambda t: t.c < 0)
        total = self.tree(first)
        for term in rest:
            kind, size = (exp.Sub, _scaled(term, -1.0)) if term.c < 0 else (exp.Add, term)
            total = self._binary(kind, total, self.tree(size))
        return total

    def tree(self, a: Number) -> Sql:
        """Write a number, which may be a column or a literal."""
        above = self._factors(a.above)
        if a.c != 1 or not above:
            above.insert(0, literal(a.c, self.dialect))
        total = self._product(above)
        below = self._factors(a.below, divides=True)
        if len(a.below) > 1:
            return self._binary(exp.Div, total, self._product(below))
        for factor in below:  # every step lies between the first and the last one
            total = self._binary(exp.Div, total, factor)
        return total

    def value(self, a: Number) -> Sql:
        """Write a number that is a double by itself."""
        return self.double(self.tree(a))

    def _product(self, factors: Sequence[Sql]) -> Sql:
        total, *rest = factors
        for factor in rest:
            total = self._binary(exp.Mul, total, factor)
        return total

    def _factors(self, powers: Counter[Factor], divides: bool = False) -> list[Sql]:
        written = []
        for f, n in powers.items():
            times = n if n == 1 or (n <= _CHAIN and f.operands <= _SHORT) else 1
            for _ in range(times):
                tree = f.write()
                if times < n:
                    power = literal(float(n), self.dialect)
                    tree = call("POWER", self.double(tree), power)
                if divides and _has_zero(f):
                    tree = exp.Nullif(this=self.double(tree), expression=exp.Literal.number("0"))
                written.append(tree)
        return written

    def _binary(self, kind: Any, a: Sql, b: Sql) -> Sql:
        """Write an operation; at least one operand is a double."""
        if not (self.is_double(a) or self.is_double(b)):
            a, b = (a, self.double(b)) if _is_literal(a) else (self.double(a), b)
        sums, wide = (exp.Add, exp.Sub), kind in (exp.Mul, exp.Div)
        left = exp.Paren(this=a) if wide and isinstance(a, sums) else a
        tight = (exp.Neg, *sums, exp.Mul, exp.Div) if wide else (exp.Neg, *sums)
        right = exp.Paren(this=b) if isinstance(b, tight) else b
        return kind(this=left, expression=right, **({"typed": True} if kind is exp.Div else {}))

    # -- doubles -----------------------------------------------------------------------------------

    def is_double(self, e: Sql) -> bool:
        """Whether a tree is a double by itself, and not only beside one."""
        if _is_literal(e):
            return self.dialect.literal in ("exponent", "point")
        return not isinstance(e, (exp.Column, exp.Null))

    def double(self, e: Sql) -> Sql:
        """Write a tree as a double."""
        return e if self.is_double(e) else self.cast(e)

    def cast(self, e: Sql) -> Sql:
        """Write CAST(e AS DOUBLE), under the name that the type has."""
        kind = self.dialect.double
        if kind.endswith("()"):
            return e if isinstance(e, exp.Null) else call(kind[:-2], e)
        if not kind:
            return e if isinstance(e, exp.Cast) else exp.cast(e, "double")
        named = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=kind)
        return exp.Cast(this=e, to=named)

    def compared(self, e: Sql) -> Sql:
        """Write an operand of a comparison."""
        return self.double(e) if self.dialect.casts and isinstance(e, exp.Column) else e

    def compare(self, op: str, a: Sql, x: float) -> Sql:
        """Write the comparison of a tree with a number."""
        kind = getattr(exp, _KINDS[op])
        return kind(this=self.compared(a), expression=literal(x, self.dialect))

    def case(self, branches: Sequence[tuple[Sql, Sql]], otherwise: Sql | None = None) -> Sql:
        """Write CASE WHEN … THEN … ELSE … END of doubles."""
        values = [v for _, v in branches] + ([] if otherwise is None else [otherwise])
        values = [self.double(v) if isinstance(v, exp.Column) else v for v in values]
        if not any(map(self.is_double, values)):
            values[0] = self.double(values[0])
        ifs = [exp.If(this=c, true=v) for (c, _), v in zip(branches, values, strict=False)]
        return exp.Case(ifs=ifs, default=None if otherwise is None else values[-1])

    # -- functions ---------------------------------------------------------------------------------

    def function(self, name: str, a: Number) -> Number:
        """Return a function of one number, NULL where it is undefined."""
        word = self.dialect.ln if name == "log" else name.upper()
        low, high = _IMAGES.get(name, (-math.inf, math.inf))
        if name == "log" and a.low > 0:
            low, high = math.log(a.low), math.log(a.high)
        return self._within(_DOMAINS.get(name), a, (low, high), lambda: call(word, self.value(a)))

    def _within(
        self,
        domain: tuple[str, float] | None,
        a: Number,
        ends: tuple[float, float],
        write: Callable[[], Sql],
    ) -> Number:
        """Return a function of a number, NULL unless the number (or its size) is in a domain."""
        op, x = domain or ("ge", -math.inf)
        sure = (op[0] == "g" and a.low > x) or (op == "ge" and a.low == x)

        def guarded() -> Sql:
            if sure:
                return write()
            known = self.tree(a) if op[0] == "g" else call("ABS", self.value(a))
            return self.case([(self.compare(op, known, x), write())])

        operands = a.operands * (1 if sure else 2) + 1
        return single(Factor(guarded, *ends, a.null or not sure, operands))

    def sqrt(self, a: Number) -> Number:
        """Return √a, NULL of a negative number."""
        ends = math.sqrt(max(a.low, 0.0)), math.sqrt(max(a.high, 0.0))
        return self._within(("ge", 0.0), a, ends, lambda: call("SQRT", self.value(a)))

    def root(self, variance: Number) -> Number:
        """Return a standard error; what is negative is clamped, and NULL: it is written once."""
        if variance.constant:
            return constant(math.sqrt(variance.c) if variance.c >= 0 else math.nan)
        if variance.low >= 0:
            return self.sqrt(variance)
        mark = literal(_NEGATIVE, self.dialect)

        def write() -> Sql:
            known = call(self.dialect.greatest, self.value(variance), mark.copy())
            positive = exp.Nullif(this=known, expression=mark.copy())
            return call("SQRT", call("ABS", positive))

        return single(Factor(write, 0.0, math.inf, null=True, operands=variance.operands + 2))

    def exp(self, a: Number) -> Number:
        """Return eᵃ, NULL beyond its limit; where it vanishes it is about 0."""
        e = self.exponent
        low = a.low >= -e or not self.vanishing or self.dialect.stops
        ends = math.exp(max(a.low, -e)) if low else 0.0, math.exp(min(a.high, e, 709.0))

        def write() -> Sql:
            if not self.vanishing or not self.dialect.stops or a.low >= -e:
                return call("EXP", self.value(a))
            least = literal(-e, self.dialect)
            return call("EXP", call(self.dialect.greatest, self.value(a), least))

        if -e <= a.low and a.high <= e:
            return single(Factor(write, *ends, a.null, a.operands + 1))
        if not self.vanishing:
            return self._within(("le", e), a, ends, write)
        whole = single(Factor(write, *ends, a.null, a.operands + 2))
        return self.where(self.comparison("le", a, constant(e)), whole, constant(math.nan))

    def hyperbolic(self, name: str, a: Number) -> Number:
        """Return sinh, cosh or tanh, of exponentials where the engine lacks it."""
        if name in self.dialect.has:
            domain = None if name == "tanh" else ("le", self.exponent)
            inside = self._within(domain, a, (a.low, a.high), lambda: self.value(a))
            return self.function(name, inside)
        up, down = self.exp(a), self.exp(_scaled(a, -1.0))
        cosh = _scaled(self.add(up, down), 0.5)
        if name == "cosh":
            return cosh
        series, square = constant(1.0), self.mul(a, a)
        for n in (6, 4, 2):  # z·(1 + z²/6·(1 + z²/20·(1 + z²/42))): all digits where |z| < 0.05
            step = _scaled(self.mul(square, series), 1 / (n * (n + 1)))
            series = self.add(constant(1.0), step)
        near = self.comparison("lt", self.abs(a), constant(0.05))
        sinh = self.where(near, self.mul(a, series), _scaled(self.sub(up, down), 0.5))
        return sinh if name == "sinh" else self.div(sinh, cosh)

    def pow(self, a: Number, b: Number) -> Number:
        """Return aᵇ of a number b for a > 0, and 0 for a = 0 and b > 0."""
        exponent = literal(b.c, self.dialect)
        return self._within(
            ("ge" if b.c > 0 else "gt", 0.0),
            a,
            (0.0, math.inf),
            lambda: call("POWER", self.value(a), exponent.copy()),
        )

    def abs(self, a: Number) -> Number:
        """Return |a|."""
        if a.low >= 0:
            return a
        ends = max(0.0, -a.high), max(-a.low, a.high)
        return self._within(None, a, ends, lambda: call("ABS", self.value(a)))

    def sign(self, a: Number) -> Number:
        """Return −1, 0 or 1."""
        one, zero = constant(1.0), constant(0.0)
        below = self.where(self.comparison("lt", a, zero), constant(-1.0), zero)
        return self.where(self.comparison("gt", a, zero), one, below)

    def floor(self, a: Number) -> Number:
        """Return ⌊a⌋; where FLOOR gives a bounded integer, round and step back."""
        name = self.dialect.floor

        def write() -> Sql:
            rounded = call(name, self.value(a))
            if name == "FLOOR":
                return rounded
            above = exp.GT(this=rounded.copy(), expression=self.tree(a))
            less = self._binary(exp.Sub, rounded, literal(1.0, self.dialect))
            return self.case([(above, less)], rounded.copy())

        low, high = (x if math.isinf(x) else float(math.floor(x)) for x in (a.low, a.high))
        return single(Factor(write, low, high, a.null, 3 * a.operands))

    # -- conditions --------------------------------------------------------------------------------

    def comparison(self, op: str, a: Number, b: Number) -> Condition | bool:
        """Return a comparison: decided where the two are apart."""
        held = None if a.null or b.null else _decided(op, a, b)
        if held is not None:
            return held
        kind = getattr(exp, _KINDS[op])

        def write() -> Sql:
            left, right = self.compared(self.tree(a)), self.compared(self.tree(b))
            return kind(this=left, expression=right)

        return Condition(write, a.null or b.null, a.operands + b.operands)

    def connected(self, kind: Any, a: Condition | bool, b: Condition | bool) -> Condition | bool:
        """Return "and" or "or"."""
        ends = kind is exp.Or
        for x, y in ((a, b), (b, a)):
            if isinstance(x, bool):
                return ends if x == ends else y
        assert isinstance(a, Condition) and isinstance(b, Condition)  # noqa: S101, PT018
        write = lambda: exp.Paren(this=kind(this=a.write(), expression=b.write()))  # noqa: E731
        return Condition(write, a.null or b.null, a.operands + b.operands)

    def negated(self, a: Condition | bool) -> Condition | bool:
        """Return "not"."""
        if isinstance(a, bool):
            return not a
        return a._replace(write=lambda: exp.Not(this=exp.Paren(this=a.write())))

    def where(self, test: Condition | bool, a: Number, b: Number) -> Number:
        """Return a where a condition holds, else b; NULL where the condition is."""
        if isinstance(test, bool):
            return a if test else b

        def write() -> Sql:
            yes, no = (test.write(), self.tree(a)), self.tree(b)
            if test.null:
                return self.case([yes, (exp.Not(this=exp.Paren(this=test.write())), no)])
            if isinstance(no, exp.Case) and not no.this:
                further = [(e.this, e.args["true"]) for e in no.args["ifs"]]
                return self.case([yes, *further], no.args.get("default"))
            return self.case([yes], no)

        ends = min(a.low, b.low), max(a.high, b.high)
        operands = 2 * test.operands + a.operands + b.operands
        return single(Factor(write, *ends, test.null or a.null or b.null, operands))

    def extreme(self, op: str, a: Number, b: Number) -> Number:
        """Return the larger or smaller of two; GREATEST and LEAST drop nulls in some engines."""
        held = None if a.null or b.null else _decided(op, a, b)
        if held is not None:
            return a if held else b
        name = self.dialect.greatest if op == "ge" else self.dialect.least
        members = (*_members(a, op), *_members(b, op))
        unsure = [m for m in members if m.null]

        def write() -> Sql:
            result = call(name, *map(self.value, members))
            if not unsure:
                return result
            known = (exp.Is(this=self.value(m), expression=exp.Null()) for m in unsure)
            return self.case([(both(*(exp.Not(this=k) for k in known)), result)])

        choose = max if op == "ge" else min
        ends = choose(a.low, b.low), choose(a.high, b.high)
        operands = sum(m.operands * (2 if m.null else 1) for m in members)
        return single(Factor(write, *ends, bool(unsure), operands, op, members))

    # -- tables ------------------------------------------------------------------------------------

    def call(self, function: Any, *args: Number) -> Number:
        """Return a table at a whole number; other Python functions are refused."""
        if not isinstance(function, Table):
            name = getattr(function, "__name__", repr(function))
            raise TrueupError(
                f"the Python function {name} cannot be written as SQL",
                "write it as a formula, or give its values as a table {k: value}",
            )
        return self.lookup(args[0], function.low, [float(v) for v in function.values[1:-1]])

    def lookup(
        self,
        k: Number,
        low: int,
        values: Sequence[float],
        beyond: tuple[bool, bool] = (False, False),
    ) -> Number:
        """Return the value at a whole number k: a tree of CASE.

        Outside the table it is NULL, or, where ``beyond`` says so, the first and the last value.
        """
        ends = (low, low + len(values) - 1)
        asked = [
            (op, float(end))
            for op, end, known in zip(("ge", "le"), ends, beyond, strict=True)
            if not known
        ]

        def write() -> Sql:
            tree = self._entries(k, low, values)
            if asked:
                conditions = [self.compare(op, self.tree(k), end) for op, end in asked]
                tree = exp.Case(ifs=[exp.If(this=both(*conditions), true=tree)])
            return tree if self.dialect.literal in ("exponent", "point") else self.cast(tree)

        known = [v for v in values if math.isfinite(v)]
        span = (min(known), max(known)) if known else (-math.inf, math.inf)
        null = bool(asked) or len(known) < len(values)
        return single(Factor(write, *span, null, len(values) * (k.operands + 1)))

    def _entries(self, k: Number, first: int, values: Sequence[float]) -> Sql:
        if len(values) == 1:
            finite = math.isfinite(values[0])
            return literal(values[0], self.dialect) if finite else exp.Null()
        step = 1
        while step * _WAYS < len(values):
            step *= _WAYS
        starts = range(0, len(values), step)
        *most, last = [self._entries(k, first + i, values[i : i + step]) for i in starts]
        ifs = [
            exp.If(this=self.compare("lt", self.tree(k), float(first + i)), true=part)
            for i, part in zip(starts[1:], most, strict=True)
        ]
        return exp.Case(ifs=ifs, default=last)


# -- pieces of trees -------------------------------------------------------------------------------


def literal(x: float, dialect: Dialect) -> Sql:
    """Write a finite number so that it reads back as the same double.

    It is a double by itself where the dialect has such literals, a decimal where not.

    Examples
    --------
    >>> from trueup.sql.dialects import DIALECTS
    >>> [literal(-0.1, DIALECTS[d]).sql(d) for d in ("duckdb", "sqlite", "postgres")]
    ['-0.1e0', '-0.1', '-0.1']
    >>> literal(1e16, DIALECTS["snowflake"]).sql("snowflake")
    "CAST('1e16' AS DOUBLE)"
    """
    text = repr(abs(x)).removesuffix(".0").replace("e+", "e")
    if dialect.literal == "text" and "e" in text:
        return exp.cast(exp.Literal.string(f"-{text}" if x < 0 else text), "double")
    if dialect.literal == "exponent" and "e" not in text:
        text += "e0"
    if dialect.literal == "point" and "e" not in text and "." not in text:
        text += ".0"
    number = exp.Literal.number(text)
    return exp.Neg(this=number) if math.copysign(1.0, x) < 0 else number


def both(*conditions: Sql) -> Sql:
    """Write a conjunction."""
    total, *rest = [exp.Paren(this=c) if isinstance(c, exp.Or) else c for c in conditions]
    for condition in rest:
        total = exp.And(this=total, expression=condition)
    return total


def call(name: str, *args: Sql) -> Sql:
    """Write a function under this very name: sqlglot's own may become operators."""
    return exp.Anonymous(this=name, expressions=list(args))


def _is_literal(e: Sql) -> bool:
    return isinstance(e.this if isinstance(e, exp.Neg) else e, exp.Literal)


def _members(a: Number, kind: str) -> tuple[Number, ...]:
    """Return what a number is the sum, the largest or the smallest of."""
    if abs(a.c) != 1 or a.below or list(a.above.values()) != [1]:
        return (a,)
    (factor,) = a.above
    if factor.kind != kind or (a.c < 0 and kind != "add"):
        return (a,)
    return factor.members if a.c > 0 else tuple(_scaled(m, -1.0) for m in factor.members)


def _scaled(a: Number, k: float) -> Number:
    low, high = sorted((_times(a.low, k), _times(a.high, k)))
    return Number(a.c * k, a.above, a.below, low, high)


def _gathered(terms: list[Number]) -> list[Number]:
    """Return terms, like ones added up; c·(x + y) is multiplied out where x is there already."""
    for i, term in enumerate(terms):
        inner = [_scaled(t, term.c) for t in _members(term._replace(c=1.0), "add")]
        others = terms[:i] + terms[i + 1 :]
        if len(inner) > 1 and len(_merged(others + inner)) < len(_merged(others)) + len(inner):
            return _gathered(others + inner)
    return _merged(terms)


def _merged(terms: list[Number]) -> list[Number]:
    found: dict[object, Number] = {}
    for term in terms:
        key = (frozenset(term.above.items()), frozenset(term.below.items()))
        same = found.get(key)
        if same is None or not same.c:
            found[key] = term
        else:
            found[key] = _scaled(same, 1 + term.c / same.c)
    return [term for term in found.values() if term.c or term.null]


def _decided(op: str, a: Number, b: Number) -> bool | None:
    """Return whether a comparison always or never holds; None if it depends."""
    if op in ("gt", "ge"):
        held = _decided("lt" if op == "ge" else "le", a, b)
        return None if held is None else not held
    if op in ("eq", "ne"):
        return op == "ne" if a.high < b.low or a.low > b.high else None
    if a.high < b.low or (op == "le" and a.high == b.low):
        return True
    return False if a.low > b.high or (op == "lt" and a.low == b.high) else None


def _no_series(coefficients: Sequence[float], _: Number) -> Number:
    raise TrueupError(
        f"an extension of degree {len(coefficients) - 1} has no SQL",
        'extension="optimal" has the smallest variance and is shorter',
    )


_HALF = 1.5707963267948968  # just above π/2
_IMAGES = {
    **dict.fromkeys(["sin", "cos", "tanh"], (-1.0, 1.0)),
    **dict.fromkeys(["atan", "asin"], (-_HALF, _HALF)),
    "cosh": (1.0, math.inf),
    "acos": (0.0, 2 * _HALF),
    "acosh": (0.0, math.inf),
}
"""Where the values of a function lie."""

_DOMAINS = {
    **dict.fromkeys(["asin", "acos"], ("le", 1.0)),
    "atanh": ("lt", 1.0),
    "acosh": ("ge", 1.0),
    "log": ("gt", 0.0),
}
"""Where a function is defined: "le" and "lt" are said of the size."""
