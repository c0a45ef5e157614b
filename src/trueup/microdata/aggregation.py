"""The one query over microdata: whole numbers for every public group, and what must not be there.

Every value becomes a whole number of steps within its bounds before anything is added, and whole
numbers are added as such (HUGEINT in DuckDB, DECIMAL(38) in Spark): no sum of floats decides how
far one row moves a total. What cannot be used (missing, infinite, text in a column of numbers,
values that are no category) is counted in the same pass, and refused before any noise is drawn; a
second pass then tells what it is.

With a privacy unit, rows are put in an order by a keyed hash of their number, with a key that is
drawn for this release: that order is independent of all values, and the first ``at_most`` rows of
each unit are used.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

from trueup.errors import TrueupError
from trueup.files.query import literal, quote
from trueup.mechanisms.records import split
from trueup.microdata.measures import Share, key_text
from trueup.microdata.noisy_totals import FINE, LARGEST, constant
from trueup.microdata.privacy_notice import SPENT
from trueup.microdata.public_keys import as_type, check_category, check_in_engine, is_cast

if TYPE_CHECKING:
    from trueup.microdata.design import Design
    from trueup.microdata.noisy_totals import Total
    from trueup.microdata.public_keys import Keys

_NUMBERS = re.compile("INT|FLOAT|DOUBLE|DECIMAL|REAL|BOOLEAN|NUMERIC|BYTE|SHORT|LONG")
_FLOATS = ("FLOAT", "DOUBLE", "REAL")


def _double(value: SupportsFloat) -> str:
    """Return a double as it is, whatever its size."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"


_TOP = _double(sys.float_info.max)


class Use(NamedTuple):
    """A column as a measure reads it: as categories, or as numbers."""

    column: str
    categorical: bool


class Fault(NamedTuple):
    """What must not be in a row: what to say of it, and the condition."""

    problem: str
    hint: str
    where: str


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
    in_order
        Whether Spark numbers rows one after another, which takes one worker: for simulations.
    """

    design: Design
    types: Mapping[str, str]
    missing: Mapping[str, Any]
    text_numbers: bool = False
    secret: str = ""
    dialect: str = "duckdb"
    in_order: bool = False

    # -- values ------------------------------------------------------------------------------------

    def quote(self, name: str) -> str:
        """Return an identifier."""
        return quote(name, self.dialect)

    def text(self, name: str) -> str:
        """Return a column as text."""
        return self._as_text(self.quote(name))

    def _as_text(self, value: str) -> str:
        return f"CAST({value} AS {'STRING' if self.dialect == 'spark' else 'VARCHAR'})"

    def is_text(self, name: str) -> bool:
        """Whether a column of numbers is written as text."""
        return self.types[name].upper() in ("VARCHAR", "STRING")

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """What is read, each once."""
        measures = [m for m in self.design.measures.values() if hasattr(m, "column")]
        return tuple(dict.fromkeys(Use(m.column, isinstance(m, Share)) for m in measures))

    def _number(self, name: str) -> str:
        """Return a column as doubles; NULL where it is no number."""
        cast = "TRY_CAST" if self.is_text(name) else "CAST"
        return f"{cast}({self.quote(name)} AS DOUBLE)"

    def _is_missing(self, use: Use) -> str:
        column = self.quote(use.column)
        if use.categorical and self.types[use.column].upper().startswith("ENUM"):
            column = self.text(use.column)  # which may be blank too
            return f"({column} IS NULL OR TRIM({column}) = '')"
        if self.is_text(use.column):
            number = self._number(use.column)
            nan = "" if use.categorical else f" OR COALESCE({self._is_nan(number)}, FALSE)"
            return f"({column} IS NULL OR TRIM({column}) = ''{nan})"
        kind = self.types[use.column].upper()
        nan = f" OR {self._is_nan(column)}" * any(f in kind for f in _FLOATS)
        return f"({column} IS NULL{nan})"

    def _is_nobody(self, unit: str) -> str:
        """Return the condition that a row says not whose it is: all such are not one unit."""
        nobody = "('', 'nan', 'NaN', 'NAN')"  # as programs write it; Nan is a name
        return f"COALESCE(TRIM({self.text(unit)}) IN {nobody}, TRUE)"

    def _is_nan(self, value: str) -> str:
        """Return the condition that a number is NaN.

        In DuckDB not ``isnan``: where Parquet files say that all values are finite, it leaves that
        out too.
        """
        if self.dialect == "spark":
            return f"isnan({value})"
        return f"NOT (isfinite({value}) OR isinf({value}))"

    def _is_finite(self, value: str) -> str:
        """Return the condition that a number is finite.

        In DuckDB no comparison: where Parquet files say that all values are small, it leaves even
        that of an absolute value out, but what they say is not of NaN.
        """
        return f"abs({value}) <= {_TOP}" if self.dialect == "spark" else f"isfinite({value})"

    # -- what is added up --------------------------------------------------------------------------

    def _filled(self, use: Use) -> str:
        """Return a value, or what stands for a missing one."""
        value = self.text(use.column) if use.categorical else self._number(use.column)
        given = self.missing.get(use.column)
        if given is None or given == "drop":
            return value
        if use.categorical:
            stands = literal(key_text(given), self.dialect)
        else:
            stands = f"CAST({literal(constant(Fraction(given)), self.dialect)} AS DOUBLE)"
        return f"CASE WHEN {self._is_missing(use)} THEN {stands} ELSE {value} END"

    def _added(self, i: int, total: Total) -> str:
        """Return what is added up for one row."""
        if total.column is None:
            return "1"
        if total.category is None:
            return f"a{i}"
        chosen = f"{self._helper(_use(total))} = {literal(total.category, self.dialect)}"
        return f"CASE WHEN {chosen} THEN 1 ELSE 0 END"

    def _whole(self, total: Total) -> str:
        """Return a number as a whole number of steps; NULL for what is unusable.

        These are the operations on doubles of :meth:`Grid.whole`; in DuckDB a cast rounds halves to
        even, like ``rint``. Most values lie within their bounds: the rest is asked of others only.
        Where Parquet files say that all do, DuckDB does not compare, and NaN comes through: that is
        no whole number.
        """
        value, grid = self._helper(_use(total)), total.grid
        if grid is None:  # rounded down: no record counts as more than it is
            inside = f"CASE WHEN {value} BETWEEN 0 AND {_double(LARGEST)} THEN {value} END"
            return f"TRY_CAST(floor({inside} * {_double(FINE)}) AS BIGINT)"
        low, high = map(_double, grid.clips)
        clipped = f"CASE WHEN {value} > {high} THEN {high} ELSE {low} END"
        clipped = f"WHEN {self._is_finite(value)} THEN {clipped} END"
        distance = f"(CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} {clipped})"
        near, rest = split(grid.origin)
        distance = distance if not near else f"({distance} - {_double(near)})"
        distance = distance if not rest else f"({distance} + {_double(-rest)})"
        steps = f"{distance} / {_double(grid.unit)}"
        return f"TRY_CAST({f'rint({steps})' if self.dialect == 'spark' else steps} AS BIGINT)"

    def _sum(self, what: str) -> str:
        """Return the sum of whole numbers of 64 bits, in 128: as text, which is read in no time."""
        if what == "1":
            return "COUNT(*)"
        what = f"CAST({what} AS DECIMAL(28, 0))" if self.dialect == "spark" else what
        return self._as_text(f"COALESCE(SUM({what}), 0)")

    # -- what must not be there --------------------------------------------------------------------

    def faults(self) -> list[Fault]:
        """Return what is refused."""
        unit = self.design.unit  # first: a unit that is measured too has no value to name
        found = [fault for use in self.uses for fault in self._faults(use)]
        if unit is None or self._is_dropped(unit):
            return found
        problem = f"{unit} is missing: whose are they?"
        return [Fault(problem, "missing='drop' leaves such rows out", "mu"), *found]

    def _faults(self, use: Use) -> list[Fault]:
        value, missing, name = self._helper(use), f"m{self.uses.index(use)}", use.column
        clean, found = "clean the data first", []
        if name not in self.missing:
            hint = f"missing='drop' leaves such rows out, missing={{{name!r}: …}} names a value"
            found.append(Fault(f"{name} is missing", hint, missing))
        if use.categorical:
            listed = ", ".join(literal(c, self.dialect) for c in self._categories(name))
            strange = f"NOT {missing} AND {value} NOT IN ({listed})"
            hint = "name them all, or map others to one"
            return [*found, Fault(f"{name} is not one of its categories", hint, strange)]
        if self.is_text(name):
            no_number = f"NOT {missing} AND {value} IS NULL"
            found.append(Fault(f"{name} is text that is no number", clean, no_number))
        infinite = f"NOT {missing} AND NOT {self._is_finite(value)}"
        found.append(Fault(f"{name} is infinite", clean, infinite))
        if any(t.column == name and not t.grid for _, t in self._numeric()):
            wild = f"NOT {missing} AND ({value} < 0 OR {value} > {_double(LARGEST)})"
            problem = f"{name} is negative, or above {LARGEST}, where whole totals could overflow"
            hint = "a per-record sum takes non-negative values; measure them in another unit"
            found.append(Fault(problem, hint, wild))
        return found

    def _unusable(self) -> str:
        """Return how many rows have any fault: those whose numbers cannot all be added.

        Of text the faults are asked as they are: where DuckDB needs a column of a CSV file as
        numbers only, it reads it as such, in spite of TRY_CAST, and fails.
        """
        plain = [u for u in self.uses if not u.categorical and not self.is_text(u.column)]
        whole = [f"a{i}" for i, total in self._numeric() if _use(total) in plain]
        bad = [fault.where for u in self.uses if u not in plain for fault in self._faults(u)]
        bad += [fault.where for fault in self.faults() if fault.where == "mu"]
        counted = [f"COUNT(*) - COUNT({' & '.join(whole)})"] * bool(whole)  # & never overflows
        counted += [f"COUNT(*) FILTER (WHERE {_any(bad)})"] * bool(bad)
        return " + ".join(counted) or "0"

    def _numeric(self) -> list[tuple[int, Total]]:
        """Return the totals of numbers, with their places among all."""
        totals = enumerate(self.design.totals)
        return [(i, t) for i, t in totals if t.column is not None and t.category is None]

    def _categories(self, name: str) -> list[str]:
        of = [m for m in self.design.measures.values() if isinstance(m, Share) and m.column == name]
        return [c for c in of[0].categories if all(c in m.categories for m in of)]

    # -- the query ---------------------------------------------------------------------------------

    def _helper(self, use: Use) -> str:
        return f"v{self.uses.index(use)}"

    def check_types(self) -> None:
        """Refuse columns that are not there, or that cannot be what they are used for."""
        for name in self.design.needed:
            if name not in self.types:
                raise _no_column(name, list(self.types))
        for use in self.uses:
            if not use.categorical:
                self._check_numbers(use.column)
        discrete = [use.column for use in self.uses if use.categorical]
        for name in discrete:
            for category in self._categories(name):
                check_category(category, name, self.types[name])
        for name in (*self.design.by, *discrete):
            kind = self.types[name].upper()
            if any(kind.startswith(f) for f in (*_FLOATS, "DECIMAL")):
                raise TrueupError(
                    f"the column {name!r} of keys or categories holds {kind}, numbers with a point",
                    f"make them whole numbers or text first, also where some are missing; {SPENT}",
                )
            if "<" in kind and self.dialect == "spark":  # DuckDB lists the values of an ENUM there
                raise TrueupError(
                    f"the column {name!r} of keys or categories holds {kind}, of several values",
                    f"make it text first; {SPENT}",
                )

    def _check_numbers(self, name: str) -> None:
        kind = self.types[name].upper()
        plain = kind.partition("(")[0]
        nested = "[" in kind or "<" in kind  # as DuckDB and Spark write a list of numbers
        known = _NUMBERS.search(plain) and not nested and "INTERVAL" not in plain
        if known or (self.is_text(name) and self.text_numbers):
            return
        raise TrueupError(
            f"the column {name!r} holds {kind}, not numbers", f"convert it first; {SPENT}"
        )

    def sql(self, source: str, keys: str, *, faults: bool = False) -> str:
        """Return the query: the number of a public group, its totals, how many rows are unusable.

        Or, in place of the totals, how many rows have each fault. ``keys`` is a table of text
        c0, c1, … with the number ``i`` of the group.
        """
        by = range(len(self.design.by))
        same = " AND ".join(f"g.k{i} = {self._key(i)}" for i in by)
        if faults:
            added = [f"COUNT(*) FILTER (WHERE {fault.where})" for fault in self.faults()]
        else:
            added = [self._sum(self._added(i, t)) for i, t in enumerate(self.design.totals)]
            added.append(self._unusable())
        sums = ", ".join(f"{what} AS s{i}" for i, what in enumerate(added))
        rows = self._rows(source, keys)
        if not by:
            return f"SELECT 0 AS i, t.* FROM (SELECT {sums} FROM ({rows}) AS r) AS t"
        groups = ", ".join(f"b{i}" for i in by)
        texts = ", ".join(f"{self._compared(i, f'b{i}')} AS k{i}" for i in by)
        kept = ", ".join(f"g.s{i}" for i in range(len(added)))
        grouped = f"SELECT {texts}, {sums} FROM ({rows}) AS r GROUP BY {groups}"
        return f"SELECT p.i, {kept} FROM ({grouped}) AS g JOIN {keys} AS p ON {same}"

    @property
    def kinds(self) -> list[str]:
        """The types of the columns that make the groups."""
        return [self.types[name] for name in self.design.by]

    def _key(self, i: int) -> str:
        """Return a column of the keys as it is compared."""
        return as_type(f"p.c{i}", self.kinds[i])

    def _compared(self, i: int, column: str) -> str:
        """Return a column that makes the groups as it is compared with keys."""
        return column if is_cast(self.kinds[i]) else self._as_text(column)

    def _rows(self, source: str, keys: str) -> str:
        """Return the rows that count, with helper columns."""
        design = self.design
        helpers = [f"{self.quote(name)} AS b{i}" for i, name in enumerate(design.by)]
        for i, use in enumerate(self.uses):
            helpers += [f"{self._filled(use)} AS v{i}", f"{self._is_missing(use)} AS m{i}"]
        if design.unit is not None:
            unit = self.quote(design.unit)
            helpers += [f"{unit} AS u", f"{self._is_nobody(design.unit)} AS mu"]
            helpers.append(f"{self._numbered()} AS o")
        rows = f"SELECT {', '.join(helpers) or '1 AS one'} FROM {source}"
        rows = self._without_missing(rows)
        rows = rows if design.unit is None else self._at_most(rows, keys)
        whole = [f"{self._whole(total)} AS a{i}" for i, total in self._numeric()]
        return f"SELECT {', '.join(['*', *whole])} FROM ({rows}) AS e" if whole else rows

    def _without_missing(self, rows: str) -> str:
        dropped = [f"m{i}" for i, use in enumerate(self.uses) if self._is_dropped(use.column)]
        dropped += ["mu"] * (self.design.unit is not None and self._is_dropped(self.design.unit))
        if not dropped:
            return rows
        known = " AND ".join(f"NOT {missing}" for missing in dropped)
        return f"SELECT * FROM ({rows}) AS d WHERE {known}"

    def _is_dropped(self, name: str) -> bool:
        return bool(self.missing.get(name) == "drop")

    def _numbered(self) -> str:
        if self.dialect != "spark":
            return "row_number() OVER ()"
        number = "monotonically_increasing_id()"
        return f"row_number() OVER (ORDER BY {number})" if self.in_order else number

    def _at_most(self, rows: str, keys: str) -> str:
        """Return at most so many rows of each unit in public groups, and all with a fault."""
        by = range(len(self.design.by))
        if by:
            same = " AND ".join(f"{self._compared(i, f'w.b{i}')} = {self._key(i)}" for i in by)
            rows = f"SELECT w.* FROM ({rows}) AS w JOIN {keys} AS p ON {same}"
        key, number = literal(self.secret, self.dialect), self._as_text("o")
        mixed = (
            f"sha2(concat({key}, {number}), 256)"
            if self.dialect == "spark"
            else f"sha256({key} || {number})"
        )
        rank = f"row_number() OVER (PARTITION BY u ORDER BY {mixed})"
        ranked = f"SELECT *, {rank} AS rank_in_unit FROM ({rows}) AS q"
        chosen = [f"rank_in_unit <= {self.design.at_most}", *(f.where for f in self.faults())]
        return f"SELECT * FROM ({ranked}) AS z WHERE {_any(chosen)}"

    def totals(
        self, ask: Callable[[str], Sequence[Sequence[Any]]], source: str, table: str, keys: Keys
    ) -> list[list[int]]:
        """Return what was added up in every group; refuse what must not be.

        ``table`` has the keys in the engine.
        """
        if any(map(is_cast, self.kinds)):
            check_in_engine(ask, keys, self.kinds, table)
        rows = ask(self.sql(source, table))
        sums = [[0] * len(keys) for _ in self.design.totals]
        if not rows:
            return sums
        numbers, *found, unusable = zip(*rows, strict=True)
        if any(unusable):
            raise self._refusal(ask(self.sql(source, table, faults=True)))
        for into, values in zip(sums, found, strict=True):
            for i, value in zip(numbers, map(int, values), strict=True):
                into[i] += value
        return sums

    def _refusal(self, rows: Sequence[Sequence[Any]]) -> TrueupError:
        """Return the error, from the number of rows with each fault in every group."""
        _, *counts = (sum(column) for column in zip(*rows, strict=True))
        for fault, count in zip(self.faults(), counts, strict=False):
            if count:
                many = f"{count:,} row{'s' * (count != 1)}"
                return TrueupError(f"{many}: {fault.problem}", f"{fault.hint}; {SPENT}")
        return TrueupError("rows have missing or infinite values", f"clean the data first; {SPENT}")


def _no_column(name: str, columns: Sequence[str]) -> TrueupError:
    """Return the error about a column that is not there, with one that is near."""
    folded = {c.casefold(): c for c in columns}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    shown = ", ".join(columns[:12]) + (", …" if len(columns) > 12 else "")
    spent = f"? {SPENT.capitalize()}" if near else f"; {SPENT}"
    hint = f"did you mean {folded[near[0]]}" if near else f"it has {shown}"
    return TrueupError(f"the data has no column {name!r}", hint + spent)


def _use(total: Total) -> Use:
    """Return how a total reads its column."""
    return Use(str(total.column), total.category is not None)


def _any(conditions: Sequence[str]) -> str:
    return " OR ".join(f"({condition})" for condition in conditions)
