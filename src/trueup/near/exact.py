"""The unbiased estimator in the shape of a solution: nothing to choose, nothing to certify."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import sympy

from trueup.domain import Interval
from trueup.errors import InfiniteVariance, TrueupError
from trueup.formula.spline import Spline
from trueup.formula.text import text
from trueup.inverse.component import Component
from trueup.inverse.solve import Statistic, invert
from trueup.near.certificate import Certificate
from trueup.near.curve import Curve
from trueup.near.series import Exact
from trueup.near.smoothing import Smoothing
from trueup.near.solution import Solution

if TYPE_CHECKING:
    from trueup.near.question import Question


def exact(question: Question) -> Solution:
    """Return the unbiased estimator.

    Given the bounds where it is constant beyond them (Laplace, discrete Laplace), otherwise the one
    of the whole line.
    """
    known = question.noise.inverse(question.domain) is not None
    found = _estimator(question, question.domain) if known else None
    if found is None:
        found = _estimator(question, Interval())
    if found is None:
        raise TrueupError(
            f"the unbiased estimator of {text(question.f)} is no single formula between constants",
            "use unbiased()",
        )
    value, spread = found
    certificate = Certificate(0.0, math.nan)
    return Solution(question, Smoothing(question.noise), value, certificate, spread)


def unbiased(question: Question) -> Solution | None:
    """Return the unbiased estimator, None if there is none or none of finite variance."""
    try:
        return exact(question)
    except TrueupError:
        return None


def _estimator(question: Question, domain: Interval) -> tuple[Curve, Curve] | None:
    """Return value and variance, None if they are not constant beyond the bounds."""
    inverse = invert(question.f, [Statistic(question.symbol, question.noise, domain)])
    if inverse.infinite:
        raise InfiniteVariance(
            f"the unbiased estimator of {text(question.f)} has no finite variance: "
            f"{inverse.infinite}",
            "bound the domain on both sides, or use less noise",
        )
    if len(inverse.components) != 1 or type(inverse.components[0]) is not Component:
        return None
    (component,) = inverse.components
    value, spread = (_pieces(component, what) for what in ("value", "variance"))
    if value is None or spread is None:
        return None
    series = Exact(question.symbol, value.inside, spread.inside)
    return value.curve(question.symbol, series), spread.curve(question.symbol, series.variance)


class _Pieces(NamedTuple):
    """A formula between constants, and where these begin."""

    inside: sympy.Expr
    below: float | None
    above: float | None
    low: float
    high: float

    def curve(self, symbol: sympy.Symbol, series: Exact) -> Curve:
        left = None if self.below is None else Spline(self.low - 1, 1.0, [[self.below]])
        right = None if self.above is None else Spline(self.high, 1.0, [[self.above]])
        return Curve(symbol, series, left, right, self.low, self.high)


def _pieces(component: Component, what: str) -> _Pieces | None:
    """Return value or variance, None if one is not constant beyond a bound."""
    parts: dict[str, sympy.Expr] = {}
    low, high = -math.inf, math.inf
    for region in component.regions():
        side = component.cells[0].operator.branches[region[0]].side if region else "inside"
        parts[side] = getattr(component, what)(region)
    if component.cells:
        low, high = map(float, component.cells[0].operator.starts)
    ends = {side: parts[side] for side in ("below", "above") if side in parts}
    if len(component.cells) > 1 or any(e.free_symbols for e in ends.values()):
        return None
    below, above = (float(ends[s]) if s in ends else None for s in ("below", "above"))
    return _Pieces(parts["inside"], below, above, low, high)
