"""The range of a formula on many boxes at once, and the cells of a box that a check leaves open.

Interval arithmetic, rounded outwards: one walk over the expression gives, for every box, bounds
``low`` and ``high`` on its values and whether it is ``sure`` to be defined and continuous on the
closed box. Ends may be infinite: these are never attained. Where a formula is undefined on part of
a box, the bounds hold on the rest.

A check of walks tries the whole box first. What is left is halved, along the axes of *guards* that
may vanish (what f divides by, takes roots or logarithms of, or compares), integer axes between
integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import sympy
from sympy.core.relational import Relational

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.formula.linear import Condition

    Box = Mapping[sympy.Symbol, Interval]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Cells = Mapping[sympy.Symbol, tuple[Floats, Floats]]
"""For every symbol the lower and the upper ends of its cells, arrays of one shape."""

_MAX = float(np.finfo(float).max)
_SLACK = 2.0**-49  # elementary functions of NumPy stay within 4 units in the last place
_WHOLE = 2.0**53  # integers below are doubles
_DIGITS = 30
_UNRESOLVED = 1e-30


class Range(NamedTuple):
    """Intervals [low, high], and where the function is defined and continuous throughout."""

    low: Floats
    high: Floats
    sure: Mask


def _outward(
    low: Floats, high: Floats, sure: Mask, exact: tuple[Mask | bool, Mask | bool] = (False, False)
) -> Range:
    """Return a range with its ends moved outwards, but for exact ones; what overflows is large."""
    low, high = np.minimum(low, _MAX), np.maximum(high, -_MAX)
    least = np.nextafter(low - np.abs(low) * _SLACK, -np.inf)
    most = np.nextafter(high + np.abs(high) * _SLACK, np.inf)
    return Range(np.where(exact[0], low, least), np.where(exact[1], high, most), sure)


def _is_short(x: Floats) -> Mask:
    """Tell numbers of at most 24 bits, whose products are exact, and infinite ones."""
    short: Mask = x.astype(np.float32).astype(float) == x
    return short


def _size(a: Range) -> Range:
    """Return |a|."""
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return Range(low, np.maximum(np.abs(a.low), np.abs(a.high)), a.sure)


def _add(a: Range, b: Range) -> Range:
    """Return a + b."""
    (low, exact_low), (high, exact_high) = _sum(a.low, b.low), _sum(a.high, b.high)
    return _outward(low, high, a.sure & b.sure, (exact_low, exact_high))


def _sum(x: Floats, y: Floats) -> tuple[Floats, Mask]:
    """Return a sum and whether it is exact (Knuth's two-sum)."""
    total = x + y
    part = total - x
    return total, ((x - (total - part)) + (y - part) == 0) | np.isinf(total)


def _multiply(a: Range, b: Range) -> Range:
    """Return a·b, where 0·∞ is 0."""
    ends = [np.where((x == 0) | (y == 0), 0.0, x * y) for x in a[:2] for y in b[:2]]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    exact = np.logical_and.reduce([_is_short(x) for x in (*a[:2], *b[:2])])
    zero = np.logical_or.reduce([x == 0 for x in (*a[:2], *b[:2])])  # else it underflowed
    return _outward(
        low, high, a.sure & b.sure, (exact | (low == 0) & zero, exact | (high == 0) & zero)
    )


def _reciprocal(a: Range) -> Range:
    """Return 1/a: not sure where a may be 0."""
    clear = (a.low > 0) | (a.high < 0)
    low = np.where(clear | (a.low == 0) & (a.high > 0), 1 / a.high, -np.inf)
    high = np.where(clear | (a.high == 0) & (a.low < 0), 1 / a.low, np.inf)
    exact = [np.isinf(end) | (end == 0) | (np.abs(np.frexp(end)[0]) == 0.5) for end in (low, high)]
    return _outward(low, high, a.sure & clear, (exact[0], exact[1]))


def _power(a: Range, n: int) -> Range:
    """Return aⁿ for a whole number n."""
    if n < 0:
        return _reciprocal(_power(a, -n))
    base = a if n % 2 else _size(a)
    low, high = np.power(base.low, float(n)), np.power(base.high, float(n))
    exact = [
        (end == np.floor(end)) & (np.abs(p) < _WHOLE) | np.isinf(end)
        for end, p in ((base.low, low), (base.high, high))
    ]
    return _outward(low, high, a.sure, (exact[0] | (low == 0) & (base.low >= 0), exact[1]))


def _real_power(a: Range, p: Range) -> Range:
    """Return aᵖ for a ≥ 0: monotone in both, so its extremes are at the corners."""
    base = np.maximum(a.low, 0.0), np.maximum(a.high, 0.0)
    ends = [np.power(x, y) for x in base for y in p[:2]]
    ends = [np.where(np.isnan(end), 1.0, end) for end in ends]  # 1^∞: 0 and ∞ are ends as well
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    sure = a.sure & p.sure & ((a.low > 0) | ((a.low == 0) & (p.low > 0)))
    found = _outward(low, high, sure, (low == 0, False))
    return found._replace(low=np.maximum(found.low, 0.0))


class _Monotone(NamedTuple):
    """An increasing function, where it is defined, and what its values are.

    At finite ends of its domain its slope is infinite; it is not even defined there if it
    ``is_open``.
    """

    function: Callable[[Floats], Floats]
    domain: tuple[float, float] = (-np.inf, np.inf)
    image: tuple[float, float] = (-np.inf, np.inf)
    is_open: bool = False

    def range(self, a: Range, *, analytic: bool) -> Range:
        least, most = self.domain
        low, high = (self.function(np.clip(end, least, most)) for end in a[:2])
        inside = (a.low >= least) & (a.high <= most)
        if self.is_open or analytic:
            inside &= (a.low > least) | np.isinf(least)
            inside &= (a.high < most) | np.isinf(most)
        found = _outward(low, high, a.sure & inside)
        low, high = (np.clip(end, *self.image) for end in found[:2])
        return Range(low, high, found.sure)


_QUARTER = 1.5707963267948968  # just above π/2
_INCREASING: dict[type[sympy.Basic], _Monotone] = {
    sympy.exp: _Monotone(np.exp, image=(0.0, np.inf)),
    sympy.log: _Monotone(np.log, (0.0, np.inf), is_open=True),
    sympy.sinh: _Monotone(np.sinh),
    sympy.tanh: _Monotone(np.tanh, image=(-1.0, 1.0)),
    sympy.atan: _Monotone(np.arctan, image=(-_QUARTER, _QUARTER)),
    sympy.asinh: _Monotone(np.arcsinh),
    sympy.asin: _Monotone(np.arcsin, (-1.0, 1.0), (-_QUARTER, _QUARTER)),
    sympy.acosh: _Monotone(np.arccosh, (1.0, np.inf), (0.0, np.inf)),
    sympy.atanh: _Monotone(np.arctanh, (-1.0, 1.0), is_open=True),
}
_WAVES = {sympy.sin: np.sin, sympy.cos: np.cos}


def _wave(a: Range, function: Callable[[Floats], Floats]) -> Range:
    """Return the range of a sine or cosine, whose slope is at most 1."""
    reach = (a.high - a.low) / 2 + np.maximum(np.abs(a.low), np.abs(a.high)) * _SLACK
    narrow = reach < 1
    middle = function(np.where(narrow, a.low / 2 + a.high / 2, 0.0))
    low, high, sure = _outward(middle - reach, middle + reach, a.sure)
    low, high = np.where(narrow, np.maximum(low, -1), -1), np.where(narrow, np.minimum(high, 1), 1)
    return Range(low, high, sure)


@lru_cache(maxsize=4096)
def constant_bounds(expr: sympy.Expr) -> tuple[float, float] | None:
    """Return doubles around a constant, None if it is not a real number.

    Examples
    --------
    >>> constant_bounds(sympy.Rational(1, 4)), constant_bounds(sympy.I)
    ((0.25, 0.25), None)
    """
    given = expr.is_Rational or expr.is_Float
    value = expr if given else expr.evalf(_DIGITS)
    if not value.is_Number or not value.is_finite:
        return None
    near = float(value)
    if np.isinf(near):
        return (_MAX, np.inf) if near > 0 else (-np.inf, -_MAX)
    if given and sympy.Rational(near) == sympy.Rational(value):
        return near, near
    spread = 0.0 if given else _UNRESOLVED
    return float(np.nextafter(near - spread, -np.inf)), float(np.nextafter(near + spread, np.inf))


@lru_cache(maxsize=4096)
def difference(test: Relational) -> sympy.Expr:
    """Return the left side of a comparison minus the right one."""
    return test.lhs - test.rhs


class Walk:
    """The ranges of expressions on one set of boxes, each common part computed once.

    Parameters
    ----------
    cells
        For every symbol the lower and the upper ends of its cells.
    free
        Symbols along which an expression may jump, such as integers: a comparison of these alone
        that is not decided on a cell is no fault, both its cases are looked at.
    analytic
        Whether ``sure`` asks for all derivatives too, along symbols that are not free.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> walk = Walk({q: (np.array([-1.0]), np.array([2.0]))})
    >>> walk.range(q**2 + 1)[:2], walk.range(1 / q).sure
    ((array([1.]), array([5.])), array([False]))
    """

    def __init__(
        self, cells: Cells, free: frozenset[sympy.Symbol] = frozenset(), *, analytic: bool = False
    ) -> None:
        shapes = [np.shape(end) for ends in cells.values() for end in ends]
        self.all: Mask = np.ones(np.broadcast_shapes((1,), *shapes), dtype=bool)
        self.allowed, self.free, self.analytic = self.all, free, analytic
        self.memo: dict[sympy.Basic, Range] = {}
        self.told: list[tuple[sympy.Expr, frozenset[sympy.Basic]]] = []
        for symbol, (low, high) in cells.items():
            ends = np.minimum(self._full(low), _MAX), np.maximum(self._full(high), -_MAX)
            self.memo[symbol] = Range(*ends, self.all)

    def range(self, expr: sympy.Basic) -> Range:
        """Return the range of an expression on every box."""
        found = self.memo.get(expr)
        if found is None:
            with np.errstate(all="ignore"):
                found = self.memo[expr] = self._range(expr)
        return found

    def tell(self, tied: Sequence[Condition]) -> None:
        """Use what conditions say of sums of symbols: boxes that break one are not ``allowed``."""
        for condition in tied:
            total = sympy.Add(*(c * sympy.Symbol(name, real=True) for name, c in condition.terms))
            bounds = constant_bounds(condition.low)
            if bounds is None or not total.free_symbols <= set(self.memo):
                continue
            known = self.range(total)
            least, most = np.maximum(known.low, bounds[0]), np.maximum(known.high, bounds[0])
            self.memo[total] = Range(least, most, known.sure)
            self.memo[-total] = Range(-most, -least, known.sure)
            self.told += [(e, frozenset(e.args)) for e in (total, -total) if e.is_Add]
            self.allowed = self.allowed & (known.high >= bounds[0])

    def _full(self, ends: Floats | float) -> Floats:
        return np.full(self.all.shape, ends, dtype=float)

    def _anything(self, sure: Mask) -> Range:
        return Range(self._full(-np.inf), self._full(np.inf), sure)

    def _range(self, expr: sympy.Basic) -> Range:
        if not expr.free_symbols and not expr.has(Opaque):
            bounds = constant_bounds(expr)
            if bounds is None:
                return self._anything(~self.all)
            return Range(self._full(bounds[0]), self._full(bounds[1]), self.all)
        if isinstance(expr, sympy.Add):
            return reduce(_add, map(self.range, self._terms(expr)))
        if isinstance(expr, sympy.Mul):
            return reduce(_multiply, map(self.range, expr.args))
        if isinstance(expr, sympy.Pow):
            return self._power(expr)
        if isinstance(expr, (sympy.Min, sympy.Max)):
            return self._extremum(expr)
        if isinstance(expr, sympy.Piecewise):
            return self._cases(expr)
        if isinstance(expr, sympy.Symbol):
            raise TrueupError(f"no box is given for {expr}", "give the ends of its cells")
        if expr.is_Function and expr.args:
            return self._function(expr)
        return self._anything(~self.all)

    def _terms(self, expr: sympy.Add) -> list[sympy.Basic]:
        """Return the terms of a sum, those that something is told of as one."""
        for total, terms in self.told:
            if terms < frozenset(expr.args):
                return [total, *(a for a in expr.args if a not in terms)]
        return list(expr.args)

    def _may_be_rough(self, expr: sympy.Basic) -> bool:
        """Whether an expression may have kinks and infinite slopes."""
        return not self.analytic or expr.free_symbols <= self.free

    def _power(self, expr: sympy.Pow) -> Range:
        base, exponent = self.range(expr.base), expr.exp
        if exponent.is_number and exponent.is_real and float(exponent).is_integer():
            return _power(base, int(exponent))
        found = _real_power(base, self.range(exponent))
        if not exponent.is_number:  # of negative numbers there may be powers at integers
            low = np.where(base.low < 0, -np.inf, found.low)
            found = found._replace(low=low, high=np.where(base.low < 0, np.inf, found.high))
        if self._may_be_rough(expr.base):
            return found
        return found._replace(sure=found.sure & (base.low > 0))

    def _extremum(self, expr: sympy.Expr) -> Range:
        side = 1 if isinstance(expr, sympy.Max) else -1
        pick = np.maximum if side > 0 else np.minimum
        parts = [self.range(arg) for arg in expr.args]
        low, high = (pick.reduce([part[end] for part in parts]) for end in (0, 1))
        sure = np.logical_and.reduce([part.sure for part in parts])
        if not self._may_be_rough(expr):  # one of them is the extremum on the whole cell
            lows, highs = (side * np.stack([p[end] for p in parts]) for end in (0, 1)[::side])
            np.put_along_axis(highs, lows.argmax(axis=0)[None], -np.inf, axis=0)
            sure = sure & (lows.max(axis=0) > highs.max(axis=0))
        return Range(low, high, sure)

    def _function(self, expr: sympy.Expr) -> Range:
        kind = type(expr)
        if kind is sympy.tan:
            return self.range(sympy.sin(expr.args[0]) / sympy.cos(expr.args[0]))
        if kind is sympy.acos:
            return self.range(sympy.pi / 2 - sympy.asin(expr.args[0]))
        a = self.range(expr.args[0])
        if kind in _INCREASING:
            return _INCREASING[kind].range(a, analytic=not self._may_be_rough(expr))
        if kind in _WAVES:
            return _wave(a, _WAVES[kind])
        if kind is sympy.cosh:
            size = _size(a)
            return _outward(np.cosh(size.low), np.cosh(size.high), a.sure)
        if kind is sympy.Abs:
            found, apart = _size(a), (a.low > 0) | (a.high < 0)
            return found if self._may_be_rough(expr) else found._replace(sure=a.sure & apart)
        # a function known by its values is taken to be smooth
        trusted = np.logical_and.reduce([self.range(arg).sure for arg in expr.args])
        return self._anything(trusted if isinstance(expr, Opaque) else ~self.all)

    def _cases(self, expr: sympy.Piecewise) -> Range:
        """Return the hull over the cases that are possible on a cell."""
        low, high, sure, left = self._full(np.inf), self._full(-np.inf), self.all, self.all
        for value, test in expr.args:
            may, must, sound = self.truth(test)
            here = left & may
            sure = sure & (sound | ~left)
            if here.any():
                case = self.range(value)
                low = np.where(here, np.minimum(low, case.low), low)
                high = np.where(here, np.maximum(high, case.high), high)
                sure = sure & (~here | case.sure)
            left = left & ~must
        empty = low > high
        low, high = np.where(empty, -np.inf, low), np.where(empty, np.inf, high)
        return Range(low, high, sure & ~empty & ~left)

    def truth(self, test: sympy.Basic) -> tuple[Mask, Mask, Mask]:
        """Return where a condition may hold, where it must, and where not knowing does no harm."""
        if test in (sympy.true, sympy.false):
            same = self.all if test == sympy.true else ~self.all
            return same, same, self.all
        if isinstance(test, Relational):
            return self._comparison(test)
        if isinstance(test, (sympy.And, sympy.Or)):
            every = isinstance(test, sympy.And)
            join = np.logical_and if every else np.logical_or
            parts = [self.truth(part) for part in test.args]
            may, must = (join.reduce([part[i] for part in parts]) for i in (0, 1))
            alone = [(~m if every else n) & sound for m, n, sound in parts]  # one part decides
            sound = np.logical_and.reduce([part[2] for part in parts])
            return may, must, sound | np.logical_or.reduce(alone)
        if isinstance(test, (sympy.Not, sympy.ITE)):  # of comparisons
            return self.truth(test.to_nnf())
        return self.all, ~self.all, ~self.all

    def _comparison(self, test: Relational) -> tuple[Mask, Mask, Mask]:
        low, high, sure = self.range(difference(test))
        if isinstance(test, (sympy.StrictGreaterThan, sympy.GreaterThan)):
            low, high = -high, -low
        if isinstance(test, (sympy.Equality, sympy.Unequality)):
            may, must = (low <= 0) & (high >= 0), (low == 0) & (high == 0)
            may, must = (may, must) if isinstance(test, sympy.Equality) else (~must, ~may)
        elif isinstance(test, (sympy.StrictLessThan, sympy.StrictGreaterThan)):
            may, must = low < 0, high < 0
        else:
            may, must = low <= 0, high <= 0
        return may, must, sure & ((may == must) | (test.free_symbols <= self.free))


# -- cells -----------------------------------------------------------------------------------------

Cell = dict[sympy.Symbol, tuple[float, float]]
"""The ends of one cell along every axis."""

_CELLS = 4096  # at once: a walk over so many takes some milliseconds
_ROUNDS = 130  # of halving: 60 lead from 1e100 to 1e-15
_LEFT = 64  # tiny cells beyond which nothing is judged
_TINY, SMALLEST, FAR = 1e-12, 1e-3, 1e100
"""Relative width of a tiny cell; the size from which on it is relative; where cells end."""


@lru_cache(maxsize=1024)
def guards(f: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Return what f divides by, takes roots or logarithms of, or compares.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> guards(sympy.log(q) / (q - 2))
    (q - 2, q)
    """
    found = [g for node in sympy.preorder_traversal(f) for g in guards_of(node)]
    return tuple(dict.fromkeys(g for g in found if g.free_symbols))


def guards_of(node: sympy.Basic) -> Iterator[sympy.Expr]:
    """Yield the guards of the outermost operation of an expression."""
    if isinstance(node, sympy.Pow) and not (node.exp.is_Integer and node.exp > 0):
        yield node.base
    elif isinstance(node, (sympy.log, sympy.Abs)):
        yield node.args[0]
    elif isinstance(node, (sympy.Min, sympy.Max)):
        for a, b in combinations(node.args, 2):
            yield a - b
    elif isinstance(node, Relational):
        yield difference(node)
    elif isinstance(node, sympy.tan):
        yield sympy.cos(node.args[0])
    elif isinstance(node, (sympy.asin, sympy.acos, sympy.atanh)):
        yield from (1 - node.args[0], 1 + node.args[0])
    elif isinstance(node, sympy.acosh):
        yield node.args[0] - 1


class Question(NamedTuple):
    """A check of walks on a box, with what guides it.

    ``check`` tells on which cells it is met. Cells are cut along the axes of ``suspects`` that may
    vanish, along all if they are None; cells where a condition of ``tied`` fails are dropped.
    """

    check: Callable[[Walk], Mask]
    box: Box
    free: frozenset[sympy.Symbol] = frozenset()
    suspects: tuple[sympy.Expr, ...] | None = None
    tied: Sequence[Condition] = ()
    analytic: bool = False


def undecided(question: Question) -> list[Cell]:
    """Return cells, tiny unless there are too many, on which a check fails.

    The box is tried as it is; cut into cells it ends at ±1e100.
    """
    domains = question.box.values()
    whole = np.array([[d.lattice] for d in domains], dtype=bool).reshape(-1, 1)
    ends = np.array([[float(d.low) for d in domains], [float(d.high) for d in domains]])[:, :, None]
    left = []  # arrays of the lower and the upper ends, with a row for each axis
    for _ in range(_ROUNDS):
        cells = dict(zip(question.box, zip(*ends, strict=True), strict=True))
        walk = Walk(cells, question.free, analytic=question.analytic)
        walk.tell(question.tied)
        open_ = walk.allowed & ~question.check(walk)
        axes = _axes(question, walk, open_)
        ends = ends[:, :, open_]
        width, size = ends[1] - ends[0], np.clip(np.abs(ends).max(axis=0), SMALLEST, FAR)
        tiny = np.where(whole, width <= 0, width <= _TINY * size)[axes].all(axis=0)
        left.append(ends[:, :, tiny])
        ends = ends[:, :, ~tiny]
        many = ends.shape[2] * 2 ** len(axes) > _CELLS or sum(e.shape[2] for e in left) > _LEFT
        if many or not ends.size:
            break
        for axis in axes:
            ends = _halved(ends, axis, whole=bool(whole[axis, 0]))
    rows = np.concatenate([*left, ends[:, :, :_LEFT]], axis=2).transpose(2, 1, 0).tolist()
    return [dict(zip(question.box, map(tuple, row), strict=True)) for row in rows]


def _axes(question: Question, walk: Walk, keep: Mask) -> list[int]:
    """Return the axes of all suspects that may vanish on a cell that is left."""
    if question.suspects is None:
        return list(range(len(question.box)))
    found: set[sympy.Symbol] = set()
    for guard in question.suspects:
        low, high, _ = walk.range(guard)
        if ((low <= 0) & (high >= 0) & keep).any():
            found |= guard.free_symbols
    return [axis for axis, s in enumerate(question.box) if s in found]


def _halved(ends: Floats, axis: int, *, whole: bool) -> Floats:
    """Return both halves of every cell along an axis."""
    low, high = np.clip(ends[:, axis], -FAR, FAR)
    middle = np.floor(_middle(low, high)) if whole else _middle(low, high)
    middle = np.clip(middle, low, high)
    first, second, cut = ends.copy(), ends.copy(), low < high
    first[:, axis] = low, middle
    second[:, axis] = np.minimum(middle + 1, high) if whole else middle, high
    return np.concatenate([first, second[:, :, cut]], axis=2)


def _middle(low: Floats, high: Floats) -> Floats:
    """Return a point inside: 0, or in the middle of the decades of a cell that spans some."""
    near, far = np.minimum(abs(low), abs(high)), np.maximum(abs(low), abs(high))
    size = np.sqrt(np.maximum(near, 1.0)) * np.sqrt(far)
    decades = (low * high >= 0) & (far > np.maximum(4.0, 4 * near))
    middle = np.where(decades, np.where(low < 0, -size, size), low / 2 + high / 2)
    across = (low < 0) & (high > 0) & (far > 4)
    return np.asarray(np.where(across, 0.0, middle))
