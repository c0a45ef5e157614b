"""Staircase noise."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.noise.base import Noise
from trueup.noise.series import exp, expm1, mean_exp

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats

MAX_EPSILON = 700
"""Beyond it e^{−ε} is no float."""


@dataclasses.dataclass(frozen=True, repr=False)
class Staircase(Noise):
    """State the staircase law: the density falls by e^{−ε} at γΔ and again at every kΔ, kΔ + γΔ.

    f is a on [0, γΔ) and a e^{−ε} on [γΔ, Δ), f(x + kΔ) = e^{−kε} f(x) and f(−x) = f(x), with
    a = (1 − e^{−ε}) / (2Δ(γ + e^{−ε}(1 − γ))). Thus Z = ±Δ(K + V): K is geometric with ratio
    r = e^{−ε}, and V is uniform on [0, γ) or on [γ, 1) with weights γ : r(1−γ).

    Parameters
    ----------
    epsilon
        ε, positive.
    sensitivity
        Δ, positive.
    gamma
        γ from 0 to 1; None means 1/(1 + e^{ε/2}), which minimises E|Z|.

    Examples
    --------
    >>> Staircase(1).variance
    1.919...
    """

    epsilon: Exact
    sensitivity: Exact = 1
    gamma: Exact | None = None

    def _checked(self, name: str, value: Any) -> Any:
        if name != "gamma":
            exact = super()._checked(name, value)
            if name == "epsilon" and exact > MAX_EPSILON:
                hint = f"use at most {MAX_EPSILON}: there is no noise left"
                raise TrueupError(f"epsilon is too large, got {value!r}", hint)
            return exact
        gamma = None if value is None else number(value, "gamma")
        if gamma is not None and not 0 <= gamma <= 1:
            hint = "give the width of the first step in units of the sensitivity, or None"
            raise TrueupError(f"gamma must be between 0 and 1, got {value!r}", hint)
        return gamma

    @classmethod
    def from_budget(cls, epsilon: Exact, sensitivity: Exact = 1) -> Self:
        """Return the noise of least E|Z| that makes a statistic ε-differentially private.

        Examples
        --------
        >>> Staircase.from_budget(2)
        Staircase(2, 1, None)
        """
        return cls(epsilon, sensitivity)

    def breaks(self, reach: float) -> list[float]:
        """Return the edges of the steps: ±kΔ and ±(kΔ + γΔ)."""
        _, step, gamma, *_ = self._shape()
        steps = range(math.ceil(reach / step) + 1)
        edges = [(k + d) * step for k in steps for d in (0.0, gamma)]
        return sorted({sign * edge for edge in edges for sign in (-1, 1)})

    @property
    def mgf_radius(self) -> float:
        """ε/Δ."""
        return float(self.epsilon) / float(self.sensitivity)

    @staticmethod
    def generating(t: Any, epsilon: Any, sensitivity: Any, gamma: Any) -> Any:
        """Return ½ (E e^{t|Z|} + E e^{−t|Z|})."""
        if gamma is None:
            gamma = 1 / (1 + exp(epsilon / 2))
        r = exp(-epsilon)
        top = -expm1(-epsilon) / (gamma + r * (1 - gamma)) / 2

        def one_sided(s: Any) -> Any:
            """Return E e^{s(K + V)}/2, K geometric and V uniform on one of two pieces."""
            first = mean_exp(s * gamma) * gamma
            second = exp(s * gamma) * mean_exp(s * (1 - gamma)) * (r * (1 - gamma))
            return (first + second) * top / -expm1(s - epsilon)

        return one_sided(t * sensitivity) + one_sided(-t * sensitivity)

    def _shape(self) -> tuple[float, float, float, float, float]:
        """Return ε, Δ, γ, r and γ + r(1 − γ) as floats."""
        epsilon, delta = float(self.epsilon), float(self.sensitivity)
        gamma = 1 / (1 + math.exp(epsilon / 2)) if self.gamma is None else float(self.gamma)
        r = math.exp(-epsilon)
        return epsilon, delta, gamma, r, gamma + r * (1 - gamma)

    def log_density(self, x: Floats) -> Floats:
        """Return log a − ε·(the number of steps passed)."""
        epsilon, delta, gamma, _, total = self._shape()
        within, step = np.modf(np.abs(x) / delta)
        top = math.log(-math.expm1(-epsilon) / (2 * delta * total))
        return np.asarray(top - epsilon * (step + (within >= gamma)))

    def _upper(self, x: Floats) -> Floats:
        """Return ½ rᵏ (r + (1−r) P(V > v)) at x = Δ(k + v)."""
        epsilon, delta, gamma, r, total = self._shape()
        v, step = np.modf(x / delta)
        beyond = np.where(v < gamma, gamma - v + r * (1 - gamma), r * (1 - v)) / total
        return np.exp(-epsilon * step) * (r - math.expm1(-epsilon) * beyond) / 2
