"""Signs, directions and images of formulas on boxes, and which of their cases hold there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.formula.substitution import decimal, real
from trueup.inverse.jets import derivative
from trueup.inverse.points import KINKED, without_kinks
from trueup.inverse.ranges import (
    Cells,
    Floats,
    Mask,
    Question,
    Walk,
    difference,
    guards,
    lattice,
    tell,
    undecided,
)

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
    names = {s.name for s in expr.free_symbols}.union(*(c.names for c in tied))
    own = {s: d for s, d in box.items() if s in expr.free_symbols or s.name in names}
    if not expr.free_symbols:
        value = real(expr)
        return 0 if value is None or (not value and strict) else -1 if value < 0 else 1
    if not expr.free_symbols <= set(own) or _alternates(expr, own):
        return 0
    found: set[int] = set()

    def check(walk: Walk) -> Mask:
        low, high, sure = walk.range(expr)
        above, below = (low > 0, high < 0) if strict else (low >= 0, high <= 0)
        for side, there in ((1, above & ~below), (-1, below & ~above)):
            if (there & walk.allowed).any():
                found.add(side)
        if len(found) > 1:  # no need to look further
            return walk.all
        return (above | below) & (sure | (not defined))

    if not undecided(Question(check, own, frozenset(own), tied=tied)):
        return found.pop() if len(found) == 1 else 0 if found else 1
    factored = sympy.factor(decimal(expr)) if expr.is_polynomial(*own) else expr
    if isinstance(factored, (sympy.Mul, sympy.Pow)) and factored != expr:  # a square shows its sign
        return sign(factored, box, strict=strict, tied=tied, defined=defined)
    return 0


def _alternates(expr: sympy.Expr, box: Box) -> bool:
    """Whether an expression has powers of negative numbers, which are real at integers only."""
    powers = (p for p in expr.atoms(sympy.Pow) if p.base.is_negative)
    return any(not p.exp.free_symbols <= lattice(box) for p in powers)


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
    if symbol not in own or not is_defined_on(f, own, continuous=True):
        return 0
    slope = derivative(without_kinks(f), symbol, 1)
    found = sign(slope, own, strict=False, defined=False)
    if not found and slope.is_rational_function(*own):
        slope = sympy.factor(sympy.together(slope))
        found = sign(slope, own, strict=False, defined=False)
    return found


def is_defined_on(
    f: sympy.Expr, box: Box, tied: Sequence[Condition] = (), *, continuous: bool = False
) -> bool:
    """Whether f is proven to be a real number everywhere on a closed box, and continuous.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> [is_defined_on(sympy.sqrt(f), {q: Interval(0, None)}) for f in (q, q - 1)]
    [True, False]
    """
    free = frozenset() if continuous else frozenset(box)
    return not undecided(Question(lambda walk: walk.range(f).sure, box, free, guards(f), tied))


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
    least, most = low, high
    cuts = {q: _cut(*ends, pieces, whole=q in integers) for q, ends in cells.items()}
    for choice in product(range(pieces), repeat=len(cells)):
        walk = Walk({q: cuts[q][i] for q, i in zip(cells, choice, strict=True)}, integers)
        tell(walk, tied)
        below, above, _ = walk.range(f)
        low = np.where(walk.allowed, np.minimum(low, below), low)
        high = np.where(walk.allowed, np.maximum(high, above), high)
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


# -- which cases hold ------------------------------------------------------------------------------


def inside(
    f: sympy.Expr, box: Box, rough: frozenset[sympy.Symbol], tied: Sequence[Condition] = ()
) -> sympy.Expr:
    """Return f as it is on a box, at all but single values of the ``rough`` statistics.

    |·|, min and max are replaced by the argument that they are on the whole box, touching at its
    edge included; conditions are decided where they hold everywhere, on one rough statistic where
    they hold at all but single points.

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
        wins, left = (1 if isinstance(f, sympy.Max) else -1), list(args)
        for a in args:
            if any(b is not a and sign(b - a, box, strict=False, tied=tied) == wins for b in left):
                left.remove(a)
        return f.func(*left, evaluate=False)
    if isinstance(f, Relational):
        return _decided(f.func(*args), box, rough, tied)
    return f.func(*args)


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
