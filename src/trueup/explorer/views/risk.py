"""Bias and standard deviation against the true value: the estimator's, and the plug-in's."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.explorer.refused import Refusal
from trueup.explorer.views.axis import Axis, read_axis
from trueup.explorer.views.form import Form, plain, read
from trueup.explorer.views.overview import truth
from trueup.plugin import plugin_bias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

POINTS = 33
"""Points of a curve, computed coarse to fine until the time is up."""

_SECONDS = 4.0


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exact bias and sd along the axis.

    Examples
    --------
    >>> asked = {"formula": "n**2", "statistics": {"n": {"scale": "1"}}, "from": "0", "to": "4"}
    >>> risk = answer(asked)
    >>> risk["plugin"]["bias"][0], risk["estimate"]["bias"][0]
    (2.0, 0.0)
    """
    form = read(request)
    axis = read_axis(form, request)
    bias_at, sd_at = _estimator(form)
    plugin = _plugin(form)
    rows, finished = _along(axis, lambda q: [_number(bias_at, q), _number(sd_at, q), *plugin(q)])
    points, columns = sorted(rows), list(zip(*(rows[p] for p in sorted(rows)), strict=True))
    bias, sd, truth, plugin_bias_, plugin_sd = columns or [()] * 5
    return {
        "axis": axis.record(),
        "q": points,
        "truth": plain(list(truth)),
        "estimate": _errors(bias, sd),
        "plugin": _errors(plugin_bias_, plugin_sd),
        "clamped": any(s.domain.bounds != (None, None) for s in form.statistics),
        "finished": finished,
    }


def _errors(bias: tuple[float, ...], sd: tuple[float, ...]) -> dict[str, Any]:
    """Return bias, sd, and both together: the root of the mean squared error."""
    found = {"bias": list(bias), "sd": list(sd), "rmse": np.hypot(bias, sd)}
    return {name: plain(values) for name, values in found.items()}


def _along(axis: Axis, values: Callable[[dict[str, float]], list[float]]) -> Any:
    """Return the values at points of the axis, coarse to fine, as many as the time allows."""
    points = axis.points(POINTS, inside=True)
    end = time.process_time() + _SECONDS
    rows: dict[float, list[float]] = {}
    for index in coarse_to_fine(len(points)):
        if time.process_time() > end:
            return rows, False
        q = float(points[index])
        rows[q] = values({axis.statistic.name: q, **axis.held})
    return rows, True


def coarse_to_fine(count: int) -> Iterator[int]:
    """Yield 0..count−1: the ends, the middle, the quarters, and so on.

    Examples
    --------
    >>> list(coarse_to_fine(5))
    [0, 4, 2, 1, 3]
    """
    done: set[int] = set()
    parts = 1
    while len(done) < count:
        for i in range(parts + 1):
            index = round(i * (count - 1) / parts)
            if index not in done:
                done.add(index)
                yield index
        parts *= 2


def _estimator(form: Form) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return bias and sd of the estimator as functions of the truth, NaN if there is none."""
    try:
        return form.estimator.bias, form.estimator.sd
    except Refusal:
        return _none, _none


def _none(**_: float) -> float:
    return math.nan


def _plugin(form: Form) -> Callable[[dict[str, float]], tuple[float, float, float]]:
    """Return f(q), and bias and sd of f at the published value, moved into the bounds."""
    noise = {s.name: s.noise for s in form.statistics}
    f = form.expr.xreplace({form.symbol(s.name): _clamped(form, s) for s in form.statistics})
    first, second = (_prepared(expr, noise) for expr in (f, f**2))

    def at(q: dict[str, float]) -> tuple[float, float, float]:
        f_q = truth(form, {name: np.array([v]) for name, v in q.items()})[0]
        bias = _number(first, q)
        with np.errstate(all="ignore"):
            square = _number(second, q) + f_q**2
            variance = square - (f_q + bias) ** 2
        spread = math.sqrt(variance) if variance > 1e-12 * square else 0.0
        return float(f_q), bias, spread if math.isfinite(variance) else math.nan

    return at


def _clamped(form: Form, s: Any) -> sympy.Expr:
    symbol = form.symbol(s.name)
    low, high = (None if b is None else symbolic(b) for b in s.domain.bounds)
    raised = symbol if low is None else sympy.Max(symbol, low)
    return raised if high is None else sympy.Min(raised, high)


def _prepared(f: sympy.Expr, noise: Any) -> Callable[..., float]:
    try:
        return plugin_bias(f, noise)
    except TrueupError:
        return _none


def _number(function: Callable[..., Any], q: Mapping[str, float]) -> float:
    """Return a function of the truth, NaN where it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            return float(function(**q))
    except (TrueupError, OverflowError):
        return math.nan
