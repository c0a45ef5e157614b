"""Slanted bounds such as s ≤ n or s ≤ U·n: what f is taken to be beyond them.

Let b be the bound of s that the other statistics give, and k = s − b > 0 the distance beyond it.
On the integers f̃ = f(b) + δ·k/(1 + θ·k/b), with δ = f(b) − f(b − 1) and θ = min(1, √(U·ε_s·ε_n)):
for s/n that is 1 + k/(n + θ·k). Any values there are unbiased; these have a small variance on both
sides of the bound. With continuous noise of one of them f̃ must be C¹: δ is the slope. With
continuous noise of both it must be C³: see :mod:`trueup.inverse.additive`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.exact import symbolic
from trueup.formula.build import is_long
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse.extended import Unextended
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from trueup.formula.linear import Condition
    from trueup.inverse.extended import Extended
    from trueup.inverse.joint import Joint


class Side(NamedTuple):
    """A condition as a bound of one statistic: side·(symbol − bound) ≤ 0."""

    symbol: sympy.Symbol
    bound: sympy.Expr
    side: int
    condition: Condition

    @property
    def beyond(self) -> sympy.Expr:
        """How far a point is beyond the bound."""
        return self.side * (self.symbol - self.bound)


def component(joint: Joint) -> Extended:
    """Return the estimator with slanted bounds, at most one of the noises being continuous."""
    far, empty = _apart(joint)
    joint.count = empty
    sides = [side_of(joint, far, c) for c in joint.tied]
    near = [_near(c, joint) for c in joint.tied]
    bent = [(_across(joint, far, side), side.beyond > 0) for side in sides]
    pieces = list(bent)
    if empty is not None:
        none = sympy.Eq(empty, 0)
        pieces = [(_continued(joint, e, empty), sympy.And(b, none)) for e, b in bent] + bent
    outer = sympy.Piecewise(*pieces, (joint.f, True), evaluate=False)
    words = f"slanted bound ({', '.join(str(s.condition) for s in sides)}): f goes on beyond it"
    where = _undefined(joint, outer)
    if where is not None and empty is None and _undefined(joint, joint.f) is None:
        return joint.extended(joint.f, sympy.false, (), f"{words} as it stands")
    if where is not None:
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(joint.f)} was found: it is not a finite number at or "
            f"beside {where}",
            "bound the statistics to where the formula is finite, or say what it is in empty "
            "cells: empty=value",
            proved=False,
        )
    theorem = f"{words}, bent so that the variance at the bound is small"
    extended = joint.extended(outer, sympy.Or(*near), (), theorem)
    if empty is None:
        return extended
    filled = sympy.Piecewise(*bent, (far, True), evaluate=False)
    return dataclasses.replace(extended, far=far, filled=joint.plain(filled), count=empty)


def _apart(joint: Joint) -> tuple[sympy.Expr, sympy.Symbol | None]:
    """Return f without its value in empty cells, and the tied count that is 0 there."""
    f = joint.f
    if isinstance(f, sympy.Piecewise) and len(f.args) == 2 and isinstance(f.args[0].cond, sympy.Eq):
        count, zero = f.args[0].cond.args
        tied = any(s.symbol == count and s.domain.low == 0 for s in joint.own)
        if tied and zero == 0 and f.args[1].cond is sympy.true:
            return f.args[1].expr, count
    return f, None


def _continued(joint: Joint, across: sympy.Expr, count: sympy.Symbol) -> sympy.Expr:
    """Return an extension where a count is 0: as if it were known not to be.

    (1 − S)(1 − αS) f̃ = 0 there is the constant branch below a bound of 1.
    """
    scale = _scales(joint)[count.name]
    alpha = sympy.Float(math.exp(-1 / scale))
    return (1 + alpha) * at(across, {count: count + 1}) - alpha * at(across, {count: count + 2})


def _near(condition: Condition, joint: Joint) -> sympy.Basic:
    """Return whether a neighbour of a point, on the integers, is beyond a bound."""
    symbols = {s.symbol.name: s.symbol for s in joint.own}
    whole = {s.symbol.name for s in joint.own if s.noise.lattice}
    reach = sum(abs(c) for name, c in condition.terms if name in whole)
    return condition.excess(symbols) < reach


def side_of(joint: Joint, f: sympy.Expr, condition: Condition) -> Side:
    """Return a condition as a bound of a statistic whose coefficient divides all others."""
    terms = dict(condition.terms)
    whole = sympy.ilcm(*(c.q for c in (*terms.values(), condition.low)))
    if joint.is_whole:
        whole = whole // sympy.igcd(*(int(c * whole) for c in (*terms.values(), condition.low)))
    own = [s for s in joint.own if s.symbol.name in terms]
    candidates = [s for s in own if not joint.is_whole or abs(terms[s.symbol.name] * whole) == 1]
    if not candidates:
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(joint.f)} that uses {condition} was found: no whole "
            "bound of one statistic follows from the others",
            "give a condition such as s <= 2*n, with a factor 1 on one side",
            proved=False,
        )
    chosen = min(candidates, key=lambda s: not f.is_polynomial(s.symbol)).symbol
    c = terms[chosen.name]
    rest = sympy.Add(
        *(k * sympy.Symbol(n, real=True) for n, k in terms.items() if n != chosen.name)
    )
    return Side(chosen, sympy.expand((condition.low - rest) / c), -int(sympy.sign(c)), condition)


def _across(joint: Joint, f: sympy.Expr, side: Side) -> sympy.Expr:
    """Return f beyond a bound: f(b) + δ·k/(1 + θ·k/b), k the distance beyond it."""
    edge, before = (at(f, {side.symbol: side.bound - k * side.side}) for k in (0, 1))
    if joint.is_whole:
        step = edge - before
    else:  # C¹ along both: the slope of k is that of the bound
        step = side.side * at(f.diff(side.symbol), {side.symbol: side.bound})
    size, theta = _size(joint, side), bend(joint, side)
    if size is sympy.oo:
        return _tidied(edge) + _tidied(step) * side.beyond
    return _tidied(edge) + _tidied(step * size) * side.beyond / (size + theta * side.beyond)


def _tidied(expr: sympy.Expr) -> sympy.Expr:
    short = expr.is_rational_function() and not is_long(expr, _SHORT)
    return sympy.factor(expr) if short else expr


_SHORT = 60  # parts: sympy factors so many in some tenths of a second


def bend(joint: Joint, side: Side) -> sympy.Expr:
    """Return θ = min(1, √(U·ε_s·ε_n)), 0 where the bound may be 0 or change its sign."""
    if _size(joint, side) is sympy.oo:
        return sympy.Integer(0)
    other, factor = _others(joint, side)
    return sympy.Float(min(1.0, math.sqrt(factor / _scales(joint)[side.symbol.name] / other)))


def _size(joint: Joint, side: Side) -> sympy.Expr:
    """Return the bound where it is known to be positive, at least 1; infinity elsewhere."""
    poly = sympy.Poly(side.bound, *sorted(side.bound.free_symbols, key=str))
    least = poly.coeff_monomial(1)
    for symbol in poly.gens:
        c, domain = poly.coeff_monomial(symbol), joint.statistics[symbol.name].domain
        least += c * symbolic(domain.low if c > 0 else domain.high)
        least += c * int(symbol == joint.count)  # f goes on as if there were no empty cells
    if least >= 1:
        return side.bound
    if least >= 0 and not all(joint.statistics[g.name].noise.lattice for g in poly.gens):
        # max(b, 1) would be a kink
        raise Unextended(joint.f, joint.tied, f"{text(side.bound)} may be below 1")
    return sympy.Max(side.bound, 1) if least >= 0 else sympy.oo


def _scales(joint: Joint) -> dict[str, float]:
    return {s.symbol.name: float(s.noise.unit) for s in joint.own}


def _others(joint: Joint, side: Side) -> tuple[float, float]:
    """Return the scale of the widest noise in a bound, and its factor there."""
    terms, scales = dict(side.condition.terms), _scales(joint)
    own = abs(float(terms.pop(side.symbol.name)))
    widest = max(terms, key=lambda name: abs(float(terms[name])) * scales[name])
    return scales[widest], abs(float(terms[widest])) / own


def _undefined(joint: Joint, outer: sympy.Expr) -> str | None:
    """Return where an extension is not a number at integers near the bounds, None if nowhere."""
    axes = []
    if not joint.is_whole:
        return None
    for s in joint.statistics.values():
        low, high = s.domain.bounds
        start = low if low is not None else high - 40 if high is not None else -20
        axes.append(np.arange(float(start), float(start) + 41))
    mesh = np.meshgrid(*axes)
    columns = {s.symbol: m.ravel() for s, m in zip(joint.statistics.values(), mesh, strict=True)}
    finite = np.isfinite(evaluate(outer, columns))
    if finite.all():
        return None
    return ", ".join(f"{s.name} = {c[np.argmin(finite)]:g}" for s, c in columns.items())
