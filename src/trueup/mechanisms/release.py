"""What a mechanism publishes."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.values import plus_minus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise import Noise

_SIMULATED = "simulation: not private"
_WIDTHS = (Fraction(1, 10**130), Fraction(10**130))  # the variance of many records is far smaller
_PART = 0.1  # rounding to a double by more than this part of the standard error is told


def rounding(value: float, stderr: float) -> str | None:
    """Return a note on a number so large that doubles beside it are as far apart as its error.

    Examples
    --------
    >>> rounding(1e17, 0.015)
    'rounded: doubles of this size are 16 apart'
    >>> rounding(0.5, 0.015)
    """
    spacing = math.ulp(value)
    return (
        f"rounded: doubles of this size are {spacing:g} apart" if spacing > _PART * stderr else None
    )


def root(variance: float) -> float:
    """Return the square root of an unbiased variance, NaN where that is negative."""
    return math.sqrt(variance) if variance >= 0 else math.nan


def square_of(width: Fraction) -> float:
    """Return the unit of a variance, refused where it is no double: ask before publishing.

    Examples
    --------
    >>> square_of(Fraction(3, 2))
    2.25
    """
    if not _WIDTHS[0] <= width <= _WIDTHS[1]:
        raise TrueupError(
            f"a variance of records in bounds {float(width):g} apart is beyond doubles",
            "measure them in another unit; nothing was released, no privacy was spent",
        )
    return float(width) ** 2


class Summable:
    """A published number with an unbiased variance: independent ones can be added."""

    def _parts(self) -> dict[int, tuple[float, Any]]:
        return {id(self): (1.0, self)}

    def __add__(self, other: object) -> Sum:
        if isinstance(other, (int, float)) and other == 0:  # where sum() starts
            return Sum(self._parts())
        if not isinstance(other, Summable):
            return NotImplemented
        parts = dict(self._parts())
        for key, (weight, release) in other._parts().items():
            parts[key] = (parts.get(key, (0.0, release))[0] + weight, release)
        return Sum(parts)

    __radd__ = __add__


class Sum(Summable):
    """A sum of released values; what is added twice counts twice, not as two.

    The data behind the parts must be different records: then their noises are independent and the
    variances add up. They are unbiased, so that errors of single parts average out.
    """

    def __init__(self, parts: dict[int, tuple[float, Any]]) -> None:
        self.parts = parts

    def _parts(self) -> dict[int, tuple[float, Any]]:
        return self.parts

    @property
    def value(self) -> float:
        """The sum."""
        return math.fsum(weight * release.value for weight, release in self.parts.values())

    @property
    def variance(self) -> float:
        """The unbiased variance of the sum."""
        return math.fsum(weight**2 * release.variance for weight, release in self.parts.values())

    @property
    def stderr(self) -> float:
        """Its root, NaN where it is negative."""
        return root(self.variance)

    @property
    def simulated(self) -> bool:
        """Whether any part is a simulation."""
        return any(release.simulated for _, release in self.parts.values())

    def __repr__(self) -> str:
        note = f"; {_SIMULATED}" if self.simulated else ""
        shown = plus_minus(self.value, self.stderr)
        return f"<sum of {len(self.parts)}: {shown}{note}>"


@dataclasses.dataclass(frozen=True, repr=False)
class MeanRelease(Summable):
    """A private count and an unbiased mean.

    ``variance`` is unbiased and can be negative; ``stderr`` is its root. ``noise`` says what was
    added to what, where that discloses nothing, and ``published`` are the numbers that came out;
    all else is computed from them. ``simulated`` is True if NumPy's generator was used: then it is
    not a private release. A ``count`` that the published numbers do not tell is NaN.
    """

    count: float
    mean: float
    variance: float
    noise: dict[str, Noise] | None
    simulated: bool
    published: tuple[float, ...] = ()
    note: str | None = None

    @property
    def value(self) -> float:
        """The mean."""
        return self.mean

    @property
    def stderr(self) -> float:
        """The standard error of the mean, NaN where its unbiased square is negative."""
        return root(self.variance)

    def __repr__(self) -> str:
        notes = [n for n in (self.note, _SIMULATED if self.simulated else None) if n]
        shown = f"mean {plus_minus(self.mean, self.stderr)}"
        if not math.isnan(self.count):
            shown += f", count {self.count:.1f}"
        return f"<{shown}{'; ' if notes else ''}{'; '.join(notes)}>"


@dataclasses.dataclass(frozen=True, repr=False)
class TotalRelease(Summable):
    """An unbiased total; ``published`` is the noisy transformed value it was made from."""

    total: float
    stderr: float
    published: float
    noise: Noise
    simulated: bool
    note: str | None = None

    @property
    def value(self) -> float:
        """The total."""
        return self.total

    @property
    def variance(self) -> float:
        """The unbiased variance of the total, NaN where that is negative."""
        return self.stderr**2

    def __repr__(self) -> str:
        notes = [n for n in (self.note, _SIMULATED if self.simulated else None) if n]
        return f"<{'; '.join([f'total {plus_minus(self.total, self.stderr)}', *notes])}>"


@dataclasses.dataclass(frozen=True, repr=False)
class SharesRelease:
    """Unbiased shares that sum to exactly 1, and the noisy counts they were made from.

    Shares too large for an exact sum have a ``note`` that says so.
    """

    shares: dict[str, float]
    stderr: dict[str, float]
    counts: NDArray[np.float64]
    noise: Noise
    simulated: bool
    note: str | None = None

    @property
    def count(self) -> float:
        """The unbiased total count."""
        return float(self.counts.sum())

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}: {plus_minus(v, self.stderr[k])}" for k, v in self.shares.items())
        notes = [n for n in (self.note, _SIMULATED if self.simulated else None) if n]
        return f"<shares {'; '.join([shown, *notes])}>"
