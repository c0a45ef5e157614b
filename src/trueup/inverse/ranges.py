"""The range of a formula on many boxes at once: interval arithmetic, rounded outwards.

One walk over the expression gives, for every box, bounds ``low`` and ``high`` on its values and
whether it is ``sure`` to be defined and continuous on the closed box. Ends may be infinite: these
are never attained. Where a formula is undefined on part of a box, the bounds hold on the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import sympy
from sympy.core.relational import Relational

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Cells = Mapping[sympy.Symbol, tuple[Floats, Floats]]
"""For every symbol the lower and the upper ends of its cells, arrays of one shape."""

_QUIET = np.errstate(all="ignore")
_MAX = float(np.finfo(float).max)
_SLACK = 2.0**-49  # elementary functions of NumPy stay within 4 units in the last place
_WHOLE = 2.0**53  # integers below are doubles
_FAR = 1e6  # arguments of waves beyond are not reduced: a wave may be anything there
_BLUR = 1e-9  # of a turn, by which a peak of a wave counts as met
_DIGITS = 30
_UNRESOLVED = 1e-30


class Range(NamedTuple):
    """Intervals [low, high], and where the function is defined and continuous throughout."""

    low: Floats
    high: Floats
    sure: Mask


def times(a: float, b: float) -> float:
    """Return a·b, where 0·∞ is 0.

    Examples
    --------
    >>> times(0.0, float("inf")), times(2.0, 3.0)
    (0.0, 6.0)
    """
    return a * b if a and b else 0.0


def _bounded(low: Floats, high: Floats, sure: Mask) -> Range:
    """Return a range whose infinite ends are on the right sides; what overflows is large."""
    return Range(np.minimum(low, _MAX), np.maximum(high, -_MAX), sure)


def _widened(low: Floats, high: Floats, sure: Mask) -> Range:
    """Return the range of an elementary function, widened by its possible error."""
    low, high, _ = _bounded(low, high, sure)
    low = np.nextafter(low - np.abs(low) * _SLACK, -np.inf)
    high = np.nextafter(high + np.abs(high) * _SLACK, np.inf)
    return Range(low, high, sure)


def _rounded(
    low: tuple[Floats, Mask | bool], high: tuple[Floats, Mask | bool], sure: Mask
) -> Range:
    """Return a range from ends and whether these are exact, a unit further out where not."""
    least, most, _ = _bounded(low[0], high[0], sure)
    least = np.where(low[1], least, np.nextafter(least, -np.inf))
    most = np.where(high[1], most, np.nextafter(most, np.inf))
    return Range(least, most, sure)


@_QUIET
def add(a: Range, b: Range) -> Range:
    """Return a + b.

    Examples
    --------
    >>> one = Range(np.array([1.0]), np.array([2.0]), np.array([True]))
    >>> add(one, one)[:2]
    (array([2.]), array([4.]))
    """
    return _rounded(_sum(a.low, b.low), _sum(a.high, b.high), a.sure & b.sure)


def _sum(a: Floats, b: Floats) -> tuple[Floats, Mask]:
    """Return a sum and whether it is exact (Knuth's two-sum)."""
    total = a + b
    part = total - a
    return total, ((a - (total - part)) + (b - part) == 0) | np.isinf(total)


@_QUIET
def multiply(a: Range, b: Range) -> Range:
    """Return a·b, where 0·∞ is 0.

    Examples
    --------
    >>> a = Range(np.array([0.0]), np.array([2.0]), np.array([True]))
    >>> b = Range(np.array([-1.0]), np.array([np.inf]), np.array([True]))
    >>> multiply(a, b)[:2]
    (array([-2.]), array([inf]))
    """
    ends = [np.where((x == 0) | (y == 0), 0.0, x * y) for x in a[:2] for y in b[:2]]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    exact = reduce(np.logical_and, (_is_short(x) for x in (*a[:2], *b[:2])))
    zero = (a.low == 0) | (a.high == 0) | (b.low == 0) | (b.high == 0)  # else it underflowed
    least, most = exact | (low == 0) & zero, exact | (high == 0) & zero
    return _rounded((low, least), (high, most), a.sure & b.sure)


def _is_short(x: Floats) -> Mask:
    """Tell numbers of at most 24 bits, whose products are exact, and infinite ones."""
    short: Mask = x.astype(np.float32).astype(float) == x
    return short


@_QUIET
def reciprocal(a: Range) -> Range:
    """Return 1/a: not sure where a may be 0.

    Examples
    --------
    >>> reciprocal(Range(np.array([0.0]), np.array([4.0]), np.array([True])))
    Range(low=array([0.25]), high=array([inf]), sure=array([False]))
    """
    clear = (a.low > 0) | (a.high < 0)
    above, below = (a.low == 0) & (a.high > 0), (a.high == 0) & (a.low < 0)
    low = np.where(clear | above, 1 / a.high, -np.inf)
    high = np.where(clear | below, 1 / a.low, np.inf)
    exact = [np.isinf(end) | (end == 0) | (np.abs(np.frexp(end)[0]) == 0.5) for end in (low, high)]
    return _rounded((low, exact[0]), (high, exact[1]), a.sure & clear)


def _size(a: Range) -> Range:
    """Return |a|."""
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return Range(low, np.maximum(np.abs(a.low), np.abs(a.high)), a.sure)


@_QUIET
def power(a: Range, n: int) -> Range:
    """Return aⁿ for a whole number n.

    Examples
    --------
    >>> power(Range(np.array([-2.0]), np.array([1.0]), np.array([True])), 2)[:2]
    (array([0.]), array([4.]))
    """
    if n < 0:
        return reciprocal(power(a, -n))
    base = a if n % 2 else _size(a)
    ends = [np.power(end, float(n)) for end in base[:2]]
    exact = [
        (end == np.floor(end)) & (np.abs(p) < _WHOLE) | np.isinf(end)
        for end, p in zip(base[:2], ends, strict=True)
    ]
    loose, tight = (made(ends[0], ends[1], a.sure) for made in (_widened, _bounded))
    low, high = (np.where(e, t, w) for e, t, w in zip(exact, tight[:2], loose[:2], strict=True))
    return Range(low if n % 2 else np.maximum(low, 0.0), high, a.sure)


@_QUIET
def real_power(a: Range, p: Range) -> Range:
    """Return aᵖ for a ≥ 0: monotone in both, so its extremes are at the corners.

    Examples
    --------
    >>> half = Range(np.array([0.5]), np.array([0.5]), np.array([True]))
    >>> real_power(Range(np.array([-1.0]), np.array([4.0]), np.array([True])), half).sure
    array([False])
    """
    base = np.maximum(a.low, 0.0), np.maximum(a.high, 0.0)
    ends = [np.power(x, y) for x in base for y in p[:2]]
    ends = [np.where(np.isnan(end), 1.0, end) for end in ends]  # 1^∞: 0 and ∞ are ends as well
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    sure = a.sure & p.sure & ((a.low > 0) | ((a.low == 0) & (p.low > 0)))
    found = _widened(low, high, sure)
    return Range(np.where(low == 0, 0.0, np.maximum(found.low, 0.0)), found.high, sure)


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
        found = _widened(low, high, a.sure & inside)
        low, high = np.clip(found.low, *self.image), np.clip(found.high, *self.image)
        nowhere = (a.high < least) | (a.low > most) | (self.is_open & (a.high <= least))
        low, high = np.where(nowhere, -np.inf, low), np.where(nowhere, np.inf, high)
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
_PEAKS = {sympy.sin: (np.sin, 0.25), sympy.cos: (np.cos, 0.0)}
_STEPS = {sympy.sign: np.sign, sympy.floor: np.floor}


def _wave(a: Range, function: Callable[[Floats], Floats], peak: float) -> Range:
    """Return the range of a sine or cosine, whose peak is at so many turns."""
    far = ~((a.low > -_FAR) & (a.high < _FAR))
    ends = [np.where(far, 0.0, end) for end in a[:2]]
    first, last = (end / (2 * np.pi) for end in ends)
    values = [function(end) for end in ends]
    low, high, _ = _widened(np.minimum(*values), np.maximum(*values), a.sure)

    def holds(place: float) -> Mask:
        return far | (np.floor(last - place + _BLUR) >= np.ceil(first - place - _BLUR))

    high = np.where(holds(peak), 1.0, np.minimum(high, 1.0))
    return Range(np.where(holds(peak + 0.5), -1.0, np.maximum(low, -1.0)), high, a.sure)


@lru_cache(maxsize=4096)
def constant_bounds(expr: sympy.Expr) -> tuple[float, float] | None:
    """Return doubles around a constant, None if it is not a real number.

    Examples
    --------
    >>> constant_bounds(sympy.Rational(1, 4)), constant_bounds(sympy.I)
    ((0.25, 0.25), None)
    """
    value = expr if expr.is_Rational or expr.is_Float else expr.evalf(_DIGITS)
    if not value.is_Number or not value.is_finite:
        return None
    near = float(value)
    if np.isinf(near):
        return (_MAX, np.inf) if near > 0 else (-np.inf, -_MAX)
    if expr.is_Rational and Fraction(near) == Fraction(int(expr.p), int(expr.q)):
        return near, near
    if expr.is_Float and sympy.Float(near, precision=expr._prec) == expr:
        return near, near
    spread = 0.0 if expr.is_Number or value._prec > 1 else _UNRESOLVED
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
        Symbols along which an expression may jump, such as whole numbers: a comparison of these
        alone that is not decided on a cell is no fault, both its cases are looked at.
    analytic
        Whether ``sure`` asks for all derivatives too, along symbols that are not free.
    integers
        The free symbols that are integers: all of them if it is None.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> walk = Walk({q: (np.array([-1.0]), np.array([2.0]))})
    >>> walk.range(q**2 + 1)[:2], walk.range(1 / q).sure
    ((array([1.]), array([5.])), array([False]))
    """

    def __init__(
        self,
        cells: Cells,
        free: frozenset[sympy.Symbol] = frozenset(),
        *,
        analytic: bool = False,
        integers: frozenset[sympy.Symbol] | None = None,
    ) -> None:
        shapes = [np.shape(end) for ends in cells.values() for end in ends]
        self.all: Mask = np.ones(np.broadcast_shapes((1,), *shapes), dtype=bool)
        self.free, self.analytic = free, analytic
        self.integers = free if integers is None else integers
        self.memo: dict[sympy.Basic, Range] = {}
        for symbol, (low, high) in cells.items():
            self.memo[symbol] = _bounded(self._full(low), self._full(high), self.all)

    def range(self, expr: sympy.Basic) -> Range:
        """Return the range of an expression on every box."""
        found = self.memo.get(expr)
        if found is None:
            with np.errstate(all="ignore"):
                found = self.memo[expr] = self._range(expr)
        return found

    def tell(self, expr: sympy.Expr, low: float) -> Mask:
        """Take an expression for at least a number, and return the boxes where it may be."""
        known = self.range(expr)
        least, most = np.maximum(known.low, low), np.maximum(known.high, low)
        self.memo[expr] = Range(least, most, known.sure)
        self.memo[-expr] = Range(-most, -least, known.sure)
        return known.high >= low

    def _full(self, ends: Floats | float) -> Floats:
        return np.full(self.all.shape, ends, dtype=float)

    def _range(self, expr: sympy.Basic) -> Range:
        if not expr.free_symbols and not expr.has(Opaque):
            return self._constant(expr)
        if isinstance(expr, sympy.Add):
            return reduce(add, map(self.range, expr.args))
        if isinstance(expr, sympy.Mul):
            return reduce(multiply, map(self.range, expr.args))
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

    def _anything(self, sure: Mask) -> Range:
        return Range(self._full(-np.inf), self._full(np.inf), sure)

    def _constant(self, expr: sympy.Expr) -> Range:
        bounds = constant_bounds(expr)
        if bounds is None:
            return self._anything(~self.all)
        return Range(self._full(bounds[0]), self._full(bounds[1]), self.all)

    def _is_free(self, expr: sympy.Basic) -> bool:
        """Whether an expression may jump, or have infinite slopes."""
        return not self.analytic or expr.free_symbols <= self.free

    def _power(self, expr: sympy.Pow) -> Range:
        base, exponent = self.range(expr.base), expr.exp
        if exponent.is_number and exponent.is_real and float(exponent).is_integer():
            return power(base, int(exponent))
        if expr.base.is_negative and self._is_whole(exponent):
            size = real_power(_size(base), self.range(exponent))
            return Range(-size.high, size.high, size.sure)
        found = real_power(base, self.range(exponent))
        if not exponent.is_number:  # negative numbers have powers at integers
            most = real_power(_size(base), self.range(exponent)).high
            low = np.where(base.low < 0, -most, found.low)
            found = Range(low, np.where(base.low < 0, most, found.high), found.sure)
        if self._is_free(expr.base):
            return found
        return found._replace(sure=found.sure & (base.low > 0))

    def _is_whole(self, exponent: sympy.Expr) -> bool:
        """Whether an exponent is always a whole number: (−1)ⁿ is real at these."""
        whole = {s: sympy.Dummy(integer=True) for s in self.integers}
        return bool(exponent.xreplace(whole).is_integer)

    def _extremum(self, expr: sympy.Expr) -> Range:
        least = isinstance(expr, sympy.Min)
        pick = np.minimum if least else np.maximum
        parts = [self.range(arg) for arg in expr.args]
        low, high = (pick.reduce([part[side] for part in parts]) for side in (0, 1))
        sure = reduce(np.logical_and, (part.sure for part in parts))
        if not self._is_free(expr):
            wins = [
                reduce(
                    np.logical_and,
                    (a.high < b.low if least else a.low > b.high for b in parts if b is not a),
                )
                for a in parts
            ]
            sure = sure & reduce(np.logical_or, wins)
        return Range(low, high, sure)

    def _function(self, expr: sympy.Expr) -> Range:
        kind = type(expr)
        if kind is sympy.tan:
            return self.range(sympy.sin(expr.args[0]) / sympy.cos(expr.args[0]))
        if kind is sympy.acos:
            return self.range(sympy.pi / 2 - sympy.asin(expr.args[0]))
        a = self.range(expr.args[0])
        if kind in _INCREASING:
            return _INCREASING[kind].range(a, analytic=not self._is_free(expr))
        if kind in _PEAKS:
            return _wave(a, *_PEAKS[kind])
        if kind is sympy.cosh:
            size = _size(a)
            return _widened(np.cosh(size.low), np.cosh(size.high), a.sure)
        if kind is sympy.Abs:
            found, apart = _size(a), (a.low > 0) | (a.high < 0)
            return found if self._is_free(expr) else found._replace(sure=a.sure & apart)
        if kind in _STEPS:
            low, high = (_STEPS[kind](end) for end in a[:2])
            return Range(low, high, a.sure & ((low == high) | (expr.free_symbols <= self.free)))
        # a function known by its values is taken to be smooth
        trusted = reduce(np.logical_and, (self.range(arg).sure for arg in expr.args))
        return self._anything(trusted if isinstance(expr, Opaque) else ~self.all)

    def cases(self, expr: sympy.Piecewise) -> Iterator[tuple[sympy.Expr, Mask, Mask]]:
        """Yield each value, where it may be the one, and where not knowing does no harm."""
        left = self.all
        for value, test in expr.args:
            may, must, sound = self.truth(test)
            yield value, left & may, sound | ~left
            left = left & ~must
        yield sympy.nan, left, ~left

    def _cases(self, expr: sympy.Piecewise) -> Range:
        """Return the hull over the cases that are possible on a cell."""
        low, high, sure = self._full(np.inf), self._full(-np.inf), self.all
        for value, here, sound in self.cases(expr):
            sure = sure & sound
            if value is not sympy.nan and here.any():
                case = self.range(value)
                low = np.where(here, np.minimum(low, case.low), low)
                high = np.where(here, np.maximum(high, case.high), high)
                sure = sure & (~here | case.sure)
        empty = low > high
        return Range(np.where(empty, -np.inf, low), np.where(empty, np.inf, high), sure & ~empty)

    def truth(self, test: sympy.Basic) -> tuple[Mask, Mask, Mask]:
        """Return where a condition may hold, where it must, and where not knowing does no harm."""
        if isinstance(test, Relational):
            return self._comparison(test)
        if isinstance(test, sympy.Not):
            may, must, sound = self.truth(test.args[0])
            return ~must, ~may, sound
        if isinstance(test, (sympy.And, sympy.Or)):
            join = np.logical_and if isinstance(test, sympy.And) else np.logical_or
            parts = [self.truth(part) for part in test.args]
            may, must = (join.reduce([part[i] for part in parts]) for i in (0, 1))
            sound = reduce(np.logical_and, (part[2] for part in parts))
            return may, must, sound | self._settled(test, parts)
        if isinstance(test, sympy.ITE):
            return self.truth(test.to_nnf())
        same = self.all if test == sympy.true else ~self.all
        return (
            (same, same, self.all)
            if test in (sympy.true, sympy.false)
            else (self.all, ~self.all, ~self.all)
        )

    def _settled(self, test: sympy.Basic, parts: list[tuple[Mask, Mask, Mask]]) -> Mask:
        """Return where one part of a conjunction, or disjunction, that is sound decides it."""
        held = [~may if isinstance(test, sympy.And) else must for may, must, _ in parts]
        return reduce(np.logical_or, (h & part[2] for h, part in zip(held, parts, strict=True)))

    def _comparison(self, test: Relational) -> tuple[Mask, Mask, Mask]:
        low, high, sure = self.range(difference(test))
        if isinstance(test, (sympy.StrictLessThan, sympy.LessThan)):
            strict = isinstance(test, sympy.StrictLessThan)
            may, must = (low < 0, high < 0) if strict else (low <= 0, high <= 0)
        elif isinstance(test, (sympy.StrictGreaterThan, sympy.GreaterThan)):
            strict = isinstance(test, sympy.StrictGreaterThan)
            may, must = (high > 0, low > 0) if strict else (high >= 0, low >= 0)
        else:
            may, must = (low <= 0) & (high >= 0), (low == 0) & (high == 0)
            may, must = (may, must) if isinstance(test, sympy.Equality) else (~must, ~may)
        return may, must, sure & ((may == must) | (test.free_symbols <= self.free))
