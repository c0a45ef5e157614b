"""The query that selects rows: those of public groups, at most so many of each unit.

It adds nothing up and decides nothing about values: :mod:`trueup.microdata.totals` does.

With a privacy unit, rows are put in an order by a keyed hash of their number, with a key that is
drawn for this release: that order is independent of all values, and the first ``at_most`` rows of
each unit are used.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.files.query import literal, quote
from trueup.microdata.noisy_totals import LARGEST
from trueup.microdata.privacy_notice import UNRELEASED
from trueup.microdata.public_keys import as_type, check_category, compared

if TYPE_CHECKING:
    from trueup.microdata.totals import Reading, Use

_NUMBERS = re.compile("INT|FLOAT|DOUBLE|DECIMAL|REAL|BOOLEAN|NUMERIC|BYTE|SHORT|LONG")
_FLOATS = ("FLOAT", "DOUBLE", "REAL")
_TEXTS = ("VARCHAR", "STRING")


@dataclasses.dataclass(frozen=True)
class Selection:
    """The query over one source of rows.

    Parameters
    ----------
    reading
        What is read.
    types
        The columns of the source, with their types in the engine.
    text_numbers
        Whether numbers may be written as text, as in CSV files.
    secret
        The key of the order in which the rows of a unit are used.
    dialect
        ``duckdb`` or ``spark``.
    in_order
        Whether Spark numbers rows one after another, which takes one worker: for simulations.
    """

    reading: Reading
    types: Mapping[str, str]
    text_numbers: bool = False
    secret: str = ""
    dialect: str = "duckdb"
    in_order: bool = False

    # -- types -------------------------------------------------------------------------------------

    def check_types(self) -> None:
        """Refuse columns that are not there, or that cannot be what they are used for."""
        for name in self.reading.design.needed:
            if name not in self.types:
                raise _no_column(name, list(self.types))
        for use in self.reading.uses:
            if not use.categorical:
                self._check_numbers(use.column)
        discrete = [use.column for use in self.reading.uses if use.categorical]
        for name in discrete:
            for category in self.reading.categories(name):
                check_category(category, name, self.types[name])
        for name in (*self.reading.design.by, *discrete):
            self._check_discrete(name, self.types[name].upper())

    def _check_numbers(self, name: str) -> None:
        kind = self.types[name].upper()
        plain = kind.partition("(")[0]
        nested = "[" in kind or "<" in kind  # as DuckDB and Spark write a list of numbers
        known = _NUMBERS.search(plain) and not nested and "INTERVAL" not in plain
        if known or (self.is_text(name) and self.text_numbers):
            return
        raise TrueupError(
            f"the column {name!r} holds {kind}, not numbers", f"convert it first; {UNRELEASED}"
        )

    def _check_discrete(self, name: str, kind: str) -> None:
        if any(kind.startswith(f) for f in (*_FLOATS, "DECIMAL")):
            raise TrueupError(
                f"the column {name!r} of keys or categories holds {kind}, numbers with a point",
                f"make them whole numbers or text first, also where some are missing; {UNRELEASED}",
            )
        if "<" in kind and self.dialect == "spark":  # DuckDB lists the values of an ENUM there
            raise TrueupError(
                f"the column {name!r} of keys or categories holds {kind}, of several values",
                f"make it text first; {UNRELEASED}",
            )

    def is_text(self, name: str) -> bool:
        """Whether a column of numbers is written as text."""
        return self.types[name].upper() in _TEXTS

    # -- the query ---------------------------------------------------------------------------------

    def sql(self, source: str, keys: str) -> str:
        """Return the query of the rows in public groups, with the number of their group.

        ``keys`` is a table of text c0, c1, … with the number ``i`` of the group.
        """
        design = self.reading.design
        columns = [f"{self._quote(name)} AS b{i}" for i, name in enumerate(design.by)]
        chosen = []
        for number, use in enumerate(self.reading.uses):
            columns.append(f"{self._value(use)} AS v{number}")
            chosen.append(f"r.v{number}")
            if not use.categorical and self.is_text(use.column):
                columns.append(f"{self._is_blank(use.column)} AS m{number}")
                chosen.append(f"r.m{number}")
        if design.unit is not None:
            columns.append(f"{self._quote(design.unit)} AS u")
            columns.append(f"{self._is_nobody(design.unit)} AS nobody")
            columns.append(f"{self._numbered()} AS o")
            chosen += ["r.nobody", "r.u", "r.o"]
        rows = f"SELECT {', '.join(columns) or '1 AS one'} FROM {source}"
        rows = self._in_groups(rows, chosen, keys)
        return rows if design.unit is None else self._at_most(rows)

    def _in_groups(self, rows: str, chosen: list[str], keys: str) -> str:
        by = range(len(self.reading.design.by))
        if not by:
            return f"SELECT {', '.join(['CAST(0 AS BIGINT) AS i', *chosen])} FROM ({rows}) AS r"
        same = " AND ".join(f"{self._compared(i)} = {self._key(i)}" for i in by)
        listed = ", ".join(["p.i AS i", *chosen])
        return f"SELECT {listed} FROM ({rows}) AS r JOIN {keys} AS p ON {same}"

    def _at_most(self, rows: str) -> str:
        """Return rows with whether they are among the first of their unit.

        Rows that are left out, whatever their place, do not take the place of others.
        """
        key, number = literal(self.secret, self.dialect), self._as_text("o")
        mixed = (
            f"sha2(concat({key}, {number}), 256)"
            if self.dialect == "spark"
            else f"sha256({key} || {number})"
        )
        good = self._good()
        rank = f"row_number() OVER (PARTITION BY u ORDER BY {mixed})"
        kept = f"({rows}) AS q" if good is None else f"({rows}) AS q WHERE {good}"
        columns = [f"v{i}" for i, _ in enumerate(self.reading.uses)]
        columns += [
            f"m{i}"
            for i, use in enumerate(self.reading.uses)
            if not use.categorical and self.is_text(use.column)
        ]
        used = f"{rank} <= {self.reading.design.at_most} AS used"
        return f"SELECT {', '.join(['i', *columns, 'nobody', used])} FROM {kept}"

    def _good(self) -> str | None:
        """Return which rows are left, as far as an engine tells; None if none are left out."""
        reading, found = self.reading, []
        if reading.is_dropped(str(reading.design.unit)):
            found.append("NOT nobody")
        for number, use in enumerate(reading.uses):
            missing = self._is_missing(number, use)
            if reading.missing.get(use.column) == "drop":
                found.append(f"NOT {missing}")
            if reading.drop_errors:
                fine = self._is_fine(number, use)
                filled = use.column in reading.missing
                found.append(f"({missing} OR {fine})" if filled else f"NOT {missing} AND {fine}")
        return " AND ".join(f"({condition})" for condition in found) or None

    def _is_missing(self, number: int, use: Use) -> str:
        value = f"v{number}"
        if use.categorical:
            return f"({value} IS NULL OR TRIM({value}) = '')"
        blank = f"m{number}" if self.is_text(use.column) else f"{value} IS NULL"
        return f"({blank} OR COALESCE(isnan({value}), FALSE))"

    def _is_fine(self, number: int, use: Use) -> str:
        value = f"v{number}"
        if use.categorical:
            listed = (literal(c, self.dialect) for c in self.reading.categories(use.column))
            return f"COALESCE({value} IN ({', '.join(listed)}), FALSE)"
        low, high = (0, LARGEST) if self.reading.has_size_limit(use) else (-1e308, 1e308)
        return f"COALESCE({value} BETWEEN {low!r} AND {high!r}, FALSE)"

    # -- columns -----------------------------------------------------------------------------------

    def _quote(self, name: str) -> str:
        return quote(name, self.dialect)

    def _as_text(self, value: str) -> str:
        return f"CAST({value} AS {self._text})"

    @property
    def _text(self) -> str:
        return "STRING" if self.dialect == "spark" else "VARCHAR"

    def _value(self, use: Use) -> str:
        """Return a column as text, or as doubles: NULL where it is no number."""
        column = self._quote(use.column)
        if use.categorical:
            return self._as_text(column)
        return f"{'TRY_CAST' if self.is_text(use.column) else 'CAST'}({column} AS DOUBLE)"

    def _is_blank(self, name: str) -> str:
        column = self._quote(name)
        return f"COALESCE(TRIM({column}) = '', TRUE)"

    def _is_nobody(self, unit: str) -> str:
        """Return the condition that a row does not say whose it is: all such are not one unit."""
        nobody = "('', 'nan', 'NaN', 'NAN')"  # as programs write it; Nan is a name
        return f"COALESCE(TRIM({self._as_text(self._quote(unit))}) IN {nobody}, TRUE)"

    def _numbered(self) -> str:
        if self.dialect != "spark":
            return "row_number() OVER ()"
        number = "monotonically_increasing_id()"
        return f"row_number() OVER (ORDER BY {number})" if self.in_order else number

    @property
    def kinds(self) -> list[str]:
        """The types of the columns that make the groups."""
        return [self.types[name] for name in self.reading.design.by]

    def _key(self, i: int) -> str:
        """Return a column of the keys as it is compared."""
        return as_type(f"p.c{i}", self.kinds[i])

    def _compared(self, i: int) -> str:
        return compared(f"r.b{i}", self.kinds[i], self._text)


def _no_column(name: str, columns: Sequence[str]) -> TrueupError:
    """Return the error about a column that is not there, with one that is near."""
    folded = {c.casefold(): c for c in columns}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    shown = ", ".join(columns[:12]) + (", …" if len(columns) > 12 else "")
    released = f"? {UNRELEASED.capitalize()}" if near else f"; {UNRELEASED}"
    hint = f"did you mean {folded[near[0]]}" if near else f"it has {shown}"
    return TrueupError(f"the data has no column {name!r}", hint + released)
