"""Whether f is smooth where the true values are: proven on cells, or seen at a point not to be.

Tiny cells that the proof leaves open are judged by one-sided values and slopes: a pole, jump, kink
or infinite slope; two cases that meet smoothly; else nothing could be shown.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.formula.substitution import at, decimal, real_at
from trueup.inverse.jets import derivative
from trueup.inverse.points import (
    ALIKE,
    AWAY,
    DIGITS,
    KINKED,
    Kind,
    Line,
    Trouble,
    ends_of,
    place,
    without_kinks,
)
from trueup.inverse.ranges import (
    FAR,
    SMALLEST,
    Cell,
    Cells,
    Question,
    Walk,
    difference,
    guards,
    guards_of,
    tell,
    undecided,
)
from trueup.inverse.signs import inner
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from trueup.formula.linear import Condition
    from trueup.inverse.signs import Box

    Point = Mapping[sympy.Symbol, sympy.Expr]

_NARROW = 1e-9  # relative width of cells in which a point is looked for
_LOST = 1e-6  # of a constant in a denominator: nearer to 0 doubles keep no nine digits of it
_CENTRES, _LINES, _PLACES = 16, 8, 3  # of wide cells, tried for what goes wrong; lines; on each


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
        left = self.open_cells()
        done: set[object] = set()
        left = sorted(
            left, key=lambda cell: sum(max(0.0, low, -high) for low, high in cell.values())
        )
        wide = []
        for cell in left:
            points, narrow = self._points(cell), self._narrow(cell)
            if points and tuple(points.items()) not in done:
                done.add(tuple(points.items()))
                several = list(self._held(points))
            else:
                several = [self._along(narrow[0], cell)] if narrow and not points else []
            if not points and not narrow:
                wide.append(cell)
            for found in several:
                key = (found.kind, found.symbol, found.exact)
                if key not in done:
                    done.add(key)
                    yield found
        if wide:
            yield self._witness(wide)

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
        """Yield the bounds at which a denominator comes so near 0 that doubles lose its digits."""
        own = {s: d for s, d in self.box.items() if s in self.f.free_symbols}
        ends = {s: (np.array([float(d.low)]), np.array([float(d.high)])) for s, d in own.items()}
        walk = Walk(ends, self.free)
        tell(walk, self.tied)
        for power in self.f.atoms(sympy.Pow):
            if power.exp.is_Integer and power.exp.is_negative and power.base.is_Add:
                low, high, _ = walk.range(power.base)
                least = max(low[0], -high[0])
                if 0 < least < _LOST * abs(float(power.base.as_coeff_Add()[0])):
                    near = {
                        s: next(filter(_is_finite, ends_of(own[s])), inner(own[s])) for s in own
                    }
                    yield self._at(Kind.UNDECIDED, near)

    # -- values of integers ------------------------------------------------------------------------

    def _points(self, cell: Cell) -> dict[sympy.Symbol, sympy.Expr]:
        """Return the statistics of f that have one integer value in a cell."""
        return {
            s: sympy.Integer(int(low))
            for s, (low, high) in cell.items()
            if low == high and self.box[s].lattice and s in self.f.free_symbols
        }

    def _held(self, points: dict[sympy.Symbol, sympy.Expr]) -> Iterator[Trouble]:
        """Yield what is wrong where some statistics have values of their own."""
        f = at(self.f, points)
        if self.f.free_symbols <= set(points):
            columns = {s: np.array([float(v)]) for s, v in points.items()}
            defined = real_at(decimal(self.f), points, most=400) is not None
            defined = defined and not np.isnan(evaluate(self.f, columns)).any()
        else:
            compared = [t for t in self.f.atoms(Relational) if t.free_symbols <= set(points)]
            sides = [at(difference(t), points) for t in compared]
            defined = not any(side.has(sympy.nan, sympy.zoo) for side in sides)
        if not defined or f.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
            yield Trouble(Kind.UNDEFINED, None, None, where=points)
            return
        box = {s: d for s, d in self.box.items() if s not in points}
        tied = tuple(c.at({s.name: v for s, v in points.items()}) for c in self.tied)
        for found in _Proof(f, box, self.orders, tied).troubles():
            yield dataclasses.replace(found, where={**points, **found.where})

    # -- points along a line -----------------------------------------------------------------------

    def _narrow(self, cell: Cell) -> list[sympy.Symbol]:
        """Return the statistics under continuous noise that a cell holds almost one value of."""
        return [
            s
            for s, (low, high) in cell.items()
            if s in self.orders
            and high - low < _NARROW * max(SMALLEST, min(max(abs(low), abs(high)), FAR))
        ]

    def _along(self, s: sympy.Symbol, cell: Cell) -> Trouble:
        """Return what f does along one statistic in a cell that is narrow along it."""
        others = {t: self._plain(t, cell[t]) for t in self.f.free_symbols & set(cell) if t != s}
        f = decimal(at(self.f, others))
        here = None if f is sympy.nan else place(f, s, cell[s], self.box[s])
        if here is None:
            return Trouble(Kind.UNDECIDED, s, sympy.Float(cell[s][0]), where=others)
        found = Line(f, s, here, self._sides(s, here), self.orders[s]).judged()
        if found.kind is Kind.MILD:
            value = real_at(f, {s: here}, DIGITS, 400)
            off = math.nan if value is None else abs(float(value) - found.middle)
            if off > ALIKE * max(1.0, abs(found.middle)):
                found = dataclasses.replace(found, kind=Kind.POINT)
            elif math.isnan(off) or not self._is_mild(s, here, cell):
                found = dataclasses.replace(found, kind=Kind.UNDECIDED)
        return dataclasses.replace(found, where=others)

    def _sides(self, s: sympy.Symbol, here: sympy.Expr) -> tuple[int, ...]:
        """Return from which sides the domain reaches a point."""
        ends = zip((-1, 1), ends_of(self.box[s]), strict=True)
        return tuple(side for side, end in ends if (end - here) * side > 0)

    def _plain(self, s: sympy.Symbol, ends: tuple[float, float]) -> sympy.Expr:
        """Return a number of a cell, of the domain's where the cell is as wide as that."""
        low, high = ends
        domain = self.box[s]
        if low <= domain.low and high >= domain.high:
            return inner(domain)
        part = 0.6180339887 * (1 + sorted(self.box, key=str).index(s)) % 1  # no two alike
        x = low if math.isinf(high) else high if math.isinf(low) else low + part * (high - low)
        return sympy.Integer(math.floor(x)) if domain.lattice else sympy.Rational(x)

    def _is_mild(self, s: sympy.Symbol, here: sympy.Expr, cell: Cell) -> bool:
        """Whether the cases of f at both sides of a point are smooth in a cell, and meet there."""
        sides = self._sides(s, here)
        line = Line(decimal(self.f), s, here, sides, self.orders[s])
        cases = {side: line.case(side) for side in sides}
        if not all(self._fits(s, here, side, case, cell) for side, case in cases.items()):
            return False
        if self.f.free_symbols == {s}:  # on the one line there is they meet
            return True
        limits = [
            [
                side**k * at(derivative(case, AWAY, k), {AWAY: sympy.S.Zero})
                for k in range(line.order)
            ]
            for side, case in cases.items()
        ]
        limits.append([at(without_kinks(line.f), {s: here}), *limits[0][1:]])
        return all(
            sympy.expand(a - b) == 0 for row in limits for a, b in zip(row, limits[0], strict=True)
        )

    def _fits(
        self, s: sympy.Symbol, here: sympy.Expr, side: int, case: sympy.Expr, cell: Cell
    ) -> bool:
        """Whether a case of f holds all along a side of a point in a cell, and is smooth there.

        That is so if all comparisons turn only once, and the case is analytic, or has derivatives
        up to the bound and a last one that keeps its sign: then this has an integral.
        """
        width = (cell[s][side > 0] - float(here)) * side
        if width <= 0:
            return True
        ends = {t: (np.array([low]), np.array([high])) for t, (low, high) in cell.items()}
        turning = (
            e for e in sympy.preorder_traversal(self.f) if isinstance(e, (*KINKED, Relational))
        )
        tests = {g for e in turning for g in guards_of(e) if g.free_symbols == {s}}
        if not all(_turns_once(g, s, ends) for g in tests):
            return False
        ends[AWAY] = (np.zeros(1), np.array([width]))
        if Walk(ends, self.free, analytic=True).range(case).sure[0]:
            return True
        walk, orders = Walk(ends, self.free), {**self.orders, AWAY: self.orders[s]}
        below = [derivative(case, t, k) for t, n in orders.items() for k in range(n)]
        last = derivative(case, AWAY, orders[AWAY])
        return all(walk.range(e).sure[0] for e in below) and _keeps_sign(walk, last)

    # -- what goes wrong in wide cells -------------------------------------------------------------

    def _witness(self, cells: Sequence[Cell]) -> Trouble:
        """Return what goes wrong in cells that are wide: at a point, or along one statistic."""
        centres = [{t: self._plain(t, cell[t]) for t in cell} for cell in cells]
        centres = [c for c in centres if self._may_be(c)] or centres[:1]
        for centre in centres[:_CENTRES]:
            if real_at(self.f, self._own(centre), most=400) is None:
                return self._at(Kind.UNDEFINED, centre)
        several = len(self.f.free_symbols) > 1
        for s in [s for s in self.orders if several and s in self.f.free_symbols]:
            for centre in centres[:_LINES]:
                others = {t: x for t, x in self._own(centre).items() if t != s}
                line = _Proof(at(self.f, others), {s: self.box[s]}, {s: self.orders[s]}, ())
                for found in islice(line.troubles(), _PLACES):
                    seen = found.proved and found.exact is not None
                    if seen and self._may_be({**centre, s: found.exact}):
                        return dataclasses.replace(found, where=others)
        return self._at(Kind.UNDECIDED, centres[0])

    def _own(self, point: Point) -> Point:
        return {s: x for s, x in point.items() if s in self.f.free_symbols}

    def _at(self, kind: Kind, point: Point) -> Trouble:
        (s, x), *others = self._own(point).items()
        return Trouble(kind, s, x, where=dict(others))

    def _may_be(self, point: Point) -> bool:
        """Whether a point meets the conditions."""
        named = {s.name: x for s, x in point.items()}
        return all(c.excess(named) >= 0 for c in self.tied)


def _is_finite(end: sympy.Expr) -> bool:
    return bool(end.is_finite)


def _turns_once(guard: sympy.Expr, s: sympy.Symbol, cells: Cells) -> bool:
    """Whether an expression has at most one zero on a cell, since it is monotone or keeps away."""
    walk = Walk(cells)
    ranges = walk.range(guard.diff(s)), walk.range(guard)
    return any(r.low[0] > 0 or r.high[0] < 0 for r in ranges)


def _keeps_sign(walk: Walk, expr: sympy.Expr) -> bool:
    """Whether an expression has one sign on the cells of a walk, but for continuous factors."""
    ranges = map(walk.range, sympy.Mul.make_args(sympy.factor_terms(expr)))
    return all(r.sure[0] or r.low[0] >= 0 or r.high[0] <= 0 for r in ranges)
