"""Whole numbers only: what is added, and what noise is added to.

Floats do not add up: near 10¹⁵ one record moves a sum of floats by more than its own size, and
noise that was measured for the record does not hide it. So every record is first rounded to a whole
number of steps, whole numbers are added exactly, and the noise is a whole number of steps too. One
record then moves the sum by exactly its own whole number, which is at most ``steps``.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from trueup.mechanisms.records import split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.exact import Exact
    from trueup.mechanisms.records import Bounds, Records

FINEST = 50
"""No grid divides its unit further than 2⁵⁰: then a double holds a record's whole number, and the
rounding of a record, at most 2⁻⁵¹ of the unit, is as small as that of a double."""

_HALF = (
    25  # whole numbers of at most 51 bits are summed as two halves: no overflow below 2³⁷ records
)
_BLOCK = 1 << 24  # that many mantissas of 27 bits have a sum that a double holds


def step_under(scale: Exact) -> Fraction:
    """Return the step of the grid for noise of a scale: between 2⁻⁵⁰ and 2⁻⁴⁹ of the scale.

    Noise in whole numbers of such steps is the continuous noise up to the rounding of a double.

    Examples
    --------
    >>> step_under(2) == Fraction(2, 2**49)
    True
    """
    return Fraction(2) ** (math.frexp(float(scale))[1] - FINEST)


def float_above(value: Fraction) -> float:
    """Return the smallest double that is not below a number: rounding never costs privacy.

    Examples
    --------
    >>> float_above(Fraction(1, 2)), float_above(Fraction(1, 10)) > Fraction(1, 10)
    (0.5, True)
    """
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


@dataclasses.dataclass(frozen=True)
class Whole(Sequence[float]):
    """Numbers that are whole multiples of one step.

    Examples
    --------
    >>> list(Whole((3, 5), Fraction(1, 2)))
    [1.5, 2.5]
    """

    multiples: tuple[int, ...]
    step: Fraction

    @overload
    def __getitem__(self, i: int) -> float: ...
    @overload
    def __getitem__(self, i: slice) -> list[float]: ...
    def __getitem__(self, i: int | slice) -> float | list[float]:
        if isinstance(i, slice):
            return [self._float(m) for m in self.multiples[i]]
        return self._float(self.multiples[i])

    def __len__(self) -> int:
        return len(self.multiples)

    def _float(self, multiple: int) -> float:
        largest = Fraction(sys.float_info.max)
        return float(max(-largest, min(multiple * self.step, largest)))

    def plus(self, noise: Sequence[int]) -> Whole:
        """Return the numbers moved by whole numbers of steps."""
        moved = tuple(m + z for m, z in zip(self.multiples, noise, strict=True))
        return Whole(moved, self.step)


@dataclasses.dataclass(frozen=True)
class Grid:
    """Bounded records as whole numbers: (x − origin)/reach, within [−1, 1], in 1/steps.

    Parameters
    ----------
    bounds
        Where the records lie; others are clipped.
    origin
        What counts as 0.
    reach
        The largest distance of a bound from the origin: the sensitivity of the sum.
    steps
        Into how many steps the reach is divided.

    Examples
    --------
    >>> from trueup.mechanisms.records import read_numbers
    >>> far = Grid.under(1, (10**17, 10**17 + 10), 10**17, 10)
    >>> far.total(read_numbers([10**17 + 5, 10**17 + 900])) / far.steps
    1.5
    """

    bounds: Bounds
    origin: Fraction
    reach: Fraction
    steps: int

    @classmethod
    def under(cls, scale: Exact, bounds: Bounds, origin: Exact, reach: Exact) -> Grid:
        """Return the grid for noise of a scale, which is measured in reaches."""
        finest = FINEST - math.frexp(float(scale))[1]
        steps = 2 ** min(FINEST, max(0, finest))
        return cls(bounds, Fraction(origin), Fraction(reach), steps)

    def whole(self, records: Records) -> NDArray[np.int64]:
        """Return each record as a whole number of steps, at most ``steps`` in size."""
        near, rest = split(self.origin)
        with np.errstate(over="ignore"):  # a record far beyond a bound is clipped all the same
            distance = (records.high - near) + (records.low - rest)
            multiples = np.rint(distance / self.unit)
        return np.clip(multiples, *self.ends).astype(np.int64)

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds as whole numbers of steps."""
        low, high = (
            round((Fraction(b) - self.origin) / self.reach * self.steps) for b in self.bounds
        )
        return low, high

    @property
    def unit(self) -> float:
        """A step: the double next to the reach, shifted, since there are 2ᵏ steps in it."""
        return float(self.reach) / self.steps

    def total(self, records: Records) -> int:
        """Return the sum of the whole numbers, exactly."""
        return exact_sum(self.whole(records))


def exact_sum(multiples: NDArray[np.int64]) -> int:
    """Return the sum of whole numbers of at most 51 bits, without overflow.

    Examples
    --------
    >>> exact_sum(np.full(10**5, 2**50)) == 10**5 * 2**50
    True
    """
    upper, lower = multiples >> _HALF, multiples & ((1 << _HALF) - 1)
    return (int(upper.sum(dtype=np.int64)) << _HALF) + int(lower.sum(dtype=np.int64))


def exact_total(records: Records) -> Fraction:
    """Return the sum of records of any size, exactly.

    Examples
    --------
    >>> from trueup.mechanisms.records import read_numbers
    >>> exact_total(read_numbers([1e17, 8, 2**-40])) - 10**17
    Fraction(8796093022209, 1099511627776)
    """
    return _sum_floats(records.high) + _sum_floats(records.low[records.low != 0])


def _sum_floats(values: NDArray[np.float64]) -> Fraction:
    """Return Σ mantissa·2^exponent: whole mantissas are added exponent by exponent."""
    total = 0
    least = -1074 - 53  # so that every exponent below is a natural number
    for start in range(0, len(values), _BLOCK):
        fraction, exponent = np.frexp(values[start : start + _BLOCK])
        scaled = fraction * 2.0**27
        upper = np.floor(scaled)
        lower = (scaled - upper) * 2.0**26
        shift: Any = exponent.astype(np.int64) - 53 - least
        uppers = np.bincount(shift, upper)
        lowers = np.bincount(shift, lower)
        for power in np.flatnonzero(uppers.astype(bool) | lowers.astype(bool)).tolist():
            total += ((int(uppers[power]) << 26) + int(lowers[power])) << power
    return Fraction(total) * Fraction(2) ** least
