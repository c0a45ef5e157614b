"""Frames in memory: their columns go through the kernels as they lie there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import SelectionWarning, TrueupError
from trueup.formula.text import text
from trueup.frames.columns import Column, Piece, either
from trueup.inverse.projection import ENDS
from trueup.kernels.grid import columns
from trueup.tables.bounds import SAMPLE, bounds_of, warn
from trueup.tables.empty import empties_of
from trueup.tables.request import needs_variance
from trueup.tables.selection import published_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.frames.columns import Eager
    from trueup.tables.request import Request

WHOLE = "check the column, or describe the noise as continuous, e.g. Laplace(scale)"
"""What to do about broken numbers under integer noise."""
_DOUBLE = np.dtype(float)


def debias(
    backend: Eager, frame: Any, requests: Sequence[Request], *, clamped: bool = False
) -> Any:
    """Return the frame with the columns that are wanted, computed by the kernels."""
    pieces = read(backend, frame, requests)
    warn_beyond(requests, pieces, clamped=clamped)
    like = {name: r.inputs for r in requests for name in r.written}
    new: dict[str, list[Column]] = {name: [] for name in like}
    for r in requests:
        for piece in pieces:
            for name, column in zip(r.written, compute(r, piece, r.outputs), strict=True):
                new[name].append(column)
    return backend.attach(frame, new, like)


def read(
    backend: Eager, frame: Any, requests: Sequence[Request], *, skip: bool = False
) -> list[Piece]:
    """Return the columns that are read, with every scale checked.

    With ``skip`` a missing scale is no error, only one that is not positive.
    """
    names = tuple(dict.fromkeys(c for w in requests for c in w.inputs))
    pieces = list(backend.pieces(frame, names))
    for w in requests:
        for piece in pieces:
            _check_scales(w, piece, skip=skip)
    return pieces


def compute(w: Request, piece: Piece, outputs: Sequence[str]) -> list[Column]:
    """Return "value", "variance", "stderr", and the ends of an interval last; null stays null.

    A standard error is null, too, where the unbiased variance is negative.
    """
    if w.by_level:
        return _by_level(w, piece, outputs)
    inputs = [piece.columns[c] for c in w.inputs]
    variance = w.variance if needs_variance(outputs) else None
    arrays = [c.values for c in inputs]
    try:
        computed = [o for o in outputs if o not in ENDS]
        results = columns(w.value, variance, arrays, computed, _DOUBLE)
    except TrueupError:
        check_whole(w, piece)
        raise
    if {*outputs} & {*ENDS}:
        found_ends = dict(zip(ENDS, w.interval(arrays), strict=True))
        results = [*results, *(found_ends[o] for o in ENDS if o in outputs)]
    null = either([c.null for c in inputs])
    found = []
    for name, values in zip(outputs, results, strict=True):
        doubtful = name == "stderr" and not w.never_negative
        gone = _negative(values, results[0], null) if doubtful else null
        found.append(Column(values, gone))
    return found


def _by_level(w: Request, piece: Piece, outputs: Sequence[str]) -> list[Column]:
    """Return the outputs, each noise level computed by an estimator of its own."""
    check_whole(w, piece)
    scales = np.stack([piece.columns[c].values.astype(float) for c in w.scales.values()], axis=1)
    known = np.flatnonzero((scales > 0).all(axis=1))
    levels, which = np.unique(scales[known], axis=0, return_inverse=True)
    values = [np.full(len(scales), np.nan) for _ in outputs]
    null = np.ones((len(outputs), len(scales)), bool)
    for i, level in enumerate(levels.tolist()):
        rows = known[which.ravel() == i]
        some = {c: piece.columns[c].at(rows) for c in w.columns.values()}
        found = compute(w.at_level(level), Piece(piece.start, some), outputs)
        for column, into, gone in zip(found, values, null, strict=True):
            into[rows] = column.values
            gone[rows] = False if column.null is None else column.null
    return [
        Column(into, gone if gone.any() else None) for into, gone in zip(values, null, strict=True)
    ]


def _negative(
    stderr: NDArray[np.float64], value: NDArray[np.float64], null: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return where a standard error is missing: with its inputs, or for a negative variance."""
    if not len(stderr) or not np.isnan(np.min(stderr)):
        return null
    return either([null, np.isnan(stderr) & ~np.isnan(value)])


def _check_scales(w: Request, piece: Piece, *, skip: bool) -> None:
    """Raise where a row has numbers to debias but no proper noise scale."""
    for statistic, limit in w.largest.items():
        name = w.scales[statistic]
        scale = piece.columns[name].values
        if not len(scale) or (np.min(scale) > 0 and np.max(scale) < limit):
            continue
        needed = [*w.columns.values(), *([name] if skip else [])]
        known = [~np.isnan(piece.columns[c].values) for c in needed]
        broken = np.logical_and.reduce([~((scale > 0) & (scale < limit)), *known])
        if broken.any():
            row = int(np.flatnonzero(broken)[0])
            raise _bad_scale(w, statistic, name, float(scale[row]), piece.start + row)


def _bad_scale(w: Request, statistic: str, name: Any, scale: float, row: int) -> TrueupError:
    if scale > 0 and np.isfinite(scale):
        limit = w.largest[statistic]
        what = "variance" if w.has_errors else "estimator"
        return TrueupError(
            f"the noise scale of {statistic} is {scale:g} at row {row} (column {name!r}), too "
            f"large for {text(w.estimator.estimand)}: its {what} exists only for scales below "
            f"{limit:g}",
            "bound the domain on the side where the formula grows, or leave these rows out",
        )
    shown = "missing" if np.isnan(scale) else f"{scale:g}"
    return not_positive(statistic, name, f"{shown} at row {row}")


def not_positive(statistic: str, name: Any, shown: str) -> TrueupError:
    """Return the refusal of a noise scale, given what it is and where."""
    return TrueupError(
        f"the noise scale of {statistic} is {shown} (column {name!r}), it must be positive",
        "give every published number the scale of its noise, or leave these rows out",
    )


def check_whole(w: Request, piece: Piece) -> None:
    """Raise with column and row where integer noise has left a broken number."""
    for statistic, name in w.columns.items():
        values = piece.columns[name].values
        if w.estimator.noise[statistic].lattice and values.dtype.kind == "f":
            broken = np.flatnonzero((np.floor(values) != values) & ~np.isnan(values))
            if len(broken):
                row = int(broken[0])
                raise TrueupError(
                    f"the column {name!r} has {float(values[row])!r} at row {piece.start + row}, "
                    f"but {statistic} has integer noise: its published values are whole numbers",
                    WHOLE,
                ) from None


# -- bounds that the table contradicts -------------------------------------------------------------


def warn_beyond(
    requests: Sequence[Request], pieces: Sequence[Piece], *, clamped: bool = False
) -> None:
    """Warn of columns with more values beyond a bound than the noise explains, or cut off."""
    warn_selected_in(pieces, requests, clamped=clamped)
    for bound in bounds_of(requests):
        x = _sample(pieces, bound.column)
        scale = None if bound.scale is None else _sample(pieces, bound.scale)
        rows = sum(len(p.columns[bound.column].values) for p in pieces)
        extreme = np.fmin if bound.side < 0 else np.fmax  # they pass over NaN
        ends = [extreme.reduce(v) for p in pieces if len(v := p.columns[bound.column].values)]
        farthest = float(extreme.reduce(ends)) if ends else None
        named = dataclasses.replace(bound, column=repr(bound.column))
        warn(named.doubt(x, scale, rows, farthest))
    for empty in empties_of(requests):
        if not empty.denied:
            continue
        g, inputs = _indicated(empty.indicator, pieces)
        rows = sum(len(p.columns[empty.indicator.inputs[0]].values) for p in pieces)
        part = " looked at" if rows > SAMPLE else ""
        warn(empty.doubt(float(g.sum()), float(g @ g), len(g), g, inputs, part))


def warn_selected_in(
    pieces: Sequence[Piece], requests: Sequence[Request], *, clamped: bool = False
) -> None:
    """Warn of columns that end as no noise ends."""
    for published in published_in(requests, clamped=clamped):
        x = _sample(pieces, published.column)
        scale = None if published.scale is None else _sample(pieces, published.scale)
        named = dataclasses.replace(published, column=repr(published.column))
        for side in (-1, 1):
            warn(named.doubt(side, x, scale), SelectionWarning)


def _indicated(
    indicator: Request, pieces: Sequence[Piece]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Return an indicator's estimates at some rows, and what it read there.

    Rows without a whole number are left out.
    """
    sampled = [_sample(pieces, name) for name in indicator.inputs]
    known = np.logical_and.reduce([np.floor(x) == x for x in sampled[: len(indicator.columns)]])
    known &= np.logical_and.reduce([x > 0 for x in sampled[len(indicator.columns) :]] or [known])
    inputs = [x[known] for x in sampled]
    (found,) = columns(indicator.value, None, inputs, ("value",))
    return found, inputs


def _sample(pieces: Sequence[Piece], column: Any) -> NDArray[np.float64]:
    """Return evenly spaced rows of a column, at most about SAMPLE."""
    total = sum(len(p.columns[column].values) for p in pieces)
    step = -(-total // SAMPLE) or 1
    parts = [p.columns[column].values[::step] for p in pieces]
    return np.concatenate(parts).astype(float) if parts else np.empty(0)
