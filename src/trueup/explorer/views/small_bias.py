"""What a little bias buys: the best estimator whose bias stays below a bound, and the frontier."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import trueup
from trueup.errors import TrueupError
from trueup.explorer.refused import Refusal
from trueup.explorer.views import code
from trueup.explorer.views.axis import Axis, read_axis
from trueup.explorer.views.form import Form, beside, filled, plain, read
from trueup.explorer.views.overview import plain_curve, truth

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.near.estimator import NearlyUnbiased

USUAL = 0.05
"""The bias allowed unless the page says otherwise, times the size of f."""

BIASES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
"""The bounds of the frontier, times the size of f."""

_ZERO = "is zero at"  # what the library says of a bias relative to an f that has a zero
_SECONDS = 8.0
_FRONTIER_SECONDS = 12.0
_POINTS = 33


def best(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the curve of the estimator of least variance, and its exact bias, sd and error.

    Examples
    --------
    >>> law = {"family": "gaussian", "scale": "2", "low": "6", "high": "60"}
    >>> shown = best({"formula": "1/n", "statistics": {"n": law}, "bias": "0.05"})
    >>> shown["relative"], shown["bound"] <= 0.05
    (True, True)
    """
    form = read(request)
    axis = read_axis(form, request)
    try:
        with time_limit(_SECONDS):
            est, allowed, unit = _chosen(form, axis, request)
            x, q = axis.points(), axis.points(_POINTS, inside=True)
            at_truth = axis.columns(q)
            bias, sd = est.bias(**at_truth), est.sd(**at_truth)
            curve = {"x": x, "estimate": np.asarray(est(**axis.columns(x)), float)}
    except (TimeUp, MemoryError):
        raise Refusal(
            "it takes more time or memory than the page allows",
            "allow more bias, or narrow the bounds",
            field="bias",
        ) from None
    risk = {"q": q, "bias": bias, "sd": sd, "rmse": np.hypot(bias, sd)}
    return {
        "axis": axis.record(),
        "bias": est.max_bias,
        "unit": unit,
        "relative": est.relative,
        "measure": est.measure,
        "bound": est.bias_bound,
        "curve": plain_curve(curve),
        "risk": plain_curve({name: np.asarray(values) for name, values in risk.items()}),
        "python": code.python(form, "nearly_unbiased", *(f"{k}={v}" for k, v in allowed.items())),
    }


def _chosen(
    form: Form, axis: Axis, request: Mapping[str, Any]
) -> tuple[NearlyUnbiased, dict[str, Any], float]:
    """Return the estimator that the page asks for, how, and in which unit its bias is given."""
    cells = filled(request, "cells")
    if cells is not None:
        return form.near(cells=cells), {"cells": cells}, 1.0
    bias = filled(request, "bias")
    try:
        allowed = {"max_bias": USUAL if bias is None else bias, "relative": True}
        return form.near(**allowed), allowed, 1.0
    except Refusal as refusal:
        if _ZERO not in refusal.message:
            raise
    unit = _size(form, axis)
    allowed = {"max_bias": float(f"{USUAL * unit:.1g}") if bias is None else bias}
    return form.near(**allowed), allowed, unit


def _size(form: Form, axis: Axis) -> float:
    """Return the usual |f| inside the bounds, along the axis."""
    values = np.abs(truth(form, axis.columns(axis.points(inside=True))))
    values = values[np.isfinite(values)]
    return float(np.median(values)) or 1.0 if len(values) else 1.0


def frontier(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return bias bound, largest sd, average sd and worst true value, larger biases first.

    Examples
    --------
    >>> law = {"family": "gaussian", "scale": "2", "low": "6", "high": "60"}
    >>> shown = frontier({"formula": "1/n", "statistics": {"n": law}})
    >>> shown["relative"], shown["points"][0][0]
    (True, 0.5)
    """
    form = read(request)
    axis = read_axis(form, request)
    relative = True
    with beside("frontier"):
        try:
            points = list(_points(form, 1.0, relative))
        except TrueupError as error:
            if len(form.statistics) > 1:  # no function of one statistic times others
                return {"relative": True, "points": []}
            if _ZERO not in error.message:
                raise
            relative = False
            points = list(_points(form, _size(form, axis), relative))
    if not points:
        raise Refusal(
            "no point of the frontier was found in the time and memory that the page allows",
            "narrow the bounds, or call tu.frontier in Python",
            field="frontier",
        )
    rows = [[p.max_bias, p.largest_sd, p.average_sd, p.worst] for p in points]
    return {"relative": relative, "points": plain(rows)}


def _points(form: Form, unit: float, relative: bool) -> Iterator[Any]:
    """Yield the points that can be reached, as far as the time allows."""
    end = time.process_time() + _FRONTIER_SECONDS
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


# -- what is done in time is kept ----------------------------------------------------------------


class TimeUp(BaseException):
    """The seconds are spent; not an error, so that nobody else takes it for one."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`TimeUp` in the block when it has used so many seconds of processor time.

    Examples
    --------
    >>> with contextlib.suppress(TimeUp), time_limit(0.05):
    ...     while True:
    ...         pass
    """
    timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not timed:
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(*_: object) -> NoReturn:
    raise TimeUp
