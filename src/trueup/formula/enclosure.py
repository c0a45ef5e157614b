"""Rigorous bounds on an expression over boxes: interval arithmetic, many boxes at a time.

Every operation is rounded outwards by a few units in the last place, so the true range lies
inside. Where a function may be undefined the answer is sound for the points where it is defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy.optimize import brentq

from trueup.errors import FormulaError

Floats = NDArray[np.float64]
Box = tuple[Floats, Floats]
"""Lower and upper ends, one entry per cell."""

_ULPS = 4
_MOST_CELLS = 20_000
_WHOLE = (-math.inf, math.inf)


class Zeros(NamedTuple):
    """The zeros found, and whether there can be no others."""

    points: tuple[float, ...]
    complete: bool


def enclose(expr: sympy.Expr, box: Mapping[sympy.Symbol, Box]) -> Box:
    """Return arrays (low, high) that contain the range of an expression on every cell.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> low, high = enclose(q**2 - q, {q: (np.array([-1.0]), np.array([2.0]))})
    >>> bool(low[0] <= -0.25), bool(high[0] >= 2)
    (True, True)
    """
    size = max((len(low) for low, _ in box.values()), default=1)
    with np.errstate(all="ignore"):
        low, high = _Enclosure(box, size).value(expr)
    return np.broadcast_to(low, size).copy(), np.broadcast_to(high, size).copy()


def sign(expr: sympy.Expr, box: Mapping[sympy.Symbol, Box]) -> NDArray[np.int8]:
    """Return 1 where an expression is proven positive, −1 negative, 0 undecided, per cell."""
    low, high = enclose(expr, box)
    return np.where(low > 0, 1, np.where(high < 0, -1, 0)).astype(np.int8)


class _Enclosure:
    """One evaluation over one box: every subexpression is enclosed once."""

    def __init__(self, box: Mapping[sympy.Symbol, Box], size: int) -> None:
        self.known: dict[sympy.Basic, Box] = dict(box)
        self.size = size

    def value(self, expr: sympy.Expr) -> Box:
        if expr not in self.known:
            self.known[expr] = self._compute(expr)
        return self.known[expr]

    def _compute(self, expr: sympy.Expr) -> Box:
        if expr.is_number:
            return _constant(expr)
        if isinstance(expr, sympy.Add):
            return _fold(_add, [self.value(a) for a in expr.args])
        if isinstance(expr, sympy.Mul):
            return _fold(_mul, [self.value(a) for a in expr.args])
        if isinstance(expr, sympy.Pow):
            return self._power(*expr.args)
        if isinstance(expr, sympy.Piecewise):
            return self._cases(expr)
        if isinstance(expr, (sympy.Max, sympy.Min)):
            pick = np.maximum if isinstance(expr, sympy.Max) else np.minimum
            ends = [self.value(a) for a in expr.args]
            return _fold(lambda a, b: (pick(a[0], b[0]), pick(a[1], b[1])), ends)
        if type(expr) in _FUNCTIONS:
            return _FUNCTIONS[type(expr)](self.value(expr.args[0]))
        raise FormulaError(f"{expr.func} has no enclosure", "use the functions of the grammar")

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> Box:
        if exponent.is_Integer:
            return _integer_power(self.value(base), int(exponent))
        if exponent.is_number:
            return _real_power(self.value(base), _constant(exponent))
        return _exp(_mul(self.value(exponent), _log(self.value(base))))

    def _cases(self, expr: sympy.Piecewise) -> Box:
        """Return the hull of the branches that can occur."""
        low = np.full(self.size, math.inf)
        high = np.full(self.size, -math.inf)
        open_cells = np.ones(self.size, bool)
        for value, condition in expr.args:
            possible, certain = self._truth(condition)
            reached = open_cells & possible
            if reached.any():
                a, b = (np.broadcast_to(end, self.size) for end in self.value(value))
                low = np.where(reached, np.minimum(low, a), low)
                high = np.where(reached, np.maximum(high, b), high)
            open_cells = open_cells & ~certain
        return np.where(low > high, -math.inf, low), np.where(low > high, math.inf, high)

    def _truth(self, condition: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where a condition may hold, and where it must."""
        if condition in (sympy.true, sympy.false):
            flag = np.full(self.size, bool(condition))
            return flag, flag
        if isinstance(condition, (sympy.And, sympy.Or)):
            join = np.logical_and if isinstance(condition, sympy.And) else np.logical_or
            parts = [self._truth(a) for a in condition.args]
            return join.reduce([p for p, _ in parts]), join.reduce([c for _, c in parts])
        if isinstance(condition, sympy.Not):
            possible, certain = self._truth(condition.args[0])
            return ~certain, ~possible
        if isinstance(condition, sympy.ITE):
            test, yes, no = condition.args
            return self._truth((test & yes) | (~test & no))
        return self._relation(condition)

    def _relation(self, condition: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        low, high = (
            np.broadcast_to(end, self.size)
            for end in _add(self.value(condition.lhs), _negative(self.value(condition.rhs)))
        )
        tests: dict[type, tuple[Any, Any]] = {
            sympy.StrictLessThan: (low < 0, high < 0),
            sympy.LessThan: (low <= 0, high <= 0),
            sympy.StrictGreaterThan: (high > 0, low > 0),
            sympy.GreaterThan: (high >= 0, low >= 0),
            sympy.Equality: ((low <= 0) & (high >= 0), (low == 0) & (high == 0)),
            sympy.Unequality: ((low != 0) | (high != 0), (low > 0) | (high < 0)),
        }
        return tests[type(condition)]


# -- arithmetic on intervals --------------------------------------------------------------------


def _fold(combine: Callable[[Box, Box], Box], boxes: list[Box]) -> Box:
    total = boxes[0]
    for box in boxes[1:]:
        total = combine(total, box)
    return total


def _out(low: Floats, high: Floats) -> Box:
    """Round outwards; what could not be computed may be anything."""
    low = np.where(np.isnan(low), -math.inf, low)
    high = np.where(np.isnan(high), math.inf, high)
    for _ in range(_ULPS):
        low, high = np.nextafter(low, -math.inf), np.nextafter(high, math.inf)
    return low, high


def _constant(expr: sympy.Expr) -> Box:
    if expr.is_Integer and abs(expr) < 2**53:
        exact = np.array([float(expr)])
        return exact, exact
    value = np.array([float(expr.evalf(25))])
    return _out(value, value) if not expr.is_Float else (value, value)


def _negative(a: Box) -> Box:
    return -a[1], -a[0]


def _add(a: Box, b: Box) -> Box:
    return _out(a[0] + b[0], a[1] + b[1])


def _mul(a: Box, b: Box) -> Box:
    ends = [_product(x, y) for x in a for y in b]
    low, high = _out(np.minimum.reduce(ends), np.maximum.reduce(ends))
    same = ((a[0] >= 0) & (b[0] >= 0)) | ((a[1] <= 0) & (b[1] <= 0))
    opposite = ((a[0] >= 0) & (b[1] <= 0)) | ((a[1] <= 0) & (b[0] >= 0))
    return np.where(same, np.maximum(low, 0.0), low), np.where(
        opposite, np.minimum(high, 0.0), high
    )


def _product(x: Floats, y: Floats) -> Floats:
    """Return x·y with 0·∞ = 0: an end at infinity is never reached."""
    return np.where((x == 0) | (y == 0), 0.0, x * y)


def _integer_power(a: Box, n: int) -> Box:
    if n < 0:
        return _reciprocal(_integer_power(a, -n))
    low, high = a[0] ** n, a[1] ** n
    if n % 2 == 0:
        low, high = np.minimum(low, high), np.maximum(low, high)
        low = np.where((a[0] <= 0) & (a[1] >= 0), 0.0, low)
        outer = _out(low, high)
        return np.maximum(outer[0], 0.0), outer[1]
    return _out(low, high)


def _reciprocal(a: Box) -> Box:
    low, high = 1 / a[1], 1 / a[0]
    inside = (a[0] < 0) & (a[1] > 0)
    low = np.where(inside | (a[1] == 0), -math.inf, low)
    high = np.where(inside | (a[0] == 0), math.inf, high)
    outer = _out(low, high)
    # One over a positive number is positive, however large.
    return (
        np.where(a[0] >= 0, np.maximum(outer[0], 0.0), outer[0]),
        np.where(a[1] <= 0, np.minimum(outer[1], 0.0), outer[1]),
    )


def _real_power(a: Box, exponent: Box) -> Box:
    """Return x^e on x ≥ 0: monotone in x for either sign of e."""
    base = np.maximum(a[0], 0.0), np.maximum(a[1], 0.0)
    ends = [base[i] ** e for i in (0, 1) for e in exponent]
    low, high = _out(np.minimum.reduce(ends), np.maximum.reduce(ends))
    low = np.maximum(low, 0.0)
    nowhere = a[1] < 0
    return np.where(nowhere, -math.inf, low), np.where(nowhere, math.inf, high)


def _exp(a: Box) -> Box:
    low, high = _out(np.exp(a[0]), np.exp(a[1]))
    return np.maximum(low, 0.0), high


def _log(a: Box) -> Box:
    low = np.where(a[0] > 0, np.log(np.maximum(a[0], 5e-324)), -math.inf)
    high = np.where(a[1] > 0, np.log(np.maximum(a[1], 5e-324)), math.inf)
    return _out(low, high)


def _wave(a: Box, crest: float) -> Box:
    """Return cos(x − crest): between −1 and 1, reached at crest + kπ."""
    low, high = np.cos(a[0] - crest), np.cos(a[1] - crest)
    first, last = (a[0] - crest) / math.pi - 1e-9, (a[1] - crest) / math.pi + 1e-9
    far = ~(np.isfinite(first) & np.isfinite(last)) | (np.abs(first) > 1e6) | (np.abs(last) > 1e6)
    tops = np.floor(last / 2) >= np.ceil(first / 2)
    bottoms = np.floor((last - 1) / 2) >= np.ceil((first - 1) / 2)
    smallest, largest = np.minimum(low, high) - 1e-15, np.maximum(low, high) + 1e-15
    smallest = np.where(bottoms | far, -1.0, np.maximum(smallest, -1.0))
    largest = np.where(tops | far, 1.0, np.minimum(largest, 1.0))
    return smallest - 1e-9 * (np.abs(a[0]) > 1e3), largest + 1e-9 * (np.abs(a[1]) > 1e3)


def _tan(a: Box) -> Box:
    low, high = a[0] / math.pi - 0.5, a[1] / math.pi - 0.5
    broken = (np.ceil(low - 1e-9) <= np.floor(high + 1e-9)) | ~(np.abs(low) < 1e6)
    broken = broken | ~(np.abs(high) < 1e6)
    outer = _out(np.tan(a[0]) * 1.0, np.tan(a[1]) * 1.0)
    slack = 1e-9 * (1 + np.maximum(np.abs(outer[0]), np.abs(outer[1])) ** 2)
    return (
        np.where(broken, -math.inf, outer[0] - slack),
        np.where(broken, math.inf, outer[1] + slack),
    )


def _rising(function: Callable[[Floats], Floats], low: float, high: float) -> Callable[[Box], Box]:
    """Return the enclosure of an increasing function defined on [low, high]."""

    def apply(a: Box) -> Box:
        start, stop = (np.clip(end, low, high) for end in a)
        outer = _out(function(start), function(stop))
        nowhere = (a[1] < low) | (a[0] > high)
        return np.where(nowhere, -math.inf, outer[0]), np.where(nowhere, math.inf, outer[1])

    return apply


def _absolute(a: Box) -> Box:
    low, high = np.abs(a[0]), np.abs(a[1])
    through = (a[0] <= 0) & (a[1] >= 0)
    return np.where(through, 0.0, np.minimum(low, high)), np.maximum(low, high)


def _cosh(a: Box) -> Box:
    low, high = _absolute(a)
    outer = _out(np.cosh(low), np.cosh(high))
    return np.maximum(outer[0], 1.0), outer[1]


def _falling_acos(a: Box) -> Box:
    low, high = _rising(np.arcsin, -1.0, 1.0)(a)
    return _out(math.pi / 2 - high, math.pi / 2 - low)


_FUNCTIONS: dict[type, Callable[[Box], Box]] = {
    sympy.exp: _exp,
    sympy.log: _log,
    sympy.cos: lambda a: _wave(a, 0.0),
    sympy.sin: lambda a: _wave(a, math.pi / 2),
    sympy.tan: _tan,
    sympy.asin: _rising(np.arcsin, -1.0, 1.0),
    sympy.acos: _falling_acos,
    sympy.atan: _rising(np.arctan, *_WHOLE),
    sympy.sinh: _rising(np.sinh, *_WHOLE),
    sympy.cosh: _cosh,
    sympy.tanh: _rising(np.tanh, *_WHOLE),
    sympy.asinh: _rising(np.arcsinh, *_WHOLE),
    sympy.acosh: _rising(np.arccosh, 1.0, math.inf),
    sympy.atanh: _rising(np.arctanh, -1.0, 1.0),
    sympy.Abs: _absolute,
    sympy.sign: _rising(np.sign, *_WHOLE),
}


# -- zeros --------------------------------------------------------------------------------------


def zeros(
    expr: sympy.Expr, symbol: sympy.Symbol, low: float, high: float, limit: int = 64
) -> Zeros:
    """Return the real zeros of an expression on [low, high], by branch and bound.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> zeros(q**2 - 4, symbol=q, low=0.0, high=math.inf)
    Zeros(points=(2.0,), complete=True)
    """
    expr = _simple_roots(expr, symbol)
    slope = expr.diff(symbol)
    cells = _partition(float(low), float(high))
    found: list[float] = []
    touching: list[tuple[float, float]] = []
    work = 0
    while len(cells[0]):
        work += len(cells[0])
        if work > _MOST_CELLS or len(found) > limit or len(touching) > 1000:
            return Zeros(tuple(_merge(found)[:limit]), complete=False)
        undecided = sign(expr, {symbol: cells}) == 0
        cells = cells[0][undecided], cells[1][undecided]
        steep = _slope_sign(slope, symbol, cells) != 0
        for a, b in zip(cells[0][steep].tolist(), cells[1][steep].tolist(), strict=True):
            crossings, touches = _crossing(expr, symbol, a, b)
            found, touching = found + crossings, touching + touches
        cells = cells[0][~steep], cells[1][~steep]
        small = cells[1] - cells[0] <= 1e-13 * np.maximum(1.0, np.abs(cells[0]))
        touching += zip(cells[0][small].tolist(), cells[1][small].tolist(), strict=True)
        cells = _halve(cells[0][~small], cells[1][~small])
    points = _merge([*found, *_clusters(touching)])
    return Zeros(tuple(points[:limit]), complete=len(points) <= limit)


def _simple_roots(expr: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return an expression with the same zeros, for a polynomial all of them simple."""
    if expr.is_polynomial(symbol) and not expr.atoms(sympy.Float):
        polynomial = sympy.Poly(expr, symbol)
        if polynomial.domain.is_ZZ or polynomial.domain.is_QQ:
            return polynomial.sqf_part().as_expr()
    return expr


def _partition(low: float, high: float) -> Box:
    """Return cells that cover [low, high], doubling in width outwards."""
    steps = np.concatenate([-(2.0 ** np.arange(60, -4, -1.0)), [0.0], 2.0 ** np.arange(-3.0, 61)])
    middle = 0.0 if low <= 0 <= high else (low if low > 0 else high)
    edges = np.unique(np.clip(middle + steps, low, high))
    edges = np.unique(np.concatenate([[low], edges, [high]]))
    if len(edges) == 1:
        return edges, edges
    return edges[:-1], edges[1:]


def _slope_sign(slope: sympy.Expr, symbol: sympy.Symbol, cells: Box) -> NDArray[np.int8]:
    if not len(cells[0]):
        return np.zeros(0, np.int8)
    try:
        return sign(slope, {symbol: cells})
    except FormulaError:  # the derivative has a function that f has not
        return np.zeros(len(cells[0]), np.int8)


def _crossing(
    expr: sympy.Expr, symbol: sympy.Symbol, a: float, b: float
) -> tuple[list[float], list[tuple[float, float]]]:
    """Return the zero of a monotone expression on [a, b], and ends at which it may touch zero."""

    def ends(x: float) -> tuple[float, float]:
        low, high = enclose(expr, {symbol: (np.array([x]), np.array([x]))})
        return float(low[0]), float(high[0])

    def value(x: float) -> float:
        low, high = ends(x)
        return low if low > 0 or math.isinf(high) else high if high < 0 else 0.0

    a, b = max(a, -1e300), min(b, 1e300)
    left, right = value(a), value(b)
    if left and right and left * right < 0:
        return [float(brentq(value, a, b, xtol=1e-300, rtol=1e-15, maxiter=2000))], []
    return [], [(x, x) for x, y in ((a, left), (b, right)) if y == 0]


def _halve(low: Floats, high: Floats) -> Box:
    middle = (low + high) / 2
    middle = np.where(np.isinf(high) & np.isfinite(low), np.maximum(2 * np.abs(low), 1.0), middle)
    middle = np.where(np.isinf(low) & np.isfinite(high), -np.maximum(2 * np.abs(high), 1.0), middle)
    middle = np.clip(middle, -1e308, 1e308)
    return np.concatenate([low, middle]), np.concatenate([middle, high])


def _clusters(cells: list[tuple[float, float]]) -> list[float]:
    """Return the middle of every run of neighbouring tiny cells."""
    runs: list[list[float]] = []
    for a, b in sorted(cells):
        if runs and a <= runs[-1][1] + 1e-6 * max(1.0, abs(a)):
            runs[-1][1] = max(runs[-1][1], b)
        else:
            runs.append([a, b])
    return [(a + b) / 2 for a, b in runs]


def _merge(points: list[float]) -> list[float]:
    """Return the points in order, those equal up to rounding once."""
    merged: list[float] = []
    for x in sorted(points):
        if not merged or x - merged[-1] > 1e-11 * max(1.0, abs(x)):
            merged.append(x)
    return merged
