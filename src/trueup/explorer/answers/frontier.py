"""Where no unbiased estimator exists: the reason, and what a little bias buys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import trueup
from trueup.errors import TrueupError
from trueup.explorer.answers import code
from trueup.explorer.answers.curve import plain_curve, truth
from trueup.explorer.answers.form import Form, beside, number, plain, read
from trueup.explorer.answers.grid import Axis, read_axis
from trueup.explorer.answers.patience import TimeUp, patience
from trueup.explorer.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

USUAL = 0.05
"""The bias allowed unless the page says otherwise, times the size of f."""

BIASES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
"""The bounds of the picture, times the size of f."""

_SECONDS = 12.0


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimator of least variance under a bound on its bias, and the frontier.

    Examples
    --------
    >>> law = {"family": "discrete_gaussian", "scale": "2", "low": "3", "high": "60"}
    >>> shown = answer({"formula": "1/n", "statistics": {"n": law}, "bias": "0.05"})
    >>> shown["relative"], shown["near"]["bound"] <= 0.05
    (True, True)
    """
    form = read(request)
    axis = read_axis(form, request)
    end = time.process_time() + _SECONDS
    for relative in (True, False):
        size = 1.0 if relative else _size(form, axis)
        bias = _allowed(request, size)
        shown: dict[str, Any] = {"relative": relative, "bias": bias, "axis": axis.record()}
        try:
            shown["near"] = _near(form, axis, bias, relative)
        except Refusal as refusal:
            shown["refused"] = {**refusal.record(), "field": "bias"}
            if relative and "is zero at" in refusal.message:
                continue
        break
    points = list(_points(form, relative, size, end)) if len(form.statistics) == 1 else []
    if not points and "near" not in shown:
        return {**shown, "error": {**shown["refused"], "field": "frontier"}}
    return {
        **shown,
        "points": plain([[p.max_bias, p.largest_sd, p.average_sd, p.worst] for p in points]),
        "python": _python(form, bias, relative),
    }


def _allowed(request: Mapping[str, Any], size: float) -> float:
    """Return the bias that the page allows."""
    text = request.get("bias")
    if isinstance(text, str) and text.strip():
        return float(number(text, "bias"))
    return float(f"{USUAL * size:.1g}")


def _given(form: Form) -> tuple[Any, Any, Any]:
    """Return formula, noise and domain as the library takes them."""
    noise = {s.name: s.noise for s in form.statistics}
    domain = {s.name: s.domain for s in form.statistics}
    if len(noise) == 1:
        return form.expr, *noise.values(), *domain.values()
    return form.expr, noise, domain


def _size(form: Form, axis: Axis) -> float:
    """Return the usual |f| inside the bounds, along the axis."""
    values = np.abs(truth(form, axis.columns(axis.points(inside=True))))
    values = values[np.isfinite(values)]
    return float(np.median(values)) or 1.0 if len(values) else 1.0


def _points(form: Form, relative: bool, size: float, end: float) -> Iterator[Any]:
    """Yield the points of the frontier, larger biases first, as far as the time allows."""
    for bias in BIASES:
        try:
            with patience(end - time.process_time()):
                front = trueup.frontier(*_given(form), relative=relative, biases=[bias * size])
        except (TimeUp, MemoryError, TrueupError):
            return
        (point,) = front.points
        if not np.isfinite(point.largest_sd):
            return
        yield point


def _near(form: Form, axis: Axis, bias: float, relative: bool) -> dict[str, Any]:
    """Return the estimator's curve, and its bias and sd."""
    try:
        with patience(_SECONDS / 2), beside("bias"):
            est = trueup.nearly_unbiased(*_given(form), max_bias=bias, relative=relative)
            x, q = axis.points(), axis.points(33, inside=True)
            at_truth = axis.columns(q)
            curve = {"x": x, "estimate": np.asarray(est(**axis.columns(x)), float)}
            risk = {"q": q, "bias": est.bias(**at_truth), "sd": est.sd(**at_truth)}
    except (TimeUp, MemoryError):
        raise Refusal(
            "it takes more time or memory than the page allows",
            "allow more bias, narrow the bounds, or call tu.nearly_unbiased in Python",
        ) from None
    return {
        "bound": est.bias_bound,
        "curve": plain_curve(curve),
        "risk": plain_curve({name: np.asarray(values) for name, values in risk.items()}),
    }


def _python(form: Form, bias: float, relative: bool) -> str:
    asked = [f"max_bias={bias:g}", *(["relative=True"] if relative else [])]
    return code.python(form, "nearly_unbiased", *asked)
