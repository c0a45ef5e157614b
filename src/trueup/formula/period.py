"""The period of a formula that looks at a statistic only through sines, cosines and tangents."""

from __future__ import annotations

import sympy

WAVES = (sympy.sin, sympy.cos, sympy.tan)
"""Functions that repeat."""


def period(f: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr | None:
    """Return a period of f along a symbol, None if none is known.

    Examples
    --------
    >>> q, n = sympy.symbols("q n", real=True)
    >>> period((1 - sympy.cos(2 * q / 3)) ** 1.5 + n * sympy.sin(q), q)
    6*pi
    >>> period(q * sympy.sin(q), q) is None
    True
    >>> period(sympy.sin(sympy.Piecewise((q, q >= 7), (q - 1, True))), q) is None
    True
    """
    turns = _turns(f, symbol)
    if not turns:
        return None
    ratios = [turn / turns[0] for turn in turns]
    if not all(ratio.is_Rational for ratio in ratios):
        return None
    shared = sympy.Rational(*(sympy.gcd(ratios).as_numer_denom())) * abs(turns[0])
    return 2 * sympy.pi / shared


def _turns(f: sympy.Basic, symbol: sympy.Symbol) -> list[sympy.Expr] | None:
    """Return the frequencies of all waves in f, None if the symbol is met outside of one."""
    if symbol not in f.free_symbols:
        return []
    if isinstance(f, WAVES):
        turn = f.args[0].diff(symbol)
        is_line = f.args[0].is_polynomial(symbol) and turn.is_number and turn.is_real
        return [turn] if is_line else None
    if not f.args:
        return None
    inner = [_turns(arg, symbol) for arg in f.args]
    return None if None in inner else [turn for turns in inner for turn in turns or ()]
