"""What is asked of one statistic: f, noise, domain, how much bias, and what weighs the variance.

The bias allowed is given, or follows from the number of cells whose estimates will be averaged.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.formula.opaque import Opaque
from trueup.inverse.jets import derivative
from trueup.inverse.regularity import singularities
from trueup.kernels.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.near.prior import Prior
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

KINKED = (
    Opaque,
    sympy.Abs,
    sympy.Min,
    sympy.Max,
    sympy.Piecewise,
    sympy.sign,
    sympy.floor,
    sympy.ceiling,
)


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is asked of the bias: a bound on it, or of how many cells the average should be best.

    ``relative`` None stands for what is usual: an absolute bias if a bound is given; for ``cells``
    one that is relative to |f| where f is nowhere zero.
    """

    max_bias: float | None
    cells: float | None
    relative: bool | None
    prior: Any


@dataclasses.dataclass(frozen=True)
class Question:
    """Minimise the prior-averaged variance subject to |E g(q + Z) − f(q)| ≤ τ(q) on the domain.

    τ(q) is ``max_bias``, or ``max_bias``·|f(q)| if ``relative``; then the variance is relative to
    f² too. ``beside`` says that f is multiplied by a statistic with noise of its own.

    With ``cells`` = m there is no such bound: the prior-averaged bias² + variance/m is minimised,
    the mean squared error of an average of m cells of one size. ``max_bias`` then only says how
    accurate the series has to be.
    """

    f: sympy.Expr
    symbol: sympy.Symbol
    noise: Noise
    domain: Interval
    max_bias: float
    relative: bool
    prior: Prior
    beside: bool = False
    cells: float | None = None

    @property
    def low(self) -> float:
        """The lower bound of the domain."""
        return float(self.domain.low)

    @property
    def high(self) -> float:
        """The upper bound of the domain."""
        return float(self.domain.high)

    @property
    def whole(self) -> bool:
        """Whether the true value is an integer."""
        return self.noise.lattice or self.domain.lattice

    @cached_property
    def smooth(self) -> bool:
        """Whether f is a formula without kinks and jumps."""
        return not self.f.has(*KINKED)

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """The points of the domain at which f is not smooth."""
        if self.smooth or self.f.has(Opaque):
            return ()
        found = singularities(self.f, self.symbol, self.domain)
        return tuple(sorted({s.point for s in found}))

    def truth(self, q: Floats) -> Floats:
        """Return f at true values."""
        return evaluate(self.f, {self.symbol: np.atleast_1d(np.asarray(q, float))})

    def size(self, q: Floats) -> Floats:
        """Return what bias and standard deviation are measured in: |f(q)|, or 1."""
        return np.abs(self.truth(q)) if self.relative else np.ones(len(q))

    def noise_beside(self, q: Floats) -> Floats:
        """Return the relative variance of what f is multiplied by, as far as it can be guessed.

        It is not known: s in s/n may be of any size. It is taken to be as noisy, relative to
        itself, as the delta method says f is: σ²·(f′/f)².
        """
        if not (self.beside and self.smooth):
            return np.zeros(len(q))
        slope = evaluate(derivative(self.f, self.symbol, 1), {self.symbol: np.asarray(q, float)})
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(self.noise.variance) * (slope / self.truth(q)) ** 2
        return np.where(np.isfinite(found), found, 0.0)
