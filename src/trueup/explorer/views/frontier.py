"""What a little bias buys: standard deviation against the bound on the bias."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import trueup
from trueup.errors import TrueupError
from trueup.explorer.refused import Refusal
from trueup.explorer.views.axis import read_axis
from trueup.explorer.views.form import Form, beside, plain, read
from trueup.explorer.views.near import ZERO, size
from trueup.explorer.views.time_limit import TimeUp, time_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BIASES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
"""The bounds looked at, times the size of f."""

_SECONDS = 12.0


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return bias bound, largest sd, average sd and worst true value, larger biases first.

    Examples
    --------
    >>> law = {"family": "gaussian", "scale": "2", "low": "6", "high": "60"}
    >>> shown = answer({"formula": "1/n", "statistics": {"n": law}})
    >>> shown["relative"], shown["points"][0][0]
    (True, 0.5)
    """
    form = read(request)
    axis = read_axis(form, request)
    with beside("frontier"):
        try:
            points = list(_points(form, 1.0, relative=True))
            relative = True
        except TrueupError as error:
            if len(form.statistics) > 1:  # no function of one statistic times others
                return {"relative": True, "points": []}
            if ZERO not in error.message:
                raise
            points = list(_points(form, size(form, axis), relative=False))
            relative = False
    if not points:
        raise Refusal(
            "no point of the frontier was found in the time and memory that the page allows",
            "narrow the bounds, or call tu.frontier in Python",
            field="frontier",
        )
    rows = [[p.max_bias, p.largest_sd, p.average_sd, p.worst] for p in points]
    return {"relative": relative, "points": plain(rows)}


def _points(form: Form, unit: float, *, relative: bool) -> Iterator[Any]:
    """Yield the points that can be reached, as far as the time allows."""
    end = time.process_time() + _SECONDS
    for bias in BIASES:
        try:
            with time_limit(end - time.process_time()):
                front = trueup.frontier(*form.given, relative=relative, biases=[bias * unit])
        except (TimeUp, MemoryError):
            return
        (point,) = front.points
        if not math.isfinite(point.largest_sd):
            return
        yield point
