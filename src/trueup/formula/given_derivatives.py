"""Compare the derivatives that came with a Python function with the function itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.domain import Interval

_SHARES = (0.06, 0.21, 0.37, 0.5, 0.62, 0.81, 0.93)  # of a bounded domain
_STEPS = (0.1, 0.5, 1.0, 3.0, 10.0, 100.0)  # away from a bound, or from zero, in units
_NARROWING = 1.4  # of the step from one difference to the next: Ridders' choice
_ROWS = 10
_DIFFERENT = 1e-3  # relative: rounding and truncation stay far below, mistaken formulas do not
_KNOWN = 1e-3  # relative: a numerical derivative with a larger error says nothing
_REACHES = (1e-5, 1e-4, 1e-3, 1e-2, 0.2)  # of the room: short ones see what oscillates as it is
_DOUBT = 20.0  # times its own estimate, the error of a numerical derivative is not exceeded
_MAGNITUDES = np.geomspace(1e-2, 1e12, 29)  # ends of panels, in units: two in every decade
_SUSPECT = 1e-7  # of the values: rounding stays below, a smaller jump moves no estimate by more
_HALVINGS = 40  # of a panel that contradicts itself: 1e-12 of it, where nothing smooth moves
_PIECES = 40  # of a panel, at most, in its integral: a jump inside takes about 30
_HINT = "give derivatives=(f1, f2), the first and the second derivative of f"


def check(implementations: Sequence[Callable[..., Any]], domain: Interval, unit: float) -> None:
    """Refuse f, f′, f″, … of which one is not the derivative of the one before.

    Slopes are compared at points, and ∫ f′ with f(b) − f(a) over panels that cover the domain: a
    jump lies between the points, but no panel can hide it.

    Parameters
    ----------
    implementations
        The function and its derivatives, of one argument.
    domain
        Where they are compared.
    unit
        A length that matters, such as the spread of the noise.
    """
    with np.errstate(all="ignore"):
        for order, (f, slope) in enumerate(pairwise(implementations)):
            _check_slopes(f, slope, order, domain, unit)
            _check_integrals(f, slope, order, domain, unit)


def _check_slopes(
    f: Callable[..., Any], slope: Callable[..., Any], order: int, domain: Interval, unit: float
) -> None:
    """Refuse a derivative that is not the slope at some point."""
    for x, room in _points(domain, unit):
        given = _at(slope, x)
        found = _derivative(f, x, room, given)
        if found is None:
            continue
        allowed = _DIFFERENT * (abs(given) + abs(found[0])) + _DOUBT * found[1]
        if abs(given - found[0]) > allowed:
            raise TrueupError(
                f"derivatives[{order}] is {given:.6g} at {x:g}, but the slope of "
                f"{_named(order)} there is {found[0]:.6g}",
                _HINT,
            )


def _check_integrals(
    f: Callable[..., Any], slope: Callable[..., Any], order: int, domain: Interval, unit: float
) -> None:
    """Refuse a derivative whose integral is not the change of the function."""
    for a, b in pairwise(_edges(domain, unit)):
        panel = _Panel(f, slope, a, b)
        if panel.excess <= _SUSPECT * panel.size:
            continue
        place = _narrowed(f, slope, panel)
        if place.excess > max(_DIFFERENT * place.change, _SUSPECT * panel.size / 2):
            raise TrueupError(
                f"derivatives[{order}] does not explain {_named(order)}, which goes from "
                f"{place.start:.6g} to {place.end:.6g} at {place.a:g}, a change of "
                f"{place.integral + 0.0:.6g} by the derivative",
                f"{_HINT}; a function that jumps, or has a kink, has none there",
            )


def _named(order: int) -> str:
    return "f" + "'" * order


class _Panel:
    """f(b) − f(a) beside ∫ f′ from a to b."""

    def __init__(
        self, f: Callable[..., Any], slope: Callable[..., Any], a: float, b: float
    ) -> None:
        self.a, self.b = a, b
        self.start, self.end = _at(f, a), _at(f, b)
        self.integral, error = scipy.integrate.quad(
            lambda x: _at(slope, x), a, b, epsabs=0, epsrel=1e-9, limit=_PIECES, full_output=1
        )[:2]
        gap = abs(self.end - self.start - self.integral) - _DOUBT * error
        self.excess = gap if math.isfinite(gap) else 0.0
        self.change = abs(self.end - self.start) + abs(self.integral)
        self.size = abs(self.start) + abs(self.end) + abs(self.integral)


def _narrowed(f: Callable[..., Any], slope: Callable[..., Any], panel: _Panel) -> _Panel:
    """Return the small part of a panel that contradicts most: a steep f′ is found, a jump stays."""
    for _ in range(_HALVINGS):
        middle = (panel.a + panel.b) / 2
        if not panel.a < middle < panel.b:
            break
        halves = _Panel(f, slope, panel.a, middle), _Panel(f, slope, middle, panel.b)
        panel = max(halves, key=lambda half: half.excess)
    return panel


def _edges(domain: Interval, unit: float) -> list[float]:
    """Return ends of panels: far from every bound, or from zero, by all magnitudes of the unit."""
    low, high = float(domain.low), float(domain.high)
    centres = [end for end in (low, high) if math.isfinite(end)] or [0.0]
    steps = [0.0, *(unit * m for m in _MAGNITUDES)]
    found = {c + side * step for c in centres for step in steps for side in (-1.0, 1.0)}
    return sorted(x for x in found if low <= x <= high)


def _points(domain: Interval, unit: float) -> Iterator[tuple[float, float]]:
    """Yield points inside the domain, each with its distance from the bounds."""
    low, high = float(domain.low), float(domain.high)
    if math.isfinite(low) and math.isfinite(high):
        points = [low + share * (high - low) for share in _SHARES]
    elif math.isfinite(low) or math.isfinite(high):
        end, side = (low, 1.0) if math.isfinite(low) else (high, -1.0)
        points = [end + side * step * unit for step in _STEPS]
    else:
        points = [side * step * unit for step in _STEPS for side in (-1.0, 1.0)]
    for x in points:
        room = min(x - low, high - x, max(abs(x), unit))
        if room > 0:
            yield x, room


def _at(f: Callable[..., Any], x: float) -> float:
    """Return a value, NaN where there is none."""
    try:
        return float(f(x))
    except (ArithmeticError, TypeError, ValueError):
        return math.nan


def _derivative(
    f: Callable[..., Any], x: float, room: float, given: float
) -> tuple[float, float] | None:
    """Return a numerical derivative and its error, from the shortest steps that leave digits."""
    for share in _REACHES:
        first, second = (_ridders(f, x, part * share * room) for part in (1.0, 0.25))
        best = min(first, second, key=lambda pair: pair[1])
        rounding = math.ulp(_at(f, x)) / (share * room)
        error = max(best[1], abs(first[0] - second[0]), rounding)
        if error <= _KNOWN * (abs(best[0]) + abs(given)):
            return best[0], error
    return None


def _ridders(f: Callable[..., Any], x: float, step: float) -> tuple[float, float]:
    """Return the limit of central differences, extrapolated, and how far it is known."""
    before: list[float] = []
    best, error = math.nan, math.inf
    for _ in range(_ROWS):
        row = [(_at(f, x + step) - _at(f, x - step)) / (2 * step)]
        factor = 1.0
        for left in before:
            factor *= _NARROWING**2
            row.append((row[-1] * factor - left) / (factor - 1))
            gap = max(abs(row[-1] - row[-2]), abs(row[-1] - left))
            if gap <= error:
                best, error = row[-1], gap
        if before and abs(row[-1] - before[-1]) > 2 * error:
            break
        before, step = row, step / _NARROWING
    return best, error
