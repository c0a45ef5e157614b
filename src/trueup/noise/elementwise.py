"""Apply a formula to a number or an array: float in, float out; arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.exact import Exact

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
    return with_mask(result if result.ndim else result.item(), [x])


def reals(x: ArrayLike, name: str) -> Floats:
    """Return x as an array of floats, NaN where it is masked, or refuse what is no real numbers."""
    if isinstance(x, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(x)
        zero = np.zeros((), x.dtype)  # what lies under a mask is not looked at
        return np.where(hidden, np.nan, reals(np.where(hidden, zero, x.data), name))
    try:
        raw = np.asarray(x)
        if raw.dtype.kind in "biufO" and x is not None:
            return np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    hint = f"give {name} as a number or an array of numbers"
    raise TrueupError(f"{name} must be real numbers, got {x!r}", hint)


def with_mask(result: Any, values: Sequence[Any]) -> Any:
    """Return results masked where any of the values is, plain ones if no value has a mask.

    Examples
    --------
    >>> with_mask(np.array([1.0, 2.0]), [np.ma.array([5, 6], mask=[False, True])])
    masked_array(data=[1.0, --],
                 mask=[False,  True],
           fill_value=1e+20)
    """
    masks = [np.ma.getmaskarray(v) for v in values if isinstance(v, np.ma.MaskedArray)]
    if not masks:
        return result
    hidden = np.zeros(np.shape(result), bool)
    for mask in masks:
        hidden |= mask
    return np.ma.MaskedArray(result, mask=hidden)


LARGEST_DRAWN = 1e15


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
    low, high = _bracket(cdf, q, np.where(proper, np.floor(guess), 0.0))
    while (inside := high - low > np.maximum(1, np.spacing(np.abs(low)))).any():
        middle = np.floor(low + (high - low) / 2)
        reached = cdf(middle) >= q
        high = np.where(inside & reached, middle, high)
        low = np.where(inside & ~reached, middle, low)
    return np.where(proper, high, np.log(p / (1 - p)))


def _bracket(cdf: Formula, p: Floats, guess: Floats) -> tuple[Floats, Floats]:
    """Return integers low < high with cdf(low) < p ≤ cdf(high)."""
    low, high, step = guess - 1, guess + 1, 2.0
    while (above := cdf(low) >= p).any():
        low, high = np.where(above, low - step, low), np.where(above, low, high)
        step *= 2
    step = 2.0
    while (below := cdf(high) < p).any():
        high, low = np.where(below, high + step, high), np.where(below, high, low)
        step *= 2
    return low, high


def check_drawable(scale: Exact) -> None:
    """Raise if draws of this scale would not fit into 64-bit integers.

    Examples
    --------
    >>> check_drawable(1000)
    """
    if scale > LARGEST_DRAWN:
        hint = f"draw from a scale of at most {LARGEST_DRAWN:g}, or from the continuous family"
        raise TrueupError(f"draws of scale {scale!r} do not fit into 64-bit integers", hint)
