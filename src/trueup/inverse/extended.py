"""T[f̃] where f is known on a part of the box only, and f̃ extends it to the whole box.

Away from the points beyond the part, the inverse reads f alone and its formula is the plain one;
near them it reads the extension: a formula in cases, or, around finitely many holes, a table.

Slanted bounds such as s ≤ n or s ≤ U·n: let b be the bound of s that the other statistics give, and
k = s − b > 0 the distance beyond it. On the integers f̃ = f(b) + δ·k/(1 + θ·k/b), with
δ = f(b) − f(b − 1) and θ = min(1, √(U·ε_s·ε_n)): for s/n that is 1 + k/(n + θ·k). Any values there
are unbiased; these have a small variance on both sides of the bound. With continuous noise of one
of them f̃ must be C¹: δ is the slope. With continuous noise of both it must be C³: see
:mod:`trueup.inverse.additive`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import sympy

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.formula.build import is_long
from trueup.formula.linear import Condition
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse.component import Component, Region
from trueup.inverse.smooth import undefined_near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.inverse.joint import Corner, Joint
    from trueup.inverse.spectral import Complex, Frequencies

    Case = tuple[sympy.Expr, sympy.Basic]


_SHORT = 60  # parts: sympy factors so many in some tenths of a second


class Unextended(TrueupError):
    """No extension of f beyond conditions is known: the bounds alone still give an estimator."""

    def __init__(self, tied: Sequence[Condition], reason: str) -> None:
        super().__init__(f"{', '.join(map(str, tied))} is not used: {reason}", "leave it out")
        self.tied, self.reason = tuple(tied), reason


def modes(f: sympy.Expr) -> dict[Frequencies, Complex]:
    """Return f as a sum over waves where there are none."""
    return {(): (f, sympy.Integer(0))}


@dataclasses.dataclass(frozen=True)
class Extended(Component):
    """A component whose statistics are tied by conditions.

    ``outer`` is the component of the extension, None if that has no formula; ``corner`` are tables
    of what it makes near holes.
    """

    outer: Component | None = None
    tied: tuple[Condition, ...] = ()
    corner: Corner | None = None
    theorem: str = ""

    @property
    def main(self) -> Component:
        """The component of f as it stands, for true values far from the conditions."""
        return Component(self.f, self.cells, (), self.modes)

    @property
    def breaks_along_a_line(self) -> bool:
        """Whether a condition ties statistics of which one at least is a real number."""
        return not set().union(*(c.names for c in self.tied)) <= self._whole

    @property
    def _whole(self) -> set[str]:
        """The integers under discrete noise."""
        return {c.symbol.name for c in self.cells if c.noise.lattice}

    def far_out(self, symbol: sympy.Symbol, direction: int) -> tuple[sympy.Expr, ...]:
        """Return f far out on a side: where a condition ends the domain, what goes on there."""
        ends = any(c * direction < 0 for t in self.tied for n, c in t.terms if n == symbol.name)
        goes_on = self.outer.f if ends and self.outer is not None else self.f
        cases = goes_on.args[:-1] if ends and isinstance(goes_on, sympy.Piecewise) else []
        return tuple(expr for expr, _ in cases) or (self.f,)

    @property
    def facts(self) -> list[str]:
        """What is to be said of the estimator beyond the theorem."""
        return [self.theorem]

    def value(self, region: Region) -> sympy.Expr:
        """Return g = T[f̃] where x lies in the region."""
        return self._chosen(region, "value")

    def variance(self, region: Region) -> sympy.Expr:
        """Return V̂ = g² − T[f̃²]."""
        return self._chosen(region, "variance")

    def _chosen(self, region: Region, what: str) -> sympy.Expr:
        near, test = self._near(region, what)
        if test == sympy.true:
            return near
        plain = self.main.worked_out(what, region)
        if test == sympy.false:
            return plain
        return sympy.Piecewise((near, test), (plain, True), evaluate=False)

    def _near(self, region: Region, what: str) -> Case:
        """Return value or variance where the inverse reads more than f itself, and where that is.

        It does if a step along each integer leads beyond a condition.
        """
        place, outer = self.place(region), self.outer
        if self.corner is not None:
            return self.corner.looked_up(what, place), at(self.corner.near, place)
        named, whole = {s.name: value for s, value in place.items()}, self._whole
        reaches = [sum(abs(c) for name, c in t.terms if name in whole) for t in self.tied]
        tests = (t.excess(named) < reach for t, reach in zip(self.tied, reaches, strict=True))
        test = sympy.Or(*tests)
        if outer is None or outer.f == self.f or test == sympy.false:
            return self.f, sympy.false
        return outer.worked_out(what, region), test


# -- slanted bounds --------------------------------------------------------------------------------


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


def slanted(joint: Joint) -> Extended:
    """Return the estimator with slanted bounds, at most one of the noises being continuous."""
    full, count = _apart(joint)
    sides = [_side(joint, full, c) for c in joint.tied]
    pieces = [(_across(joint, full, side, count), side.beyond > 0) for side in sides]
    if count is not None:
        none = sympy.Eq(count, 0)
        pieces = [(_continued(joint, e, count), sympy.And(b, none)) for e, b in pieces] + pieces
    outer = sympy.Piecewise(*pieces, (joint.f, True), evaluate=False)
    words = f"slanted bound ({', '.join(str(s.condition) for s in sides)}): f goes on beyond it"
    where = _undefined(joint, outer)
    if where is None:
        theorem = f"{words}, bent so that the variance at the bound is small"
        return joint.extended(outer, theorem)
    if count is None and _undefined(joint, joint.f) is None:
        return joint.extended(joint.f, f"{words} as it stands")
    reason = f"{text(joint.f)} is not a finite number at or beside {where}, beyond the condition"
    raise Unextended(joint.tied, reason)


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
    alpha = sympy.Float(math.exp(-1 / _scale(joint, count.name)))
    return (1 + alpha) * at(across, {count: 1}) - alpha * at(across, {count: 2})


def _side(joint: Joint, f: sympy.Expr, condition: Condition) -> Side:
    """Return a condition as a bound of a statistic, an integer if all of them are."""
    terms = dict(condition.terms)
    own = [s.symbol for s in joint.own if s.symbol.name in terms]
    candidates = [s for s in own if not joint.is_whole or abs(terms[s.name]) == 1]
    if not candidates:
        raise Unextended([condition], "it has a factor 1 on no side, as s <= 2*n has")
    chosen = min(candidates, key=lambda s: not f.is_polynomial(s))
    c = terms[chosen.name]
    rest = sympy.Add(*(terms[s.name] * s for s in own if s != chosen))
    return Side(chosen, sympy.expand((condition.low - rest) / c), -int(sympy.sign(c)), condition)


def _across(joint: Joint, f: sympy.Expr, side: Side, count: sympy.Symbol | None) -> sympy.Expr:
    """Return f beyond a bound: f(b) + δ·k/(1 + θ·k/b), k the distance beyond it."""
    edge, before = (at(f, {side.symbol: side.bound - k * side.side}) for k in (0, 1))
    if joint.is_whole:
        step = edge - before
    else:  # C¹ along both: the slope of k is that of the bound
        step = side.side * at(f.diff(side.symbol), {side.symbol: side.bound})
    size = _size(joint, side, count)
    if size is None:
        return _tidied(edge) + _tidied(step) * side.beyond
    theta = sympy.Float(_bend(joint, side))
    return _tidied(edge) + _tidied(step * size) * side.beyond / (size + theta * side.beyond)


def _tidied(expr: sympy.Expr) -> sympy.Expr:
    short = expr.is_rational_function() and not is_long(expr, _SHORT)
    return sympy.factor(expr) if short else expr


def _size(joint: Joint, side: Side, count: sympy.Symbol | None) -> sympy.Expr | None:
    """Return the bound, at least 1, where it is known to be positive, None elsewhere."""
    ends = {}
    for symbol in side.bound.free_symbols:
        domain = joint.statistics[symbol.name].domain
        ends[symbol] = symbolic(domain.low if side.bound.coeff(symbol) > 0 else domain.high)
        ends[symbol] += int(symbol == count)  # f goes on as if there were no empty cells
    least = side.bound.xreplace(ends)
    if least >= 1:
        return side.bound
    if not least >= 0:
        return None
    if not all(joint.statistics[g.name].noise.lattice for g in ends):  # max(b, 1) would be a kink
        raise Unextended([side.condition], f"{text(side.bound)} may be below 1")
    return sympy.Max(side.bound, 1)


def _bend(joint: Joint, side: Side) -> float:
    """Return θ = min(1, √(U·ε_s·ε_n)), n the statistic with the widest noise in the bound."""
    widths = {name: abs(float(c)) * _scale(joint, name) for name, c in side.condition.terms}
    own = widths.pop(side.symbol.name)
    widest = max(widths, key=lambda name: widths[name])
    return min(1.0, math.sqrt(widths[widest] / own) / _scale(joint, widest))


def _scale(joint: Joint, name: str) -> float:
    return float(joint.statistics[name].noise.unit)


def _undefined(joint: Joint, outer: sympy.Expr) -> str | None:
    """Return where an extension is not a number at integers near the bounds, None if nowhere."""
    box = {s.symbol: s.domain for s in joint.statistics.values()}
    place = undefined_near(outer, box) if joint.is_whole else None
    return ", ".join(f"{s.name} = {x:g}" for s, x in place.items()) if place else None
