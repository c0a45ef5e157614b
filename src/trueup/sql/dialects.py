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
    overflow
        What a step beyond the range of doubles does: ``infinite`` (IEEE infinities, no error) or
        ``stops`` (an error, or an engine not known well enough).
    underflow
        Whether a product that rounds to zero is an error.
    has
        Functions of the grammar that the engine has; one that is not stated is composed from others
        or refused.
    literal
        How a double is written: ``point`` (1.0 is a double), ``exponent`` (1e0 is one, 1.0 is a
        decimal), ``decimal`` (both are decimals that turn into doubles beside one), ``text`` (so
        are short ones; only CAST('1e-1' AS DOUBLE) is sure).
    casts
        Where columns are cast to doubles: ``beside`` what is no double only, or in ``comparisons``
        too (where columns of text are compared as texts, or decimals not with doubles).
    double
        The type of doubles, where not sqlglot's own, or a function that casts to it.
    greatest, least
        The larger and the smaller of two.
    floor
        A function that rounds doubles to whole doubles.
    ln
        The natural logarithm.
    finite
        A function that is true of finite numbers, where a comparison may let NaN through: DuckDB
        leaves it out where a Parquet file says that all values pass, which is not said of NaN.
    """

    name: str
    overflow: Literal["infinite", "stops"]
    underflow: bool = False
    has: frozenset[str] = _PLAIN | _HYPERBOLIC
    literal: Literal["point", "exponent", "decimal", "text"] = "exponent"
    casts: Literal["beside", "comparisons"] = "beside"
    double: str = ""
    greatest: str = "GREATEST"
    least: str = "LEAST"
    floor: str = "FLOOR"
    ln: str = "LN"
    finite: str = ""


_DIALECTS = (
    Dialect("duckdb", "infinite", finite="ISFINITE"),
    Dialect(
        *("sqlite", "infinite"), literal="point", casts="comparisons", greatest="MAX", least="MIN"
    ),
    Dialect("postgres", "stops", underflow=True, literal="decimal", double="FLOAT8"),
    Dialect("spark", "infinite", floor="RINT"),
    Dialect("bigquery", "stops", literal="point"),
    Dialect("snowflake", "stops", literal="text"),
    Dialect("trino", "infinite", has=_PLAIN | {"cosh", "tanh"}),
    Dialect("clickhouse", "infinite", literal="point", casts="comparisons", double="toFloat64()"),
    Dialect("mysql", "stops", has=_PLAIN),
    Dialect(
        *("redshift", "stops"),
        underflow=True,
        has=_PLAIN,
        literal="decimal",
        double="FLOAT8",
    ),
    Dialect("tsql", "stops", has=_PLAIN, ln="LOG"),
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
