"""What a run did: rows, values beyond the bounds, missing results, the plug-in's bias removed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from trueup.cli.files.doubts import bounds_of
from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.cli.files.plan import Task
    from trueup.cli.files.statement import Statement


@dataclasses.dataclass(frozen=True)
class Tally:
    """One query over the rows, and the words for its result.

    Parameters
    ----------
    statement
        What was computed. Where its source is the output, ``present`` holds the new columns, and
        they are read instead of computed again.
    present
        The new columns that the source has.
    """

    statement: Statement
    present: frozenset[str] = frozenset()

    def sql(self) -> str:
        """Return the query: one row of counts and sums."""
        inner = self.statement.over(self._columns())
        quote = self.statement.quote
        counts = ",\n  ".join(f"{sql} AS {quote(name)}" for name, sql in self._counts().items())
        return f"SELECT\n  {counts}\nFROM (\n{inner}\n)"

    def _columns(self) -> dict[str, str]:
        """Return what is counted, row by row."""
        s, quote = self.statement, self.statement.quote
        columns = {alias: quote(alias) for alias in (*s.numbers.values(), *s.scales.values())}
        for name, (task, output) in s.plan.written.items():
            if output == "variance":
                continue
            columns[name] = quote(name) if name in self.present else s.output(task, output)
            if output == "value":
                f = plug_in(task, s.numbers, s.dialect)
                columns[self._bias(task)] = f"({f}) - ({columns[name]})"
        return columns

    def _bias(self, task: Task) -> str:
        return f"{self.statement.prefix}bias_{task.name}"

    def _counts(self) -> dict[str, str]:
        counts, quote = {"rows": "COUNT(*)"}, self.statement.quote
        for i, bound in enumerate(bounds_of(self.statement)):
            counts |= {f"{name} {i}": sql for name, sql in bound.counts().items()}
        for name, (task, output) in self.statement.plan.written.items():
            if output != "variance":
                counts[f"known {name}"] = f"COUNT({quote(name)})"
            if output == "value":
                d = quote(self._bias(task))
                finite = f"CASE WHEN ABS({d}) < CAST('Infinity' AS DOUBLE) THEN {d} END"
                counts[f"bias {name}"] = f"SUM({finite})"
                counts[f"compared {name}"] = f"COUNT({finite})"
        return counts

    def read(self, row: tuple[Any, ...]) -> Summary:
        """Return the summary that a row of counts makes."""
        counts = dict(zip(self._counts(), row, strict=True))
        return Summary(self.statement, counts)


def plug_in(task: Task, numbers: Mapping[str, str], dialect: str) -> str:
    """Return the formula itself as SQL: what one has without debiasing.

    The SQL of an estimator is CASE WHEN the inputs are what they should be THEN the formula … END.
    Doubles in DuckDB are IEEE's, so that the formula alone does for a sum over what is finite.
    """
    from trueup.estimator import unbiased
    from trueup.noise import Noiseless

    plain = unbiased(task.estimator.estimand, dict.fromkeys(task.columns, Noiseless()))
    sql = plain.sql(dialect, columns={s: numbers[c] for s, c in task.columns.items()})
    if dialect != "duckdb":
        return sql
    sqlglot = optional("sqlglot", "tables", "writing SQL")
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    formula: str = tree.args["ifs"][0].args["true"].sql("duckdb")
    return formula


@dataclasses.dataclass(frozen=True)
class Summary:
    """The counts of a run, in words."""

    statement: Statement
    counts: Mapping[str, Any]

    def lines(self) -> Iterator[str]:
        """Yield one line for the rows, each bounded statistic, and each estimate."""
        rows = self.counts["rows"]
        yield f"{rows:,} row{'s' * (rows != 1)}"
        for i, bound in enumerate(bounds_of(self.statement)):
            yield bound.line(self._of(i))
        for task in self.statement.plan.tasks:
            yield self._estimate(task.name, rows)

    def warnings(self) -> Iterator[str]:
        """Yield doubts about bounds that too many values lie beyond."""
        for i, bound in enumerate(bounds_of(self.statement)):
            yield from bound.doubts(self._of(i))

    def _of(self, i: int) -> dict[str, int]:
        ending = f" {i}"
        return {k.removesuffix(ending): v for k, v in self.counts.items() if k.endswith(ending)}

    def _estimate(self, name: str, rows: int) -> str:
        known, compared = self.counts[f"known {name}"], self.counts[f"compared {name}"]
        bias = self.counts[f"bias {name}"]
        parts = []
        if known < rows:
            parts.append(f"{rows - known:,} missing")
        errors = self.counts.get(f"known {name}_stderr")
        if errors is not None and errors < known:
            parts.append(f"{known - errors:,} without a standard error")
        if bias is not None:
            left_out = known - compared
            beside = f", {left_out:,} infinite plug-ins apart" if left_out else ""
            parts.append(f"plug-in bias removed: {bias:+,.6g} in total{beside}")
        return f"{name}: {'; '.join(parts) or 'done'}"
