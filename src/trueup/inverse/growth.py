"""How fast an expression can grow: |φ(x)| ≲ e^{rate·x}·x^power as x → ∞.

An estimator needs g·(density) to be integrable on an unbounded side, its variance needs g².
The bound is built from the tree; where a sum of equal orders might cancel it is only an upper
bound (``sharp`` is False), and a reciprocal of such a thing may grow at any speed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import sympy
from sympy.core.relational import Relational

from trueup.formula.substitution import at, real
from trueup.inverse.signs import chosen
from trueup.noise.extension import LaguerreExtension

_WAVES = (sympy.sin, sympy.cos, sympy.tan)  # they take turns for ever
_CASES = (sympy.Piecewise, sympy.Max, sympy.Min)
_LOG = 1e-9
"""The power that stands for a factor log x: below every power that a formula can hold."""
_LEVELS = 1e-6  # powers up to this one stand for logarithms only

_SHORT = 40  # operations: the degree of a longer sum of fractions takes seconds
_PROBES = (sympy.Integer(10) ** 4, sympy.Integer(10) ** 7)  # where it is seen which case holds
_MARGIN = 1.001  # of a slope that is read at these


class Growth(NamedTuple):
    """The order e^{rate·x}·x^power; ``sharp`` if it is attained, not only an upper bound."""

    rate: float
    power: float = 0.0
    sharp: bool = True

    @property
    def size(self) -> tuple[float, float]:
        """What orders are compared by."""
        return (self.rate, self.power)

    def raised(self, exponent: float) -> Growth:
        """Return the order of a power."""
        return self._replace(rate=self.rate * exponent, power=self.power * exponent)

    def below(self, rate: float, power: float) -> bool:
        """Whether e^{rate·x}·x^power outgrows this order: strictly slower, or at par and below."""
        if math.isclose(self.rate, rate, rel_tol=1e-12):
            return self.power < power
        return self.rate < rate

    def carried(self, rate: float) -> bool:
        """Whether e^{−rate·x} times this order has an integral: 1/(x·log x) has none."""
        return self.below(rate, -1 - 1.001 * _LOG)


def growth(expr: sympy.Expr, symbol: sympy.Symbol, direction: int) -> Growth:
    """Return the order of an expression as symbol → ±∞, other symbols held fixed.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> growth(q**2 * sympy.exp(q / 2), q, +1).size
    (0.5, 2.0)
    >>> growth(sympy.sin(sympy.exp(q)).diff(q), q, +1).size
    (1.0, 0.0)
    """
    return _growth(at(expr, {symbol: direction * symbol}), symbol)


_UNKNOWN = Growth(math.inf, 0.0, sharp=False)


@lru_cache(maxsize=4096)
def _growth(expr: sympy.Expr, x: sympy.Symbol) -> Growth:
    if x not in expr.free_symbols:
        return Growth(-math.inf) if expr == 0 else Growth(0.0)
    if expr == x:
        return Growth(0.0, 1.0)
    if isinstance(expr, sympy.Add):
        return _sum(expr, x)
    if isinstance(expr, sympy.Mul):
        parts = [_growth(a, x) for a in expr.args]
        rate, power = sum(p.rate for p in parts), sum(p.power for p in parts)
        if math.isnan(rate) or math.isnan(power):  # e^{x²} times e^{−x²}
            return _UNKNOWN
        return Growth(rate, power, all(p.sharp for p in parts))
    if isinstance(expr, sympy.Pow):
        return _power(expr, x)
    return _function(expr, x)


def _sum(expr: sympy.Add, x: sympy.Symbol) -> Growth:
    parts = [_growth(a, x) for a in expr.args]
    top = max(p.size for p in parts)
    leading = [p for p in parts if p.size == top]
    if len(leading) > 1:
        if expr.free_symbols != {x} and expr.count_ops() > _SHORT:
            return Growth(*top, sharp=False)
        far = expr.func(*(_far_out(a, x) for a in expr.args))
        if far != expr:
            return _growth(far, x)
        if expr.is_polynomial(x):  # a·x + b·x
            return Growth(0.0, float(sympy.degree(expr, x)))
    return Growth(*top, len(leading) == 1 and leading[0].sharp)


def _power(expr: sympy.Pow, x: sympy.Symbol) -> Growth:
    base, exponent = expr.args
    if x in exponent.free_symbols:
        return _exponential(exponent * sympy.log(abs(base) if base.is_negative else base), x)
    if not exponent.is_number:
        return _UNKNOWN
    size = _growth(base, x)
    if exponent.is_negative and not size.sharp and isinstance(base, sympy.Add):
        size = _growth(sympy.expand(base), x)  # (1 + e⁻ˣ)² − (1 + e⁻ˣ) is e⁻ˣ + e⁻²ˣ
    return _UNKNOWN if exponent.is_negative and not size.sharp else size.raised(float(exponent))


def _exponential(h: sympy.Expr, x: sympy.Symbol) -> Growth:
    """Return the order of e^h: a line in h is a rate, less is a power at the most."""
    size = _growth(h, x)
    if size.size <= (0.0, 0.0):
        return Growth(0.0)
    if h.is_polynomial(x):
        line, slope = sympy.Poly(h, x), sympy.LC(h, x)
        if not slope.is_number:
            return _UNKNOWN
        return Growth(float(slope) if line.degree() == 1 else math.copysign(math.inf, slope))
    if size.size < (0.0, 1.0):
        return Growth(0.0, math.inf, sharp=False)
    slopes = [real(at(h / x, {x: far}), 20) for far in _PROBES] if size.rate <= 0 else [None]
    known = [float(slope) for slope in slopes if slope]
    if len(known) < len(_PROBES):
        return _UNKNOWN
    if max(known) < 0:
        return Growth(0.0, sharp=False)
    return Growth(_MARGIN * max(known), sharp=False) if size.size == (0.0, 1.0) else _UNKNOWN


def _function(expr: sympy.Expr, x: sympy.Symbol) -> Growth:
    kind, inner = type(expr), expr.args[0] if expr.args else expr
    if kind is sympy.exp:
        return _exponential(inner, x)
    if kind in (sympy.sinh, sympy.cosh):
        top = max(_exponential(inner, x), _exponential(-inner, x), key=lambda side: side.size)
        return top._replace(sharp=top.sharp and top.size > (0.0, 0.0))
    if kind in (sympy.log, sympy.asinh, sympy.acosh):
        return _logarithm(_growth(inner, x), small=kind is sympy.log)
    if kind in (sympy.atan, sympy.tanh):
        size = _growth(inner, x)
        return size if size.size < (0.0, 0.0) else Growth(0.0, 0.0, size.sharp)
    if kind in (sympy.Abs, sympy.floor):
        return _growth(inner, x)
    if kind in _CASES:
        return _eventually(expr, x)
    if isinstance(expr, LaguerreExtension):
        return Growth(0.0, float(inner))
    return Growth(0.0, 0.0, sharp=False)  # bounded, or opaque and trusted


def _logarithm(inner: Growth, small: bool) -> Growth:
    """Return the order of a logarithm, ``small`` if that of a small number is large too.

    The logarithm of what tends to a number may tend to 0, that of a logarithm grows less.
    """
    if math.isinf(inner.rate):
        return _UNKNOWN
    if inner.rate or math.isinf(inner.power):
        sharp = inner.sharp and math.isfinite(inner.power) and (small or inner.rate > 0)
        return Growth(0.0, 1.0, sharp)
    power = abs(inner.power) if small else inner.power
    return Growth(0.0, _LOG, inner.sharp and power > _LEVELS)


def _eventually(expr: sympy.Expr, x: sympy.Symbol) -> Growth:
    """Return the order of the case that holds far out, of the largest if that is unclear."""
    far = _far_out(expr, x)
    if far != expr:
        return _growth(far, x)
    parts = [_growth(a.expr if isinstance(expr, sympy.Piecewise) else a, x) for a in expr.args]
    return Growth(*max(p.size for p in parts), False)


def _far_out(expr: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """Return the case of a where, max or min that holds far out, all of it if that is unclear."""
    if not isinstance(expr, _CASES):
        return expr
    compared = expr.atoms(Relational) if isinstance(expr, sympy.Piecewise) else (expr,)
    if any(e.has(*_WAVES) for e in compared):
        return expr
    far = [chosen(expr, {x: point}) for point in _PROBES]
    return far[0] if far[0] == far[1] and not isinstance(far[0], sympy.Piecewise) else expr
