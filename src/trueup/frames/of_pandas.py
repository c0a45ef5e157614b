"""pandas frames: any index, NumPy, nullable and Arrow columns."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from narwhals.dependencies import get_pandas, get_pyarrow

from trueup.frames import of_arrow
from trueup.frames.columns import Column, Piece, joined, not_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


def names(frame: Any) -> list[Any]:
    """Return the names of the columns."""
    return list(frame.columns)


def pieces(frame: Any, names: Sequence[Any]) -> Iterator[Piece]:
    """Yield the columns; NumPy ones are not copied.

    Beside a nullable or Arrow column the NaN of a NumPy one is null, as in pandas' own arithmetic.
    """
    columns = {name: column(frame[name], name) for name in names}
    plain = [name for name in names if isinstance(frame[name].dtype, np.dtype)]
    if len(plain) < len(names):
        columns |= {name: _nan_is_null(columns[name]) for name in plain}
    yield Piece(0, columns)


def _nan_is_null(column: Column) -> Column:
    missing = np.isnan(column.values)
    return Column(column.values, missing if missing.any() else None)


def column(series: Any, name: Any) -> Column:
    """Return a series as numbers. In a NumPy column NaN is what is missing, as pandas has it."""
    pd, kind = get_pandas(), series.dtype
    if isinstance(kind, pd.ArrowDtype):
        array = get_pyarrow().array(series.array)
        of_arrow.check(array, name)
        return of_arrow.column(array)
    if isinstance(kind, np.dtype) and kind.kind == "O":
        return _objects(series, name)
    if not pd.api.types.is_numeric_dtype(kind) or kind.kind in "bc":
        raise not_numbers(name, kind, series.notna(), lambda row: series.iloc[row])
    if isinstance(kind, np.dtype):
        return Column(series.to_numpy())
    missing = series.isna().to_numpy()
    precision = kind.numpy_dtype if kind.kind == "f" else float
    values = series.to_numpy(dtype=precision, na_value=np.nan)
    return Column(values, missing if missing.any() else None)


def _objects(series: Any, name: Any) -> Column:
    """Return decimals, fractions and other numbers in a column of objects."""
    missing = series.isna().to_numpy()
    objects = series.to_numpy()
    for row in np.flatnonzero(~missing):
        value = objects[row]
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
            there = np.arange(len(objects)) == row
            raise not_numbers(name, type(value).__name__, there, objects.__getitem__)
    values = np.full(len(objects), np.nan)
    values[~missing] = objects[~missing].astype(float)
    return Column(values)


def attach(frame: Any, new: dict[str, list[Column]], like: dict[str, Any]) -> Any:
    """Return the frame with columns added; what is there is shared, and copied when written to."""
    pd = get_pandas()
    lazily = int(pd.__version__.partition(".")[0]) >= 3  # copy on write
    result = frame.copy(deep=not lazily)
    for name, parts in new.items():
        kinds = [frame[c].dtype for c in like[name]]
        values = extension(joined(parts), kinds)
        result[name] = pd.Series(values, index=frame.index, copy=False)
    return result


def extension(column: Column, kinds: Sequence[Any]) -> Any:
    """Return a column in the manner of those it was made from: NumPy, nullable or Arrow."""
    pd = get_pandas()
    if any(isinstance(kind, pd.ArrowDtype) for kind in kinds):
        return pd.arrays.ArrowExtensionArray(of_arrow.array(column))
    if any(not isinstance(kind, np.dtype) for kind in kinds):
        null = np.zeros(len(column.values), bool) if column.null is None else column.null
        return pd.arrays.FloatingArray(column.values, null)
    if column.null is not None:
        column.values[column.null] = np.nan
    return column.values


def codes(frame: Any, names: Sequence[Any]) -> NDArray[np.intp]:
    """Return which group each row is in, numbered as they first appear."""
    groups = frame.groupby(list(names), sort=False, dropna=False, observed=True)
    return np.asarray(groups.ngroup().to_numpy(np.intp))


def make(frame: Any, names: Sequence[Any], rows: Any, new: dict[str, Column]) -> Any:
    """Return a frame of some rows of some columns, with others added."""
    kept = {name: frame[name].iloc[rows].reset_index(drop=True) for name in names}
    return get_pandas().DataFrame(kept | {n: extension(column, []) for n, column in new.items()})
