"""Totals and means of debiased cells, group by group, as :func:`trueup.total` gives them.

Independent cells add their estimates and their variances: Σ w·g with the error √(Σ w²·V̂).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from trueup.cli.files.plan import SUFFIXES, check_new, found
from trueup.cli.files.statement import quote
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.cli.files.duck import Duck
    from trueup.cli.files.sources import Source
    from trueup.cli.files.statement import Statement

ROWS = "rows"
_TABLE = "trueup_totals"


@dataclasses.dataclass(frozen=True)
class Totals:
    """What to sum over.

    Parameters
    ----------
    by
        Columns whose values make the groups; none for one total.
    weights
        A column of known weights, None for ones.
    average
        Whether to divide by the sum of the weights.
    skip
        Whether to leave out rows that miss a number, and not to refuse them.
    """

    by: tuple[str, ...] = ()
    weights: str | None = None
    average: bool = False
    skip: bool = False

    def fitted(self, source: Source, written: Sequence[str]) -> Totals:
        """Return the same on the columns of a source; refuse those that are not there."""
        by = tuple(found(column, "--by ", source) for column in self.by)
        weights = None if self.weights is None else found(self.weights, "--weights ", source)
        check_new([ROWS, *written], by)
        return dataclasses.replace(self, by=by, weights=weights)

    def sql(self, statement: Statement) -> str:
        """Return the query, with the number of rows left out as its last column."""
        p, quote = statement.prefix, statement.quote
        total = "SUM" if statement.dialect == "spark" else "FSUM"
        rows = statement.over(self._rows(statement), map(quote, self.by))
        known = " AND ".join(f"{quote(name)} IS NOT NULL" for name in self._rows(statement))
        kept = f"FILTER (WHERE {known})"
        over = f"NULLIF({total}({p}w) {kept}, 0)" if self.average else "1"
        columns = [*map(quote, self.by), f"COUNT(*) {kept} AS {quote(ROWS)}"]
        for task in statement.plan.tasks:
            value, spread = quote(f"{p}value_{task.name}"), quote(f"{p}variance_{task.name}")
            variance = f"COALESCE({total}({p}w * {p}w * {spread}) {kept}, 0) / POW({over}, 2)"
            results = {
                "value": f"COALESCE({total}({p}w * {value}) {kept}, 0) / {over}",
                "stderr": f"CASE WHEN {variance} >= 0 THEN SQRT({variance}) END",
                "variance": variance,
            }
            columns += [
                f"{results[output]} AS {quote(task.name + SUFFIXES[output])}"
                for output in statement.plan.outputs
            ]
        columns.append(f"COUNT(*) - COUNT(*) {kept} AS {quote(p + 'missing')}")
        group = f"\nGROUP BY {', '.join(map(quote, self.by))}" if self.by else ""
        return "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM (\n{rows}\n){group}"

    def _rows(self, statement: Statement) -> dict[str, str]:
        """Return what is summed, row by row."""
        p, plan = statement.prefix, statement.plan
        rows = {f"{p}value_{t.name}": statement.output(t, "value") for t in plan.tasks}
        if {"stderr", "variance"} & {*plan.outputs}:
            rows |= {f"{p}variance_{t.name}": statement.output(t, "variance") for t in plan.tasks}
        weight = "CAST(1 AS DOUBLE)" if self.weights is None else statement.double(self.weights)
        return rows | {f"{p}w": weight}

    def compute(self, duck: Duck, statement: Statement) -> tuple[str, int]:
        """Compute the totals and return the query that reads them, and the number of rows."""
        duck.ask(f"CREATE OR REPLACE TEMP TABLE {_TABLE} AS\n{self.sql(statement)}")
        missing = quote(f"{statement.prefix}missing")
        found = duck.ask(f"SELECT SUM({missing}), SUM({quote(ROWS)}) FROM {_TABLE}")[0]
        rows = [int(n or 0) for n in found]
        self.check_missing(*rows)
        order = f" ORDER BY {', '.join(map(quote, self.by))}" if self.by else ""
        return f"SELECT * EXCLUDE ({missing}) FROM {_TABLE}{order}", sum(rows)

    def check_missing(self, missing: int, kept: int) -> None:
        """Refuse rows that miss a number, unless they are to be left out."""
        if missing and not self.skip:
            raise TrueupError(
                f"{missing:,} of {missing + kept:,} rows miss a number: their total is unknown",
                "--skip-missing sums the other rows, and counts them in the column rows",
            )


def aligned(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table to look at.

    Examples
    --------
    >>> print(aligned(["state", "pay"], [["A", 1.25], ["B", None]]))
    state   pay
    A      1.25
    B
    """
    shown = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *shown, strict=True)]
    numeric = (int, float, type(None))
    right = [all(isinstance(row[i], numeric) for row in rows) for i in range(len(names))]
    lines = [
        "  ".join(
            f"{cell:>{w}}" if r else f"{cell:<{w}}"
            for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [list(names), *shown]
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else f"{value}"
