"""E[Yʲ e^{tY}] of a law that scipy knows, at loc 0 and scale 1, Y measured from the median.

Two things lose digits when e^{tz} times a density is integrated as it stands. A density that is
infinite at a point P, such as the upper end of an arcsine law, is not known beside P: a double z
has no digits of z − P. There the integral is taken by parts, ∫φ dF = [φF] − ∫φ′F, where F is
finite. And under narrow noise a variance is what M(2t)/M(t)² differs from 1 by; so what is
averaged is e^{ty} − 1 − ty, of the size of that difference, and the rest is added with digits.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np

from trueup.noise.elementwise import Floats
from trueup.noise.integration import integrated, summed

Rows = Callable[[Floats, Floats], Any]
"""Values y and logarithms of weights there to φ(y) times the weight, one row for each φ."""

Slopes = Callable[[Floats], Any]
"""Values y to φ′(y), one row for each φ."""

STEEP = 1e-3
"""A density that grows like h^{−STEEP} towards a point, or faster, is taken for infinite there."""

SERIES = 20
"""Terms of Σ xᵏ/k! for |x| < 1: the next one is below 1e-19."""

ROUGH = 1e-4
"""Masses of large parameters are rounded, and divided by their sum; what lacks more is a part."""

FAINT = 1e-290
"""Masses above are normal floats with all their digits."""

UNKNOWN = 1e-9
"""Masses that scipy takes for 0 are unknown; the last term before them may be so much of a sum."""

STEEPEST = 600.0
"""Beyond e to this power means are taken of what is divided by its largest value."""

ZOOMS = 6
"""Times that a place is looked for between the neighbours of the best of 64: to 1e-9 of them."""


class Standard(ABC):
    """The means under one law, frozen by scipy.

    Parameters
    ----------
    law
        The frozen distribution.
    start, unit
        Its median and the distance of its quartiles.
    known
        How many of the moments E 1 and E Y exist, and are taken out of what is averaged.
    """

    def __init__(self, law: Any, start: float, unit: float, known: int) -> None:
        self.law, self.start, self.unit, self.known = law, start, unit, known
        self.low, self.high = (float(end) for end in law.support())

    @abstractmethod
    def _means(self, rows: Rows, slopes: Slopes, start: float) -> Any:
        """Return E φ(Y) for each row φ, whose slopes are φ′; None if one does not settle.

        What matters is looked for from the start outwards.
        """

    @abstractmethod
    def _log(self, x: Floats) -> Floats:
        """Return the logarithm of the density, or of the mass."""

    @cached_property
    def first(self) -> list[float] | None:
        """E 1 and E Y, as many as are known, as they come out; None if they do not."""
        powers = np.arange(self.known)[:, None]
        means = self._means(
            lambda y, log: y**powers * np.exp(log),
            lambda y: np.where(powers, np.ones(len(y)), 0.0),
            self.start,
        )
        return None if means is None else [float(v) for v in means]

    def about_start(self, order: int) -> list[float] | None:
        """Return E Yʲ, j = 0..order, divided by what E 1 comes to; None if it does not settle."""
        means = None if self.first is None else self.tilted(0j, order)
        if means is None or self.first is None:
            return None
        values = [*self.first, *(v.real for v in means[self.known :])]
        whole = abs(values[0] - 1) <= ROUGH
        return [v / values[0] for v in values] if whole else None

    def tilted(self, t: complex, order: int) -> list[Any] | None:
        """Return E[Yʲ R(tY)], j = 0..order, R the exponential without the terms that are known.

        There are ``known`` − j of them. None if it does not settle. Beyond the doubles they are
        mpmath numbers.
        """
        degrees = range(order + 1)
        start, top = self._top(t.real)

        def rows(y: Floats, log: Floats) -> Any:
            u = y / self.unit
            return np.array([u**j * remainder(t * y, self.known - j, log - top) for j in degrees])

        def slopes(y: Floats) -> Any:
            u = y / self.unit
            rests = [remainder(t * y, self.known - j, -top) for j in range(order + 2)]
            return np.array(
                [
                    (j * u ** max(j - 1, 0) * rests[j] + u**j * t * self.unit * rests[j + 1])
                    / self.unit
                    for j in degrees
                ]
            )

        means = self._means(rows, slopes, start)
        if means is None:
            return None
        scale = mpmath.exp(top) if top else 1.0
        return [scale * (complex(v) * self.unit**j) for j, v in enumerate(means)]

    def _top(self, slope: float) -> tuple[float, float]:
        """Return where e^{slope·y} times the density is largest, and its logarithm there.

        The median and 0 where nothing overflows.
        """
        if not slope:
            return self.start, 0.0
        away = self.unit * np.exp2(np.arange(-3.0, 61.0))
        places = np.sort([*(self.start - away), self.start, *(self.start + away)])
        for _ in range(ZOOMS):
            places = np.clip(places, self.low, self.high)
            heights = slope * (places - self.start) + self._log(places)
            heights[~np.isfinite(heights)] = -np.inf  # a density may be infinite at its ends
            best = int(np.argmax(heights))
            if heights[best] < STEEPEST:
                return self.start, 0.0
            place, height = float(places[best]), float(heights[best])
            last = len(places) - 1
            places = np.linspace(places[max(best - 1, 0)], places[min(best + 1, last)], 64)
        return place, height


class Discrete(Standard):
    """A law on the integers: sums."""

    @cached_property
    def first(self) -> list[float] | None:
        """E 1 and E Y; None also where the masses found are only a part."""
        found = super().first
        return None if found and abs(found[0] - 1) > ROUGH else found

    def _log(self, x: Floats) -> Floats:
        return log_mass(self.law, np.rint(x))

    def _means(self, rows: Rows, slopes: Slopes, start: float) -> Any:
        lost: list[Any] = []

        def terms(k: Floats) -> Any:
            log = log_mass(self.law, k)
            missing = np.flatnonzero(np.isneginf(log) & (k >= self.low) & (k <= self.high))
            if len(missing):
                last = k[missing[:1]] - np.sign(k[missing[:1]] - start)
                lost.append(np.abs(rows(last - self.start, log_mass(self.law, last)))[:, 0])
            return rows(k - self.start, log)

        total = summed(terms, self.low, self.high, round(start))
        known = total is not None and all((v <= UNKNOWN * np.abs(total)).all() for v in lost)
        return total if known else None


class Continuous(Standard):
    """A law with a density: integrals, by parts beside points at which it is infinite."""

    def _log(self, x: Floats) -> Floats:
        return log_density(self.law, x)

    def _means(self, rows: Rows, slopes: Slopes, start: float) -> Any:
        holes = self._poles
        cuts = sorted({self.low, self.high, *(end for hole in holes for end in hole)})
        parts = [
            self._beside(a, b, holes[a, b], rows, slopes)
            if (a, b) in holes
            else self._between(a, b, rows, start)
            for a, b in pairwise(cuts)
        ]
        return None if any(part is None for part in parts) else sum(parts)

    def _between(self, a: float, b: float, rows: Rows, start: float) -> Any:
        """Return ∫ φ(y) f(x) dx from a to b."""
        nearest = min(max(start, a), b)
        return integrated(
            lambda x: rows(x - self.start, log_density(self.law, x)), a, b, nearest, self.unit
        )

    def _beside(self, a: float, b: float, pole: float, rows: Rows, slopes: Slopes) -> Any:
        """Return [φF] − ∫ φ′F from a to b."""
        ends = np.array([a, b])
        inner = integrated(
            lambda x: slopes(x - self.start) * self._below(pole, x), a, b, pole, self.unit
        )
        outer = rows(ends - self.start, np.zeros(2)) * self._below(pole, ends)
        return None if inner is None else outer[..., 1] - outer[..., 0] - inner

    def _below(self, pole: float, x: Floats) -> Floats:
        """Return F up to a constant, so that it is small beside the pole."""
        if pole == self.high:
            return -np.asarray(self.law.sf(x))
        return np.asarray(self.law.cdf(x)) - float(self.law.cdf(pole))

    @cached_property
    def _poles(self) -> dict[tuple[float, float], float]:
        """Intervals around the points at which the density is infinite, with these points."""
        width = min(self.unit, self.high - self.low) / 4
        return {
            (max(self.low, point - width), min(self.high, point + width)): point
            for point in {self.low, 0.0, self.high}
            if math.isfinite(point) and self.low <= point <= self.high and self._is_pole(point)
        }

    def _is_pole(self, point: float) -> bool:
        """Whether the density grows like a power towards the point, from one side."""
        steps = min(self.unit, 1.0) * np.exp2([-32.0, -22.0])
        for side in (-1, 1):
            near, far = log_density(self.law, point + side * steps)
            if math.isfinite(far) and near - far > STEEP * math.log(2**10):
                return True
        return False


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ask scipy something without its warnings, also those that its libraries raise."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def log_density(law: Any, x: Floats) -> Floats:
    """Return scipy's logarithm of a density."""
    with quiet():
        return np.asarray(law.logpdf(x), dtype=np.float64)


def log_mass(law: Any, k: Floats) -> Floats:
    """Return the logarithm of a mass.

    Where it has not underflowed its own logarithm keeps more digits: scipy's is a difference of
    logarithms of gamma functions.
    """
    with quiet():
        mass = np.asarray(law.pmf(k), dtype=np.float64)
        logarithm = np.array(np.log(mass))
        faint = ~(mass > FAINT)
        if faint.any():  # scipy's logarithm costs as much as the mass itself
            logarithm[faint] = law.logpmf(np.asarray(k)[faint])
        return logarithm


def remainder(x: Any, terms: int, log: Any = 0.0) -> Any:
    """Return eˣ without its first terms 1, x, times e^{log}, with all digits for small x.

    Examples
    --------
    >>> remainder(np.array([1e-9, 2.0]), 2)
    array([5.0000000e-19, 4.3890561e+00])
    """
    if terms <= 0:
        return np.exp(x + log)
    small = np.abs(x) < 1
    inner = np.where(small, x, 0)
    series = np.ones_like(inner)
    for k in range(SERIES, terms, -1):
        series = 1 + inner * series / k
    known = 1 + x if terms == 2 else 1
    near = inner**terms / terms * series  # terms! = terms for 1 and 2
    return np.where(small, near * np.exp(log), np.exp(x + log) - known * np.exp(log))
