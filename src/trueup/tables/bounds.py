"""Doubtful bounds: far more values beyond a bound than the noise can have taken there.

If every true value is at least L, then u = P(Z ≤ x − L) is at least as large as a uniform number:
of n rows at most a share p has u ≤ p, up to chance, for every p at once. Counts that break this
with odds of one in a million mean that the bound, or the noise, is not what was said. Rows that
repeat a draw, as cells may repeat the number of their state, count once.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy

from trueup.errors import BoundWarning, TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from trueup.noise.base import Noise
    from trueup.tables.request import Request

    Floats = NDArray[np.float64]

ODDS = 1e-6
"""How unlikely under the stated noise and bounds the counts must be."""

REPEATED = 0.02
"""The same where rows repeat numbers, however often each: at most one such table in fifty warns
by chance (Simes), and only if every true value lies at the bound."""

SAMPLE = 2**16
"""Rows looked at: a share of 1 % is then known to 4 % of itself, in a millisecond."""

_LEVELS = (0.1, 0.01, 0.001, 1e-4, 1e-5)  # 1e-5 of the sample is one row
_MOST_SCALES = 1000  # laws to set up, one for each scale: some milliseconds
_BY_CHANCE = 0.001  # of a sorted table's values one in a thousand then counts for too little
_SORTED = 0.25  # of the steps, at most, against the order; of 20 states 1e-4 are so by chance
_NEXT: tuple[tuple[int, Literal["left", "right"]], ...] = ((-1, "left"), (1, "right"))


@dataclasses.dataclass(frozen=True)
class Bound:
    """One bound of one statistic, below (``side`` −1) or above (1); ``scale`` names a column."""

    statistic: str
    column: Any
    scale: Any
    noise: Noise
    value: float
    side: int

    @property
    def where(self) -> str:
        """On which side of the bound no true value is."""
        return "below" if self.side < 0 else "above"

    def doubt(
        self, x: Floats, scale: Floats | None, rows: int, farthest: float | None
    ) -> str | None:
        """Return what to warn of, None if the noise explains the values.

        Parameters
        ----------
        x, scale
            Values in the order of the table, all or some, and their noise scales if they differ.
        rows, farthest
            Of how many rows these are some, and which value is the farthest out of all.

        Examples
        --------
        >>> from trueup import Laplace
        >>> Bound("n", "emp", None, Laplace(2), 1.0, -1).doubt(np.array([5.0, 3]), None, 2, 3.0)
        >>> print(Bound("n", "emp", None, Laplace(2), 1.0, -1).doubt(
        ...     np.array([5.0, -70]), None, 2, -70.0))
        1 of 2 values of emp lie far below the bound 1 of n; if every true value were at the
        bound, Laplace(2) would take 3.82e-16 of them there
        Hint: estimates are biased beyond a wrong bound; check it, and the noise
        """
        count = int(np.count_nonzero(~np.isnan(x)))
        if not count:
            return None
        beyond = np.flatnonzero(self.side * (x - self.value) > 0)
        try:
            drawn = np.isin(beyond, drawn_anew(x, beyond, self.noise, scale))
            u = self._tail(x[beyond] - self.value, None if scale is None else scale[beyond])
            alone = u.min(initial=1.0)
            if scale is None and farthest is not None and self.side * (farthest - self.value) > 0:
                alone = min(alone, self._tail(np.array([farthest - self.value]))[0])
            nearest = self._tail(np.array([float(self.side) * self.noise.lattice]))[0]
        except TrueupError:  # the law is not known, only its moments
            return None
        part = " looked at" if rows > SAMPLE else ""
        for p in (nearest, *_LEVELS):
            far = u <= p * (1 + 1e-9)
            if _odds(int((far & drawn).sum()), count, p) < ODDS:
                number = int(far.sum()) if p < nearest else None
                return self._words(len(u), number, count, p, part)
        p, found = _most_unlikely(u)
        if p * count < REPEATED * found and _odds(found, count, p) < ODDS:
            return self._words(len(u), found, count, p, part)
        known = rows * count // len(x)
        if known * alone >= ODDS:
            return None
        return self._words(len(u) if known == count else 1, 1, known, alone)

    def _tail(self, z: Floats, scale: Floats | None = None) -> Floats:
        """Return P(Z as far out as z), under the scale of each number if they differ."""
        if scale is None:
            if self.side < 0:
                return np.asarray(self.noise.cdf(z))
            return np.asarray(1 - self.noise.cdf(z - self.noise.lattice))
        found, levels = np.ones(len(z)), np.unique(scale[scale > 0])
        for level in levels if len(levels) <= _MOST_SCALES else ():
            own, noise = scale == level, self.noise.at_scale(float(level))
            found[own] = dataclasses.replace(self, noise=noise)._tail(z[own])
        return found

    def _words(self, beyond: int, far: int | None, count: int, p: float, part: str = "") -> str:
        """Say how many values lie beyond the bound, and how many ``far``, where P(Z there) = p.

        None: anywhere beyond it. ``part`` says that not all values were looked at.
        """
        how = "far " if far == beyond else ""
        lie = f"lie {how}{self.where} the bound {self.value:.10g} of {self.statistic}"
        if far not in (None, beyond):
            lie += f", {far:,} of them far {self.where} it"
        expected = f"{p * count:,.0f}" if p * count >= 10 else f"{p * count:.3g}"
        return (
            f"{beyond:,} of {count:,} values of {self.column}{part} {lie}; if every true value "
            f"were at the bound, {self.noise!r} would take {expected} of them there\n"
            "Hint: estimates are biased beyond a wrong bound; check it, and the noise"
        )


def _odds(found: int, count: int, p: float) -> float:
    """Return the probability that at least so many of ``count`` draws have u ≤ p.

    1 if they are no more than expected: half of the time there are at least as many.
    """
    if found <= p * count:
        return 1.0
    return float(scipy.special.betainc(found, count - found + 1, p))


def _most_unlikely(u: Floats) -> tuple[float, int]:
    """Return the p at which rows with u ≤ p are the largest multiple of those expected, and them.

    Of rows that repeat one uniform number, or several, however often each, they are as many as
    k times those expected with probability 1/k at most.
    """
    if not len(u):
        return 1.0, 0
    ordered = np.maximum(np.sort(u), np.finfo(float).tiny)
    most = int(np.argmin(ordered / np.arange(1, len(u) + 1)))  # the reciprocal may overflow
    return float(ordered[most]), most + 1


def bounds_of(requests: Iterable[Request]) -> list[Bound]:
    """Return the bounds of all statistics that are asked for, each once."""
    found = [
        Bound(name, r.columns[name], r.scales.get(name), r.estimator.noise[name], float(end), side)
        for r in requests
        for name, domain in r.estimator.domain.items()
        for end, side in zip(domain.bounds, (-1, 1), strict=True)
        if end is not None and math.isfinite(end)
    ]
    return list(dict.fromkeys(found))


def warn(text: str | None, kind: type[Warning] = BoundWarning) -> None:
    """Warn at the line of the user's that called us, of nothing if there is no text."""
    if text is None:
        return
    here, frame, calls = str(Path(__file__).parents[1]), sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, calls = frame.f_back, calls + 1
    warnings.warn(text, kind, stacklevel=calls)


# -- rows that are draws of their own --------------------------------------------------------------


def drawn_anew(
    x: Floats, rows: NDArray[np.intp], noise: Noise, scale: Floats | None = None
) -> NDArray[np.intp]:
    """Return those of the rows that are draws of their own.

    Whole numbers are also equal by chance: a run of them is one draw, unless sorting made it.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, Laplace
    >>> x = np.array([3.0, 3, 7, 3])
    >>> drawn_anew(x, np.arange(4), Laplace(1)), drawn_anew(x, np.arange(4), DiscreteLaplace(1))
    (array([0, 2]), array([0, 2, 3]))
    """
    if not noise.lattice:
        return np.asarray(rows[np.unique(x[rows], return_index=True)[1]])
    new = (rows == 0) | (x[rows] != x[rows - 1])
    steps = np.diff(x[~np.isnan(x)])
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    if min(up, down) <= _SORTED * (up + down):  # whole, or within each group
        scales = np.empty(0) if scale is None else scale[scale > 0]
        least = noise.at_scale(float(scales.min())) if len(scales) else noise
        new |= _equal_by_chance(x, x[rows], least)
    return np.asarray(rows[new])


def _equal_by_chance(x: Floats, values: Floats, noise: Noise) -> NDArray[np.bool_]:
    """Return whether draws of their own can have hit each value as often as x has it.

    Draws around any truth fall on a value, rather than on the two next to it, at most as often
    as where the truth is that value: P(0) of P(−1) + P(0) + P(1).
    """
    step = noise.lattice
    low, middle, high = np.diff(np.asarray(noise.cdf(step * np.arange(-2.0, 2))))
    found, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    all_ = np.sort(x)
    first, last = (np.searchsorted(all_, found + k * step, side) for k, side in _NEXT)
    near = last - first
    odds = scipy.special.betainc(counts, near - counts + 1, middle / (low + middle + high))
    return np.asarray((odds > _BY_CHANCE)[where])
