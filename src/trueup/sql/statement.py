"""What is asked of an estimator in SQL: which output, which columns, which noise scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.sql import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trueup.estimator import Estimator
    from trueup.sql.dialects import Dialect

OUTPUTS = ("value", "variance", "stderr")


def statement(
    est: Estimator,
    dialect: str | Dialect = "duckdb",
    output: str = "value",
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
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
    named, scaled = dict(columns or {}), dict(scales or {})
    _check("columns", named, est.statistics)
    _check("scales", scaled, est.statistics)
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


def _check(what: str, names: Iterable[str], statistics: tuple[str, ...]) -> None:
    for name in names:
        if name not in statistics:
            raise TrueupError(
                f"{what} are given for {name!r}, which is no statistic",
                f"the statistics are {', '.join(statistics)}",
            )
