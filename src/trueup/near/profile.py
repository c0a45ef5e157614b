"""Standard deviations over the domain: the largest, and the average over the prior."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.near.plan import reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.solution import Solution

    Floats = NDArray[np.float64]

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
