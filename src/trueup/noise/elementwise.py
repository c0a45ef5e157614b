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
    if isinstance(x, np.ma.MaskedArray):
        raise TrueupError(
            f"{name} is a masked array, of which {int(np.sum(np.ma.getmaskarray(x)))} entries are "
            "masked",
            "fill it, e.g. with NaN, or compress it",
        )
    try:
        raw = np.asarray(x)
        if raw.dtype.kind in "biufO" and x is not None:
            return np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    hint = f"give {name} as a number or an array of numbers"
    raise TrueupError(f"{name} must be real numbers, got {x!r}", hint)


def smallest_integer(cdf: Formula, p: Floats, guess: Floats) -> Floats:
    """Return the smallest integer k with cdf(k) ≥ p, searching from a guess; −∞ at 0 and ∞ at 1.

    The bracket grows from the guess by doubling and is then halved, so a good guess costs a few
    evaluations and a bad one only logarithmically more.

    Examples
    --------
    >>> smallest_integer(lambda k: k / 100, np.array([0.305]), np.array([0.0]))
    array([31.])
    """
    proper = (p > 0) & (p < 1)
    q = np.where(proper, p, 0.5)
    middle, step = np.where(proper, np.floor(guess), 0.0), 1.0
    low, high = middle - step, middle + step
    while (outside := (cdf(low) >= q) | (cdf(high) < q)).any():
        step *= 2
        low, high = np.where(outside, low - step, low), np.where(outside, high + step, high)
    while (inside := high - low > np.maximum(1, np.spacing(np.abs(low)))).any():
        middle = np.floor(low + (high - low) / 2)
        reached = cdf(middle) >= q
        high = np.where(inside & reached, middle, high)
        low = np.where(inside & ~reached, middle, low)
    return np.where(proper, high, np.log(p / (1 - p)))
