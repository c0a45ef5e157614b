"""Removable points, 0/0 with a smooth limit: there f is its power series.

sin(q)/q has a value and derivatives at 0, but no digits are left of them near 0; nor of the
derivatives of cosh(√q), which divide by powers of q. Within a radius around such a point f is
replaced by its Taylor polynomial; outside, the formula itself has its digits. The coefficients are
Cauchy integrals of f over a circle: that f is analytic inside shows in the absence of negative
powers, that the circle is small enough in the decay of the others.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import mpmath
import sympy

from trueup.enclosure import zeros
from trueup.formula.complex_values import NotAnalyticError, complex_values
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import rational, real_at
from trueup.formula.unkinked import without_kinks
from trueup.inverse.approach import approach
from trueup.inverse.cases import beside
from trueup.inverse.regularity import Guard, guards, polish, same
from trueup.inverse.separation import separated

if TYPE_CHECKING:
    from trueup.domain import Interval

_NODES = 64
"""Points on the circle: coefficients from −16 to 47."""

_DEGREE = 28
"""Terms kept; what follows is below 1e-18 of the largest, so 1e-15 in second derivatives."""

_BEYOND = 0.125
"""How far outside the domain a point costs digits inside: f″ is off by 1e-16 over its cube."""

_BESIDE = sympy.Rational(1, 10**20)  # from a point: nothing else happens so near to it
_ALIKE = 1e-9  # limits that differ by less are the same
_NEGLIGIBLE = mpmath.mpf("1e-18")
_DIGITS = 30
_HALVINGS, _DOUBLINGS = 40, 16
_SMALL = 2.0**-10  # of the first circle: beyond a point nothing else is as near


class Steady(NamedTuple):
    """A formula that has its digits everywhere, and the removable points along each variable."""

    f: sympy.Expr
    points: tuple[tuple[sympy.Symbol, float], ...]


def steadied(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> Steady:
    """Return f with power series around its removable points along one variable.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> q = sympy.Symbol("q", real=True)
    >>> steadied(sympy.sin(q) / q, q, Interval()).points
    ((q, 0.0),)
    """
    suspects = _suspects(f, symbol, domain)
    products = separated(without_kinks(f), symbol) if suspects and not f.has(Opaque) else None
    if products is None:
        return Steady(f, ())
    done = []
    for point, exact in suspects.items():
        changed = [(a, _around(h, symbol, exact, domain)) for a, h in products]
        if all(h is not None for _, h in changed):
            products = [(a, h) for a, h in changed if h is not None]
            done.append((symbol, point))
    return Steady(sympy.Add(*(a * h for a, h in products)) if done else f, tuple(done))


def _suspects(f: sympy.Expr, symbol: sympy.Symbol, domain: Interval) -> dict[float, sympy.Expr]:
    """Return the zeros of denominators and of radicands in the domain, and just outside."""
    found = {}
    low, high = float(domain.low) - _BEYOND, float(domain.high) + _BEYOND
    for guard in guards(f):
        if _divides(guard) and guard.expr.free_symbols == {symbol}:
            points, complete = zeros(guard.expr, symbol, low, high)
            if not (complete or guard.divides):  # 1 − (1 − 1/q)² is 0 in doubles far out
                continue
            for point in points:
                exact = polish(guard.expr, symbol, point)
                if exact is not None:
                    found[point] = exact
    return found


def _around(
    h: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, domain: Interval
) -> sympy.Expr | None:
    """Return h with its series beside a point, where the domain is, None if it has none."""
    ends = ((-1, domain.low), (1, domain.high))
    sides = [s for s, end in ends if s * (end - float(point)) > 0 and not same(point, end)]
    beside_it = {side: beside(h, {symbol: (point, side)}) for side in sides}
    divided = {s: case for s, case in beside_it.items() if _vanishes(case, symbol, point)}
    if not _agree([_limit(case, symbol, point, side) for side, case in divided.items()]):
        return None
    reach = _reach(h, symbol, point, domain) if divided else 0.0
    cases: list[tuple[sympy.Expr, sympy.Basic]] = []
    for side, case in divided.items():
        series = _series(case, symbol, point, reach, side)
        if series is None:
            return None
        radius = sympy.Float(series.radius)
        near = symbol - point <= radius if side > 0 else symbol - point >= -radius
        beyond = symbol >= point if side > 0 else symbol <= point
        cases.append((series.polynomial(symbol, point), sympy.And(near, beyond)))
    return sympy.Piecewise(*cases, (h, True)) if cases else h


def _limit(
    case: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, side: int
) -> sympy.Expr | None:
    """Return what a case tends to, None if it has no real values beside the point, or no limit."""
    exact = rational(case)
    if real_at(exact, {symbol: point + side * _BESIDE}) is None:
        return None
    return approach(exact, symbol, point, side).limit


def _agree(limits: list[sympy.Expr | None]) -> bool:
    """Whether all are the same number."""
    numbers = [float(limit) for limit in limits if limit is not None]
    close = all(math.isclose(x, y, rel_tol=_ALIKE, abs_tol=_ALIKE) for x, y in pairwise(numbers))
    return close and None not in limits


def _divides(guard: Guard) -> bool:
    """Whether a formula divides by this, or its derivatives do."""
    return guard.divides or guard.signed


def _vanishes(case: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr) -> bool:
    """Whether what a case or its derivatives divide by vanishes at the point."""
    values = [real_at(g.expr, {symbol: point}, 40) for g in guards(case) if _divides(g)]
    return any(v is not None and abs(v) < 1e-30 for v in values)


def _reach(h: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, domain: Interval) -> float:
    """Return how far from the point the next one lies at which something may happen to h."""
    here, ends = float(point), (float(domain.low), float(domain.high))
    own = [guard.expr for guard in guards(h) if guard.expr.free_symbols == {symbol}]
    gaps = [abs(other - here) for expr in own for other in zeros(expr, symbol, *ends).points]
    return min([2.0**_DOUBLINGS, *(gap / 2 for gap in gaps if gap > 1e-12 * abs(here))])


class _Series(NamedTuple):
    """Σ cₖ(q − a)^k for |q − a| ≤ radius."""

    coefficients: tuple[sympy.Expr, ...]
    radius: float

    def polynomial(self, symbol: sympy.Symbol, point: sympy.Expr) -> sympy.Expr:
        """Return it as an expression."""
        return sympy.Add(*(c * (symbol - point) ** k for k, c in enumerate(self.coefficients)))


def _series(
    case: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, reach: float, side: int
) -> _Series | None:
    """Return the power series on the largest circle tried on which it converges fast."""
    case, radius = rational(case), min(1.0, reach)
    if not _is_real_beyond(case, symbol, point, -side * radius * _SMALL):
        return None
    found = _on_circle(case, symbol, point, radius)
    if found is None:
        smaller = (radius / 2**k for k in range(1, _HALVINGS + 1))
        return next(filter(None, (_on_circle(case, symbol, point, r) for r in smaller)), None)
    while 2 * radius <= reach:
        radius *= 2
        wider = _on_circle(case, symbol, point, radius)
        if wider is None:
            break
        found = wider
    return found


def _is_real_beyond(case: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, step: float) -> bool:
    """Whether f goes on as a real number beyond the point, as power series do and √q does not."""
    with mpmath.workdps(_DIGITS):
        place = mpmath.mpf(sympy.Float(point, _DIGITS)._mpf_) + step
        try:
            [value] = complex_values(case, symbol, [place])
        except NotAnalyticError:
            return False
        return bool(abs(mpmath.im(value)) <= _NEGLIGIBLE * abs(value))


def _on_circle(
    case: sympy.Expr, symbol: sympy.Symbol, point: sympy.Expr, radius: float
) -> _Series | None:
    """Return the coefficients by Cauchy's integral, None if they do not show convergence."""
    with mpmath.workdps(_DIGITS):
        roots = _roots()
        centre = mpmath.mpf(sympy.Float(point, _DIGITS)._mpf_)
        circle = [centre + radius * roots[2 * j + 1] for j in range(_NODES // 2)]
        try:
            values = complex_values(case, symbol, circle)
        except NotAnalyticError:
            return None
        terms = [
            2
            * mpmath.fsum(
                _real_part(v, roots[-(2 * j + 1) * k % (2 * _NODES)]) for j, v in enumerate(values)
            )
            / _NODES
            for k in range(-_NODES // 4, 3 * _NODES // 4)
        ]
        small = _NEGLIGIBLE * max(map(abs, terms))
        first = _NODES // 4
        if any(abs(t) > small for t in (*terms[:first], *terms[first + _DEGREE :])):
            return None
        kept = terms[first : first + _DEGREE]
        exact = [t if abs(t) > small else mpmath.mpf(0) for t in kept]
        powers = [t / mpmath.mpf(radius) ** k for k, t in enumerate(exact)]
        numbers = [sympy.Float(str(c), 25) if c else sympy.S.Zero for c in powers]
        return _Series(tuple(numbers), radius)


@cache
def _roots() -> list[Any]:
    """Return e^{iπj/64} for every j: the nodes of the circle, and their powers."""
    with mpmath.workdps(_DIGITS):
        return [mpmath.expjpi(mpmath.mpf(j) / _NODES) for j in range(2 * _NODES)]


def _real_part(v: Any, w: Any) -> Any:
    """Return the real part of a product."""
    return v.real * w.real - v.imag * w.imag
