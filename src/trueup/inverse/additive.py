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
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.exact import symbolic
from trueup.formula.substitution import at
from trueup.inverse.expectation import DEPTH, Rule, integers, panels, too_large
from trueup.inverse.extended import Extended, Unextended, modes
from trueup.inverse.grids import grid
from trueup.inverse.signs import sign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.formula.linear import Condition
    from trueup.inverse.component import Cell, Region
    from trueup.inverse.extended import Case
    from trueup.inverse.joint import Joint

    Truth = Mapping[sympy.Symbol, float]


def component(joint: Joint) -> Additive:
    """Return the estimator of f."""
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
        raise Unextended(joint.tied, f"{problem} under continuous noise")
    theorem = (
        f"Laplace noises tied by {joint.tied[0]}: beyond it the estimator is a function of "
        f"{joint.symbols[0]} plus one of {joint.symbols[1]}, best for true values far from it"
    )
    sums = tuple(_continued(f, joint.cells, joint.tied[0]) for f in (joint.f, joint.f**2))
    own = joint.f, joint.cells, (), modes(joint.f)
    return Additive(*own, tied=joint.tied, theorem=theorem, sums=sums)


def _is_narrow(joint: Joint, name: str) -> bool:
    """Whether a bound of the box on the side away from the holes is beyond the condition."""
    condition, (low, high) = joint.tied[0], joint.statistics[name].domain.bounds
    end = high if dict(condition.terms)[name] > 0 else low
    box = {s.symbol.name: s.domain for s in joint.own} | {name: Interval(end, end)}
    return end is not None and bool(condition.least(box) < 0)


def _continued(f: sympy.Expr, cells: Sequence[Cell], condition: Condition) -> sympy.Expr:
    """Return u(x₁) + v(x₂): W continued beyond the line."""
    w = f
    for cell in cells:
        w = w - _step(cell, condition) * w.diff(cell.symbol)
    first, second = (cell.symbol for cell in cells)
    line = condition.excess({first.name: first, second.name: second})
    on_line, back = (sympy.expand(x - line / line.coeff(x)) for x in (second, first))
    slope = sympy.together(_exact(w.diff(first).xreplace({second: on_line})))
    parts = sympy.Add.make_args(sympy.apart(slope, first))
    u = sympy.Add(*(sympy.factor(sympy.integrate(part, first)) for part in parts))
    if u.has(sympy.Integral, sympy.RootSum, sympy.I, sympy.nan, sympy.zoo):
        raise Unextended([condition], "its slopes along the bound have no short integral")
    box = {first: Interval(cells[0].operator.low, cells[0].operator.high)}
    u = u.replace(sympy.log, lambda z: _log(z, sign(z, box, strict=False)))
    return u + (w - u).xreplace({first: back})


def _step(cell: Cell, condition: Condition) -> sympy.Expr:
    """Return the scale of a noise, negative for holes above along its statistic."""
    return sympy.sign(dict(condition.terms)[cell.symbol.name]) * symbolic(cell.noise.unit)


def _log(z: sympy.Expr, side: int) -> sympy.Expr:
    """Return log |z|, of a z that has no known sign as log(z²)/2."""
    return sympy.log(side * z) if side else sympy.log(z**2) / 2


def _exact(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression with fractions for its decimals: integrals of polynomials need them."""
    return expr.xreplace({x: sympy.Rational(repr(float(x))) for x in expr.atoms(sympy.Float)})


@dataclasses.dataclass(frozen=True)
class Additive(Extended):
    """A component of two statistics under Laplace noise that a condition ties.

    ``sums`` are u + v beyond the line, for f and for f².
    """

    sums: tuple[sympy.Expr, ...] = ()

    def _near(self, region: Region, what: str) -> Case:
        """Return g or V̂ where the published point does not fulfil the condition."""
        place, condition = self.place(region), self.tied[0]
        beyond = condition.excess({symbol.name: value for symbol, value in place.items()}) < 0
        branches = [(c, c.operator.branches[i]) for c, i in zip(self.cells, region, strict=True)]
        steps = [(cell, branch, _step(cell, condition)) for cell, branch in branches]
        away = any(branch.side == ("above" if step > 0 else "below") for _, branch, step in steps)
        if away or beyond == sympy.false:
            return self.f, sympy.false
        values = []
        for total in self.sums:
            for cell, branch, step in steps:
                total += step * total.diff(cell.symbol) if branch.at is None else 0
            values.append(at(total, place))
        value, square = values
        return value if what == "value" else value**2 - square, beyond


class TiedLaw:
    """Mean and variance of an extended component of two statistics at true values."""

    def __init__(self, component: Extended) -> None:
        if len(component.cells) != 2:
            raise too_large(len(component.cells))
        self.component = component
        # the integers outside: the sum over them needs no breaks
        self.outer, self.inner = sorted(component.cells, key=lambda c: not c.noise.lattice)
        self._grid = grid([component], (self.outer, self.inner), "value")

    def mean(self, truth: Truth) -> float:
        """Return E g."""
        return self.moments(truth)[0]

    def moments(self, truth: Truth) -> tuple[float, float]:
        """Return E g and E (g − E g)², by a rule along one statistic for each node of the other."""
        outer, inner = self.outer, self.inner
        marks = [truth[inner.symbol], *map(float, inner.operator.starts)]
        crossings = [y for x in marks for y in self._crossing(outer, inner, x)]
        rule = _rule(outer, truth, crossings)
        rows = [_rule(inner, truth, self._crossing(inner, outer, x)) for x in rule.nodes]
        x = np.repeat(rule.nodes, [len(row.nodes) for row in rows])
        with np.errstate(all="ignore"):
            g = self._grid.block([x, np.concatenate([row.nodes for row in rows])])
        parts = zip(rule.weights, rows, strict=True)
        weights = np.concatenate([weight * row.weights for weight, row in parts])
        mean = float(weights @ g)
        return mean, float(weights @ (g - mean) ** 2)

    def _crossing(self, unknown: Cell, known: Cell, value: float) -> list[float]:
        """Return where the estimator breaks along one statistic, given the other.

        That one is clamped to its bounds; where it is an integer its neighbours are read too.
        """
        clamped = min(max(value, float(known.operator.low)), float(known.operator.high))
        reads = [clamped + step for step in ((-1, 0, 1) if known.noise.lattice else (0,))]
        found = []
        for condition in self.component.tied:
            terms = {name: float(c) for name, c in condition.terms}
            rests = (float(condition.low) - terms[known.symbol.name] * x for x in reads)
            found += [rest / terms[unknown.symbol.name] for rest in rests]
        return found


def _rule(cell: Cell, truth: Truth, breaks: Sequence[float]) -> Rule:
    """Return nodes and weights; panels shrink towards everything at which something breaks."""
    q, noise = truth[cell.symbol], cell.noise
    reach = DEPTH * float(noise.unit)
    ends = q - reach, q + reach
    if noise.lattice:
        return integers(noise, q, *ends)
    return panels(noise, q, ends, (q, *map(float, cell.operator.starts), *breaks), 0)
