"""Bring an expression to rest: whole floats exact, a second construction changing nothing."""

from __future__ import annotations

import sympy
from sympy.core.relational import Relational

from trueup.formula.arithmetic import absolute, raised
from trueup.formula.conditions import stable
from trueup.formula.nodes import check_number, evaluated

_ROUNDS = 8


def settle(expr: sympy.Expr) -> sympy.Expr:
    """Return the expression with whole floats exact, all numbers checked.

    Examples
    --------
    >>> settle(sympy.Float(2.0) * sympy.Symbol("q", real=True))
    2*q
    """
    for _ in range(_ROUNDS):
        before = expr
        expr = evaluated(lambda old=before: _rebuilt(old))  # type: ignore[misc]
        if expr == before:
            break
    for atom in expr.atoms(sympy.Number):
        check_number(atom)
    return expr


def _rebuilt(expr: sympy.Basic) -> sympy.Basic:
    """Rebuild from the leaves: sympy may see more the second time."""
    if isinstance(expr, sympy.Float) and _is_whole(expr):
        return sympy.Integer(int(expr))
    if not expr.args:
        return expr
    args = [_rebuilt(arg) for arg in expr.args]
    if isinstance(expr, sympy.Abs):
        return absolute(args[0])
    if isinstance(expr, sympy.Pow) and not isinstance(expr, sympy.exp):
        return raised(*args)
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return expr.func(*args, evaluate=False)
    built = expr.func(*args)
    return stable(built) if isinstance(built, Relational) else built


def _is_whole(number: sympy.Float) -> bool:
    """Tell whether a float stands for an integer; 1e-400 does not stand for 0."""
    inside = number.is_zero or 1 <= abs(number) < 2**53
    return bool(inside) and float(number).is_integer()
