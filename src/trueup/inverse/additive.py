"""Two statistics tied by a condition, one or both under Laplace noise: beyond it, and the law.

With σᵢ = ±1 for holes below or above along statistic i, and W = Π(1 − σᵢbᵢDᵢ) f, the extension that
is best far from the bound, and C³ across it, has W = u(x₁) + v(x₂) beyond it: value and slopes of W
on the line determine u and v. The estimator is Π(1 + σᵢbᵢDᵢ) W, and W itself at a bound of the box
on the side of the holes. The corner a + b ≥ L and the slanted bound s ≤ n are the two cases of it.

Such an estimator breaks along the line of the condition, so in its law the integral over one
statistic breaks at a point that depends on the other.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import NoUnbiasedEstimator
from trueup.exact import symbolic
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse.component import Region
from trueup.inverse.expectation import Rule, TooLargeError, integers
from trueup.inverse.extended import Extended, Unextended, first_that_holds
from trueup.inverse.grids import grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.inverse.component import Cell
    from trueup.inverse.joint import Joint

    Truth = Mapping[sympy.Symbol, float]

_REACH = 42.0  # scales: e⁻⁴² is below what is left of doubles
_FINEST = 2.0**-4  # of a scale: the panel beside a break; each further one is twice as wide
_PANELS = 24  # at the least: fourteen nodes get e^{−x} right to the last digit on such a panel
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


def component(joint: Joint) -> Additive:
    """Return the estimator of f, or refuse what is not known to have one."""
    problem = ""
    if len(joint.tied) > 1:
        problem = "several conditions at once"
    elif len(joint.own) != 2 or joint.f.free_symbols - set(joint.symbols):
        problem = "other than two statistics"
    elif not joint.f.is_rational_function(*joint.symbols):
        problem = "a function that is no quotient of polynomials"
    elif any(_is_narrow(joint, name) for name, _ in joint.tied[0].terms):
        problem = "bounds on the other side that lie beyond the condition"
    if problem:
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(joint.f)} that uses "
            f"{', '.join(map(str, joint.tied))} was found: {problem} under continuous noise",
            "use DiscreteLaplace noise, or leave the condition out",
            proved=False,
        )
    theorem = (
        f"Laplace noises tied by {joint.tied[0]}: beyond it the estimator is a function of "
        f"{joint.symbols[0]} plus one of {joint.symbols[1]}, best for true values far from it"
    )
    own = joint.plain(joint.f)
    return Additive(own.f, own.coordinates, (), own.modes, tied=joint.tied, theorem=theorem)


def _is_narrow(joint: Joint, name: str) -> bool:
    """Whether a bound of the box on the side away from the holes is beyond the condition."""
    condition, (low, high) = joint.tied[0], joint.statistics[name].domain.bounds
    end = high if dict(condition.terms)[name] > 0 else low
    box = {s.symbol.name: s.domain for s in joint.own} | {name: Interval(end, end)}
    return end is not None and bool(condition.least(box) < 0)


@dataclasses.dataclass(frozen=True)
class Additive(Extended):
    """A component of two statistics under Laplace noise that a condition ties."""

    def _chosen(self, region: Region, what: str) -> sympy.Expr:
        named = {symbol.name: value for symbol, value in self.place(region).items()}
        beyond = self.tied[0].excess(named) < 0
        cases = []
        if beyond != sympy.false and not self._is_opposite(region):
            value = self.beyond(region)
            if what == "variance":
                value = value**2 - self._square.beyond(region)
            cases.append((value, beyond))
        return first_that_holds(cases, lambda: self.main.worked_out(what, region))

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
        line = self.tied[0].excess({first.name: first, second.name: second})
        (on_line,), (back,) = sympy.solve(line, second), sympy.solve(line, first)
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
        first, second = (cell.symbol for cell in self.cells)
        (low, high), ends = ((c.operator.low, c.operator.high) for c in self.cells)
        across = sorted(at(back, {second: end}) for end in ends)
        low, high = sympy.Max(low, across[0]), sympy.Min(high, across[1])
        within = low + 1 if low.is_finite else high - 1 if high.is_finite else sympy.Integer(0)
        if low.is_finite and high.is_finite:
            within = (low + high) / 2
        value = sympy.N(at(z, {first: within}))
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


def _exact(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression with fractions for its decimals: integrals of polynomials need them."""
    return expr.xreplace({x: sympy.Rational(repr(float(x))) for x in expr.atoms(sympy.Float)})


class TiedLaw:
    """Mean and variance of an extended component of two statistics at true values."""

    def __init__(self, component: Extended) -> None:
        if len(component.cells) != 2:
            raise TooLargeError.over(len(component.cells))
        self.component = component
        # the integers outside: the sum over them needs no breaks
        self.outer, self.inner = sorted(component.cells, key=lambda c: not c.noise.lattice)
        self._grid = grid([component], component.cells, "value")

    def moments(self, truth: Truth, centre: float) -> tuple[float, float]:
        """Return E (g − c) + c and the variance, computed around c."""
        first = second = 0.0
        outer, inner = self.outer, self.inner
        marks = [truth[inner.symbol], *map(float, inner.operator.starts)]
        crossings = [y for x in marks for y in self._crossing(outer, inner, x)]
        for x, weight in zip(*_rule(outer, truth, crossings), strict=True):
            y, weights = _rule(inner, truth, self._crossing(inner, outer, x))
            columns = {outer.symbol: np.full(len(y), x), inner.symbol: y}
            with np.errstate(all="ignore"):
                g = self._grid.block([columns[c.symbol] for c in self.component.cells]) - centre
            first += weight * float(weights @ g)
            second += weight * float(weights @ g**2)
        return centre + first, second - first**2

    def _crossing(self, unknown: Cell, known: Cell, value: float) -> list[float]:
        """Return where the estimator breaks along one statistic, given the other.

        That one is clamped to its bounds; where it is an integer its neighbours are read too.
        """
        clamped = min(max(value, float(known.operator.low)), float(known.operator.high))
        steps = (-1.0, 0.0, 1.0) if known.noise.lattice else (0.0,)
        found = []
        for condition in self.component.tied:
            terms = {name: float(c) for name, c in condition.terms}
            for step in steps:
                rest = float(condition.low) - terms[known.symbol.name] * (clamped + step)
                found.append(rest / terms[unknown.symbol.name])
        return found


def _rule(cell: Cell, truth: Truth, breaks: Sequence[float]) -> Rule:
    """Return nodes and weights; panels shrink towards everything at which something breaks."""
    q, scale, noise = truth[cell.symbol], float(cell.noise.unit), cell.noise
    low, high = q - _REACH * scale, q + _REACH * scale
    if noise.lattice:
        return integers(noise, q, low, high)
    bounds = [float(end) for end in cell.operator.starts if end.is_finite]
    finest = min([_FINEST * scale, *(abs(end) / 2 for end in bounds if end)])  # a pole may be at 0
    steps = finest * (2.0 ** np.arange(np.ceil(np.log2(_REACH * scale / finest))) - 1)
    marks = np.array([q, *bounds, *breaks])[:, None]
    panels = [np.linspace(low, high, _PANELS), (marks + steps).ravel(), (marks - steps).ravel()]
    edges = np.unique(np.clip(np.concatenate(panels), low, high))
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    x, weights = (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()
    return Rule(x, weights * np.asarray(noise.pdf(x - q)))
