"""Figures 1 to 3, redrawn: the Okabe–Ito palette, line styles that read in grey, 200 dpi.

Figures are made without pyplot, so that no global state of matplotlib is touched.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.paper import curves, excess, output, printed
from trueup.paper.comparison import K
from trueup.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, dress, require

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from trueup.paper import Results

DPI = 200
SIZE = (7.2, 5.0)  # inches
_SD = "standard deviation of the mean (values in [0, 1])"


class Style(NamedTuple):
    """How a curve is drawn."""

    label: str
    color: str
    linestyle: Any
    linewidth: float


STYLES = {
    "m_ss": Style("$M_{SS}$ (smooth sensitivity)", BLACK, "-", 1.8),
    K: Style(f"$M_U$, exact optimum of degree {printed.DEGREE}", ORANGE, (0, (5, 1.5)), 1.8),
    "m_u_umvue": Style("$M_U$, best extension (UMVUE)", BLUE, "-", 1.8),
    "centred": Style("centred sum (ours)", GREEN, (0, (6, 1.5, 1.2, 1.5)), 1.6),
    "two_totals": Style("two totals (ours)", PURPLE, (0, (1.2, 1.2)), 2.2),
}
_PAPER = "$M_U$ as the paper's text implies"


def draw(results: Results) -> dict[str, bytes]:
    """Return the three figures as PNG, by file name."""
    return {f"{name}.png": _png(figure) for name, figure in figures(results).items()}


def figures(results: Results) -> dict[str, Figure]:
    """Return the three figures, by name."""
    require()
    drawn = (_figure1(results), _figure2(results), _figure3(results))
    return dict(zip(output.FIGURES, drawn, strict=True))


# -- the three figures ---------------------------------------------------------------------------


def _figure1(results: Results) -> Figure:
    figure, axes = _canvas("Standard deviation of a private mean, all sample sizes")
    _lines(axes, results, from_n=1)
    axes.set(xscale="log", yscale="log", ylim=(5e-3, 60), ylabel=_SD)
    _plain_ticks(axes, [0.01, 0.1, 1, 10])
    _count_axis(axes, 1, [1, 2, 3, 6, 13, 20, 50, 100, 150])
    _range_line(axes)
    _crossings(axes, results, y=42)
    return _legend(figure)


def _figure2(results: Results) -> Figure:
    figure, axes = _canvas(f"Standard deviation of a private mean, n from {curves.ZOOM_FROM} on")
    _lines(axes, results, from_n=curves.ZOOM_FROM)
    axes.set(yscale="log", ylim=(5e-3, 4), ylabel=_SD)
    _plain_ticks(axes, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2])
    _count_axis(axes, curves.ZOOM_FROM, range(curves.ZOOM_FROM, curves.LAST + 1, 20))
    _range_line(axes)
    _settling(axes, results, y=0.22)
    return _legend(figure)


def _figure3(results: Results) -> Figure:
    figure, axes = _canvas("How many times larger the standard deviation of $M_{SS}$ is")
    _lines(axes, results, from_n=1, ratio=True)
    axes.set(xscale="log", yscale="log", ylim=(0.15, 90))
    axes.set_ylabel("sd of $M_{SS}$ / sd of the mechanism (ratio)")
    _plain_ticks(axes, [0.2, 0.5, 1, 2, 5, 10, 20, 50])
    _count_axis(axes, 1, [1, 2, 3, 6, 13, 20, 50, 115])
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.text(1.05, 1.04, "equally good", fontsize=7.5, color=GREY, va="bottom")
    _crossings(axes, results, y=0.19)
    _peaks(axes, results)
    return _legend(figure)


# -- parts ---------------------------------------------------------------------------------------


def _canvas(title: str) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    return figure, dress(axes, title)


def _lines(axes: Axes, results: Results, from_n: int, ratio: bool = False) -> None:
    """Draw the curves, and as a band every curve that agrees with the paper's text."""
    found = results.curves
    n = found.counts
    keep = n >= from_n
    band = [excess.sd_with(found, x) for x in excess.interval(results.bounds)]
    low, high = (_values(found, sds, ratio)[keep] for sds in band)
    axes.fill_between(
        n[keep], low, high, facecolor="#bdbdbd", edgecolor=GREY, linewidth=0.8, label=_PAPER
    )
    for key, style in STYLES.items():
        if ratio and key == "m_ss":
            continue
        values = _values(found, found.sds[key], ratio)[keep]
        over = 3 if key == K else 2.5  # its dashes stay visible where it meets the UMVUE
        axes.plot(n[keep], values, zorder=over, **style._asdict())


def _values(found: curves.Curves, sds: NDArray[np.float64], ratio: bool) -> NDArray[np.float64]:
    return found.sds["m_ss"] / sds if ratio else sds


def _count_axis(axes: Axes, first: int, ticks: Any) -> None:
    count, mean = float(printed.EPSILON_COUNT), float(printed.EPSILON_MEAN)
    setting = (
        f"$\\varepsilon$ = {count:g} + {mean:g} = {count + mean:g}, "
        f"mean {printed.MEAN:g}, $n \\geq {printed.LEAST_COUNT}$ known"
    )
    axes.set_xlim(first, curves.LAST)
    axes.set_xticks(list(ticks), [str(t) for t in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(f"sample size n (records);  {setting}")


def _plain_ticks(axes: Axes, ticks: list[float]) -> None:
    """Label a logarithmic axis with plain numbers."""
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_yticks([], minor=True)


def _range_line(axes: Axes) -> None:
    """Mark sd = 1: an estimate no better than a guess from the range of the values."""
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.annotate(
        "sd = width of the range",
        (1, 1),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=7.5,
        color=GREY,
    )


def _crossings(axes: Axes, results: Results, y: float) -> None:
    """Mark from which n each M_U is ahead of M_SS."""
    found = results.curves
    marks = [
        (found.facts("m_u_umvue").ahead_from, STYLES["m_u_umvue"].color),
        (found.facts(K).ahead_from, STYLES[K].color),
        (printed.AHEAD_FROM, GREY),
    ]
    for n, color in marks:
        axes.axvline(n, color=color, linewidth=0.8, linestyle=(0, (2, 2)))
        paper = " (paper)" if color == GREY else ""
        words = f"$M_U$ ahead\nfrom n = {n}{paper}"
        axes.text(n * 1.03, y, words, color=color, fontsize=7.5, va="center")


def _settling(axes: Axes, results: Results, y: float) -> None:
    """Mark from where M_SS falls like 1/n."""
    n = curves.settled_from(results.curves)
    axes.axvline(n, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.text(n + 1.5, y, f"n = {n}: $M_{{SS}}$\nfalls like 1/n", fontsize=7.5, color=GREY)


def _peaks(axes: Axes, results: Results) -> None:
    """Mark the largest ratio of each mechanism, and where the ratio ends."""
    found = results.curves
    places = {K: (32, -52), "m_u_umvue": (0, 7), "centred": (0, -16), "two_totals": (0, 7)}
    for key, offset in places.items():
        f, color = found.facts(key), STYLES[key].color
        axes.plot([f.peak_at], [f.peak], "o", color=color, markersize=4, zorder=4)
        axes.annotate(
            f"{f.peak:.2f} at n = {f.peak_at}",
            (f.peak_at, f.peak),
            xytext=offset,
            textcoords="offset points",
            fontsize=7.5,
            ha="center",
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6} if key == K else None,
        )
    n = printed.SETTLED_FROM
    ratio = found.ratio_at(K, n)
    words = f"{ratio:.3f} at n = {n}"
    axes.text(n, ratio * 0.8, words, fontsize=7.5, color=STYLES[K].color, ha="right", va="top")


def _legend(figure: Figure) -> Figure:
    """Put the legend below the axes, where it hides nothing."""
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False, handlelength=3.2)
    return figure


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI, metadata={"Software": "trueup paper"})
    return content.getvalue()
