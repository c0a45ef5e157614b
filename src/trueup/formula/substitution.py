"""Numbers in place of symbols, without sympy's objections.

Put into a comparison, a ``Min`` or a ``Max``, a number that is not real makes sympy raise. Here the
cases are decided before anything is put into them, a comparison with what is not a real number does
not hold, and an extremum of such is not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import sympy
from sympy.core.relational import Relational

Numbers = Mapping[sympy.Symbol, sympy.Expr]

_DIGITS = 30  # twice those of a double: what differs by less is the same


def at(expr: sympy.Expr, values: Numbers) -> sympy.Expr:
    """Return an expression with numbers in place of symbols; nan where it has no value.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> at(sympy.Max(q, 2), {q: sympy.Integer(-1)})
    2
    >>> at(sympy.Piecewise((1, sympy.sqrt(q) > 0), (5, True)), {q: sympy.Integer(-1)})
    5
    """
    try:
        return _at(expr, values)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return sympy.nan


def real_at(
    expr: sympy.Expr, values: Numbers, digits: int = 15, most: int = 100
) -> sympy.Expr | None:
    """Return a value to so many digits, None unless it is a finite real number.

    ``most`` are the digits that sympy may work with to get there.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> real_at(sympy.log(q), {q: sympy.Integer(2)}), real_at(sympy.log(q), {q: sympy.Integer(0)})
    (0.693147180559945, None)
    """
    return real(at(expr, values), digits, most)


def real(expr: sympy.Expr, digits: int = 15, most: int = 100) -> sympy.Expr | None:
    """Return a constant to so many digits, None unless it is a finite real number.

    Examples
    --------
    >>> real(sympy.sqrt(2)), real(sympy.sqrt(-2))
    (1.41421356237310, None)
    """
    try:
        value = expr.evalf(digits, maxn=most)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError):
        return None
    return value if value.is_Number and value.is_finite else None


def holds(test: sympy.Basic, values: Numbers) -> bool | None:
    """Tell whether a condition holds, None if that depends on further symbols.

    Examples
    --------
    >>> q, s = sympy.symbols("q s", real=True)
    >>> holds(sympy.log(q) > 0, {q: sympy.Integer(-1)}), holds(q > s, {q: sympy.Integer(1)})
    (False, None)
    """
    if isinstance(test, Relational):
        return _compares(test, values)
    if isinstance(test, sympy.Not):
        inner = holds(test.args[0], values)
        return None if inner is None else not inner
    if isinstance(test, (sympy.And, sympy.Or)):
        decisive = isinstance(test, sympy.Or)
        parts = [holds(part, values) for part in test.args]
        return decisive if decisive in parts else None if None in parts else not decisive
    return bool(test) if test in (sympy.true, sympy.false) else None


def _compares(test: Relational, values: Numbers) -> bool | None:
    difference = at(test.lhs, values) - at(test.rhs, values)
    if difference.free_symbols:
        return None
    value = difference if difference.is_Rational else real(difference, _DIGITS)
    if value is None:
        return isinstance(test, sympy.Ne)
    return bool(test.func(value, 0))


def _at(expr: sympy.Expr, values: Numbers) -> sympy.Expr:
    if isinstance(expr, sympy.Symbol):
        return values.get(expr, expr)
    if not expr.args or not expr.free_symbols & values.keys():
        return expr
    if isinstance(expr, sympy.Piecewise):
        return _case(expr, values)
    args = [_at(arg, values) for arg in expr.args]
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return _extremum(expr, args)
    return expr.func(*args)


def _case(expr: sympy.Piecewise, values: Numbers) -> sympy.Expr:
    """Return the value of the case that holds; where that is open, what is left of the cases."""
    for index, (value, test) in enumerate(expr.args):
        true = holds(test, values)
        if true:
            return _at(value, values)
        if true is None:
            rest = expr.args[index:]
            return sympy.Piecewise(*((_at(v, values), t.xreplace(dict(values))) for v, t in rest))
    return sympy.nan


def _extremum(expr: sympy.Expr, args: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return the least or greatest argument."""
    if any(arg.free_symbols for arg in args):
        return expr.func(*args, evaluate=False)
    sizes = {arg: real(arg, _DIGITS) for arg in args}
    if None in sizes.values():
        return sympy.nan
    pick: Callable[..., sympy.Expr] = min if isinstance(expr, sympy.Min) else max
    return pick(args, key=sizes.__getitem__)
