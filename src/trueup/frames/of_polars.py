"""Eager Polars frames; lazy ones go through expressions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from narwhals.dependencies import get_polars

from trueup.frames.columns import Column, Piece, not_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_FEW = 64
"""Chunks that are worked on one by one; more are put together first."""


def names(frame: Any) -> list[str]:
    """Return the names of the columns."""
    return list(frame.columns)


def pieces(frame: Any, names: Sequence[str]) -> Iterator[Piece]:
    """Yield the columns between the ends of their chunks: what lies in one chunk is not copied."""
    series = [frame.get_column(name) for name in names]
    ends = {0, frame.height}
    for s in series:
        check(s, s.name)
        ends |= set(np.cumsum(s.chunk_lengths()).tolist())
    if len(ends) > _FEW:
        series, ends = [s.rechunk() for s in series], {0, frame.height}
    for start, stop in pairwise(sorted(ends)) if len(ends) > 1 else [(0, 0)]:
        parts = (s.slice(start, stop - start) for s in series)
        yield Piece(start, {n: column(s) for n, s in zip(names, parts, strict=True)})


def check(series: Any, name: str) -> None:
    """Refuse a series that holds no numbers, with its first value."""
    kind = series.dtype
    if not kind.is_numeric() and kind != get_polars().Null:
        raise not_numbers(name, kind, series.is_not_null(), series.__getitem__)


def column(series: Any) -> Column:
    """Return a series as numbers; integers and floats without nulls are not copied."""
    pl, kind = get_polars(), series.dtype
    missing = series.null_count()
    if kind == pl.Null:
        return Column(np.full(len(series), np.nan), np.ones(len(series), bool))
    if not kind.is_float() and (missing or kind not in _integers()):
        series = series.cast(pl.Float64)
    if not missing:
        return Column(series.to_numpy())
    return Column(series.fill_null(np.nan).to_numpy(), series.is_null().to_numpy())


def _integers() -> tuple[Any, ...]:
    pl = get_polars()
    small = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
    return (*small, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def series(name: str, column: Column) -> Any:
    """Return a column as a series, without copying its numbers where nothing is missing."""
    made = get_polars().Series(name, column.values)
    if column.null is None:
        return made
    nothing = get_polars().Series(name, [None], dtype=get_polars().Float64)
    return made.zip_with(get_polars().Series(~column.null), nothing)


def attach(frame: Any, new: dict[str, list[Column]], like: dict[str, Any]) -> Any:
    """Return the frame with columns added, chunked as they were computed."""
    pl = get_polars()
    return frame.with_columns(
        pl.concat([series(name, part) for part in parts], rechunk=False)
        for name, parts in new.items()
    )


def codes(frame: Any, names: Sequence[str]) -> NDArray[np.intp]:
    """Return which group each row is in, numbered as they first appear."""
    keys = frame.select(names)
    number = "#" + "".join(names)
    groups = keys.unique(maintain_order=True).with_row_index(number)
    found = keys.join(groups, on=names, how="left", nulls_equal=True, maintain_order="left")
    return np.asarray(found.get_column(number).to_numpy().astype(np.intp))


def make(frame: Any, names: Sequence[str], rows: Any, new: dict[str, Column]) -> Any:
    """Return a frame of some rows of some columns, with others added."""
    added = [series(name, column) for name, column in new.items()]
    return get_polars().DataFrame([*(frame.get_column(n).gather(rows) for n in names), *added])
