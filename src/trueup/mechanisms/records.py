"""The confidential records, checked and read exactly before anything is released."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bounds = tuple[Exact, Exact]
_HINT = "clean the data first: nothing was released, no privacy was spent"
_DECADES = 400  # beyond 10^±400 a decimal is no double but infinite, or 0
_LARGEST = Fraction(sys.float_info.max)
_NARROWEST = 2.0**-1000  # closer bounds leave too few digits between them
_BEYOND = (sys.float_info.max, 2.0**969)  # above all doubles, and all bounds: stands for what is
_NEAR, _HALF_BIT = Fraction(1, 10**9), Fraction(1, 2**53)  # 0.1 is not 1/10
_COUNTER = (
    "list the records, one entry each: list(counter.elements()) does it for a counter of them; "
    "nothing was released, no privacy was spent"
)


@dataclasses.dataclass(frozen=True)
class Records:
    """Finite numbers, each ``high + low``: the nearest double, and what it leaves over as one.

    That is exact for doubles, long doubles and integers of 64 bits.

    What a record is read as depends on nothing but the record, so one record more or less changes
    nothing about the others.
    """

    high: NDArray[np.float64]
    low: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.high)

    def below(self, bound: Exact) -> NDArray[np.bool_]:
        """Return which records lie below a bound, exactly."""
        near, rest = split(Fraction(bound))
        return np.asarray((self.high < near) | ((self.high == near) & (self.low < rest)))

    def above(self, bound: Exact) -> NDArray[np.bool_]:
        """Return which records lie above a bound, exactly."""
        near, rest = split(Fraction(bound))
        return np.asarray((self.high > near) | ((self.high == near) & (self.low > rest)))


def split(value: Fraction) -> tuple[float, float]:
    """Return the double nearest to a number, and what it leaves over.

    Examples
    --------
    >>> split(Fraction(10**17 + 5))
    (1e+17, 5.0)
    """
    near = float(value)
    return near, float(value - Fraction(near))


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


def read_records(values: Any, bounds: Bounds, outside: str = "clip") -> Records:
    """Return the records; those outside the bounds are refused on request (the grid clips them).

    An empty data set is as good as any.
    """
    records = read_numbers(values)
    if outside == "raise":
        beyond = records.below(bounds[0]) | records.above(bounds[1])
        if beyond.any():
            low, high = (float(b) for b in bounds)
            raise TrueupError(
                f"{int(beyond.sum())} of {len(records)} records lie outside [{low:g}, {high:g}]",
                "for the curator's eyes only: a refusal that depends on the data is a disclosure",
            )
    return records


def read_numbers(values: Any) -> Records:
    """Return a vector of finite numbers, or refuse it.

    Examples
    --------
    >>> read_numbers([10**17 + 1, 0.5])
    Records(high=array([1.e+17, 5.e-01]), low=array([1., 0.]))
    """
    given = _given(values)
    records = _split_list(given) if isinstance(given, list) else _split_array(given)
    broken = ~np.isfinite(records.high)
    if broken.any():
        raise TrueupError(f"{int(broken.sum())} of {len(records)} records are not finite", _HINT)
    return records


def read_number(value: Any) -> tuple[float, float]:
    """Return one record as ``high + low``; NaN and ∞ are what they are.

    What is finite beyond the doubles is read as a number just above them, as every bound sees it.

    Examples
    --------
    >>> read_number(np.uint64(2**60 + 129))
    (1.1529215046068472e+18, -127.0)
    """
    if isinstance(value, np.generic):
        records = _split_array(np.array([value]))
        return float(records.high[0]), float(records.low[0])
    if isinstance(value, Decimal):
        return _split_decimal(value)
    if isinstance(value, float):
        return float(value), 0.0
    if isinstance(value, Rational):
        try:
            return split(Fraction(int(value.numerator), int(value.denominator)))
        except OverflowError:
            return _beyond(int(value.numerator) < 0)
    if hasattr(value, "__array__") and np.ndim(value) == 0:
        return read_number(np.asarray(value)[()])
    raise TrueupError(f"the data must be numbers, got {type(value)}", _HINT)


def is_beyond(high: float, low: float) -> bool:
    """Whether this stands for a finite number beyond the doubles."""
    return (abs(high), abs(low)) == _BEYOND


def _beyond(negative: bool) -> tuple[float, float]:
    high, low = _BEYOND
    return (-high, -low) if negative else (high, low)


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


def _given(values: Any) -> NDArray[Any] | list[Any]:
    """Return the data as an array of one kind of numbers or as a list of any."""
    try:
        given = listed(values)
        if isinstance(given, list):
            return given
        vector = np.asarray(given)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, TrueupError):
            raise
        raise TrueupError(
            f"the data must be a list of numbers, got {type(values)}", _HINT
        ) from None
    if vector.ndim != 1:
        raise TrueupError(f"the data must be a vector of numbers, got {vector.ndim} axes", _HINT)
    return vector.tolist() if vector.dtype.kind == "O" or not vector.size else vector


def _split_list(given: list[Any]) -> Records:
    """Read each kind by itself: an array of all would bring them to one kind, digits lost."""
    places: dict[type, list[int]] = {}
    for i, value in enumerate(given):
        places.setdefault(type(value), []).append(i)
    high, low = np.empty(len(given)), np.empty(len(given))
    for kind, where in places.items():
        records = _split_kind(kind, [given[i] for i in where])
        high[where], low[where] = records.high, records.low
    return Records(high, low)


def _split_kind(kind: type, values: list[Any]) -> Records:
    if kind in (int, float, bool) or issubclass(kind, np.generic):
        try:
            return _split_array(np.array(values, dtype=np.int64 if kind is int else kind))
        except OverflowError:  # integers of more than 64 bits
            pass
    high, low = np.array([read_number(v) for v in values]).T
    return Records(high, low)


def _split_array(vector: NDArray[Any]) -> Records:
    if vector.dtype.kind not in "iufb":
        raise TrueupError(f"the data must be a vector of numbers, got {vector.dtype}", _HINT)
    if vector.dtype.kind in "iu" and vector.dtype.itemsize == 8:
        # two halves of 32 bits are doubles, and their sum leaves a rest that is one
        upper = (vector >> 32).astype(float) * 2.0**32
        lower = (vector & 0xFFFFFFFF).astype(float)
        high = upper + lower
        return Records(high, lower - (high - upper))
    with np.errstate(all="ignore"):  # a long double may exceed a double
        high = vector.astype(float)
        low = (vector - high).astype(float) if vector.dtype.itemsize > 8 else np.zeros(len(high))
    beyond = np.isinf(high) & np.isfinite(vector)
    if beyond.any():
        low[beyond] = np.copysign(_BEYOND[1], high[beyond])
        high[beyond] = np.copysign(_BEYOND[0], high[beyond])
    return Records(high, low)


def _split_decimal(value: Decimal) -> tuple[float, float]:
    """Return a decimal as ``high + low``, without the digits of 1e999999."""
    if not value.is_finite():
        return (math.nan if value.is_nan() else math.copysign(math.inf, value)), 0.0
    if not value or value.adjusted() < -_DECADES:
        return 0.0, 0.0
    try:
        return _beyond(value < 0) if value.adjusted() > _DECADES else split(Fraction(value))
    except OverflowError:
        return _beyond(value < 0)
