"""sqlglot's expressions of doubles, with the parentheses, types and casts that are meant.

An operation is one of doubles as soon as one operand is a double, in every engine. So a column is
cast only where nothing beside it is one, and a number is written plainly, as 2, beside a double.
"""

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

_SINGLE = 2**24  # whole numbers up to here are the same in single precision
_DIGITS = 15  # decimals of so many digits turn into the double that is meant by one division


def literal(x: float) -> Sql:
    """Return a number whose form is chosen where it is used: what stands beside it matters."""
    return _signed(_shortest(abs(float(x))), x)


def number(x: float, dialect: Dialect) -> Sql:
    """Return a finite double as a literal that reads back as the same double.

    It is a double by itself where the dialect has such literals, a decimal where not.

    Examples
    --------
    >>> from trueup.sql.dialects import DIALECTS
    >>> [number(-0.1, DIALECTS[d]).sql(d) for d in ("duckdb", "sqlite", "postgres")]
    ['-0.1e0', '-0.1', '-0.1']
    >>> number(1e16, DIALECTS["snowflake"]).sql("snowflake")
    "CAST('1e16' AS DOUBLE)"
    """
    text = _shortest(abs(float(x)))
    if dialect.literal == "text" and not _is_short(text):
        return exp.cast(exp.Literal.string(f"-{text}" if _is_negative(x) else text), "double")
    if dialect.literal == "exponent" and "e" not in text:
        text += "e0"
    if dialect.literal == "point" and "e" not in text and "." not in text:
        text += ".0"
    return _signed(text, x)


def beside(x: float, dialect: Dialect) -> Sql:
    """Return a finite double beside an operand that is one: 2 and 0.5 are then the same doubles.

    Examples
    --------
    >>> from trueup.sql.dialects import DIALECTS
    >>> [beside(x, DIALECTS["duckdb"]).sql("duckdb") for x in (2, 0.1, 1 / 3)]
    ['2', '0.1', '0.3333333333333333e0']
    """
    text = _shortest(abs(float(x)))
    exact = _is_short(text) or (dialect.literal in ("decimal", "text") and "e" not in text)
    return _signed(text, x) if exact else number(x, dialect)


def _signed(text: str, x: float) -> Sql:
    literal = exp.Literal.number(text)
    return exp.Neg(this=literal) if _is_negative(x) else literal


def _is_negative(x: float) -> bool:
    return math.copysign(1.0, x) < 0


def _is_short(text: str) -> bool:
    return "e" not in text and len(text.replace(".", "").lstrip("0")) <= _DIGITS


def _shortest(x: float) -> str:
    """Return the shortest text that reads back as x."""
    plain = repr(x).removesuffix(".0").replace("e+", "e")
    if "e" not in plain and len(plain) <= 2 * _DIGITS:
        return min(plain, _exponential(x), key=lambda text: len(text) - 2 * ("e" not in text))
    return _exponential(x)


def _exponential(x: float) -> str:
    _, digits, power = Decimal(repr(x)).normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{first}.{rest}e{int(power) + len(rest)}".replace(".e", "e")


def typed(x: float, dialect: Dialect) -> Sql:
    """Return a double where no other operand says that it is one; what is not finite is NULL."""
    if not math.isfinite(x):
        return cast(exp.Null(), dialect) if not dialect.double.endswith("()") else exp.Null()
    return as_double(literal(x), dialect)


def column(name: object, dialect: Dialect) -> Sql:
    """Return a column, quoted; a sequence of names is a qualified one."""
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
    return exp.column(*reversed(path), quoted=True)


# -- doubles -----------------------------------------------------------------------------------


def value_of(e: Sql) -> float | None:
    """Return the number that a literal is; None for anything else."""
    if isinstance(e, exp.Neg) and isinstance(e.this, exp.Literal):
        return -float(e.this.this)
    return float(e.this) if isinstance(e, exp.Literal) and not e.is_string else None


def is_double(e: Sql, dialect: Dialect) -> bool:
    """Whether an expression is a double by itself, and not only beside one."""
    literal = e.this if isinstance(e, exp.Neg) else e
    if isinstance(literal, exp.Literal):
        marks = {"exponent": "e", "point": "e."}.get(dialect.literal, "")
        return any(mark in literal.this for mark in marks)
    return not isinstance(literal, exp.Column)


def as_double(e: Sql, dialect: Dialect) -> Sql:
    """Return an expression that is a double by itself."""
    if is_double(e, dialect):
        return e
    x = value_of(e)
    if x is not None and dialect.literal in ("exponent", "point"):
        return number(x, dialect)
    if x is not None:
        e = number(x, dialect)
    if dialect.double.endswith("()"):
        return function(dialect.double[:-2], e)
    return e if isinstance(e, exp.Cast) else cast(e, dialect)


def cast(e: Sql, dialect: Dialect) -> Sql:
    """Return CAST(e AS DOUBLE), under the name that the type has."""
    if not dialect.double:
        return exp.cast(e, "double")
    named = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=dialect.double)
    return exp.Cast(this=e, to=named)


def _pair(a: Sql, b: Sql, dialect: Dialect) -> tuple[Sql, Sql]:
    """Return two operands of which at least one is a double; a number beside one is plain."""
    x, y = value_of(a), value_of(b)
    if x is not None:
        a = _number_beside(x, b, dialect)
    if y is not None:
        b = _number_beside(y, a, dialect)
    if is_double(a, dialect) or is_double(b, dialect):
        return a, b
    return (a, as_double(b, dialect)) if x is not None else (as_double(a, dialect), b)


def _number_beside(x: float, other: Sql, dialect: Dialect) -> Sql:
    return beside(x, dialect) if is_double(other, dialect) else number(x, dialect)


def _wrapped(e: Sql, *kinds: type) -> Sql:
    return exp.Paren(this=e) if isinstance(e, (exp.Neg, *kinds)) else e


def add(a: Sql, b: Sql, dialect: Dialect) -> Sql:
    """Return a + b."""
    a, b = _pair(a, b, dialect)
    return exp.Add(this=a, expression=_wrapped(b, exp.Add, exp.Sub))


def sub(a: Sql, b: Sql, dialect: Dialect) -> Sql:
    """Return a − b."""
    a, b = _pair(a, b, dialect)
    return exp.Sub(this=a, expression=_wrapped(b, exp.Add, exp.Sub))


def mul(a: Sql, b: Sql, dialect: Dialect) -> Sql:
    """Return a·b."""
    a, b = _pair(a, b, dialect)
    left = _wrapped(a, exp.Add, exp.Sub)
    return exp.Mul(this=left, expression=_wrapped(b, exp.Add, exp.Sub, exp.Mul, exp.Div))


def div(a: Sql, b: Sql, dialect: Dialect, *, zero: bool) -> Sql:
    """Return a/b; NULL if b is zero, where it may be."""
    if zero:
        b = exp.Nullif(this=as_double(b, dialect), expression=exp.Literal.number("0"))
    a, b = _pair(a, b, dialect)
    left = _wrapped(a, exp.Add, exp.Sub)
    right = _wrapped(b, exp.Add, exp.Sub, exp.Mul, exp.Div)
    return exp.Div(this=left, expression=right, typed=True)


def negative(a: Sql, dialect: Dialect) -> Sql:
    """Return −a."""
    a = as_double(a, dialect)
    plain = isinstance(a, (exp.Cast, exp.Func, exp.Paren, exp.Case))
    return exp.Neg(this=a if plain else exp.Paren(this=a))


def compare(op: str, a: Sql, b: Sql, dialect: Dialect) -> Sql:
    """Return a comparison."""
    kinds = {"lt": exp.LT, "le": exp.LTE, "gt": exp.GT, "ge": exp.GTE, "eq": exp.EQ, "ne": exp.NEQ}
    return kinds[op](this=_compared(a, dialect), expression=_compared(b, dialect))


def between(x: Sql, low: float, high: float, dialect: Dialect) -> Sql:
    """Return low ≤ x ≤ high."""
    first, last = (_compared(literal(end), dialect) for end in (low, high))
    return exp.Between(this=_compared(x, dialect), low=first, high=last)


def _compared(e: Sql, dialect: Dialect) -> Sql:
    """Return what is compared: columns as they are, unless the engine would compare texts."""
    if isinstance(e, exp.Column):
        return e if dialect.casts == "beside" else as_double(e, dialect)
    x = value_of(e)
    whole = x is not None and x == int(x) and abs(x) <= _SINGLE
    if x is None:
        return e
    return _signed(str(abs(int(x))), x) if whole else number(x, dialect)


def case(branches: Sequence[tuple[Sql, Sql]], otherwise: Sql | None, dialect: Dialect) -> Sql:
    """Return CASE WHEN … THEN … ELSE … END of doubles."""
    values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
    known = any(is_double(v, dialect) for v in values) and dialect.literal in ("decimal", "text")
    values = [_branch(v, dialect, known=known) for v in values]
    conditions = [condition for condition, _ in branches]
    ifs = [exp.If(this=c, true=v) for c, v in zip(conditions, values, strict=False)]
    return exp.Case(ifs=ifs, default=None if otherwise is None else values[-1])


def _branch(value: Sql, dialect: Dialect, *, known: bool) -> Sql:
    """Return one of the values of a CASE, of which another is ``known`` to be a double."""
    x = value_of(value)
    return beside(x, dialect) if known and x is not None else as_double(value, dialect)


def function(name: str, *args: Sql) -> Sql:
    """Return a function, under this very name: sqlglot's own may become operators."""
    return exp.Anonymous(this=name, expressions=list(args))


def of_double(name: str, a: Sql, dialect: Dialect) -> Sql:
    """Return a function of one double."""
    return function(name, as_double(a, dialect))


def power(a: Sql, n: float, dialect: Dialect) -> Sql:
    """Return aⁿ for a number n."""
    return function("POWER", as_double(a, dialect), beside(n, dialect))


def extreme(name: str, a: Sql, b: Sql, dialect: Dialect) -> Sql:
    """Return GREATEST or LEAST of two that are not NULL; of more where the first is one itself."""
    a, b = _pair(a, b, dialect)
    if dialect.casts != "beside":
        a, b = as_double(a, dialect), as_double(b, dialect)
    same = isinstance(a, exp.Anonymous) and a.name == name
    return function(name, *(a.expressions if same else [a]), b)


def both(*conditions: Sql) -> Sql:
    """Return the conjunction."""
    total, *rest = [exp.Paren(this=c) if isinstance(c, exp.Or) else c for c in conditions]
    for condition in rest:
        total = exp.And(this=total, expression=condition)
    return total


def either(a: Sql, b: Sql) -> Sql:
    """Return the disjunction."""
    return exp.Or(this=a, expression=b)
