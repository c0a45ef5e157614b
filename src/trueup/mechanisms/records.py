"""The confidential records, checked before anything is released."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bounds = tuple[Exact, Exact]
_HINT = "clean the data first: nothing was released, no privacy was spent"


def read_bounds(bounds: object) -> Bounds:
    """Return the pair (low, high) between which records are promised to lie."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TrueupError(f"bounds must be a pair (low, high), got {bounds!r}", "e.g. (0, 1)")
    low, high = number(bounds[0], "the lower bound"), number(bounds[1], "the upper bound")
    if low >= high:
        raise TrueupError(
            f"the lower bound must be below the upper one, got {bounds!r}", "e.g. (0, 1)"
        )
    return low, high


def read_outside(outside: object) -> str:
    """Return what to do with records outside the bounds: "clip" or "raise"."""
    if outside not in ("clip", "raise"):
        raise TrueupError(
            f"outside must be 'clip' or 'raise', got {outside!r}",
            "'clip' moves records to the bounds; a refusal that depends on the data discloses",
        )
    return str(outside)


def read_records(values: Any, bounds: Bounds, outside: str = "clip") -> NDArray[np.float64]:
    """Return the records as floats within the bounds; an empty data set is as good as any."""
    records = read_numbers(values)
    low, high = float(bounds[0]), float(bounds[1])
    beyond = (records < low) | (records > high)
    if outside == "raise" and beyond.any():
        raise TrueupError(
            f"{int(beyond.sum())} of {len(records)} records lie outside [{low:g}, {high:g}]",
            "for the curator's eyes only: a refusal that depends on the data is a disclosure",
        )
    return np.clip(records, low, high)


def read_numbers(values: Any) -> NDArray[np.float64]:
    """Return the records as a vector of finite floats, or refuse them."""
    try:
        records = np.asarray(values if np.ndim(values) else list(values))
    except (TypeError, ValueError):
        raise TrueupError(
            f"the data must be a list of numbers, got {type(values)}", _HINT
        ) from None
    if records.size == 0:
        return np.empty(0)
    if records.dtype.kind not in "iufb" or records.ndim != 1:
        raise TrueupError(f"the data must be a vector of numbers, got {records.dtype}", _HINT)
    broken = ~np.isfinite(records.astype(float))
    if broken.any():
        raise TrueupError(f"{int(broken.sum())} of {len(records)} records are not finite", _HINT)
    return records.astype(float)


def total_of(records: NDArray[np.float64]) -> float:
    """Return the correctly rounded sum, or refuse one that exceeds a float."""
    try:
        return math.fsum(records)
    except OverflowError:
        raise TrueupError("the sum of the records exceeds a float", _HINT) from None
