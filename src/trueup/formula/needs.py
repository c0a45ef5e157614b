"""What a formula divides by, and what it needs as it is written where sympy's form needs less.

``sqrt(a)**2`` is a for sympy, ``sin(asin(n))`` is n and ``0*log(q)`` is 0, whatever the sign of q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import sympy

from trueup.formula.operations import NAMES


class Need(NamedTuple):
    """An expression that must not be negative (or 0, if it divides) where a condition holds."""

    expr: sympy.Expr
    divides: bool
    where: sympy.Basic = sympy.true

    def under(self, test: sympy.Basic) -> Need:
        """Return the need of what is only looked at where a condition holds."""
        return self._replace(where=sympy.And(test, self.where))


_PARTIAL: dict[str, Callable[[sympy.Expr], sympy.Expr]] = {
    "sqrt": lambda a: a,
    "log": lambda a: a,
    "asin": lambda a: 1 - a**2,
    "acos": lambda a: 1 - a**2,
    "atanh": lambda a: 1 - a**2,
    "acosh": lambda a: a - 1,
}
"""What must not be negative, of the functions that are not real everywhere."""
_INFINITE = ("log", "atanh")  # where that is 0


def of_power(base: sympy.Expr, exponent: sympy.Expr) -> list[Need]:
    """Return what a power with a constant exponent needs; a polynomial is 0 at points only.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> of_power(q, sympy.Rational(1, 2)), of_power(sympy.Abs(q), sympy.Integer(-1))
    ([Need(expr=q, divides=False, where=True)], [Need(expr=Abs(q), divides=True, where=True)])
    """
    if not base.free_symbols or exponent.free_symbols:
        return []
    needs = [] if float(exponent).is_integer() else [Need(base, divides=False)]
    divides = exponent.is_negative and not base.is_polynomial()
    return needs + ([Need(base, divides=True)] if divides else [])


def of_call(name: str, argument: sympy.Expr) -> list[Need]:
    """Return what a function needs of its argument.

    Examples
    --------
    >>> of_call("asin", sympy.Symbol("q", real=True))
    [Need(expr=1 - q**2, divides=False, where=True)]
    """
    if name not in _PARTIAL or not argument.free_symbols:
        return []
    needed = _PARTIAL[name](argument)
    return [Need(needed, divides) for divides in (False, True)[: 1 + (name in _INFINITE)]]


def lost(needs: Sequence[Need], expr: sympy.Expr) -> tuple[Need, ...]:
    """Return the needs of a formula that do not show in its expression.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> lost(of_call("sqrt", q), sympy.sqrt(q)), len(lost(of_call("sqrt", q), q))
    ((), 1)
    """
    if not needs:
        return ()
    # of |a|, min, max and cases only what happens inside the domain is looked at later
    plain = not expr.has(sympy.Abs, sympy.Min, sympy.Max, sympy.Piecewise)
    shown = {need[:2] for need in _shown(expr)} if plain else set()
    return tuple(n for n in dict.fromkeys(needs) if n.where != sympy.false and n[:2] not in shown)


def _shown(expr: sympy.Basic) -> Iterator[Need]:
    """Yield what an expression needs."""
    for part in sympy.preorder_traversal(expr):
        if isinstance(part, sympy.Pow) and not isinstance(part, sympy.exp):
            yield from of_power(*part.args)
        elif type(part) in NAMES:
            yield from of_call(NAMES[type(part)], part.args[0])


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
