"""Cases of a formula: which of them holds just inside a bound, beside a point, at a point.

Under continuous noise single points do not matter to an estimator, and a derivative at a bound is
the one from inside. Both need to know which case holds *beside* a point: every comparison there
has the sign that its two sides differ by at a small distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy
from sympy.core.relational import Relational

from trueup.formula.substitution import at, real
from trueup.formula.unkinked import without_kinks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BESIDE = sympy.Rational(4, 10**15)
"""How far beside a point comparisons are read, relative to it: a bound may be off by one ulp."""

_BESIDE_ZERO = sympy.Rational(1, 10**30)

_NOTHING = sympy.Rational(1, 10**45)
"""What is left of a difference that vanishes, in numbers of 60 digits."""

_DIGITS = 60
_KINKED = (sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.Piecewise)


def beside(f: sympy.Expr, point: Mapping[sympy.Symbol, tuple[sympy.Expr, int]]) -> sympy.Expr:
    """Return the case of f that holds beside a point, given as {symbol: (value, side)}.

    Comparisons that depend on other symbols too stay.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> beside(without_kinks(abs(q - 3)), {q: (sympy.Integer(3), -1)})
    3 - q
    """
    near = {
        symbol: value + side * (_BESIDE * abs(value) or _BESIDE_ZERO) * (1 + sympy.Rational(i, 7))
        for i, (symbol, (value, side)) in enumerate(point.items())
    }
    return chosen(f, lambda difference: _sign(at(difference, near), sympy.S.Zero))


def value_at(f: sympy.Expr, point: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return the value of f at a point: sides that agree to many digits are equal there.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> value_at(sympy.Piecewise((5, sympy.Eq(q**2, 2)), (q, True)), {q: sympy.sqrt(2).evalf(60)})
    5
    """
    held = chosen(without_kinks(f), lambda difference: _sign(at(difference, point), _NOTHING))
    return at(held, point)


def chosen(f: sympy.Expr, sign: Callable[[sympy.Expr], int | None]) -> sympy.Expr:
    """Return f with every comparison decided for which the sign of its difference is known."""
    truths: dict[sympy.Basic, sympy.Basic] = {}
    for test in f.atoms(Relational):
        found = sign(test.lhs - test.rhs)
        if found is not None:
            truths[test] = test.func(found, 0)
    return at(f, truths) if truths else f


def _sign(difference: sympy.Expr, nothing: sympy.Expr) -> int | None:
    """Return the sign of a number, None if it is none."""
    value = real(difference, _DIGITS, 400) if difference.is_number else None
    if value is None:
        return None
    if abs(value) <= nothing:
        return 0
    return 1 if value > 0 else -1


def is_plain(expr: sympy.Basic) -> bool:
    """Whether an expression has no cases, so that it vanishes at single points only."""
    return not expr.has(*_KINKED, sympy.floor)
