"""Compare the derivatives that came with a Python function with the function itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.domain import Interval

_DIFFERENT = 1e-3  # relative: rounding and truncation stay far below, mistaken formulas do not
_DOUBT = 20.0  # times its own estimate, the error of an integral is not exceeded
_MAGNITUDES = np.geomspace(1e-2, 1e12, 29)  # ends of panels, in units: two in every decade
_SUSPECT = 1e-7  # of the values: rounding stays below, a smaller jump moves no estimate by more
_HALVINGS = 40  # of a panel that contradicts itself: 1e-12 of it, where nothing smooth moves
_PIECES = 40  # of a panel, at most, in its integral: a jump inside takes about 30


def check(implementations: Sequence[Callable[..., Any]], domain: Interval, unit: float) -> None:
    """Refuse f, f′, f″, … of which one is not the derivative of the one before.

    ∫ f′ is compared with f(b) − f(a) over panels that cover the domain, and the panel that
    contradicts is halved until the place is found: no panel can hide a jump, and a steep f′ that
    an integral has missed is found. ``unit`` is a length that matters, the spread of the noise.
    """
    with np.errstate(all="ignore"):
        for order, (f, slope) in enumerate(pairwise(implementations)):
            for a, b in pairwise(_edges(domain, unit)):
                place = _contradiction(f, slope, a, b)
                if place:
                    start, end = (_at(f, x) for x in place)
                    raise TrueupError(
                        f"derivatives[{order}] does not explain f{order * chr(39)}, which goes "
                        f"from {start:.6g} to {end:.6g} at {place[0]:g}, beyond {place[1]:g}",
                        "give derivatives=(f1, f2), the first and the second derivative of f; a "
                        "function that jumps, or has a kink, has none there",
                    )


def _contradiction(
    f: Callable[..., Any], slope: Callable[..., Any], a: float, b: float
) -> tuple[float, float] | None:
    """Return the small part of [a, b] that contradicts most, None if rounding explains it."""
    excess, change = _compared(f, slope, a, b)
    suspect = _SUSPECT * (abs(_at(f, a)) + abs(_at(f, b)) + change)
    if excess <= suspect:
        return None
    for _ in range(_HALVINGS):
        middle = (a + b) / 2
        if excess <= suspect / 2 or not a < middle < b:
            break
        halves = [(*_compared(f, slope, *half), *half) for half in ((a, middle), (middle, b))]
        excess, change, a, b = max(halves)
    return (a, b) if excess > max(_DIFFERENT * change, suspect / 8) else None


def _compared(
    f: Callable[..., Any], slope: Callable[..., Any], a: float, b: float
) -> tuple[float, float]:
    """Return by how much f(b) − f(a) and ∫ f′ differ beyond doubt, and the size of both."""
    integral, error = scipy.integrate.quad(
        lambda x: _at(slope, x), a, b, epsabs=0, epsrel=1e-9, limit=_PIECES, full_output=1
    )[:2]
    change = _at(f, b) - _at(f, a)
    excess = abs(change - integral) - _DOUBT * error
    return excess if math.isfinite(excess) else 0.0, abs(change) + abs(integral)


def _edges(domain: Interval, unit: float) -> list[float]:
    """Return ends of panels: far from every bound, or from zero, by all magnitudes of the unit."""
    low, high = float(domain.low), float(domain.high)
    centres = [end for end in (low, high) if math.isfinite(end)] or [0.0]
    steps = [0.0, *(unit * m for m in _MAGNITUDES)]
    found = {c + side * step for c in centres for step in steps for side in (-1.0, 1.0)}
    return sorted(x for x in found if low <= x <= high)


def _at(f: Callable[..., Any], x: float) -> float:
    """Return a value, NaN where there is none."""
    try:
        return float(f(x))
    except (ArithmeticError, TypeError, ValueError):
        return math.nan
