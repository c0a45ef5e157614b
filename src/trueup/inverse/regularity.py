"""Where f is not smooth: poles, kinks, jumps and infinite slopes, found and classified.

Under continuous noise an estimator exists only if f is C¹ with f′ absolutely continuous inside
the domain, and has a finite slope at the bounds. Suspicious points are the zeros of *guards*
(denominators, arguments of roots and logarithms, arguments of |·|, both sides of a condition);
they are isolated rigorously by interval arithmetic and then classified from one-sided values in
high precision.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.formula.enclosure import enclose, sign, zeros
from trueup.formula.substitution import at, real, real_at
from trueup.formula.unkinked import without_kinks
from trueup.inverse.jets import derivative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.domain import Interval

_STEPS = tuple(sympy.Rational(1, 10**k) for k in (20, 25, 30))
_DIGITS = 40
_CELLS = 4096
_ROUNDS = 64  # halvings of a cell: beyond, what is undecided is a zero, or lies beyond all doubles
_KINKED = (sympy.Abs, sympy.sign)


class Guard(NamedTuple):
    """An expression whose zeros are suspicious.

    ``signed`` if it must not be negative either, ``divides`` if f divides by it.
    """

    expr: sympy.Expr
    signed: bool
    divides: bool = False


def guards(f: sympy.Expr) -> list[Guard]:
    """Return the guards of an expression.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> guards(sympy.log(q) / (q - 2))
    [Guard(expr=q - 2, signed=False, divides=True), Guard(expr=q, signed=True, divides=False)]
    """
    found: dict[Guard, None] = {}
    for node in sympy.preorder_traversal(f):
        for guard in _guards_of(node):
            if guard.expr.free_symbols:
                found[guard] = None
    return list(found)


def _guards_of(node: sympy.Basic) -> Iterator[Guard]:
    if isinstance(node, sympy.Pow) and not (node.exp.is_Integer and node.exp >= 0):
        yield Guard(node.base, signed=not node.exp.is_Integer, divides=bool(node.exp.is_Integer))
    elif isinstance(node, sympy.log):
        yield Guard(node.args[0], signed=True)
    elif isinstance(node, _KINKED):
        yield Guard(node.args[0], signed=False)
    elif isinstance(node, (sympy.Max, sympy.Min)):
        for a, b in combinations(node.args, 2):
            yield Guard(a - b, signed=False)
    elif isinstance(node, sympy.core.relational.Relational):
        yield Guard(node.lhs - node.rhs, signed=False)
    elif isinstance(node, sympy.tan):
        yield Guard(sympy.cos(node.args[0]), signed=False)
    elif isinstance(node, (sympy.asin, sympy.acos, sympy.atanh)):
        yield Guard(1 - node.args[0] ** 2, signed=True)
    elif isinstance(node, sympy.acosh):
        yield Guard(node.args[0] - 1, signed=True)


@dataclasses.dataclass(frozen=True)
class Singularity:
    """What happens to f at a point.

    ``kind`` is ``pole`` (f unbounded), ``jump`` (of the value), ``steep`` (infinite slope),
    ``kink`` (the slope jumps), ``rough`` (a higher derivative that matters does), ``wild`` (no
    limit), ``undefined`` (not a real number beyond), ``undecided``, ``removable`` (a 0/0 with a
    smooth limit), or ``mild``: harmless for unbiasedness. ``jump`` and ``slope`` are the jumps of
    f and f′, ``middle`` the mean of the one-sided values of f; ``exponent`` is the local order
    |q − a|^exponent of f at a pole, of its last derivative that matters otherwise.
    """

    point: float
    kind: str
    jump: float = 0.0
    slope: float = 0.0
    middle: float = 0.0
    exponent: float = 0.0


def singularities(
    f: sympy.Expr, symbol: sympy.Symbol, domain: Interval, order: int = 2
) -> Iterator[Singularity]:
    """Yield what happens at every suspicious point of a univariate f on a closed interval.

    ``order`` is the highest derivative of f that matters.
    """
    low, high = float(domain.low), float(domain.high)
    seen: set[float] = set()
    for guard in guards(f):
        if guard.expr.free_symbols != {symbol}:
            continue
        roots = zeros(guard.expr, symbol, low, high)
        if guard.signed:
            yield from _undefined(guard.expr, symbol, roots.points, low, high)
        for point in roots.points:
            if point not in seen:
                seen.add(point)
                found = classify(f, guard.expr, symbol, point, low, high, order)
                if found.kind == "mild" and guard.divides:
                    found = dataclasses.replace(found, kind="removable")
                yield found
        if not roots.complete:
            yield Singularity(roots.points[-1] if roots.points else low, "undecided")


def _undefined(
    guard: sympy.Expr, symbol: sympy.Symbol, roots: tuple[float, ...], low: float, high: float
) -> Iterator[Singularity]:
    """Yield a stretch between two zeros on which the guard is negative."""
    ends = [low, *roots, high]
    for a, b in pairwise(ends):
        middle = _between(a, b)
        if middle is None:
            continue
        value = real_at(guard, {symbol: sympy.Rational(*middle.as_integer_ratio())})
        if value is None or value < 0:
            yield Singularity(middle, "undefined")


def _between(a: float, b: float) -> float | None:
    if a == b:
        return None
    if math.isinf(a):
        return 0.0 if math.isinf(b) else b - 1.0
    return a + 1.0 if math.isinf(b) else (a + b) / 2


def classify(
    f: sympy.Expr,
    guard: sympy.Expr,
    symbol: sympy.Symbol,
    point: float,
    low: float,
    high: float,
    order: int = 2,
) -> Singularity:
    """Return what happens to f at a zero of a guard, seen from inside [low, high]."""
    exact = _polish(_rational(guard), symbol, point)
    if exact is None:
        return Singularity(point, "undecided")
    smooth = without_kinks(_rational(f))
    sides = [
        [_approach(derivative(smooth, symbol, n), symbol, exact, s) for n in range(order + 1)]
        for s in _sides(float(exact), low, high)
    ]
    found = [[side[n] for side in sides] for n in range(order + 1)]
    at = float(exact)
    if any(side.diverges for side in found[0]):
        return Singularity(at, "pole", exponent=min(side.exponent for side in found[0]))
    scales = [_size(derivative(smooth, symbol, n), symbol, exact) for n in range(order + 1)]
    jump, slope = _jump(found[0], scales[0]), _jump(found[1], scales[1])
    exponent = min((side.exponent for side in found[order]), default=0.0)
    if jump is None or (slope is None and not any(side.diverges for side in found[1])):
        return Singularity(at, "wild")
    kind = "jump" if jump else "steep" if slope is None else "kink" if slope else "mild"
    if kind == "mild" and any(_jump(found[n], scales[n]) != 0 for n in range(2, order)):
        kind = "rough"
    middle = float(sympy.Add(*(side.limit for side in found[0])) / max(len(sides), 1))
    return Singularity(at, kind, jump, slope or 0.0, middle, exponent)


def _rational(expr: sympy.Expr) -> sympy.Expr:
    """Return the expression with every float as the fraction that it is."""
    floats = expr.atoms(sympy.Float)
    return expr.xreplace({x: sympy.Rational(*float(x).as_integer_ratio()) for x in floats})


def _size(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr) -> float:
    """Return how large an expression is near a point, the measure of what is small there."""
    others = {s: _generic(s) for s in expr.free_symbols - {symbol}}
    sizes = [0.0]
    for step in (sympy.Rational(1, 1000), sympy.Rational(-1, 1000)):
        value = real_at(expr, {symbol: point + step, **others})
        if value is not None:
            sizes.append(abs(float(value)))
    return max(sizes)


def _jump(sides: list[_Approach], size: float) -> float | None:
    """Return by how much two one-sided limits differ, None if one does not exist."""
    limits = [side.limit for side in sides]
    if None in limits:
        return None
    if len(limits) < 2:
        return 0.0
    left, right = (float(limit) for limit in limits if limit is not None)
    return right - left if abs(right - left) > 1e-9 * max(size, abs(left), abs(right)) else 0.0


def _sides(point: float, low: float, high: float) -> list[int]:
    return [s for s, end in ((-1, low), (1, high)) if not math.isclose(point, end, abs_tol=1e-300)]


class _Approach(NamedTuple):
    limit: sympy.Expr | None
    diverges: bool
    exponent: float


def _approach(expr: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int) -> _Approach:
    """Return limit and order |q − a|^exponent of an expression as q → a from one side."""
    others = {s: _generic(s) for s in expr.free_symbols - {symbol}}
    values = []
    for step in _STEPS:
        value = real_at(expr, {symbol: point + side * step, **others}, _DIGITS, 400)
        if value is None:
            return _Approach(None, True, -math.inf)
        values.append(value)
    first, _, third = (abs(v) for v in values)
    if third == 0 or first == 0:
        return _Approach(values[2], False, math.inf)
    exponent = float(sympy.log(first / third) / sympy.log(_STEPS[0] / _STEPS[2]))
    if third > 1.05 * first and third > 1e-6 * _size(expr, symbol, point):
        return _Approach(None, True, exponent)
    return _Approach(_limit(*values), False, exponent)


def _limit(first: sympy.Expr, second: sympy.Expr, third: sympy.Expr) -> sympy.Expr | None:
    """Return what three values tend to (Aitken's extrapolation), None if they do not settle."""
    before, after = second - first, third - second
    if abs(after) <= sympy.Float("1e-14") * max(abs(third), 1):
        return third
    if abs(after) > sympy.Rational(9, 10) * abs(before):
        return None
    return third - after**2 / (after - before)


def _generic(symbol: sympy.Symbol) -> sympy.Expr:
    """Return a value at which nothing special happens, for a symbol held fixed."""
    return sympy.Rational(7310585786, 10**9) + sympy.Rational(sum(map(ord, symbol.name)) % 97, 89)


def _polish(guard: sympy.Expr, symbol: sympy.Symbol, point: float) -> sympy.Expr | None:
    """Return a zero of the guard exactly, or to 60 digits."""
    here = sympy.Rational(*point.as_integer_ratio())
    for near in (here, sympy.nsimplify(here, rational=True, tolerance=1e-12)):
        if at(guard, {symbol: near}).is_zero:
            return near
    try:
        root = sympy.nsolve(guard, symbol, point, prec=60, verify=False)
    except (ValueError, ZeroDivisionError, TypeError, ArithmeticError):
        return None
    return root if root.is_real and abs(root - point) < 1e-6 * max(1.0, abs(point)) else None


def definite(expr: sympy.Expr, box: Mapping[sympy.Symbol, Interval], *, strict: bool = True) -> int:
    """Return the sign an expression is proven to have on a closed box, 0 if undecided.

    With ``strict=False`` it may also be zero in places.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> a, b = sympy.symbols("a b", real=True)
    >>> definite(a + b, {a: Interval(1, None), b: Interval(0, None)})
    1
    """
    symbols = sorted(expr.free_symbols, key=str)
    cells = {s: (np.array([float(box[s].low)]), np.array([float(box[s].high)])) for s in symbols}
    proven: set[int] = set()
    if not symbols:
        value = real(expr)
        return 0 if value is None or (not value and strict) else -1 if value < 0 else 1
    for _ in range(_ROUNDS):
        signs = sign(expr, cells) if strict else _weak_sign(expr, cells)
        proven |= {int(s) for s in signs if s}
        open_cells = {s: (lo[signs == 0], hi[signs == 0]) for s, (lo, hi) in cells.items()}
        count = int((signs == 0).sum())
        if count == 0:
            return proven.pop() if len(proven) == 1 else 0
        if len(proven) == 2 or count * 2 ** len(symbols) > _CELLS:
            return 0
        cells = _bisect(open_cells)
    return 0


def _weak_sign(
    expr: sympy.Expr, cells: Mapping[sympy.Symbol, tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    low, high = enclose(expr, cells)
    return np.where(low >= 0, 1, np.where(high <= 0, -1, 0))


def _bisect(
    cells: dict[sympy.Symbol, tuple[np.ndarray, np.ndarray]],
) -> dict[sympy.Symbol, tuple[np.ndarray, np.ndarray]]:
    """Split every cell in two along every axis."""
    halves = {s: ((lo, m), (m, hi)) for s, (lo, hi) in cells.items() for m in [_middle(lo, hi)]}
    result: dict[sympy.Symbol, tuple[list[np.ndarray], list[np.ndarray]]]
    result = {s: ([], []) for s in cells}
    for choice in product((0, 1), repeat=len(cells)):
        for (symbol, pair), side in zip(halves.items(), choice, strict=True):
            result[symbol][0].append(pair[side][0])
            result[symbol][1].append(pair[side][1])
    return {s: (np.concatenate(lo), np.concatenate(hi)) for s, (lo, hi) in result.items()}


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a point inside: unbounded cells are cut far out, those over many decades in between.

    From 1 outwards the distances are 4, 16, 256, ..., so that 1e300 is reached in ten rounds.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low / 2 + high / 2
        near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
        decades = (low * high > 0) & (far > 4 * near)
        beyond = np.clip(np.maximum(4.0, near) ** 2, near, 1e300)
        size = np.where(np.isinf(far), beyond, np.sqrt(near) * np.sqrt(far))
        one_sided = decades | (np.isinf(far) & np.isfinite(near))
        middle = np.where(one_sided, np.where(np.isinf(low) | (high <= 0), -size, size), middle)
    return np.where(np.isinf(low) & np.isinf(high), 0.0, middle)
