"""The ends of an interval as formulas in the published values, for engines that take formulas.

They are those of :mod:`trueup.inverse.quotient` and :mod:`trueup.inverse.projection`: of a ratio
the first one that no corner of the region of the noise excludes, of a monotone f its value at a
corner of a box. Noise scales that differ from row to row enter as symbols where the noise is real:
its region grows in proportion.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.inverse.projection import is_multiple, tail_of, unscaled
from trueup.inverse.quotient import BOX, SLACK
from trueup.kernels.grid import Grid
from trueup.noise.half_planes import reach, region, with_quantiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.quotient import Quotient
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Scales = Mapping[sympy.Symbol, sympy.Symbol]
    Ends = tuple[sympy.Expr, sympy.Expr]

ENDS = ("low", "high")
"""The outputs that are ends of an interval."""

_HINT = "collect the table first: in memory every interval is computed"


def grids(ends: Ends, statistics: Sequence[Statistic], scales: Scales) -> tuple[Grid, Grid]:
    """Return formulas of the ends as functions of the statistics, then of the scales."""
    inputs = (*(s.symbol for s in statistics), *scales.values())
    whole = frozenset(i for i, s in enumerate(statistics) if s.noise.lattice)
    every = tuple(range(len(inputs)))
    low, high = (Grid(inputs, [([], every, lambda _, e=e: e)], whole) for e in ends)
    return low, high


def _unit(noise: Noise, scale: sympy.Symbol | None) -> tuple[Noise, sympy.Expr]:
    """Return a noise and its factor: the family at scale 1 times the symbol of a scale."""
    if scale is None:
        unit, factor = unscaled(noise)
        return unit, _number(factor)
    if noise.lattice:
        raise TrueupError(
            f"an interval under {type(noise).__name__} noise with a scale per row has no formula: "
            "quantiles on the integers are no multiples of the scale",
            _HINT,
        )
    if not is_multiple(noise):
        raise TrueupError(
            f"{noise!r} has no scale that could differ from row to row",
            "make one estimator per noise level",
        )
    return unscaled(noise)[0], scale


def _limited(x: sympy.Expr, low: float, high: float) -> sympy.Expr:
    """Return x, not beyond bounds that may be infinite."""
    if math.isfinite(low):
        x = sympy.Max(x, _number(low), evaluate=False)
    return sympy.Min(x, _number(high), evaluate=False) if math.isfinite(high) else x


def _number(x: float) -> sympy.Expr:
    return sympy.Integer(int(x)) if x == int(x) else sympy.Float(x)


# -- a box, mapped through a monotone f ------------------------------------------------------------


def projected(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    level: float,
    signs: Sequence[int] | None,
    scales: Scales,
) -> Ends:
    """Return f at the two corners of the box around the published values.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.uniform import Uniform
    >>> q = sympy.Symbol("q", real=True)
    >>> known = [Statistic(q, Uniform(4), Interval(1, None))]
    >>> projected(2 * q, known, 0.5, (1,), {})[0]
    2*Max(1, q - 1.0)
    """
    if signs is None:
        raise TrueupError(
            "the interval of a function that jumps, ends or goes up and down inside its bounds has "
            "no formula",
            _HINT,
        )
    tail = tail_of(level, len(statistics))
    ends: list[tuple[sympy.Expr, sympy.Expr]] = []
    for statistic in statistics:
        noise, factor = _unit(statistic.noise, scales.get(statistic.symbol))
        below, above = (_number(end) * factor for end in reach(noise, tail))
        low, high = statistic.symbol - above, statistic.symbol - below
        if statistic.domain.lattice:
            low, high = _whole(statistic.symbol, low, high)
        known = float(statistic.domain.low), float(statistic.domain.high)
        ends.append((_limited(low, *known), _limited(high, *known)))
    at = [
        {
            s.symbol: pair[(sign < 0) ^ side]
            for s, pair, sign in zip(statistics, ends, signs, strict=True)
        }
        for side in (False, True)
    ]
    return f.xreplace(at[0]), f.xreplace(at[1])


def _whole(x: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> Ends:
    """Return the integers in between; the nearest one if there is none."""
    first, last = -sympy.floor(-low), sympy.floor(high)
    nearest = sympy.floor(x + sympy.Rational(1, 2))
    return sympy.Min(first, nearest, evaluate=False), sympy.Max(last, nearest, evaluate=False)


# -- ratios ----------------------------------------------------------------------------------------


def of_ratio(ratio: Quotient, level: float, scales: Scales) -> Ends:
    """Return the ends for A/B; see :func:`trueup.inverse.quotient.hull`."""
    if not ratio.sign:
        raise TrueupError(
            "the interval of a ratio has no formula where the sign of the denominator is not known",
            _HINT,
        )
    low, high = ratio.range
    if not ratio.boxed and any(d.bottom for d in ratio.directions) and math.isinf(high - low):
        raise TrueupError("the interval may be without end, which is no number in SQL", _HINT)
    error = 1 - level
    made = _Ratio(ratio, scales, error * (1 - BOX * ratio.boxed) / 2)
    ends = made.upwards(1, low, high), -made.upwards(-1, -high, -low)
    if ratio.boxed:
        least, most = made.box(error * BOX / 4)
        ends = _between(ends[0], least, most), _between(ends[1], least, most)
    ends = _limited(ends[0], low, high), _limited(ends[1], low, high)
    if ratio.empty is not None:
        value, likely = _number(ratio.empty), made.bottom <= _number(ratio.most_of_none(error))
        ends = (
            sympy.Min(ends[0], _case(value, likely, _FARTHEST), evaluate=False),
            sympy.Max(ends[1], _case(value, likely, -_FARTHEST), evaluate=False),
        )
    return _number(ratio.shift) + ends[0], _number(ratio.shift) + ends[1]


def _between(x: sympy.Expr, least: sympy.Expr, most: sympy.Expr) -> sympy.Expr:
    return sympy.Min(sympy.Max(x, least, evaluate=False), most, evaluate=False)


class _Term(NamedTuple):
    """A noise of scale 1, its factor, and what it adds to A and to B."""

    noise: Noise
    factor: sympy.Expr
    top: float
    bottom: float


class _Ratio:
    """A/B with B ≥ 0, and the corners of its noise as formulas in the scales."""

    def __init__(self, ratio: Quotient, scales: Scales, tail: float) -> None:
        self.ratio, self.side = ratio, ratio.sign
        self.top, self.bottom = self._linear(ratio.top), self._linear(ratio.bottom)
        self.noises = self._noises(scales)
        self.tops, self.bottoms = [t.top for t in self.noises], [t.bottom for t in self.noises]
        first, second = (with_quantiles(term.noise) for term in self.noises)
        self.corners = region(first, second, tail).corners

    def _linear(self, form: Floats) -> sympy.Expr:
        terms = zip(form, (1, *(s.symbol for s in self.ratio.statistics)), strict=True)
        return sympy.Add(*(_number(self.side * float(c)) * x for c, x in terms))

    def _noises(self, scales: Scales) -> list[_Term]:
        ratio = self.ratio
        noisy = [
            s.symbol
            for s, *c in zip(ratio.statistics, ratio.top[1:], ratio.bottom[1:], strict=True)
            if any(c) and not s.noise.known
        ]
        if len(noisy) > 2 and any(q in scales for q in noisy):
            raise TrueupError(
                f"the interval of a ratio of {len(noisy)} statistics has no formula in their "
                "noise scales",
                _HINT,
            )
        owners = [*noisy[:2], None, None]
        return [
            _Term(*_unit(d.noise, scales.get(q)), self.side * d.top, self.side * d.bottom)
            for d, q in zip(ratio.directions, owners, strict=False)
        ]

    def along(self, weights: Sequence[float], i: int) -> sympy.Expr:
        """Return a corner's noise along a direction, given as a factor for each noise."""
        terms = zip(weights, self.corners[i], self.noises, strict=True)
        return sympy.Add(*(_number(w * z) * term.factor for w, z, term in terms))

    def most(self, weights: Sequence[float]) -> sympy.Expr:
        """Return the largest noise along a direction."""
        corners = _foremost(self.corners, np.sign(weights))
        return _extreme(sympy.Max, [self.along(weights, i) for i in corners])

    def extent(self, weights: Sequence[float]) -> sympy.Expr:
        """Return how far the noise extends along a direction."""
        return self.most(weights) + self.most([-w for w in weights])

    def upwards(self, d: int, start: float, end: float) -> sympy.Expr:
        """Return the first ratio d·A/B from ``start`` on that is not excluded."""
        if start == end:
            return _number(start)
        tops, bottoms = [d * t for t in self.tops], self.bottoms
        if math.isinf(start) and not any(bottoms):
            return (d * self.top - self.most(tops)) / self.bottom
        signs = self._signs(tops, start, end)
        corners = sorted({i for one in signs for i in _foremost(self.corners, one)})
        points = [
            (d * self.top - self.along(tops, i), self.bottom - self.along(bottoms, i))
            for i in corners
        ]
        slack = _number(SLACK) * self.extent(bottoms)
        if math.isinf(start):
            ratios = [a / sympy.Max(b, slack, evaluate=False) for a, b in points]
            clear = self.bottom > self.most(bottoms) + slack
            return _case(_extreme(sympy.Min, ratios), clear, -_FARTHEST)  # the box is nearer
        known = _number(start)
        slack = _number(SLACK) * self.extent(tops) + abs(known) * slack
        steep = [b / sympy.Max(a - known * b, slack, evaluate=False) for a, b in points]
        least = _number(1 / (end - start)) if end < math.inf else 1 / _FARTHEST
        beyond = self.most([a - start * b for a, b in zip(tops, bottoms, strict=True)])
        clear = sympy.And(
            d * self.top - known * self.bottom > beyond + slack,
            self.bottom > -self.most([-b for b in bottoms]),
        )
        return _case(known + 1 / _extreme(sympy.Max, [*steep, least]), clear, known)

    def _signs(self, tops: Sequence[float], start: float, end: float) -> Iterator[Floats]:
        """Yield the signs that top − r·bottom has for each noise, for r between two ends."""
        pairs = list(zip(tops, self.bottoms, strict=True))
        turns = [a / b for a, b in pairs if b and start < a / b < end]
        for low, high in pairwise(sorted([start, *turns, end])):
            r = (low + high) / 2 if math.isfinite(high - low) else min(max(0.0, low + 1), high - 1)
            yield np.sign([a - r * b for a, b in pairs])

    def box(self, tail: float) -> Ends:
        """Return the least and the largest ratio on a box around A and B, cut by the domain."""
        spans = []
        for k, value in enumerate((self.top, self.bottom)):
            low = high = value
            for noise, factor, *along in self.noises:
                moved = [-along[k] * end for end in reach(noise, tail)]
                low, high = low + _number(min(moved)) * factor, high + _number(max(moved)) * factor
            known = sorted(self.side * end for end in self.ratio.known[k])
            spans.append((_limited(low, *known), _limited(high, *known)))
        (least, most), (near, far) = spans
        return (
            sympy.Min(least / near, least / far, evaluate=False),
            sympy.Max(most / near, most / far, evaluate=False),
        )


_FARTHEST = sympy.Integer(10) ** 30  # beyond every box


def _case(value: sympy.Expr, condition: sympy.Basic, otherwise: sympy.Expr) -> sympy.Expr:
    return sympy.Piecewise((value, condition), (otherwise, True), evaluate=False)


def _extreme(kind: type[sympy.Max | sympy.Min], terms: Sequence[sympy.Expr]) -> sympy.Expr:
    known = all(t.is_number for t in terms)
    return terms[0] if len(terms) == 1 else kind(*terms, evaluate=known)


def _foremost(corners: Floats, signs: Floats) -> list[int]:
    """Return the corners that may lie farthest along a direction of which the signs are known.

    Examples
    --------
    >>> square = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    >>> _foremost(square, np.array([1, 1])), _foremost(square, np.array([0, -1]))
    ([0, 1], [3])
    """
    points = corners * signs
    found: list[int] = []
    for i in np.lexsort((-points[:, 1], -points[:, 0])):
        if not found or points[i, 1] > points[found[-1], 1]:
            found.append(int(i))
    return sorted(found)
