"""The estimator: as mathematics, in words, and as a curve beside the plug-in."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.explorer.refused import Refusal
from trueup.explorer.views.axis import Axis, read_axis
from trueup.explorer.views.form import Form, plain, read
from trueup.explorer.views.mathml import mathml
from trueup.formula.opaque import Opaque
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trueup.estimator import Estimator

    Floats = NDArray[np.float64]

_ROW = re.compile(r"  (?:(\w+):)?\s+(.*)")
_MOST_OPERATIONS = 400
"""A formula with more operations is not shown as mathematics."""


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows first.

    Examples
    --------
    >>> shown = answer({"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}})
    >>> shown["estimator"]
    '<math display="block"><mrow><mo stretchy="true" form="prefix">{</mo><mtable>...'
    >>> shown["curve"]["estimate"][0]
    3.0
    """
    form = read(request)
    axis = read_axis(form, request)
    estimator: Estimator | None = None
    try:
        estimator, spare = form.estimator, 0.08
        found: dict[str, Any] = {
            "estimator": _shown(estimator.formula),
            "explanation": _rows(estimator.explain()),
        }
    except Refusal as refusal:
        spare, found = 0.6, {"error": refusal.record()}
    curve = _curve(form, axis, estimator)
    ends = _range(curve, axis, spare)
    curve["plugin"] = _without_poles(curve["plugin"], ends)
    return {
        "statistics": [
            {
                "name": s.name,
                "noise": repr(s.noise),
                "sd": plain(s.spread),
                "domain": str(s.domain),
                "whole": s.noise.lattice,
            }
            for s in form.statistics
        ],
        "estimand": mathml(form.expr, block=False),
        "axis": axis.record(),
        **found,
        "curve": plain_curve(curve),
        "range": plain(ends),
    }


def _shown(formula: sympy.Expr) -> str:
    """Return the formula as mathematics, nothing if it is a table or too long."""
    short = formula.count_ops() <= _MOST_OPERATIONS and not formula.has(Opaque)
    return mathml(formula) if short else ""


def _rows(explanation: str) -> list[tuple[str, str]]:
    """Return the explanation as labelled lines."""
    rows: list[tuple[str, str]] = []
    for line in explanation.splitlines()[1:]:
        found = _ROW.fullmatch(line)
        if found:
            rows.append((found[1] or (rows[-1][0] if rows else ""), found[2]))
    return rows


def _curve(form: Form, axis: Axis, estimator: Estimator | None) -> dict[str, Floats]:
    """Return the estimate, its standard error, the plug-in, and the plug-in at clamped values."""
    points = axis.points(edges=True)
    columns = axis.columns(points)
    curve = {
        "x": points,
        "plugin": truth(form, columns),
        "clamped": truth(form, {s.name: _clamp(s, columns[s.name]) for s in form.statistics}),
    }
    if estimator is not None:
        curve["estimate"] = np.asarray(estimator(**columns), float)
        with contextlib.suppress(TrueupError):  # no finite variance: the explanation says so
            curve["stderr"] = np.asarray(estimator.stderr(**columns), float)
    return curve


def truth(form: Form, columns: Mapping[str, Floats]) -> Floats:
    """Return f at given values, NaN where it is not defined."""
    with np.errstate(all="ignore"):
        values = evaluate(form.expr, {form.symbol(name): c for name, c in columns.items()})
    return np.broadcast_to(np.asarray(values, float), next(iter(columns.values())).shape)


def _clamp(s: Any, values: Floats) -> Floats:
    """Return values moved into the bounds of a statistic."""
    return np.clip(values, float(s.domain.low), float(s.domain.high))


def _range(curve: Mapping[str, Floats], axis: Axis, spare: float) -> tuple[float, float]:
    """Return the ends of the vertical axis: the estimates, and the plug-in inside the bounds."""
    inside = axis.statistic.domain.contains(curve["x"])
    seen = np.concatenate([curve.get("estimate", np.array([])), curve["plugin"][inside]])
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return 0.0, 1.0
    low, high = (float(v) for v in np.quantile(seen, (0.002, 0.998)))
    margin = spare * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _without_poles(values: Floats, ends: tuple[float, float]) -> Floats:
    """Return values with gaps far outside the picture, so that no line runs through a pole."""
    low, high = ends
    far = (values < low - 2 * (high - low)) | (values > high + 2 * (high - low))
    return np.where(far, np.nan, values)


def plain_curve(curve: Mapping[str, Floats]) -> dict[str, Any]:
    """Return the curve with six significant digits, for a short message."""
    return {
        name: plain([float(f"{v:.6g}") for v in values.tolist()]) for name, values in curve.items()
    }
