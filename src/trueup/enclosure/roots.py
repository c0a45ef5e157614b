"""All zeros of a formula in one variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import sympy

from trueup.enclosure.search import Search

FAR = 1e300
"""Zeros further out are not looked for."""

_FRACTIONS = 6  # terms with denominators, and operations in all, that are cheap to put together
_SIZE = 150
_DEGREE = 40  # up to which multiple roots are taken out of a polynomial


class Zeros(NamedTuple):
    """The zeros found, in order, and whether there can be no others."""

    points: tuple[float, ...]
    complete: bool


def zeros(
    expr: sympy.Expr, symbol: sympy.Symbol, low: float, high: float, limit: int = 64
) -> Zeros:
    """Return the real zeros of an expression on a closed interval.

    Zeros that double precision cannot tell apart count as one. A formula that only comes close to
    zero by less than rounding errors, or whose cases exclude the zero of one of them, is reported
    to vanish there. An infinite end stands for 1e300.

    Parameters
    ----------
    expr
        An expression in real symbols, one only.
    symbol
        Its variable.
    low, high
        The interval; infinite ends are allowed.
    limit
        The most zeros wanted; of more, those nearest to 0 count and ``complete`` is False.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> zeros(q**2 - 4, q, 0, float("inf"))
    Zeros(points=(2.0,), complete=True)
    >>> zeros(sympy.sin(q), q, -1, 7).points
    (0.0, 3.141592653589793, 6.283185307179586)
    """
    points: list[float] = []
    complete = True
    for factor in factors(expr, symbol):
        found = _factor_zeros(factor, symbol, max(low, -FAR), min(high, FAR), limit)
        points += [float(point) for point in found.points]
        complete = complete and found.complete
    points = _distinct(points)
    nearest = sorted(sorted(points, key=abs)[:limit])
    return Zeros(tuple(nearest), complete and len(points) <= limit)


def _distinct(points: list[float]) -> list[float]:
    """Return the points in order, those equal up to rounding once."""
    result: list[float] = []
    for point in sorted(points):
        if not result or point - result[-1] > 1e-14 * abs(point):
            result.append(point + 0.0)
    return result


def _factor_zeros(
    expr: sympy.Expr, symbol: sympy.Symbol, low: float, high: float, limit: int
) -> Zeros:
    """Return the zeros of one factor: at once if it is linear, by search otherwise."""
    shift, scaled = expr.as_independent(symbol, as_Add=True)
    scale, variable = scaled.as_independent(symbol, as_Add=False)
    if variable == symbol and not (shift.free_symbols or scale.free_symbols):
        point = float(-shift / scale)
        return Zeros((point,) if low <= point <= high else (), complete=True)
    points, complete = Search(expr, symbol, low, high).run(limit)
    return Zeros(tuple(points), complete)


def factors(expr: sympy.Expr, symbol: sympy.Symbol) -> list[sympy.Expr]:
    """Return expressions that vanish where the given one does, without poles where possible.

    Denominators, exponentials and multiplicities are dropped: they add no zeros.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> factors(sympy.exp(q) * (q - 1) ** 2 / q, q)
    [q - 1]
    >>> factors(1 / q - 1 / q**2, q)
    [q - 1]
    """
    cleared = _cleared(_without_tangents(expr), symbol)
    return list(dict.fromkeys(_split(cleared, symbol)))


def _without_tangents(expr: sympy.Expr) -> sympy.Expr:
    """Write tan as sin/cos, whose numerator has no poles."""
    if not expr.has(sympy.tan):
        return expr
    names = {t: sympy.sin(t.args[0]) / sympy.cos(t.args[0]) for t in expr.atoms(sympy.tan)}
    return expr.xreplace(names)


def _cleared(expr: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return the numerator over a common denominator, if that is cheap."""
    if not isinstance(expr, sympy.Add):
        return expr
    fractions = [term for term in expr.args if sympy.fraction(term)[1].has(symbol)]
    if not fractions or len(fractions) > _FRACTIONS or expr.count_ops() > _SIZE:
        return expr
    return sympy.fraction(sympy.together(expr))[0]


def _split(expr: sympy.Expr, symbol: sympy.Symbol) -> Iterator[sympy.Expr]:
    """Yield the factors that can vanish."""
    for factor in sympy.Mul.make_args(expr):
        if isinstance(factor, sympy.exp) or not factor.has(symbol):
            if factor.is_zero:
                yield factor
        elif isinstance(factor, sympy.Pow) and factor.exp.is_number:
            if factor.exp.is_positive:
                yield from _split(factor.base, symbol)
        elif isinstance(factor, sympy.Abs):
            yield from _split(factor.args[0], symbol)
        else:
            yield _simple(factor, symbol)


def _simple(expr: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return a polynomial with rational coefficients without its multiple roots."""
    if not expr.is_polynomial(symbol) or expr.has(sympy.Float):
        return expr
    polynomial = sympy.Poly(expr, symbol)
    rational = polynomial.domain.is_ZZ or polynomial.domain.is_QQ
    if not rational or not 1 < polynomial.degree() <= _DEGREE:
        return expr
    return polynomial.sqf_part().as_expr()
