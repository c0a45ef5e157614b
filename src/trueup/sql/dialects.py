"""What the engines differ in, as data.

Doubles are IEEE 754 everywhere, but what happens beyond their range is not: some engines give
infinities and NaN, some NULL, some stop the query. See :class:`Dialect`.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from trueup.errors import TrueupError

_HYPERBOLIC = frozenset({"sinh", "cosh", "tanh", "asinh", "acosh", "atanh"})


@dataclasses.dataclass(frozen=True)
class Dialect:
    """One SQL engine.

    Parameters
    ----------
    name
        As sqlglot knows it.
    overflow
        What a step beyond the range of doubles does: ``infinite`` (IEEE infinities, no error),
        ``raises`` (an error, and infinities can be written instead), ``forbidden`` (an error, or
        an engine not known well enough: such steps are never taken, the result is NULL).
    underflow
        Whether a product that rounds to zero is an error.
    lacks
        Functions that the engine does not have.
    literal
        How a double is written: ``exponent`` (1e-1 is a double), ``decimal`` (1e-1 is a decimal
        that turns into a double beside one), ``text`` (only CAST('1e-1' AS DOUBLE) is sure).
    infinity
        How infinity is written: a number, or the text that a cast reads.
    floor
        A function that rounds doubles to whole doubles.
    ln
        The natural logarithm.
    """

    name: str
    overflow: Literal["infinite", "raises", "forbidden"]
    underflow: bool = False
    lacks: frozenset[str] = frozenset()
    literal: Literal["exponent", "decimal", "text"] = "exponent"
    infinity: str = "Infinity"
    floor: str = "FLOOR"
    ln: str = "LN"


_DIALECTS = (
    Dialect("duckdb", "infinite"),
    Dialect("sqlite", "infinite", infinity="9e999"),
    Dialect("postgres", "raises", underflow=True, literal="decimal"),
    Dialect("spark", "infinite", floor="RINT"),
    Dialect("bigquery", "forbidden"),
    Dialect("snowflake", "forbidden", literal="text"),
    Dialect("trino", "infinite", lacks=frozenset({"sinh", "asinh", "acosh", "atanh"})),
    Dialect("clickhouse", "infinite"),
    Dialect("mysql", "forbidden", lacks=_HYPERBOLIC),
    Dialect("redshift", "forbidden", underflow=True, lacks=_HYPERBOLIC, literal="decimal"),
    Dialect("tsql", "forbidden", lacks=_HYPERBOLIC, ln="LOG"),
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
        raise TrueupError(
            f"{name!r} is no SQL dialect that is known here",
            f"known are {', '.join(sorted({*DIALECTS, *_ALIASES}))}",
        )
    return DIALECTS[known]
