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
        is_total = isinstance(design.measures[estimate.measure], PerRecord)
        achieved = _points(estimate.name if is_total else design.count, estimate.name, columns)
        if achieved:
            axes.plot(*zip(*achieved, strict=True), ".", color=BLUE, markersize=4, label="achieved")
        known = ((n, error(design, estimate.measure, n)) for n in (_TOTALS if is_total else _SIZES))
        line = [(n, e) for n, e in known if math.isfinite(e)]
        if line:
            axes.plot(*zip(*line, strict=True), color=ORANGE, label="to expect")
        axes.set(xscale="log", yscale="log", ylabel="standard error")
        axes.set_xlabel(f"{'total' if is_total else 'records'}, as estimated")
        axes.legend(fontsize=8, frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]


def _points(
    size: str | None, name: str, columns: Mapping[str, Sequence[Any]]
) -> list[tuple[float, float]]:
    """Return the sizes of groups, at least 1, and their errors; of many groups, some.

    Errors depend on the count, or on the total of a per-record sum: that is the column ``size``.
    """
    if size is None:
        return []
    known = zip(columns[size], columns[f"{name}_stderr"], strict=True)
    pairs = [(max(1.0, n), e) for n, e in known if e]
    return pairs[:: max(1, len(pairs) // _MOST_POINTS)]
