"""What the engines differ in, as data.

Doubles are IEEE 754 everywhere, but what happens beyond their range is not: some engines give
infinities and NaN, some NULL, some stop the query. See :class:`Dialect`.
"""

from __future__ import annotations

import dataclasses
import difflib
from typing import Literal

from trueup.errors import TrueupError

_HYPERBOLIC = frozenset({"sinh", "cosh", "tanh", "asinh", "acosh", "atanh"})
_PLAIN = frozenset({"abs", "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"})


@dataclasses.dataclass(frozen=True)
class Dialect:
    """One SQL engine.

    Parameters
    ----------
    name
        As sqlglot knows it.
    stops
        Whether a step beyond the range of doubles may end the query; else it is infinite.
    underflow
        Whether a product or quotient that rounds to zero ends it, too.
    has
        Functions of the grammar that the engine has; others are refused by name.
    literal
        How a double is written: ``point`` (1.0 is a double), ``exponent`` (1e0 is one, 1.0 is a
        decimal), ``decimal`` (both are decimals that turn into doubles beside one), ``text`` (so
        are short ones; only CAST('1e-1' AS DOUBLE) is sure).
    casts
        Whether columns are cast to doubles where they are compared, too: columns of text would be
        compared as texts, or decimals not with doubles.
    double
        The type of doubles where sqlglot's name is longer, or a function that turns into them.
    greatest, least
        The larger and the smaller of two.
    floor
        A function that rounds doubles to whole doubles.
    finite
        A function that is true of finite numbers, where a comparison may let NaN through: DuckDB
        leaves it out where a Parquet file says that all values pass, which is not said of NaN.
    """

    name: str
    stops: bool = False
    underflow: bool = False
    has: frozenset[str] = _PLAIN | _HYPERBOLIC
    literal: Literal["point", "exponent", "decimal", "text"] = "exponent"
    casts: bool = False
    double: str = ""
    greatest: str = "GREATEST"
    least: str = "LEAST"
    floor: str = "FLOOR"
    finite: str = ""


_DIALECTS = (
    Dialect("duckdb", finite="ISFINITE"),
    Dialect("sqlite", literal="point", casts=True, greatest="MAX", least="MIN"),
    Dialect("postgres", stops=True, underflow=True, literal="decimal", double="FLOAT8"),
    Dialect("spark", floor="RINT"),
    Dialect("bigquery", stops=True, literal="point"),
    Dialect("snowflake", stops=True, literal="text"),
    Dialect("trino", has=_PLAIN | {"cosh", "tanh"}),
    Dialect("clickhouse", literal="point", casts=True, double="toFloat64"),
    Dialect("mysql", stops=True, has=_PLAIN),
    Dialect("redshift", stops=True, underflow=True, has=_PLAIN, literal="decimal", double="FLOAT8"),
    Dialect("tsql", stops=True, has=_PLAIN),
)
DIALECTS = {dialect.name: dialect for dialect in _DIALECTS}
"""The engines that SQL is written for."""

_ALIASES = {"postgresql": "postgres", "databricks": "spark", "mssql": "tsql"}


def dialect_of(name: object) -> Dialect:
    """Return a dialect by its name.

    Examples
    --------
    >>> dialect_of("PostgreSQL").name
    'postgres'
    """
    if isinstance(name, Dialect):
        return name
    known = _ALIASES.get(str(name).lower(), str(name).lower())
    if known not in DIALECTS:
        words = sorted({*DIALECTS, *_ALIASES})
        near = difflib.get_close_matches(known, words, 1)
        raise TrueupError(
            f"{name!r} is no SQL dialect that is known here",
            f"did you mean {near[0]}?" if near else f"known are {', '.join(words)}",
        )
    return DIALECTS[known]
