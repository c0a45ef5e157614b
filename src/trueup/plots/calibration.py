"""A check by simulation: whether the average hits the truth and the intervals cover it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.noise.base import read_generator
from trueup.plots.axis import Slice
from trueup.plots.estimate import plugged
from trueup.plots.style import BLUE, GREY, ORANGE, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from trueup.estimator import Estimator

_SHOWN = 12  # true values drawn when none are given


def calibration(
    est: Estimator,
    q: ArrayLike | None = None,
    *,
    draws: int = 4000,
    level: float = 0.95,
    rng: Any = 0,
    over: str | None = None,
    at: Mapping[str, float] | None = None,
    unit: str = "",
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draw simulated bias and the coverage of intervals, each with its own uncertainty.

    Above, the average error of the estimator and of the plug-in over ``draws`` simulated releases,
    ± 2 standard errors: an unbiased estimator's bars cross zero. Below, how often the interval of
    the given level contains the truth.

    Parameters
    ----------
    est
        The estimator.
    q
        True values; None takes a dozen in the domain.
    draws
        Simulated releases per true value.
    level
        Level of the intervals.
    rng
        A NumPy generator or a seed: this is a simulation.
    over, at
        With several statistics: the one to vary, and the true values of the others.
    unit
        Unit of the statistic, for the label.
    ax
        Two axes to draw on; None makes a new figure.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, unbiased
    >>> est = unbiased("1/n", DiscreteLaplace(1), (1, None))
    >>> error, cover = calibration(est, q=[2, 5, 9], draws=500)
    >>> cover.get_ylabel()
    'coverage of 95% intervals'
    """
    if draws < 2:
        raise TrueupError(f"draws must be at least 2, got {draws}", "e.g. 4000")
    cut, generator = Slice(est, over, at), read_generator(rng)
    truths = cut.truth(q, _SHOWN)
    rows = [_simulate(est, cut, value, draws, level, generator) for value in truths]
    ours, plug_in, covered = (np.array(column) for column in zip(*rows, strict=True))
    title = f"Simulated releases, {draws} for each true value: {text(est.estimand)}"
    top, bottom = ax if ax is not None else panels(title)
    top.axhline(0, color=GREY, linewidth=0.8)
    _bars(top, truths, ours, BLUE, "o", "unbiased estimate ± 2 s.e.")
    _bars(top, truths, plug_in, ORANGE, "s", "plug-in f(x) ± 2 s.e.")
    _frame(top, ours)
    error = 2 * np.sqrt(np.maximum(covered * (1 - covered), 1 / draws) / draws)
    bottom.errorbar(truths, covered, error, fmt="o", color=BLUE, markersize=4, capsize=2)
    bottom.axhline(level, color=GREY, linewidth=0.8, label=f"{level:.0%}, {est.interval_method}")
    top.set_ylabel("average error")
    bottom.set_ylabel(f"coverage of {level:.0%} intervals")
    bottom.set_xlabel(f"true {cut.name}" + (f" ({unit})" if unit else ""))
    for axes in (top, bottom):
        axes.legend(frameon=False, fontsize=8.5)
    return top, bottom


def _simulate(
    est: Estimator, cut: Slice, q: float, draws: int, level: float, rng: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return (average error, its standard error) of both estimators, and the coverage."""
    true = {cut.name: float(q), **{k: float(v) for k, v in cut.fixed.items()}}
    published = {n: v + est.noise[n].sample(draws, rng) for n, v in true.items()}
    target = float(plugged(est, {n: np.full(1, v) for n, v in true.items()})[0])
    low, high = est.interval(**published, level=level)
    naive = plugged(est, published)
    inside = (low <= target) & (target <= high)
    return _mean(est(**published) - target), _mean(naive - target), float(inside.mean())


def _mean(errors: NDArray[np.float64]) -> tuple[float, float]:
    known = errors[np.isfinite(errors)]
    if known.size < 2:
        return np.nan, np.nan
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(known.size))


def _bars(
    axes: Axes, q: NDArray[Any], rows: NDArray[Any], color: str, mark: str, label: str
) -> None:
    axes.errorbar(
        q, rows[:, 0], 2 * rows[:, 1], fmt=mark, color=color, markersize=4, capsize=2, label=label
    )


def _frame(axes: Axes, ours: NDArray[Any]) -> None:
    """Frame the unbiased estimates: one draw of the plug-in near its pole must not hide them."""
    reach = float(np.nanmax(np.abs(ours[:, 0]) + 4 * ours[:, 1]))
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -4 * reach), min(high, 4 * reach))
