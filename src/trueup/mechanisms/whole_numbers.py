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
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trueup.exact import Exact
    from trueup.mechanisms.records import Bounds, Records

FINEST = 50
"""No grid divides its unit further than 2⁵⁰: then a double holds a record's whole number, and the
rounding of a record, at most 2⁻⁵¹ of the unit, is as small as that of a double."""

_FAR = 2**62
"""Whole numbers of 64 bits that are nearer have a difference that is one, too."""


def step_under(scale: Exact) -> Fraction:
    """Return the step of the grid for noise of a scale: between 2⁻⁵⁰ and 2⁻⁴⁹ of the scale.

    Noise in whole numbers of such steps is the continuous noise up to the rounding of a double.

    Examples
    --------
    >>> step_under(2) == Fraction(2, 2**49)
    True
    """
    return Fraction(2) ** (math.frexp(float(scale))[1] - FINEST)


@dataclasses.dataclass(frozen=True)
class Whole:
    """Numbers that are whole multiples of one step.

    Examples
    --------
    >>> list(Whole((3, 5), Fraction(1, 2)))
    [1.5, 2.5]
    """

    multiples: tuple[int, ...]
    step: Fraction

    def __getitem__(self, i: int) -> float:
        return self._float(self.multiples[i])

    def __iter__(self) -> Iterator[float]:
        return map(self._float, self.multiples)

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
    >>> far = Grid.under(1, (10**17, 10**17 + 10), 10**17, 10)
    >>> far.total(np.array([10**17 + 5, 10**17 + 900])) / far.steps
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
        with np.errstate(over="ignore"):  # a record far beyond a bound is clipped all the same
            multiples = np.rint(self._distances(records) / self.unit)
        return np.clip(multiples, *self.ends).astype(np.int64)

    def _distances(self, records: Records) -> NDArray[np.float64]:
        """Return the records less the origin, of which no double need hold all digits."""
        if records.dtype.kind == "i" and self.reach < _FAR:
            info = np.iinfo(np.int64)
            low, high, near = (
                min(max(x, int(info.min)), int(info.max))
                for x in (math.floor(self.bounds[0]), math.ceil(self.bounds[1]), round(self.origin))
            )
            whole = (np.clip(records, low, high) - near).astype(float)
            return np.asarray(whole - float(self.origin - near))
        first = float(self.origin)
        return np.asarray((records - first) - float(self.origin - Fraction(first)))

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


def exact_sum(whole: NDArray[np.int64]) -> int:
    """Return the sum of whole numbers of 64 bits, without overflow below 2³¹ of them.

    Examples
    --------
    >>> exact_sum(np.full(10**5, 2**62)) == 10**5 * 2**62
    True
    """
    upper, lower = whole >> 32, whole & 0xFFFFFFFF
    return (int(upper.sum(dtype=np.int64)) << 32) + int(lower.sum(dtype=np.int64))


def exact_total(records: Records) -> Fraction:
    """Return the sum of records of any size, exactly: mantissas are added exponent by exponent.

    Examples
    --------
    >>> exact_total(np.array([1e17, 8, 2**-40])) - 10**17
    Fraction(8796093022209, 1099511627776)
    """
    if records.dtype.kind == "i":
        return Fraction(exact_sum(records.astype(np.int64)))
    fractions, exponents = np.frexp(records)
    mantissas, total = (fractions * 2.0**53).astype(np.int64), Fraction(0)
    for power in np.unique(exponents).tolist():
        total += exact_sum(mantissas[exponents == power]) * Fraction(2) ** (power - 53)
    return total
