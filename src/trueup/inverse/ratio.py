"""Intervals for ratios of sums, (a₀ + Σ aᵢqᵢ)/(b₀ + Σ bᵢqᵢ), from the noise of A − r·B.

At the true ratio A − r·B is 0 whatever A and B are, and its published value is noise. The ratios
that this leaves are those of the points of x − K, K a region of the noise
(:mod:`trueup.noise.ratio_regions`): from each known end of the ratio on, the first one that K does
not exclude. Bounds add two things: the ratio stays within its range on the domain, and
a denominator that is bounded away from 0 bounds the ratio by a box, for which a small share
of the probability of error is kept. Of a ratio with a value where B = 0, an empty cell, the
interval for B ≥ 1 is given, with that value in it where an empty cell could be published so.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy
import sympy

from trueup.errors import TrueupError
from trueup.formula.linear import Condition
from trueup.inverse.projection import HINT, case, limited, number, unit, unscaled
from trueup.noise.noiseless import Noiseless
from trueup.noise.ratio_regions import reach, region, with_quantiles
from trueup.noise.sum import weighted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.projection import Formulas, Scales
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

BOX = 0.05
"""The share of the probability of error for a box: other intervals grow by about 1 %."""

SLACK = 1e-9
"""What is nearer to 0 than this share of the extent of K counts as 0: quotients stay ordinary."""

_ROWS = 4096  # at once: with 48 corners a few megabytes


class Direction(NamedTuple):
    """One noise, and what a unit of it adds to numerator and denominator."""

    noise: Noise
    top: float
    bottom: float


class Quotient:
    """A/B, both linear in the statistics, with noises along two directions at most.

    It is ``shift`` + A′/B: all that is known below is of A′/B, ``top``/``bottom``.

    Parameters
    ----------
    top, bottom
        The coefficients of A and of B, first the constant, then those of the statistics.
    statistics
        What is known of each published number.
    tied
        Conditions between them.
    empty
        What A/B is by convention where B = 0; all else is then known for B ≠ 0.
    """

    def __init__(
        self,
        top: Sequence[float] | Floats,
        bottom: Sequence[float] | Floats,
        statistics: Sequence[Statistic],
        tied: Sequence[Condition] = (),
        empty: float | None = None,
    ) -> None:
        self.top, self.bottom = np.array(top, float), np.array(bottom, float)
        self.statistics, self.tied = statistics, tied
        self.shift = self._split()
        self.empty = None if empty is None else empty - self.shift

    def _split(self) -> float:
        """Take c out of A/B = c + A′/B where A′ reads nothing that B does: s/n − 1 is −1 + s/n."""
        noisy = np.flatnonzero(self.bottom[1:]) + 1
        shares = {*(self.top[noisy] / self.bottom[noisy])}
        if len(shares) != 1:
            return 0.0
        (shift,) = shares
        self.top = self.top - shift * self.bottom
        self.top[noisy] = 0.0
        return float(shift)

    @cached_property
    def directions(self) -> list[Direction]:
        """The noises, each with its direction; refused are more than two, and unknown laws."""
        return directions(self.top[1:], self.bottom[1:], [s.noise for s in self.statistics])

    def under(self, statistics: Sequence[Statistic]) -> Quotient:
        """Return the same quotient under other noises."""
        if statistics is self.statistics:
            return self
        other = Quotient(self.top, self.bottom, statistics, self.tied, self.empty)
        known = ("shift", "sign", "nearest", "range", "known")
        other.__dict__ |= {k: getattr(self, k) for k in known}
        return other

    # -- what the domain says ----------------------------------------------------------------------

    @cached_property
    def _domain(self) -> tuple[Floats, Floats, list[tuple[float, float]]]:
        """The rows G·q ≤ g of the conditions, and the bounds of each statistic."""
        names = [s.symbol.name for s in self.statistics]
        rows = [[-float(dict(c.terms).get(n, 0)) for n in names] for c in self.tied]
        box = [(float(s.domain.low), float(s.domain.high)) for s in self.statistics]
        return (
            np.array(rows).reshape(-1, len(names)),
            np.array([-float(c.low) for c in self.tied]),
            box,
        )

    def least(self, form: Floats) -> float:
        """Return the least value of a linear form on the domain."""
        rows, sides, box = self._domain
        found = scipy.optimize.linprog(form[1:], rows, sides, bounds=box)
        least = found.fun
        return float(form[0]) + float(least) if least is not None else -math.inf

    @cached_property
    def sign(self) -> int:
        """The sign that B is known to have, it may also be 0; 0 if it is not known."""
        if self.least(self.bottom) >= 0:
            return 1
        return -1 if self.least(-self.bottom) >= 0 else 0

    @cached_property
    def nearest(self) -> float:
        """How far from 0 the denominator is known to be."""
        return max(0.0, self.least(self.sign * self.bottom)) if self.sign else 0.0

    @cached_property
    def range(self) -> tuple[float, float]:
        """Where the ratio lies on the domain: with y = q·t, t = 1/B, a linear programme."""
        if not self.sign:
            return -math.inf, math.inf
        rows, sides, box = self._domain
        limits = [
            (np.eye(len(box))[i] * side, side * end)
            for i, ends in enumerate(box)
            for side, end in zip((-1, 1), ends, strict=True)
            if math.isfinite(end)
        ]
        g = np.concatenate([rows, np.array([row for row, _ in limits]).reshape(-1, len(box))])
        h = np.concatenate([sides, [end for _, end in limits]])
        ends = []
        for side in (1, -1):
            form = side * self.sign * self.top
            found = scipy.optimize.linprog(
                [*form[1:], form[0]],
                A_ub=np.column_stack([g, -h]) if len(h) else None,
                b_ub=np.zeros(len(h)) if len(h) else None,
                A_eq=[[*(self.sign * self.bottom)[1:], self.sign * self.bottom[0]]],
                b_eq=[1.0],
                bounds=[(None, None)] * len(box) + [(0, None)],
            )
            least = found.fun
            ends.append(side * float(least) if least is not None else -side * math.inf)
        return ends[0], ends[1]

    @cached_property
    def known(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where A lies on the domain, and B."""
        a, b = ((self.least(form), -self.least(-form)) for form in (self.top, self.bottom))
        return a, b

    @cached_property
    def boxed(self) -> bool:
        """Whether a box is worth its share: B is away from 0, and A′ has noises of its own."""
        return self.nearest > 0 and any(self.bottom[1:]) and not any(self.top[1:] * self.bottom[1:])

    # -- intervals ---------------------------------------------------------------------------------

    def interval(self, x: Sequence[Floats], level: float) -> tuple[Floats, Floats]:
        """Return low and high ends at published values, arrays of one length."""
        published = np.stack([np.asarray(v, float) for v in x])
        a = self.top[0] + self.top[1:] @ published
        b = self.bottom[0] + self.bottom[1:] @ published
        low, high = self.ends(a, b, level)
        return self.shift + low, self.shift + high

    def ends(self, a: Floats, b: Floats, level: float) -> tuple[Floats, Floats]:
        """Return low and high ends of A′/B at published numerators and denominators."""
        error = 1 - level
        polygon = self._corners(error * (1 - BOX * self.boxed) / 2)
        parts = [slice(i, i + _ROWS) for i in range(0, len(a), _ROWS)]
        found = [hull(a[p], b[p], polygon, self.range, self.sign) for p in parts]
        low = np.concatenate([lo for lo, _ in found]) if found else np.empty(0)
        high = np.concatenate([hi for _, hi in found]) if found else np.empty(0)
        if self.boxed:
            box = self._box(a, b, error * BOX / 4)
            low, high = np.clip(low, *box), np.clip(high, *box)
        missing = np.isnan(a) | np.isnan(b)
        low, high = (np.where(missing, np.nan, np.clip(end, *self.range)) for end in (low, high))
        if self.empty is not None:
            likely = self.sign * b <= self.most_of_none(error)
            low = np.where(likely, np.minimum(low, self.empty), low)
            high = np.where(likely, np.maximum(high, self.empty), high)
        return low, high

    def most_of_none(self, error: float) -> float:
        """Return what |B| is published as, at most, where it is 0."""
        along = [(d.noise, self.sign * d.bottom) for d in self.directions if d.bottom]
        return sum(max(c * end for end in reach(z, error / len(along))) for z, c in along)

    def _corners(self, tail: float) -> Floats:
        """Return the corners of the noise of (A, B)."""
        return corners(self.directions, tail)

    def _box(self, a: Floats, b: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return the least and the largest ratio on a box around A and B, cut by the domain."""
        spans = []
        for side, value in enumerate((a, b)):
            low = high = 0.0
            for noise, *along in self.directions:
                moved = [-along[side] * end for end in reach(noise, tail)]
                low, high = low + min(moved), high + max(moved)
            spans.append([np.clip(value + end, *self.known[side]) for end in (low, high)])
        with np.errstate(invalid="ignore"):
            ends = [p / q for p in spans[0] for q in spans[1]]
        ends = [np.where(np.isnan(e), 0.0, e) for e in ends]  # ∞/∞: between the others
        return np.minimum.reduce(ends), np.maximum.reduce(ends)


def corners(pair: Sequence[Direction], tail: float) -> Floats:
    """Return the corners of the noise of (A, B) along two directions."""
    (first, along), (second, across) = (unscaled(d.noise) for d in pair)
    made = region(with_quantiles(first), with_quantiles(second), tail)
    turned = np.array([[d.top, d.bottom] for d in pair]) * [[along], [across]]
    return np.asarray(made.corners @ turned)


def hull(
    a: Floats, b: Floats, polygon: Floats, known: tuple[float, float], sign: int
) -> tuple[Floats, Floats]:
    """Return the ends of the ratios A/B believed, in a range that is known.

    From a known lower bound L upwards a ratio r is excluded as long as A − r·B > 0 on all of
    (a, b) − K, and from an upper bound downwards as long as r·B − A > 0. That A − L·B is negative
    is known not to be, and excludes nothing. Where B has no known ``sign`` it has that of b.
    """
    side = np.where(b < 0, -1.0, 1.0) if not sign else np.full(b.shape, float(sign))
    top, bottom = (
        side[:, None] * (value[:, None] - polygon[:, i]) for i, value in enumerate((a, b))
    )
    slack = SLACK * np.ptp(polygon, axis=0)
    low = _upwards(top, bottom, known[0], slack)
    return low, -_upwards(-top, bottom, -known[1], slack)


def _upwards(top: Floats, bottom: Floats, start: float, slack: Floats) -> Floats:
    """Return the first ratio from ``start`` on that the points (top, bottom) do not exclude."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if start == -math.inf:
            clear = (bottom > slack[1]).all(axis=1)
            return np.where(clear, (top / bottom).min(axis=1), start)
        above = top - start * bottom
        clear = (above > slack[0] + abs(start) * slack[1]).all(axis=1)
        steepest = (bottom / above).max(axis=1)
        return np.where(clear & (steepest > 0), start + 1 / steepest, start)


# -- which formulas are quotients ------------------------------------------------------------------


def quotient(
    f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Quotient | None:
    """Return f as a quotient of linear forms whose noise is known, None if it is none.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise import Laplace
    >>> s, n = sympy.symbols("s n", real=True)
    >>> known = [Statistic(q, Laplace(1), Interval(1, None)) for q in (s, n)]
    >>> quotient(100 * s / n, known, ()).range, quotient(s**2 / n, known, ())
    ((0.0, inf), None)
    """
    by_convention = isinstance(f, sympy.Piecewise)
    made = (_or_empty if by_convention else linear)(f, statistics, tied)
    try:
        return made if made is not None and made.directions else None
    except TrueupError:
        return None


def linear(
    f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Quotient | None:
    """Return f as a quotient of linear forms, None if it is none."""
    symbols = [s.symbol for s in statistics]
    parts = sympy.fraction(sympy.together(f)) if f.is_rational_function(*symbols) else ()
    forms = [_linear(part, symbols) for part in parts]
    if len(forms) != 2 or forms[0] is None or forms[1] is None:
        return None
    return Quotient(forms[0], forms[1], statistics, tied)


def _or_empty(
    f: sympy.Piecewise, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Quotient | None:
    """Return a quotient with a value where its denominator, an integer ≥ 0, is 0; None else."""
    (value, empty), (rest, _) = f.args[0], f.args[-1]
    whole = {s.symbol for s in statistics if s.noise.lattice}
    plain = linear(rest, statistics, tied) if len(f.args) == 2 and value.is_number else None
    if plain is None or not isinstance(empty, sympy.Eq) or not empty.free_symbols <= whole:
        return None
    form = np.array(_linear(empty.lhs - empty.rhs, [s.symbol for s in statistics]) or ())
    if len(form) == 0 or (form % 1).any() or plain.least(form) < 0:
        return None
    if np.linalg.matrix_rank([form, plain.bottom]) != 1:
        return None
    named = zip((s.symbol.name for s in statistics), form[1:], strict=True)
    terms = tuple((name, sympy.Integer(int(c))) for name, c in named if c)
    some = Condition(terms, sympy.Integer(1 - int(form[0])))
    top = plain.top + plain.shift * plain.bottom
    return Quotient(top, plain.bottom, statistics, (*tied, some), float(value))


def _linear(part: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> list[float] | None:
    """Return the constant and the coefficients of a linear form."""
    poly = sympy.Poly(sympy.expand(part), *symbols)
    if poly.total_degree() > 1:
        return None
    return [float(poly.coeff_monomial(q)) for q in (1, *symbols)]


def directions(top: Floats, bottom: Floats, noises: Sequence[Noise]) -> list[Direction]:
    """Return independent noises along two directions; refuse more, and laws that are not known."""
    noisy = [
        (float(a), float(b), noise)
        for a, b, noise in zip(top, bottom, noises, strict=True)
        if (a or b) and not noise.known
    ]
    found: list[tuple[float, float, list[tuple[float, Noise]]]] = []
    for a, b, noise in noisy:
        for c, d, members in found:
            if len(noisy) > 2 and a * d == b * c:  # two alone need not be one
                members.append((a / c if c else b / d, noise))
                break
        else:
            found.append((a, b, [(1.0, noise)]))
    if len(found) > 2:
        raise TrueupError(f"noises along {len(found)} directions", "two are possible")
    made = [Direction(weighted(members), a, b) for a, b, members in found]
    for direction in made:
        with_quantiles(direction.noise).quantile(0.5)  # refused if only moments are known
    return made + [Direction(Noiseless(), 0.0, 0.0)] * (2 - len(made))


# -- as formulas -----------------------------------------------------------------------------------


def of_ratio(ratio: Quotient, level: float, scales: Scales) -> Formulas:
    """Return the ends for A/B; see :func:`trueup.inverse.ratio.hull`."""
    if not ratio.sign:
        raise TrueupError(
            "the interval of a ratio has no formula where the sign of the denominator is not known",
            HINT,
        )
    low, high = ratio.range
    if not ratio.boxed and any(d.bottom for d in ratio.directions) and math.isinf(high - low):
        raise TrueupError("the interval may be without end, which is no number in SQL", HINT)
    error = 1 - level
    made = _Ratio(ratio, scales, error * (1 - BOX * ratio.boxed) / 2)
    ends = made.upwards(1, low, high), -made.upwards(-1, -high, -low)
    if ratio.boxed:
        least, most = made.box(error * BOX / 4)
        ends = _between(ends[0], least, most), _between(ends[1], least, most)
    ends = limited(ends[0], low, high), limited(ends[1], low, high)
    if ratio.empty is not None:
        value, likely = number(ratio.empty), made.bottom <= number(ratio.most_of_none(error))
        ends = (
            sympy.Min(ends[0], case(value, likely, _FARTHEST), evaluate=False),
            sympy.Max(ends[1], case(value, likely, -_FARTHEST), evaluate=False),
        )
    return number(ratio.shift) + ends[0], number(ratio.shift) + ends[1]


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
        return sympy.Add(*(number(self.side * float(c)) * x for c, x in terms))

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
                HINT,
            )
        owners = [*noisy[:2], None, None]
        return [
            _Term(*unit(d.noise, scales.get(q)), self.side * d.top, self.side * d.bottom)
            for d, q in zip(ratio.directions, owners, strict=False)
        ]

    def along(self, weights: Sequence[float], i: int) -> sympy.Expr:
        """Return a corner's noise along a direction, given as a factor for each noise."""
        terms = zip(weights, self.corners[i], self.noises, strict=True)
        return sympy.Add(*(number(w * z) * term.factor for w, z, term in terms))

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
            return number(start)
        tops, bottoms = [d * t for t in self.tops], self.bottoms
        if math.isinf(start) and not any(bottoms):
            return (d * self.top - self.most(tops)) / self.bottom
        signs = self._signs(tops, start, end)
        corners = sorted({i for one in signs for i in _foremost(self.corners, one)})
        points = [
            (d * self.top - self.along(tops, i), self.bottom - self.along(bottoms, i))
            for i in corners
        ]
        slack = number(SLACK) * self.extent(bottoms)
        if math.isinf(start):
            ratios = [a / sympy.Max(b, slack, evaluate=False) for a, b in points]
            clear = self.bottom > self.most(bottoms) + slack
            return case(_extreme(sympy.Min, ratios), clear, -_FARTHEST)  # the box is nearer
        known = number(start)
        slack = number(SLACK) * self.extent(tops) + abs(known) * slack
        steep = [b / sympy.Max(a - known * b, slack, evaluate=False) for a, b in points]
        least = number(1 / (end - start)) if end < math.inf else 1 / _FARTHEST
        beyond = self.most([a - start * b for a, b in zip(tops, bottoms, strict=True)])
        clear = sympy.And(
            d * self.top - known * self.bottom > beyond + slack,
            self.bottom > -self.most([-b for b in bottoms]),
        )
        return case(known + 1 / _extreme(sympy.Max, [*steep, least]), clear, known)

    def _signs(self, tops: Sequence[float], start: float, end: float) -> Iterator[Floats]:
        """Yield the signs that top − r·bottom has for each noise, for r between two ends."""
        pairs = list(zip(tops, self.bottoms, strict=True))
        turns = [a / b for a, b in pairs if b and start < a / b < end]
        for low, high in pairwise(sorted([start, *turns, end])):
            r = (low + high) / 2 if math.isfinite(high - low) else min(max(0.0, low + 1), high - 1)
            yield np.sign([a - r * b for a, b in pairs])

    def box(self, tail: float) -> Formulas:
        """Return the least and the largest ratio on a box around A and B, cut by the domain."""
        spans = []
        for k, value in enumerate((self.top, self.bottom)):
            low = high = value
            for noise, factor, *along in self.noises:
                moved = [-along[k] * end for end in reach(noise, tail)]
                low, high = low + number(min(moved)) * factor, high + number(max(moved)) * factor
            known = sorted(self.side * end for end in self.ratio.known[k])
            spans.append((limited(low, *known), limited(high, *known)))
        (least, most), (near, far) = spans
        return (
            sympy.Min(least / near, least / far, evaluate=False),
            sympy.Max(most / near, most / far, evaluate=False),
        )


_FARTHEST = sympy.Integer(10) ** 30  # beyond every box


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
