"""Exact totals of every public group: whole numbers, added by one function over Arrow batches.

Engines only select rows. What decides privacy happens here, in NumPy: values that cannot be used
are found, numbers are clipped to their bounds and rounded to the grid of the mechanisms, and whole
numbers are added exactly. No optimiser is trusted with any of it: DuckDB leaves a comparison out
where the statistics of a Parquet file say that all values pass, and such a file may lie.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.extras import optional
from trueup.microdata.measures import Share, key_text
from trueup.microdata.noisy_totals import FINE, LARGEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.microdata.design import Design
    from trueup.microdata.noisy_totals import Total

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

DROP = "drop"
_HALF = 31
"""Whole numbers have at most 62 bits: two halves of 31."""
_ROWS = 2**22
"""So many halves have a sum below 2⁵³, which doubles hold exactly."""
_FLUSH = 2**31
"""And the sums of the halves of so many rows are below 2⁶³."""


class Use(NamedTuple):
    """A column as a measure reads it: as categories, or as numbers."""

    column: str
    categorical: bool


class Fault(NamedTuple):
    """What must not be in a row, and what to do about it."""

    problem: str
    hint: str


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the rows of a design are read.

    Parameters
    ----------
    design
        What is added up.
    missing
        What stands for a missing value, by column; "drop" leaves the row out.
    drop_errors
        Whether rows that cannot be used are left out, as if they were not there.
    """

    design: Design
    missing: Mapping[str, Any]
    drop_errors: bool = False

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """What is read, each once."""
        measures = [m for m in self.design.measures.values() if hasattr(m, "column")]
        return tuple(dict.fromkeys(Use(m.column, isinstance(m, Share)) for m in measures))

    def categories(self, name: str) -> list[str]:
        """Return the categories that every share of a column lists."""
        of = [m for m in self.design.measures.values() if isinstance(m, Share) and m.column == name]
        return [c for c in of[0].categories if all(c in m.categories for m in of)]

    def has_size_limit(self, use: Use) -> bool:
        """Whether values are added as they are, without bounds: from 0 to ``LARGEST`` only."""
        of = (t for t in self.design.totals if t.column == use.column and t.category is None)
        return not use.categorical and any(t.grid is None for t in of)

    def is_dropped(self, name: str) -> bool:
        """Whether rows in which a column is missing are left out."""
        return self.drop_errors or bool(self.missing.get(name) == DROP)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All that is refused, in the order in which it is told."""
        unit = [] if self.design.unit is None else [self.no_unit]
        return (*unit, *(f for use in self.uses for f in self._faults_of(use)))

    @property
    def no_unit(self) -> Fault:
        """The fault of rows that do not say whose they are."""
        hint = "missing='drop' leaves such rows out"
        return Fault(f"{self.design.unit} is missing: whose rows are they?", hint)

    def missing_in(self, use: Use) -> Fault:
        """Return the fault of missing values."""
        name = use.column
        hint = f"missing='drop' leaves such rows out, missing={{{name!r}: …}} names a value"
        return Fault(f"{name} is missing in some rows", hint)

    def wrong_in(self, use: Use) -> Fault:
        """Return the fault of values that are no category, no number, or out of range."""
        name, hint = use.column, "clean the data first, or leave such rows out: on_error='drop'"
        if use.categorical:
            hint = "name them all, map others to one, or leave such rows out: on_error='drop'"
            return Fault(f"{name} has values that are not one of its categories", hint)
        if self.has_size_limit(use):
            return Fault(
                f"{name} has values that are no numbers, negative, or above {LARGEST}", hint
            )
        return Fault(f"{name} has values that are infinite or no numbers", hint)

    def _faults_of(self, use: Use) -> Iterator[Fault]:
        if use.column not in self.missing:
            yield self.missing_in(use)
        yield self.wrong_in(use)


class Totals:
    """Adds rows up, batch after batch.

    A batch has the columns ``i``, the number of the group; ``v0``, ``v1``, … as :class:`Reading`
    uses them; ``m0``, … where numbers are written as text: whether nothing is written; and with a
    unit ``nobody`` and ``used``.
    """

    def __init__(self, reading: Reading, groups: int) -> None:
        self.reading, self.groups = reading, groups
        self.found: set[Fault] = set()
        totals = reading.design.totals
        self._sums = [np.zeros(groups, object) for _ in totals]
        self._halves = np.zeros((len(totals), 2, groups), np.int64)
        self._since = 0

    def add(self, batch: Any) -> None:
        """Add the rows of an Arrow batch."""
        for start in range(0, batch.num_rows, _ROWS):
            self._add(batch.slice(start, _ROWS))

    def fault(self) -> Fault | None:
        """Return the first fault of any row."""
        return next((f for f in self.reading.faults if f in self.found), None)

    def sums(self) -> list[list[int]]:
        """Return the totals of all groups, one list for each total of the design."""
        self._flush()
        return [total.tolist() for total in self._sums]

    def _add(self, batch: Any) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        kept = np.ones(batch.num_rows, bool)
        if "nobody" in columns:
            given = self.reading.missing.get(str(self.reading.design.unit))
            self._judge(_numpy(columns["nobody"]), self.reading.no_unit, given, kept)
        values = {}
        for number, use in enumerate(self.reading.uses):
            read = self._categories if use.categorical else self._numbers
            values[use] = read(use, columns[f"v{number}"], columns.get(f"m{number}"), kept)
        if "used" in columns:
            kept &= _numpy(columns["used"])
        groups = _numpy(columns["i"])
        if not kept.all():
            groups = groups[kept]
            values = {use: value[kept] for use, value in values.items()}
        self._gather(groups, values)

    def _judge(self, wrong: Mask, fault: Fault, given: object, kept: Mask) -> None:
        """Leave rows out, or remember what is wrong with them."""
        if not wrong.any():
            return
        if not (self.reading.drop_errors or given == DROP):
            self.found.add(fault)
        kept &= ~wrong

    def _numbers(self, use: Use, column: Any, blank: Any, kept: Mask) -> NDArray[np.float64]:
        """Return numbers, 0 in rows that are left out."""
        reading, given = self.reading, self.reading.missing.get(use.column)
        unread = _numpy(column.is_null())
        values = np.array(_numpy(column), float)
        missing = np.isnan(values) & ~unread | (unread if blank is None else _numpy(blank))
        wrong = ~(np.isfinite(values) | missing)
        if reading.has_size_limit(use):
            with np.errstate(invalid="ignore"):
                wrong |= (values < 0) | (values > LARGEST)
        if given is None or given == DROP:
            self._judge(missing, reading.missing_in(use), given, kept)
            values[missing] = 0.0
        else:
            values[missing] = float(Fraction(given))
        self._judge(wrong, reading.wrong_in(use), None, kept)
        values[wrong] = 0.0
        return values

    def _categories(self, use: Use, column: Any, blank: Any, kept: Mask) -> Ints:
        """Return the numbers of categories, 0 in rows that are left out."""
        compute = optional("pyarrow.compute", "tables", "releasing tables")
        arrow = optional("pyarrow", "tables", "releasing tables")
        listed = self.reading.categories(use.column)
        found = compute.index_in(column, value_set=arrow.array(listed, column.type))
        strange = _numpy(found.is_null())
        codes: Ints = np.array(_numpy(found.fill_null(0)), np.int64)
        if not strange.any():
            return codes
        trimmed = compute.utf8_trim_whitespace(column)
        missing = _numpy(compute.equal(trimmed, "").fill_null(True))
        given = self.reading.missing.get(use.column)
        if given is None or given == DROP:
            self._judge(missing, self.reading.missing_in(use), given, kept)
        else:
            codes[missing] = listed.index(key_text(given))
        self._judge(strange & ~missing, self.reading.wrong_in(use), None, kept)
        return codes

    def _gather(self, groups: Ints, values: Mapping[Use, NDArray[Any]]) -> None:
        """Add the whole numbers of rows to their groups."""
        if self._since + len(groups) > _FLUSH:
            self._flush()
        self._since += len(groups)
        counts: dict[Use, Ints] = {}
        for total, halves in zip(self.reading.design.totals, self._halves, strict=True):
            if total.column is None:
                halves[0] += np.bincount(groups, minlength=self.groups)
                continue
            use = Use(total.column, total.category is not None)
            if total.category is None:
                whole = _whole(total, values[use])
                halves[0] += self._summed(groups, whole & ((1 << _HALF) - 1))
                halves[1] += self._summed(groups, whole >> _HALF)
                continue
            listed = self.reading.categories(total.column)
            if use not in counts:
                cells = np.bincount(
                    groups * len(listed) + values[use], minlength=self.groups * len(listed)
                )
                counts[use] = cells.reshape(self.groups, len(listed))
            if total.category in listed:
                halves[0] += counts[use][:, listed.index(total.category)]

    def _summed(self, groups: Ints, half: Ints) -> Ints:
        return np.bincount(groups, half, self.groups).astype(np.int64)

    def _flush(self) -> None:
        """Move the sums of halves into whole numbers of any size."""
        for into, (low, high) in zip(self._sums, self._halves, strict=True):
            into += (high.astype(object) << _HALF) + low.astype(object)
        self._halves[:] = 0
        self._since = 0


def _whole(total: Total, values: NDArray[np.float64]) -> Ints:
    """Return values as whole numbers of steps; without a grid no value counts as more than it is.

    The grid clips what lies beyond its bounds.
    """
    if total.grid is None:
        return np.floor(values * FINE).astype(np.int64)
    return total.grid.whole(values)


def _numpy(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def partial_sums(reading: Reading, groups: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield one Arrow batch with what some rows add: for a worker that has a part of the rows.

    Columns ``i``, the number of the group, ``f``, the number of a fault or −1, and ``s0``, ``s1``,
    … the totals as text. Groups without rows are left out; a fault stands in a row of its own.
    """
    arrow = optional("pyarrow", "tables", "releasing tables")
    totals = Totals(reading, groups)
    for batch in batches:
        totals.add(batch)
    sums = totals.sums()
    touched = [i for i in range(groups) if any(total[i] for total in sums)]
    faults = [k for k, fault in enumerate(reading.faults) if fault in totals.found]
    zeros = ["0"] * len(faults)
    columns = {
        "i": arrow.array(touched + [0] * len(faults), arrow.int64()),
        "f": arrow.array([-1] * len(touched) + faults, arrow.int64()),
    }
    for k, total in enumerate(sums):
        columns[f"s{k}"] = arrow.array([*(str(total[i]) for i in touched), *zeros], arrow.string())
    yield arrow.RecordBatch.from_pydict(columns)
