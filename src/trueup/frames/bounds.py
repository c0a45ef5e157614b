"""Warn of bounds that a table in memory contradicts."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import BoundWarning
from trueup.tables.bounds import SAMPLE, bounds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.frames.columns import Piece
    from trueup.tables.request import Request

    Floats = NDArray[np.float64]


def warn_beyond(requests: Sequence[Request], pieces: Sequence[Piece]) -> None:
    """Warn of every column that has more values beyond a bound than the noise explains."""
    for bound in bounds_of(requests):
        x = _sample(pieces, bound.column)
        scale = None if bound.scale is None else _sample(pieces, bound.scale)
        rows = sum(len(p.columns[bound.column].values) for p in pieces)
        extreme = np.fmin if bound.side < 0 else np.fmax  # they pass over NaN
        ends = [extreme.reduce(v) for p in pieces if len(v := p.columns[bound.column].values)]
        farthest = float(extreme.reduce(ends)) if ends else None
        named = dataclasses.replace(bound, column=repr(bound.column))
        text = named.doubt(x, scale, rows, farthest)
        if text is not None:
            warnings.warn(text, BoundWarning, stacklevel=_calls_inside() + 1)


def _calls_inside() -> int:
    """Return how many calls up the code of the user is."""
    here, frame, calls = str(Path(__file__).parents[1]), sys._getframe(1), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, calls = frame.f_back, calls + 1
    return calls


def _sample(pieces: Sequence[Piece], column: Any) -> Floats:
    """Return evenly spaced rows of a column, at most about SAMPLE."""
    total = sum(len(p.columns[column].values) for p in pieces)
    step = -(-total // SAMPLE) or 1
    parts = [p.columns[column].values[::step] for p in pieces]
    return np.concatenate(parts).astype(float) if parts else np.empty(0)
