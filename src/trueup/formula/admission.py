"""Admit a sympy expression that the user made, under the limits of the grammar.

The last step, `settle`, is that of text that was read as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import sympy
from sympy.core.relational import Relational

from trueup.errors import FormulaError
from trueup.formula import arithmetic, conditions, limits
from trueup.formula.nodes import (
    Condition,
    UnfitError,
    Value,
    check_number,
    evaluated,
    is_long,
)
from trueup.formula.operations import NAMES
from trueup.formula.refusal import quoted

_Built = TypeVar("_Built")
_ROUNDS = 8  # of building it anew: sympy comes to rest after two or three
_HINT = "use what the grammar knows: + - * / **, abs, min, max, exp, log, sin, where, ..."


def admit(expr: sympy.Expr) -> sympy.Expr:
    """Return a sympy expression in real symbols, or refuse what the grammar does not know.

    Parameters
    ----------
    expr
        The user's expression. ``Heaviside`` and ``sign`` become cases; every symbol becomes the
        real symbol of the same name.

    Examples
    --------
    >>> admit(sympy.Symbol("q", positive=True) ** 2 + sympy.E)
    q**2 + E
    >>> admit(sympy.gamma(sympy.Symbol("q")))
    Traceback (most recent call last):
    trueup.errors.FormulaError: 'gamma(q)' is not part of the grammar
    Hint: use what the grammar knows: ...
    """
    if not isinstance(expr, sympy.Expr):
        problem = f"a formula must be a sympy expression, got {quoted(repr(expr))}"
        raise FormulaError(
            problem, "give a value; write a condition as Piecewise((1, c), (0, True))"
        )
    walk = _Walk()
    value = walk.value(expr, 0)
    return walk.build(expr, settle, value.expr)


class _Walk:
    """Rebuild an expression from its leaves, counting as the parser does."""

    def __init__(self) -> None:
        self.count = 0
        self.extrema = 0
        self.joined = 0

    def value(self, expr: sympy.Basic, depth: int) -> Value:
        """Return the value an expression stands for."""
        self.check(expr, depth)
        if isinstance(expr, sympy.Symbol):
            return self.symbol(expr)
        if isinstance(expr, sympy.Number) or expr in (sympy.pi, sympy.E):
            return self.build(expr, arithmetic.number_of, expr)
        if isinstance(expr, sympy.Piecewise):
            return self.cases(expr, depth + 1)
        if isinstance(expr, (sympy.Heaviside, sympy.sign)):
            return self.value(_steps(expr), depth + 1)
        args = [self.value(arg, depth + 1) for arg in self.known(expr).args]
        return self.build(expr, _combine, expr, args)

    def known(self, expr: sympy.Basic) -> sympy.Basic:
        """Refuse functions outside the grammar before looking inside them."""
        kinds = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Min, sympy.Max, *NAMES)
        if not isinstance(expr, kinds):
            raise FormulaError(f"{_shown(expr)} is not part of the grammar", _HINT)
        if isinstance(expr, (sympy.Min, sympy.Max)):
            self.extrema += 1
        return expr

    def symbol(self, symbol: sympy.Symbol) -> Value:
        """Return the real symbol of that name."""
        if not symbol.is_commutative or symbol.is_real is False:
            raise FormulaError(f"the symbol {_shown(symbol)} is not real", "use a real symbol")
        return arithmetic.variable(symbol.name)

    def cases(self, expr: sympy.Piecewise, depth: int) -> Value:
        """Return cases, the last of which must hold everywhere else."""
        if expr.args[-1][1] != sympy.true:
            problem = f"{_shown(expr)} has no value where its conditions fail"
            raise FormulaError(problem, "end it with (value, True)")
        result = self.value(expr.args[-1][0], depth)
        for index, (part, test) in enumerate(reversed(expr.args[:-1])):
            condition, value = self.condition(test, depth + index), self.value(part, depth)
            result = self.build(expr, conditions.choose, condition, value, result)
        return result

    def condition(self, test: sympy.Basic, depth: int) -> Condition:
        """Return the condition a sympy relation stands for."""
        self.check(test, depth)
        if isinstance(test, sympy.Rel):
            left, right = (self.value(side, depth + 1) for side in test.args)
            return self.build(test, conditions.compare, test.rel_op, left, right)
        if isinstance(test, (sympy.And, sympy.Or, sympy.Not)):
            parts = [self.condition(part, depth + 1) for part in test.args]
            self.joined += len(parts)
            if isinstance(test, sympy.Not):
                return conditions.opposite(parts[0])
            return conditions.join("and" if isinstance(test, sympy.And) else "or", parts)
        if test in (sympy.true, sympy.false):
            return Condition(test, 0)
        raise FormulaError(f"the condition {_shown(test)} is not part of the grammar", _HINT)

    def check(self, expr: sympy.Basic, depth: int) -> None:
        """Refuse expressions that are too large."""
        self.count += 1
        small = depth <= limits.DEPTH and self.count <= limits.NODES
        if not small or self.extrema > limits.EXTREMA or self.joined > limits.JOINED:
            problem = f"the expression is too large at {type(expr).__name__}"
            hint = f"keep it to {limits.NODES} parts, nested {limits.DEPTH} deep"
            raise FormulaError(problem, hint)

    def build(self, expr: sympy.Basic, make: Callable[..., _Built], *args: Any) -> _Built:
        """Build a node; where it is unfit, name it."""
        try:
            return make(*args)
        except UnfitError as unfit:
            raise FormulaError(f"{_shown(expr)} {unfit.reason}", unfit.hint) from None


def _combine(expr: sympy.Expr, args: list[Value]) -> Value:
    """Apply the operation of an expression to admitted arguments."""
    if isinstance(expr, sympy.Add):
        return arithmetic.total(args)
    if isinstance(expr, sympy.Mul):
        return arithmetic.product(args)
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return arithmetic.extremum("min" if isinstance(expr, sympy.Min) else "max", args)
    if isinstance(expr, sympy.Pow) and not isinstance(expr, sympy.exp):
        return arithmetic.power(*args)
    return arithmetic.call(NAMES[type(expr)], args[0])


def _steps(expr: sympy.Expr) -> sympy.Expr:
    """Return Heaviside or sign as cases."""
    argument = expr.args[0]
    if isinstance(expr, sympy.sign):
        return sympy.Piecewise((1, argument > 0), (-1, argument < 0), (0, True))
    return sympy.Piecewise((1, argument > 0), (0, argument < 0), (expr.args[1], True))


def _shown(expr: sympy.Basic) -> str:
    """Return an expression as messages show it: never longer than needed to build it."""
    return f"a large {type(expr).__name__}" if is_long(expr, 59) else quoted(str(expr))


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
        return arithmetic.absolute(args[0])
    if isinstance(expr, sympy.Pow) and not isinstance(expr, sympy.exp):
        return arithmetic.raised(*args)
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return expr.func(*args, evaluate=False)
    built = expr.func(*args)
    return conditions.stable(built) if isinstance(built, Relational) else built


def _is_whole(number: sympy.Float) -> bool:
    """Tell whether a float stands for an integer; 1e-400 does not stand for 0."""
    inside = number.is_zero or 1 <= abs(number) < 2**53
    return bool(inside) and float(number).is_integer()
