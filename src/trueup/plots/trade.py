"""What a small bias costs: standard deviation against the bound on the bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.formula.text import text
from trueup.plots.style import CYCLE, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from trueup.near.frontier import Frontier


def frontier(front: Frontier, *, ax: Axes | None = None) -> Axes:
    """Draw the largest and the prior-averaged standard deviation against the bias bound.

    Parameters
    ----------
    front
        What :func:`trueup.frontier` returns.
    ax
        Axes to draw on; None makes a new figure.

    Examples
    --------
    >>> import trueup as tu
    >>> front = tu.frontier("1/n", tu.DiscreteGaussian(3), (12, 400), biases=[0.05, 0.01])
    >>> frontier(front).get_xlabel()
    'bias bound, relative to |f|'
    """
    kind = ", relative to |f|" if front.question.relative else ""
    axes = canvas(ax, f"What a small bias costs: {text(front.f)}")
    drawn = ((front.largest_sd, "largest over the domain"), (front.average_sd, "average"))
    for (values, label), (color, line) in zip(drawn, CYCLE, strict=False):
        axes.loglog(front.biases, values, color=color, linestyle=line, marker="o", label=label)
    axes.set_xlabel(f"bias bound{kind}")
    axes.set_ylabel(f"standard deviation{kind}")
    axes.legend(frameon=False, fontsize=8.5)
    return axes
