"""Which estimator for how many cells: errors by size, and of averages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.plots.style import CYCLE, GREY, panels
from trueup.tables.decision import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from trueup.frames.report import Report


def decision(
    report: Report, name: str | None = None, *, ax: Sequence[Axes] | None = None
) -> tuple[Axes, Axes]:
    """Draw the expected error of one cell by size, and of averages by the number of cells.

    Parameters
    ----------
    report
        What :func:`trueup.report` returns.
    name
        The estimate to draw; None takes the first.
    ax
        Two axes to draw on; None makes a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> import trueup as tu
    >>> table = pd.DataFrame({"n": [7.5, 30, -2]})
    >>> one, average = decision(tu.report(table, square=tu.unbiased("n**2", tu.Laplace(2))))
    >>> one.get_xlabel(), average.get_xlabel()
    ('true size, n', 'number of cells, m')
    """
    names = [d.name for d in report.decisions]
    if name is not None and name not in names:
        raise TrueupError(f"there is no estimate {name!r}", f"there are {', '.join(names)}")
    chosen = report.decisions[0 if name is None else names.index(name)]
    title = f"{chosen.name} = {chosen.formula}: expected error of one cell"
    lower = f"Expected error of the average of m such cells (the table has {chosen.cells:,})"
    top, bottom = ax if ax is not None else panels(title, lower)
    lines, every = chosen.lines, chosen.overall
    at = np.arange(len(lines))
    m = np.geomspace(1, max(10 * chosen.cells, 3 * (every.break_even or 1)), 200)
    for (kind, label), (color, style) in zip(KINDS.items(), CYCLE, strict=False):
        average, bias = every.average[kind], every.bias[kind]
        if average is None or bias is None:
            continue
        values = [v if (v := line.one[kind]) is not None else np.nan for line in lines]
        top.plot(at, values, color=color, linestyle=style, marker="o", markersize=4, label=label)
        error = np.sqrt(bias**2 + (average**2 - bias**2) * every.average_of / m)
        if kind == "nearly_unbiased" and chosen.near is not None and chosen.near.cells:
            label += f", cells={chosen.near.cells:g}"
        bottom.loglog(m, error, color=color, linestyle=style, label=label)
    sizes = [abs(line.value) for line in lines]
    top.plot(at, sizes, color=GREY, linewidth=0.9, label="the value itself")
    top.set_yscale("log")
    top.set_xticks(at, [line.sizes for line in lines], rotation=35, ha="right")
    top.set_xlabel(f"true size, {chosen.size}")
    bottom.set_xlabel("number of cells, m")
    bottom.axhline(abs(every.value), color=GREY, linewidth=0.9)
    if every.break_even is not None and every.break_even > 1:
        bottom.axvline(every.break_even, color=GREY, linestyle=":", linewidth=1.2)
        words, where = f"break-even: {every.break_even:,} ", bottom.get_xaxis_transform()
        left = bottom.text(every.break_even, 0.02, words, transform=where, fontsize=8.5, color=GREY)
        left.set_horizontalalignment("right")  # the curves are above
    for axes in (top, bottom):
        axes.set_ylabel("root mean squared error")
        axes.legend(edgecolor="none", framealpha=0.9, fontsize=8.5)  # a line runs behind it
    return top, bottom
