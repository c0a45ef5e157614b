"""Derivatives that stay true at kinks: both one-sided slopes are among the cases."""

from __future__ import annotations

import sympy

_KINKED = (sympy.Abs, sympy.Min, sympy.Max, sympy.Piecewise, sympy.sign)


def slope(expr: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return the derivative: that of |a| is sign(a)·a′, those of min and max are cases.

    The chain rule over the outermost kinked parts; all else is left to sympy.

    Parameters
    ----------
    expr, symbol
        The expression and the variable.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> slope(sympy.Abs(q) * q, q)
    q*sign(q) + Abs(q)
    """
    kinked = _outermost(expr)
    names = {part: sympy.Dummy(real=True) for part in kinked}
    smooth = expr.xreplace(names)
    back = {name: part for part, name in names.items()}
    terms = [smooth.diff(symbol)]
    for part, name in names.items():
        terms.append(smooth.diff(name) * _kinked_slope(part, symbol))
    return sympy.Add(*(term.xreplace(back) for term in terms))


def _outermost(expr: sympy.Basic) -> list[sympy.Expr]:
    """Return the kinked parts that lie in no other."""
    if isinstance(expr, _KINKED):
        return [expr]
    return list(dict.fromkeys(part for arg in expr.args for part in _outermost(arg)))


def _kinked_slope(part: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return the slope of |·|, min, max, cases or sign; nan where it is too intricate."""
    if isinstance(part, sympy.sign):
        return sympy.S.Zero
    if isinstance(part, sympy.Abs):
        return sympy.sign(part.args[0]) * slope(part.args[0], symbol)
    if isinstance(part, sympy.Piecewise):
        cases = [(slope(value, symbol), test) for value, test in part.args]
        return sympy.Piecewise(*cases, evaluate=False)
    if part.has(sympy.Piecewise):  # sympy would multiply out the cases of a condition
        return sympy.nan
    first, *others = part.args
    rest = part.func(*others, evaluate=False)
    test = first < rest if isinstance(part, sympy.Min) else first > rest
    cases = [(slope(first, symbol), test), (slope(rest, symbol), True)]
    return sympy.Piecewise(*cases, evaluate=False)
