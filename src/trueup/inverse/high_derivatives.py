"""Derivatives of high order that stay short: polynomials in generators with known slopes.

√(1 + q²) is a generator v, 1/(1 + q²) another one u, with v′ = q·u·v and u′ = −2q·u². Every
elementary function is a polynomial in q and such generators, and so are all its derivatives; like
terms are collected, which repeated differentiation of a formula does not do.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import sympy

from trueup.formula.substitution import rational

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_TERMS = 200
"""Terms of a derivative: longer ones are not made."""


def derivatives(f: sympy.Expr, n: sympy.Symbol) -> Iterator[sympy.Expr]:
    """Yield f, f′, f″, …, as long as they are short and f is elementary.

    Examples
    --------
    >>> from itertools import islice
    >>> q = sympy.Symbol("q", real=True)
    >>> list(islice(derivatives(sympy.log(q), q), 4))
    [log(q), 1/q, -1/q**2, 2/q**3]
    """
    f = rational(f)
    yield f
    if f.is_rational_function(n) and f.free_symbols <= {n}:
        steps = _of_quotient(f, n)
        next(steps)
        yield from steps
        return
    tower = _Tower(n)
    try:
        poly = tower.poly(f)
    except _ForeignError:
        return
    while True:
        poly = tower.slope(poly)
        if len(poly.terms()) > MOST_TERMS:
            return
        yield tower.expression(poly)


def _of_quotient(f: sympy.Expr, n: sympy.Symbol) -> Iterator[sympy.Expr]:
    """Yield the derivatives Pₖ/Qᵏ⁺¹ of P/Q: Pₖ₊₁ = Pₖ′·Q − (k+1)·Pₖ·Q′."""
    above, below = sympy.fraction(sympy.cancel(f))
    p, q, factored = sympy.Poly(above, n), sympy.Poly(below, n), sympy.factor(below)
    for k in count(1):
        yield p.as_expr() / factored**k
        p = p.diff(n) * q - k * p * q.diff(n)


class _ForeignError(Exception):
    """A function whose slope is not known as a polynomial in generators."""


class _Tower:
    """The generators met so far, each with its slope."""

    def __init__(self, n: sympy.Symbol) -> None:
        self.n = n
        self.names: dict[sympy.Expr, sympy.Symbol] = {}
        self.slopes: dict[sympy.Symbol, sympy.Expr] = {n: sympy.S.One}

    def poly(self, expr: sympy.Expr) -> sympy.Poly:
        """Return an expression as a polynomial in the generators."""
        written = self.written(expr)
        return sympy.Poly(written, *self.slopes)

    def slope(self, poly: sympy.Poly) -> sympy.Poly:
        """Return the derivative of a polynomial in the generators."""
        total = sympy.Poly(0, *self.slopes)
        for symbol, slope in self.slopes.items():
            if slope != 0:
                total += poly.diff(symbol) * sympy.Poly(slope, *self.slopes)
        return total

    def expression(self, poly: sympy.Poly) -> sympy.Expr:
        """Return a polynomial with the generators written out."""
        return poly.as_expr().xreplace({name: expr for expr, name in self.names.items()})

    def written(self, expr: sympy.Expr) -> sympy.Expr:
        if expr == self.n or expr.is_Rational:
            return expr
        if self.n not in expr.free_symbols:
            return self._named(expr, sympy.S.Zero)
        if expr.is_Add or expr.is_Mul:
            return expr.func(*map(self.written, expr.args))
        if isinstance(expr, sympy.Pow) and not isinstance(expr, sympy.exp):
            return self._power(expr.base, expr.exp)
        if expr in self.names:
            return self.names[expr]
        return self._function(expr)

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        if exponent.is_Integer and exponent > 0:
            return self.written(base) ** exponent
        if exponent.is_Integer:
            return self._inverse(base) ** -exponent
        if self.n in exponent.free_symbols:
            if not base.is_positive or self.n in base.free_symbols:
                raise _ForeignError
            inner = self._slope(exponent) * self.written(sympy.log(base))
            return self._named(base**exponent, inner, times_itself=True)
        inner = self.written(exponent) * self._slope(base) * self._inverse(base)
        return self._named(base**exponent, inner, times_itself=True)

    def _inverse(self, base: sympy.Expr) -> sympy.Expr:
        if 1 / base in self.names:
            return self.names[1 / base]
        slope = self._slope(base)
        name = self.names[1 / base] = sympy.Dummy(real=True)
        self.slopes[name] = sympy.expand(-slope * name**2)
        return name

    def _function(self, expr: sympy.Expr) -> sympy.Expr:
        inner = self._slope(expr.args[0]) if len(expr.args) == 1 else sympy.nan
        if isinstance(expr, sympy.exp):
            return self._named(expr, inner, times_itself=True)
        if isinstance(expr, sympy.log):
            return self._named(expr, inner * self._inverse(expr.args[0]))
        if isinstance(expr, sympy.atan):
            return self._named(expr, inner * self._inverse(1 + expr.args[0] ** 2))
        if isinstance(expr, (sympy.sin, sympy.cos, sympy.sinh, sympy.cosh)):
            return self._pair(expr, inner)
        if isinstance(expr, sympy.tanh):
            name = self._named(expr, sympy.S.Zero)
            self.slopes[name] = sympy.expand(inner * (1 - name**2))
            return name
        raise _ForeignError

    def _pair(self, expr: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
        """Name a sine together with its cosine."""
        trigonometric = isinstance(expr, (sympy.sin, sympy.cos))
        kinds = (sympy.sin, sympy.cos) if trigonometric else (sympy.sinh, sympy.cosh)
        sine, cosine = (self._named(kind(expr.args[0]), sympy.S.Zero) for kind in kinds)
        self.slopes[sine] = sympy.expand(inner * cosine)
        self.slopes[cosine] = sympy.expand((-1 if trigonometric else 1) * inner * sine)
        return self.names[expr]

    def _slope(self, expr: sympy.Expr) -> sympy.Expr:
        poly = self.poly(expr)
        return self.slope(poly).as_expr()

    def _named(
        self, expr: sympy.Expr, slope: sympy.Expr, *, times_itself: bool = False
    ) -> sympy.Symbol:
        if expr not in self.names:
            name = self.names[expr] = sympy.Dummy(real=True)
            self.slopes[name] = sympy.expand(slope * name if times_itself else slope)
        return self.names[expr]
