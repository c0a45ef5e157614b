"""The confidential records, checked and read exactly before anything is released."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Records = NDArray[np.float64] | NDArray[np.int64]
    """Finite numbers: what one is read as depends on nothing but the record."""

Bounds = tuple[Exact, Exact]
_HINT = "clean the data first: nothing was released, no privacy was spent"
_KINDS = "give floats or whole numbers of 64 bits: nothing was released, no privacy was spent"
_EXACT = 2**53  # up to here a whole number is a double
_LARGEST = Fraction(sys.float_info.max)
_NARROWEST = 2.0**-1000  # closer bounds leave too few digits between them
_NEAR, _HALF_BIT = Fraction(1, 10**9), Fraction(1, 2**53)  # 0.1 is not 1/10
_COUNTER = (
    "list the records, one entry each: list(counter.elements()) does it for a counter of them; "
    "nothing was released, no privacy was spent"
)


# -- parameters ------------------------------------------------------------------------------------


def read_bounds(bounds: object) -> Bounds:
    """Return the pair (low, high) between which records are promised to lie."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TrueupError(f"bounds must be a pair (low, high), got {bounds!r}", "e.g. (0, 1)")
    low, high = number(bounds[0], "the lower bound"), number(bounds[1], "the upper bound")
    if low >= high:
        raise TrueupError(
            f"the lower bound must be below the upper one, got {bounds!r}", "e.g. (0, 1)"
        )
    width = Fraction(high) - Fraction(low)
    if not _NARROWEST <= width <= _LARGEST:
        raise TrueupError(
            f"the bounds must be numbers, and apart, on the scale of floats, got {bounds!r}",
            "measure the records in another unit",
        )
    return low, high


def read_size(n: object) -> Exact:
    """Return a number of records, for which a standard deviation is asked."""
    size = number(n, "n")
    if size < 0:
        raise TrueupError(f"n must not be negative, got {n!r}", "e.g. sd(50, 0.5)")
    return size


def read_mean(mean: object, bounds: Bounds, name: str = "mean") -> Fraction:
    """Return a mean that records in the bounds can have; rounding of a double is forgiven.

    Examples
    --------
    >>> read_mean(0.5, (0, 1))
    Fraction(1, 2)
    """
    value, (low, high) = number(mean, name), (Fraction(b) for b in bounds)
    if not float(low) <= float(value) <= float(high):
        raise TrueupError(
            f"the {name} of records in [{float(low):g}, {float(high):g}] lies there too, got "
            f"{mean!r}",
            f"give the {name} in the unit of the bounds",
        )
    return min(max(Fraction(value), low), high)


def near_whole(total: Fraction, size: int) -> Fraction:
    """Return the whole number that a total of so many records is but for the rounding of a double.

    Examples
    --------
    >>> near_whole(Fraction(0.1) * 10**10, 10**10), near_whole(Fraction(1, 3), 1)
    (Fraction(1000000000, 1), Fraction(1, 3))
    """
    near = Fraction(round(total))
    return near if abs(total - near) <= _NEAR + size * _HALF_BIT else total


def read_outside(outside: object) -> str:
    """Return what to do with records outside the bounds: "clip" or "raise"."""
    if outside not in ("clip", "raise"):
        raise TrueupError(
            f"outside must be 'clip' or 'raise', got {outside!r}",
            "'clip' moves records to the bounds; a refusal that depends on the data discloses",
        )
    return str(outside)


# -- records ---------------------------------------------------------------------------------------


def read_records(values: Any, bounds: Bounds, outside: str = "clip") -> Records:
    """Return the records; those outside the bounds are refused on request (the grid clips them).

    An empty data set is as good as any.
    """
    records = read_numbers(values)
    if outside == "raise":
        low, high = (Fraction(b) for b in bounds)
        if records.dtype.kind == "i":
            beyond = (records < math.ceil(low)) | (records > math.floor(high))
        else:
            beyond = (records < float_above(low)) | (records > -float_above(-high))
        if beyond.any():
            raise TrueupError(
                f"{int(beyond.sum())} of {len(records)} records lie outside "
                f"[{float(low):g}, {float(high):g}]",
                "for the curator's eyes only: a refusal that depends on the data is a disclosure",
            )
    return records


def read_numbers(values: Any) -> Records:
    """Return a vector of finite numbers, as floats or as whole numbers of 64 bits, or refuse it.

    Examples
    --------
    >>> read_numbers([10**17 + 1, 5]), read_numbers([3, 0.5])
    (array([100000000000000001,                  5]), array([3. , 0.5]))
    """
    try:
        given = listed(values)
        vector = _of_list(given) if isinstance(given, list) else np.asarray(given)
    except (TypeError, ValueError, OverflowError) as problem:
        if isinstance(problem, TrueupError):
            raise
        raise TrueupError(
            f"the data must be a list of numbers, got {type(values)}", _HINT
        ) from None
    if vector.dtype.kind == "O" and vector.ndim == 1:
        vector = _of_list(vector.tolist())
    if vector.ndim != 1 or vector.dtype.kind not in "iufb" or vector.dtype.itemsize > 8:
        raise TrueupError(
            f"the data must be a vector of numbers, got {vector.ndim} axes of {vector.dtype}",
            _KINDS,
        )
    if vector.dtype.kind != "f":
        if vector.dtype == np.uint64 and (vector > np.iinfo(np.int64).max).any():
            raise TrueupError("the data must be numbers of 64 bits with a sign", _KINDS)
        return vector.astype(np.int64)
    broken = ~np.isfinite(vector)
    if broken.any():
        raise TrueupError(f"{int(broken.sum())} of {len(vector)} records are not finite", _HINT)
    return vector.astype(float)


def _of_list(given: list[Any]) -> NDArray[Any]:
    """Return a list of floats and whole numbers as an array of one kind, exactly, or refuse it."""
    strange = [k for k in {type(v) for v in given} if not is_number(k)]
    if strange:
        raise TrueupError(f"the data must be numbers, got {strange[0]}", _KINDS)
    whole = [v for v in given if not isinstance(v, (float, np.floating))]
    if given and len(whole) == len(given):
        if any(not -(2**63) <= int(v) < 2**63 for v in whole):
            raise TrueupError("the data must be numbers of 64 bits with a sign", _KINDS)
        return np.array(given, dtype=np.int64)
    if any(abs(int(v)) > _EXACT for v in whole):
        raise TrueupError(
            "the data must be numbers of one kind: whole numbers beyond 2**53 stand beside floats",
            _KINDS,
        )
    return np.array(given, dtype=float)


def is_number(kind: type) -> bool:
    """Whether values of a type are numbers of 64 bits, or Python's own."""
    if issubclass(kind, np.generic):
        return np.dtype(kind).kind in "iufb" and np.dtype(kind).itemsize <= 8
    return issubclass(kind, (bool, int, float))


def listed(values: Any) -> Any:
    """Return an array as it is and anything else as a list, without masked records.

    A masked record is not to be used: it is neither released nor silently left out. What has no
    place for records that are alike, such as a histogram, a set or a text, is no list of records.
    """
    if isinstance(values, (str, bytes, bytearray, Mapping, Set)):
        raise TrueupError(f"the data must be a list of records, got {type(values)}", _COUNTER)
    if len(getattr(values, "shape", "1")) != 1:  # a table would be read by its columns' names
        raise TrueupError(f"the data must be a vector of records, got {type(values)}", _HINT)
    if not hasattr(values, "__array__"):
        values = list(values)
        masked = sum(v is np.ma.masked for v in values)
    else:
        masked = int(np.sum(np.ma.getmaskarray(values))) if np.ma.isMaskedArray(values) else 0
    if masked:
        raise TrueupError(
            f"{masked} of {len(values)} records are masked",
            "leave them out, e.g. values.compressed(): nothing was released, no privacy was spent",
        )
    return values


def float_above(value: Fraction) -> float:
    """Return the smallest double that is not below a number: rounding never costs privacy.

    Examples
    --------
    >>> float_above(Fraction(1, 2)), float_above(Fraction(1, 10)) > Fraction(1, 10)
    (0.5, True)
    """
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
