"""Where f is not smooth: poles, kinks, jumps and infinite slopes, found and classified.

Under continuous noise an estimator exists only if f is C¹ with f′ absolutely continuous inside
the domain, and has a finite slope at the bounds. Suspicious points are the zeros of *guards*
(denominators, arguments of roots and logarithms, arguments of |·|, both sides of a condition);
they are isolated rigorously by interval arithmetic and then classified from one-sided limits, for
every case that the other statistics can pick.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy
from sympy.core.relational import Relational

from trueup.enclosure import zeros
from trueup.formula.period import period
from trueup.formula.substitution import at, rational, real_at
from trueup.formula.unkinked import without_kinks
from trueup.inverse.approach import Approach, approach, integrable, size
from trueup.inverse.cases import beside, value_at
from trueup.inverse.jets import derivative
from trueup.inverse.scenes import scenes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.domain import Interval

_ALIKE = 1e-9
"""Two one-sided limits that differ by less, relative to the size of f nearby, are the same."""

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
        for guard in guards_of(node):
            if guard.expr.free_symbols:
                found[guard] = None
    return list(found)


def guards_of(node: sympy.Basic) -> Iterator[Guard]:
    """Yield the guards of the outermost operation of an expression."""
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
    ``kink`` (the slope jumps), ``rough`` (a higher derivative that matters does), ``point`` (the
    value at the point is not the limit), ``wild`` (no limit could be found), ``undefined`` (not a
    real number beyond), ``undecided``, ``removable`` (a 0/0 with a smooth limit), or ``mild``:
    harmless for unbiasedness. ``jump`` and ``slope`` are the jumps of f and f′, ``middle`` the mean
    of the one-sided values of f; ``exponent`` is the local order |q − a|^exponent of f at a pole,
    of its last derivative that matters otherwise. ``exact`` is the point itself, ``where`` the
    values of other statistics at which it happens, ``real`` whether these can occur.
    """

    point: float
    kind: str
    jump: float = 0.0
    slope: float = 0.0
    middle: float = 0.0
    exponent: float = 0.0
    exact: sympy.Expr | None = None
    where: Mapping[sympy.Symbol, sympy.Expr] = dataclasses.field(default_factory=dict)
    real: bool = True

    @property
    def proved(self) -> bool:
        """Whether it proves that no unbiased estimator exists."""
        return self.real and self.kind not in ("mild", "removable", "wild", "undecided")


def singularities(
    f: sympy.Expr,
    symbol: sympy.Symbol,
    domain: Interval,
    order: int = 2,
    box: Mapping[sympy.Symbol, Interval] | None = None,
) -> Iterator[Singularity]:
    """Yield what happens at every suspicious point of f along one variable on a closed interval.

    ``order`` is the highest derivative of f that matters, ``box`` where the other variables lie.
    """
    smooth = without_kinks(f)
    for scene in scenes(smooth, symbol, box or {}):
        held = at(at(smooth, scene.truths), scene.values)
        apart = [t for t in f.atoms(Relational) if symbol not in t.free_symbols]
        truths = {t: at(t, scene.values) for t in apart} | scene.truths
        for found in _singularities(at(f, truths), held, symbol, domain, order):
            yield dataclasses.replace(found, where=scene.values, real=scene.real)


def _singularities(
    f: sympy.Expr, held: sympy.Expr, symbol: sympy.Symbol, domain: Interval, order: int
) -> Iterator[Singularity]:
    """Yield what happens to f in one scene, ``held`` being f with the scene's values put in."""
    low, high = _window(f, symbol, domain)
    places: dict[float, list[Guard]] = {}
    own = [guard for guard in guards(f) if guard.expr.free_symbols == {symbol}]
    for guard in own:
        roots = zeros(guard.expr, symbol, low, high)
        for point in roots.points:
            places.setdefault(point, []).append(guard)
        if not roots.complete:
            yield Singularity(roots.points[-1] if roots.points else low, "undecided")
    if any(guard.signed for guard in own):
        yield from _undefined(held, symbol, sorted(places), low, high)
    for point, here in sorted(places.items()):
        found = classify(held, here[0].expr, symbol, point, domain, order)
        if found.kind == "mild" and any(guard.divides for guard in here):
            found = dataclasses.replace(found, kind="removable")
        yield found


def _window(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> tuple[float, float]:
    """Return where to look: all of a domain, or two periods of what repeats on one without end."""
    low, high = float(domain.low), float(domain.high)
    turn = float(repeats(f, symbol, domain) or math.inf)
    if math.isinf(turn):
        return low, high
    start = low if math.isfinite(low) else high - 2 * turn if math.isfinite(high) else -turn
    return start, start + 2 * turn


def repeats(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> sympy.Expr | None:
    """Return the period of what repeats on a domain without end, None if it does not."""
    endless = math.isinf(domain.low) or math.isinf(domain.high)
    return period(rational(f), symbol) if endless else None


def _undefined(
    f: sympy.Expr, symbol: sympy.Symbol, marks: list[float], low: float, high: float
) -> Iterator[Singularity]:
    """Yield a stretch between two marks on which f is not a real number."""
    smooth = without_kinks(f)
    for a, b in pairwise([low, *marks, high]):
        middle = _between(a, b)
        if middle is not None:
            here = sympy.Rational(*middle.as_integer_ratio())
            case = beside(smooth, {symbol: (here, 1)})
            inner = [real_at(g.expr, {symbol: here}) for g in guards(case) if g.signed]
            if any(value is None or value < 0 for value in inner):
                yield Singularity(middle, "undefined", exact=here)


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
    domain: Interval,
    order: int = 2,
) -> Singularity:
    """Return what happens to f, in one variable, at a zero of a guard, seen from inside."""
    exact, whole = polish(rational(guard), symbol, point), rational(f)
    if exact is None or whole is sympy.nan:
        return Singularity(point, "undecided")
    smooth = without_kinks(whole)
    places = [(beside(smooth, {symbol: (exact, side)}), side) for side in _sides(exact, domain)]
    values = [approach(case, symbol, exact, side) for case, side in places]
    if any(side.diverges for side in values):
        exponent = min(side.exponent for side in values)
        rounded = f.has(sympy.Float) and all(
            _is_rounding(case, symbol, exact, side, exponent) for case, side in places
        )
        kind = "undecided" if rounded else "pole"
        return Singularity(float(exact), kind, exponent=exponent, exact=exact)
    slopes = [[derivative(case, symbol, n) for case, _ in places] for n in range(order + 1)]
    found = [values]
    found += [
        [approach(expr, symbol, exact, side) for expr, (_, side) in zip(row, places, strict=True)]
        for row in slopes[1:]
    ]
    sizes = [max((size(expr, symbol, exact) for expr in row), default=0.0) for row in slopes]
    jumps = [_jump(row, scale) for row, scale in zip(found, sizes, strict=True)]
    kind = _kind(found, jumps)
    if kind == "mild" and not all(
        integrable(expr, symbol, exact, side)
        for expr, (_, side) in zip(slopes[order], places, strict=True)
    ):
        kind = "wild"
    middle = 0.0 if jumps[0] is None else _mean(found[0])
    if kind in ("mild", "kink") and f.has(sympy.Piecewise, sympy.sign):
        here = value_at(whole, {symbol: exact})
        limits = [middle] if places else _at_ends(whole, symbol, domain)
        apart = [m for m in limits if _apart(here, m, sizes[0])]
        kind, middle = ("point", apart[0]) if apart else (kind, middle)
    exponent = min((side.exponent for side in found[order]), default=0.0)
    jump, slope = jumps[0] or 0.0, jumps[1] or 0.0
    return Singularity(float(exact), kind, jump, slope, middle, exponent, exact)


def _at_ends(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> list[float]:
    """Return the values of f at both ends of a domain, which is a few ulps wide."""
    ends = (sympy.Rational(*end.as_integer_ratio()) for end in (domain.low, domain.high))
    found = (real_at(value_at(f, {symbol: end}), {}) for end in ends)
    return [float(value) for value in found if value is not None]


def _is_rounding(
    case: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int, exponent: float
) -> bool:
    """Whether a pole is so faint that it may be what rounded decimals leave of a 0/0."""
    near, far = sympy.Rational(1, 10**20), sympy.Rational(1, 10**3)
    beside, away = (real_at(case, {symbol: point + side * h}, 30, 400) for h in (near, far))
    if beside is None or not away or not math.isfinite(exponent):
        return False
    return bool(abs(beside / away) * (near / far) ** -sympy.Float(exponent) < _FAINT)


def _kind(found: list[list[Approach]], jumps: list[float | None]) -> str:
    """Return the first thing that goes wrong: value, slope, then higher derivatives."""
    if jumps[0] is None:
        return "wild"
    if jumps[0]:
        return "jump"
    if jumps[1] is None:
        return "steep" if any(side.diverges for side in found[1]) else "wild"
    if jumps[1]:
        return "kink"
    for row, jump in zip(found[2:-1], jumps[2:-1], strict=True):
        if jump != 0:
            return "wild" if jump is None and not any(side.diverges for side in row) else "rough"
    return "mild"


def _mean(sides: list[Approach]) -> float:
    return float(sympy.Add(*(side.limit for side in sides)) / max(len(sides), 1))


def _apart(value: sympy.Expr, limit: float, scale: float) -> bool:
    """Whether the value at a point is another one than the limit; a 0/0 is no value."""
    number = value.evalf(30) if value.is_number else sympy.nan
    if number is sympy.nan or not number.is_number:
        return False
    if not number.is_real:
        return True
    return bool(abs(float(number) - limit) > _ALIKE * max(scale, abs(limit)))


def _jump(sides: list[Approach], scale: float) -> float | None:
    """Return by how much two one-sided limits differ, None if one does not exist."""
    limits = [side.limit for side in sides]
    if None in limits:
        return None
    if len(limits) < 2:
        return 0.0
    left, right = (float(limit) for limit in limits if limit is not None)
    return right - left if abs(right - left) > _ALIKE * max(scale, abs(left)) else 0.0


def _sides(point: sympy.Expr, domain: Interval) -> list[int]:
    """Return from which sides the domain reaches a point."""
    return [s for s, end in ((-1, domain.low), (1, domain.high)) if not same(point, end)]


def same(point: sympy.Expr, bound: Fraction | float) -> bool:
    """Whether a point is a bound, as far as a double can hold it."""
    if math.isinf(bound):
        return False
    return bool(abs(point - sympy.Rational(*bound.as_integer_ratio())) <= _ULP * abs(point))


_ULP = sympy.Rational(1, 10**15)
_FAINT = 1e-9  # of f at a distance of 1/1000: a pole of decimals that cancel is 1e-16 of it
_SAME = sympy.Rational(1, 10**50)  # from a double that is a zero, though sympy cannot tell
_NEAR = 1e-6  # of a zero to the double it was found at, which is half the digits of a double zero
_HIGHEST = 8  # order of a zero that is looked for: zeros of a higher one keep few digits


def polish(guard: sympy.Expr, symbol: sympy.Symbol, point: float) -> sympy.Expr | None:
    """Return a zero of the guard exactly, or to 60 digits."""
    here = sympy.Rational(*point.as_integer_ratio())
    for near in (here, sympy.nsimplify(here, rational=True, tolerance=1e-12)):
        if at(guard, {symbol: near}).is_zero:
            return near
    root = _root(guard, symbol, point)
    order = _order(guard, symbol, root) if root is not None else 1
    if order > 1:  # many digits are found only of simple zeros: of the derivative before
        slope = without_kinks(guard).diff(symbol, order - 1)
        root = _root(slope, symbol, root) or root
    if root is None or abs(root - point) > _NEAR * max(1.0, abs(point)):
        return None
    return here if abs(root - here) < _SAME else root


def _root(expr: sympy.Expr, symbol: sympy.Symbol, start: Any) -> sympy.Expr | None:
    """Return the zero that Newton's method finds from a start, to 60 digits if it is simple."""
    try:
        root = sympy.nsolve(expr, symbol, start, prec=60, verify=False)
    except (ValueError, ZeroDivisionError, TypeError, ArithmeticError):
        return None
    return root if root.is_real else None


def _order(expr: sympy.Expr, symbol: sympy.Symbol, root: sympy.Expr) -> int:
    """Return the order of a zero: twice as far from it, an expression is 2^order times as large."""
    step = sympy.Rational(1, 10**5) * max(sympy.S.One, abs(root))
    near, far = (real_at(expr, {symbol: root + k * step}, 30) for k in (1, 2))
    if not near or not far or abs(far) < abs(near):
        return 1
    return min(round(math.log2(float(far / near))) if far / near > 0 else 1, _HIGHEST)
