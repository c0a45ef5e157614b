"""A tape as one SQL expression: a table of operations over sqlglot trees, every step a double.

SQL has no variables, so a step that is read twice is written twice. In memory its tree is one and
the same, and the text is written once its length is known. An operation is one of doubles as soon
as one operand is: a column is cast only where nothing beside it is a double. Where an operation is
undefined the result is NULL.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, FUNCTIONS
from trueup.kernels.limits import Limits, Range, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.sql.dialects import Dialect

exp: Any = optional("sqlglot", "tables", "writing SQL").exp
Sql: TypeAlias = Any
"""A sqlglot tree; it may be a part of several others."""

_SHORT = 3  # nodes of a factor up to which its square is a product: POWER takes ten times as long
_WAYS = 8  # branches of one CASE in a table
_NEGATIVE = -1e-300  # stands for all negative radicands
_KINDS = {"lt": "LT", "le": "LTE", "gt": "GT", "ge": "GTE", "eq": "EQ", "ne": "NEQ"}

_DOMAINS = {
    **dict.fromkeys(["asin", "acos"], ("le", 1.0)),
    "atanh": ("lt", 1.0),
    "acosh": ("ge", 1.0),
    "log": ("gt", 0.0),
    "sqrt": ("ge", 0.0),
}
"""Where a function is defined: "le" and "lt" are said of the size."""


class Number(NamedTuple):
    """A tree, and where its values lie within the limits."""

    tree: Sql
    range: Range = Range()


class Arithmetic:
    """The operations in one dialect, by their names in ``table``."""

    def __init__(self, dialect: Dialect, given: Limits) -> None:
        self.dialect, self.rules = dialect, rules(given)
        self.one = literal(1.0, dialect)
        written: dict[str, Callable[..., Any]] = {
            **{name: partial(self.function, name) for name in FUNCTIONS},
            "const": self.constant,
            "add": lambda a, b: self.binary(exp.Add, a.tree, b.tree),
            "sub": lambda a, b: self.binary(exp.Sub, a.tree, b.tree),
            "mul": self.mul,
            "div": self.div,
            "pow": self.pow,
            "sign": self.sign,
            "floor": self.floor,
            "max": partial(self.extreme, "ge"),
            "min": partial(self.extreme, "le"),
            "laguerre": _no_series,
            "call": self.call,
        }
        self.table: dict[str, Callable[..., Any]] = {
            **{name: partial(self.number, name, write) for name, write in written.items()},
            **{name: partial(self.comparison, name) for name in COMPARISONS},
            "truth": bool,
            "where": self.where,
            "and": partial(self.connected, exp.and_),
            "or": partial(self.connected, exp.or_),
            "not": self.negated,
        }

    def number(self, op: str, write: Callable[..., Sql], *args: Any) -> Number:
        """Return the result of an operation."""
        ranges = (a.range if isinstance(a, Number) else a for a in args)
        return Number(write(*args), self.rules[op](*ranges))

    def constant(self, x: float) -> Sql:
        """Write a number; what is not finite is NULL."""
        return literal(x, self.dialect) if math.isfinite(x) else exp.Null()

    # -- products and powers -----------------------------------------------------------------------

    def mul(self, a: Number, b: Number) -> Sql:
        """Write a·b; times 1/x is written as divided by x."""
        if a.tree is b.tree:
            return self.square(a.tree)
        for factor, other in ((a.tree, b.tree), (b.tree, a.tree)):
            below = _divisors(other)
            if below is not None:
                return self.divided(factor, below)
        return self.binary(exp.Mul, a.tree, b.tree)

    def square(self, a: Sql) -> Sql:
        """Write a², long factors once."""
        below = _divisors(a)
        if below:
            twice = ([x, x] if nodes(_bare(x)) == 1 else [self.square(x.unnest())] for x in below)
            return self.divided(self.one, [x for squared in twice for x in squared])
        if nodes(a) > _SHORT:
            return self.power(a, literal(2.0, self.dialect))
        return self.binary(exp.Mul, a, a)

    def divided(self, a: Sql, below: Sequence[Sql]) -> Sql:
        """Write a quotient, divided step by step."""
        return reduce(partial(self.binary, exp.Div), below, a)

    def div(self, a: Number, b: Number) -> Sql:
        """Write a/b; NULL where b is zero."""
        below = b.tree
        if b.range.low <= 0 <= b.range.high:
            zero = exp.Literal.number("0")
            below = exp.Nullif(this=self.double(below), expression=zero)
        return self.binary(exp.Div, a.tree, below)

    def power(self, a: Sql, b: Sql) -> Sql:
        """Write aᵇ."""
        return call("POWER", self.double(a), b if _is_literal(b) else self.double(b))

    def binary(self, kind: Any, a: Sql, b: Sql) -> Sql:
        """Write an operation; at least one operand is a double."""
        if self.is_double(a):
            b = _bare(b)
        elif self.is_double(b):
            a = _bare(a)
        else:
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
        if self.is_double(e):
            return e
        if self.dialect.double == "toFloat64":
            return call("toFloat64", e)
        if self.dialect.double:
            named = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=self.dialect.double)
            return exp.Cast(this=e, to=named)
        return exp.Cast(this=e, to=exp.DataType.build("double"))

    def compared(self, e: Sql) -> Sql:
        """Write an operand of a comparison."""
        return self.double(e) if self.dialect.casts and isinstance(e, exp.Column) else e

    def case(self, branches: Sequence[tuple[Sql, Sql]], otherwise: Sql | None = None) -> Sql:
        """Write CASE WHEN … THEN … ELSE … END of doubles."""
        values = [v for _, v in branches] + ([] if otherwise is None else [otherwise])
        values = [self.double(v) if isinstance(v, exp.Column) else v for v in values]
        if not any(map(self.is_double, values)):
            values[0] = self.double(values[0])
        ifs = [exp.If(this=c, true=v) for (c, _), v in zip(branches, values, strict=False)]
        return exp.Case(ifs=ifs, default=None if otherwise is None else values[-1])

    # -- functions ---------------------------------------------------------------------------------

    def function(self, name: str, a: Number) -> Sql:
        """Write a function of one number, NULL where it is undefined."""
        if name == "abs" and a.range.low >= 0:
            return a.tree
        if name not in self.dialect.has:
            raise TrueupError(
                f"{self.dialect.name} has no function {name}",
                "compute this estimator in another engine, or in Python",
            )
        x = self.double(a.tree)
        tree = exp.Ln(this=x) if name == "log" else call(name.upper(), x)
        if name not in _DOMAINS:
            return tree
        op, end = _DOMAINS[name]
        return self.within(op, a if op[0] == "g" else self.table["abs"](a), end, tree)

    def within(self, op: str, a: Number, end: float, tree: Sql) -> Sql:
        """Write a tree where a number is on one side of an end, else NULL."""
        if a.range.low > end or (a.range.low == end and op == "ge"):
            return tree
        return self.case([(self.comparison(op, a._replace(range=Range()), self.value(end)), tree)])

    def value(self, x: float) -> Number:
        """Return a number."""
        return self.number("const", self.constant, x)

    def root(self, a: Number) -> Sql:
        """Write √a; what is negative becomes one number, and that NULL: a is written once."""
        if a.range.low >= 0:
            return self.function("sqrt", a)
        negative = literal(_NEGATIVE, self.dialect)
        known = call(self.dialect.greatest, self.double(a.tree), negative)
        return call("SQRT", call("ABS", exp.Nullif(this=known, expression=negative)))

    def pow(self, a: Number, b: Number) -> Sql:
        """Write aᵇ for a > 0, and 0 for a = 0 and a number b > 0."""
        op = "ge" if 0 < b.range.low == b.range.high else "gt"
        return self.within(op, a, 0.0, self.power(a.tree, b.tree))

    def sign(self, a: Number) -> Sql:
        """Write −1, 0 or 1."""
        zero = self.value(0.0)
        below = self.where(self.comparison("lt", a, zero), self.value(-1.0), zero)
        return self.where(self.comparison("gt", a, zero), self.value(1.0), below).tree

    def floor(self, a: Number) -> Sql:
        """Write ⌊a⌋; where FLOOR gives a bounded integer, round and step back."""
        name = self.dialect.floor
        tree = call(name, self.double(a.tree))
        if name == "FLOOR":
            return tree
        less = self.binary(exp.Sub, tree, self.one)
        return self.case([(exp.GT(this=tree, expression=a.tree), less)], tree)

    # -- conditions --------------------------------------------------------------------------------

    def comparison(self, op: str, a: Number, b: Number) -> Sql | bool:
        """Return a comparison: decided where the two are apart."""
        if not (may_be_null(a.tree) or may_be_null(b.tree)):
            held = _decided(op, a.range, b.range)
            if held is not None:
                return held
        kind = getattr(exp, _KINDS[op])
        return kind(this=self.compared(a.tree), expression=self.compared(b.tree))

    def connected(self, join: Any, a: Sql | bool, b: Sql | bool) -> Sql | bool:
        """Return "and" or "or"."""
        for x, y in ((a, b), (b, a)):
            if isinstance(x, bool):
                return x if x == (join is exp.or_) else y
        return join(a, b, copy=False)

    def negated(self, a: Sql | bool) -> Sql | bool:
        """Return "not"."""
        return not a if isinstance(a, bool) else exp.Not(this=exp.Paren(this=a))

    def where(self, test: Sql | bool, a: Number, b: Number) -> Number:
        """Return a where a condition holds, else b; NULL where the condition is."""
        if isinstance(test, bool):
            return a if test else b
        branches, otherwise = [(test, a.tree)], b.tree
        if may_be_null(test):
            branches, otherwise = [*branches, (self.negated(test), b.tree)], None
        elif isinstance(otherwise, exp.Null):
            otherwise = None
        elif isinstance(otherwise, exp.Case):
            branches += [(e.this, e.args["true"]) for e in otherwise.args["ifs"]]
            otherwise = otherwise.args.get("default")
        return Number(self.case(branches, otherwise), self.rules["where"](test, a.range, b.range))

    def extreme(self, op: str, a: Number, b: Number) -> Sql:
        """Write the larger or smaller of two; GREATEST and LEAST drop nulls in some engines."""
        test = self.comparison(op, a, b)
        if isinstance(test, bool):
            return self.where(test, a, b).tree
        name = self.dialect.greatest if op == "ge" else self.dialect.least
        members = [self.double(m) for x in (a, b) for m in _members(x.tree, name)]
        tree = call(name, *members)
        unsure = [exp.Is(this=m, expression=exp.Null()) for m in members if may_be_null(m)]
        if unsure:
            known = exp.and_(*(exp.Not(this=null) for null in unsure), copy=False)
            tree = self.case([(known, tree)])
        tree.meta["extreme"] = name
        return tree

    # -- tables ------------------------------------------------------------------------------------

    def call(self, function: Any, *args: Number) -> Sql:
        """Write a table at a whole number; other Python functions are refused."""
        if not isinstance(function, Table):
            name = getattr(function, "__name__", repr(function))
            raise TrueupError(
                f"the Python function {name} cannot be written as SQL",
                "write it as a formula, or give its values as a table {k: value}",
            )
        values = function.values.tolist()
        while len(values) > 1 and values[-1] == values[-2]:
            values.pop()
        return self.entries(args[0].tree, function.low - 1, values)

    def entries(self, k: Sql, first: int, values: Sequence[float]) -> Sql:
        """Write the values at ``first`` and below, at the next whole numbers, and beyond."""
        if len(values) == 1:
            return self.constant(values[0])
        step = 1
        while step * _WAYS < len(values):
            step *= _WAYS
        starts = range(0, len(values), step)
        *most, last = [self.entries(k, first + i, values[i : i + step]) for i in starts]
        tests = [self.comparison("lt", Number(k), self.value(float(first + i))) for i in starts[1:]]
        return self.case(list(zip(tests, most, strict=True)), last)


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


def call(name: str, *args: Sql) -> Sql:
    """Write a function under this very name: sqlglot's own may become operators."""
    return exp.Anonymous(this=name, expressions=list(args))


def nodes(tree: Sql) -> int:
    """Return how many operations, columns and numbers will be written."""
    if "nodes" not in tree.meta:  # counted once, however often the tree is a part of others
        leaf = isinstance(tree, (exp.Column, exp.Literal))
        parts = 0 if leaf else sum(map(nodes, tree.iter_expressions()))
        tree.meta["nodes"] = parts + (not isinstance(tree, (exp.Paren, exp.DataType)))
    return int(tree.meta["nodes"])


def may_be_null(tree: Sql) -> bool:
    """Whether a tree may be NULL within the limits."""
    if "null" not in tree.meta:
        open_ended = isinstance(tree, exp.Case) and tree.args.get("default") is None
        null = open_ended or isinstance(tree, (exp.Null, exp.Nullif))
        tree.meta["null"] = null or any(map(may_be_null, tree.iter_expressions()))
    return bool(tree.meta["null"])


def _bare(e: Sql) -> Sql:
    """Return a column without its cast, which it does not need beside a double."""
    return e.this if isinstance(e, exp.Cast) and isinstance(e.this, exp.Column) else e


def _is_literal(e: Sql) -> bool:
    return isinstance(e.this if isinstance(e, exp.Neg) else e, exp.Literal)


def _divisors(tree: Sql) -> list[Sql] | None:
    """Return what 1 is divided by, one after the other; None if a tree is something else."""
    below: list[Sql] = []
    while isinstance(tree, exp.Div):
        below.insert(0, tree.expression)
        tree = tree.this
    is_one = isinstance(tree, exp.Literal) and not tree.is_string and float(tree.name) == 1
    return below if is_one else None


def _members(tree: Sql, name: str) -> list[Sql]:
    """Return the operands of an extreme under the same name, a list of one of other trees."""
    if tree.meta.get("extreme") != name:
        return [tree]
    inner = tree.args["ifs"][0].args["true"] if isinstance(tree, exp.Case) else tree
    return list(inner.expressions)


def _decided(op: str, a: Range, b: Range) -> bool | None:
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
