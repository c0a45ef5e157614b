"""sqlglot's expressions, built with the parentheses and types that are meant."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from trueup.errors import TrueupError
from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.sql.dialects import Dialect

exp: Any = optional("sqlglot", "tables", "writing SQL").exp
Sql: TypeAlias = Any
"""A sqlglot expression; every one handed out is new, so that it can be put into a tree."""


def number(x: float, dialect: Dialect) -> Sql:
    """Return a finite double as a literal that reads back as the same double.

    Examples
    --------
    >>> from trueup.sql.dialects import DIALECTS
    >>> number(-0.1, DIALECTS["duckdb"]).sql("duckdb")
    '-1e-1'
    >>> number(1e16, DIALECTS["snowflake"]).sql("snowflake")
    "CAST('1e16' AS DOUBLE)"
    """
    text = _exponential(abs(float(x)))
    literal = exp.Literal.number(text)
    if dialect.literal == "text":
        literal = exp.cast(exp.Literal.string(text), "double")
    return exp.Neg(this=literal) if math.copysign(1.0, x) < 0 else literal


def _exponential(x: float) -> str:
    """Return the shortest text with an exponent that reads back as x."""
    plain = repr(x).removesuffix(".0").replace("e+", "e")
    if "e" in plain:
        return plain
    _, digits, power = Decimal(repr(x)).normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    exponent = int(power) + len(rest)
    return min(f"{plain}e0", f"{first}.{rest}e{exponent}".replace(".e", "e"), key=len)


def typed(x: float, dialect: Dialect) -> Sql:
    """Return a double where no other operand says that it is one; what is not finite is NULL."""
    if not math.isfinite(x):
        return exp.cast(exp.Null(), "double")
    literal = number(x, dialect)
    return exp.cast(literal, "double") if dialect.literal == "decimal" else literal


def infinity(dialect: Dialect, sign: int = 1) -> Sql:
    """Return ±∞."""
    if dialect.infinity[0].isdigit():
        literal = exp.Literal.number(dialect.infinity)
        return exp.Neg(this=literal) if sign < 0 else literal
    minus = "-" if sign < 0 else ""
    return exp.cast(exp.Literal.string(minus + dialect.infinity), "double")


def column(name: object, dialect: Dialect) -> Sql:
    """Return a column, quoted, as a double; a sequence of names is a qualified one."""
    path = (name,) if isinstance(name, str) else name
    if not (
        isinstance(path, (tuple, list))
        and 1 <= len(path) <= 4
        and all(isinstance(p, str) and p and "\0" not in p for p in path)
    ):
        raise TrueupError(
            f"a column is a name, or a tuple of names such as ('t', 'n'), got {name!r}",
            "give the name as it is in the table, without quotes",
        )
    if dialect.name == "bigquery" and any("." in p for p in path):
        raise TrueupError(
            f"in BigQuery a name cannot hold a dot, got {name!r}",
            "give a qualified column as a tuple, e.g. ('t', 'n')",
        )
    return exp.cast(exp.column(*reversed(path), quoted=True), "double")


def _wrapped(e: Sql, *kinds: type) -> Sql:
    return exp.Paren(this=e) if isinstance(e, (exp.Neg, *kinds)) else e


def add(a: Sql, b: Sql) -> Sql:
    """Return a + b."""
    return exp.Add(this=a, expression=_wrapped(b, exp.Add, exp.Sub))


def sub(a: Sql, b: Sql) -> Sql:
    """Return a − b."""
    return exp.Sub(this=a, expression=_wrapped(b, exp.Add, exp.Sub))


def mul(a: Sql, b: Sql) -> Sql:
    """Return a·b."""
    left = _wrapped(a, exp.Add, exp.Sub)
    return exp.Mul(this=left, expression=_wrapped(b, exp.Add, exp.Sub, exp.Mul, exp.Div))


def div(a: Sql, b: Sql, *, zero: bool) -> Sql:
    """Return a/b; NULL if b is zero, where it may be."""
    if zero:
        b = exp.Nullif(this=b, expression=exp.Literal.number("0e0"))
    left = _wrapped(a, exp.Add, exp.Sub)
    right = _wrapped(b, exp.Add, exp.Sub, exp.Mul, exp.Div)
    return exp.Div(this=left, expression=right, typed=True)


def compare(op: str, a: Sql, b: Sql) -> Sql:
    """Return a comparison."""
    kinds = {"lt": exp.LT, "le": exp.LTE, "gt": exp.GT, "ge": exp.GTE, "eq": exp.EQ, "ne": exp.NEQ}
    return kinds[op](this=a, expression=b)


def case(branches: Sequence[tuple[Sql, Sql]], otherwise: Sql | None = None) -> Sql:
    """Return CASE WHEN … THEN … ELSE … END."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=otherwise)


def function(name: str, *args: Sql) -> Sql:
    """Return a function of doubles, under this very name: sqlglot's own may become operators."""
    return exp.Anonymous(this=name, expressions=list(args))


def between(x: Sql, low: Sql, high: Sql) -> Sql:
    """Return low ≤ x ≤ high."""
    return exp.Between(this=x, low=low, high=high)


def both(*conditions: Sql) -> Sql:
    """Return the conjunction."""
    total, *rest = [exp.Paren(this=c) if isinstance(c, exp.Or) else c for c in conditions]
    for condition in rest:
        total = exp.And(this=total, expression=condition)
    return total


def either(a: Sql, b: Sql) -> Sql:
    """Return the disjunction."""
    return exp.Or(this=a, expression=b)
