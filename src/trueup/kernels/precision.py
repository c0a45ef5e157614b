"""Numbers at a bound, in the precision in which they came.

A release clamped to 0.1 and stored in single precision holds 0.100000001490116, which is above the
bound although it lies at it. So the number nearest to a bound, in the precision of a column, is
taken for the bound itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


def at_bounds(array: NDArray[Any], bounds: Iterable[float]) -> NDArray[Any]:
    """Return the numbers, those that a narrow float holds for a bound replaced by the bound.

    Examples
    --------
    >>> at_bounds(np.array([0.1, 0.25], "f4"), [0.1])
    array([0.1 , 0.25])
    """
    if array.dtype.kind != "f" or array.dtype.itemsize >= 8:
        return array
    narrow = array
    for bound in bounds:
        near = nearest(bound, narrow.dtype.type)
        if near is not None and (at := narrow == near).any():
            array = array.astype(float) if array is narrow else array
            array[at] = bound
    return array


def nearest(bound: float, kind: type[Any] = np.float32) -> float | None:
    """Return what a narrow float holds for a bound, None if that is the bound or not finite.

    Examples
    --------
    >>> nearest(0.1), nearest(0.5)
    (0.10000000149011612, None)
    """
    with np.errstate(over="ignore", under="ignore"):
        near = float(kind(bound))
    return near if near != bound and math.isfinite(near) else None
