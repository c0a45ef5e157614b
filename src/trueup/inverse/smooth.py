"""Proofs on cells: signs, cases, and whether f is smooth where the true values are.

Tiny cells that a proof leaves open are judged by one-sided values and slopes: a pole, jump, kink or
infinite slope; two cases that meet smoothly; else nothing could be shown.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.formula.substitution import at, decimal, is_defined, real, real_at
from trueup.formula.unkinked import without_kinks
from trueup.inverse.cells import (
    FAR,
    SMALLEST,
    Cell,
    Question,
    guards,
    guards_of,
    lattice,
    told,
    undecided,
)
from trueup.inverse.finite import values_of
from trueup.inverse.jets import derivative
from trueup.inverse.points import ALIKE, DIGITS, KINKED, Kind, Line, Trouble, chosen, exact, place
from trueup.inverse.ranges import Cells, Floats, Mask, Walk, difference

if TYPE_CHECKING:
    from trueup.formula.linear import Condition

Box = Mapping[sympy.Symbol, Interval]


def sign(
    expr: sympy.Expr,
    box: Box,
    *,
    strict: bool = True,
    tied: Sequence[Condition] = (),
    defined: bool = True,
) -> int:
    """Return the sign that an expression is proven to have on a closed box, 0 if undecided.

    It must be defined there, unless ``defined`` is False: then it has that sign where it is. With
    ``strict=False`` it may also be zero in places.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> a, b = sympy.symbols("a b", real=True)
    >>> sign(a + b, {a: Interval(1, None), b: Interval(0, None)})
    1
    """
    names = expr.free_symbols.union(*(c.names for c in tied)) if tied else expr.free_symbols
    own = {s: d for s, d in box.items() if s in names or s.name in names}
    if not expr.free_symbols:
        value = real(expr)
        return 0 if value is None or (not value and strict) else -1 if value < 0 else 1
    if not expr.free_symbols <= set(own):
        return 0
    for side in (1, -1) if _hint(expr, own) >= 0 else (-1, 1):
        wanted = _Sign(expr, side, strict, defined, refutable=not tied)
        asked = Question(wanted.check, own, frozenset(own), tied=tied, integers=lattice(own))
        left = undecided(asked)
        if not left and not wanted.refuted:
            return side
    factored = sympy.factor(decimal(expr)) if expr.is_polynomial(*own) else expr
    if isinstance(factored, (sympy.Mul, sympy.Pow)) and factored != expr:  # a square shows its sign
        return sign(factored, box, strict=strict, tied=tied, defined=defined)
    return 0


@dataclasses.dataclass
class _Sign:
    """A sign looked for on cells: found, or refuted by one cell, and then no further looked for."""

    expr: sympy.Expr
    side: int
    strict: bool
    defined: bool
    refutable: bool
    refuted: bool = False

    def check(self, walk: Walk) -> Mask:
        """Return on which cells an expression has the sign, on all if it is refuted."""
        low, high, sure = walk.range(self.expr)
        least, most = (low, high) if self.side > 0 else (-high, -low)
        self.refuted = self.refutable and bool((most < 0).any())
        if self.refuted:
            return walk.all
        found: Mask = ((least > 0) if self.strict else (least >= 0)) & (sure | (not self.defined))
        return found


def _hint(expr: sympy.Expr, box: Box) -> int:
    """Return the sign at a point of the box, 0 if it has none."""
    value = real_at(expr, {s: inner(domain) for s, domain in box.items()})
    return 0 if not value else 1 if value > 0 else -1


def inner(domain: Interval) -> sympy.Rational:
    """Return a number inside a domain at which nothing special happens."""
    low, high = float(domain.low), float(domain.high)
    if math.isinf(low):
        x = 1.7310585786 if math.isinf(high) else high - 7.310585786
    else:
        x = low + (7.310585786 if math.isinf(high) else 0.6180339887 * (high - low))
    if domain.lattice:
        return sympy.Integer(math.floor(x))
    return sympy.Rational(min(max(x, low), high))


def monotone(f: sympy.Expr, symbol: sympy.Symbol, box: Box) -> int:
    """Return 1 if f is proven to increase along a statistic, −1 to decrease, 0 if neither.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> monotone(1 / q, q, {q: Interval(1, None)}), monotone(abs(q), q, {q: Interval()})
    (-1, 0)
    """
    # between integers too: the slope does not see jumps from one to the next
    own = {s: Interval(*d.bounds) for s, d in box.items() if s in f.free_symbols}
    if symbol not in own or not is_continuous(f, own):
        return 0
    slope = derivative(without_kinks(f), symbol, 1)
    found = sign(slope, own, strict=False, defined=False)
    if not found and slope.is_rational_function(*own):
        slope = sympy.factor(sympy.together(slope))
        found = sign(slope, own, strict=False, defined=False)
    return found


def is_continuous(f: sympy.Expr, box: Box) -> bool:
    """Whether f is proven to be defined and continuous on a closed box.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> [is_continuous(f, {q: Interval(0, None)}) for f in (abs(q - 1), 1 / q)]
    [True, False]
    """
    return not undecided(Question(lambda walk: walk.range(f).sure, box, suspects=guards(f)))


def zeros(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> list[float]:
    """Return where f of one statistic is, or cannot be told from, zero.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> zeros(q**2 - 9, q, Interval(0, None))
    [3.0]
    """

    def check(walk: Walk) -> Mask:
        low, high, _ = walk.range(f)
        found: Mask = (low > 0) | (high < 0)
        return found

    tiny = [c[symbol] for c in undecided(Question(check, {symbol: domain}))]
    points = [
        place(sympy.Piecewise((0, sympy.Eq(f, 0)), (1, True)), symbol, c, domain) for c in tiny
    ]
    return sorted({float(p) for p in points if p is not None})


def image(
    f: sympy.Expr,
    cells: Cells,
    integers: frozenset[sympy.Symbol] = frozenset(),
    tied: Sequence[Condition] = (),
    pieces: int = 4,
) -> tuple[Floats, Floats]:
    """Return numbers around the values of f on boxes, each cut into pieces along every axis.

    Cells that break a condition do not count, unless a box has no others.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> low, high = image(q**2 - q, {q: (np.array([0.0]), np.array([1.0]))}, pieces=64)
    >>> round(float(low[0]), 6), round(float(high[0]), 6)
    (-0.265625, 0.015625)
    """
    shape = np.shape(next(iter(cells.values()))[0])
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    least, most = low.copy(), high.copy()
    cuts = {q: _cut(*ends, pieces, whole=q in integers) for q, ends in cells.items()}
    for choice in product(range(pieces), repeat=len(cells)):
        walk = Walk({q: cuts[q][i] for q, i in zip(cells, choice, strict=True)}, integers)
        allowed = told(walk, tied)
        below, above, _ = walk.range(f)
        low = np.where(allowed, np.minimum(low, below), low)
        high = np.where(allowed, np.maximum(high, above), high)
        least, most = np.minimum(least, below), np.maximum(most, above)
    outside = low > high
    return np.where(outside, least, low), np.where(outside, most, high)


def _cut(low: Floats, high: Floats, pieces: int, *, whole: bool) -> list[tuple[Floats, Floats]]:
    """Return cells that hold all of an interval, or all of its integers."""
    steps = np.linspace(0.0, 1.0, pieces + 1)
    if whole:
        starts = [low + np.floor((high - low + 1) * t) for t in steps[:-1]]
        ends = [np.maximum(a, b - 1) for a, b in pairwise(starts)]
    else:
        starts = [low + (high - low) * t for t in steps[:-1]]
        ends = starts[1:]
    return list(zip(starts, [*ends, high], strict=True))


def inside(
    f: sympy.Expr, box: Box, rough: frozenset[sympy.Symbol], tied: Sequence[Condition] = ()
) -> sympy.Expr:
    """Return f as it is on a box, at all but single values of the ``rough`` statistics.

    |·|, min and max are replaced by the argument that they are on the whole box, touching at its
    edge included; conditions are decided where they hold everywhere, on one rough statistic where
    they hold at all but single points (:func:`points` tells whether f has its limits there).

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> inside(abs(q - 3), {q: Interval(None, 3)}, frozenset({q}))
    3 - q
    >>> inside(sympy.Piecewise((q, q >= 0), (-q, True)), {q: Interval(0, None)}, frozenset())
    q
    """
    if not f.args or not f.has(*KINKED, Relational):
        return f
    args = [inside(a, box, rough, tied) for a in f.args]
    if isinstance(f, sympy.Abs):
        side = sign(args[0], box, strict=False, tied=tied)
        return side * args[0] if side else sympy.Abs(args[0])
    if isinstance(f, (sympy.Min, sympy.Max)):
        return f.func(*_contenders(f, args, box, tied), evaluate=False)
    if isinstance(f, Relational):
        return _decided(f.func(*args), box, rough, tied)
    return f.func(*args)


def _contenders(
    f: sympy.Expr, args: list[sympy.Expr], box: Box, tied: Sequence[Condition]
) -> list[sympy.Expr]:
    """Leave out the arguments of an extremum that another one is always as good as."""
    wins, left = (1 if isinstance(f, sympy.Max) else -1), list(args)
    for a in args:
        if any(b is not a and sign(b - a, box, strict=False, tied=tied) == wins for b in left):
            left.remove(a)
    return left


def _decided(
    test: sympy.Basic, box: Box, rough: frozenset[sympy.Symbol], tied: Sequence[Condition]
) -> sympy.Basic:
    """Return a condition, true or false where that is so at all but single points."""
    if not isinstance(test, Relational) or test.has(*KINKED):
        return test
    gap = difference(test)
    single = len(gap.free_symbols) == 1 and gap.free_symbols <= rough
    if single and isinstance(test, (sympy.Eq, sympy.Ne)):
        return sympy.false if isinstance(test, sympy.Eq) else sympy.true
    found = sign(gap, box, strict=not single, tied=tied)
    if found:
        return test.func(found, 0)
    weak = sign(gap, box, strict=False, tied=tied)  # a >= b holds where they touch as well
    at_zero = {1: (sympy.Ge, sympy.Lt), -1: (sympy.Le, sympy.Gt)}.get(weak, ())
    return test.func(weak, 0) if isinstance(test, at_zero) else test


def single_points(f: sympy.Expr, box: Box, orders: Mapping[sympy.Symbol, int]) -> Iterator[Trouble]:
    """Yield points that :func:`inside` leaves out of f where f is not its limit.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> f = sympy.Piecewise((5, sympy.Eq(q, 3)), (q, True))
    >>> [(t.kind.name, t.point) for t in single_points(f, {q: Interval()}, {q: 2})]
    [('POINT', 3.0)]
    """
    for test in f.atoms(Relational):
        (symbol, *others) = test.free_symbols
        if others or symbol not in orders or test.has(*KINKED):
            continue
        gap, equation = difference(test), isinstance(test, (sympy.Eq, sympy.Ne))
        if not sign(gap, box) and (equation or sign(gap, box, strict=False)):
            found = breaks(f, symbol, box, orders[symbol])
            yield from (t for t in found if t.kind is Kind.POINT)


# -- the proof -------------------------------------------------------------------------------------

_NARROW = 1e-9  # relative width of cells in which a point is looked for
_NEAR = 10.0  # how far from 0 a line is searched for an example
_CENTRES = 16  # of wide cells, tried for a value that is not real
_LINES, _PLACES = 8, 3  # through wide cells, and on each of them, searched for an example
_ASIDE = sympy.Rational(1, 64)


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
    yield from _Proof(f, {**anywhere, **box}, orders, tuple(tied)).troubles()


def breaks(f: sympy.Expr, symbol: sympy.Symbol, box: Box, order: int = 2) -> list[Trouble]:
    """Return the points along one statistic at which f, or a derivative that matters, breaks.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> [(t.kind.name, t.point) for t in breaks(q * abs(q), q, {q: Interval()})]
    [('MILD', 0.0)]
    """
    found = {(t.kind, t.exact): t for t in troubles(f, box, {symbol: order}) if t.symbol == symbol}
    return sorted(found.values(), key=lambda t: t.point)


@dataclasses.dataclass(frozen=True)
class _Proof:
    """F on a box: what cells leave open, and what is seen there."""

    f: sympy.Expr
    box: Box
    orders: Mapping[sympy.Symbol, int]
    tied: tuple[Condition, ...]

    def troubles(self) -> Iterator[Trouble]:
        """Yield what is wrong, each place once."""
        left = self.open_cells()
        if not left or any(not moved.open_cells() for moved in self._moved()):
            return
        done: set[object] = set()
        left = sorted(left, key=_distance)
        for cell in left:
            for found in self._seen(cell, done):
                key = (found.kind, found.symbol, found.exact)
                if key not in done:
                    done.add(key)
                    yield found
        wide = [cell for cell in left if not self._points(cell) and not self._narrow(cell)]
        if wide:
            yield self._witness(wide)

    def open_cells(self) -> list[Cell]:
        """Return the cells on which f is not proven to be analytic."""
        own = {s: d for s, d in self.box.items() if s in self.f.free_symbols or self.tied}
        if not own:
            return []
        free = frozenset(own) - frozenset(self.orders)
        return undecided(
            Question(lambda w: w.range(self.f).sure, own, free, guards(self.f), self.tied, True)
        )

    def _moved(self) -> Iterator[_Proof]:
        """Yield f with the excess of a condition in place of a statistic: n − s is t, t ≥ 0."""
        for condition in self.tied:
            names = {s.name: s for s in self.box}
            for name, c in condition.terms:
                if name not in names:
                    continue
                excess = sympy.Dummy("t", real=True)
                others = {s: q for s, q in names.items() if s != name} | {name: sympy.S.Zero}
                put = sympy.expand((excess - condition.excess(others)) / c)
                moved = at(self.f, {names[name]: put})
                box = {s: d for s, d in self.box.items() if s.name != name}
                orders = {s: n for s, n in self.orders.items() if s.name != name}
                if any(names[n] in self.orders for n in condition.names if n in names):
                    orders[excess] = 2
                yield _Proof(moved, {**box, excess: Interval(0, None)}, orders, ())

    def _seen(self, cell: Cell, done: set[object]) -> Iterator[Trouble]:
        """Yield what a tiny cell that is left looks like; nothing if all is well there."""
        points, narrow = self._points(cell), self._narrow(cell)
        if points and tuple(points.items()) not in done:
            done.add(tuple(points.items()))
            yield from self._held(points)
        elif narrow and not points:
            yield self._along(narrow[0], cell)

    def _points(self, cell: Cell) -> dict[sympy.Symbol, sympy.Expr]:
        """Return the statistics of f that have one integer value in a cell."""
        own = {s: ends for s, ends in cell.items() if s in self.f.free_symbols}
        return {
            s: sympy.Integer(int(low))
            for s, (low, high) in own.items()
            if low == high and self.box[s].lattice
        }

    def _narrow(self, cell: Cell) -> list[sympy.Symbol]:
        """Return the statistics under continuous noise that a cell holds almost one value of."""
        return [
            s
            for s, (low, high) in cell.items()
            if s in self.orders
            and high - low < _NARROW * max(SMALLEST, min(max(abs(low), abs(high)), FAR))
        ]

    def _held(self, points: dict[sympy.Symbol, sympy.Expr]) -> Iterator[Trouble]:
        """Yield what is wrong where some statistics have values of their own."""
        f = at(self.f, points)
        compared = [t for t in self.f.atoms(Relational) if t.free_symbols <= set(points)]
        if self.f.free_symbols <= set(points):
            defined = is_defined(self.f, points) and real(f, most=400) is not None
            columns = {s: np.array([float(v)]) for s, v in points.items()}
            defined = defined and not values_of(self.f, columns)[1].any()
        else:
            defined = all(is_defined(difference(t), points) for t in compared)
        if not defined or f.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
            yield Trouble(Kind.UNDEFINED, None, None, where=points)
            return
        box = {s: d for s, d in self.box.items() if s not in points}
        tied = tuple(c.at({s.name: v for s, v in points.items()}) for c in self.tied)
        for found in _Proof(f, box, self.orders, tied).troubles():
            yield dataclasses.replace(found, where={**points, **found.where})

    def _along(self, s: sympy.Symbol, cell: Cell) -> Trouble:
        """Return what f does along one statistic in a cell that is narrow along it."""
        others = {t: self._plain(t, cell[t]) for t in self.f.free_symbols & set(cell) if t != s}
        found = self._on_line(s, cell[s], others)
        if found.kind is not Kind.MILD:
            return found
        # what meets with all others at one value need not do so at another
        again = {t: x + (sympy.S.One if self.box[t].lattice else _ASIDE) for t, x in others.items()}
        here = found.exact
        meets = not others or self._on_line(s, cell[s], again).kind is Kind.MILD
        if (
            here is None
            or not meets
            or not all(self._fits(s, here, side, cell) for side in self._sides(s, here))
        ):
            return dataclasses.replace(found, kind=Kind.UNDECIDED)
        return found

    def _sides(self, s: sympy.Symbol, here: sympy.Expr) -> tuple[int, ...]:
        """Return from which sides the domain reaches a point."""
        ends = ((-1, exact(self.box[s].low)), (1, exact(self.box[s].high)))
        return tuple(side for side, end in ends if (end - here) * side > 0)

    def _on_line(
        self,
        s: sympy.Symbol,
        ends: tuple[float, float],
        others: Mapping[sympy.Symbol, sympy.Expr],
    ) -> Trouble:
        """Return what f does at the point of a line in a tiny cell where it is not analytic."""
        f = decimal(at(self.f, others))
        here = None if f is sympy.nan else place(f, s, ends, self.box[s])
        if here is None:
            return Trouble(Kind.UNDECIDED, s, sympy.Float(ends[0]), where=others)
        found = Line(f, s, here, self._sides(s, here), self.orders[s]).judged()
        if found.kind is Kind.MILD:
            value = real_at(f, {s: here}, DIGITS, 400)
            if value is None:
                found = dataclasses.replace(found, kind=Kind.UNDECIDED)
            elif abs(float(value) - found.middle) > ALIKE * max(1.0, abs(found.middle)):
                found = dataclasses.replace(found, kind=Kind.POINT)
        return dataclasses.replace(found, where=others)

    def _plain(self, s: sympy.Symbol, ends: tuple[float, float]) -> sympy.Expr:
        """Return a number of a cell, of the domain's where the cell is as wide as that."""
        low, high = ends
        domain = self.box[s]
        if low <= domain.low and high >= domain.high:
            return inner(domain)
        part = 0.6180339887 * (1 + sorted(self.box, key=str).index(s)) % 1  # no two alike
        x = low if math.isinf(high) else high if math.isinf(low) else low + part * (high - low)
        return sympy.Integer(math.floor(x)) if domain.lattice else sympy.Rational(x)

    def _fits(self, s: sympy.Symbol, here: sympy.Expr, side: int, cell: Cell) -> bool:
        """Whether one case of f holds all along a side of a point in a cell, and is smooth there.

        That is so if all comparisons turn only once, and the case is analytic, or has derivatives
        up to the bound and a last one that keeps its sign: then this has an integral.
        """
        end, middle = cell[s][side > 0], float(here)
        if (end - middle) * side <= 0:
            return True
        ends = {t: (np.array([low]), np.array([high])) for t, (low, high) in cell.items()}
        if not all(_turns_once(g, s, ends) for g in _turning(self.f) if g.free_symbols == {s}):
            return False
        away = sympy.Dummy("t", nonnegative=True)  # the distance: (-q)**1.5 is t**1.5
        step = sympy.Rational(1, 10**35) * max(sympy.S.One, abs(here))
        case = at(chosen(decimal(self.f), {s: here + side * step}), {s: here + side * away})
        ends[away] = (np.zeros(1), np.array([abs(end - middle)]))
        free = frozenset(self.box) - frozenset(self.orders)
        if Walk(ends, free, analytic=True).range(case).sure[0]:
            return True
        walk, orders = Walk(ends, free), {**self.orders, away: self.orders[s]}
        below = [derivative(case, t, k) for t, n in orders.items() for k in range(n)]
        last = derivative(case, away, orders[away])
        return all(walk.range(e).sure[0] for e in below) and _keeps_sign(walk, last)

    def _witness(self, cells: Sequence[Cell]) -> Trouble:
        """Return what goes wrong in cells that are wide: at a point, or along one statistic."""
        centres = [{t: self._plain(t, cell[t]) for t in cell} for cell in cells]
        centres = [c for c in centres if self._may_be(c)] or centres[:1]
        for centre in centres[:_CENTRES]:
            own = {s: x for s, x in centre.items() if s in self.f.free_symbols}
            if real_at(self.f, own, most=400) is None:
                return self._at(Kind.UNDEFINED, own)
        for s, centre in product(
            self.orders, centres[: _LINES if len(self.f.free_symbols) > 1 else 1]
        ):
            found = self._on_a_line(s, centre) if s in self.f.free_symbols else None
            if found is not None:
                return found
        return self._at(Kind.UNDECIDED, centres[0])

    def _at(self, kind: Kind, point: Mapping[sympy.Symbol, sympy.Expr]) -> Trouble:
        own = {s: x for s, x in point.items() if s in self.f.free_symbols}
        s, x = next(iter(own.items()))
        return Trouble(kind, s, x, where={t: v for t, v in own.items() if t != s})

    def _on_a_line(
        self, s: sympy.Symbol, centre: Mapping[sympy.Symbol, sympy.Expr]
    ) -> Trouble | None:
        """Return what is proven to go wrong along a statistic near 0, all others held."""
        others = {t: x for t, x in centre.items() if t != s and t in self.f.free_symbols}
        low, high = float(self.box[s].low), float(self.box[s].high)
        near = Interval(max(low, min(high, 0.0) - _NEAR), min(high, max(low, 0.0) + _NEAR))
        if not others and near == self.box[s]:
            return None
        line = _Proof(at(self.f, others), {s: near}, {s: self.orders[s]}, ())
        for found in islice(line.troubles(), _PLACES):
            if (
                found.proved
                and found.exact is not None
                and self._may_be({**centre, s: found.exact})
            ):
                return dataclasses.replace(found, where=others)
        return None

    def _may_be(self, point: Mapping[sympy.Symbol, sympy.Expr]) -> bool:
        """Whether a point meets the conditions."""
        named = {s.name: x for s, x in point.items()}
        return all(c.excess(named) >= 0 for c in self.tied)


def _distance(cell: Cell) -> float:
    """Return how far a cell is from 0: what is near is said first."""
    return sum(max(0.0, low, -high) for low, high in cell.values())


def _turning(f: sympy.Expr) -> Iterator[sympy.Expr]:
    """Yield the guards of f that pick cases."""
    for node in sympy.preorder_traversal(f):
        if isinstance(node, (*KINKED, Relational)):
            yield from guards_of(node)


def _turns_once(guard: sympy.Expr, s: sympy.Symbol, cells: Cells) -> bool:
    """Whether an expression has at most one zero on a cell, since it is monotone or keeps away."""
    walk = Walk(cells)
    slope = walk.range(guard.diff(s))
    apart = walk.range(guard)
    return bool(slope.low[0] > 0 or slope.high[0] < 0 or apart.low[0] > 0 or apart.high[0] < 0)


def _keeps_sign(walk: Walk, expr: sympy.Expr) -> bool:
    """Whether an expression has one sign on the cells of a walk, but for continuous factors."""
    factors = sympy.Mul.make_args(sympy.factor_terms(expr))
    ranges = [walk.range(e) for e in factors]
    return all(bool(r.sure[0] or r.low[0] >= 0 or r.high[0] <= 0) for r in ranges)
