"""Comparisons need real numbers: log(s) <= 1 has no truth value at s = −1, nor min(1/s, 0) at 0.

Refused is a formula that compares, somewhere in the domain, what is not a real number there. This
is looked at first, since what is never the least of several is left out later. ``s > 0 and
log(s) <= 1`` does have a truth value everywhere, and a case that is not reached need not have one.
"""

from __future__ import annotations

from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

import sympy
from sympy.core.relational import Relational

from trueup.enclosure import zeros
from trueup.errors import NoUnbiasedEstimator
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import is_defined
from trueup.formula.text import text
from trueup.inverse.definite import definite
from trueup.inverse.regularity import Guard, guards
from trueup.inverse.scenes import integers_between, reals_between

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.domain import Interval

    Box = Mapping[sympy.Symbol, Interval]

_MOST = 200
"""Points tried: each takes about a millisecond."""


def check_compared(f: sympy.Expr, box: Box) -> None:
    """Refuse a formula that compares what is not a real number at a point of the domain."""
    spoils = [guard for guard in _within_comparisons(f) if not _is_harmless(guard, box)]
    if not spoils or f.has(Opaque):
        return
    symbols = sorted(f.free_symbols & set(box), key=str)
    axes = [sorted(_values(spoils, symbol, box[symbol]), key=abs) for symbol in symbols]
    for values in islice(product(*axes), _MOST):
        point = dict(zip(symbols, values, strict=True))
        if not is_defined(f, point):
            where = ", ".join(f"{text(s)} = {float(v):.6g}" for s, v in point.items())
            raise NoUnbiasedEstimator(
                f"no unbiased estimator of {text(f)}: it is not a real number, or compares "
                f"what is none, at {where}, inside the domain",
                "bound the domain to where the formula and all that it compares are real",
            )


def _within_comparisons(f: sympy.Expr) -> Iterator[Guard]:
    """Yield what must not vanish or be negative for the sides of a comparison to be real."""
    for node in f.atoms(Relational, sympy.Min, sympy.Max):
        for side in node.args:
            yield from (g for g in guards(side) if g.signed or g.divides)


def _is_harmless(guard: Guard, box: Box) -> bool:
    if not guard.expr.free_symbols <= set(box):
        return True
    sign = definite(guard.expr, box)
    return sign > 0 or (sign < 0 and not guard.signed)


def _values(spoils: list[Guard], symbol: sympy.Symbol, domain: Interval) -> Iterator[sympy.Expr]:
    """Yield values between the zeros of the guards, and integers at which they vanish."""
    low, high = float(domain.low), float(domain.high)
    own = {guard.expr for guard in spoils if guard.expr.free_symbols == {symbol}}
    marks = sorted({point for expr in own for point in zeros(expr, symbol, low, high).points})
    if domain.lattice:
        yield from (sympy.Integer(round(m)) for m in marks if round(m) == m)
        yield from (sympy.Integer(b) for b in domain.bounds if b is not None)
    between = integers_between if domain.lattice else reals_between
    for a, b in pairwise([low, *marks, high]):
        yield from between(a, b)
