"""What a formula divides by, and what it is by convention where that is 0: an empty cell."""

from __future__ import annotations

import sympy


def denominators(f: sympy.Expr) -> list[sympy.Expr]:
    """Return what f divides by, each once, outside of its cases as well as inside.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> denominators(s / (1 + n) ** 2 - 3 / n), denominators(s * n)
    ([n, n + 1], [])
    """
    powers = [p for p in f.atoms(sympy.Pow) if p.exp.is_number and p.exp.is_negative]
    return sorted({p.base for p in powers if p.base.free_symbols}, key=str)


def by_convention(f: sympy.Expr, value: sympy.Expr) -> sympy.Expr:
    """Return f with a value where a denominator is 0.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> by_convention(s / n, sympy.Integer(0))
    Piecewise((0, Eq(n, 0)), (s/n, True))
    """
    empty = sympy.Or(*(sympy.Eq(d, 0) for d in denominators(f)))
    return sympy.Piecewise((value, empty), (f, True), evaluate=False)
