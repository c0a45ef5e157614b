"""The best estimator whose bias stays below a bound, or that is best for averages of m cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.explorer.refused import Refusal
from trueup.explorer.views import code
from trueup.explorer.views.axis import Axis, read_axis
from trueup.explorer.views.form import Form, filled, read
from trueup.explorer.views.overview import plain_curve, truth
from trueup.explorer.views.time_limit import TimeUp, time_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.near.estimator import NearlyUnbiased

USUAL = 0.05
"""The bias allowed unless the page says otherwise, times the size of f."""

ZERO = "is zero at"
"""What the library says of a bias relative to an f that has a zero."""

_SECONDS = 8.0
_POINTS = 33


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the curve of the estimator of least variance, and its exact bias, sd and error.

    Examples
    --------
    >>> law = {"family": "gaussian", "scale": "2", "low": "6", "high": "60"}
    >>> shown = answer({"formula": "1/n", "statistics": {"n": law}, "bias": "0.05"})
    >>> shown["relative"], shown["bound"] <= 0.05
    (True, True)
    """
    form = read(request)
    axis = read_axis(form, request)
    try:
        with time_limit(_SECONDS):
            est, allowed, unit = chosen(form, axis, request)
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


def chosen(
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
        if ZERO not in refusal.message:
            raise
    unit = size(form, axis)
    allowed = {"max_bias": float(f"{USUAL * unit:.1g}") if bias is None else bias}
    return form.near(**allowed), allowed, unit


def size(form: Form, axis: Axis) -> float:
    """Return the usual |f| inside the bounds, along the axis."""
    values = np.abs(truth(form, axis.columns(axis.points(inside=True))))
    values = values[np.isfinite(values)]
    return float(np.median(values)) or 1.0 if len(values) else 1.0
