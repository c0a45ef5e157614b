"""What a per-record mechanism costs each record, and what its total is worth."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.plots.style import CYCLE, panels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from trueup.mechanisms import PerRecordSum


def policy(
    *mechanisms: PerRecordSum,
    records: ArrayLike | None = None,
    totals: ArrayLike | None = None,
    unit: str = "",
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draw the privacy loss of a record by its value, and the sd of the total by the total.

    Parameters
    ----------
    mechanisms
        One or several per-record sums.
    records, totals
        Values to draw; None takes 1 to 10⁶ and 1 to 10⁸.
    unit
        Unit of the records, for the labels.
    ax
        Two axes to draw on; None makes a new figure.

    Examples
    --------
    >>> from trueup.mechanisms import PerRecordSum
    >>> top, bottom = policy(PerRecordSum("root:2", scale=2), PerRecordSum("log", 0.2, offset=100))
    >>> top.get_ylabel()
    'privacy loss ε'
    """
    top, bottom = ax if ax is not None else panels("Privacy loss of one record", "Total released")
    sizes = np.geomspace(1, 1e6, 200) if records is None else np.asarray(records, float)
    sums = np.geomspace(1, 1e8, 40) if totals is None else np.asarray(totals, float)
    for mechanism, (color, line) in zip(mechanisms, cycle(CYCLE), strict=False):
        style: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 1.8}
        name = f"{mechanism.transform.name}, {mechanism.noise!r}, offset {mechanism.offset}"
        top.plot(sizes, mechanism.policy(sizes), label=name, **style)
        relative = [mechanism.sd(float(t)) / t for t in sums]
        bottom.plot(sums, relative, label=name, **style)
    rho = not any(m.noise.by_curvature for m in mechanisms)
    suffix = f" ({unit})" if unit else ""
    top.set(xscale="log", yscale="log", xlabel=f"record{suffix}")
    top.set_ylabel("privacy loss ρ (zCDP)" if rho else "privacy loss ε")
    bottom.set(xscale="log", yscale="log", xlabel=f"true total{suffix}")
    bottom.set_ylabel("standard deviation / total")
    top.legend(frameon=False, fontsize=8.5)
    return top, bottom
