"""The other statistics while one is looked at: one scene for every combination of their cases.

What f does along one statistic may depend on the case that the others pick, as in
where(n > 100, |s|, s). Conditions on one other statistic are met by values on both sides of every
zero; conditions on several others are taken for true and for false unless one is ruled out.
"""

from __future__ import annotations

import math
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.enclosure import zeros
from trueup.errors import TrueupError
from trueup.formula.substitution import at
from trueup.inverse.definite import definite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Box = Mapping[sympy.Symbol, Interval]

MOST = 64
"""Scenes beyond which nothing is decided."""


class Scene(NamedTuple):
    """Values of the other statistics, and conditions on several of them taken for true or false.

    ``real`` if the values meet the conditions: then what happens in the scene does happen.
    """

    values: dict[sympy.Symbol, sympy.Expr]
    truths: dict[sympy.Basic, sympy.Basic]
    real: bool


def scenes(f: sympy.Expr, symbol: sympy.Symbol, box: Box) -> list[Scene]:
    """Return what the statistics other than one can do to f, written without kinks.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> f = sympy.Piecewise((s**2, n > 100), (s, True))
    >>> [round(float(scene.values[n]), 2) for scene in scenes(f, s, {n: Interval(0, None)})]
    [61.8, 107.31]
    """
    tests = [t for t in f.atoms(Relational) if symbol not in t.free_symbols]
    joint = [t for t in tests if len(t.free_symbols) > 1]
    others = sorted(f.free_symbols - {symbol}, key=str)
    axes = [_values(f, other, box.get(other, Interval())) for other in others]
    choices = [_truths(test, box) for test in joint]
    found = [
        _scene(dict(zip(others, values, strict=True)), dict(zip(joint, truths, strict=True)))
        for values in islice(product(*axes), MOST + 1)
        for truths in islice(product(*choices), MOST + 1)
    ]
    if len(found) > MOST:
        raise TrueupError(
            f"f has more than {MOST} combinations of cases while {symbol} is held",
            "write it with fewer conditions, or debias its parts one by one",
        )
    return found


def _scene(values: dict[sympy.Symbol, sympy.Expr], truths: dict[sympy.Basic, sympy.Basic]) -> Scene:
    return Scene(values, truths, all(at(t, values) == truth for t, truth in truths.items()))


def _truths(test: Relational, box: Box) -> list[sympy.Basic]:
    """Return which truth values a condition on several statistics can take."""
    difference = test.lhs - test.rhs
    known = definite(difference, {s: box.get(s, Interval()) for s in difference.free_symbols})
    return [test.func(known, 0)] if known else [sympy.true, sympy.false]


def _values(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> list[sympy.Expr]:
    """Return values of a statistic: one between every two zeros of its conditions, none special."""
    marks: set[float] = set()
    for test in f.atoms(Relational):
        if test.free_symbols == {symbol}:
            found = zeros(test.lhs - test.rhs, symbol, float(domain.low), float(domain.high))
            marks |= {*found.points}
    ends = [float(domain.low), *sorted(marks), float(domain.high)]
    special = {*marks, *(float(b) for b in domain.bounds if b is not None)}
    values = [sympy.Integer(round(m)) for m in sorted(special) if domain.lattice and round(m) == m]
    for low, high in pairwise(ends):
        values += integers_between(low, high) if domain.lattice else reals_between(low, high)
    return values


def reals_between(low: float, high: float) -> Iterator[sympy.Expr]:
    """Yield a number strictly between two others at which nothing special happens."""
    if low < high:
        if math.isinf(low):
            value = 1.7310585786 if math.isinf(high) else high - 7.310585786
        else:
            value = low + (7.310585786 if math.isinf(high) else 0.6180339887 * (high - low))
        yield sympy.Rational(*value.as_integer_ratio())


def integers_between(low: float, high: float) -> Iterator[sympy.Expr]:
    """Yield one or two integers between two numbers, if there are any."""
    if math.isinf(low):
        low = -_FEW // 2 if math.isinf(high) else math.floor(high) - _FEW
    inside = range(math.floor(low) + 1, math.ceil(min(high, low + _FEW)))
    for place in {len(inside) * 3 // 7, len(inside) - 1} if inside else ():
        yield sympy.Integer(inside[place])


_FEW = 31
"""Among how many integers two are picked."""
