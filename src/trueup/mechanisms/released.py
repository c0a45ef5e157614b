"""What a mechanism publishes."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.notebook import table
from trueup.values import plus_minus

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from trueup.exact import Exact
    from trueup.noise import Noise

_SIMULATED = "simulation: not private"
_WIDTHS = (Fraction(1, 10**130), Fraction(10**130))  # the variance of many records is far smaller
_PART = 0.1  # rounding to a double by more than this part of the standard error is told


class Mechanism:
    """What releases something with a budget, and knows its error: ``plan`` chooses among them."""

    epsilon: Any
    bounds: tuple[Any, Any]
    count_at_least: Exact = 1
    is_private = True
    """Whether a release without ``rng`` is private; else it is a simulation, too."""
    only = ""
    """Which records it takes, if not all within the bounds."""

    def sd(self, n: Any, mean: Any, /) -> float:
        """Return the exact standard deviation for n records with a given mean."""
        raise NotImplementedError

    def sd_count(self, n: Any, mean: Any) -> float:
        """Return the standard deviation of the published number of records."""
        raise NotImplementedError

    def places(self, n: int, means: Collection[Exact]) -> Collection[Exact]:
        """Return the means to look at for the largest error near some means."""
        return means

    def __repr__(self) -> str:
        taken = getattr(self, "categories", None) or f"[{self.bounds[0]}, {self.bounds[1]}]"
        return f"<{type(self).__name__}: epsilon {self.epsilon}, records in {taken}>"


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


class Release:
    """What all releases show of themselves."""

    simulated: bool
    note: str | None

    @property
    def _estimates(self) -> list[tuple[Any, float, float]]:
        """Name, estimate and standard error of all that is published."""
        raise NotImplementedError

    @property
    def _count(self) -> float:
        """The number of records, NaN if it is not told."""
        return math.nan

    @property
    def _notes(self) -> list[str]:
        """What to know of it."""
        return [note for note in (self.note, _SIMULATED if self.simulated else None) if note]

    def __repr__(self) -> str:
        several = len(self._estimates) > 1
        shown = [
            f"{name}{':' if several else ''} {plus_minus(value, error)}"
            for name, value, error in self._estimates
        ]
        known = [] if several or math.isnan(self._count) else [f"count {self._count:.1f}"]
        kind = "shares " if several else ""
        return f"<{'; '.join([kind + ', '.join([*shown, *known]), *self._notes])}>"

    def _repr_html_(self) -> str:
        rows = [(n, *plus_minus(value, error).split(" ± ")) for n, value, error in self._estimates]
        known = [] if math.isnan(self._count) else [("count", f"{self._count:.1f}", "")]
        return table(("", "estimate", "standard error"), [*rows, *known], "; ".join(self._notes))


@dataclasses.dataclass(frozen=True, repr=False)
class MeanRelease(Release):
    """A private count and an unbiased mean.

    ``variance`` is unbiased (of group means under a small budget: on average no less than the true
    one) and can be negative; ``stderr`` is its root. ``noise`` says what was added to what, where
    that discloses nothing, and ``published`` are the numbers that came out; all else is computed
    from them. ``simulated`` is True if NumPy's generator was used: then it is not a private
    release. A ``count`` that the published numbers do not tell is NaN.
    """

    count: float
    mean: float
    variance: float
    noise: dict[str, Noise] | None
    simulated: bool
    published: tuple[float, ...] = ()
    note: str | None = None

    @property
    def stderr(self) -> float:
        """The standard error of the mean, NaN where its unbiased square is negative."""
        return root(self.variance)

    @property
    def _estimates(self) -> list[tuple[Any, float, float]]:
        return [("mean", self.mean, self.stderr)]

    @property
    def _count(self) -> float:
        return self.count


@dataclasses.dataclass(frozen=True, repr=False)
class TotalRelease(Release):
    """An unbiased total; ``published`` is the noisy transformed value it was made from."""

    total: float
    stderr: float
    published: float
    noise: Noise
    simulated: bool
    note: str | None = None

    @property
    def variance(self) -> float:
        """The unbiased variance of the total, NaN where that is negative."""
        return self.stderr**2

    @property
    def _estimates(self) -> list[tuple[Any, float, float]]:
        return [("total", self.total, self.stderr)]


@dataclasses.dataclass(frozen=True, repr=False)
class SharesRelease(Release):
    """Unbiased shares that sum to exactly 1, and the noisy counts they were made from.

    ``variance`` is unbiased and can be negative; ``stderr`` is its root. ``published`` are the
    counts with their ``noise``, all else is computed from them. Shares too large for an exact sum
    have a ``note`` that says so.
    """

    shares: dict[Any, float]
    variance: dict[Any, float]
    published: tuple[int, ...]
    noise: Noise
    simulated: bool
    note: str | None = None

    @property
    def counts(self) -> NDArray[np.float64]:
        """The noisy counts, each unbiased."""
        return np.array(self.published, dtype=np.float64)

    @property
    def count(self) -> float:
        """The unbiased total count."""
        return float(sum(self.published))

    @property
    def stderr(self) -> dict[Any, float]:
        """The standard errors of the shares, NaN where their unbiased squares are negative."""
        return {name: root(v) for name, v in self.variance.items()}

    @property
    def _estimates(self) -> list[tuple[Any, float, float]]:
        return [(name, share, self.stderr[name]) for name, share in self.shares.items()]

    @property
    def _count(self) -> float:
        return self.count
