"""Whether f as it is written is a real number all over the domain: sqrt(q)**2 is none at q = −1.

Sympy's simpler form of f may be. Refused is a formula that needs, at a point of the domain, the
root of a negative number and the like, or divides on a whole stretch by 0; at a single point, as in
q/q, its limit is its value.
"""

from __future__ import annotations

import math
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

import sympy
from sympy.core.relational import Relational

from trueup.enclosure import zeros
from trueup.errors import NoUnbiasedEstimator
from trueup.formula.objections import objections
from trueup.formula.substitution import at, holds, rational, real_at
from trueup.formula.text import text
from trueup.inverse.definite import definite
from trueup.inverse.regularity import guards
from trueup.inverse.scenes import integers_between, reals_between

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.domain import Interval
    from trueup.formula.linear import Condition
    from trueup.formula.needs import Need
    from trueup.formula.source import Source

    Box = Mapping[sympy.Symbol, Interval]
    Point = dict[sympy.Symbol, sympy.Expr]

_MOST = 200
"""Points tried for each need: each takes about a millisecond."""

_NARROW = 1e-9
"""Relative distance of two marks between which nothing is tried: rounded decimals part them."""

_BESIDE = sympy.Rational(1, 997)
"""Distance to a point at which a divisor is 0 as well if it is on a stretch."""


def check_as_written(f: Source, box: Box, tied: Sequence[Condition]) -> None:
    """Refuse a formula that as written is not a real number in the domain, though simplified it is.

    What a statistic needs that cancels is not looked at.
    """
    for need in f.needs:
        if need.expr.free_symbols | need.where.free_symbols <= set(box):
            with objections(f.expr):
                point = _witness(need, box, tied)
            if point is not None:
                raise _refusal(f.expr, need, point)


def _refusal(f: sympy.Expr, need: Need, point: Point) -> NoUnbiasedEstimator:
    where = ", ".join(f"{text(s)} = {float(v):.6g}" for s, v in point.items())
    what = f"{text(need.expr)} must not be {'0' if need.divides else 'negative'}"
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {text(f)}: as it is written, it is not a real number at "
        f"{where}, inside the domain, where {what}",
        "bound the domain to where the formula is real, or write it as simply as it is meant",
    )


def _witness(need: Need, box: Box, tied: Sequence[Condition]) -> Point | None:
    """Return a point of the domain at which a need is not met, None if none is found."""
    own = {s: box[s] for s in need.expr.free_symbols}
    sign = definite(need.expr, own, strict=need.divides)
    if sign > 0 or (need.divides and sign):
        return None
    for point in islice(_points(need, box), _MOST):
        if _fails(need, point) and all(_may_hold(c, point) for c in tied):
            return point
    return None


def _fails(need: Need, point: Point) -> bool:
    if not holds(need.where, point):
        return False
    steps = (0, -_BESIDE, _BESIDE) if need.divides else (0,)
    nearby = [{s: v + step for s, v in point.items()} for step in steps]
    values = [real_at(rational(need.expr), near) for near in nearby]
    return all(v is not None and (v == 0 if need.divides else v < 0) for v in values)


def _may_hold(condition: Condition, point: Point) -> bool:
    """Whether a condition between statistics holds at a point, or does not speak of it alone."""
    values = {s.name: v for s, v in point.items()}
    return not condition.names <= set(values) or condition.excess(values) >= 0


def _points(need: Need, box: Box) -> Iterator[Point]:
    """Yield points beside all marks of a need along its last statistic, the others held."""
    *others, last = sorted(need.expr.free_symbols | need.where.free_symbols, key=str)
    axes = [list(_values([s], s, box[s])) for s in others]
    for values in product(*axes):
        held = dict(zip(others, values, strict=True))
        marks = [last, *(at(expr, held) for expr in _marks(need))]
        for value in _values(marks, last, box[last]):
            yield {**held, last: value}


def _marks(need: Need) -> list[sympy.Expr]:
    """Return expressions between whose zeros a need is met everywhere or nowhere."""
    tests = [test.lhs - test.rhs for test in need.where.atoms(Relational)]
    parts = [guard.expr for part in (need.expr, *tests) for guard in guards(part)]
    return [*tests, *parts, *([] if need.divides else [need.expr])]


def _values(
    marks: Sequence[sympy.Expr], symbol: sympy.Symbol, domain: Interval
) -> Iterator[sympy.Expr]:
    """Yield values of a statistic at and between zeros of some expressions, and integer bounds."""
    low, high = float(domain.low), float(domain.high)
    own = {mark for mark in marks if mark.free_symbols == {symbol}}
    found = sorted({point for mark in own for point in zeros(mark, symbol, low, high).points})
    yield from (sympy.Integer(int(b)) for b in domain.bounds if b is not None and b == int(b))
    yield from (sympy.Rational(*p.as_integer_ratio()) for p in found if low <= p <= high)
    between = integers_between if domain.lattice else reals_between
    for a, b in pairwise([low, *found, high]):
        if b - a > _NARROW * max(1.0, min(abs(a), abs(b))) or math.isinf(b - a):
            yield from between(a, b)
