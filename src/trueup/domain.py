"""Where the true value is known to lie: intervals of the line and of the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from trueup.errors import TrueupError
from trueup.exact import Exact, number, read_exact

_HINT = "give (low, high) with low <= high; None on a side means unbounded"


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Interval:
    """The closed interval [low, high]; None on a side means unbounded.

    Examples
    --------
    >>> print(Interval(1, None))
    [1, ∞)
    >>> 0.5 in Interval(1, None)
    False
    """

    low: Exact
    high: Exact
    lattice: ClassVar[bool] = False

    def __init__(self, low: object = None, high: object = None) -> None:
        lower = -math.inf if low is None else number(low, "low", infinite=True)
        upper = math.inf if high is None else number(high, "high", infinite=True)
        if lower > upper or lower == math.inf or upper == -math.inf:
            raise TrueupError(f"low must not exceed high, got ({low}, {high})", _HINT)
        object.__setattr__(self, "low", lower)
        object.__setattr__(self, "high", upper)

    @classmethod
    def read(cls, value: object) -> Interval:
        """Return the domain meant by None, a pair, or a domain."""
        if value is None:
            return Interval()
        if isinstance(value, Interval):
            return value
        if isinstance(value, (tuple, list)) and len(value) == 2:
            return Interval(*value)
        raise TrueupError(f"a domain is a pair (low, high), got {value!r}", _HINT)

    @staticmethod
    def from_record(record: list[Any]) -> Interval:
        """Return the domain that :meth:`to_record` wrote."""
        low, high = (None if b is None else read_exact(b) for b in record[:2])
        return Integers(low, high) if "integers" in record[2:] else Interval(low, high)

    def to_record(self) -> list[str | None]:
        """Return the bounds as plain data, for JSON."""
        return [None if b is None else str(b) for b in self.bounds] + ["integers"] * self.lattice

    def integers(self) -> Integers:
        """Return the integers of this domain; a domain without any is refused."""
        low = self.low if math.isinf(self.low) else math.ceil(self.low)
        high = self.high if math.isinf(self.high) else math.floor(self.high)
        if low > high:
            raise TrueupError(
                f"the domain {self} holds no integer, but the noise is on the integers",
                "widen the domain, or use a continuous noise such as Laplace",
            )
        return Integers(low, high)

    @property
    def bounds(self) -> tuple[Exact | None, Exact | None]:
        """The pair (low, high) with None for an unbounded side."""
        return (
            None if math.isinf(self.low) else self.low,
            None if math.isinf(self.high) else self.high,
        )

    def __contains__(self, q: float) -> bool:
        return bool(float(self.low) <= q <= float(self.high))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bounds[0]!r}, {self.bounds[1]!r})"

    def __str__(self) -> str:
        left = "(-∞" if math.isinf(self.low) else f"[{self.low}"
        right = "∞)" if math.isinf(self.high) else f"{self.high}]"
        return f"{left}, {right}"


class Integers(Interval):
    """The integers from low to high; None on a side means unbounded.

    Examples
    --------
    >>> print(Integers(1, 5))
    {1..5}
    """

    lattice: ClassVar[bool] = True

    def __init__(self, low: object = None, high: object = None) -> None:
        super().__init__(low, high)
        for side, value in (("low", self.low), ("high", self.high)):
            if math.isfinite(value) and value != math.floor(value):
                raise TrueupError(
                    f"{side} must be an integer, got {value}",
                    "give whole bounds, e.g. Integers(1, 9)",
                )

    def __contains__(self, q: float) -> bool:
        return super().__contains__(q) and float(q).is_integer()

    def __str__(self) -> str:
        low, high = self.bounds
        if low is None:
            return "ℤ" if high is None else f"{{…, {high - 1}, {high}}}"
        return f"{{{low}, {low + 1}, …}}" if high is None else f"{{{low}..{high}}}"
