"""Tables and record batches of pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from narwhals.dependencies import get_pyarrow

from trueup.frames.columns import Column, Piece, joined, not_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_FEW = 64
"""Chunks that are worked on one by one; more are put together first."""


def names(frame: Any) -> list[str]:
    """Return the names of the columns."""
    return list(frame.schema.names)


def pieces(frame: Any, names: Sequence[str]) -> Iterator[Piece]:
    """Yield the columns chunk by chunk: where nothing is missing they are not copied."""
    pa = get_pyarrow()
    chosen = frame.select(list(names))
    for name in names:
        check(chosen.column(name), name)
    if isinstance(chosen, pa.Table):
        several = any(c.num_chunks > _FEW for c in chosen.columns)
        batches = (chosen.combine_chunks() if several else chosen).to_batches()
    else:
        batches = [chosen]
    start = 0
    for batch in batches or pa.Table.from_pylist([], chosen.schema).to_batches():
        columns = zip(names, batch.columns, strict=True)
        yield Piece(start, {name: column(array) for name, array in columns})
        start += batch.num_rows


def check(array: Any, name: Any) -> None:
    """Refuse an array that holds no numbers, with its first value."""
    pa, kind = get_pyarrow(), array.type
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return
    if not types.is_null(kind):
        raise not_numbers(name, kind, array.is_valid(), lambda row: array[row].as_py())


def column(array: Any) -> Column:
    """Return an Arrow array as numbers; integers and floats without nulls are not copied."""
    pa = get_pyarrow()
    if isinstance(array, pa.ChunkedArray):
        return joined([column(chunk) for chunk in array.chunks])
    kind = array.type
    if pa.types.is_dictionary(kind):
        return column(array.dictionary_decode())
    if pa.types.is_null(kind):
        return Column(np.full(len(array), np.nan), np.ones(len(array), bool))
    if pa.types.is_decimal(kind) or (array.null_count and not pa.types.is_floating(kind)):
        array = array.cast(pa.float64(), safe=False)
    if not array.null_count:
        return Column(array.to_numpy())
    null = array.is_null().to_numpy(zero_copy_only=False)
    return Column(array.to_numpy(zero_copy_only=False), null)


def array(column: Column) -> Any:
    """Return a column as an Arrow array, without copying its numbers."""
    return get_pyarrow().array(column.values, mask=column.null)


def attach(frame: Any, new: dict[str, list[Column]], like: dict[str, Any]) -> Any:
    """Return the table with columns added, chunked as they were computed."""
    pa = get_pyarrow()
    for name, parts in new.items():
        if isinstance(frame, pa.RecordBatch):
            values: Any = array(joined(parts))
        else:
            values = pa.chunked_array([array(part) for part in parts], pa.float64())
        frame = frame.append_column(name, values)
    return frame


def codes(frame: Any, names: Sequence[str]) -> NDArray[np.intp]:
    """Return which group each row is in, numbered as they first appear."""
    pa, total = get_pyarrow(), np.zeros(frame.num_rows, np.intp)
    for name in names:
        values = frame.column(name)
        if hasattr(values, "combine_chunks"):
            values = values.combine_chunks()
        own = numbered(values)
        total = total * (int(own.max(initial=0)) + 1) + own
        total = pa.array(total).dictionary_encode().indices.to_numpy().astype(np.intp)
    return total


def numbered(array: Any) -> NDArray[np.intp]:
    """Return a number for each entry, the same where entries are equal; null has 0.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numbered(pa.array([0.0, -0.0, None]))
    array([1, 1, 0])
    >>> numbered(pa.DictionaryArray.from_arrays([2, 1, 0, None], ["A", "A", None]))
    array([0, 1, 1, 0])
    """
    pa = get_pyarrow()
    if pa.types.is_dictionary(array.type):  # which may hold a value twice, or null
        entries = np.append(numbered(array.dictionary), 0)
        where = array.indices.cast(pa.int64()).fill_null(len(array.dictionary))
        return np.asarray(entries[where.to_numpy(zero_copy_only=False)])
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.intp)
    if pa.types.is_floating(array.type):
        x = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0 becomes 0
        null = array.is_null().to_numpy(zero_copy_only=False)
        array = pa.array(np.where(np.isnan(x), np.nan, x), mask=null)  # NaN has many patterns
    found = array.dictionary_encode().indices.cast(pa.int64()).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False) + 1, np.intp)


def make(frame: Any, names: Sequence[str], rows: Any, new: dict[str, Column]) -> Any:
    """Return a table of some rows of some columns, with others added."""
    pa = get_pyarrow()
    kept = frame.select(list(names)).take(pa.array(rows))
    fields = dict(zip(names, kept.columns, strict=True))
    made = pa.table if isinstance(frame, pa.Table) else pa.record_batch
    return made(fields | {name: array(column) for name, column in new.items()})
