"""Where to draw: the statistic on the axis, its window, and the values the others are held at."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.explorer.refused import Refusal
from trueup.explorer.views.form import Form, Statistic, filled, number, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

POINTS = 241
"""Points of a curve."""


@dataclasses.dataclass(frozen=True)
class Axis:
    """One statistic runs, the others are held."""

    statistic: Statistic
    low: float
    high: float
    held: dict[str, float]

    def points(
        self, most: int = POINTS, *, inside: bool = False, edges: bool = False
    ) -> NDArray[np.float64]:
        """Return the points of the window, or of its part inside the bounds, denser at a bound.

        With ``edges`` each bound is there twice: itself, and just inside of it.

        Examples
        --------
        >>> from trueup.explorer.views.form import read
        >>> form = read({"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}})
        >>> read_axis(form, {}).points(3, inside=True)
        array([ 1.        , 10.19238816, 27.        ])
        """
        low, high, domain = self.low, self.high, self.statistic.domain
        if inside:
            low, high = max(low, float(domain.low)), min(high, float(domain.high))
        if low > high:
            return np.array([])
        if not self.statistic.noise.lattice:
            steps = np.linspace(0, 1, most)
            dense = inside and low == domain.low
            even = low + (high - low) * (steps**1.5 if dense else steps)
            return np.union1d(even, self._edges()) if edges else even
        first, last = math.ceil(low), math.floor(high)
        step = max(1, math.ceil((last - first + 1) / most))
        return np.arange(first, last + 1, step, dtype=float)

    def _edges(self) -> list[float]:
        tiny = 1e-6 * (self.high - self.low)
        ends = zip(self.statistic.domain.bounds, (tiny, -tiny), strict=True)
        pairs = [(float(bound), float(bound) + step) for bound, step in ends if bound is not None]
        return [x for pair in pairs for x in pair if self.low <= x <= self.high]

    def columns(self, points: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the values of every statistic along the axis."""
        held = {name: np.full_like(points, value) for name, value in self.held.items()}
        return {self.statistic.name: points, **held}

    def record(self) -> dict[str, Any]:
        """Return the axis as the page reads it."""
        return {
            "name": self.statistic.name,
            "from": self.low,
            "to": self.high,
            "whole": self.statistic.noise.lattice,
            "low": plain(float(self.statistic.domain.low)),
            "high": plain(float(self.statistic.domain.high)),
            "held": self.held,
        }


def read_axis(form: Form, request: Mapping[str, Any]) -> Axis:
    """Return the axis the page asks for, with sensible values where it does not say."""
    chosen = request.get("vary")
    by_name = {s.name: s for s in form.statistics}
    statistic = by_name.get(chosen) if isinstance(chosen, str) else None
    statistic = statistic or _interesting(form)
    low, high = _window(statistic)
    low, high = _given(request, "from", low), _given(request, "to", high)
    if not low < high:
        problem = f"the axis must run upwards, got {low:g} to {high:g}"
        raise Refusal(problem, "give a larger end", field="to")
    at = request.get("at")
    held = {
        s.name: _held(s, at.get(s.name) if isinstance(at, dict) else None)
        for s in form.statistics
        if s.name != statistic.name
    }
    return Axis(statistic, low, high, held)


def _interesting(form: Form) -> Statistic:
    """Return the statistic in which the formula is least simple."""

    def curved(s: Statistic) -> bool:
        return not form.expr.is_polynomial(form.symbol(s.name))

    return max(form.statistics, key=lambda s: (curved(s), s.domain.bounds != (None, None)))


def _window(s: Statistic) -> tuple[float, float]:
    low, high = s.domain.bounds
    spread = s.spread
    if low is not None and high is not None:
        margin = min(4 * spread, max(float(high) - float(low), spread))
        return _tidy(float(low) - margin, -1), _tidy(float(high) + margin, 1)
    if low is not None:
        return _tidy(float(low) - 3 * spread, -1), _tidy(float(low) + 9 * spread, 1)
    if high is not None:
        return _tidy(float(high) - 9 * spread, -1), _tidy(float(high) + 3 * spread, 1)
    return _tidy(-8 * spread, -1), _tidy(8 * spread, 1)


def _tidy(value: float, direction: int) -> float:
    """Return the number with two digits, rounded outwards."""
    if value == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    steps = value / unit
    return float((math.ceil(steps) if direction > 0 else math.floor(steps)) * unit)


def _given(request: Mapping[str, Any], field: str, default: float) -> float:
    given = filled(request, field)
    return default if given is None else float(given)


def _held(s: Statistic, text: object) -> float:
    if isinstance(text, str) and text.strip():
        value = float(number(text, f"at.{s.name}"))
        if s.noise.lattice and not value.is_integer():
            raise Refusal(
                f"{s.name} has integer noise, so its values are whole numbers, got {value:g}",
                "write a whole number",
                field=f"at.{s.name}",
            )
        return value
    low, high = s.domain.bounds
    start = float(low) if low is not None else 0.0
    value = start + 10 * s.spread if high is None else (start + float(high)) / 2
    return float(round(value)) if s.spread >= 0.3 or s.noise.lattice else _tidy(value, 1)
