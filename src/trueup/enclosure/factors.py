"""Factors whose zeros are those of a formula."""

from __future__ import annotations

from collections.abc import Iterator

import sympy

_FRACTIONS = 6
_SIZE = 150
_DEGREE = 40


def factors(expr: sympy.Expr, symbol: sympy.Symbol) -> list[sympy.Expr]:
    """Return expressions that vanish where the given one does, without poles where possible.

    Denominators, exponentials and multiplicities are dropped: they add no zeros.

    Parameters
    ----------
    expr, symbol
        The expression and its variable.

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
