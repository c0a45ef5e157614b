"""Which statistic a picture runs along, and over what range."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from trueup.estimator import Estimator

_POINTS = 400
_WIDE = 12  # standard deviations shown inside a half-line


class Slice:
    """An estimator as a function of one statistic, the others held fixed."""

    def __init__(self, est: Estimator, over: str | None, at: Mapping[str, float] | None) -> None:
        fixed = dict(at or {})
        moving = [name for name in est.statistics if name not in fixed]
        if over is not None:
            moving = [name for name in moving if name == over] or [over]
        if len(moving) != 1 or {*moving, *fixed} != {*est.statistics}:
            names, first = ", ".join(est.statistics), est.statistics[0]
            raise TrueupError(
                f"a picture runs along one statistic, and the estimator has {names}",
                f"fix the others, e.g. over={est.statistics[-1]!r}, at={{{first!r}: 10}}",
            )
        self.est, self.name, self.fixed = est, moving[0], fixed
        self.noise, self.domain = est.noise[self.name], est.domain[self.name]

    def arguments(self, values: ArrayLike) -> dict[str, Any]:
        """Return the values of all statistics, by name."""
        shape = np.shape(values)
        return {self.name: values, **{k: np.full(shape, float(v)) for k, v in self.fixed.items()}}

    @cached_property
    def spread(self) -> float:
        """About the standard deviation of the noise; 1 for a known number.

        Of a law without a variance a quarter of the range that holds 95 % of it.
        """
        found = 0.0
        with suppress(TrueupError):
            found = float(self.noise.quantile(0.975) - self.noise.quantile(0.025)) / 4
        with suppress(TrueupError):
            found = math.sqrt(float(self.noise.variance))
        return found or 1.0

    def published(self, values: ArrayLike | None) -> NDArray[np.float64]:
        """Return the published values to draw: the domain and what noise adds to it."""
        return np.asarray(values, float) if values is not None else self._points(3 * self.spread)

    def truth(self, most: int) -> NDArray[np.float64]:
        """Return about so many true values in the domain."""
        points = self._points(0.0)
        return points[:: max(1, len(points) // most)]

    def _points(self, beyond: float) -> NDArray[np.float64]:
        low, high = float(self.domain.low), float(self.domain.high)
        if math.isinf(low) and math.isinf(high):
            low, high = -6 * self.spread, 6 * self.spread
        elif math.isinf(high):
            high = low + _WIDE * self.spread
        elif math.isinf(low):
            low = high - _WIDE * self.spread
        ends = low - beyond, high + beyond
        if not self.noise.lattice:
            return np.linspace(*ends, _POINTS)
        step = max(1, round((ends[1] - ends[0]) / _POINTS))
        return np.arange(math.floor(ends[0]), math.ceil(ends[1]) + 1, step, dtype=float)
