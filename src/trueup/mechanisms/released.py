"""What a mechanism publishes."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.notebook import table
from trueup.values import plus_minus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise import Noise

_SIMULATED = "simulation: not private"
_WIDTHS = (Fraction(1, 10**130), Fraction(10**130))  # the variance of many records is far smaller
_PART = 0.1  # rounding to a double by more than this part of the standard error is told


class Mechanism:
    """What releases something: it shows its name, its budget and what it takes."""

    epsilon: Any
    bounds: tuple[Any, Any]

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


class Summable:
    """Something published with an unbiased variance: independent ones of one kind can be added.

    Sums are multiplied and divided by numbers, so that ``sum(releases) / len(releases)`` is a mean.
    """

    _label = "value"

    def _parts(self) -> dict[int, tuple[float, Any]]:
        return {id(self): (1.0, self)}

    def _names(self) -> list[Any] | None:
        """Return the names of what is published, None for one number."""
        return None

    @property
    def _notes(self) -> list[str]:
        """What to know of it."""
        release: Any = self
        notes = (getattr(self, "note", None), _SIMULATED if release.simulated else None)
        return [note for note in notes if note]

    def _repr_html_(self) -> str:
        release: Any = self
        found = (
            [(self._label, release.value, release.stderr)]
            if self._names() is None
            else [(name, share, release.stderr[name]) for name, share in release.shares.items()]
        )
        rows = [(name, *plus_minus(value, error).split(" ± ")) for name, value, error in found]
        count = getattr(self, "count", math.nan)
        known = [] if math.isnan(count) else [("count", f"{count:.1f}", "")]
        return table(("", "estimate", "standard error"), [*rows, *known], "; ".join(self._notes))

    def __add__(self, other: object) -> Any:
        parts = dict(self._parts())
        if isinstance(other, Summable):
            if self._names() != other._names():
                raise TrueupError(
                    f"{self!r} and {other!r} cannot be added",
                    "numbers are added to numbers, and shares to shares of the same categories",
                )
            for key, (weight, release) in other._parts().items():
                parts[key] = (parts.get(key, (0.0, release))[0] + weight, release)
        elif not isinstance(other, (int, float)) or other != 0:  # where sum() starts
            return NotImplemented
        return self._sum(parts)

    __radd__ = __add__

    def __mul__(self, factor: object) -> Any:
        if not isinstance(factor, Real):
            return NotImplemented
        parts = self._parts().items()
        return self._sum({key: (weight * float(factor), part) for key, (weight, part) in parts})

    __rmul__ = __mul__

    def __truediv__(self, divisor: object) -> Any:
        return self * (1 / float(divisor)) if isinstance(divisor, Real) else NotImplemented

    def __sub__(self, other: object) -> Any:
        return self + -1 * other if isinstance(other, Summable) else NotImplemented

    def _sum(self, parts: dict[int, tuple[float, Any]]) -> Any:
        return Sum(parts) if self._names() is None else SharesSum(parts)


def _kind(parts: dict[int, tuple[float, Any]]) -> str:
    """Say how parts were put together."""
    weights = {weight for weight, _ in parts.values()}
    named = {1.0: "sum", 1 / len(parts): "mean"}
    return named.get(weights.pop(), "weighted sum") if len(weights) == 1 else "weighted sum"


class Sum(Summable):
    """A sum of released values, each with a weight; what is added twice counts twice, not as two.

    The data behind the parts must be different records: then their noises are independent and the
    variances add up. They are unbiased, so that errors of single parts average out.
    """

    def __init__(self, parts: dict[int, tuple[float, Any]]) -> None:
        self.parts = parts
        self._label = _kind(parts)

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
        shown = f"{_kind(self.parts)} of {len(self.parts)}: {plus_minus(self.value, self.stderr)}"
        return f"<{'; '.join([shown, *self._notes])}>"


@dataclasses.dataclass(frozen=True, repr=False)
class MeanRelease(Summable):
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
    _label = "mean"

    @property
    def value(self) -> float:
        """The mean."""
        return self.mean

    @property
    def stderr(self) -> float:
        """The standard error of the mean, NaN where its unbiased square is negative."""
        return root(self.variance)

    def __repr__(self) -> str:
        shown = f"mean {plus_minus(self.mean, self.stderr)}"
        if not math.isnan(self.count):
            shown += f", count {self.count:.1f}"
        return f"<{'; '.join([shown, *self._notes])}>"


@dataclasses.dataclass(frozen=True, repr=False)
class TotalRelease(Summable):
    """An unbiased total; ``published`` is the noisy transformed value it was made from."""

    total: float
    stderr: float
    published: float
    noise: Noise
    simulated: bool
    note: str | None = None
    _label = "total"

    @property
    def value(self) -> float:
        """The total."""
        return self.total

    @property
    def variance(self) -> float:
        """The unbiased variance of the total, NaN where that is negative."""
        return self.stderr**2

    def __repr__(self) -> str:
        return f"<{'; '.join([f'total {plus_minus(self.total, self.stderr)}', *self._notes])}>"


@dataclasses.dataclass(frozen=True, repr=False)
class SharesRelease(Summable):
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

    def _names(self) -> list[Any]:
        return list(self.shares)

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

    def __repr__(self) -> str:
        return f"<shares {'; '.join([_listed(self.shares, self.stderr), *self._notes])}>"


class SharesSum(Summable):
    """A sum of the shares of several groups, category by category, as :class:`Sum` of numbers."""

    def __init__(self, parts: dict[int, tuple[float, SharesRelease]]) -> None:
        self.parts = parts

    def _parts(self) -> dict[int, tuple[float, Any]]:
        return self.parts

    def _names(self) -> list[Any]:
        return next(release._names() for _, release in self.parts.values())

    @property
    def shares(self) -> dict[Any, float]:
        """The sums of the shares."""
        parts = self.parts.values()
        return {name: math.fsum(w * r.shares[name] for w, r in parts) for name in self._names()}

    @property
    def variance(self) -> dict[Any, float]:
        """Their unbiased variances."""
        parts = self.parts.values()
        return {n: math.fsum(w**2 * r.variance[n] for w, r in parts) for n in self._names()}

    @property
    def stderr(self) -> dict[Any, float]:
        """Their roots, NaN where they are negative."""
        return {name: root(v) for name, v in self.variance.items()}

    @property
    def simulated(self) -> bool:
        """Whether any part is a simulation."""
        return any(release.simulated for _, release in self.parts.values())

    def __repr__(self) -> str:
        kind = f"{_kind(self.parts)} of {len(self.parts)} shares"
        shown = f"{kind}: {_listed(self.shares, self.stderr)}"
        return f"<{'; '.join([shown, *self._notes])}>"


def _listed(values: dict[Any, float], errors: dict[Any, float]) -> str:
    return ", ".join(f"{name}: {plus_minus(v, errors[name])}" for name, v in values.items())
