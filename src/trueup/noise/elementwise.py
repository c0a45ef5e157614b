"""Apply a formula to a number or an array: float in, float out; arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
