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

import dataclasses
import math
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
import sympy

from trueup.errors import TrueupError
from trueup.formula.linear import Condition
from trueup.inverse.projection import FAR, HINT, case, least, limited, most, number, unit
from trueup.noise.noiseless import Noiseless
from trueup.noise.ratio_regions import QUADRANTS, reach, region
from trueup.noise.sum import weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Pair = tuple[float, float]

BOX = 0.05
"""The share of the probability of error for a box: other intervals grow by about 1 %."""

SLACK = 1e-9
"""What is nearer to 0 than this share of the extent of K counts as 0: quotients stay ordinary."""


class Direction(NamedTuple):
    """One noise, its scale if it is a multiple, and what it adds to numerator and denominator."""

    noise: Noise
    factor: Any
    top: float
    bottom: float


@dataclasses.dataclass(frozen=True, eq=False)
class Quotient:
    """A/B + c, A and B linear in the statistics, with noises along two directions at most.

    All that is known below is of A/B.

    Parameters
    ----------
    top, bottom
        The coefficients of A and of B, first the constant, then those of the statistics.
    shift
        The constant c, taken out so that A reads nothing that B does: s/n − 1 is s/n and −1.
    statistics, tied
        What is known of each published number, and conditions between them.
    empty
        What A/B is by convention where B = 0; all else is then known for B ≠ 0.
    """

    top: Floats
    bottom: Floats
    shift: float
    statistics: Sequence[Statistic]
    tied: Sequence[Condition] = ()
    empty: float | None = None

    # -- what the domain says ----------------------------------------------------------------------

    @cached_property
    def _limits(self) -> tuple[Floats, Floats]:
        """The domain as rows G·q ≤ g: the conditions, and the bounds of each statistic."""
        names = [s.symbol.name for s in self.statistics]
        tied = [[-float(dict(c.terms).get(n, 0)) for n in names] for c in self.tied]
        rows = np.array([*tied, *-np.eye(len(names)), *np.eye(len(names))])
        lows = [float(s.domain.low) for s in self.statistics]
        highs = [float(s.domain.high) for s in self.statistics]
        sides = np.array([*(-float(c.low) for c in self.tied), *np.negative(lows), *highs])
        return rows[np.isfinite(sides)], sides[np.isfinite(sides)]

    def least(self, top: Floats, bottom: Floats | None = None) -> float:
        """Return the least value of a linear form, or of a quotient of two, on the domain.

        With y = q·t and t = 1/bottom > 0 it is a linear programme in y and t.
        """
        rows, sides = self._limits
        found = scipy.optimize.linprog(
            np.roll(top, -1),
            A_ub=np.column_stack([rows, -sides]),
            b_ub=np.zeros(len(sides)),
            A_eq=[np.roll(np.eye(len(top))[0] if bottom is None else bottom, -1)],
            b_eq=[1.0],
            bounds=[(None, None)] * (len(top) - 1) + [(0, None)],
        ).fun
        return float(found) if found is not None else -math.inf

    @cached_property
    def known(self) -> tuple[Pair, Pair]:
        """Where A lies on the domain, and B."""
        a, b = ((self.least(form), -self.least(-form)) for form in (self.top, self.bottom))
        return a, b

    @cached_property
    def sign(self) -> int:
        """The sign that B is known to have, it may also be 0; 0 if it is not known."""
        low, high = self.known[1]
        return 1 if low >= 0 else -1 if high <= 0 else 0

    @cached_property
    def range(self) -> Pair:
        """Where the ratio lies on the domain."""
        if not self.sign:
            return -math.inf, math.inf
        top, bottom = self.sign * self.top, self.sign * self.bottom
        return self.least(top, bottom), -self.least(-top, bottom)

    @cached_property
    def boxed(self) -> bool:
        """Whether a box is worth its share: B is away from 0, and A has noises of its own."""
        away = self.known[1][0] > 0 or self.known[1][1] < 0
        return away and any(self.bottom[1:]) and not any(self.top[1:] * self.bottom[1:])

    @property
    def endless(self) -> bool:
        """Whether an interval may be without end."""
        return not self.boxed and any(self.bottom[1:]) and bool(np.isinf(self.range).any())

    # -- intervals ---------------------------------------------------------------------------------

    def interval(
        self, x: Sequence[Any], level: float, noises: Sequence[tuple[Noise, Any]]
    ) -> tuple[Any, Any]:
        """Return low and high ends at published values, given noises and scales in their place."""
        along = directions(self.top[1:], self.bottom[1:], noises)
        a, b = (
            number(form[0]) + sum(number(c) * v for c, v in zip(form[1:], x, strict=True))
            for form in (self.top, self.bottom)
        )

        def noise(tail: float) -> Offsets:
            return Offsets(along, region(along[0].noise, along[1].noise, tail))

        error = 1 - level
        low, high = self.between((a, b), error, noise, partial(_reach, along))
        if self.empty is not None:
            ends = _reach(along, 1, error / sum(bool(d.bottom) for d in along))
            likely = b <= ends[1] if self.sign > 0 else b >= ends[0]  # as B = 0 is published
            low = least(low, case(likely, number(self.empty), math.inf))
            high = most(high, case(likely, number(self.empty), -math.inf))
        return number(self.shift) + low, number(self.shift) + high

    def between(
        self,
        sums: tuple[Any, Any],
        error: float,
        noise: Callable[[float], Offsets],
        reached: Callable[[int, float], Pair],
        cells: int = 1,
    ) -> tuple[Any, Any]:
        """Return the ends for A/B, or for a ratio of sums over cells, from published sums.

        ``noise`` gives a region of the noise of both, ``reached`` the ends of that of one of them.
        """
        offsets = noise(error * (1 - BOX * self.boxed) / 2)
        low, high = offsets.believed(*sums, self.range, self.sign)
        if self.boxed:
            spans = []
            for side, value in enumerate(sums):
                known = [cells * end for end in self.known[side]]
                ends = (value - end for end in reversed(reached(side, error * BOX / 4)))
                spans.append([limited(end, *known) for end in ends])
            small, large = spans[0][:: self.sign]
            first = least(*(small / b for b in spans[1]))
            last = most(*(large / b for b in spans[1]))
            low, high = (least(most(end, first), last) for end in (low, high))
        return limited(low, *self.range), limited(high, *self.range)


def _reach(along: Sequence[Direction], side: int, tail: float) -> tuple[Any, Any]:
    """Return the ends of the noise of A, or of B: of each direction beyond with a probability."""
    low, high = 0, 0
    for d in along:
        moved = [(d.bottom if side else d.top) * end for end in reach(d.noise, tail)]
        low, high = low + number(min(moved)) * d.factor, high + number(max(moved)) * d.factor
    return low, high


@dataclasses.dataclass(frozen=True)
class Offsets:
    """The noise of (A, B): corners of a region of two noises by quadrants, and what each adds."""

    along: Sequence[Direction]
    corners: Floats

    def believed(self, a: Any, b: Any, known: Pair, sign: int) -> tuple[Any, Any]:
        """Return the ends of the ratios A/B believed, in a range that is known.

        From a known lower bound L upwards a ratio r is excluded as long as A − r·B > 0 on all of
        (a, b) − K, and from an upper bound downwards as long as r·B − A > 0. That A − L·B is
        negative is known not to be, and excludes nothing. Where B has no known ``sign`` it has that
        of b.
        """
        if not sign:
            ends = zip(*(self.believed(a, b, known, side) for side in (1, -1)), strict=True)
            low, high = (case(b >= 0, *pair) for pair in ends)
            return low, high
        low = self._upwards((sign * a, sign * b), (sign, sign), known)
        down = self._upwards((-sign * a, sign * b), (-sign, sign), (-known[1], -known[0]))
        return low, -down

    def _upwards(self, sums: tuple[Any, Any], signs: tuple[int, int], known: Pair) -> Any:
        """Return the first ratio A/B ≥ ``known[0]`` that is not excluded, where B ≥ 0.

        ``signs`` are those by which A and B are to be multiplied.
        """
        (a, b), (u, v), (start, end) = sums, signs, known
        if start == end:
            return number(start)
        if math.isinf(start) and not any(d.bottom for d in self.along):
            return (a - self._most(u, 0)) / b
        foremost = (self._foremost(u, -r * v) for r in self._between_turns(u * v, known))
        corners = np.unique(np.concatenate(list(foremost)), axis=0)
        points = [(a - self._at(c, u, 0), b - self._at(c, 0, v)) for c in corners]
        above, below = self._most(0, v), self._most(0, -v)
        slack = number(SLACK) * (above + below)
        if math.isinf(start):
            ratios = [p / most(q, slack) for p, q in points]
            return case(b > above + slack, least(*ratios), -math.inf)
        first = number(start)
        slack = number(SLACK) * (self._most(u, 0) + self._most(-u, 0)) + abs(first) * slack
        steep = [q / most(p - first * q, slack) for p, q in points]
        excluded = (a - first * b > self._most(u, -start * v) + slack) & (b > -below)
        flattest = number(max(1 / (end - start), 1 / FAR))
        return case(excluded, first + 1 / most(*steep, flattest), first)

    def _between_turns(self, sign: int, known: Pair) -> Iterator[float]:
        """Yield ratios, one between any two at which a noise changes its side of A − r·B."""
        turns = [sign * d.top / d.bottom for d in self.along if d.bottom]
        inner = [r for r in turns if known[0] < r < known[1]]
        for low, high in pairwise(sorted([*known, *inner])):
            middle = (low + high) / 2
            yield middle if math.isfinite(middle) else min(max(0.0, low + 1), high - 1)

    def _foremost(self, top: float, bottom: float) -> Floats:
        """Return the corners that may lie farthest along top·A + bottom·B, by signs alone."""
        signs = np.sign([top * d.top + bottom * d.bottom for d in self.along])
        corners = self.corners[(QUADRANTS * signs >= 0).all(axis=1)].reshape(-1, 2)
        far = (corners * signs)[:, None]
        beaten = np.all(far <= far[:, 0], axis=2) & np.any(far < far[:, 0], axis=2)
        return np.unique(corners[~np.any(beaten, axis=1)], axis=0)

    def _most(self, top: float, bottom: float) -> Any:
        """Return the largest noise of top·A + bottom·B."""
        return most(*(self._at(c, top, bottom) for c in self._foremost(top, bottom)))

    def _at(self, corner: Floats, top: float, bottom: float) -> Any:
        pairs = zip(corner.tolist(), self.along, strict=True)
        return sum(number((top * d.top + bottom * d.bottom) * z) * d.factor for z, d in pairs)


# -- which formulas are quotients ------------------------------------------------------------------


def quotient(
    f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Quotient | None:
    """Return f as a quotient of linear forms whose noise is known, None if it is none.

    Examples
    --------
    >>> from trueup import Interval, Laplace
    >>> from trueup.inverse.solve import Statistic
    >>> s, n = sympy.symbols("s n", real=True)
    >>> known = [Statistic(q, Laplace(1), Interval(1, None)) for q in (s, n)]
    >>> quotient(100 * s / n, known, ()).range, quotient(s**2 / n, known, ())
    ((0.0, inf), None)
    """
    made = (_or_empty if isinstance(f, sympy.Piecewise) else linear)(f, statistics, tied)
    try:
        if made is not None:
            directions(made.top[1:], made.bottom[1:], [(s.noise, None) for s in statistics])
    except TrueupError:
        return None
    return made


def linear(
    f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Quotient | None:
    """Return f as a quotient of linear forms, None if it is none."""
    symbols = [s.symbol for s in statistics]
    parts = sympy.fraction(sympy.together(f)) if f.is_rational_function(*symbols) else ()
    forms = [form for part in parts if (form := _linear(part, symbols)) is not None]
    if len(forms) != 2:
        return None
    top, bottom = forms
    both = np.flatnonzero(bottom[1:]) + 1
    shares = {*(top[both] / bottom[both])}
    shift = float(shares.pop()) if len(shares) == 1 else 0.0
    if shift:
        top = top - shift * bottom
        top[both] = 0.0  # without rounding
    return Quotient(top, bottom, shift, statistics, tied)


def _or_empty(
    f: sympy.Piecewise, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Quotient | None:
    """Return a quotient with a value where its denominator, an integer ≥ 0, is 0; None else."""
    (value, empty), (rest, _) = f.args[0], f.args[-1]
    plain = linear(rest, statistics, tied) if len(f.args) == 2 and value.is_number else None
    if plain is None or not isinstance(empty, sympy.Eq):
        return None
    form = _linear(empty.lhs - empty.rhs, [s.symbol for s in statistics])
    if form is None or np.linalg.matrix_rank([form, plain.bottom]) != 1:
        return None
    used = [(s, int(c)) for s, c in zip(statistics, form[1:], strict=True) if c]
    if (form % 1).any() or plain.least(form) < 0 or not all(s.noise.lattice for s, _ in used):
        return None
    terms = tuple((s.symbol.name, sympy.Integer(c)) for s, c in used)
    some = Condition(terms, sympy.Integer(1 - int(form[0])))
    return dataclasses.replace(plain, tied=(*tied, some), empty=float(value) - plain.shift)


def _linear(part: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Floats | None:
    """Return the constant and the coefficients of a linear form."""
    poly = sympy.Poly(sympy.expand(part), *symbols)
    if poly.total_degree() > 1:
        return None
    return np.array([float(poly.coeff_monomial(q)) for q in (1, *symbols)])


def directions(
    top: Floats,
    bottom: Floats,
    noises: Sequence[tuple[Noise, Any]],
) -> list[Direction]:
    """Return independent noises along two directions; refuse more, and laws that are not known.

    They are given with scales that replace their own, or None.
    """
    rows = zip(top.tolist(), bottom.tolist(), noises, strict=True)
    noisy = [(a, b, *noise) for a, b, noise in rows if (a or b) and not noise[0].known]
    groups: dict[float, list[tuple[float, float, Noise, Any]]] = {}
    for i, (a, b, noise, scale) in enumerate(noisy):  # two alone need not be one
        line = (a / b if b else math.inf) if len(noisy) > 2 else i
        groups.setdefault(line, []).append((a, b, noise, scale))
    if len(groups) > 2:
        raise TrueupError(f"noises along {len(groups)} directions", "two are possible")
    made = []
    for (a, b, noise, scale), *more in groups.values():
        if more and any(member[-1] is not None for member in ((scale,), *more)):
            raise TrueupError(
                f"the interval of a ratio of {len(noisy)} statistics has no formula in their "
                "noise scales",
                HINT,
            )
        law = weighted([(1.0, noise), *((c / a if a else d / b, z) for c, d, z, _ in more)])
        law.quantile(0.5)  # refused if only moments are known
        made.append(Direction(*unit(law, scale), a, b))
    return made + [Direction(Noiseless(), 1.0, 0.0, 0.0)] * (2 - len(made))
