"""The report as a page: the words, and pictures of how sure the numbers are, all in one file.

Nothing on it is fetched from anywhere, and nothing depends on the data but through the published
numbers.
"""

from __future__ import annotations

import html
import io
import math
from typing import TYPE_CHECKING

from trueup.microdata.expected import error
from trueup.microdata.measures import PerRecord
from trueup.plots.style import BLUE, ORANGE, dress, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trueup.microdata.design import Design
    from trueup.microdata.noisy_totals import Estimate

_MOST_POINTS = 2_000  # of one picture: more are no longer told apart
_SIZES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)  # of the line: with fewer it bends
_TOTALS = tuple(10**power for power in range(13))
_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: #f6f6f6; padding: 1rem; white-space: pre-wrap; font: 13px/1.4 monospace; }
figure { display: inline-block; margin: 0 1rem 1rem 0; max-width: 100%; } svg { max-width: 100%; }
"""


def page(design: Design, columns: Mapping[str, Sequence[Any]], words: str) -> str:
    """Return the report as HTML: one picture for each estimate."""
    require()
    title = html.escape(words.partition("\n")[0].rstrip("."))
    figures = [f"<figure>{_picture(design, e, columns)}</figure>" for e in design.estimates]
    note = (
        "Each point is a published group; the line is the standard error to expect at worst. "
        "Groups without a standard error are not shown; those below 1 are drawn at 1."
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>\n{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
        f"<h2>How sure the numbers are</h2>\n<p>{note}</p>\n" + "\n".join(figures) + "\n"
        f"<h2>Report</h2>\n<pre>{html.escape(words)}</pre>\n</body></html>\n"
    )


def _picture(design: Design, estimate: Estimate, columns: Mapping[str, Sequence[Any]]) -> str:
    """Return standard errors against the number of records, as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "trueup", "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axes = dress(figure.subplots(), estimate.name)
        sizes, errors = _points(design, estimate, columns)
        if sizes:
            axes.plot(sizes, errors, ".", color=BLUE, markersize=4, label="achieved")
        is_total = isinstance(design.measures[estimate.measure], PerRecord)
        line = _expected(design, estimate.measure, _TOTALS if is_total else _SIZES)
        if line:
            axes.plot(*zip(*line, strict=True), color=ORANGE, label="to expect")
        axes.set(xscale="log", yscale="log", ylabel="standard error")
        axes.set_xlabel(f"{_against(design, estimate)[1]}, as estimated")
        axes.legend(fontsize=8, frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]


def _expected(design: Design, measure: str, sizes: Sequence[int]) -> list[tuple[int, float]]:
    known = ((n, error(design, measure, n)) for n in sizes)
    return [(n, e) for n, e in known if math.isfinite(e)]


def _against(design: Design, estimate: Estimate) -> tuple[str | None, str]:
    """Return the column that errors depend on: the count, or the total of a per-record sum."""
    is_total = isinstance(design.measures[estimate.measure], PerRecord)
    return (estimate.name, "total") if is_total else (design.count, "records")


def _points(
    design: Design, estimate: Estimate, columns: Mapping[str, Sequence[Any]]
) -> tuple[list[float], list[float]]:
    """Return the sizes of groups, at least 1, and their errors; of many groups, some."""
    size, _ = _against(design, estimate)
    if size is None:
        return [], []
    pairs = [
        (max(1.0, n), e)
        for n, e in zip(columns[size], columns[f"{estimate.name}_stderr"], strict=True)
        if e
    ]
    chosen = pairs[:: max(1, len(pairs) // _MOST_POINTS)]
    return [n for n, _ in chosen], [e for _, e in chosen]
