"""How fast an expression can grow: |φ(x)| ≲ e^{rate·x}·x^power as x → ∞.

An estimator needs g·(density) to be integrable on an unbounded side, its variance needs g².
The bound is built from the tree; where a sum of equal orders might cancel it is only an upper
bound (``sharp`` is False), and a reciprocal of such a thing is measured numerically instead.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import sympy

from trueup.formula.substitution import at, holds, real_at
from trueup.inverse.ranges import times
from trueup.noise.extension import LaguerreExtension

WAVES = (sympy.sin, sympy.cos, sympy.tan)
"""Functions that repeat."""

_LEVEL = (sympy.log, sympy.asinh, sympy.acosh)  # slower than every power
_LOG = 1e-9
"""The power that stands for a factor log x: below every power that a formula can hold."""

_LEVELS = 1e-6
"""Powers up to this one stand for logarithms only."""

_GENERIC = sympy.Rational(12345, 10**4)  # for symbols held fixed
_PROBES = (sympy.Integer(10) ** 4, sympy.Integer(10) ** 7)
_DOUBLING = (200, 400, 800, 1600)
_CLEAR = 0.01  # a rate that no power of x shows at the first of these


class Growth(NamedTuple):
    """The order e^{rate·x}·x^power; ``sharp`` if it is attained, not only an upper bound.

    ``formal`` if it follows from the formula; otherwise it was measured far out.
    """

    rate: float
    power: float = 0.0
    sharp: bool = True
    formal: bool = True

    @property
    def size(self) -> tuple[float, float]:
        """What orders are compared by."""
        return (self.rate, self.power)

    def raised(self, exponent: float) -> Growth:
        """Return the order of a power."""
        return self._replace(rate=times(self.rate, exponent), power=times(self.power, exponent))

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
        orders = [sum(p.size[i] for p in parts) for i in range(2)]
        sharp = all(p.sharp for p in parts) and not any(map(math.isnan, orders))
        rate, power = (math.inf if math.isnan(n) else n for n in orders)  # e^{x²} times e^{−x²}
        return Growth(rate, power, sharp, all(p.formal for p in parts))
    if isinstance(expr, sympy.Pow):
        return _power(expr, x)
    return _function(expr, x)


def _sum(expr: sympy.Add, x: sympy.Symbol) -> Growth:
    parts = [_growth(a, x) for a in expr.args]
    top = max(p.size for p in parts)
    leading = [p for p in parts if p.size == top]
    sharp = len(leading) == 1 and leading[0].sharp
    return Growth(*top, sharp, all(p.formal for p in parts))


def _power(expr: sympy.Pow, x: sympy.Symbol) -> Growth:
    base, exponent = expr.args
    if x in exponent.free_symbols:
        return _exponential(exponent * sympy.log(abs(base) if base.is_negative else base), x)
    if not exponent.is_number:
        return Growth(math.inf, 0.0, sharp=False)
    size = _growth(base, x)
    if exponent.is_negative and not size.sharp and isinstance(base, sympy.Add):
        size = _growth(sympy.expand(base), x)  # (1 + e⁻ˣ)² − (1 + e⁻ˣ) is e⁻ˣ + e⁻²ˣ
    if exponent.is_negative and not size.sharp:
        size = _measured(base, x)
    return size.raised(float(exponent))


def _exponential(exponent: sympy.Expr, x: sympy.Symbol) -> Growth:
    """Return the order of e^h: a line in h is a rate, less is a power, more is infinite."""
    size = _growth(exponent, x)
    if size.size <= (0.0, _LEVELS):
        plain = size.size <= (0.0, 0.0) and size.formal and not exponent.has(*_LEVEL)
        return Growth(0.0) if plain else _measured(sympy.exp(exponent), x)
    slope = _slope(exponent, x) if size.rate <= 0 else _near_sign(exponent, x, size)
    if slope is None:  # a sign that cannot be told: take the worst
        return Growth(math.inf, 0.0, sharp=False)
    formal = size.formal and not slope.has(sympy.Float)
    if size.size == (0.0, 1.0):
        rest = sympy.expand(exponent - slope * x) if slope.is_Rational else sympy.Integer(0)
        power = 0.0 if x not in rest.free_symbols else _growth_of_rest(rest, x)
        return Growth(float(slope), power, formal=formal)
    sign = math.copysign(1.0, slope)
    rate, power = (0.0, sign * math.inf) if size.size < (0.0, 1.0) else (sign * math.inf, 0.0)
    return Growth(rate, power, formal=formal)


def _growth_of_rest(rest: sympy.Expr, x: sympy.Symbol) -> float:
    return _exponential(rest, x).power


def _slope(h: sympy.Expr, x: sympy.Symbol) -> sympy.Expr | None:
    """Return lim h/x, exactly for a polynomial, by its value far out otherwise."""
    if h.is_polynomial(x):
        leading = sympy.Poly(h, x)
        top = leading.coeff_monomial(x) if leading.degree() == 1 else leading.LC()
        return top if top.is_number else None
    values = [_value(h / x, x, far) for far in _PROBES]
    if None in values or values[0] * values[1] <= 0:  # type: ignore[operator]
        return None
    return sympy.Float(values[1])


def _near_sign(h: sympy.Expr, x: sympy.Symbol, size: Growth) -> sympy.Expr | None:
    """Return a number with the sign of an h that itself grows exponentially."""
    value = _value(h, x, sympy.Integer(30)) if math.isfinite(size.rate) else None
    return None if not value else sympy.Float(value)


def _function(expr: sympy.Expr, x: sympy.Symbol) -> Growth:
    kind = type(expr)
    if kind is sympy.exp:
        return _exponential(expr.args[0], x)
    if kind in (sympy.sinh, sympy.cosh):
        sides = (_exponential(expr.args[0], x), _exponential(-expr.args[0], x))
        top = max(s.size for s in sides)
        sharp = top > (0.0, 0.0) and all(s.sharp for s in sides)
        return Growth(*top, sharp, all(s.formal for s in sides))
    if kind in _LEVEL:
        return _logarithm(_growth(expr.args[0], x), small=kind is sympy.log)
    if kind in (sympy.atan, sympy.tanh):
        inner = _growth(expr.args[0], x)
        return inner if inner.size < (0.0, 0.0) else inner._replace(rate=0.0, power=0.0)
    if kind in (sympy.Abs, sympy.floor):
        return _growth(expr.args[0], x)
    if kind in (sympy.Piecewise, sympy.Max, sympy.Min):
        return _eventually(expr, x)
    if isinstance(expr, LaguerreExtension):
        return Growth(0.0, float(expr.args[0]))
    return Growth(0.0, 0.0, sharp=False)  # bounded, or opaque and trusted


def _logarithm(inner: Growth, small: bool) -> Growth:
    """Return the order of a logarithm, ``small`` if that of a small number is large too.

    The logarithm of what tends to a number may tend to 0.
    """
    if math.isinf(inner.rate):
        return Growth(math.inf, 0.0, sharp=False)
    if inner.rate > 0 or (inner.rate and small):
        return inner._replace(rate=0.0, power=1.0)
    if not inner.power or not (small or inner.size > (0.0, 0.0)):
        return inner._replace(rate=0.0, power=0.0, sharp=False)
    return inner._replace(power=_LOG if abs(inner.power) > _LEVELS else _LOG**2)


def _eventually(expr: sympy.Expr, x: sympy.Symbol) -> Growth:
    """Return the order of the branch that holds far out, of the largest if that is unclear."""
    chosen = _branch if isinstance(expr, sympy.Piecewise) else _extreme
    far = [chosen(expr, x, point) for point in _PROBES]
    if far[0] is not None and far[0] == far[1]:
        return _growth(far[0], x)
    parts = [_growth(a.expr if chosen is _branch else a, x) for a in expr.args]
    return Growth(*max(p.size for p in parts), False, all(p.formal for p in parts))


def _branch(expr: sympy.Piecewise, x: sympy.Symbol, point: sympy.Expr) -> sympy.Expr | None:
    for value, condition in expr.args:
        truth = holds(condition, {x: point})
        if truth is not False:
            return value if truth else None
    return None


def _extreme(expr: sympy.Expr, x: sympy.Symbol, point: sympy.Expr) -> sympy.Expr | None:
    """Return which argument of a maximum or minimum it is at a point, if each has a number there.

    Waves take turns; what outgrows every e^{rate·x} has no number so far out.
    """
    if expr.has(*WAVES) or any(math.isinf(_growth(a, x).rate) for a in expr.args if a):
        return None
    values = [real_at(a, {x: point}, 20) for a in expr.args]
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return None
    return expr.args[values.index(max(known) if isinstance(expr, sympy.Max) else min(known))]


def _measured(expr: sympy.Expr, x: sympy.Symbol) -> Growth:
    """Return the order as measured between points far out.

    What grows or falls like e^{rate·x} shows that near by already. Farther out numbers of that size
    are beyond reach: to tell 1 + e^{−x} from 1 at 10⁷ takes millions of digits.
    """
    expr = at(expr, dict.fromkeys(expr.free_symbols - {x}, _GENERIC))
    rate = _near_rate(expr, x)
    if rate is not None:
        return Growth(rate, formal=False)
    near, far = _PROBES
    values = [_size_at(expr, x, point) for point in (near, far)]
    if None in values:
        return Growth(-math.inf, 0.0, sharp=False, formal=False)
    rate = values[1] / float(far)  # type: ignore[operator]
    if abs(rate) > 1e-4:
        return Growth(rate, formal=False)
    power = (values[1] - values[0]) / math.log(float(far / near))  # type: ignore[operator]
    return Growth(0.0, round(power, 3), formal=False)


def _near_rate(expr: sympy.Expr, x: sympy.Symbol) -> float | None:
    """Return r if log|expr| is r·x + p·log x + c at doubling points, r not 0, None if it is not."""
    values = [_size_at(expr, x, sympy.Integer(point)) for point in _DOUBLING]
    if None in values:
        return None
    first, second = (
        (c - 2 * b + a) / point  # type: ignore[operator]
        for point, a, b, c in zip(_DOUBLING[:2], values, values[1:], values[2:], strict=False)
    )
    return second if abs(second) > _CLEAR and math.isclose(first, second, rel_tol=1e-6) else None


def _size_at(expr: sympy.Expr, x: sympy.Symbol, point: sympy.Expr) -> float | None:
    """Return log|expr| at a point; of the value, for sympy asks much before it writes |expr|."""
    if isinstance(expr, sympy.exp):
        return _value(expr.args[0], x, point)
    value = real_at(expr, {x: point}, 20)
    return float(sympy.log(abs(value))) if value else None


def _value(expr: sympy.Expr, x: sympy.Symbol, point: sympy.Expr) -> float | None:
    value = real_at(expr, {x: point}, 20)
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None
