"""Lazy Polars frames: batches of the case in memory. Nothing runs before the frame is collected."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from narwhals.dependencies import get_polars, is_polars_lazyframe

from trueup.frames import of_polars
from trueup.frames.columns import Column, Piece, either, not_numbers
from trueup.frames.eager import compute
from trueup.tables.request import needs_variance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.tables.request import Request


def is_frame(frame: Any) -> bool:
    """Whether this is a lazy frame of Polars."""
    return is_polars_lazyframe(frame)


def names(frame: Any) -> list[str]:
    """Return the names of the columns."""
    return list(frame.collect_schema().names())


def fold(name: Any) -> Any:
    """Return a name as it is compared."""
    return name


def check(frame: Any, names: Sequence[str]) -> None:
    """Raise unless these columns hold numbers."""
    schema = frame.collect_schema()
    for name in names:
        if not schema[name].is_numeric() and schema[name] != get_polars().Null:
            raise not_numbers(name, schema[name])


def extend(frame: Any, new: Mapping[str, tuple[Request, str]]) -> Any:
    """Return the frame with columns added, computed batch by batch.

    Filters and selections stay behind this step: they may read columns that are added here.
    """
    inputs = tuple(dict.fromkeys(c for w, _ in new.values() for c in w.inputs))
    for w, output in new.values():
        if needs_variance((output,)):
            _ = w.variance  # refused here, not when the frame is collected

    def extended(batch: Any) -> Any:
        made: dict[str, list[Column]] = {name: [] for name in new}
        for piece in of_polars.pieces(batch, inputs):
            for w, wanted in groupby(new.items(), lambda item: item[1][0]):
                outputs = {name: output for name, (_, output) in wanted}
                for name, column in zip(outputs, _computed(w, piece, outputs), strict=True):
                    made[name].append(column)
        return of_polars.attach(batch, made, {})

    schema = {**frame.collect_schema(), **dict.fromkeys(new, get_polars().Float64())}
    return frame.map_batches(
        extended,
        schema=schema,
        predicate_pushdown=False,
        projection_pushdown=False,
        streamable=True,
    )


def _computed(w: Request, piece: Piece, outputs: Mapping[str, str]) -> list[Column]:
    """Return outputs; null where a row has no integer or no scale that can be used.

    There is nobody to tell of a single row when the frame is collected.
    """
    unusable = _unusable(w, piece)
    if not unusable.any():
        return compute(w, piece, [*outputs.values()])
    cleared = {name: piece.columns[name] for name in w.inputs}
    for name, column in cleared.items():
        cleared[name] = Column(np.where(unusable, np.nan, column.values), column.null)
    found = compute(w, Piece(piece.start, cleared), [*outputs.values()])
    return [Column(column.values, either([column.null, unusable])) for column in found]


def _unusable(w: Request, piece: Piece) -> NDArray[np.bool_]:
    """Return where integer noise has left a number that is no integer, or a scale is not valid."""
    found = np.zeros(len(piece.columns[w.inputs[0]].values), bool)
    for statistic, name in w.columns.items():
        values = piece.columns[name].values
        if w.estimator.noise[statistic].lattice and values.dtype.kind == "f":
            found |= (np.floor(values) != values) & ~np.isnan(values)
    for statistic, limit in w.largest.items():
        scale = piece.columns[w.scales[statistic]].values
        found |= ~((scale > 0) & (scale < limit))
    return found


def returned(frame: Any, made: Any, keys: Sequence[str]) -> Any:
    """Return an Arrow table as a lazy frame."""
    return get_polars().from_arrow(made).lazy()
