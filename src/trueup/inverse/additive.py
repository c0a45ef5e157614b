"""Two statistics under Laplace noise, tied by a condition: the estimator beyond it is a sum.

With σᵢ = ±1 for holes below or above along statistic i, and W = Π(1 − σᵢbᵢDᵢ) f, the extension that
is best far from the bound, and C³ across it, has W = u(x₁) + v(x₂) beyond it: value and slopes of W
on the line determine u and v. The estimator is Π(1 + σᵢbᵢDᵢ) W, and W itself at a bound of the box
on the side of the holes. The corner a + b ≥ L and the slanted bound s ≤ n are the two cases of it.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.exact import symbolic
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse.component import Region
from trueup.inverse.extended import Extended, Unextended, first_that_holds

if TYPE_CHECKING:
    from trueup.inverse.component import Cell
    from trueup.inverse.joint import Joint


def component(joint: Joint) -> Additive:
    """Return the estimator of f, or refuse what is not known to have one."""
    problem = ""
    if len(joint.tied) > 1:
        problem = "several conditions at once"
    elif len(joint.own) != 2 or joint.f.free_symbols - set(joint.symbols):
        problem = "other than two statistics"
    elif not joint.f.is_rational_function(*joint.symbols):
        problem = "a function that is no quotient of polynomials"
    elif _is_narrow(joint):
        problem = "bounds on the other side that lie beyond the condition"
    if problem:
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(joint.f)} that uses "
            f"{', '.join(map(str, joint.tied))} was found: {problem} under continuous noise",
            "use DiscreteLaplace noise, or leave the condition out",
            proved=False,
        )
    plain = {(): (joint.f, sympy.Integer(0))}
    theorem = (
        f"Laplace noises tied by {joint.tied[0]}: beyond it the estimator is a function of "
        f"{joint.symbols[0]} plus one of {joint.symbols[1]}, best for true values far from it"
    )
    return Additive(
        joint.f,
        joint.coordinates,
        (),
        plain,
        tied=joint.tied,
        theorem=theorem,
    )


def _is_narrow(joint: Joint) -> bool:
    """Whether a bound of the box on the side away from the holes is beyond the condition."""
    condition = joint.tied[0]
    for name, c in condition.terms:
        domain = joint.statistics[name].domain
        end = symbolic(domain.high if c > 0 else domain.low)
        if end.is_finite:
            others = {n: k for n, k in condition.terms if n != name}
            ends = {n: joint.statistics[n].domain for n in others}
            least = sum(
                k * symbolic(ends[n].low if k > 0 else ends[n].high) for n, k in others.items()
            )
            if not c * end + least >= condition.low:
                return True
    return False


@dataclasses.dataclass(frozen=True)
class Additive(Extended):
    """A component of two statistics under Laplace noise that a condition ties."""

    def _chosen(self, region: Region, what: str) -> sympy.Expr:
        place = self.place(region)
        named = {symbol.name: value for symbol, value in place.items()}
        beyond = self.tied[0].excess(named) < 0
        if beyond == sympy.false or self._is_opposite(region):
            return getattr(self.main, what)(region)
        value = self.beyond(region)
        if what == "variance":
            value = value**2 - self._square.beyond(region)
        return first_that_holds([(value, beyond)], lambda: getattr(self.main, what)(region))

    def beyond(self, region: Region) -> sympy.Expr:
        """Return g where the published point does not fulfil the condition."""
        total = self._sum
        for cell, branch in zip(self.cells, region, strict=True):
            if cell.operator.branches[branch].at is None:
                total = total + self._sign(cell.symbol) * _scale(cell) * total.diff(cell.symbol)
        return at(total, self.place(region))

    @cached_property
    def _square(self) -> Additive:
        """The component of f²."""
        f = self.f**2
        return dataclasses.replace(self, f=f, modes={(): (f, sympy.Integer(0))})

    @cached_property
    def _sum(self) -> sympy.Expr:
        """u(x₁) + v(x₂): W continued beyond the line."""
        w = self.f
        for cell in self.cells:
            w = w - self._sign(cell.symbol) * _scale(cell) * w.diff(cell.symbol)
        first, second = (cell.symbol for cell in self.cells)
        terms = {first.name: first, second.name: second}
        (on_line,) = sympy.solve(self.tied[0].excess(terms), second)
        (back,) = sympy.solve(self.tied[0].excess(terms), first)
        slope = sympy.together(_exact(w.diff(first).xreplace({second: on_line})))
        _, factors = sympy.factor_list(sympy.fraction(slope)[1], first)
        u = sympy.nan
        if all(sympy.degree(p, first) <= 2 for p, _ in factors):  # else roots of cubics and more
            parts = sympy.Add.make_args(sympy.apart(slope, first))
            u = sympy.Add(*(sympy.factor(sympy.integrate(part, first)) for part in parts))
        if u.has(sympy.Integral, sympy.RootSum, sympy.I, sympy.nan, sympy.zoo):
            raise Unextended(self.f, self.tied, "its slopes along the bound have no short integral")
        u = u.replace(sympy.log, lambda z: sympy.log(self._positive(z, back)))
        return u + (w - u).xreplace({first: back})

    def _positive(self, z: sympy.Expr, back: sympy.Expr) -> sympy.Expr:
        """Return ±z, positive on the part of the line that is in the box."""
        first, second = self.cells
        across = sorted(at(back, {second.symbol: end}) for end in _bounds(second))
        (low, other_low), (high, other_high) = zip(_bounds(first), across, strict=True)
        value = sympy.N(at(z, {first.symbol: _between(max(low, other_low), min(high, other_high))}))
        if not value.is_real or value == 0:
            raise Unextended(self.f, self.tied, f"{text(z)} has no sign along the bound")
        return z if value > 0 else -z

    def check_beyond(self) -> None:
        """Raise Unextended unless f and f² have extensions that can be evaluated."""
        for part in (self, self._square):
            part._sum  # noqa: B018

    def _sign(self, symbol: sympy.Symbol) -> sympy.Expr:
        return sympy.sign(dict(self.tied[0].terms)[symbol.name])

    def _is_opposite(self, region: Region) -> bool:
        """Whether a statistic is at its bound on the side away from the holes."""
        away = {1: "above", -1: "below"}
        return any(
            cell.operator.branches[branch].side == away[int(self._sign(cell.symbol))]
            for cell, branch in zip(self.cells, region, strict=True)
        )


def _scale(cell: Cell) -> sympy.Expr:
    return symbolic(cell.noise.unit)


def _bounds(cell: Cell) -> tuple[sympy.Expr, sympy.Expr]:
    return cell.operator.low, cell.operator.high


def _between(low: sympy.Expr, high: sympy.Expr) -> sympy.Expr:
    """Return a number between two others, of which one or both may be infinite."""
    if low.is_finite and high.is_finite:
        return (low + high) / 2
    if low.is_finite or high.is_finite:
        return low + 1 if low.is_finite else high - 1
    return sympy.Integer(0)


def _exact(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression with fractions for its decimals: integrals of polynomials need them."""
    return expr.xreplace({x: sympy.Rational(repr(float(x))) for x in expr.atoms(sympy.Float)})
