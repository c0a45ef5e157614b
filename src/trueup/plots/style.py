"""How pictures look: the Okabe–Ito palette, line styles that read in grey, quiet axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK, GREY = "#000000", "#595959"
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
SHADE = "#eeeeee"
CYCLE = (
    (BLUE, "-"),
    (ORANGE, (0, (5, 1.5))),
    (GREEN, (0, (6, 1.5, 1.2, 1.5))),
    (PURPLE, (0, (1.2, 1.2))),
    (SKY, (0, (3, 1, 1, 1, 1, 1))),
)
"""Colours that colour-blind readers tell apart, each with a line style of its own."""


def require() -> None:
    """Refuse, before anything is computed, if matplotlib is not installed."""
    optional("matplotlib", "plots", "drawing")


def dress(axes: Axes, title: str) -> Axes:
    """Give axes the common look."""
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5)
    return axes


def canvas(axes: Axes | None, title: str) -> Axes:
    """Return the given axes, or new ones in a figure of pyplot's, with the common look."""
    require()
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
    return dress(axes, title)


def panels(title: str, lower: str = "") -> tuple[Axes, Axes]:
    """Return two axes, one above the other; without a title of its own the lower shares x."""
    require()
    from matplotlib import pyplot

    _, (top, bottom) = pyplot.subplots(
        2, 1, figsize=(6.4, 6.4), sharex=not lower, layout="constrained"
    )
    return dress(top, title), dress(bottom, lower)
