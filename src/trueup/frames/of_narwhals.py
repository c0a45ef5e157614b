"""Frames wrapped by narwhals, and further libraries in memory that narwhals reads as Arrow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import narwhals as nw
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

if TYPE_CHECKING:
    from collections.abc import Callable


def opened(frame: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """Return the frame to work on, and what turns the result back into the same kind.

    None for frames that are worked on as they are.

    Examples
    --------
    >>> import polars as pl
    >>> native, back = opened(nw.from_native(pl.DataFrame({"n": [3]})))
    >>> type(native), type(back(native))
    (<class 'polars.dataframe.frame.DataFrame'>, <class 'narwhals.dataframe.DataFrame'>)
    """
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):  # of the main or of a stable interface
        home = importlib.import_module(type(frame).__module__)
        return frame.to_native(), getattr(home, "from_native", nw.from_native)
    if has_own_module(frame):
        return None
    known = nw.from_native(frame, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        return None
    backend = known.implementation
    return known.to_arrow(), lambda made: nw.from_arrow(made, backend=backend).to_native()


def has_own_module(frame: Any) -> bool:
    """Whether a library in memory is read without a detour by Arrow."""
    kinds = (is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table)
    return any(is_kind(frame) for is_kind in kinds)
