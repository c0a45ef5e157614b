"""Estimators as SQL: one expression for a SELECT, in the dialect of the engine.

The expression is CASE WHEN <every input within its limits> THEN <the plain formula> END. The rules,
in every dialect:

- the limits are in the first condition: ±1e100 for most inputs, less where a step on the way would
  leave the range of doubles, NULL beyond. PostgreSQL and Redshift stop at underflow too: there a
  statistic may have to be zero or at least 1e-100 in size, and e^z is zero for z ≤ −300;
- where the limits would be narrow, engines with infinities compute with them, and what is not
  finite is NULL; where no limits are sure, engines that stop at overflow are refused;
- the result is a finite double or NULL. It is NULL where an input is NULL, NaN or beyond its
  limits, where an integer statistic is not whole, where a noise scale is not positive, where a
  standard error is the root of a negative number, and where a step is undefined;
- nothing stops a query;
- columns of any numeric type are read as doubles, so integers neither divide as integers nor
  overflow: every operation has an operand that is a double. Identifiers are quoted: a name is one
  identifier whatever it holds.

SQLite needs its mathematical functions, which nearly every build has since 3.35 (only products,
quotients and tables do without), MySQL 8.0.17, PostgreSQL 12 and, for GREATEST, SQL Server 2022.
SQLite and MySQL read text as numbers, "abc" as 0: columns of text are for the caller to refuse.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.sql.dialects import DIALECTS, Dialect, dialect_of
from trueup.sql.glot import column
from trueup.sql.regions import Assembly
from trueup.sql.safe_inputs import Input
from trueup.sql.writer import too_long

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.kernels.grid import Grid

__all__ = ["DIALECTS", "MAX_LENGTH", "Dialect", "dialect_of", "expression", "render", "text"]

MAX_LENGTH = 200_000
"""The length of the text, in characters."""


def expression(
    grid: Grid,
    columns: Mapping[str, Any],
    dialect: str | Dialect,
    *,
    root: bool = False,
    limits: Mapping[str, float] | None = None,
) -> Any:
    """Return a grid as a sqlglot expression.

    Parameters
    ----------
    grid
        The function: an estimator's value or variance.
    columns
        For each input of the grid its column: a name, or a tuple of names such as ``("t", "n")``.
    dialect
        One of ``DIALECTS``.
    root
        Whether to take the square root, for a standard error.
    limits
        For inputs that are noise scales, below which they are valid.
    """
    engine = dialect_of(dialect)
    inputs = []
    for i, symbol in enumerate(grid.inputs):
        limit = (limits or {}).get(symbol.name, math.inf) if symbol.is_positive else None
        name = columns.get(symbol.name, symbol.name)
        inputs.append(Input(column(name, engine), i in grid.whole, limit))
    try:
        return Assembly(grid, inputs, engine, root=root).expression()
    except RecursionError:
        raise too_long() from None


def render(
    grid: Grid,
    columns: Mapping[str, Any],
    dialect: str | Dialect,
    *,
    root: bool = False,
    limits: Mapping[str, float] | None = None,
) -> str:
    """Return a grid as SQL text.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> render(unbiased("q**2", Laplace(3))._value, {"q": "sales"}, "mysql")
    'CASE WHEN `sales` BETWEEN -1e100 AND 1e100 THEN CAST(`sales` AS DOUBLE) * `sales` - 18 END'
    """
    return text(expression(grid, columns, dialect, root=root, limits=limits), dialect)


def text(tree: Any, dialect: str | Dialect, *, pretty: bool = False) -> str:
    """Return an expression as text, with ``pretty`` on several lines."""
    try:
        written: str = tree.sql(dialect=dialect_of(dialect).name, pretty=pretty)
    except RecursionError:
        raise too_long() from None
    if len(written) > MAX_LENGTH:
        raise TrueupError(
            f"the estimator is too long for SQL: {len(written)} characters, at most {MAX_LENGTH}",
            "debias the parts of the formula one by one, or compute it in Python",
        )
    return written
