"""Build conditions, and values that depend on them."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from sympy.core.relational import Relational

from trueup.formula.nodes import Condition, UnfitError, Value, checked, evaluated, not_a_number
from trueup.formula.operations import SIGNS

_ROUNDS = 6


def compare(sign: str, left: Value, right: Value) -> Condition:
    """Return the comparison of two values.

    Examples
    --------
    >>> q, two = Value(sympy.Symbol("q", real=True), None, 1), Value(sympy.Integer(2), 2.0, 0)
    >>> compare("<=", q, two).expr
    q <= 2
    """
    if left.expr.has(sympy.Piecewise) or right.expr.has(sympy.Piecewise):
        hint = "join conditions with and, or, e.g. where(q > 0 and q < 1, a, b)"
        raise UnfitError("compares a where(...)", hint)
    test = evaluated(lambda: stable(SIGNS[sign](left.expr, right.expr)))
    return Condition(test, max(left.degree, right.degree))


def join(word: str, parts: Sequence[Condition]) -> Condition:
    """Return the conditions joined by `and` or `or`.

    Examples
    --------
    >>> q, s = sympy.symbols("q s", real=True)
    >>> join("and", [Condition(q > 0, 1), Condition(s > 0, 1)]).expr
    (q > 0) & (s > 0)
    """
    kind = sympy.And if word == "and" else sympy.Or
    return Condition(kind(*(c.expr for c in parts)), max(c.degree for c in parts))


def opposite(condition: Condition) -> Condition:
    """Return the condition negated.

    Examples
    --------
    >>> opposite(Condition(sympy.Symbol("q", real=True) > 0, 1)).expr
    q <= 0
    """
    return Condition(sympy.Not(condition.expr), condition.degree)


def choose(condition: Condition, yes: Value, no: Value) -> Value:
    """Return one value where the condition holds and another elsewhere.

    Examples
    --------
    >>> q, s = (Value(symbol, None, 1) for symbol in sympy.symbols("q s", real=True))
    >>> choose(compare(">", q, s), q, s).expr
    Piecewise((q, q > s), (s, True))
    """
    if condition.expr in (sympy.true, sympy.false):
        return yes if condition.expr is sympy.true else no
    others = no.expr.args if isinstance(no.expr, sympy.Piecewise) else [(no.expr, True)]
    first = condition.expr
    if others[0][0] == yes.expr:
        first, others = sympy.Or(first, others[0][1]), others[1:]
    degree = max(1, condition.degree, yes.degree, no.degree)
    return checked(lambda: sympy.Piecewise((yes.expr, first), *others), None, degree)


def stable(test: sympy.Basic) -> sympy.Basic:
    """Return a comparison in a form that sympy leaves alone.

    Building a ``Piecewise``, sympy rearranges its comparisons until nothing changes; some go
    round in circles for ever. Those become "difference against zero".

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> stable(1 - 2 * q < 0)
    q > 1/2
    """
    settled = _settled(test)
    if settled is None:
        settled = _settled(test.func(test.lhs - test.rhs, 0))
    if settled is None:
        raise not_a_number()
    return settled


def _settled(test: sympy.Basic) -> sympy.Basic | None:
    """Rearrange a few times; None if it does not come to rest."""
    for _ in range(_ROUNDS):
        before, test = test, _rearranged(test)
        if test == before:
            return test
    return None


def _rearranged(test: sympy.Basic) -> sympy.Basic:
    """Return -2*q + 1 < 0 as q > 1/2, as sympy does for a Piecewise."""
    test = test.canonical if isinstance(test, Relational) else test
    if not isinstance(test, Relational):
        return test
    shift, scaled = test.lhs.as_coeff_Add(rational=True)
    factor, left = scaled.as_coeff_Mul(rational=True)
    right = (test.rhs - shift) / factor
    return test.reversed.func(left, right) if factor < 0 else test.func(left, right)
