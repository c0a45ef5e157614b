"""What a mechanism publishes."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from trueup.values import plus_minus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise import Noise

_SIMULATED = "simulation: not private"
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


@dataclasses.dataclass(frozen=True, repr=False)
class MeanRelease:
    """A private count and an unbiased mean.

    ``noise`` says what was added to what, where that discloses nothing; ``simulated`` is True if
    NumPy's generator was used: then it is not a private release.
    """

    count: float
    mean: float
    stderr: float
    noise: dict[str, Noise] | None
    simulated: bool
    note: str | None = None

    def __repr__(self) -> str:
        notes = [n for n in (self.note, _SIMULATED if self.simulated else None) if n]
        shown = f"mean {plus_minus(self.mean, self.stderr)}, count {self.count:.1f}"
        return f"<{shown}{'; ' if notes else ''}{'; '.join(notes)}>"


@dataclasses.dataclass(frozen=True, repr=False)
class TotalRelease:
    """An unbiased total; ``published`` is the noisy transformed value it was made from."""

    total: float
    stderr: float
    published: float
    noise: Noise
    simulated: bool
    note: str | None = None

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
