"""The estimator against the plug-in, over published values."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import InfiniteVariance
from trueup.formula.text import text
from trueup.kernels.blocks import evaluate
from trueup.plots.axis import Slice
from trueup.plots.style import BLUE, GREY, ORANGE, SHADE, canvas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from trueup.estimator import Estimator


def estimate(
    est: Estimator,
    x: ArrayLike | None = None,
    *,
    over: str | None = None,
    at: Mapping[str, float] | None = None,
    unit: str = "",
    value_unit: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw an estimator with its standard error, beside the plug-in f(x).

    Parameters
    ----------
    est
        The estimator.
    x
        Published values to draw; None takes the domain and what the noise adds to it.
    over, at
        With several statistics: the one to vary, and the values of the others.
    unit, value_unit
        Units of the statistic and of f, for the labels.
    ax
        Axes to draw on; None makes a new figure.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> ax = estimate(unbiased("1/n", Laplace(2), (1, None)), unit="persons")
    >>> ax.get_xlabel()
    'published n (persons)'
    """
    cut = Slice(est, over, at)
    axes = canvas(ax, f"Unbiased estimator of {text(est.estimand)}")
    points = cut.published(x)
    values = est(**cut.arguments(points))
    few = cut.noise.lattice and len(points) <= 60
    marks: dict[str, Any] = {"marker": "o", "markersize": 3} if few else {}
    axes.plot(points, values, color=BLUE, linewidth=1.8, label="unbiased estimate", **marks)
    with suppress(InfiniteVariance):
        errors = est.stderr(**cut.arguments(points))
        band = values - errors, values + errors
        axes.fill_between(points, *band, color=BLUE, alpha=0.15, linewidth=0, label="± stderr")
    plug_in = plugged(est, cut.arguments(points))
    inside = (points >= float(cut.domain.low)) & (points <= float(cut.domain.high))
    low, high = _limits(axes, np.concatenate([values, plug_in[inside]]))
    plug_in[(plug_in < low) | (plug_in > high)] = np.nan  # no line across a pole
    axes.plot(points, plug_in, color=ORANGE, linestyle=(0, (5, 1.5)), label="plug-in f(x)")
    _shade(axes, cut)
    axes.set_xlabel(f"published {cut.name}" + (f" ({unit})" if unit else ""))
    axes.set_ylabel(text(est.estimand) + (f" ({value_unit})" if value_unit else ""))
    axes.legend(frameon=False, fontsize=8.5)
    return axes


def plugged(est: Estimator, given: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return f(x), what one computes without thinking; NaN where it is not finite."""
    symbols = {s.name: s for s in est.estimand.free_symbols}
    columns = {symbols[n]: np.asarray(v, float) for n, v in given.items() if n in symbols}
    values = evaluate(est.estimand, columns)
    return np.where(np.isfinite(values), values, np.nan)


def _limits(axes: Axes, values: NDArray[np.float64]) -> tuple[float, float]:
    """Frame the estimates: a pole of the plug-in must not squeeze them to a line."""
    known = values[np.isfinite(values)]
    if not known.size:
        return axes.get_ylim()
    low, high = float(known.min()), float(known.max())
    margin = 0.12 * (high - low) or 1.0
    return axes.set_ylim(low - margin, high + margin)


def _shade(axes: Axes, cut: Slice) -> None:
    """Shade where the true value cannot lie."""
    left, right = axes.get_xlim()
    low, high = float(cut.domain.low), float(cut.domain.high)
    label = "outside the domain"
    for start, end in ((left, min(low, right)), (max(high, left), right)):
        if start < end:
            axes.axvspan(start, end, color=SHADE, zorder=0, linewidth=0, label=label)
            axes.axvline(end if start == left else start, color=GREY, linewidth=0.6)
            label = "_nolegend_"
    axes.set_xlim(left, right)
