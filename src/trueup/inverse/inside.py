"""The formula as it is inside the domain: what never happens there is left out.

|a|, min and max are replaced by the argument that they are on the whole domain, touching at its
edge included: |s·t| is s·t for s, t ≥ 0. Conditions are decided where they hold everywhere, on a
statistic under continuous noise where they hold at all but single points; whether f has its limits
at these is looked at apart (kind ``point`` in :mod:`trueup.inverse.regularity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy
from sympy.core.relational import Relational

from trueup.domain import Interval
from trueup.inverse.cases import is_plain
from trueup.inverse.definite import definite

if TYPE_CHECKING:
    from collections.abc import Mapping

    Box = Mapping[sympy.Symbol, Interval]


def inside(f: sympy.Expr, box: Box, rough: set[sympy.Symbol]) -> sympy.Expr:
    """Return f as it is on a box, at all but single values of the ``rough`` statistics.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> inside(abs(q - 3), {q: Interval(None, 3)}, {q})
    3 - q
    >>> inside(sympy.Piecewise((1, sympy.Eq(q, 0)), (sympy.sin(q) / q, True)), {q: Interval()}, {q})
    sin(q)/q
    >>> inside(sympy.Piecewise((q, q >= 0), (-q, True)), {q: Interval(0, None)}, set())
    q
    """
    if not f.has(sympy.Abs, sympy.Max, sympy.Min, sympy.Piecewise):
        return f
    return _rebuilt(f, box, rough)


def _rebuilt(f: sympy.Basic, box: Box, rough: set[sympy.Symbol]) -> sympy.Basic:
    if not f.args or not f.has(sympy.Abs, sympy.Max, sympy.Min, Relational):
        return f
    args = [_rebuilt(a, box, rough) for a in f.args]
    if isinstance(f, sympy.Abs):
        return {1: args[0], -1: -args[0]}.get(_sign(args[0], box), sympy.Abs(args[0]))
    if isinstance(f, (sympy.Max, sympy.Min)):
        return f.func(
            *_contenders(args, box, 1 if isinstance(f, sympy.Max) else -1), evaluate=False
        )
    if isinstance(f, Relational):
        return _decided(f.func(*args), box, rough)
    return f.func(*args)


def _contenders(args: list[sympy.Expr], box: Box, wins: int) -> list[sympy.Expr]:
    """Leave out the arguments that another one is always as good as."""
    left = list(args)
    for a in args:
        if any(b is not a and _sign(b - a, box) == wins for b in left):
            left.remove(a)
    return left


def _decided(test: sympy.Basic, box: Box, rough: set[sympy.Symbol]) -> sympy.Basic:
    """Return a condition, true or false where that is so at all but single points."""
    if not isinstance(test, Relational) or not is_plain(test):
        return test
    difference = test.lhs - test.rhs
    single = len(difference.free_symbols) == 1 and difference.free_symbols <= rough
    if single and isinstance(test, (sympy.Eq, sympy.Ne)):
        return sympy.false if isinstance(test, sympy.Eq) else sympy.true
    sign = _sign(difference, box, strict=not single)
    if sign:
        return test.func(sign, 0)
    weak = _sign(difference, box)  # at an edge of the box it may be 0: a >= b holds there too
    at_zero = {1: (sympy.Ge, sympy.Lt), -1: (sympy.Le, sympy.Gt)}.get(weak, ())
    return test.func(weak, 0) if isinstance(test, at_zero) else test


def _sign(expr: sympy.Expr, box: Box, *, strict: bool = False) -> int:
    """Return the sign of an expression on the box, where it is not zero; 0 if it has both."""
    whole = {s: box.get(s, Interval()) for s in expr.free_symbols}
    return definite(expr, whole, strict=strict) if expr.free_symbols else 0
