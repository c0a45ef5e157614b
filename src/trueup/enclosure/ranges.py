"""The range of a formula on many boxes at once: one walk over the expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.enclosure import intervals, turning
from trueup.enclosure.intervals import Floats, Mask, Range, monotone
from trueup.errors import TrueupError

Box = Mapping[sympy.Symbol, tuple[Floats, Floats]]

_LINE = (-np.inf, np.inf)
_DIGITS = 30
_UNRESOLVED = 1e-30

_FUNCTIONS: dict[type[sympy.Basic], Callable[[Range], Range]] = {
    sympy.Abs: intervals.magnitude,
    sympy.sign: turning.signum,
    sympy.exp: monotone(np.exp, _LINE, (0.0, np.inf)),
    sympy.log: intervals.logarithm,
    sympy.sin: turning.sine,
    sympy.cos: turning.cosine,
    sympy.tan: turning.tangent,
    sympy.asin: monotone(np.arcsin, (-1.0, 1.0), (-1.5707963267948968, 1.5707963267948968)),
    sympy.atan: monotone(np.arctan, _LINE, (-1.5707963267948968, 1.5707963267948968)),
    sympy.sinh: monotone(np.sinh, _LINE, _LINE),
    sympy.cosh: turning.hyperbolic_cosine,
    sympy.tanh: monotone(np.tanh, _LINE, (-1.0, 1.0)),
    sympy.asinh: monotone(np.arcsinh, _LINE, _LINE),
    sympy.acosh: monotone(np.arccosh, (1.0, np.inf), (0.0, np.inf)),
    sympy.atanh: monotone(np.arctanh, (-1.0, 1.0), _LINE),
}
_ARCCOS = monotone(lambda x: -np.arccos(x), (-1.0, 1.0), (-3.1415926535897936, 0.0))


def enclose(expr: sympy.Expr, box: Box) -> tuple[Floats, Floats]:
    """Return bounds on the values of an expression on every box.

    Where it is not defined on part of a box, the bounds hold on the rest; where it is defined
    nowhere, or is a function without a formula, they are infinite.

    Parameters
    ----------
    expr
        An expression in real symbols.
    box
        For every symbol the lower and the upper ends of its cells, arrays of one shape.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> enclose(q**2 - q, {q: (np.array([-1.0, 0.0]), np.array([2.0, 0.5]))})
    (array([-2. , -0.5]), array([5.  , 0.25]))
    """
    low, high, _ = Walk(box).range(expr)
    return low, high


class Walk:
    """The ranges of expressions on one set of boxes, each common part computed once.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> walk = Walk({q: (np.array([-1.0]), np.array([2.0]))})
    >>> walk.range(q**2 + 1)[:2]
    (array([1.]), array([5.]))
    """

    def __init__(self, box: Box) -> None:
        shapes = [np.shape(end) for ends in box.values() for end in ends]
        self.all: Mask = np.ones(np.broadcast_shapes((1,), *shapes), dtype=bool)
        self.memo: dict[sympy.Basic, Range] = {}
        for symbol, (low, high) in box.items():
            self.memo[symbol] = intervals.ranged(self._cells(low), self._cells(high), self.all)

    def _cells(self, ends: Floats | float) -> Floats:
        return np.full(self.all.shape, ends, dtype=float)

    def range(self, expr: sympy.Basic) -> Range:
        """Return the range of an expression on every box."""
        found = self.memo.get(expr)
        if found is None:
            found = self.memo[expr] = self._range(expr)
        return found

    def _range(self, expr: sympy.Basic) -> Range:
        if isinstance(expr, sympy.Symbol):
            raise TrueupError(f"no box is given for {expr}", "give the ends of its cells")
        if not expr.free_symbols:
            return self._constant(expr)
        if isinstance(expr, sympy.Add):
            return reduce(intervals.add, map(self.range, expr.args))
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        if isinstance(expr, (sympy.Min, sympy.Max)):
            return self._extremum(expr)
        if isinstance(expr, sympy.Piecewise):
            return self._cases(expr)
        if isinstance(expr, sympy.acos):
            low, high, tame = _ARCCOS(self.range(expr.args[0]))
            return Range(-high, -low, tame)
        if type(expr) in _FUNCTIONS:
            return _FUNCTIONS[type(expr)](self.range(expr.args[0]))
        if isinstance(expr, sympy.Pow):
            return self._power(expr.base, expr.exp)
        return intervals.everything(self.all)

    def _constant(self, expr: sympy.Expr) -> Range:
        bounds = constant_bounds(expr)
        if bounds is None:
            return intervals.everything(self.all)
        return Range(self._cells(bounds[0]), self._cells(bounds[1]), self.all)

    def _product(self, expr: sympy.Mul) -> Range:
        found = turning.entropic(expr)
        if found is None:
            return reduce(intervals.multiply, map(self.range, expr.args))
        inner, exponent, rest = found
        return intervals.multiply(turning.power_log(self.range(inner), exponent), self.range(rest))

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> Range:
        if exponent.is_Integer:
            return intervals.integer_power(self.range(base), int(exponent))
        if exponent == sympy.S.Half:
            return intervals.square_root(self.range(base))
        if exponent.is_number:
            return intervals.power(self.range(base), self.range(exponent))
        return intervals.signed_power(self.range(base), self.range(exponent))

    def _extremum(self, expr: sympy.Expr) -> Range:
        pick = np.minimum if isinstance(expr, sympy.Min) else np.maximum
        parts = [self.range(arg) for arg in expr.args]
        low, high = (pick.reduce([part[side] for part in parts]) for side in (0, 1))
        return Range(low, high, np.logical_and.reduce([part.tame for part in parts]))

    def _cases(self, expr: sympy.Piecewise) -> Range:
        """Return the hull over the cases that are possible in a cell."""
        low, high = np.full(self.all.shape, np.inf), np.full(self.all.shape, -np.inf)
        tame = ~self.all
        for value, here, surely in self.cases(expr):
            case = self.range(value)
            low = np.where(here, np.minimum(low, case.low), low)
            high = np.where(here, np.maximum(high, case.high), high)
            tame = tame | (surely & case.tame & (low == case.low) & (high == case.high))
        missing = low > high
        low, high = np.where(missing, -np.inf, low), np.where(missing, np.inf, high)
        return Range(low, high, tame & ~missing)

    def cases(self, expr: sympy.Piecewise) -> Iterator[tuple[sympy.Expr, Mask, Mask]]:
        """Yield each value with the cells on which it may be the one, and on which it is."""
        left = self.all
        for value, test in expr.args:
            possible, certain = self.truth(test)
            yield value, left & possible, left & certain
            left = left & ~certain

    def nowhere(self, expr: sympy.Basic) -> Mask:
        """Return on which cells an expression is proven to have no real value.

        Examples
        --------
        >>> q = sympy.Symbol("q", real=True)
        >>> walk = Walk({q: (np.array([-2.0, -1.0]), np.array([-1.0, 1.0]))})
        >>> walk.nowhere(sympy.log(q) + 1)
        array([ True, False])
        """
        if isinstance(expr, sympy.Piecewise):
            parts = [self.nowhere(value) | ~here for value, here, _ in self.cases(expr)]
            return reduce(np.logical_and, parts)
        return reduce(np.logical_or, map(self.nowhere, expr.args), self._undefined(expr))

    def _undefined(self, expr: sympy.Basic) -> Mask:
        """Return where the outermost function has no value whatever the rest does."""
        if isinstance(expr, sympy.log):
            return self.range(expr.args[0]).high <= 0
        if isinstance(expr, sympy.Pow) and expr.exp.is_number and not expr.exp.is_Integer:
            base = self.range(expr.base)
            return base.high < 0 if expr.exp.is_positive else base.high <= 0
        if isinstance(expr, (sympy.asin, sympy.acos, sympy.atanh)):
            inner = self.range(expr.args[0])
            return (inner.low > 1) | (inner.high < -1)
        if isinstance(expr, sympy.acosh):
            return self.range(expr.args[0]).high < 1
        return ~self.all

    def truth(self, test: sympy.Basic) -> tuple[Mask, Mask]:
        """Return where a condition may hold, and where it holds throughout."""
        if isinstance(test, Relational):
            return self._comparison(test)
        if isinstance(test, (sympy.And, sympy.Or)):
            join = np.logical_and if isinstance(test, sympy.And) else np.logical_or
            parts = [self.truth(part) for part in test.args]
            return join.reduce([p for p, _ in parts]), join.reduce([c for _, c in parts])
        if isinstance(test, sympy.Not):
            possible, certain = self.truth(test.args[0])
            return ~certain, ~possible
        if isinstance(test, sympy.ITE):
            return self.truth(test.to_nnf())
        if test in (sympy.true, sympy.false):
            same = self.all if test == sympy.true else ~self.all
            return same, same
        return self.all, ~self.all

    def _comparison(self, test: Relational) -> tuple[Mask, Mask]:
        low, high, _ = self.range(test.lhs - test.rhs)
        if isinstance(test, sympy.StrictLessThan):
            return low < 0, high < 0
        if isinstance(test, sympy.LessThan):
            return low <= 0, high <= 0
        if isinstance(test, sympy.StrictGreaterThan):
            return high > 0, low > 0
        if isinstance(test, sympy.GreaterThan):
            return high >= 0, low >= 0
        possible, certain = (low <= 0) & (high >= 0), (low == 0) & (high == 0)
        return (possible, certain) if isinstance(test, sympy.Equality) else (~certain, ~possible)


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
        limit = float(np.finfo(float).max)
        return (limit, np.inf) if near > 0 else (-np.inf, -limit)
    if expr.is_Rational and Fraction(near) == Fraction(int(expr.p), int(expr.q)):
        return near, near
    if expr.is_Float and sympy.Float(near, precision=expr._prec) == expr:
        return near, near
    spread = 0.0 if expr.is_Number or value._prec > 1 else _UNRESOLVED
    return float(np.nextafter(near - spread, -np.inf)), float(np.nextafter(near + spread, np.inf))
