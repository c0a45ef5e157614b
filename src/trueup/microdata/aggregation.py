"""The one query over microdata: whole numbers for every public group, and what must not be there.

Every value becomes a whole number of steps within its bounds before anything is added, and whole
numbers are added as such (HUGEINT in DuckDB, DECIMAL(38) in Spark): no sum of floats decides how
far one row moves a total. What cannot be used (missing, infinite, text in a column of numbers,
values that are no category) is counted in the same pass, and refused before any noise is drawn.

With a privacy unit, rows are put in an order by a keyed hash of their number, with a key that is
drawn for this release: that order is independent of all values, and the first ``at_most`` rows of
each unit are used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.files.query import literal, quote
from trueup.mechanisms.records import split
from trueup.microdata.measures import Share
from trueup.microdata.published import FINE, LARGEST

if TYPE_CHECKING:
    from trueup.mechanisms.whole_numbers import Grid
    from trueup.microdata.design import Design
    from trueup.microdata.published import Total

_SPENT = "nothing was released, no privacy was spent"
_NUMBERS = (
    "INT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "REAL",
    "BOOLEAN",
    "NUMERIC",
    "BYTE",
    "SHORT",
    "LONG",
)
_FLOATS = ("FLOAT", "DOUBLE", "REAL")


@dataclasses.dataclass(frozen=True)
class Fault:
    """What must not be in a column, and what to say if it is."""

    column: str
    problem: str
    hint: str


@dataclasses.dataclass(frozen=True)
class Aggregation:
    """The query over one source of rows.

    Parameters
    ----------
    design
        What is added up.
    types
        The columns of the source, with their types in the engine.
    missing
        What stands for a missing value, by column; "drop" leaves the row out.
    text_numbers
        Whether numbers may be written as text, as in CSV files.
    secret
        The key of the order in which the rows of a unit are used.
    dialect
        ``duckdb`` or ``spark``.
    """

    design: Design
    types: Mapping[str, str]
    missing: Mapping[str, Any]
    text_numbers: bool = False
    secret: str = ""
    dialect: str = "duckdb"

    # -- values ------------------------------------------------------------------------------------

    def quote(self, name: str) -> str:
        """Return an identifier."""
        return quote(name, self.dialect)

    def text(self, name: str) -> str:
        """Return a column as text."""
        return f"CAST({self.quote(name)} AS {'STRING' if self.dialect == 'spark' else 'VARCHAR'})"

    def is_text(self, name: str) -> bool:
        """Whether a column of numbers is written as text."""
        return self.types[name].upper() in ("VARCHAR", "STRING")

    def is_categorical(self, name: str) -> bool:
        """Whether a column is read as categories."""
        return any(isinstance(m, Share) and m.column == name for m in self.design.measures.values())

    def _number(self, name: str) -> str:
        """Return a column as doubles; NULL where it is no number."""
        cast = "TRY_CAST" if self.is_text(name) else "CAST"
        return f"{cast}({self.quote(name)} AS DOUBLE)"

    def _is_missing(self, name: str) -> str:
        column = self.quote(name)
        if self.is_text(name):
            blank = f"{column} IS NULL OR TRIM({column}) = ''"
            return (
                f"({blank})" if self.is_categorical(name) else f"({blank} OR {self._is_nan(name)})"
            )
        kind = self.types[name].upper()
        return f"({column} IS NULL{f' OR isnan({column})' * any(f in kind for f in _FLOATS)})"

    def _is_nobody(self, unit: str) -> str:
        """Return the condition that a row says not whose it is: all such are not one unit."""
        return f"COALESCE(LOWER(TRIM({self.text(unit)})) IN ('', 'nan'), TRUE)"

    def _is_nan(self, name: str) -> str:
        return f"COALESCE(isnan({self._number(name)}), FALSE)"

    # -- what is added up --------------------------------------------------------------------------

    def _filled(self, name: str) -> str:
        """Return the helper column of a column, with the value that stands for a missing one."""
        categorical = self.is_categorical(name)
        value = self.text(name) if categorical else self._number(name)
        given = self.missing.get(name)
        if given is None or given == "drop":
            return value
        stands = literal(str(given), self.dialect) if categorical else _double(float(given))
        return f"CASE WHEN {self._is_missing(name)} THEN {stands} ELSE {value} END"

    def added(self, total: Total) -> str:
        """Return what is added up for one row, as a whole number."""
        if total.column is None:
            return "1"
        value = self._helper(total.column)
        if total.category is not None:
            return f"CASE WHEN {value} = {literal(total.category, self.dialect)} THEN 1 ELSE 0 END"
        inside = self._on_grid(value, total.grid) if total.grid else self._fine(value)
        return f"CAST({inside} AS BIGINT)"

    def _on_grid(self, value: str, grid: Grid) -> str:
        """Return :meth:`Grid.whole` of a value, in the same steps of doubles.

        What is missing, infinite or no number is clipped like any other value: such rows are
        refused. In DuckDB a cast rounds halves to even, like ``rint``.
        """
        near, rest = split(grid.origin)
        distance = value if not near else f"({value} - {_double(near)})"
        distance = distance if not rest else f"({distance} + {_double(-rest)})"
        multiple = f"{distance} / {_double(float(grid.reach))} * {_double(float(grid.steps))}"
        first, last = (_double(float(end)) for end in grid.ends)
        return f"LEAST(GREATEST({self._rint(multiple)}, {first}), {last})"

    def _fine(self, value: str) -> str:
        """Return a value of any size in steps of 1/FINE, within what a whole number holds."""
        clipped = f"LEAST(GREATEST({value}, {_double(0.0)}), {_double(float(LARGEST))})"
        return self._rint(f"{clipped} * {_double(float(FINE))}")

    def _rint(self, value: str) -> str:
        return f"rint({value})" if self.dialect == "spark" else value

    def _sum(self, what: str) -> str:
        """Return the sum of whole numbers of 64 bits, in 128."""
        if self.dialect == "spark":
            return f"SUM(CAST({what} AS DECIMAL(28, 0)))"
        return "COUNT(*)" if what == "1" else f"SUM({what})"

    # -- what must not be there --------------------------------------------------------------------

    def faults(self) -> list[tuple[Fault, str]]:
        """Return what is refused, with the condition on a row."""
        found = []
        for name in self.design.columns:
            found += self._faults(name)
        unit = self.design.unit
        if unit is not None and not self._is_dropped(unit):
            found.append((_nobody(unit), "mu"))
        return found

    def _faults(self, name: str) -> list[tuple[Fault, str]]:
        value, missing = self._helper(name), self._helper_missing(name)
        found = [] if name in self.missing else [(_no_value(name), missing)]
        if self.is_categorical(name):
            listed = ", ".join(literal(c, self.dialect) for c in self._categories(name))
            strange = f"NOT {missing} AND {value} NOT IN ({listed})"
            return [*found, (_strange(name), strange)]
        if self.is_text(name):
            found.append((_no_number(name), f"NOT {missing} AND {value} IS NULL"))
        top = _double(1.7976931348623157e308)
        found.append((_infinite(name), f"NOT {missing} AND abs({value}) > {top}"))
        if self._is_of_any_size(name):
            wild = f"{value} < 0 OR {value} > {_double(float(LARGEST))}"
            found.append((_wild(name), f"NOT {missing} AND ({wild})"))
        return found

    def _categories(self, name: str) -> list[str]:
        of = [m for m in self.design.measures.values() if isinstance(m, Share) and m.column == name]
        return [c for c in of[0].categories if all(c in m.categories for m in of)]

    def _is_of_any_size(self, name: str) -> bool:
        totals = self.design.totals
        return any(t.column == name and not t.grid and t.category is None for t in totals)

    # -- the query ---------------------------------------------------------------------------------

    def _helper(self, name: str) -> str:
        return f"v{self.design.columns.index(name)}"

    def _helper_missing(self, name: str) -> str:
        return f"m{self.design.columns.index(name)}"

    def check_types(self) -> None:
        """Refuse columns that are not there, or that cannot be what they are used for."""
        unit = self.design.unit
        for name in (*self.design.by, *self.design.columns, *([unit] if unit else [])):
            if name not in self.types:
                raise _no_column(name, list(self.types))
        for name in self.design.columns:
            if not self.is_categorical(name):
                self._check_numbers(name)
        discrete = [c for c in self.design.columns if self.is_categorical(c)]
        for name in (*self.design.by, *discrete):
            kind = self.types[name].upper()
            if any(kind.startswith(f) for f in (*_FLOATS, "DECIMAL")):
                raise TrueupError(
                    f"the column {name!r} of keys or categories holds {kind}, numbers with a point",
                    f"make them whole numbers or text first, also where some are missing; {_SPENT}",
                )

    def _check_numbers(self, name: str) -> None:
        kind = self.types[name].upper()
        plain = kind.partition("(")[0]
        known = any(n in plain for n in _NUMBERS) and "[" not in kind and plain != "INTERVAL"
        if known or (self.is_text(name) and self.text_numbers):
            return
        raise TrueupError(
            f"the column {name!r} holds {kind}, not numbers", f"convert it first; {_SPENT}"
        )

    def sql(self, source: str, keys: str) -> str:
        """Return the query: the number of a public group, its totals, and faults.

        ``keys`` is a table of text c0, c1, … with the number ``i`` of the group.
        """
        by = range(len(self.design.by))
        same = " AND ".join(f"g.k{i} = p.c{i}" for i in by)
        totals = [self._sum(self.added(total)) for total in self.design.totals]
        wrong = [f"COUNT(*) FILTER (WHERE {bad})" for _, bad in self.faults()]
        sums = ", ".join(f"{what} AS s{i}" for i, what in enumerate([*totals, *wrong]))
        rows = self._rows(source, keys)
        if not by:
            return f"SELECT 0 AS i, t.* FROM (SELECT {sums} FROM ({rows}) AS r) AS t"
        groups = ", ".join(f"b{i}" for i in by)
        texts = ", ".join(f"{self._as_text(f'b{i}')} AS k{i}" for i in by)
        size = len(totals) + len(wrong)
        kept = ", ".join(f"g.s{i}" for i in range(size))
        grouped = f"SELECT {texts}, {sums} FROM ({rows}) AS r GROUP BY {groups}"
        return f"SELECT p.i, {kept} FROM ({grouped}) AS g JOIN {keys} AS p ON {same}"

    def _as_text(self, column: str) -> str:
        return f"CAST({column} AS {'STRING' if self.dialect == 'spark' else 'VARCHAR'})"

    def _rows(self, source: str, keys: str) -> str:
        """Return the rows that count, with helper columns."""
        design = self.design
        helpers = [f"{self.quote(name)} AS b{i}" for i, name in enumerate(design.by)]
        for name in design.columns:
            helpers.append(f"{self._filled(name)} AS {self._helper(name)}")
            helpers.append(f"{self._is_missing(name)} AS {self._helper_missing(name)}")
        if design.unit is not None:
            unit = self.quote(design.unit)
            helpers += [f"{unit} AS u", f"{self._is_nobody(design.unit)} AS mu"]
            helpers.append(f"{self._numbered()} AS o")
        rows = f"SELECT {', '.join(helpers) or '1 AS one'} FROM {source}"
        rows = self._without_missing(rows)
        return rows if design.unit is None else self._at_most(rows, keys)

    def _without_missing(self, rows: str) -> str:
        dropped = [f"m{i}" for i, c in enumerate(self.design.columns) if self._is_dropped(c)]
        dropped += ["mu"] * (self.design.unit is not None and self._is_dropped(self.design.unit))
        if not dropped:
            return rows
        known = " AND ".join(f"NOT {missing}" for missing in dropped)
        return f"SELECT * FROM ({rows}) AS d WHERE {known}"

    def _is_dropped(self, name: str) -> bool:
        return bool(self.missing.get(name) == "drop")

    def _numbered(self) -> str:
        spark = self.dialect == "spark"
        return "monotonically_increasing_id()" if spark else "row_number() OVER ()"

    def _at_most(self, rows: str, keys: str) -> str:
        """Return at most so many rows of each unit in public groups, and all with a fault."""
        by = range(len(self.design.by))
        if by:
            same = " AND ".join(f"{self._as_text(f'w.b{i}')} = p.c{i}" for i in by)
            rows = f"SELECT w.* FROM ({rows}) AS w JOIN {keys} AS p ON {same}"
        key, number = literal(self.secret, self.dialect), self._as_text("o")
        mixed = (
            f"sha2(concat({key}, {number}), 256)"
            if self.dialect == "spark"
            else f"sha256({key} || {number})"
        )
        rank = f"row_number() OVER (PARTITION BY u ORDER BY {mixed})"
        ranked = f"SELECT *, {rank} AS rank_in_unit FROM ({rows}) AS q"
        chosen = [f"rank_in_unit <= {self.design.at_most}", *(bad for _, bad in self.faults())]
        used = " OR ".join(f"({condition})" for condition in chosen)
        return f"SELECT * FROM ({ranked}) AS z WHERE {used}"

    def totals(self, rows: Sequence[Sequence[Any]], groups: int) -> list[list[int]]:
        """Return what was added up in every group; refuse what must not be."""
        size = len(self.design.totals)
        sums = [[0] * groups for _ in range(size)]
        wrong = [0] * len(self.faults())
        for i, *values in rows:
            whole = [int(v or 0) for v in values]
            for into, value in zip(sums, whole[:size], strict=True):
                into[int(i)] += value
            wrong = [w + v for w, v in zip(wrong, whole[size:], strict=True)]
        for (fault, _), count in zip(self.faults(), wrong, strict=True):
            if count:
                rows = f"{count:,} row{'s' * (count != 1)}"
                raise TrueupError(f"{rows}: {fault.problem}", f"{fault.hint}; {_SPENT}")
        return sums


def _double(value: float) -> str:
    """Return a double as it is, whatever its size."""
    return f"CAST('{value!r}' AS DOUBLE)"


def _no_column(name: str, columns: Sequence[str]) -> TrueupError:
    import difflib

    folded = {c.casefold(): c for c in columns}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    shown = ", ".join(columns[:12]) + (", …" if len(columns) > 12 else "")
    hint = f"did you mean {folded[near[0]]}?" if near else f"it has {shown}"
    return TrueupError(f"the data has no column {name!r}", f"{hint}; {_SPENT}")


def _no_value(column: str) -> Fault:
    return Fault(
        column,
        f"{column} is missing",
        f"missing='drop' leaves such rows out, missing={{{column!r}: …}} names a value",
    )


def _nobody(unit: str) -> Fault:
    return Fault(unit, f"{unit} is missing: whose are they?", "missing='drop' leaves such rows out")


def _no_number(column: str) -> Fault:
    return Fault(column, f"{column} is text that is no number", "clean the data first")


def _infinite(column: str) -> Fault:
    return Fault(column, f"{column} is infinite", "clean the data first")


def _strange(column: str) -> Fault:
    return Fault(
        column, f"{column} is not one of its categories", "name them all, or map others to one"
    )


def _wild(column: str) -> Fault:
    return Fault(
        column,
        f"{column} is negative, or above {LARGEST}, where whole totals could overflow",
        "a per-record sum takes non-negative values; measure them in another unit",
    )
