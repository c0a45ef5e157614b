"""Whether f is smooth where the true values are: proven on cells, or seen at a point not to be.

Tiny cells that the proof leaves open are judged by one-sided values and slopes: a pole, jump, kink
or infinite slope; two cases of one statistic that meet smoothly; else nothing could be shown.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.exact import symbolic
from trueup.formula.substitution import at, decimal, real_at
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import (
    FAR,
    SMALLEST,
    Cell,
    Cells,
    Question,
    Walk,
    guards,
    guards_of,
    tell,
    undecided,
)
from trueup.inverse.signs import KINKED, chosen
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
    ROUGH = "a higher derivative that matters jumps or is unbounded"
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

    @property
    def free(self) -> frozenset[sympy.Symbol]:
        """The statistics along which f may jump."""
        return frozenset(self.box) - frozenset(self.orders)

    def troubles(self) -> Iterator[Trouble]:
        """Yield what is wrong, each place once, near 0 first."""
        left = sorted(self.open_cells(), key=lambda c: sum(max(0.0, a, -b) for a, b in c.values()))
        done: set[object] = set()
        wide = []
        for cell in left:
            points = {
                s: sympy.Integer(int(low))
                for s, (low, high) in cell.items()
                if low == high and self.box[s].lattice and s in self.f.free_symbols
            }
            narrow = self._narrow(cell)
            if not points and not narrow:
                wide.append(self._inside(cell))
            elif not points or tuple(points.items()) not in done:
                done.add(tuple(points.items()))
                for found in self._held(points) if points else [self._along(narrow[0], cell)]:
                    key = (found.kind, found.symbol, found.exact)
                    if key not in done:
                        done.add(key)
                        yield found
        if wide:
            yield next((found for found in wide if found.proved), wide[0])

    def open_cells(self) -> list[Cell]:
        """Return the cells on which f is not proven to be analytic."""
        own = {s: d for s, d in self.box.items() if s in self.f.free_symbols or self.tied}
        if not own:
            return []
        return undecided(
            Question(
                lambda w: w.range(self.f).sure, own, self.free, guards(self.f), self.tied, True
            )
        )

    def lost(self) -> Iterator[Trouble]:
        """Yield a bound if a denominator comes so near 0 that doubles lose its digits."""
        own = {s: d for s, d in self.box.items() if s in self.f.free_symbols}
        ends = {s: (np.array([float(d.low)]), np.array([float(d.high)])) for s, d in own.items()}
        walk = Walk(ends, self.free)
        tell(walk, self.tied)
        for power in self.f.atoms(sympy.Pow):
            if power.exp.is_Integer and power.exp.is_negative and power.base.is_Add:
                low, high, _ = walk.range(power.base)
                least = max(low[0], -high[0])
                if 0 < least < _LOST * abs(float(power.base.as_coeff_Add()[0])):
                    places = [(s, end) for s, d in own.items() for end in ends_of(d)]
                    finite = (place for place in places if place[1].is_finite)
                    yield Trouble(Kind.UNDECIDED, *next(finite, places[0]))

    def _held(self, points: dict[sympy.Symbol, sympy.Expr]) -> Iterator[Trouble]:
        """Yield what is wrong where some statistics have integer values of their own."""
        f = at(self.f, points)
        defined = not f.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo)
        if self.f.free_symbols <= set(points):
            columns = {s: np.array([float(v)]) for s, v in points.items()}
            defined = real_at(decimal(self.f), points, most=400) is not None
            defined = defined and not np.isnan(evaluate(self.f, columns)).any()
        if not defined:
            (s, x), *others = points.items()
            yield Trouble(Kind.UNDEFINED, s, x, where=dict(others))
            return
        box = {s: d for s, d in self.box.items() if s not in points}
        tied = tuple(c.at({s.name: v for s, v in points.items()}) for c in self.tied)
        for found in _Proof(f, box, self.orders, tied).troubles():
            yield dataclasses.replace(found, where={**points, **found.where})

    def _narrow(self, cell: Cell) -> list[sympy.Symbol]:
        """Return the statistics under continuous noise that a cell holds almost one value of."""
        return [
            s
            for s, (low, high) in cell.items()
            if s in self.orders
            and high - low < _NARROW * max(SMALLEST, min(max(abs(low), abs(high)), FAR))
        ]

    def _inside(self, cell: Cell) -> Trouble:
        """Return what f is at a point of a wide cell."""
        point = {s: self._plain(s, cell[s]) for s in cell}
        named = {s.name: x for s, x in point.items()}
        allowed = all(c.excess(named) >= 0 for c in self.tied)
        undefined = allowed and real_at(self.f, point, most=400) is None
        s = next(s for s in cell if s in self.f.free_symbols)
        kind = Kind.UNDEFINED if undefined else Kind.UNDECIDED
        return Trouble(kind, s, point.pop(s), where=point)

    def _along(self, s: sympy.Symbol, cell: Cell) -> Trouble:
        """Return what f does along one statistic in a cell that is narrow along it."""
        others = {t: self._plain(t, cell[t]) for t in cell if t != s}
        f = decimal(at(self.f, others))
        here = place(f, s, cell[s], self.box[s]) if f.free_symbols else None
        if here is None:
            return Trouble(Kind.UNDECIDED, s, sympy.Float(cell[s][0]), where=others)
        ends = zip((-1, 1), ends_of(self.box[s]), strict=True)
        sides = tuple(side for side, end in ends if (end - here) * side > 0)
        line = Line(f, s, here, sides, self.orders[s])
        found = line.judged()
        if found.kind is Kind.MILD and not self._is_mild(line, cell[s]):
            found = dataclasses.replace(found, kind=Kind.UNDECIDED)
        return dataclasses.replace(found, where=others)

    def _plain(self, s: sympy.Symbol, ends: tuple[float, float]) -> sympy.Expr:
        """Return a number of a cell at which nothing special happens."""
        low, high = (float(end) for end in ends)
        x = 1.7310585786 if math.isinf(high) else high - 7.310585786
        if math.isfinite(low):
            part = 0.6180339887 * (1 + sorted(self.box, key=str).index(s)) % 1  # no two alike
            x = low + (7.310585786 if math.isinf(high) else part * (high - low))
        if self.box[s].lattice:
            return sympy.Integer(math.floor(x))
        return sympy.Rational(min(max(x, low), high))

    def _is_mild(self, line: Line, ends: tuple[float, float]) -> bool:
        """Whether cases of one statistic hold all along the sides of a point, and are smooth there.

        They do if all that they compare turns only once. If the derivatives below the last that
        matters are continuous up to the point, the last one has an integral: no wave has an
        argument without bounds there.
        """
        f, s, cells = line.f, line.symbol, {line.symbol: (np.array(ends[:1]), np.array(ends[1:]))}
        cases = (e for e in sympy.preorder_traversal(f) if isinstance(e, (*KINKED, Relational)))
        turning = {g for case in cases for g in guards_of(case)}
        if f.free_symbols != self.f.free_symbols or not line.here.is_Rational:
            return False
        if not all(_turns_once(g, s, cells) for g in turning if s in g.free_symbols):
            return False
        for side in line.sides:
            width = max(0.0, (ends[side > 0] - float(line.here)) * side)
            walk, case = Walk({AWAY: (np.zeros(1), np.array([width]))}), line.case(side)
            if not all(walk.range(derivative(case, AWAY, k)).sure[0] for k in range(line.order)):
                return False
        return True


def _turns_once(guard: sympy.Expr, s: sympy.Symbol, cells: Cells) -> bool:
    """Whether an expression has at most one zero on a cell, since it is monotone or keeps away."""
    walk = Walk(cells)
    ranges = walk.range(guard.diff(s)), walk.range(guard)
    return any(r.low[0] > 0 or r.high[0] < 0 for r in ranges)


# -- one-sided values and slopes -------------------------------------------------------------------

_STEPS = tuple(sympy.Rational(1, 10**k) for k in (12, 22, 32))
_DIGITS = 40
_ALIKE = 1e-14  # relative to f nearby: a value may be off its limit by what rounded decimals leave
_ALIKE_EXACT = 1e-28
AWAY = sympy.Dummy("t", nonnegative=True)
"""The distance from a point: on its left (-q)**1.5 is t**1.5, whose slope is a number at 0."""
_FARTHER = sympy.Rational(1, 1000)
_FAINT = 1e-9  # of f so far away: a pole of decimals that cancel is 1e-16 of it, and none
_DIVERGES = (Kind.POLE, Kind.STEEP, Kind.ROUGH)
_JUMPS = (Kind.JUMP, Kind.KINK, Kind.ROUGH)
"""What it is called if the value, the slope or a higher derivative diverges, or jumps."""


class _Tendency(NamedTuple):
    """The limit from one side, None if none is known, and the order |q − a|^exponent."""

    limit: sympy.Expr | None
    diverges: bool
    exponent: float


def _tendency(case: sympy.Expr, size: sympy.Expr) -> _Tendency:
    """Return what an expression without cases does as the distance from a point goes to 0."""
    values = [real_at(case, {AWAY: h * size}, _DIGITS, 400) for h in _STEPS]
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return _Tendency(None, False, -math.inf)
    first, second, third = map(abs, known)
    exponent = math.inf
    if first and third:
        exponent = float(sympy.log(first / third) / sympy.log(_STEPS[0] / _STEPS[2]))
    limit = real_at(case, {AWAY: sympy.S.Zero}, _DIGITS, 400)
    if limit is not None and 2 * abs(known[2] - limit) <= abs(known[0] - limit):
        return _Tendency(limit, False, exponent)  # a change may halve: |q − a|^(1/33)
    if not (third > second > first > 0 and third - second > (second - first) / 2):
        return _Tendency(None, False, exponent)
    away = abs(real_at(case, {AWAY: _FARTHER * size}, _DIGITS, 400) or 0)
    faint = first * (_STEPS[0] / _FARTHER) ** -sympy.Float(exponent) < _FAINT * away
    return _Tendency(None, not faint, exponent)


class Line(NamedTuple):
    """F along one statistic near a point, all other statistics held: what is looked at there."""

    f: sympy.Expr
    symbol: sympy.Symbol
    here: sympy.Expr
    sides: tuple[int, ...]
    order: int

    def case(self, side: int) -> sympy.Expr:
        """Return the case of f that holds on a side, as a function of the distance."""
        step = sympy.Rational(1, 10**35) * max(sympy.S.One, abs(self.here))
        case = chosen(self.f, {self.symbol: self.here + side * step})
        return at(case, {self.symbol: self.here + side * AWAY})

    def judged(self) -> Trouble:
        """Return what f does at the point: the first thing that goes wrong."""
        cases = {side: self.case(side) for side in self.sides}
        size = max(sympy.S.One, abs(self.here))
        found = Trouble(Kind.MILD, self.symbol, self.here)
        for k in range(self.order + 1):
            parts = {side: side**k * derivative(case, AWAY, k) for side, case in cases.items()}
            row = [_tendency(part, size) for part in parts.values()]
            lowest = min((v.exponent for v in row), default=0.0)
            if k == self.order:
                return dataclasses.replace(found, exponent=lowest)
            limits = [v.limit for v in row if v.limit is not None]
            if len(limits) < len(row):
                kind = Kind.UNDEFINED if not k and lowest == -math.inf else Kind.UNDECIDED
                kind = _DIVERGES[min(k, 2)] if any(v.diverges for v in row) else kind
                return dataclasses.replace(found, kind=kind, exponent=lowest)
            gap = _gap(limits, _ALIKE_EXACT)
            if not k and not gap:
                value = real_at(self.f, {self.symbol: self.here}, _DIGITS, 400)
                if value is None:
                    return dataclasses.replace(found, kind=Kind.UNDECIDED)
                gap = _gap([*limits[:1], value], _ALIKE)
            if gap:
                return dataclasses.replace(found, kind=_JUMPS[min(k, 2)], gap=gap)
        return found


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


def place(
    f: sympy.Expr, s: sympy.Symbol, ends: tuple[float, float], domain: Interval
) -> sympy.Expr | None:
    """Return the number in a tiny cell at which a guard of f vanishes, exactly or to 50 digits."""
    low, high = ends
    own = [g for g in guards(f) if g.free_symbols == {s}]
    middle = low / 2 + high / 2
    plain = [sympy.Rational(f"{middle:.{n}g}") for n in range(1, 16)]
    bounds = [end for end in ends_of(domain) if low <= float(end) <= high]
    for x in dict.fromkeys((*bounds, sympy.S.Zero, *plain)):
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
