"""Where the zones lie, where the series takes over, and the programme that follows."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.kernels.blocks import evaluate
from trueup.near.curve import Curve, Side, Zone
from trueup.near.programme import Programme, programme
from trueup.near.series import Exact, Series, Terms, graded, orders
from trueup.near.smoothing import Smoothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.question import Question

    Floats = NDArray[np.float64]

ACCURATE = 0.02
"""The series takes over where its next two terms are below this part of the tolerance, …"""

MARGIN = 2.5
"""… but not within so many units of noise of a bound: there the programme does better."""

REACH = 12.0
"""Zones end so many units beyond a bound at most; farther out g is constant."""

_NEGLIGIBLE = 1e-10

TABLE = 15.0
"""On the integers, up to so many units every integer has a value of its own."""

ROWS = 4.0
"""Bounds on the bias for each piece of a spline."""

LARGEST = 2_500
"""Unknowns in one programme."""

_LOOK = 400.0
"""How many units from a bound the accuracy of the series is looked at."""


class Stretch(NamedTuple):
    """Where g is the series; without a series there is no such stretch."""

    series: Series | Exact | None
    low: float
    high: float


def stretch(question: Question, smoothing: Smoothing, terms: Terms, further: float) -> Stretch:
    """Return the series and where it takes over, as close to the bounds as it is accurate."""
    best = Stretch(None, math.inf, math.inf)
    for m in orders(terms) if question.smooth else []:
        series = Series(terms, m)
        found = _accurate(question, smoothing, series)
        if found is None:
            continue
        low, high = found
        margin = (MARGIN + further) * smoothing.unit
        low = max(low, question.low) + margin if math.isfinite(question.low) else -math.inf
        high = min(high, question.high) - margin if math.isfinite(high) else math.inf
        if question.noise.lattice:
            low, high = np.ceil(low), np.floor(high)
        if best.series is None or _zones(low, high) < _zones(*best[1:]) - smoothing.unit / 4:
            best = Stretch(series, float(low), float(high))
    used = min(best.high, question.high) - best.low
    bounded = math.isfinite(question.low) and math.isfinite(question.high)
    if best.series is not None and (used >= 3 * smoothing.unit or not bounded):
        return best
    if bounded:
        return Stretch(None, math.inf, math.inf)
    side = "above" if math.isinf(question.high) else "below"
    raise TrueupError(
        f"the domain {question.domain} is unbounded, and {text(question.f)} has no series that is "
        f"accurate to the end under {question.noise!r}",
        f"give a domain that is bounded {side}",
    )


def for_cells(question: Question, cells: float) -> Question:
    """Return the question that asks for the most accurate average of so many cells.

    Its standard error falls as 1/√cells, and so must what the series leaves out.
    """
    unit = 1.0 if question.relative else typical(question)
    return dataclasses.replace(question, cells=cells, max_bias=unit / math.sqrt(cells))


def typical(question: Question) -> float:
    """Return the size of f near the bounds."""
    low, high = question.low, question.high
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    step = Smoothing(question.noise).unit * (1 if math.isfinite(low) else -1)
    q = np.clip(np.rint(start + step * np.arange(1.0, 9.0)), low, high)
    return float(np.abs(question.truth(q)).mean()) or 1.0


def _zones(low: float, high: float) -> float:
    """Return how much the zones cover, up to a constant."""
    return (low if math.isfinite(low) else 0.0) - (high if math.isfinite(high) else 0.0)


def _accurate(
    question: Question, smoothing: Smoothing, series: Series
) -> tuple[float, float] | None:
    """Return the longest run of x on which the series is accurate; an end may be infinite."""
    x = _probes(question, smoothing)
    q = np.clip(x, question.low, question.high)
    with np.errstate(all="ignore"):
        allowed = ACCURATE * question.max_bias * question.size(q)
        good = 2 * series.terms.size(series.order, x) <= allowed
    good[1:] &= np.isfinite(series.bound(x[:-1], x[1:], series.order + 1))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]])))
    runs = [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]
    if math.isinf(question.high):
        runs = [r for r in runs if r[1] == len(x) - 1]
    if math.isinf(question.low):
        runs = [r for r in runs if r[0] == 0]
    if not runs:
        return None
    first, last = max(runs, key=lambda r: q[r[1]] - q[r[0]])
    high = float(x[last])
    if last == len(x) - 1 and _bounded_beyond(series, float(x[first]), smoothing.unit):
        high = math.inf
    elif math.isinf(question.high):
        return None
    return float(x[first]), high


def _bounded_beyond(series: Series, low: float, unit: float) -> bool:
    cells = graded(low, math.inf, unit)
    return bool(np.isfinite(series.bound(cells[:-1], cells[1:], series.order + 1)).all())


def _probes(question: Question, smoothing: Smoothing) -> Floats:
    """Return points at which the series is looked at."""
    unit, low, high = smoothing.unit, question.low, question.high
    beyond = reach(smoothing)
    near = np.arange(-beyond, _LOOK * unit, unit / 4)
    far = _LOOK * unit * 2.0 ** np.arange(1.0, 41.0)
    ways = [low + near, high - near] if math.isfinite(low) or math.isfinite(high) else [near, -near]
    base = [b for b in (low, high) if math.isfinite(b)] or [0.0]
    if math.isinf(high):
        ways.append(base[0] + far)
    if math.isinf(low):
        ways.append(base[-1] - far)
    x = np.unique(np.concatenate([w[np.isfinite(w)] for w in ways]))
    return x[(x >= low - beyond) & (x <= high + beyond)]


def reach(smoothing: Smoothing) -> float:
    """Return how far beyond a bound the zones go."""
    ends = smoothing.noise.quantile([_NEGLIGIBLE, 1 - _NEGLIGIBLE])
    return float(min(np.abs(ends).max(), REACH * smoothing.unit))


class Plan:
    """The zones and the programme of one question: so many pieces of a spline a unit of noise."""

    def __init__(
        self, question: Question, smoothing: Smoothing, stretch: Stretch, pieces: int
    ) -> None:
        self.question, self.smoothing, self.stretch = question, smoothing, stretch
        self.width = smoothing.unit / pieces
        self.reach = reach(smoothing)
        self.zones = self._zones()
        self.programme = self._programme()

    def _zones(self) -> list[Zone]:
        question, unit, lattice = self.question, self.smoothing.unit, self.question.noise.lattice
        series, low, high = self.stretch
        first, last = question.low - self.reach, question.high + self.reach
        if lattice:
            first, last = np.floor(first), np.ceil(last)
        table = lattice and unit < TABLE
        width = max(1.0, np.floor(self.width)) if lattice else self.width
        ends: list[tuple[float, float, Side]] = []
        if series is None:
            ends = [(first, last, "whole")]
        else:
            ends += [(first, low, "left")] if math.isfinite(low) else []
            ends += [(high, last, "right")] if math.isfinite(high) else []
        zones = [
            Zone(a, b, width, side, table, None if table else self._join(a, b, side))
            for a, b, side in ends
        ]
        self._check_size(sum(zone.size for zone in zones))
        return zones

    def _check_size(self, count: int) -> None:
        if count > LARGEST:
            question = self.question
            raise TrueupError(
                f"the programme for {text(question.f)} on {question.domain} has {count} unknowns, "
                f"at most {LARGEST} are possible: no series helps",
                "narrow the domain, or write f as a smooth formula",
            )

    def _join(self, low: float, high: float, side: Side) -> tuple[float, float, float] | None:
        """Return the series and its first two derivatives where a zone meets it."""
        series = self.stretch.series
        if series is None or side == "whole":
            return None
        at = {self.question.symbol: np.array([high if side == "left" else low])}
        value, slope, bend, _ = (float(evaluate(part, at)[0]) for part in series.jet)
        return value, slope, bend

    def truths(self) -> tuple[Floats, Floats]:
        """Return the true values at which the bias is bounded, and the width each stands for."""
        question = self.question
        series, low, high = self.stretch
        ends = [(question.low, question.high)]
        if series is not None:
            ends = []
            if math.isfinite(low):
                ends.append((question.low, min(question.high, low + self.reach)))
            if math.isfinite(high):
                ends.append((max(question.low, high - self.reach), question.high))
        q, widths = (
            np.concatenate(part) for part in zip(*(self._rows(*e) for e in ends), strict=True)
        )
        q, first = np.unique(q, return_index=True)
        return q, widths[first]

    def _rows(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Return true values from one end to the other, and the width that each stands for."""
        unit, step = self.smoothing.unit, self.width / ROWS
        if self.question.whole:
            step = max(1.0, np.floor(step)) if unit >= TABLE else 1.0
            q = np.append(np.arange(math.ceil(low), high, step), math.floor(high))
        else:
            q = np.linspace(low, high, max(2, math.ceil((high - low) / step) + 1))
            for end, inwards in ((self.question.low, 1), (self.question.high, -1)):
                if end in (low, high):  # f may change fast at a bound
                    near = end + inwards * np.arange(0.0, 2 * unit, step / 3)
                    q = np.concatenate([q, near[(near >= low) & (near <= high)]])
            q = np.concatenate([q, [k for k in self.question.kinks if low <= k <= high]])
        q = np.unique(q)
        return q, np.gradient(q) if len(q) > 1 else np.ones(1)

    def _programme(self) -> Programme | None:
        """Return the programme, None if there is nothing to choose."""
        if not self.zones:
            return None
        question, series = self.question, self.stretch.series
        q, widths = self.truths()
        nodes = self.smoothing.nodes(q, np.concatenate([z.edges for z in self.zones]))
        values = np.zeros(len(nodes.x))
        if series is not None:
            rows = ~np.logical_or.reduce([z.holds(nodes.x) for z in self.zones])
            values[rows] = evaluate(series.expr, {question.symbol: nodes.x[rows]})
        size = question.size(q)
        weights = question.prior(q) * widths
        weights = (weights / weights.sum() + 1e-9 / len(q)) / size**2
        start = np.concatenate([zone.start(self._plug_in) for zone in self.zones])
        tolerance = question.max_bias * size
        truth, beside = question.truth(q), question.noise_beside(q)
        return programme(nodes, self.zones, values, weights, truth, tolerance, start, beside)

    def _plug_in(self, x: Floats) -> Floats:
        question = self.question
        return question.truth(np.clip(x, question.low, question.high))

    def curve(self, unknowns: Floats) -> Curve:
        """Return the estimator with these unknowns."""
        splines = {}
        for zone in self.zones:
            own, unknowns = unknowns[: zone.size], unknowns[zone.size :]
            splines["right" if zone.side == "right" else "left"] = zone.spline(own)
        series, low, high = self.stretch
        left, right = splines.get("left"), splines.get("right")
        return Curve(self.question.symbol, series, left, right, low, high)
