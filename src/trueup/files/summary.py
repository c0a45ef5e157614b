"""What a run did: rows, values beyond the bounds, empty cells, missing results."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.files.query import quote
from trueup.near.estimator import NearlyUnbiased
from trueup.tables.bounds import SAMPLE, bounds_of
from trueup.tables.empty import empties_of
from trueup.tables.selection import published_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.files.query import Statement
    from trueup.tables.bounds import Bound
    from trueup.tables.empty import Empty


_COUNTED = ("value", "stderr")  # the others are missing where these are


@dataclasses.dataclass(frozen=True)
class Tally:
    """One query over the rows, and the words for its result.

    Parameters
    ----------
    statement
        What was computed. Where its source is the output, ``present`` holds the new columns, and
        they are read instead of computed again.
    rows
        How many rows there are, so that about SAMPLE of them can be chosen.
    present
        The new columns that the source has.
    clamped
        Whether values were moved to a bound before they were published.
    """

    statement: Statement
    rows: int
    present: frozenset[str] = frozenset()
    clamped: bool = False

    def sql(self) -> str:
        """Return the query: one row of counts and sums."""
        inner = self.statement.over(self._columns())
        counts = ",\n  ".join(f"{sql} AS {quote(name)}" for name, sql in self._counts().items())
        return f"SELECT\n  {counts}\nFROM (\n{inner}\n)"

    def _columns(self) -> dict[str, str]:
        """Return what is counted, row by row."""
        s = self.statement
        columns = {alias: quote(alias) for alias in (*s.numbers.values(), *s.scales.values())}
        if self.rows > SAMPLE:
            columns[f"{s.prefix}chance"] = "RANDOM()"
        for name, (request, output) in s.written.items():
            if output not in _COUNTED:
                continue
            columns[name] = quote(name) if name in self.present else s.output(request, output)
        for i, empty in enumerate(self._empties):
            columns[f"{s.prefix}empty_{i}"] = s.output(empty.indicator, "value")
        return columns

    @cached_property
    def _empties(self) -> list[Empty]:
        return empties_of(self.statement.requests)

    def _counts(self) -> dict[str, str]:
        counts = {"rows": "COUNT(*)"}
        for i, bound in enumerate(bounds_of(self.statement.requests)):
            counts |= {f"{name} {i}": sql for name, sql in self._looked_at(bound).items()}
        for i, published in enumerate(published_in(self.statement.requests)):
            number = _finite(self._helper(published.column))
            for what, column in (("values", published.column), ("scales", published.scale)):
                if column is not None:
                    counts[f"{what} {i}"] = self._gathered(self._helper(column), [number])
        for i, empty in enumerate(self._empties):
            e = quote(f"{self.statement.prefix}empty_{i}")
            counts |= {f"empty {i}": f"SUM({e})", f"squares {i}": f"SUM({e} * {e})"}
            counts[f"cells {i}"] = f"COUNT({e})"
            read = [self._helper(column) for column in empty.indicator.inputs]
            for j, column in enumerate((e, *read)):
                counts[f"some {j} {i}"] = self._gathered(column, [f"{e} IS NOT NULL"])
        for name, (_, output) in self.statement.written.items():
            if output in _COUNTED:
                counts[f"known {name}"] = f"COUNT({quote(name)})"
        return counts

    def _looked_at(self, bound: Bound) -> dict[str, str]:
        """Return what is asked of a bounded column: counts, and the farthest value."""
        x, sign, most = self._helper(bound.column), "<", "MIN"
        if bound.side > 0:
            sign, most = ">", "MAX"
        number = _finite(x)
        return {
            "known": f"COUNT({x})",
            "beyond": f"COUNT_IF({x} {sign} {bound.value!r} AND {number})",
            "farthest": f"{most}({x}) FILTER (WHERE {number})",
        }

    def _helper(self, column: str) -> str:
        """Return the helper column of a column that is read, quoted."""
        s = self.statement
        return quote({**s.scales, **s.numbers}[column])

    def _gathered(self, column: str, chosen: list[str]) -> str:
        """Return the list of a column's values at a sample of the rows that are chosen."""
        s = self.statement
        if self.rows > SAMPLE:
            chosen = [*chosen, f"{quote(f'{s.prefix}chance')} < {SAMPLE / self.rows!r}"]
        return f"LIST({column}) FILTER (WHERE {' AND '.join(chosen)})"

    def read(self, row: tuple[Any, ...]) -> Summary:
        """Return the summary that a row of counts makes."""
        counts = dict(zip(self._counts(), row, strict=True))
        return Summary(self.statement, counts, self._empties, self.clamped)


@dataclasses.dataclass(frozen=True)
class Summary:
    """The counts of a run, in words."""

    statement: Statement
    counts: Mapping[str, Any]
    empties: Sequence[Empty] = ()
    clamped: bool = False

    def lines(self) -> list[str]:
        """Return what to say: what was done, then the warnings."""
        return [*self._done(), *(f"trueup: warning: {text}" for text in self._warnings())]

    def _done(self) -> Iterator[str]:
        """Yield one line for the rows, each bounded statistic, and each estimate."""
        rows = self.counts["rows"]
        yield f"{rows:,} row{'s' * (rows != 1)}"
        for i, bound in enumerate(bounds_of(self.statement.requests)):
            found = self._of(i)
            beyond, known = found["beyond"] or 0, found["known"]
            share = f" ({_percent(beyond / known)})" if beyond else ""
            yield f"{bound.statistic}: {beyond:,}{share} {bound.where} {bound.value:.10g}"
        for _, empty, numbers in self._cells():
            yield empty.words(*numbers)
        for request in self.statement.requests:
            yield self._estimate(request.name, rows)
            if isinstance(request.estimator, NearlyUnbiased):
                yield f"{request.name}: {request.estimator.certified}"

    def _cells(self) -> Iterator[tuple[int, Empty, tuple[float, float, int]]]:
        """Yield what was counted of empty cells, where there are rows."""
        for i, empty in enumerate(self.empties):
            total, squares, rows = (self.counts[f"{k} {i}"] for k in ("empty", "squares", "cells"))
            if rows:
                yield i, empty, (float(total), float(squares), rows)

    def _warnings(self) -> Iterator[str]:
        """Yield doubts about columns that end as no noise ends, and about bounds."""
        looked_at = {}
        for i, published in enumerate(published_in(self.statement.requests, clamped=self.clamped)):
            x, scale = (self.counts.get(f"{name} {i}") for name in ("values", "scales"))
            scales = None if scale is None else np.array(scale, float)
            values = np.array(x or [], float)
            looked_at[published.column, published.scale] = values, scales
            for side in (-1, 1):
                if (text := published.doubt(side, values, scales)) is not None:
                    yield text
        for i, bound in enumerate(bounds_of(self.statement.requests)):
            found, (values, scales) = self._of(i), looked_at[bound.column, bound.scale]
            text = bound.doubt(values, scales, found["known"], found["farthest"])
            if text is not None:
                yield text
        for i, empty, numbers in self._cells():
            some = [self.counts[f"some {j} {i}"] for j in range(1 + len(empty.indicator.inputs))]
            g, *inputs = (np.array(values or [], float) for values in some)
            text = empty.doubt(*numbers, g, inputs)
            if text is not None:
                yield text

    def _of(self, i: int) -> dict[str, Any]:
        ending = f" {i}"
        return {k.removesuffix(ending): v for k, v in self.counts.items() if k.endswith(ending)}

    def _estimate(self, name: str, rows: int) -> str:
        known = self.counts[f"known {name}"]
        parts = []
        if known < rows:
            parts.append(f"{rows - known:,} missing")
        errors = self.counts.get(f"known {name}_stderr")
        if errors is not None and errors < known:
            parts.append(f"{known - errors:,} without a standard error")
        return f"{name}: {'; '.join(parts) or 'done'}"


def _finite(x: str) -> str:
    return f"{x} <= CAST('Infinity' AS DOUBLE)"  # NaN is above


def _percent(share: float) -> str:
    """Return a share as a percentage, to two digits.

    Examples
    --------
    >>> _percent(1.0), _percent(1 / 3), _percent(0.00123)
    ('100 %', '33 %', '0.12 %')
    """
    found = 100 * share
    return f"{found:.0f} %" if found >= 10 else f"{found:.2g} %"
