"""What is asked of an estimator in SQL: which output, which columns, which noise scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.arguments import by_statistic
from trueup.errors import TrueupError
from trueup.inverse.closed_ends import ENDS
from trueup.sql import glot
from trueup.sql.dialects import dialect_of
from trueup.sql.glot import exp
from trueup.sql.regions import Assembly
from trueup.sql.safe_inputs import Input
from trueup.sql.writer import too_long

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trueup.estimator import Estimator
    from trueup.kernels.grid import Grid
    from trueup.sql.dialects import Dialect

MAX_LENGTH = 200_000
"""The length of the text, in characters."""

OUTPUTS = ("value", "variance", "stderr", *ENDS)


def statement(
    est: Estimator,
    dialect: str | Dialect = "duckdb",
    output: str = "value",
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    level: float = 0.95,
) -> Any:
    """Return an estimator as a tree of sqlglot; see :meth:`trueup.estimator.Estimator.sql`.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> statement(unbiased("q", Laplace(2)), "tsql", columns={"q": ("t", "x y")}).sql("tsql")
    'CASE WHEN [t].[x y] BETWEEN -1e100 AND 1e100 THEN CAST([t].[x y] AS FLOAT) END'
    """
    if output not in OUTPUTS:
        raise TrueupError(f"{output!r} is no output", f"outputs are {', '.join(OUTPUTS)}")
    named = dict(by_statistic(columns, "columns"))
    scaled = dict(by_statistic(scales, "scales"))
    _check("columns", named, est.statistics)
    _check("scales", scaled, est.statistics)
    if output in ENDS:
        return _end(est, dialect, output, named, scaled, level)
    what, root = ("value" if output == "value" else "variance"), output == "stderr"
    if not scaled:
        grid = est._value if what == "value" else est._variance
        return expression(grid, named, dialect, root=root)
    form = est._scaled(tuple(scaled))
    grid, largest = form.grid(what), form.largest(what)
    symbols = zip(grid.inputs[len(est.statistics) :], scaled.items(), strict=True)
    limits = {}
    for symbol, (name, column) in symbols:
        named[symbol.name], limits[symbol.name] = column, largest[name]
    return expression(grid, named, dialect, root=root, limits=limits)


def _end(
    est: Estimator,
    dialect: str | Dialect,
    output: str,
    columns: dict[str, Any],
    scales: dict[str, Any],
    level: float,
) -> Any:
    """Return an end of the interval."""
    ends = est._closed_ends(level, tuple(scales))
    if ends is not None:
        grid = ends[ENDS.index(output)]
        symbols = grid.inputs[len(est.statistics) :]
        named = dict(zip((q.name for q in symbols), scales.values(), strict=True))
        return expression(grid, columns | named, dialect)
    engine = dialect_of(dialect)
    value, error = (
        statement(est, engine, what, columns, scales or None) for what in ("value", "stderr")
    )
    z, fixed, share = est._spread(level)
    spread = glot.mul(glot.literal(z), error, engine)
    if fixed:
        spread = glot.add(spread, glot.literal(fixed), engine)
    if share:
        size = glot.of_double("ABS", value.copy(), engine)
        spread = glot.add(spread, glot.mul(glot.literal(share), size, engine), engine)
    combine = glot.sub if output == "low" else glot.add
    return exp.Paren(this=combine(value, spread, engine))


def _check(what: str, names: Iterable[str], statistics: tuple[str, ...]) -> None:
    for name in names:
        if name not in statistics:
            raise TrueupError(
                f"{what} are given for {name!r}, which is no statistic",
                f"the statistics are {', '.join(statistics)}",
            )


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
        inputs.append(Input(glot.column(name, engine), i in grid.whole, limit))
    try:
        return Assembly(grid, inputs, engine, root=root).expression()
    except RecursionError:
        raise too_long() from None


def render(grid: Grid, columns: Mapping[str, Any], dialect: str | Dialect, **options: Any) -> str:
    """Return a grid as SQL text; the options are those of :func:`expression`.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> render(unbiased("q**2", Laplace(3))._value, {"q": "sales"}, "mysql")
    'CASE WHEN `sales` BETWEEN -1e100 AND 1e100 THEN CAST(`sales` AS DOUBLE) * `sales` - 18 END'
    """
    return text(expression(grid, columns, dialect, **options), dialect)


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
