"""Signs, directions and images of formulas on boxes, and which of their cases hold there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.errors import FormulaError
from trueup.formula.build import UnfitError, is_long, stable
from trueup.formula.substitution import at, decimal, real
from trueup.formula.text import text
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import (
    Cells,
    Floats,
    Mask,
    Question,
    Walk,
    difference,
    guards,
    undecided,
)

if TYPE_CHECKING:
    from trueup.formula.linear import Condition

Box = Mapping[sympy.Symbol, Interval]

_SPLIT = (sympy.Abs, sympy.Min, sympy.Max)
KINKED = (*_SPLIT, sympy.Piecewise)
"""What f may be made of that picks cases."""


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
    own = {s: d for s, d in box.items() if s.name in names}
    if not expr.free_symbols:
        value = real(expr)
        return 0 if value is None or (not value and strict) else -1 if value < 0 else 1
    if not expr.free_symbols <= set(own):
        return 0
    found: set[int] = set()

    def check(walk: Walk) -> Mask:
        low, high, sure = walk.range(expr)
        above, below = (low > 0, high < 0) if strict else (low >= 0, high <= 0)
        for side, there in ((1, above & ~below), (-1, below & ~above)):
            if (there & walk.allowed).any():
                found.add(side)
        proven = (above | below) & (sure | (not defined))
        return walk.all if len(found) > 1 else proven  # no need to look further

    if not undecided(Question(check, own, frozenset(own), tied=tied)):
        return found.pop() if len(found) == 1 else 0 if found else 1
    factored = sympy.factor(decimal(expr)) if expr.is_rational_function(*own) else expr
    if isinstance(factored, (sympy.Mul, sympy.Pow)) and factored != expr:  # a square shows its sign
        return sign(factored, box, strict=strict, tied=tied, defined=defined)
    return 0


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
    return sign(derivative(without_kinks(f), symbol, 1), own, strict=False, defined=False)


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
    f: sympy.Expr, cells: Cells, tied: Sequence[Condition] = (), pieces: int = 4
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
    shape, steps = np.shape(next(iter(cells.values()))[0]), np.arange(pieces) / pieces
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    least, most = low, high
    cuts = (pairwise([*(a + (b - a) * t for t in steps), b]) for a, b in cells.values())
    for ends in product(*cuts):
        walk = Walk(dict(zip(cells, ends, strict=True)))
        walk.tell(tied)
        below, above, _ = walk.range(f)
        low = np.where(walk.allowed, np.minimum(low, below), low)
        high = np.where(walk.allowed, np.maximum(high, above), high)
        least, most = np.minimum(least, below), np.maximum(most, above)
    outside = low > high
    return np.where(outside, least, low), np.where(outside, most, high)


# -- which cases hold ------------------------------------------------------------------------------


def inside(f: sympy.Expr, box: Box, tied: Sequence[Condition] = ()) -> sympy.Expr:
    """Return f as it is on a box.

    |·|, min and max are replaced by the argument that they are on the whole box, touching at its
    edge included; conditions are decided where they hold everywhere.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> inside(abs(q - 3), {q: Interval(None, 3)})
    3 - q
    >>> inside(sympy.Piecewise((q, q >= 0), (-q, True)), {q: Interval(0, None)})
    q
    """
    if not f.args or not f.has(*KINKED, Relational):
        return f
    args = [inside(a, box, tied) for a in f.args]
    if isinstance(f, sympy.Abs):
        side = sign(args[0], box, strict=False, tied=tied)
        return side * args[0] if side else sympy.Abs(args[0])
    if isinstance(f, (sympy.Min, sympy.Max)):
        wins, left = (1 if isinstance(f, sympy.Max) else -1), list(args)
        for a in args:
            if any(b is not a and sign(b - a, box, strict=False, tied=tied) == wins for b in left):
                left.remove(a)
        return f.func(*left, evaluate=False)
    found = f.func(*args)
    if not isinstance(found, Relational) or found.has(*KINKED):
        return found
    gap = difference(found)
    for strict in (True, False):  # a >= b holds where they touch as well
        side = sign(gap, box, strict=strict, tied=tied)
        if side and (strict or isinstance(found, _AT_ZERO[side])):
            return found.func(side, 0)
    return found


_AT_ZERO = {1: (sympy.Ge, sympy.Lt), -1: (sympy.Le, sympy.Gt)}
"""Comparisons with 0 that are the same at 0 as on that side of it."""

# -- cases written out -----------------------------------------------------------------------------

_PARTS = 3_000  # of the cases written out: each takes sympy some 0.1 ms in every later step
_BESIDE = sympy.Rational(4, 10**15)  # relative: a bound may be an ulp off
_BESIDE_ZERO = sympy.Rational(1, 10**30)
_DIGITS = 60  # in which comparisons beside a point are read


@lru_cache(maxsize=256)
def without_kinks(f: sympy.Expr) -> sympy.Expr:
    """Return f with |·|, min and max as cases, whose derivatives have no point masses.

    A ``where`` inside one of them is drawn outside: sympy cannot compare cases.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> without_kinks(sympy.Abs(q - 1) + sympy.Max(0, q))
    Piecewise((q, q >= 0), (0, True)) + Piecewise((q - 1, q >= 1), (1 - q, True))
    """
    if not f.has(*_SPLIT):
        return f
    try:
        found = _written_out(f)
    except (UnfitError, TypeError):  # what is compared is never a real number
        found = None
    if found is None or is_long(found, _PARTS):
        raise FormulaError(
            f"{text(f)[:200]} has too many cases inside one another",
            "nest abs, min, max and where less deeply, or split the formula",
        )
    return found


def _written_out(f: sympy.Expr) -> sympy.Expr:
    if isinstance(f, sympy.Piecewise):
        return sympy.Piecewise(*((without_kinks(value), test) for value, test in f.args))
    if not isinstance(f, _SPLIT):
        found = f.func(*map(without_kinks, f.args))
        cases = found.args if isinstance(found, sympy.Piecewise) else ()
        again = any(value.has(*_SPLIT) for value, _ in cases)  # of (q**2)**1.5 sympy makes |q|³
        return without_kinks(found) if again else found
    inner = next((e for e in sympy.preorder_traversal(f) if isinstance(e, sympy.Piecewise)), None)
    if inner is not None:
        drawn = ((at(f, {inner: value}), test) for value, test in inner.args)
        return _written_out(sympy.Piecewise(*drawn))
    first, *others = f.args
    if isinstance(f, sympy.Abs):
        value, other, test = first, -first, first >= 0
    else:
        value, other = others[0] if len(others) == 1 else f.func(*others, evaluate=False), first
        test = (sympy.Ge if isinstance(f, sympy.Max) else sympy.Le)(value, other)
    return sympy.Piecewise((without_kinks(value), stable(test)), (without_kinks(other), True))


def beside(f: sympy.Expr, point: Mapping[sympy.Symbol, tuple[sympy.Expr, int]]) -> sympy.Expr:
    """Return the case of f that holds beside a point, given as {symbol: (value, side)}.

    Comparisons that depend on other symbols too stay.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> beside(abs(q - 3), {q: (sympy.Integer(3), -1)})
    3 - q
    """
    near = {
        symbol: value + side * (_BESIDE * abs(value) or _BESIDE_ZERO) * (1 + sympy.Rational(i, 7))
        for i, (symbol, (value, side)) in enumerate(point.items())
    }
    return chosen(f, near)


def chosen(f: sympy.Expr, near: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return f with every case picked that holds at a point, as far as it decides.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> chosen(sympy.Max(n, 1) * abs(s), {n: sympy.Integer(5)})
    n*Piecewise((s, s >= 0), (-s, True))
    """
    smooth = without_kinks(f)
    tests = [t for t in smooth.atoms(Relational) if t.free_symbols <= set(near)]
    signs = {t: real(at(difference(t), near), _DIGITS, 400) for t in tests}
    return at(smooth, {t: t.func(value, 0) for t, value in signs.items() if value is not None})
