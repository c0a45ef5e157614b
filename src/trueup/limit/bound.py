"""What no unbiased private release can beat: a bound proved on the whole line of labels.

Multipliers a, c prove that the variance is at least Σ a when the prices r_y lie in the dual of the
private cone for every real y. Between two labels h apart r_y(q) lies at most prior(q) h²/4 below
the chord, so that checking the ends, lowered by that much, proves it for all labels in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.limit.column_generation import Dual, Programme
from trueup.limit.rays import least

if TYPE_CHECKING:
    from trueup.limit.rays import Bools, Floats

_ROUNDING = 1e-13
"""More than all rounding errors of one pass over q, relative to the terms added."""


def lower_bound(programme: Programme, dual: Dual, labels: Floats, margin: float) -> float:
    """Return a variance that no unbiased private release on the real line can beat.

    The multipliers are lowered until the check succeeds everywhere; should it never, 0 is a bound.

    Parameters
    ----------
    programme
        With ρ no smaller than the true e^ε.
    dual
        Nearly feasible multipliers.
    labels
        Where the best release has its labels.
    margin
        How much of the bound may be given up to finish the check.

    Examples
    --------
    >>> coin = Programme(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 3.0)
    >>> dual = Dual(np.array([0.3, 0.3]), np.array([0.0, 0.0]))
    >>> lower_bound(coin, dual, np.array([-0.5, 1.5]), 1e-3) <= 0.75
    True
    """
    lowered = dual.lowered(margin, programme.gauge)
    for attempt in range(40):
        if lowered.value <= 0:
            break
        doubtful = _doubtful(programme, lowered, labels)
        if not doubtful.size:
            return lowered.value
        found = programme.cheapest(lowered, doubtful, 0.0)[0].min()
        lowered = lowered.lowered(margin * 2**attempt - found, programme.gauge)
    return 0.0


def _doubtful(programme: Programme, dual: Dual, labels: Floats) -> Floats:
    """Return labels at which the multipliers may not be feasible: none, if they are everywhere."""
    points = np.concatenate([labels, programme.values])
    middle, reach = (points.min() + points.max()) / 2, points.max() - points.min()
    for _ in range(60):
        ends = np.array([middle - reach, middle + reach])
        if _settled(programme, dual, ends):
            return _uncovered(programme, dual, np.linspace(float(ends[0]), float(ends[1]), 2001))
        reach *= 2
    return ends


def _settled(programme: Programme, dual: Dual, ends: Floats) -> bool:
    """Tell whether the prices only rise from the two ends outwards."""
    slopes = 2 * programme.prior[:, None] * (ends - programme.values[:, None])
    slopes = (slopes - dual.mean[:, None]) * np.array([-1.0, 1.0])
    size = np.abs(slopes) + np.abs(dual.mean[:, None])
    rising = least(slopes - _ROUNDING * size, programme.ratio)[0] >= 0
    return bool(np.all(rising & _feasible(programme, dual, ends, np.zeros(2))))


def _uncovered(programme: Programme, dual: Dual, edges: Floats) -> Floats:
    """Return labels between the first and last edge at which the prices may not be feasible."""
    left, right = edges[:-1], edges[1:]
    for _ in range(40):
        width = right - left
        fine = _feasible(programme, dual, left, width) & _feasible(programme, dual, right, width)
        left, right = left[~fine], right[~fine]
        middle = (left + right) / 2
        wrong = ~_feasible(programme, dual, middle, np.zeros_like(middle))
        if wrong.any() or not left.size:
            return np.asarray(middle[wrong])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return middle


def _feasible(programme: Programme, dual: Dual, labels: Floats, width: Floats) -> Bools:
    """Return where the prices, lowered for labels up to a width away, suit every private ray."""
    off = labels - programme.values[:, None]
    curve, tilt = programme.prior[:, None] * off**2, dual.mean[:, None] * off
    size = curve + np.abs(tilt) + np.abs(dual.total[:, None])
    prices = curve - tilt - dual.total[:, None] - programme.prior[:, None] * width**2 / 4
    return np.asarray(least(prices - _ROUNDING * size, programme.ratio)[0] >= 0)
