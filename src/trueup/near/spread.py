"""The variance of a nearly unbiased estimator, estimated by the same means.

v(q) = Var g(q + Z) is a function of the true value that can be computed, so it has a nearly
unbiased estimator of its own: the programme once more, now with a bias relative to v. Away from the
bounds it joins the series of S[f]² − S[f²]. :class:`Profile` has the standard deviations over the
whole domain.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.near.plan import Plan, Stretch, reach
from trueup.near.question import Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.construct import Solution
    from trueup.near.curve import Curve

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


# -- standard deviations over the domain: the largest, and the average over the prior --------------


FAR = 1e4
"""An unbounded domain is looked at as far as so many units of noise from its bound."""

_NEAR, _STEPS = 400, 120


@dataclasses.dataclass(frozen=True)
class Profile:
    """Mean and standard deviation of an estimator at true values spread over the domain."""

    solution: Solution

    @cached_property
    def truths(self) -> Floats:
        """True values: close together near the bounds, then ever wider apart."""
        question, unit = self.solution.question, self.solution.smoothing.unit
        low, high = question.low, question.high
        if math.isinf(low) and math.isinf(high):
            low, high = -FAR * unit, FAR * unit
        low = high - FAR * unit if math.isinf(low) else low
        high = low + FAR * unit if math.isinf(high) else high
        parts = [self._from(low, high), low + high - self._from(low, high)]
        q = np.unique(np.clip(np.concatenate(parts), low, high))
        return np.unique(np.rint(q)) if question.whole else q

    def _from(self, low: float, high: float) -> Floats:
        """Return points from one end to the other, dense near the first."""
        solution = self.solution
        near = 3 * reach(solution.smoothing)
        if math.isfinite(solution.curve.low):
            near += max(solution.curve.low - low, 0.0)
        near = min(near, high - low)
        close = np.linspace(low, low + near, _NEAR)
        if near >= high - low:
            return close
        return np.concatenate([close, low + np.geomspace(near, high - low, _STEPS)])

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """Mean and variance at those true values, relative to f and f² if asked so."""
        solution, size = self.solution, self.solution.question.size(self.truths)
        mean, variance = solution.smoothing.law(solution.curve, self.truths, solution.curve.knots)
        return mean / size, variance / size**2

    @property
    def sds(self) -> Floats:
        """Standard deviations at those true values, relative to |f| if asked so."""
        return np.sqrt(self._law[1])

    @cached_property
    def biases(self) -> Floats:
        """Biases at those true values, relative to |f| if asked so."""
        question = self.solution.question
        return self._law[0] - question.truth(self.truths) / question.size(self.truths)

    @property
    def largest(self) -> tuple[float, float]:
        """The largest standard deviation, and where it is."""
        top = int(np.argmax(self.sds))
        return float(self.sds[top]), float(self.truths[top])

    @property
    def average(self) -> float:
        """The root of the variance averaged over the prior."""
        return math.sqrt(self._averaged(self._law[1]))

    @property
    def average_bias(self) -> float:
        """The root of the squared bias averaged over the prior."""
        return math.sqrt(self._averaged(self.biases**2))

    @property
    def price(self) -> float:
        """What was minimised: the averaged variance, or bias² + variance/m for m cells."""
        question, (mean, variance) = self.solution.question, self._law
        beside = question.noise_beside(self.truths)
        variance = variance + beside * (variance + mean**2)
        if question.cells is None:
            return self._averaged(variance)
        return self._averaged(self.biases**2 + variance / question.cells)

    def _averaged(self, values: Floats) -> float:
        q = self.truths
        weights = self.solution.question.prior(q)
        if len(q) > 1:
            weights = weights * np.gradient(q)
        return float(weights @ values) / float(weights.sum())
