"""The SQL that DuckDB runs: read, convert and check, compute in layers, select.

Columns of statistics become doubles, and values that cannot be stop the query through ``ERROR``:
which value it was is looked for only then (see :mod:`trueup.files.faults`).
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from trueup.errors import TrueupError
from trueup.files.shared_parts import layered
from trueup.inverse.projection import ENDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trueup.tables.request import Request

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WHOLE = {*_SIGNED, *(f"U{name}" for name in _SIGNED)}
MARK = "trueup found a value that cannot be"


def quote(name: str, dialect: str = "duckdb") -> str:
    """Return an identifier.

    Examples
    --------
    >>> quote('a"b'), quote('a"b', "spark")
    ('"a""b"', '`a"b`')
    """
    mark = "`" if dialect == "spark" else '"'
    return mark + name.replace(mark, mark + mark) + mark


def literal(text: str, dialect: str = "duckdb") -> str:
    """Return a string.

    Examples
    --------
    >>> print(literal("it's"))
    'it''s'
    """
    if dialect == "spark":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "''") + "'"


class Check(NamedTuple):
    """A condition on the source under which a value cannot be."""

    column: str
    kind: str
    bad: str


@dataclasses.dataclass(frozen=True)
class Statement:
    """The query over one source.

    Parameters
    ----------
    requests
        What is computed.
    source
        What follows FROM.
    types
        The columns of the source in order, with their types in the engine.
    casts
        Columns of text that are written with another type.
    nulls
        Texts that mean that a number is missing.
    others
        Further columns that are read as numbers.
    decimal
        The sign before the decimals of numbers that are text: a point or a comma.
    """

    requests: Sequence[Request]
    source: str
    types: Mapping[str, str]
    casts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nulls: Sequence[str] = ()
    others: Sequence[str] = ()
    decimal: str = "."

    @cached_property
    def written(self) -> dict[str, tuple[Request, str]]:
        """The new columns: of which request, and which output."""
        return {name: (r, o) for r in self.requests for name, o in r.written.items()}

    @cached_property
    def whole(self) -> dict[str, bool]:
        """The columns of statistics, and whether they must hold whole numbers."""
        found: dict[str, bool] = {}
        for r in self.requests:
            for statistic, column in r.columns.items():
                found[column] = found.get(column, False) or r.estimator.noise[statistic].lattice
        return found

    @cached_property
    def limits(self) -> dict[str, float]:
        """The columns of noise scales, and below which scale the results are valid."""
        found: dict[str, float] = {}
        for r in self.requests:
            for statistic, limit in r.largest.items():
                column = r.scales[statistic]
                found[column] = min(found.get(column, math.inf), limit)
        return found

    @cached_property
    def prefix(self) -> str:
        """How the names of helper columns begin: like no column that is there."""
        prefix = "_"
        while any(name.lower().startswith(prefix) for name in (*self.types, *self.written)):
            prefix += "_"
        return prefix

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The helper column of each column of numbers."""
        return {c: f"{self.prefix}x{i}" for i, c in enumerate(self.whole, start=1)}

    @cached_property
    def scales(self) -> dict[str, str]:
        """The helper column of each column of scales."""
        return {c: f"{self.prefix}b{i}" for i, c in enumerate(self.limits, start=1)}

    # -- conversions and checks --------------------------------------------------------------------

    def _known(self, column: str) -> str:
        """Return a column of text with decimal points, NULL where a number is missing."""
        text = quote(column)
        number = with_points(text, self.decimal)
        return f"CASE WHEN {is_known(text, self.nulls)} THEN {number} END"

    def double(self, column: str) -> str:
        """Return a column as a double; text that is no number stops the query."""
        text = self.types[column] == "VARCHAR"
        return f"CAST({self._known(column) if text else quote(column)} AS DOUBLE)"

    def checks(self) -> list[Check]:
        """Return what must not be, in the order in which to look for it."""
        used = dict.fromkeys((*self.whole, *self.limits, *self.others))
        found = [
            Check(c, "text", f"{self._known(c)} IS NOT NULL AND TRY_{self.double(c)} IS NULL")
            for c in used
            if self.types[c] == "VARCHAR"
        ]
        found += [
            Check(c, "broken", _broken(self.double(c)))
            for c, whole in self.whole.items()
            if whole and self.types[c] not in _WHOLE
        ]
        found += [
            Check(c, "scale", _bad_scale(self.double(c), limit)) for c, limit in self.limits.items()
        ]
        return found + [Check(c, t, self._bad_cast(c)) for c, t in self.casts.items()]

    def _bad_cast(self, column: str) -> str:
        text = with_points(quote(column), self.decimal)
        return misfit(text, self.casts[column], self.nulls)

    def conversions(self) -> list[dict[str, str]]:
        """Return the helper columns of numbers and scales: converted, then checked."""
        named = [*self.numbers.items(), *self.scales.items()]
        broken = {c.column for c in self.checks() if c.kind == "broken"}
        raw, checked = {}, {}
        for column, alias in named:
            x = quote(f"{alias}_read")
            if alias in self.scales.values():
                checked[alias] = _stopped(_bad_scale(x, self.limits[column]), x)
            elif column in broken:
                checked[alias] = _stopped(_broken(x), x)
            raw[f"{alias}_read" if alias in checked else alias] = self.double(column)
        return [layer for layer in (raw, checked) if layer]

    # -- the query ---------------------------------------------------------------------------------

    def output(self, request: Request, output: str) -> str:
        """Return an output of a request in terms of the helper columns."""
        columns = {s: self.numbers[c] for s, c in request.columns.items()}
        scales = {s: self.scales[c] for s, c in request.scales.items()}
        try:
            return dataclasses.replace(request, columns=columns, scales=scales).sql(
                "duckdb", output
            )
        except TrueupError as error:
            without = "leave out --interval" if output in ENDS else "add --no-stderr"
            hint = "in Python, in memory, tu.debias has no such limit"
            hint = f"{hint}; or {without}" if output != "value" else hint
            raise TrueupError(f"{request.name}, {output}: {error.message}", hint) from None

    def outputs(self) -> dict[str, str]:
        """Return the new columns as SQL."""
        return {name: self.output(*what) for name, what in self.written.items()}

    def kept(self) -> list[str]:
        """Return the columns of the source, converted where they are."""
        casts = {}
        for column, kind in self.casts.items():
            value = f"TRY_CAST({with_points(quote(column), self.decimal)} AS {kind})"
            value = _stopped(self._bad_cast(column), value)
            casts[column] = f"{value} AS {quote(column)}"
        return [casts.get(name, quote(name)) for name in self.types]

    def over(self, expressions: Mapping[str, str], kept: Iterable[str] = ()) -> str:
        """Return a query for expressions in the helper columns, after columns that are kept."""
        layers, final = layered(expressions, f"{self.prefix}p")
        steps = [("source", f"SELECT * FROM {self.source}")]
        for layer in (*self.conversions(), *layers):
            listed = self._listed(layer)
            steps.append((f"step{len(steps)}", f"SELECT *, {listed} FROM {steps[-1][0]}"))
        parts = ",\n".join(f"{name} AS (\n  {sql}\n)" for name, sql in steps)
        columns = ",\n  ".join([*kept, *filter(None, [self._listed(final, ",\n  ")])])
        return f"WITH {parts}\nSELECT\n  {columns}\nFROM {steps[-1][0]}"

    def _listed(self, columns: Mapping[str, str], between: str = ",\n    ") -> str:
        return between.join(f"{sql} AS {quote(name)}" for name, sql in columns.items())

    def query(self) -> str:
        """Return the query for all columns and the new ones."""
        return self.over(self.outputs(), self.kept())

    @property
    def weight(self) -> str:
        """The helper column of the weights of totals."""
        return f"{self.prefix}w"

    @property
    def on_helpers(self) -> list[Request]:
        """The requests on helper columns, as :meth:`cells` names them."""
        return [
            dataclasses.replace(
                r,
                columns={s: self.numbers[c] for s, c in r.columns.items()},
                scales={s: self.scales[c] for s, c in r.scales.items()},
            )
            for r in self.requests
        ]

    @property
    def named(self) -> tuple[dict[str, str], dict[str, str]]:
        """The helper column of each statistic, and of each noise scale."""
        return (
            {s: self.numbers[c] for r in self.requests for s, c in r.columns.items()},
            {s: self.scales[c] for r in self.requests for s, c in r.scales.items()},
        )

    def cells(self, by: Iterable[str] = (), weights: str | None = None) -> str:
        """Return the query for the numbers and scales alone, beside keys and weights."""
        helpers = (*self.numbers.values(), *self.scales.values())
        wanted = {name: quote(name) for name in helpers}
        if weights is not None:
            wanted[self.weight] = self.double(weights)
        return self.over(wanted, map(quote, by))

    def incomplete(self) -> str:
        """Return the condition that a row of the cells misses a number."""
        helpers = (*self.numbers.values(), *self.scales.values())
        return " OR ".join(f"{quote(name)} IS NULL" for name in helpers)


def _broken(x: str) -> str:
    return f"{x} <> FLOOR({x})"


def _stopped(bad: str, value: str) -> str:
    """Return a value, or stop the query where it cannot be."""
    return f"CASE WHEN {bad} THEN ERROR({literal(MARK)}) ELSE {value} END"


def _bad_scale(b: str, limit: float) -> str:
    most = "'Infinity'" if math.isinf(limit) else f"'{limit!r}'"
    return f"COALESCE({b} <= 0 OR {b} >= CAST({most} AS DOUBLE), TRUE)"


def is_known(text: str, nulls: Sequence[str]) -> str:
    """Return the condition that a column of text holds something."""
    missing = ", ".join(literal(null) for null in ("", *nulls))
    return f"TRIM({text}) NOT IN ({missing})"


def with_points(text: str, decimal: str) -> str:
    """Return a column of text with decimal points; points for thousands make it no number.

    Examples
    --------
    >>> with_points("x", "."), with_points("x", ",")
    ('x', "TRANSLATE(x, ',.', '.,')")
    """
    return text if decimal == "." else f"TRANSLATE({text}, ',.', '.,')"


_SHAPES = {
    "BIGINT": "0|-?[1-9][0-9]{0,18}",
    "DOUBLE": r"[+-]?(0?\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][+-]?[0-9]+)?"
    "|(?i:[+-]?inf(inity)?|nan)",
    "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?",
}
"""How a text of each type is written, so that the type can hold all that is written: the engine
also takes 012 and 1_000 for numbers, and loses nanoseconds and time zones of timestamps."""

_WHOLE_DOUBLES = 2**53  # above it not every whole number is a double


def misfit(text: str, kind: str, nulls: Sequence[str]) -> str:
    """Return the condition that a text is not of a type, or would not survive in it."""
    shape = f"REGEXP_FULL_MATCH(TRIM({text}), {literal(_SHAPES[kind])})"
    fits = f"{shape} AND TRY_CAST({text} AS {kind}) IS NOT NULL"
    if kind == "DOUBLE":
        whole = f"REGEXP_FULL_MATCH(TRIM({text}), '[+-]?[0-9]+')"
        fits += f" AND NOT ({whole} AND ABS(TRY_CAST({text} AS DOUBLE)) > {_WHOLE_DOUBLES})"
    return f"{is_known(text, nulls)} AND NOT COALESCE({fits}, FALSE)"
