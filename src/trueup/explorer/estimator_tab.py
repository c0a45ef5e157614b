"""The estimator: formula, noise and bounds in; estimator, curves, bias, sd and code out."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
import sympy

import trueup
from trueup.errors import FormulaError, NoUnbiasedEstimator, TrueupError
from trueup.exact import symbolic
from trueup.explorer import code
from trueup.explorer.charts import CLAMPED, NEAR, OURS, PLUGIN, Line, chart, points
from trueup.explorer.fields import (
    FORMULA,
    Known,
    ask_known,
    heading,
    number_of,
    refusals_shown,
    show_refusal,
)
from trueup.formula.grammar import parse
from trueup.formula.opaque import Opaque
from trueup.plots.axis import Slice
from trueup.plots.estimate import plugged
from trueup.plugin import plugin_bias
from trueup.sql.dialects import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trueup.estimator import Estimator

    Floats = NDArray[np.float64]

EXAMPLES = ("1/n", "s/n", "log(n)", "(s - n)/n", "n**2", "max(n, 1)", "abs(q)")
BIASES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
"""The bounds of the frontier, relative to f."""

_TRUTHS = 33  # true values at which exact bias and sd are computed
_SHOWN = 400  # operations of a formula that is shown as mathematics
_ROUNDING = 1e-12  # of the size: what is smaller is rounding
_HELD = 20.0  # what the other statistics are to begin with


def show() -> None:
    """Show the tab."""
    side, main = st.columns([1, 2.3], gap="medium")
    with side, refusals_shown():
        asked = _ask()
        if asked is not None:
            with main:
                _answer(*asked)


def _ask() -> tuple[str, Known, str, dict[str, float]] | None:
    """Return formula, what is known, and along which statistic to draw with the others held."""
    with st.container(border=True, key="card-formula"):
        heading("What do you want to know?")
        formula = st.text_input(
            "Formula of published numbers",
            "1/n",
            max_chars=FORMULA,
            key="f",
            bind="query-params",
            help="+ − * / **, abs min max exp log sqrt sin cos tanh, where(n > 5, 1, 0)",
        )
        st.pills("Examples", EXAMPLES, key="example", on_change=_take_example)
        names = sorted(s.name for s in parse(formula or "").free_symbols)
        if not names:
            raise FormulaError(
                f"the formula {(formula or '').strip()!r} names no published number",
                "use a name for it, e.g. 1/n",
            )
    with st.container(border=True, key="card-known"):
        known = ask_known(names, "")
    if len(names) == 1:
        return str(formula), known, names[0], {}
    with st.container(border=True, key="card-axis"):
        usual = names.index("n") if "n" in names else 0
        over = str(st.selectbox("Draw along", names, usual, key="over", bind="query-params"))
        held = {
            name: float(st.number_input(f"**{name}** is held at", value=_HELD, key=f"at-{name}"))
            for name in names
            if name != over
        }
    return str(formula), known, over, held


def _take_example() -> None:
    if st.session_state.example:
        st.session_state.f = st.session_state.example
        st.session_state.example = None


def _answer(formula: str, known: Known, over: str, held: dict[str, float]) -> None:
    est: Estimator | None = None
    try:
        est = known.estimator(formula)
    except NoUnbiasedEstimator as error:
        show_refusal(error)
    if est is not None:
        _show_estimator(est)
    near, words, allowed = _nearly(formula, known)
    shown = est or near
    if shown is None:
        return
    cut = Slice(shown, over, held)
    named = {name: e for name, e in ((OURS, est), (NEAR, near)) if e is not None}
    _show_curve(cut, named)
    _show_risk(cut, named, words)
    _show_frontier(known.of(formula))
    _show_code(formula, known, near or shown, allowed)


def _show_estimator(est: Estimator) -> None:
    with st.container(border=True, key="card-estimator"):
        heading("Unbiased estimator")
        if est.formula.count_ops() <= _SHOWN and not est.formula.has(Opaque):
            st.latex(est._repr_latex_().strip("$").replace("\\displaystyle", ""))
        st.code(est.explain(), language=None, wrap_lines=True)


def _nearly(formula: str, known: Known) -> tuple[Estimator | None, str, dict[str, Any]]:
    """Return the nearly unbiased estimator that is asked for, what to say of it, and how."""
    with st.container(border=True, key="card-near"):
        heading("With a little bias")
        how, what = st.columns(2)
        kinds = ("none", "bias allowed", "cells averaged")
        kind = how.segmented_control(
            "Compare with", kinds, default="none", required=True, key="near", bind="query-params"
        )
        if kind == "none":
            return None, "", {}
        usual = "0.05" if kind == "bias allowed" else "100"
        label = "largest bias, relative to f" if kind == "bias allowed" else "cells in an average"
        with refusals_shown():
            amount = number_of(what.text_input(label, usual, key=f"near-{kind}") or usual, label)
            if kind == "bias allowed":
                allowed: dict[str, Any] = {"max_bias": amount, "relative": True}
            else:
                allowed = {"cells": amount}
            near: Any = known.nearly(formula, **allowed)
            size, unit = (100, " % of f") if near.relative else (1, "")
            words = f"Certified: a bias of at most {size * near.bias_bound:.3g}{unit} everywhere."
            return near, words, allowed
    return None, "", {}


def _show_curve(cut: Slice, named: Mapping[str, Estimator]) -> None:
    with st.container(border=True, key="card-curve"):
        heading("Estimate at a published value")
        x = cut.published(None)
        given = cut.arguments(x)
        lines = [Line(name, np.asarray(e(**given), float)) for name, e in named.items()]
        band = None
        with suppress(TrueupError):  # the explanation says that the variance is infinite
            band = np.asarray(next(iter(named.values())).stderr(**given), float)
        low, high = float(cut.domain.low), float(cut.domain.high)
        lines.append(Line(PLUGIN, plugged(cut.est, given)))
        if (low, high) != (-np.inf, np.inf):
            inside = {**given, cut.name: np.clip(x, low, high)}
            lines.append(Line(CLAMPED, plugged(cut.est, inside)))
        chart("curve", x, lines, f"published {cut.name}", band=band, domain=(low, high))


def _show_risk(cut: Slice, named: Mapping[str, Estimator], words: str) -> None:
    q = cut.truth(_TRUTHS)
    given = cut.arguments(q)
    sd = {name: np.asarray(e.sd(**given), float) for name, e in named.items()}
    bias = {
        name: _rounded(np.asarray(e.bias(**given), float), sd[name]) for name, e in named.items()
    }
    plugin = PLUGIN if _unbounded(cut.est) else CLAMPED
    bias[plugin], sd[plugin] = _plugin_risk(cut.est, given)
    error = {name: np.hypot(bias[name], sd[name]) for name in bias}
    with st.container(border=True, key="card-error"):
        heading("Error at a true value")
        st.caption("Root mean squared error: bias and noise together. " + words)
        _draw("error", q, error, cut.name)
    left, right = st.columns(2)
    with left.container(border=True, key="card-bias"):
        heading("Bias")
        _draw("bias", q, bias, cut.name)
    with right.container(border=True, key="card-sd"):
        heading("Standard deviation")
        _draw("sd", q, sd, cut.name)
    with st.expander("The same as numbers"):
        table = {cut.name: q} | {f"bias, {name}": values for name, values in bias.items()}
        st.dataframe(table | {f"sd, {name}": v for name, v in sd.items()}, hide_index=True)


def _draw(key: str, q: Floats, values: Mapping[str, Floats], name: str) -> None:
    lines = [Line(*item) for item in values.items() if np.isfinite(item[1]).any()]
    chart(key, q, lines, f"true {name}", height=320 if key == "error" else 280)


def _rounded(bias: Floats, sd: Floats) -> Floats:
    """Return a bias without what rounding leaves of 0."""
    return np.where(np.abs(bias) <= _ROUNDING * sd, 0.0, bias)


def _unbounded(est: Estimator) -> bool:
    return all(est.domain[name].bounds == (None, None) for name in est.statistics)


def _plugin_risk(est: Estimator, given: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return bias and sd of f at the published value moved into the bounds, NaN if there is none.

    Var f(x) is the mean of f² less the square of the mean of f, each f and f² plus its bias.
    """
    f = est.estimand.xreplace({s: _clamped(est, s) for s in est.estimand.free_symbols})
    truth, square = plugged(est, given), plugged(est, given) ** 2
    try:
        with np.errstate(all="ignore"):
            bias = np.asarray(plugin_bias(f, est.noise)(**given), float)
            second = square + np.asarray(plugin_bias(f**2, est.noise)(**given), float)
    except TrueupError:
        nothing = np.full_like(truth, np.nan)
        return nothing, nothing
    variance = second - (truth + bias) ** 2
    return bias, np.sqrt(np.where(variance > _ROUNDING * second, variance, 0.0))


def _clamped(est: Estimator, symbol: sympy.Symbol) -> sympy.Expr:
    low, high = est.domain[symbol.name].bounds
    raised = symbol if low is None else sympy.Max(symbol, symbolic(low))
    return raised if high is None else sympy.Min(raised, symbolic(high))


def _show_frontier(asked: tuple[str, Any, str]) -> None:
    with st.container(border=True, key="card-frontier"):
        heading("What a little bias buys")
        st.caption("The least standard deviation with the bias below a bound, relative to f.")
        if not st.toggle("Compute it (some seconds)", key="frontier", bind="query-params"):
            return
        with refusals_shown():
            front = _frontier(*asked)
            steps = [f"{100 * b:g} %" for b in front.biases]
            lines = [Line("largest sd", front.largest_sd), Line("average sd", front.average_sd)]
            points("frontier-chart", steps, lines, "bias allowed", "sd, relative to f")


@st.cache_resource(max_entries=50, show_spinner="Computing…")
def _frontier(formula: str, noise: tuple[tuple[str, str], ...], domain: str) -> Any:
    known = Known(dict(noise), domain, "")
    return trueup.frontier(formula, known.laws, domain or None, relative=True, biases=BIASES)


def _show_code(formula: str, known: Known, est: Estimator, allowed: Mapping[str, Any]) -> None:
    with st.container(border=True, key="card-code"):
        heading("Take it along")
        which = st.segmented_control(
            "Language", ("Python", "SQL", "Shell"), default="Python", required=True, key="code",
            label_visibility="collapsed",
        )  # fmt: skip
        _, noise, domain = known.of(formula)
        if which == "Python":
            st.code(code.python(formula, est, domain, known.empty, **allowed))
        elif which == "Shell":
            command = code.shell(formula, dict(noise), domain, known.empty, **allowed)
            st.code(command, language="bash")
        else:
            one, two = st.columns(2)
            dialect = one.selectbox("Engine", [*DIALECTS], key="dialect")
            output = two.selectbox("Column", ("value", "stderr", "variance"), key="output")
            with refusals_shown():
                st.code(est.sql(dialect, output), language="sql", wrap_lines=True)
