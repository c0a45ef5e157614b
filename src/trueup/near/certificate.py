"""The largest bias over the whole domain, from the finished estimator alone.

Far from the zones the series' remainder is bounded analytically. Elsewhere E g(q + Z) is summed or
integrated: at every integer of the domain, or on a grid of the line. Between grid points a function
with |B″| ≤ c stays within c·δ²/8 of its chord. B″ = E g″(q + Z) − f″(q) is computed at the grid
points, B‴ is bounded between them by interval arithmetic, and cells that are not yet good enough
are halved. :func:`least` is what a relative bias is divided by, :func:`distance` how far a
polynomial is from f.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import Walk
from trueup.kernels.blocks import evaluate
from trueup.near.series import Series, bound_on, graded

if TYPE_CHECKING:
    import sympy
    from numpy.typing import NDArray

    from trueup.near.curve import Curve
    from trueup.near.question import Question
    from trueup.near.smoothing import Smoothing

    Floats = NDArray[np.float64]


ROUNDING = 1e-13
"""Relative error allowed in a sum of products of doubles, and in the noise's probabilities."""

_MOST_INTEGERS = 5_000_000
_MOST_UNITS = 20_000.0
_MOST_CELLS = 100_000
_FINE = 16
"""Cells of the first grid per unit of noise."""

_NARROW = 1e-10
_SAMPLE = 7
"""True values at which the quadrature is compared with a finer one."""

_CLOSE = 1.002
"""How far above the largest bias seen the bound may stay."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """|E g(q + Z) − f(q)| ≤ ``bound`` (times |f(q)| if relative) for every q of the domain."""

    bound: float
    worst: float


def certify(question: Question, curve: Curve, smoothing: Smoothing, goal: float) -> Certificate:
    """Return the largest bias of an estimator over the domain.

    The search may stop as soon as the bound is proven to be at most the goal.
    """
    runs, found = _far(question, curve, smoothing, goal)
    for low, high in runs:
        if question.whole:
            found.append(_at_integers(question, curve, smoothing, low, high))
        else:
            found.append(_Line(question, curve, smoothing, low, high).certificate())
    return max(found, key=lambda c: math.inf if math.isnan(c.bound) else c.bound)


def _far(
    question: Question, curve: Curve, smoothing: Smoothing, goal: float
) -> tuple[list[tuple[float, float]], list[Certificate]]:
    """Return the runs of the domain that must be looked at, and the bound on the rest."""
    if not isinstance(curve.series, Series):
        return [(question.low, question.high)], []
    low, high = question.low, question.high
    start, stop = max(low, curve.low), min(high, curve.high)
    edges = graded(*curve.stretch, smoothing.unit)
    edges = np.unique(np.concatenate([[start], edges[(edges > start) & (edges < stop)], [stop]]))
    edges = edges[np.isfinite(edges)]
    cells = edges[:-1], edges[1:]
    bounds = curve.series.remainder(cells, curve.stretch, curve.outside, smoothing)
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = bounds / least(question, *cells)
    good = bounds <= goal / 2
    found = []
    if good.any():
        worst = int(np.argmax(np.where(good, bounds, -1.0)))
        found.append(Certificate(float(bounds[worst]), float(cells[0][worst])))
    if not good[-1:].all() and math.isinf(high):
        raise _no_tail(question, "above")
    if not good[:1].all() and math.isinf(low):
        raise _no_tail(question, "below")
    return list(_runs(question, cells, good)), found


def _no_tail(question: Question, side: str) -> TrueupError:
    return TrueupError(
        f"the bias of {question.f} cannot be bounded on all of {question.domain}: its series does "
        f"not settle {side}",
        f"give a domain that is bounded {side}",
    )


def _runs(
    question: Question, cells: tuple[Floats, Floats], good: NDArray[np.bool_]
) -> Iterator[tuple[float, float]]:
    """Yield the stretches of the domain without an analytic bound."""
    begun: float | None = question.low if -math.inf < question.low < cells[0][0] else None
    for low, high, fine in zip(*cells, good, strict=True):
        if fine and begun is not None:
            yield begun, low
            begun = None
        elif not fine and begun is None:
            begun = low
        last = high
    if begun is not None or math.inf > question.high > last:
        yield (last if begun is None else begun), question.high


# -- at every integer ------------------------------------------------------------------------------


def _at_integers(
    question: Question, curve: Curve, smoothing: Smoothing, low: float, high: float
) -> Certificate:
    """Return the largest bias at the integers from low to high, by direct sums."""
    if high - low > _MOST_INTEGERS:
        raise TrueupError(
            f"the bias would have to be summed at {high - low:.3g} integers", "narrow the domain"
        )
    q = np.arange(math.ceil(low), math.floor(high) + 1.0)
    mean, size = _sums(curve, smoothing, q)
    truth = question.truth(q)
    rounding = ROUNDING + 2.0**-52 * (smoothing.high - smoothing.low) * smoothing.noise.lattice
    error = rounding * (size + np.abs(truth)) + left_out(curve, smoothing, low, high)
    if not smoothing.noise.lattice:
        error += 2 * smoothing.error(curve, np.linspace(low, high, _SAMPLE), curve.knots)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = (np.abs(mean - truth) + error) / question.size(q)
    worst = int(np.argmax(np.where(np.isnan(bias), np.inf, bias)))
    return Certificate(float(bias[worst]), float(q[worst]))


def _sums(curve: Curve, smoothing: Smoothing, q: Floats) -> tuple[Floats, Floats]:
    """Return E g and E |g| at consecutive integers."""
    if smoothing.noise.lattice:
        first, masses = smoothing.masses
        x = np.arange(q[0] + first, q[-1] + first + len(masses))
        values = curve(x)
        back = masses[::-1]
        return np.convolve(values, back, "valid"), np.convolve(np.abs(values), back, "valid")
    mean = smoothing.law(curve, q, curve.knots)[0]
    return mean, smoothing.law(lambda x: np.abs(curve(x)), q, curve.knots)[0]


def left_out(curve: Curve, smoothing: Smoothing, low: float, high: float) -> float:
    """Return a bound on E[|g|; Z beyond the window] for q from low to high.

    Shell by shell of doubling width; the ends of the window, which may carry masses, are inside.
    """
    width = max(smoothing.high - smoothing.low, smoothing.unit)
    shells = width * (2.0 ** np.arange(401.0) - 1)
    step = float(smoothing.noise.lattice)
    total = 0.0
    for reach, sign in ((-smoothing.low, -1), (smoothing.high, 1)):
        near, far = reach + shells[:-1], reach + shells[1:]
        ends = (low - far, high - near) if sign < 0 else (low + near, high + far)
        beyond = np.floor(near) + step if step else near
        tail = smoothing.below(-beyond) if sign < 0 else smoothing.above(beyond)
        size = curve.magnitude(*ends)
        total += float(np.where(tail > 0, tail * np.where(tail > 0, size, 0.0), 0.0).sum())
    return total


# -- on the line -----------------------------------------------------------------------------------


class _Line:
    """Cells of a stretch of the line, refined until the bound is close to the largest bias seen."""

    def __init__(
        self, question: Question, curve: Curve, smoothing: Smoothing, low: float, high: float
    ) -> None:
        self.question, self.curve, self.smoothing = question, curve, smoothing
        if high - low > _MOST_UNITS * smoothing.unit:
            raise TrueupError(
                f"the bias would have to be integrated over {high - low:.3g}, which is "
                f"{(high - low) / smoothing.unit:.3g} units of noise",
                "narrow the domain",
            )
        count = max(1, math.ceil((high - low) / smoothing.unit * _FINE))
        edges = np.linspace(low, high, count + 1)
        self.low, self.high = edges[:-1], edges[1:]
        some = np.linspace(low, high, _SAMPLE)
        self.beyond = left_out(curve, smoothing, low, high)
        self.beyond += 2 * smoothing.error(curve, some, curve.knots)
        reach = (high - low) + max(-smoothing.low, smoothing.high)
        self.cells, self.thirds = curve.turns(min(reach, 1e4 * smoothing.unit), smoothing.unit)
        self.slopes = self._slopes() if question.smooth else None
        self.ends = self._ends(edges)[:, :-1], self._ends(edges)[:, 1:]

    def _slopes(self) -> tuple[sympy.Expr, sympy.Expr]:
        """Return f″ and f‴."""
        second = derivative(self.question.f, self.question.symbol, 2)
        return second, derivative(second, self.question.symbol, 1)

    def _ends(self, q: Floats) -> Floats:
        """Return E g and E g″ at true values."""
        return np.array(self.smoothing.means([self.curve, self._second], q, self.curve.knots))

    def _second(self, x: Floats) -> Floats:
        return self.curve.derivative(x, 2)

    def certificate(self) -> Certificate:
        """Return the bound, after halving the cells that matter."""
        done, seen, looked = Certificate(0.0, float(self.low[0])), 0.0, 0
        while len(self.low):
            looked += len(self.low)
            bounds, ends = self._bounds()
            seen = max(seen, float(ends.max()))
            settled = bounds <= max(_CLOSE * seen, done.bound)
            settled |= self.high - self.low <= _NARROW * self.smoothing.unit
            settled |= looked > _MOST_CELLS
            top = int(np.argmax(np.where(settled, bounds, -1.0)))
            if settled[top] and bounds[top] > done.bound:
                done = Certificate(float(bounds[top]), float(self.low[top]))
            self._halve(~settled)
        return done

    def _halve(self, which: NDArray[np.bool_]) -> None:
        low, high = self.low[which], self.high[which]
        middle = low / 2 + high / 2
        at = self._ends(middle) if len(middle) else np.empty((2, 0))
        left, right = self.ends[0][:, which], self.ends[1][:, which]
        self.ends = np.hstack([left, at]), np.hstack([at, right])
        self.low, self.high = np.concatenate([low, middle]), np.concatenate([middle, high])

    def _bounds(self) -> tuple[Floats, Floats]:
        """Return bounds on |B| over the cells, and what they cannot be below at their ends."""
        question = self.question
        (left, left_bend), (right, right_bend) = self.ends
        width, third = self.high - self.low, self._third()
        size = np.full(len(width), self.curve.outside) + np.abs(left) + np.abs(right)
        error = self.beyond + ROUNDING * size
        gaps = np.abs(left - question.truth(self.low)), np.abs(right - question.truth(self.high))
        bend = np.maximum(np.abs(left_bend), np.abs(right_bend)) + width / 2 * third
        sag = width**2 / 8 * bend
        below, above, _ = Walk(self._box).range(question.f)
        lowest, highest = np.minimum(left, right) - sag, np.maximum(left, right) + sag
        bound = np.maximum(highest - below, above - lowest)
        if self.slopes is not None:
            both = np.maximum(self._gap(self.low, left_bend), self._gap(self.high, right_bend))
            steep = bound_on(self.slopes[1], question.symbol, self.low, self.high)
            sag = width**2 / 8 * (both + width / 2 * (third + steep))
            bound = np.fmin(bound, np.maximum(*gaps) + sag)
        some = self.beyond + ROUNDING * self.curve.outside  # no halving makes it smaller
        sizes = question.size(self.low), question.size(self.high)
        seen = np.maximum((gaps[0] + some) / sizes[0], (gaps[1] + some) / sizes[1])
        total = (bound + error) / least(question, self.low, self.high)
        return np.where(np.isnan(total), np.inf, total), np.nan_to_num(seen, nan=np.inf)

    @property
    def _box(self) -> dict[sympy.Symbol, tuple[Floats, Floats]]:
        return {self.question.symbol: (self.low, self.high)}

    def _gap(self, q: Floats, bend: Floats) -> Floats:
        """Return |E g″ − f″| at true values."""
        assert self.slopes is not None  # noqa: S101  (asked only if f is smooth)
        return np.abs(bend - evaluate(self.slopes[0], {self.question.symbol: q}))

    def _third(self) -> Floats:
        """Return bounds on |E g‴(q + Z)| over the cells of q."""
        out, count = [], 1 + len(self.low) * len(self.cells) // 2_000_000
        for part in np.array_split(np.arange(len(self.low)), count):
            upper = self.smoothing.below(self.cells[None, 1:] - self.low[part, None])
            lower = self.smoothing.below(self.cells[None, :-1] - self.high[part, None])
            mass = np.maximum(upper - lower, 0.0)
            out.append((mass * np.where(mass > 0, self.thirds, 0.0)).sum(axis=1))
        return np.concatenate(out)


# -- two formulas ----------------------------------------------------------------------------------


_FIRST, _MOST = 512, 200_000
_NARROWEST = 1e-12  # of the domain: narrower cells are rounding


def least(question: Question, low: Floats, high: Floats) -> Floats:
    """Return what a bias is divided by: the least |f| on cells if relative, else 1."""
    if not question.relative:
        return np.ones(low.shape)
    below, above, _ = Walk({question.symbol: (low, high)}).range(question.f)
    return np.maximum(np.maximum(below, -above), 0.0)


def distance(question: Question, p: sympy.Expr) -> float:
    """Return a bound on |p − f| over a bounded domain, relative to |f| if asked so.

    On a cell of width δ a function with |d″| ≤ c is at most c·δ²/8 above its ends; cells are halved
    until that is close to the largest distance seen.
    """
    symbol, gap = question.symbol, p - question.f
    bend = derivative(gap, symbol, 2)
    edges = np.linspace(question.low, question.high, _FIRST + 1)
    low, high = edges[:-1], edges[1:]
    proven, seen, looked = 0.0, 0.0, 0
    while len(low):
        looked += len(low)
        ends = [bound_on(gap, symbol, q, q) for q in (low, high)]
        shares = [e / question.size(q) for e, q in zip(ends, (low, high), strict=True)]
        seen = max(seen, *(float(s.max()) for s in shares))
        sag = (high - low) ** 2 / 8 * bound_on(bend, symbol, low, high)
        bound = np.fmin(np.maximum(*ends) + sag, bound_on(gap, symbol, low, high))
        bound = bound / least(question, low, high)
        done = bound <= max(_CLOSE * seen, proven)
        done |= (high - low <= _NARROWEST * (edges[-1] - edges[0])) | (looked > _MOST)
        proven = max(proven, float(np.max(bound[done], initial=0.0)))
        low, high = low[~done], high[~done]
        middle = low / 2 + high / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return proven
