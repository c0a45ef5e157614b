"""Branch and bound for the zeros of one continuous formula.

Cells on which f is proven nonzero are dropped. Cells on which f is continuous and some derivative
is proven nonzero are solved: between the zeros of f⁽ᵏ⁾ the function f⁽ᵏ⁻¹⁾ is monotone, so a
descent from f⁽ᵏ⁾ to f finds every zero. All other cells are halved, and what cannot be decided on
the tiniest cells is looked at case by case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import sympy

from trueup.enclosure.intervals import Floats, Mask
from trueup.enclosure.ranges import Walk
from trueup.enclosure.signs import Signs, sign_on

CELLS = 20_000
"""Cells looked at before the search gives up."""

ORDERS = 4
"""Derivatives tried on a cell."""

PATIENCE = 6
"""Halvings before higher derivatives are tried."""

OPERATIONS = 300
"""Operations in a derivative beyond which no further one is formed."""

ALTERNATIVES = 16
"""Combinations of cases looked at on an undecided cell."""

_STEPS = 2.0 ** np.arange(-52.0, -3.0)
_WIDTH = 1e-13  # relative: narrower cells are not worth halving
_UNIFORM = 17
_WIDE = 2.0**40  # an interval without equal parts: they would all be far out
_POWERS = 2.0 ** np.arange(-10, 997)
_KINKED = (sympy.Abs, sympy.Min, sympy.Max, sympy.Piecewise, sympy.sign)


class Search:
    """The zeros of an expression in one variable on [low, high], both finite.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> Search(sympy.exp(q) - 1, q, -5.0, 5.0).run(10)
    ([0.0], True)
    """

    def __init__(self, expr: sympy.Expr, symbol: sympy.Symbol, low: float, high: float) -> None:
        self.symbol = symbol
        self.low, self.high = low, high
        self.slopes = [expr]
        self.solvable: list[tuple[int, Floats, Floats]] = []
        self.points: list[Floats] = []
        self.undecided: list[tuple[float, float]] = []

    def run(self, limit: int) -> tuple[list[float], bool]:
        """Return the zeros, not many more than wanted, and whether there can be no others."""
        low, high = partition(self.low, self.high)
        work = turn = 0
        while low.size and work <= CELLS:
            work += low.size
            low, high = self.settle(low, high, ORDERS if turn >= PATIENCE else 1)
            small = _is_tiny(low, high)
            self.undecided += zip(low[small].tolist(), high[small].tolist(), strict=True)
            low, high = _halves(low[~small], high[~small])
            turn += 1
        self.solve()
        brackets, complete = self.resolved()
        points = np.concatenate([np.zeros(0), *self.points])
        brackets += self.brackets(points[np.argsort(np.abs(points))][: 4 * limit])
        complete = complete and not low.size and points.size <= 4 * limit
        return merged(brackets, self.guess), complete

    def settle(self, low: Floats, high: Floats, orders: int) -> tuple[Floats, Floats]:
        """Solve the cells that can be solved and return those that cannot."""
        walk = self.walk(low, high)
        open_cells = (sign_on(walk, self.slopes[0]) == 0) & ~walk.nowhere(self.slopes[0])
        low, high = low[open_cells], high[open_cells]
        walk = self.walk(low, high)
        tame: Mask = np.ones(low.shape, bool)
        solved = ~tame
        for order in range(1, orders + 1):
            tame = tame & walk.range(self.slopes[order - 1]).tame
            if not (tame & ~solved).any() or not self.has_slope(order):
                break
            proven = tame & ~solved & (sign_on(walk, self.slopes[order]) != 0)
            self.solvable.append((order, low[proven], high[proven]))
            solved = solved | proven
        return low[~solved], high[~solved]

    def solve(self) -> None:
        """Find the zeros on all cells put aside, those of one order together."""
        for order in range(1, ORDERS + 1):
            cells = [(low, high) for k, low, high in self.solvable if k == order and low.size]
            if cells:
                low, high = (np.concatenate(ends) for ends in zip(*cells, strict=True))
                self.descend(order, low, high)

    def descend(self, order: int, low: Floats, high: Floats) -> None:
        """Find the zeros on cells where the derivative of that order has one sign."""
        for lower in range(order - 1, 0, -1):
            crossed, points = self.crossings(lower, low, high)
            self.points.append(points[self.signs(0, points, points) == 0])
            ends = high.copy()
            ends[crossed] = points
            low, high = np.concatenate([low, points]), np.concatenate([ends, high[crossed]])
        self.points.append(self.crossings(0, low, high)[1])
        ends = np.unique(np.concatenate([low, high]))
        self.points.append(ends[self.signs(0, ends, ends) == 0])

    def crossings(self, order: int, low: Floats, high: Floats) -> tuple[Mask, Floats]:
        """Return where a derivative changes sign for certain, and the zeros there."""
        left, right = self.signs(order, low, low), self.signs(order, high, high)
        crossed = left * right < 0
        low, high, left = low[crossed], high[crossed], left[crossed]
        middle = low / 2 + high / 2
        while ((low < middle) & (middle < high)).any():
            signs = np.sign(self.guess(middle, order))
            low = np.where(signs != -left, middle, low)
            high = np.where(signs != left, middle, high)
            middle = low / 2 + high / 2
        if not low.size:
            return crossed, low
        closer = np.abs(self.guess(low, order)) <= np.abs(self.guess(high, order))
        return crossed, np.where(closer, low, high)

    def guess(self, points: Floats, order: int = 0) -> Floats:
        """Return the value of a derivative at points, as well as double precision can."""
        found = self.walk(points, points).range(self.slopes[order])
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(found.low / 2 + found.high / 2, nan=np.inf)

    def signs(self, order: int, low: Floats, high: Floats) -> Signs:
        """Return the proven signs of a derivative on cells."""
        return sign_on(self.walk(low, high), self.slopes[order])

    def walk(self, low: Floats, high: Floats) -> Walk:
        """Return a walk over cells of the variable."""
        return Walk({self.symbol: (low, high)})

    def has_slope(self, order: int) -> bool:
        """Form the derivative of that order, unless it becomes unwieldy."""
        while len(self.slopes) <= order:
            last = self.slopes[-1]
            if len(self.slopes) > 1 and last.count_ops() > OPERATIONS:
                return False
            self.slopes.append(slope(last, self.symbol))
        return True

    @np.errstate(over="ignore")
    def brackets(self, points: Floats) -> list[Bracket]:
        """Return around every point the stretch on which the sign is not decided."""
        steps = np.where(points == 0, 1.0, np.abs(points))[:, np.newaxis] * _STEPS
        ends = []
        for side in (-1, 1):
            near = np.clip(points[:, np.newaxis] + side * steps, self.low, self.high).ravel()
            decided = (self.signs(0, near, near) != 0).reshape(steps.shape)
            decided[:, -1] = True
            ends.append(near.reshape(steps.shape)[np.arange(len(points)), decided.argmax(axis=1)])
        return [Bracket(*row) for row in np.array([ends[0], ends[1], points]).T.tolist()]

    def resolved(self) -> tuple[list[Bracket], bool]:
        """Return the undecided stretches that hold a zero, and whether all could be resolved."""
        found: list[Bracket] = []
        complete = True
        for low, high in clusters(self.undecided):
            walk = self.walk(np.array([low]), np.array([high]))
            parts = alternatives(self.slopes[0], walk)
            open_parts = [part for part in parts if not sign_on(walk, part)[0]]
            ranges = [walk.range(part) for part in open_parts]
            bounded = [np.isfinite([r.low[0], r.high[0]]).all() for r in ranges]
            complete = complete and all(bounded)
            if any(bounded):
                found.append(Bracket(low, high, low / 2 + high / 2))
        return found, complete


def alternatives(expr: sympy.Expr, walk: Walk) -> list[sympy.Expr]:
    """Return what a formula may be on one cell, one for each combination of cases.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> cell = Walk({q: (np.array([0.9]), np.array([1.1]))})
    >>> alternatives(sympy.Piecewise((q, q < 1), (3, q < 2), (4, True)), cell)
    [q, 3]
    """
    done: list[sympy.Expr] = []
    waiting = [expr]
    while waiting and len(waiting) + len(done) <= ALTERNATIVES:
        part = waiting.pop()
        kinds = part.atoms(sympy.Piecewise, sympy.sign)
        if not kinds:
            done.insert(0, part)
            continue
        outer = max(kinds, key=lambda kind: kind.count_ops())
        waiting += [part.xreplace({outer: value}) for value in _possible(outer, walk)]
    return done if not waiting else [expr]


def _possible(kind: sympy.Expr, walk: Walk) -> list[sympy.Expr]:
    """Return the values that cases, or a sign, may take on one cell."""
    if isinstance(kind, sympy.sign):
        return [sympy.Integer(-1), sympy.Integer(0), sympy.Integer(1)]
    found: list[sympy.Expr] = []
    for value, test in kind.args:
        possible, certain = walk.truth(test)
        if possible[0]:
            found.append(value)
        if certain[0]:
            break
    return found


def slope(expr: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return the derivative: that of |a| is sign(a)·a′, those of min and max are cases.

    The chain rule over the outermost kinked parts; all else is left to sympy.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> slope(sympy.Abs(q) * q, q)
    q*sign(q) + Abs(q)
    """
    kinked = _outermost(expr)
    names = {part: sympy.Dummy(real=True) for part in kinked}
    smooth = expr.xreplace(names)
    back = {name: part for part, name in names.items()}
    terms = [smooth.diff(symbol)]
    for part, name in names.items():
        terms.append(smooth.diff(name) * _kinked_slope(part, symbol))
    return sympy.Add(*(term.xreplace(back) for term in terms))


def _outermost(expr: sympy.Basic) -> list[sympy.Expr]:
    """Return the kinked parts that lie in no other."""
    if isinstance(expr, _KINKED):
        return [expr]
    return list(dict.fromkeys(part for arg in expr.args for part in _outermost(arg)))


def _kinked_slope(part: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return the slope of |·|, min, max, cases or sign; nan where it is too intricate."""
    if isinstance(part, sympy.sign):
        return sympy.S.Zero
    if isinstance(part, sympy.Abs):
        return sympy.sign(part.args[0]) * slope(part.args[0], symbol)
    if isinstance(part, sympy.Piecewise):
        cases = [(slope(value, symbol), test) for value, test in part.args]
        return sympy.Piecewise(*cases, evaluate=False)
    if part.has(sympy.Piecewise):  # sympy would multiply out the cases of a condition
        return sympy.nan
    first, *others = part.args
    rest = part.func(*others, evaluate=False)
    test = first < rest if isinstance(part, sympy.Min) else first > rest
    cases = [(slope(first, symbol), test), (slope(rest, symbol), True)]
    return sympy.Piecewise(*cases, evaluate=False)


class Bracket(NamedTuple):
    """A stretch in which there is a zero, and a guess at it."""

    low: float
    high: float
    point: float


def partition(low: float, high: float) -> tuple[Floats, Floats]:
    """Return cells that cover [low, high]: powers of two outwards from 0, and equal parts.

    Examples
    --------
    >>> len(partition(0.0, 1.0)[0])
    22
    """
    if low >= high:
        edges = np.array([low] * (low == high))
        return edges, edges
    marks = np.concatenate([-_POWERS, [0.0], _POWERS])
    inside = marks[(marks > low) & (marks < high)]
    even = np.linspace(low, high, _UNIFORM) if high / 2 - low / 2 < _WIDE else [low, high]
    edges = np.unique(np.concatenate([even, inside]))
    return edges[:-1], edges[1:]


def _is_tiny(low: Floats, high: Floats) -> Mask:
    """Tell cells that are not worth halving."""
    return high - low <= _WIDTH * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))


def _halves(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return both halves of every cell."""
    middle = low / 2 + high / 2
    return np.concatenate([low, middle]), np.concatenate([middle, high])


def clusters(cells: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the runs of neighbouring cells.

    Examples
    --------
    >>> clusters([(2.0, 3.0), (0.0, 1.0), (1.0, 2.0), (5.0, 6.0)])
    [(0.0, 3.0), (5.0, 6.0)]
    """
    runs: list[tuple[float, float]] = []
    for low, high in sorted(cells):
        if runs and low <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(high, runs[-1][1]))
        else:
            runs.append((low, high))
    return runs


def merged(brackets: list[Bracket], value: Callable[[Floats], Floats]) -> list[float]:
    """Return one point for every run of overlapping brackets: where the value is smallest.

    Among equals the one in the middle counts: around a multiple zero the function looks flat.

    Examples
    --------
    >>> merged([Bracket(0.0, 0.5, 0.4), Bracket(0.2, 0.6, 0.3)], lambda x: x - 0.3)
    [0.3]
    """
    points = []
    for low, high in clusters((bracket.low, bracket.high) for bracket in brackets):
        guesses = [b.point for b in brackets if low <= b.point <= high]
        rounded = [float(f"{guess:.12g}") for guess in guesses]
        tried = np.array([*guesses, *rounded, low, high])
        tried = tried[(tried >= low) & (tried <= high)]
        order = np.lexsort([np.abs(tried - (low / 2 + high / 2)), np.abs(value(tried))])
        points.append(float(tried[order[0]]))
    return points
