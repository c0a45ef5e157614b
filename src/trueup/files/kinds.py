"""Arrow types: which of them the engine gives back unchanged, which files may be read as one.

Columns that no formula reads must come out as they went in. DuckDB has no decimals of more than 38
digits and reads them as doubles, counts durations and intervals in microseconds, and writes unions
to Parquet as structs. Other types may change their width or encoding on the way (``time32``,
``large_string``, dictionaries), which loses nothing; an Arrow file gets them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError, quoted
from trueup.extras import optional

if TYPE_CHECKING:
    from trueup.files.formats import Format
    from trueup.files.sources import Source

Kinds = Mapping[str, Any]
"""Arrow types by column."""

_DIGITS = 38  # of DuckDB's widest decimal, which has 128 bits


def check_kinds(source: Source, names: Iterable[str], target: Format) -> None:
    """Refuse columns that would not arrive as they are."""
    for name in names:
        kind = source.types.get(name)
        if kind is None:
            continue
        if any(_is_lost(part, source.format, target) for part in _parts(kind)):
            raise TrueupError(
                f"{source.name}: the column {quoted(name)} has the type {kind}, which the engine "
                "cannot keep",
                "leave it out, or convert it first, e.g. to text",
            )


def _parts(kind: Any) -> Iterable[Any]:
    """Yield a type and all types inside it."""
    yield kind
    if hasattr(kind, "storage_type"):
        yield from _parts(kind.storage_type)
    elif hasattr(kind, "value_type"):  # lists, dictionaries, runs
        yield from _parts(kind.value_type)
    else:
        for i in range(kind.num_fields):
            yield from _parts(kind.field(i).type)


def _is_lost(kind: Any, form: Format, target: Format) -> bool:
    is_a = optional("pyarrow", "tables", "reading files").types
    if is_a.is_decimal(kind):
        return bool(kind.precision > _DIGITS or (is_a.is_decimal256(kind) and form.is_arrow))
    if is_a.is_float16(kind):
        return form.is_arrow  # of Parquet it is read as the float of the same value
    if is_a.is_union(kind):
        return not target.is_arrow
    return bool(is_a.is_duration(kind) or is_a.is_interval(kind))


def common(one: Any, other: Any) -> Any:
    """Return the type in which columns of two types can stand, each value as it is, or None.

    Examples
    --------
    >>> import pyarrow as pa
    >>> common(pa.int32(), pa.int64()), common(pa.int64(), pa.float64())
    (DataType(int64), None)
    """
    if one == other:
        return one
    is_a = optional("pyarrow", "tables", "reading files").types
    one, other = (k.value_type if is_a.is_dictionary(k) else k for k in (one, other))
    if one == other or is_a.is_null(other):
        return one
    if is_a.is_null(one):
        return other
    for numbers in (is_a.is_signed_integer, is_a.is_unsigned_integer, is_a.is_floating):
        if numbers(one) and numbers(other):
            return max(one, other, key=lambda kind: kind.bit_width)
    texts = (is_a.is_string, is_a.is_large_string, is_a.is_string_view)
    both = all(any(text(kind) for text in texts) for kind in (one, other))
    return one if both else None


def restored(schema: Any, kinds: Kinds) -> Any:
    """Return a schema of the engine with the types that the columns had, where it can be.

    Dictionaries stay what they hold: a file has room for one, and each batch makes its own.
    """
    arrow = optional("pyarrow", "tables", "writing Arrow files")
    for i, field in enumerate(schema):
        kind = kinds.get(field.name, field.type)
        if kind != field.type and not any(arrow.types.is_dictionary(k) for k in _parts(kind)):
            try:
                arrow.array([], field.type).cast(kind)
            except (arrow.ArrowException, AttributeError):  # the engine's own type it is
                continue
            schema = schema.set(i, field.with_type(kind))
    return schema


def cast(batch: Any, schema: Any) -> Any:
    """Return a batch with the types of a schema; a value that would change is an error."""
    arrow = optional("pyarrow", "tables", "writing Arrow files")
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)
