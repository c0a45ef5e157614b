"""Apply a formula to a number or an array: float in, float out; arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Floats = NDArray[np.float64]
Formula = Callable[[Floats], Floats]


def evaluate(formula: Formula, x: ArrayLike, name: str) -> Any:
    """Return the formula at x: a Python float for a number, an array for an array.

    Examples
    --------
    >>> evaluate(np.square, 3, "x"), evaluate(np.square, [1, 2], "x")
    (9.0, array([1., 4.]))
    """
    values = reals(x, name)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        result = np.asarray(formula(values), dtype=np.float64)
    return result if result.ndim else result.item()


def reals(x: ArrayLike, name: str) -> Floats:
    """Return x as an array of floats, or refuse what is no real numbers."""
    check_unmasked(x, name)
    try:
        raw = np.asarray(x)
        if raw.dtype.kind in "biufO" and x is not None:
            return np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    hint = f"give {name} as a number or an array of numbers"
    raise TrueupError(f"{name} must be real numbers, got {x!r}", hint)


def check_unmasked(x: object, name: str) -> None:
    """Refuse a masked array: NumPy forgets the mask on the way."""
    if isinstance(x, np.ma.MaskedArray):
        raise TrueupError(
            f"{name} is a masked array, of which {np.ma.getmaskarray(x).sum()} entries are masked",
            "fill or compress it: pass x.filled(nan) or x.compressed()",
        )


def first(reached: Callable[[Any], Any], low: ArrayLike = 0.0, high: ArrayLike = np.inf) -> Floats:
    """Return the smallest x from low to high from which on something holds; high if nowhere below.

    Floats from 0 on have the order of their bits, which are halved.

    Examples
    --------
    >>> first(lambda x: x * x >= 2)
    array(1.41421356)
    """
    below, above = (np.asarray(x, np.float64).view(np.int64) for x in (low, high))
    below = below - 1
    while (above - below > 1).any():
        middle = np.maximum(below + (above - below) // 2, 0)
        there = np.asarray(reached(middle.view(np.float64)), bool)
        below, above = np.where(there, below, middle), np.where(there, middle, above)
    return above.view(np.float64)
