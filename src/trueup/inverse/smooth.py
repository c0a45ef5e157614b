"""Whether f is smooth where the true values are: proven on cells, or seen at a point not to be.

Tiny cells that the proof leaves open are judged by one-sided values and slopes: a pole, jump, kink
or infinite slope; two cases of one statistic that meet smoothly; else nothing could be shown.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.exact import symbolic
from trueup.formula.substitution import at, decimal, denominators, real
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import (
    FAR,
    SMALLEST,
    Cell,
    Question,
    Walk,
    guards,
    guards_of,
    undecided,
)
from trueup.inverse.signs import KINKED, chosen, without_kinks
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from trueup.formula.linear import Condition
    from trueup.inverse.signs import Box


class Kind(enum.Enum):
    """What f does at a point where it is not analytic."""

    POLE = "f is unbounded"
    JUMP = "the value jumps"
    STEEP = "the slope is unbounded"
    KINK = "the slope jumps"
    UNDEFINED = "f is not a real number"
    UNDECIDED = "nothing could be shown"
    MILD = "harmless for unbiasedness"


@dataclasses.dataclass(frozen=True)
class Trouble:
    """A place where f is not analytic, and what it looks like there.

    ``gap`` is by how much the value jumps, or the derivative that is named; ``exponent`` is the
    order |q − a|^exponent of f at a pole, of its last derivative that matters otherwise. ``where``
    are values of other statistics.
    """

    kind: Kind
    symbol: sympy.Symbol
    exact: sympy.Expr
    gap: float = 0.0
    exponent: float = 0.0
    where: Mapping[sympy.Symbol, sympy.Expr] = dataclasses.field(default_factory=dict)

    @property
    def point(self) -> float:
        """The place along the statistic."""
        return float(self.exact)

    @property
    def proved(self) -> bool:
        """Whether it proves that no unbiased estimator exists."""
        return self.kind not in (Kind.MILD, Kind.UNDECIDED)


_NARROW = 1e-9  # relative width of cells in which a point is looked for
_CENTRES = 8  # of other cells, looked at for a place where f is not defined
_LOST = 1e-6  # of a constant in a denominator: nearer to 0 doubles keep no nine digits of it


def troubles(
    f: sympy.Expr,
    box: Box,
    orders: Mapping[sympy.Symbol, int],
    tied: Sequence[Condition] = (),
) -> Iterator[Trouble]:
    """Yield where f could not be shown to be smooth on a box; nothing if it is.

    ``orders`` says up to which derivative f matters along each statistic under continuous noise;
    along all others f must be defined. What is not in the box may be any number. True values meet
    the conditions of ``tied``.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> [(t.kind.name, t.point) for t in troubles(abs(q - 3), {q: Interval()}, {q: 2})]
    [('KINK', 3.0)]
    >>> list(troubles(1 / q, {q: Interval(1, None)}, {q: 2}))
    []
    """
    anywhere = dict.fromkeys(f.free_symbols - set(box), Interval())
    proof = _Proof(f, {**anywhere, **box}, orders, tuple(tied))
    yield from proof.troubles()
    yield from proof.lost()


def breaks(f: sympy.Expr, symbol: sympy.Symbol, box: Box, order: int = 2) -> list[Trouble]:
    """Return the points along one statistic at which f, or a derivative that matters, breaks.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> [(t.kind.name, t.point) for t in breaks(q * abs(q), q, {q: Interval()})]
    [('MILD', 0.0)]
    """
    found = [t for t in troubles(f, box, {symbol: order}) if t.symbol == symbol]
    return sorted(found, key=lambda t: t.point)


@dataclasses.dataclass(frozen=True)
class _Proof:
    """F on a box: what cells leave open, and what is seen there."""

    f: sympy.Expr
    box: Box
    orders: Mapping[sympy.Symbol, int]
    tied: tuple[Condition, ...]

    def troubles(self) -> Iterator[Trouble]:
        """Yield what is wrong along a line, each place once and near 0 first, or elsewhere."""
        done: set[object] = set()
        elsewhere: list[Trouble] = []
        for cell in self.open_cells():
            narrow = self._narrow(cell)
            if narrow:
                found = self._along(narrow[0], cell)
                if (found.kind, found.symbol, found.exact) not in done:
                    done.add((found.kind, found.symbol, found.exact))
                    yield found
            elif len(elsewhere) < _CENTRES:
                inside = self._inside(cell)
                elsewhere += [inside] if inside else []
        if elsewhere:
            yield max(elsewhere, key=lambda found: found.proved)

    def open_cells(self) -> list[Cell]:
        """Return the cells on which f is not proven to be analytic, those near 0 first."""
        own = {s: d for s, d in self.box.items() if s in self.f.free_symbols or self.tied}
        if not own:
            return []
        free, suspects = frozenset(self.box) - frozenset(self.orders), guards(self.f)
        left = undecided(
            Question(lambda w: w.range(self.f).sure, own, free, suspects, self.tied, True)
        )
        return sorted(left, key=lambda c: sum(max(0.0, a, -b) for a, b in c.values()))

    def lost(self) -> Iterator[Trouble]:
        """Yield a bound if a denominator comes so near 0 that doubles lose its digits."""
        own = {s: d for s, d in self.box.items() if s in self.f.free_symbols}
        walk = _walk({s: (float(d.low), float(d.high)) for s, d in own.items()})
        walk.tell(self.tied)
        for base in denominators(self.f):
            low, high, _ = walk.range(base)
            if 0 < max(low[0], -high[0]) < _LOST * abs(float(base.as_coeff_Add()[0])):
                places = [(s, end) for s, d in own.items() for end in ends_of(d)]
                finite = (place for place in places if place[1].is_finite)
                yield Trouble(Kind.UNDECIDED, *next(finite, places[0]))

    def _narrow(self, cell: Cell) -> list[sympy.Symbol]:
        """Return the statistics under continuous noise that a cell holds almost one value of."""
        return [
            s
            for s, (low, high) in cell.items()
            if s in self.orders
            and high - low < _NARROW * max(SMALLEST, min(max(abs(low), abs(high)), FAR))
        ]

    def _inside(self, cell: Cell) -> Trouble | None:
        """Return what f is at a point of a cell, None if that is all of it and has a value."""
        point = {s: self._plain(s, cell[s]) for s in cell}
        own = {s: x for s, x in point.items() if s in self.f.free_symbols}
        held = {s: x for s, x in own.items() if cell[s][0] == cell[s][1]}
        if at(self.f, held).has(sympy.nan, sympy.zoo):
            own = held  # whatever the others are
        defined = real(at(decimal(self.f), own), most=400) is not None
        columns = {s: np.array([float(x)]) for s, x in own.items()}
        if defined and held == own and np.isfinite(evaluate(self.f, columns)).all():
            return None
        named = {s.name: x for s, x in point.items()}
        allowed = all(c.excess(named) >= 0 for c in self.tied)
        kind = Kind.UNDEFINED if allowed and not defined else Kind.UNDECIDED
        (s, x), *others = own.items()
        return Trouble(kind, s, x, where=dict(others))

    def _along(self, s: sympy.Symbol, cell: Cell) -> Trouble:
        """Return what f does along one statistic in a cell that is narrow along it."""
        others = {t: self._plain(t, cell[t]) for t in cell if t != s}
        f = decimal(at(self.f, others))
        here = _place(f, s, cell[s], self.box[s]) if f.free_symbols else None
        if here is None:
            return Trouble(Kind.UNDECIDED, s, sympy.Float(cell[s][0]), where=others)
        ends = zip((-1, 1), ends_of(self.box[s]), strict=True)
        sides = tuple(side for side, end in ends if (end - here) * side > 0)
        found = _Line(f, s, here, sides, self.orders[s]).judged(cell[s])
        alone = all(cell[t][0] == cell[t][1] for t in self.f.free_symbols - {s})
        if found.kind is Kind.MILD and not alone:
            found = dataclasses.replace(found, kind=Kind.UNDECIDED)
        return dataclasses.replace(found, where=others)

    def _plain(self, s: sympy.Symbol, ends: tuple[float, float]) -> sympy.Expr:
        """Return a number of a cell at which nothing special happens."""
        low = ends[0] if math.isfinite(ends[0]) else min(ends[1], 9.0) - 8.6899692
        high = ends[1] if math.isfinite(ends[1]) else low + 8.6899692
        part = 0.6180339887 * (1 + sorted(self.box, key=str).index(s)) % 1  # no two alike
        x = low + part * (high - low)
        return sympy.Integer(math.floor(x)) if self.box[s].lattice else sympy.Rational(x)


def _walk(cell: Cell) -> Walk:
    """Return a walk over one cell."""
    return Walk({s: (np.array([low]), np.array([high])) for s, (low, high) in cell.items()})


_AROUND = 20  # integers on both sides of a bound, and of 0
_MOST_POINTS = 10_000


def undefined_near(f: sympy.Expr, box: Box) -> dict[sympy.Symbol, float] | None:
    """Return integers near bounds and 0 at which f has no finite value, None if there are none."""
    most, axes = round(_MOST_POINTS ** (1 / len(box))), []
    for domain in box.values():
        marks = [0, *(math.floor(b) for b in domain.bounds if b is not None)]
        near = {m + k for m in marks for k in range(-_AROUND, _AROUND + 1)}
        axes.append([float(k) for k in sorted(near, key=abs) if k in domain][:most])
    columns = {s: x.ravel() for s, x in zip(box, np.meshgrid(*axes), strict=True)}
    wrong = ~np.isfinite(evaluate(f, columns))
    return {s: float(x[np.argmax(wrong)]) for s, x in columns.items()} if wrong.any() else None


# -- one-sided values and slopes -------------------------------------------------------------------

_STEPS = tuple(sympy.Rational(1, 10**k) for k in (12, 22, 32))
_DIGITS = 40
_ALIKE = 1e-14  # relative to f nearby: a value may be off its limit by what rounded decimals leave
_ALIKE_EXACT = 1e-28
AWAY = sympy.Dummy("t", nonnegative=True)
"""The distance from a point: on its left (-q)**1.5 is t**1.5, whose slope is a number at 0."""
_DIVERGES = {0: Kind.POLE, 1: Kind.STEEP}
_JUMPS = {0: Kind.JUMP, 1: Kind.KINK}
"""What it is called if the value or the slope diverges, or jumps."""


def _tendency(case: sympy.Expr, size: sympy.Expr) -> tuple[sympy.Expr | None, bool, float]:
    """Return what an expression without cases does as the distance from a point goes to 0.

    That is its limit, None if none is known, whether it diverges, and its order as a power.
    """
    values = [real(at(case, {AWAY: h * size}), _DIGITS, 400) for h in _STEPS]
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return None, False, -math.inf
    first, second, third = map(abs, known)
    exponent = math.inf
    if first and third:
        exponent = float(sympy.log(first / third) / sympy.log(_STEPS[0] / _STEPS[2]))
    limit = real(at(case, {AWAY: sympy.S.Zero}), _DIGITS, 400)
    if limit is not None and 2 * abs(known[2] - limit) <= abs(known[0] - limit):
        return limit, False, exponent  # a change may halve: |q − a|^(1/33)
    grows = third > second > first > 0 and third - second > (second - first) / 2
    return None, bool(grows), exponent


class _Line(NamedTuple):
    """F along one statistic near a point, all other statistics held."""

    f: sympy.Expr
    symbol: sympy.Symbol
    here: sympy.Expr
    sides: tuple[int, ...]
    order: int

    def judged(self, ends: tuple[float, float]) -> Trouble:
        """Return what f does at the point of a cell: the first thing that goes wrong.

        If the derivatives below the last that matters are continuous up to the point, the last one
        has an integral: no wave has an argument without bounds there.
        """
        jets = [(side, self._case(side)) for side in self.sides]
        size = max(sympy.S.One, abs(self.here))
        proven = self.here.is_Rational and self._turns_here(ends)
        for k in range(self.order + 1):
            parts = [(side, side**k * derivative(case, AWAY, k)) for side, case in jets]
            row = [_tendency(part, size) for _, part in parts]
            lowest = min((exponent for _, _, exponent in row), default=0.0)
            if k == self.order:
                return self._trouble(Kind.MILD if proven else Kind.UNDECIDED, exponent=lowest)
            limits = [limit for limit, _, _ in row if limit is not None]
            if len(limits) < len(row):
                known = _DIVERGES.get(k) if any(grows for _, grows, _ in row) else None
                undefined = Kind.UNDEFINED if not k and lowest == -math.inf else Kind.UNDECIDED
                return self._trouble(known or undefined, exponent=lowest)
            gap = _gap(limits, _ALIKE_EXACT)
            if not k and not gap:
                value = real(at(self.f, {self.symbol: self.here}), _DIGITS, 400)
                proven &= value is not None
                gap = 0.0 if value is None else _gap([*limits[:1], value], _ALIKE)
            if gap:
                return self._trouble(_JUMPS.get(k, Kind.UNDECIDED), gap=gap)
            for side, part in parts:
                width = max(0.0, (ends[side > 0] - float(self.here)) * side)
                proven = proven and bool(_walk({AWAY: (0.0, width)}).range(part).sure[0])
        return self._trouble(Kind.MILD)

    def _trouble(self, kind: Kind, gap: float = 0.0, exponent: float = 0.0) -> Trouble:
        return Trouble(kind, self.symbol, self.here, gap, exponent)

    def _case(self, side: int) -> sympy.Expr:
        """Return the case of f that holds on a side, as a function of the distance."""
        step = sympy.Rational(1, 10**35) * max(sympy.S.One, abs(self.here))
        case = chosen(self.f, {self.symbol: self.here + side * step})
        return at(case, {self.symbol: self.here + side * AWAY})

    def _turns_here(self, ends: tuple[float, float]) -> bool:
        """Whether what f compares is 0 nowhere in a cell but at the point, where it is monotone."""
        cases = [e for e in self.f.atoms(*KINKED, Relational) if not isinstance(e, sympy.Piecewise)]
        walk = _walk({self.symbol: ends})
        for g in {g for case in cases for g in guards_of(case)}:
            slope = walk.range(derivative(without_kinks(g), self.symbol, 1))
            value = walk.range(g)
            turns = slope.low[0] > 0 or slope.high[0] < 0
            here = turns and at(g, {self.symbol: self.here}) == 0
            if not (here or value.low[0] > 0 or value.high[0] < 0):
                return False
        return True


def _gap(limits: Sequence[sympy.Expr], alike: float) -> float:
    """Return by how much two one-sided limits differ, 0 if they are alike."""
    if len(limits) < 2:
        return 0.0
    left, right = limits
    scale = max(abs(left), abs(right), sympy.S.One)
    return float(right - left) if abs(right - left) > alike * scale else 0.0


def ends_of(domain: Interval) -> tuple[sympy.Expr, sympy.Expr]:
    """Return the bounds of a domain as the numbers that are written."""
    return decimal(symbolic(domain.low)), decimal(symbolic(domain.high))


def _place(
    f: sympy.Expr, s: sympy.Symbol, ends: tuple[float, float], domain: Interval
) -> sympy.Expr | None:
    """Return the number in a tiny cell at which a guard of f vanishes, exactly or to 50 digits."""
    low, high = ends
    own = [g for g in guards(f) if g.free_symbols == {s}]
    middle = low / 2 + high / 2
    plain = (Fraction(middle).limit_denominator(10**k) for k in range(0, 16, 3))
    bounds = [end for end in ends_of(domain) if low <= float(end) <= high]
    for x in (*bounds, *map(sympy.Rational, plain)):
        if low <= float(x) <= high and any(at(g, {s: x}) == 0 for g in own):
            return x
    for guard in own:
        try:
            root = sympy.nsolve(guard, s, middle, prec=50, verify=False)
        except (ValueError, ZeroDivisionError, TypeError, ArithmeticError):
            continue
        if root.is_real and low <= float(root) <= high:
            return root
    return bounds[0] if bounds else None
