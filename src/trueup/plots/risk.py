"""Bias and standard deviation against the true value, exactly, for several estimators."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.formula.text import text
from trueup.inverse.jets import derivative
from trueup.kernels.blocks import evaluate
from trueup.plots.axis import Slice
from trueup.plots.style import CYCLE, GREY, panels
from trueup.plugin import plugin_bias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from trueup.estimator import Estimator

_POINTS = 60  # exact bias and sd are quadratures: fewer points than in other pictures


def risk(
    *estimators: Estimator,
    q: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    over: str | None = None,
    at: Mapping[str, float] | None = None,
    unit: str = "",
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draw exact bias and standard deviation against the true value.

    The plug-in's bias is drawn where E f(x) exists; its standard deviation is the first-order one,
    |f′(q)|·sd(noise), that the delta method reports.

    Parameters
    ----------
    estimators
        One or several estimators of the same statistics.
    q
        True values to draw; None takes the domain.
    labels
        Names for the legend.
    over, at
        With several statistics: the one to vary, and the true values of the others.
    unit
        Unit of the statistic, for the label.
    ax
        Two axes to draw on; None makes a new figure.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> best = unbiased("1/n", Laplace(2), (1, None))
    >>> paper = unbiased("1/n", Laplace(2), (1, None), extension=3)
    >>> bias, sd = risk(best, paper, q=[1, 2, 4, 8], labels=["optimal", "degree 3"])
    >>> bias.get_ylabel(), sd.get_ylabel()
    ('bias', 'standard deviation')
    """
    cut = Slice(estimators[0], over, at)
    points = cut.truth(q, _POINTS)
    title = f"Estimators of {text(estimators[0].estimand)}"
    top, bottom = ax if ax is not None else panels(title)
    names = labels or [_label(est, len(estimators)) for est in estimators]
    for est, name, (color, line) in zip(estimators, names, cycle(CYCLE), strict=False):
        own = Slice(est, cut.name, cut.fixed).arguments(points)
        style: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 1.8, "label": name}
        top.plot(points, est.bias(**own), **style)
        bottom.plot(points, est.sd(**own), **style)
    _plug_in(estimators[0], cut, points, top, bottom)
    top.axhline(0, color=GREY, linewidth=0.8)
    top.set_ylabel("bias")
    bottom.set_ylabel("standard deviation")
    bottom.set_xlabel(f"true {cut.name}" + (f" ({unit})" if unit else ""))
    for axes in (top, bottom):
        axes.legend(frameon=False, fontsize=8.5)
    return top, bottom


def _label(est: Estimator, count: int) -> str:
    return "unbiased estimate" if count == 1 else f"extension: {est.extension}"


def _plug_in(
    est: Estimator, cut: Slice, points: NDArray[np.float64], top: Axes, bottom: Axes
) -> None:
    """Draw what the plug-in does, or say that its expectation does not exist."""
    given = cut.arguments(points)
    bias = plugin_bias(est.estimand, est.noise)(**given)
    style: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 2)), "linewidth": 1.4}
    if np.isfinite(bias).any():
        top.plot(points, bias, label="plug-in f(x)", **style)
    else:
        top.plot([], [], label="plug-in: E f(x) does not exist", **style)
    bottom.plot(points, _first_order(est, given), label="delta method", **style)


def _first_order(est: Estimator, given: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the root of Σ (∂f/∂qᵢ)²·Var Zᵢ."""
    symbols = {s.name: s for s in est.estimand.free_symbols}
    columns = {symbols[n]: np.asarray(v, float) for n, v in given.items() if n in symbols}
    total = np.zeros(len(next(iter(columns.values()))))
    for name, symbol in symbols.items():
        slope = evaluate(derivative(est.estimand, symbol, 1), columns)
        total = total + slope**2 * float(est.noise[name].variance)
    root: NDArray[np.float64] = np.sqrt(total)
    return root
