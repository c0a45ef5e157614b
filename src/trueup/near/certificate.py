"""The largest bias over the whole domain, from the finished estimator alone.

Three ways, for three stretches of the domain. Far out, where g is f for all but a share P of the
noise, Taylor's theorem bounds |E g(q + Z) − f(q)| by σ²/2·sup|f″| and what happens with probability
P. Nearer, integers are looked at one by one: E g is a sum. On the line, and where there are too
many integers, a function B with |B″| ≤ c stays within c·δ²/8 of its chord on a cell of width δ.
B = E g − f and B″ = E g″ − f″ are computed at the ends of cells, B‴ is bounded between them by
interval arithmetic, and cells that are not yet good enough are halved; where f has an infinite
slope its range on the cell does in place of its chord.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.inverse.ranges import Walk
from trueup.inverse.signs import KINKED
from trueup.near.curve import Tail, cells_beyond, out_of_doubles, reach
from trueup.near.question import MOST_INTEGERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.curve import Curve
    from trueup.near.nodes import Function, Law
    from trueup.near.question import Question

    Floats = NDArray[np.float64]

ROUNDING = 1e-13
"""Relative error allowed in a sum of products of doubles, and in the noise's probabilities."""

_MOST_PRODUCTS, _MOST_SUMS = 100_000_000, 4_000
"""Products in a sum over lattice noise at all integers; integers under continuous noise."""

_MOST_CELLS = 100_000
_CLOSE, _NARROW = 1.002, 1e-10
"""How far above the largest bias seen the bound may stay; cells narrower than this are done."""

_STEPS = 4
"""Cells of the first grid for each piece of the spline."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """|E g(q + Z) − f(q)| ≤ ``bound`` (times |f(q)| if relative) for every q of the domain."""

    bound: float
    worst: float


def certify(question: Question, curve: Curve, law: Law) -> Certificate:
    """Return the largest bias of an estimator over the domain."""
    found, low, high = [Certificate(0.0, math.nan)], question.low, question.high
    for side in (1, -1):
        if (curve.mesh.right if side > 0 else curve.mesh.left) is not None:
            begin, certificate = _far(question, curve, law, side)
            found.append(certificate)
            low, high = (low, min(high, begin)) if side > 0 else (max(low, begin), high)
    if question.whole:
        low, high = math.ceil(low), math.floor(high)
        runs = _looked_at(law, low, high)
        found += [_at_integers(question, curve, law, *run) for run in runs]
        low, high = (runs[0][1], runs[-1][0]) if len(runs) > 1 else (high, high)
    if low < high or not question.whole:
        kinks = [k for k in question.kinks if low < k < high]
        for ends in pairwise([low, *kinks, high]):
            found.append(_Line(question, curve, law, *ends).certificate())
    return max(found, key=lambda c: math.inf if math.isnan(c.bound) else c.bound)


# -- far from the bounds ---------------------------------------------------------------------------


def _far(question: Question, curve: Curve, law: Law, side: int) -> tuple[float, Certificate]:
    """Return from where on the bias is bounded by Taylor's theorem, and by what.

    For Z ≥ −w, w half the way to the join, g(q + Z) is f(q) + f′(q)Z + f″(ξ)Z²/2 with ξ beyond
    q − w; E Z over these Z is at most |E Z| + √(E Z²·P), P the probability of the other Z.
    """
    tail = curve.mesh.right if side > 0 else curve.mesh.left
    join = curve.mesh.joins[1 if side > 0 else 0]
    assert tail is not None  # noqa: S101  (asked of sides that have one)
    edges = cells_beyond(join, law.unit, side)
    cells = (edges[:-1], edges[1:])[::side]
    half = (join + edges[:-1]) / 2
    mean, square = law.moments
    with np.errstate(all="ignore"):
        bends = np.maximum.accumulate(tail.bound(2, *(half, edges[1:])[::side])[::-1])[::-1]
        slopes = tail.bound(1, *cells)
        values = np.maximum.accumulate(tail.bound(0, *cells))
        away = np.abs(edges[:-1] - half)
        other = law.below(-away) if side > 0 else law.above(away)
        off = square / 2 * bends
        off += _times(slopes, mean + np.sqrt(square * other))
        off += _times(np.maximum(curve.largest, values) + values, other)
        size = question.least_size(*cells)
        bounds = off / size
    inside = side * edges[:-1] < side * (question.high if side > 0 else question.low)
    inside &= ~out_of_doubles(question, size, edges[:-1])
    bad = np.flatnonzero(inside & ~(bounds <= question.max_bias / 2))
    if len(bad) and bad[-1] == len(inside) - 1:
        raise TrueupError(
            f"the bias of {text(question.f)} cannot be bounded on all of {question.domain}",
            f"give a domain that is bounded {'above' if side > 0 else 'below'}",
        )
    first = bad[-1] + 1 if len(bad) else 0
    rest = np.where(inside[first:], bounds[first:], 0.0)
    return float(edges[first]), Certificate(float(rest.max(initial=0.0)), float(edges[first]))


def _times(a: Floats, b: Floats) -> Floats:
    """Return a·b, where nothing times infinity is nothing: the noise has no mass there."""
    return np.where(b == 0, 0.0, a * b)


def left_out(curve: Curve, law: Law, low: float, high: float) -> float:
    """Return a bound on E[|g|; Z beyond the window] for q from low to high.

    Shell by shell of doubling width; the ends of the window, which may carry masses, are inside.
    """
    width = max(law.high - law.low, law.unit)
    shells = width * (2.0 ** np.arange(401.0) - 1)
    step = float(law.noise.lattice)
    total = 0.0
    for extent, sign in ((-law.low, -1), (law.high, 1)):
        near, far = extent + shells[:-1], extent + shells[1:]
        ends = (low - far, high - near) if sign < 0 else (low + near, high + far)
        beyond = np.floor(near) + step if step else near
        share = law.below(-beyond) if sign < 0 else law.above(beyond)
        with np.errstate(invalid="ignore"):
            total += float(_times(curve.magnitude(*ends), share).sum())
    return total


# -- at every integer ------------------------------------------------------------------------------


def _looked_at(law: Law, low: float, high: float) -> list[tuple[float, float]]:
    """Return the stretches whose integers are looked at one by one: all, or those near the ends."""
    most = _MOST_SUMS
    if law.noise.lattice:
        most = max(int(min(_MOST_PRODUCTS / len(law.masses), MOST_INTEGERS)), most)
    if high - low <= most:
        return [(low, high)]
    each = max(most // 2, math.ceil(3 * reach(law)))
    return [(low, low + each), (high - each, high)]


def _at_integers(
    question: Question, curve: Curve, law: Law, low: float, high: float
) -> Certificate:
    """Return the largest bias at the integers from low to high, by direct sums."""
    q = np.arange(low, high + 1.0)
    mean, size = _sums(curve, law, q)
    truth = question.truth(q)
    error = ROUNDING * (size + np.abs(truth)) + left_out(curve, law, low, high)
    if law.noise.lattice:
        error += 2.0**-52 * (law.high - law.low) * size
    else:
        error += np.abs(law.means([curve], q, curve.knots, halved=True)[0] - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = (np.abs(mean - truth) + error) / question.size(q)
    worst = int(np.argmax(np.where(np.isnan(bias), np.inf, bias)))
    return Certificate(float(bias[worst]), float(q[worst]))


def _sums(curve: Curve, law: Law, q: Floats) -> Floats:
    """Return E g and E |g| at consecutive integers."""
    if not law.noise.lattice:
        return law.means([curve, lambda x: np.abs(curve(x))], q, curve.knots)
    values = curve(np.arange(q[0] + law.low, q[-1] + law.high + 1))
    back = law.masses[::-1]
    return np.array([np.convolve(v, back, "valid") for v in (values, np.abs(values))])


# -- on the line -----------------------------------------------------------------------------------


class _Line:
    """Cells of a stretch of the line, refined until the bound is close to the largest bias seen."""

    def __init__(self, question: Question, curve: Curve, law: Law, low: float, high: float) -> None:
        f = question.between(low, high)
        if f.has(Opaque, *KINKED):
            raise TrueupError(
                f"the bias of {text(question.f)} cannot be bounded between {low:g} and {high:g}: "
                "it is not known to be smooth there",
                "write it as a formula, or give it on integers, in a narrow domain",
            )
        self.question, self.curve, self.law = question, curve, law
        self.f = Tail(f, question.symbol)
        self.beyond = left_out(curve, law, low, high)
        self.cells, self.thirds = curve.thirds(law.unit)
        edges = self._edges(low, high)
        self.low, self.high = edges[:-1], edges[1:]
        at = self._at(edges)
        self.ends = at[:, :-1], at[:, 1:]

    def _edges(self, low: float, high: float) -> Floats:
        """Return the first cells: parts of the pieces of the spline, then ever wider."""
        if low == high:
            return np.array([low, high])
        knots = self.curve.knots
        fine = np.linspace(knots[:-1], knots[1:], _STEPS, endpoint=False).T.ravel()
        wide = [
            cells_beyond(knots[0], self.law.unit, -1),
            cells_beyond(knots[-1], self.law.unit, 1),
        ]
        edges = np.concatenate([fine, *wide])
        return np.unique(np.concatenate([[low, high], edges[(edges > low) & (edges < high)]]))

    def _at(self, q: Floats) -> Floats:
        """Return E g, E g″, what bounds their error, f, f″ and the size, at true values."""
        functions: list[Function] = [self.curve, lambda x: self.curve.derivative(x, 2)]
        mean, bend = self.law.means(functions, q, self.curve.knots)
        error = self.beyond + ROUNDING * (self.curve.largest + np.abs(mean))
        if not self.law.noise.lattice:
            again = self.law.means(functions, q, self.curve.knots, halved=True)
            error = error + np.abs(again[0] - mean)
            bend = np.where(bend < 0, -1, 1) * (np.abs(bend) + np.abs(again[1] - bend))
        with np.errstate(all="ignore"):
            return np.array([mean, bend, error, self.f(q), self.f(q, 2), self.question.size(q)])

    def certificate(self) -> Certificate:
        """Return the bound, after halving the cells that matter."""
        done, seen, looked = Certificate(0.0, float(self.low[0])), 0.0, 0
        while len(self.low):
            looked += len(self.low)
            bounds, ends = self._bounds()
            seen = max(seen, float(ends.max()))
            settled = bounds <= max(_CLOSE * seen, done.bound)
            settled |= self.high - self.low <= _NARROW * self.law.unit
            settled |= looked > _MOST_CELLS
            top = int(np.argmax(np.where(settled, bounds, -1.0)))
            if settled[top] and bounds[top] > done.bound:
                done = Certificate(float(bounds[top]), float(self.low[top]))
            self._halve(~settled)
        return done

    def _halve(self, which: NDArray[np.bool_]) -> None:
        low, high = self.low[which], self.high[which]
        middle = low / 2 + high / 2
        at = self._at(middle) if len(middle) else np.empty((6, 0))
        left, right = self.ends[0][:, which], self.ends[1][:, which]
        self.ends = np.hstack([left, at]), np.hstack([at, right])
        self.low, self.high = np.concatenate([low, middle]), np.concatenate([middle, high])

    def _bounds(self) -> tuple[Floats, Floats]:
        """Return bounds on |B| over the cells, and the largest |B| seen at their ends."""
        width, third = self.high - self.low, self._third()
        sides = [(e[0] - e[3], e[1] - e[4], e[1], e[2]) for e in self.ends]
        gap, bend, own, error = (np.maximum(*np.abs(pair)) for pair in zip(*sides, strict=True))
        least = np.minimum(self.ends[0][5], self.ends[1][5])
        seen = np.maximum(*((np.abs(e[0] - e[3]) + e[2]) / e[5] for e in self.ends))
        with np.errstate(all="ignore"):
            bent = third + self.f.bound(3, self.low, self.high)
            smooth = gap + width**2 / 8 * (bend + width / 2 * bent)
            sag = width**2 / 8 * (own + width / 2 * third)
            below, above, sure = Walk({self.f.symbol: (self.low, self.high)}).range(self.f.jet[0])
            means = self.ends[0][0], self.ends[1][0]
            rough = np.maximum(np.maximum(*means) + sag - below, above - np.minimum(*means) + sag)
            total = np.fmin(smooth, np.where(sure, rough, np.inf)) + error
            least = np.minimum(least, self.question.least_size(self.low, self.high))
            bounds = total / least
        return np.where(np.isnan(bounds), np.inf, bounds), np.nan_to_num(seen, nan=np.inf)

    def _third(self) -> Floats:
        """Return bounds on |E g‴(q + Z)| over the cells of q."""
        out, count = [], 1 + len(self.low) * len(self.cells) // 2_000_000
        for part in np.array_split(np.arange(len(self.low)), count):
            upper = self.law.below(self.cells[None, 1:] - self.low[part, None])
            lower = self.law.below(self.cells[None, :-1] - self.high[part, None] - 1e-9)
            mass = np.maximum(upper - lower, 0.0)
            out.append(_times(np.broadcast_to(self.thirds, mass.shape), mass).sum(axis=1))
        return np.concatenate(out)
