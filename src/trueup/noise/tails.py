"""Measure how fast a density falls: exponential rate and power index of its tails.

scipy's distributions do not say which moments exist or where E e^{tZ} converges. Their log-density
at distances that double shows it: the slope tends to the exponential rate (infinite for lighter
tails, 0 for heavier ones), the fall per doubling to the power index.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.noise.elementwise import Floats, Formula

DOUBLINGS = 60
AGREEMENT = 1e-3
"""Two extrapolated slopes closer than this are a limit."""


def tail(log_density: Formula, start: float, unit: float) -> tuple[float, float]:
    """Return the exponential rate and the power index of one tail; ``unit`` < 0 is the left one.

    The density falls like e^{−rate·|x|}, or like |x|^{−index} if the rate is 0.

    Examples
    --------
    >>> tail(lambda x: -3 * x, 0.0, 1.0), tail(lambda x: -2 * np.log1p(x), 0.0, 1.0)
    ((3.0, inf), (0.0, 2.0))
    """
    distance = abs(unit) * np.exp2(np.arange(2.0, DOUBLINGS))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        height = log_density(np.asarray(start + math.copysign(1.0, unit) * distance))
    seen = int(np.argmin(np.append(np.isfinite(height), False)))
    if seen < 4 or not unit:  # it falls too fast to be seen, or doubles do not hold its width
        return math.inf, math.inf
    fall = -np.diff(height[:seen])
    rate = _limit(fall / np.diff(distance[:seen]))
    return (rate, math.inf) if rate else (0.0, _index(fall / math.log(2)))


def _limit(slopes: Floats) -> float:
    """Return the limit of slopes with an error that halves at each step: 0, finite or ∞."""
    first, second, third = (float(s) for s in slopes[-3:])
    before, after = 2 * second - first, 2 * third - second
    if after > 0 and abs(after - before) <= AGREEMENT * after:
        return round(after, 12 - math.ceil(math.log10(after)))
    return math.inf if third > second else 0.0


def _index(falls: Floats) -> float:
    """Return the limit of the falls per doubling, ∞ if they keep growing."""
    before, after = (float(f) for f in falls[-2:])
    return round(after, 6) if abs(after - before) < 1e-6 else math.inf
