"""Where no unbiased estimator exists: the best one whose bias stays below a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import trueup
from trueup.explorer.refusal import Refusal
from trueup.explorer.views import code
from trueup.explorer.views.axis import Axis, read_axis
from trueup.explorer.views.form import Form, beside, number, read
from trueup.explorer.views.overview import plain_curve, truth
from trueup.explorer.views.time_limit import TimeUp, time_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL = 0.05
"""The bias allowed unless the page says otherwise, times the size of f."""

ZERO = "is zero at"
"""What the library says of a bias relative to an f that has a zero."""

_SECONDS = 8.0
_POINTS = 33


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the curve of the estimator of least variance, and its exact bias and sd.

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
        return _near(form, axis, _allowed(request, 1.0), relative=True)
    except Refusal as refusal:
        if ZERO not in refusal.message:
            raise
    return _near(form, axis, _allowed(request, size(form, axis)), relative=False)


def given(form: Form) -> tuple[Any, Any, Any]:
    """Return formula, noise and domain as the library takes them."""
    noise = {s.name: s.noise for s in form.statistics}
    domain = {s.name: s.domain for s in form.statistics}
    if len(noise) == 1:
        return form.expr, *noise.values(), *domain.values()
    return form.expr, noise, domain


def size(form: Form, axis: Axis) -> float:
    """Return the usual |f| inside the bounds, along the axis."""
    values = np.abs(truth(form, axis.columns(axis.points(inside=True))))
    values = values[np.isfinite(values)]
    return float(np.median(values)) or 1.0 if len(values) else 1.0


def _allowed(request: Mapping[str, Any], unit: float) -> float:
    """Return the bias that the page allows."""
    text = request.get("bias")
    if isinstance(text, str) and text.strip():
        return float(number(text, "bias"))
    return float(f"{USUAL * unit:.1g}")


def _near(form: Form, axis: Axis, bias: float, *, relative: bool) -> dict[str, Any]:
    try:
        with time_limit(_SECONDS), beside("bias"):
            est = trueup.nearly_unbiased(*given(form), max_bias=bias, relative=relative)
            x, q = axis.points(), axis.points(_POINTS, inside=True)
            at_truth = axis.columns(q)
            curve = {"x": x, "estimate": np.asarray(est(**axis.columns(x)), float)}
            risk = {"q": q, "bias": est.bias(**at_truth), "sd": est.sd(**at_truth)}
    except (TimeUp, MemoryError):
        raise Refusal(
            "it takes more time or memory than the page allows",
            "allow more bias, narrow the bounds, or call tu.nearly_unbiased in Python",
            field="bias",
        ) from None
    asked = [f"max_bias={bias:g}", *(["relative=True"] if relative else [])]
    return {
        "axis": axis.record(),
        "bias": bias,
        "relative": relative,
        "bound": est.bias_bound,
        "curve": plain_curve(curve),
        "risk": plain_curve({name: np.asarray(values) for name, values in risk.items()}),
        "python": code.python(form, "nearly_unbiased", *asked),
    }
