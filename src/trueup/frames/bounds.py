"""Doubtful bounds: far more values beyond a bound than the noise can have taken there.

If every true value is at least L, then u = P(Z ≤ x − L) is at least as large as a uniform number:
of n rows at most a share p has u ≤ p, up to chance, for every p at once. Counts that break this
with odds of one in a million mean that the bound, or the noise, is not what was said.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from trueup.errors import BoundWarning, TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trueup.frames.columns import Piece
    from trueup.frames.wanted import Wanted
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

ODDS = 1e-6
"""How unlikely under the stated noise and bounds the counts must be."""

SAMPLE = 2**16
"""Rows looked at, evenly spaced."""

_LEVELS = (0.1, 0.01, 0.001, 1e-4, 1e-5)
_MOST_SCALES = 1000


class _Checked(NamedTuple):
    """A statistic, its column, and the column of its scale."""

    statistic: Statistic
    column: Any
    scale: Any


def warn_beyond(wanted: Sequence[Wanted], pieces: Sequence[Piece]) -> None:
    """Warn of every column that has more values beyond a bound than the noise explains."""
    checked = {
        _Checked(s, c, dict(zip(w.scaled, w.scales, strict=True)).get(s.symbol.name))
        for w in wanted
        for s, c in zip(w.estimator._statistics, w.columns, strict=True)
        if s.domain.bounds != (None, None)
    }
    for item in sorted(checked, key=repr):
        for message in _doubts(item, pieces):
            text = f"{message}\nHint: estimates are biased beyond a wrong bound; check it"
            warnings.warn(text, BoundWarning, stacklevel=_calls_inside() + 1)


def _calls_inside() -> int:
    """Return how many calls up the code of the user is."""
    here, frame, calls = str(Path(__file__).parents[1]), sys._getframe(1), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, calls = frame.f_back, calls + 1
    return calls


def _doubts(item: _Checked, pieces: Sequence[Piece]) -> Iterator[str]:
    x = _sample(pieces, item.column)
    scale = None if item.scale is None else _sample(pieces, item.scale)
    count = len(x) - int(np.isnan(x).sum())
    for bound, side in zip(item.statistic.domain.bounds, (-1, 1), strict=True):
        if bound is None or not count:
            continue
        beyond = np.flatnonzero(x < float(bound) if side < 0 else x > float(bound))
        beyond = _drawn_anew(x, beyond, item.statistic.noise)
        try:
            u = _tail(item.statistic.noise, side, x[beyond] - float(bound), scale, beyond)
            levels = [_outward(item.statistic.noise, side), *_LEVELS, 1e-9 / count]
        except TrueupError:  # the law is not known, only its moments
            continue
        for p in levels:
            below = int((u <= p * (1 + 1e-9)).sum())
            if below and scipy.special.betainc(below, count - below + 1, p) < ODDS:
                yield _message(item, float(bound), side, count, below, p)
                break


def _sample(pieces: Sequence[Piece], column: Any) -> Floats:
    """Return evenly spaced rows of a column, at most about SAMPLE."""
    total = sum(len(p.columns[column].values) for p in pieces)
    step = -(-total // SAMPLE) or 1
    parts = [p.columns[column].values[::step] for p in pieces]
    return np.concatenate(parts).astype(float) if parts else np.empty(0)


def _drawn_anew(x: Floats, rows: NDArray[np.intp], noise: Noise) -> NDArray[np.intp]:
    """Return the rows that are draws of their own: cells may repeat the number of their state."""
    if noise.lattice:
        new = (rows == 0) | (x[rows] != x[rows - 1])
    else:
        new = np.unique(x[rows], return_index=True)[1]
    return np.asarray(rows[new])


def _tail(
    noise: Noise, side: int, z: Floats, scale: Floats | None, rows: NDArray[np.intp]
) -> Floats:
    """Return P(Z as far out as z), the scale of each number its own."""
    if scale is None:
        return _probability(noise, side, z)
    own, found = scale[rows], np.ones(len(z))
    levels = np.unique(own[own > 0])
    if len(levels) > _MOST_SCALES:
        return found
    parameter = "scale" if hasattr(noise, "scale") else "width"
    for level in levels:
        of_level = dataclasses.replace(noise, **{parameter: float(level)})
        found[own == level] = _probability(of_level, side, z[own == level])
    return found


def _probability(noise: Noise, side: int, z: Floats) -> Floats:
    if side < 0:
        return np.asarray(noise.cdf(z))
    return np.asarray(1 - noise.cdf(z - 1 if noise.lattice else z))


def _outward(noise: Noise, side: int) -> float:
    """Return the probability that the noise takes a number at the bound beyond it."""
    at = np.array([float(side) if noise.lattice else 0.0])
    return float(_probability(noise, side, at)[0])


def _message(item: _Checked, bound: float, side: int, count: int, below: int, p: float) -> str:
    where, name = ("below", "above")[side > 0], item.statistic.symbol.name
    far = "" if p >= 0.1 else "far "
    return (
        f"{below:,} of {count:,} values of {item.column!r} lie {far}{where} the bound {bound:g} of "
        f"{name}; if every true value were at the bound, {item.statistic.noise!r} would take "
        f"{p * count:.3g} of them there"
    )
