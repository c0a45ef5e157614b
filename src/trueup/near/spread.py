"""The variance of a nearly unbiased estimator, estimated by the same means.

v(q) = Var g(q + Z) is a function of the true value that can be computed, so it has a nearly
unbiased estimator of its own: the programme once more, now with a bias relative to v. Away from the
bounds it joins the series of S[f]² − S[f²].
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.near.plan import Plan, Stretch
from trueup.near.question import Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.curve import Curve
    from trueup.near.solution import Solution

    Floats = NDArray[np.float64]

TRIES = ((0.1, 0.1), (0.2, 0.1), (0.4, 0.1), (0.2, 0.0), (0.4, 0.0), (0.8, None))
"""Relative biases tried, one after the other, and what the estimate must not fall below: a share
of Var g at the true value nearest to the published one.
"""

_FURTHER = 3.0
_PIECES = 2
_FLOOR = 1e-7


@dataclasses.dataclass(frozen=True)
class Spread:
    """An estimator of Var g, and its largest relative bias where it was looked at."""

    curve: Curve
    bias: float


class _OfVariance(Question):
    """The question whose f is q ↦ Var g(q + Z)."""

    solution: Solution

    @classmethod
    def of(cls, solution: Solution, max_bias: float) -> _OfVariance:
        given = solution.question
        made = cls(given.f, given.symbol, given.noise, given.domain, max_bias, True, given.prior)
        object.__setattr__(made, "solution", solution)
        return made

    @cached_property
    def smooth(self) -> bool:
        return False

    def truth(self, q: Floats) -> Floats:
        curve = self.solution.curve
        return self.solution.smoothing.law(curve, np.asarray(q, float), curve.knots)[1]

    def size(self, q: Floats) -> Floats:
        values = self.truth(q)
        return np.asarray(np.maximum(values, _FLOOR * values.max()))


def spread(solution: Solution) -> Spread:
    """Return the estimator of an estimator's variance with the least bias of those tried."""
    stretch = _stretch(solution)
    for bias, floor in TRIES:
        question = _OfVariance.of(solution, bias)
        plan = Plan(question, solution.smoothing, stretch, _PIECES)
        if plan.programme is None:
            return Spread(plan.curve(np.empty(0)), 0.0)
        unknowns = plan.programme.least_variance(1e-3, floor)
        if unknowns is not None:
            return _checked(question, plan, plan.curve(unknowns))
    raise TrueupError(
        f"the variance of the estimator of {text(solution.question.f)} cannot be estimated from "
        f"one published value to within {TRIES[-1][0]:.0%}",
        "use sd(q) at plausible true values",
    )


def _stretch(solution: Solution) -> Stretch:
    """Return where the series of the variance takes over: a bit later than that of the value."""
    question, curve = solution.question, solution.curve
    margin = _FURTHER * solution.smoothing.unit
    if question.noise.lattice:
        margin = np.ceil(margin)
    low, high = curve.low + margin, curve.high - margin
    if curve.series is None or low > min(high, question.high):
        return Stretch(None, math.inf, math.inf)
    return Stretch(curve.series.variance, float(low), float(high))


def _checked(question: _OfVariance, plan: Plan, curve: Curve) -> Spread:
    """Return the estimator with its bias at the rows of the programme and between them."""
    rows, _ = plan.truths()
    q = rows if question.whole else np.unique(np.concatenate([rows, (rows[1:] + rows[:-1]) / 2]))
    mean = plan.smoothing.law(curve, q, curve.knots)[0]
    return Spread(curve, float(np.abs((mean - question.truth(q)) / question.size(q)).max()))
