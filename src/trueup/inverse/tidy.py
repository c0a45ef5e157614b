"""Whether differences of a formula can be brought over one denominator at little cost.

Over one denominator no near numbers cancel: the second difference of 1/n is 2/(n³ − n). The common
numerator is a polynomial whose size grows with the power of the number of statistics, so it is
counted before it is expanded.
"""

from __future__ import annotations

import math
from functools import lru_cache

import sympy

MOST_TERMS = 1000
"""Terms of a common numerator: sympy factors so many in some tenths of a second."""

MOST_FACTORED = 40
"""Terms of a numerator in several statistics that is factored: one of 150 takes sympy minutes."""

_NEIGHBOURS = 3  # x − 1, x and x + 1, along every statistic


@lru_cache(maxsize=1024)
def is_tidy(f: sympy.Expr) -> bool:
    """Whether f is a quotient of polynomials whose differences have a short common numerator.

    Examples
    --------
    >>> a, b, c, d = sympy.symbols("a b c d", real=True)
    >>> is_tidy(a / (a + b)), is_tidy((a * d - b * c) / ((a + b) * (c + d) * (a + c) * (b + d)))
    (True, False)
    """
    if f.atoms(sympy.Float) or not f.is_rational_function():
        return False
    above, below = _degrees(f)
    shape = [above.get(s, 0) + below.get(s, 0) + 1 for s in f.free_symbols]
    return math.prod(shape) <= MOST_TERMS


def over_one_denominator(change: sympy.Expr) -> sympy.Expr:
    """Return a quotient of polynomials with its numerator multiplied out, and factored if short.

    Examples
    --------
    >>> n = sympy.Symbol("n", real=True)
    >>> over_one_denominator(1 / (n + 1) - 2 / n + 1 / (n - 1))
    2/(n*(n - 1)*(n + 1))
    """
    if len(change.free_symbols) < 2:
        return sympy.factor(change)
    above, below = sympy.fraction(sympy.together(change))
    numerator = sympy.Poly(above, *sorted(change.free_symbols, key=str))
    if len(numerator.terms()) <= MOST_FACTORED:
        return sympy.factor(change)
    return numerator.as_expr() / below


_Degrees = dict[sympy.Basic, int]


def _degrees(f: sympy.Expr) -> tuple[_Degrees, _Degrees]:
    """Return bounds on the degrees of a common numerator and of a common denominator.

    Every factor of the denominator occurs there once for each neighbour that it can tell apart.
    """
    if f.is_Symbol:
        return {f: 1}, {}
    if f.is_Add:
        parts = [_degrees(term) for term in f.args]
        below = _sum(*(p[1] for p in parts))
        return _sum(_largest(*(p[0] for p in parts)), below), below
    if f.is_Mul:
        parts = [_degrees(factor) for factor in f.args]
        return _sum(*(p[0] for p in parts)), _sum(*(p[1] for p in parts))
    if f.is_Pow and f.exp.is_Integer:
        above, below = _degrees(f.base)
        if f.exp > 0:
            return _times(above, int(f.exp)), _times(below, int(f.exp))
        apart = _NEIGHBOURS ** len(f.base.free_symbols)
        return _times(below, -int(f.exp)), _times(above, -int(f.exp) * apart)
    return {}, {}


def _sum(*several: _Degrees) -> _Degrees:
    return {s: sum(d.get(s, 0) for d in several) for d in several for s in d}


def _largest(*several: _Degrees) -> _Degrees:
    return {s: max(d.get(s, 0) for d in several) for d in several for s in d}


def _times(degrees: _Degrees, factor: int) -> _Degrees:
    return {s: factor * degree for s, degree in degrees.items()}
