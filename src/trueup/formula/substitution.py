"""Values in place of symbols, without sympy's objections and without its afterthoughts.

Put into a comparison, a ``Min`` or a ``Max``, a number that is not real makes sympy raise. Here the
cases are decided before anything is put into them; what compares something that is not a real
number, directly, in a case or in an extremum, is not a number either. And where formulas are put
in place of symbols, sympy would compare all arguments of an extremum anew, and all cases, which may
take minutes: here they stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import sympy
from sympy.core.relational import Relational

Values = Mapping[sympy.Basic, sympy.Expr]

_DIGITS = 30  # twice those of a double: what differs by less is the same
_LONGEST = 1000  # denominator of an exponent: polynomials of such a degree are still multiplied
_OBJECTIONS = (TypeError, ValueError, ZeroDivisionError, OverflowError)  # sympy's, to a number
_SMALL = 1e-3  # a double beside a whole number loses three digits of it, and more of what is less
_PARTIAL = (sympy.log, sympy.asin, sympy.acos, sympy.acosh, sympy.atanh)
"""Functions that leave the real numbers, like powers that are not whole."""
_EXPONENTIAL = (sympy.exp, sympy.sinh, sympy.cosh)
_STEEP = (*_EXPONENTIAL, sympy.tanh, sympy.sin, sympy.cos, sympy.tan, sympy.Pow)
"""Functions of their last argument, an exponent or an angle, to as many digits as that has."""


def at(expr: sympy.Expr, values: Values) -> sympy.Expr:
    """Return an expression with numbers, or formulas, in place of symbols; nan without a value.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> at(sympy.Max(q, 2), {q: sympy.Integer(-1)})
    2
    >>> at(sympy.Piecewise((1, sympy.sqrt(q) > 0), (5, True)), {q: sympy.Integer(-1)})
    nan
    >>> at(sympy.Max(q, 2), {q: q + 1})
    Max(2, q + 1)
    """
    try:
        return _Substitution(values).of(expr)
    except _OBJECTIONS:
        return sympy.nan


def stepped(expr: sympy.Expr, values: Values) -> sympy.Expr:
    """Return an expression at places some whole steps away, small decimals as fractions.

    1e-12 − (n + 1) is −n − 0.999999999999, in a double with four of its twelve digits.

    Examples
    --------
    >>> n = sympy.Symbol("n", real=True)
    >>> stepped(1e-12 - n, {n: n + 1}) + n + 1
    1/1000000000000
    """
    small = [x for x in expr.atoms(sympy.Float) if 0 < abs(x) < _SMALL]
    return at(expr.xreplace({x: _as_written(x) for x in small}), values)


def decimal(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression with every float as the fraction that it is written as, or NaN.

    An exponent is the short fraction that is written as the same double, or stays: sympy takes a
    polynomial in q^(p/2⁵⁵), of degree p, for one that it can write out.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> decimal(0.1 * q + q ** (1 / 3))
    q**(1/3) + q/10
    """
    exponents = {p.exp for p in expr.atoms(sympy.Pow)}
    floats = expr.atoms(sympy.Float)
    return at(expr, {x: _short(x) if x in exponents else _as_written(x) for x in floats})


def _as_written(x: sympy.Float) -> sympy.Rational:
    return sympy.Rational(repr(float(x)))


def _short(exponent: sympy.Float) -> sympy.Expr:
    short = Fraction(float(exponent)).limit_denominator(_LONGEST)
    return sympy.Rational(short) if float(short) == float(exponent) else exponent


def real(expr: sympy.Expr, digits: int = 15, most: int = 100) -> sympy.Expr | None:
    """Return a constant to so many digits, None unless it is a finite real number.

    ``most`` are the digits that sympy may work with to get there. An exponential of an
    exponential, or a wave of one, is not computed.

    Examples
    --------
    >>> real(sympy.sqrt(2)), real(sympy.sqrt(-2))
    (1.41421356237310, None)
    """
    if any(node.args[-1].has(*_EXPONENTIAL) for node in expr.atoms(*_STEEP)):
        return None  # e^(e^(10⁷)) has as many digits
    try:
        value = expr.evalf(digits, maxn=most)
    except (*_OBJECTIONS, AttributeError):
        return None
    return value if value.is_Number and value.is_finite else None


class _Substitution:
    """Values on their way into one expression, every part looked at once."""

    def __init__(self, values: Values) -> None:
        self.memo: dict[sympy.Basic, sympy.Basic] = dict(values)

    def of(self, expr: sympy.Basic) -> sympy.Basic:
        if expr not in self.memo:
            self.memo[expr] = self.put(expr) if expr.args else expr
        return self.memo[expr]

    def put(self, expr: sympy.Basic) -> sympy.Basic:
        if isinstance(expr, sympy.Piecewise):
            return self.cases(expr)
        args = [self.of(arg) for arg in expr.args]
        decides = {sympy.And: sympy.false, sympy.Or: sympy.true}.get(type(expr))
        if decides in args:
            return decides
        if sympy.nan in args:
            return sympy.nan
        if all(new is old for new, old in zip(args, expr.args, strict=True)):
            return expr
        if isinstance(expr, (sympy.Min, sympy.Max)):
            return _extremum(expr, args)
        if isinstance(expr, Relational):
            return _relation(expr, args)
        if isinstance(expr, sympy.log) and args[0].is_zero:
            return -sympy.oo  # as in floating point, so that max(1, log(q)) has a value at 0
        return _real(expr, expr.func(*args))

    def cases(self, expr: sympy.Piecewise) -> sympy.Expr:
        """Return the value of the case that holds, or what is left of the cases if that is open."""
        left = []
        for value, test in expr.args:
            true = self.of(test)
            if true is sympy.nan:
                return true
            if true == sympy.false:
                continue
            left.append((value, true))
            if true == sympy.true:
                break
        if not left:
            return sympy.nan
        if left[0][1] == sympy.true:
            return self.of(left[0][0])
        return sympy.Piecewise(*((self.of(v), t) for v, t in left), evaluate=False)


def _relation(test: Relational, args: Sequence[sympy.Expr]) -> sympy.Basic:
    """Return a comparison, decided where both sides are numbers."""
    if any(arg.free_symbols for arg in args):
        return test.func(*args, evaluate=False)
    value = _size(args[0] - args[1])
    return sympy.nan if value is None else test.func(value, 0)


def _size(value: sympy.Expr) -> sympy.Expr | None:
    """Return a number that can be compared, infinite ones among them, None for others."""
    if value.is_Rational or value in (sympy.oo, -sympy.oo):
        return value
    return real(value, _DIGITS)


def _real(expr: sympy.Basic, value: sympy.Basic) -> sympy.Basic:
    """Return the value of an operation, nan where it left the real numbers."""
    partial = isinstance(expr, _PARTIAL) or (
        isinstance(expr, sympy.Pow) and not expr.exp.is_Integer and not isinstance(expr, sympy.exp)
    )
    left = partial and not value.free_symbols and value.is_extended_real is False
    return sympy.nan if left else value


def _extremum(expr: sympy.Expr, args: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return the least or greatest argument."""
    if any(arg.free_symbols for arg in args):
        return expr.func(*dict.fromkeys(args), evaluate=False)
    sizes = {arg: _size(arg) for arg in args}
    if None in sizes.values():
        return sympy.nan
    pick: Callable[..., sympy.Expr] = min if isinstance(expr, sympy.Min) else max
    return pick(args, key=sizes.__getitem__)


# -- division by zero ------------------------------------------------------------------------------


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
