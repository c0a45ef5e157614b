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
_ROUNDING = 1e-7  # of the values, which may be in single precision
_MAGNITUDES = np.geomspace(1e-2, 1e12, 29)  # ends of panels, in units: two in every decade
_PIECES = 40  # of a panel, at most, in its integral: a jump inside takes about 30


def check(implementations: Sequence[Callable[..., Any]], domain: Interval, unit: float) -> None:
    """Refuse f, f′, f″, … of which one is not the derivative of the one before.

    ∫ f′ is compared with f(b) − f(a) over panels that cover the domain: none can hide a jump of a
    thousandth of what f changes by. So steep a part that the integral misses it is refused too.
    ``unit`` is a length that matters, the spread of the noise.
    """
    with np.errstate(all="ignore"):
        for order, (f, slope) in enumerate(pairwise(implementations)):
            for a, b in pairwise(_edges(domain, unit)):
                start, end = _at(f, a), _at(f, b)
                if _is_explained(end - start, abs(start) + abs(end), slope, a, b):
                    continue
                raise TrueupError(
                    f"derivatives[{order}] does not explain f{order * chr(39)}, which goes "
                    f"from {start:.6g} at {a:.6g} to {end:.6g} at {b:.6g}",
                    "give derivatives=(f1, f2), the first and the second derivative of f; a "
                    "function that jumps, or has a kink, has none there",
                )


def _is_explained(
    change: float, size: float, slope: Callable[..., Any], a: float, b: float
) -> bool:
    """Whether f(b) − f(a) may be ∫ f′; what is not finite is not judged."""
    integral, error = scipy.integrate.quad(
        lambda x: _at(slope, x), a, b, epsabs=0, epsrel=1e-9, limit=_PIECES, full_output=1
    )[:2]
    allowed = _DOUBT * error + _ROUNDING * size + _DIFFERENT * (abs(change) + abs(integral))
    return not abs(change - integral) > allowed


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
