"""Charts: lines over one axis, a band of standard errors, vertical axes that no pole stretches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OURS, PLUGIN, NEAR, CLAMPED = "unbiased", "plug-in f(x)", "nearly unbiased", "plug-in, clamped"
_LOOKS = {
    OURS: ("#14808a", "solid"),
    NEAR: ("#8466c9", "dashdot"),
    PLUGIN: ("#d0702f", "dash"),
    CLAMPED: ("#d0702f", "dot"),
}
_BAND, _OUTSIDE = "rgba(20, 128, 138, 0.18)", "rgba(128, 128, 128, 0.10)"
_SPARE = 0.08  # of the height is left free above and below
_SEEN = (0.002, 0.998)  # quantiles of the estimates that are seen: a pole is not


class Line(NamedTuple):
    """One line: its name, which says how it looks, and its values."""

    name: str
    values: Floats


def chart(
    key: str,
    x: Floats,
    lines: Sequence[Line],
    label: str,
    *,
    band: Floats | None = None,
    domain: tuple[float, float] | None = None,
    height: int = 320,
) -> None:
    """Draw lines over x; the band lies around the first one, and outside the domain is shaded."""
    figure = go.Figure()
    if band is not None:
        first = lines[0].values
        ends = np.concatenate([first + band, (first - band)[::-1]])
        figure.add_scatter(
            x=np.concatenate([x, x[::-1]]),
            y=ends,
            fill="toself",
            fillcolor=_BAND,
            line={"width": 0},
            name="± standard error",
            hoverinfo="skip",
        )
    low, high = _limits(x, lines, domain)
    for name, values in lines:
        color, dash = _LOOKS.get(name, (None, "solid"))
        look = {"color": color, "dash": dash, "width": 2}
        far = (values < low - 2 * (high - low)) | (values > high + 2 * (high - low))
        figure.add_scatter(x=x, y=np.where(far, np.nan, values), name=name, line=look)
    for start, end in _outside(x, domain):
        figure.add_vrect(x0=start, x1=end, fillcolor=_OUTSIDE, line_width=0, layer="below")
    _show(figure, key, label, height, (low, high))


def points(
    key: str, x: Sequence[str], lines: Sequence[Line], label: str, unit: str, height: int = 320
) -> None:
    """Draw lines over named steps, evenly spaced, with a logarithmic vertical axis."""
    figure = go.Figure()
    for name, values in lines:
        color, dash = _LOOKS.get(name, (None, "solid"))
        look = {"color": color, "dash": dash, "width": 2}
        figure.add_scatter(x=list(x), y=values, name=name, line=look, mode="lines+markers")
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="log", title=unit)
    _show(figure, key, label, height, None)


def _show(
    figure: go.Figure, key: str, label: str, height: int, ends: tuple[float, float] | None
) -> None:
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        hovermode="x unified",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        xaxis_title=label,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    if ends is not None:
        figure.update_yaxes(range=ends)
    st.plotly_chart(figure, key=key, config={"displaylogo": False, "scrollZoom": False})


def _limits(
    x: Floats, lines: Sequence[Line], domain: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the ends of the vertical axis: our lines, and the plug-in inside the domain.

    Examples
    --------
    >>> pole = np.array([1e9, 3.0, 2.0, 1.0])
    >>> lines = [Line(PLUGIN, pole), Line(OURS, np.array([2.0, 2.0, 1.0, 0.0]))]
    >>> [round(float(v), 2) for v in _limits(np.arange(4.0), lines, (1.0, 3.0))]
    [-0.23, 3.23]
    """
    low, high = domain or (-np.inf, np.inf)
    inside = (x >= low) & (x <= high)
    seen = [v[inside] if name in (PLUGIN, CLAMPED) else v for name, v in lines]
    known = np.concatenate(seen)
    known = known[np.isfinite(known)]
    if not known.size:
        return 0.0, 1.0
    least, most = (float(q) for q in np.quantile(known, _SEEN))
    spare = _SPARE * (most - least) or 0.1 * abs(most) or 1.0
    return least - spare, most + spare


def _outside(x: Floats, domain: tuple[float, float] | None) -> list[tuple[float, float]]:
    if domain is None or not x.size:
        return []
    first, last = float(x[0]), float(x[-1])
    sides = ((first, min(domain[0], last)), (max(domain[1], first), last))
    return [(start, end) for start, end in sides if start < end]
