"""Discrete Gaussian noise on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import mpmath
import numpy as np
from scipy import special

from trueup.noise.base import Noise
from trueup.noise.budget import gaussian_scale, whole_sensitivity
from trueup.noise.lattice import smallest_integer
from trueup.noise.theta import (
    CROSSING,
    SMOOTH,
    direct_sums,
    dual_sums,
    edge_weight,
    tail_sum,
    theta,
)

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field


@dataclasses.dataclass(frozen=True, repr=False)
class DiscreteGaussian(Noise):
    """State the discrete Gaussian law: mass e^{−k²/(2σ²)} / Θ on the integers.

    By Poisson summation Θ = Σₖ e^{−k²/(2σ²)} = σ√(2π) Σₘ e^{−2π²σ²m²}, and likewise for every
    E[Zʲ e^{cZ}]: the direct sums are short for small σ, the dual ones for large σ.

    Parameters
    ----------
    scale
        σ, positive; Var Z is slightly less than σ².

    Examples
    --------
    >>> DiscreteGaussian(0.3).variance, DiscreteGaussian(3).variance
    (0.0076725..., 9.0)
    """

    lattice: ClassVar[bool] = True
    exact_tilt: ClassVar[bool] = False

    scale: Exact

    def __post_init__(self) -> None:
        self._normalise("scale")

    @classmethod
    def from_budget(
        cls,
        *,
        rho: Exact | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        sensitivity: int = 1,
    ) -> Self:
        """Return the least noise that gives a count ρ-zCDP or (ε, δ)-differential privacy.

        σ = sensitivity/√(2ρ), or the smallest σ whose exact privacy profile [1]_ is at most δ.

        References
        ----------
        .. [1] C. Canonne, G. Kamath, T. Steinke, The discrete Gaussian for differential privacy,
           NeurIPS 2020, Theorem 7.

        Examples
        --------
        >>> DiscreteGaussian.from_budget(rho=2)
        DiscreteGaussian(Fraction(1, 2))
        >>> DiscreteGaussian.from_budget(epsilon=1, delta=1e-5)
        DiscreteGaussian(3.7...)
        """
        shift = whole_sensitivity(sensitivity)
        return cls(gaussian_scale(discrete_profile, rho, epsilon, delta, shift))

    @property
    def variance(self) -> Exact:
        """E Z²."""
        return self.moment(2)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        sums = direct_sums if self.scale < CROSSING else dual_sums
        variance = field.number(self.scale) ** 2
        total = sums(variance, mpmath.mpf(0), 0, field)[0]
        return [value / total for value in sums(variance, c, order, field)]

    def _density(self, x: Floats) -> Floats:
        sigma = float(self.scale)
        return np.exp(-0.5 * (x / sigma) ** 2) / theta(sigma)

    def _cdf(self, x: Floats) -> Floats:
        k, sigma = np.floor(x), float(self.scale)
        beyond = np.where(k < 0, -k, k + 1)
        tail = tail_sum(beyond, sigma) / theta(sigma)
        return np.where(k < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        return smallest_integer(self._cdf, p, special.ndtri(p) * float(self.scale))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        """Return accepted discrete Laplace draws (Canonne, Kamath, Steinke, Algorithm 3)."""
        sigma, wanted = float(self.scale), math.prod(shape)
        rate = math.floor(sigma) + 1
        accepted = np.empty(0, dtype=np.int64)
        while (missing := wanted - accepted.size) > 0:
            pairs = rng.geometric(-math.expm1(-1 / rate), (2, 2 * missing + 16))
            y = pairs[0] - pairs[1]
            depth = (np.abs(y) - sigma**2 / rate) / sigma
            kept = y[rng.random(y.size) < np.exp(-0.5 * depth**2)]
            accepted = np.concatenate([accepted, kept[:missing]])
        return accepted.reshape(shape)


def discrete_profile(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ = P(Y > y) − e^ε P(Y > y + Δ), y = εσ²/Δ − Δ/2, or a hair above.

    Examples
    --------
    >>> discrete_profile(1.0, 1.0, 1.0)
    0.1413...
    """
    return (
        _profile_sum(sigma, epsilon, shift)
        if sigma < SMOOTH
        else _profile_smooth(sigma, epsilon, shift)
    )


def _profile_sum(sigma: float, epsilon: float, shift: float) -> float:
    """Return Σ_{k>y} p(k) (1 − e^{ε − (2kΔ+Δ²)/(2σ²)}): every term is positive."""
    first = max(math.floor(epsilon * sigma**2 / shift - shift / 2), -math.ceil(39 * sigma) - 1)
    k = np.arange(first, max(first, 0) + math.ceil(12 * sigma) + 40, dtype=float)
    excess = epsilon - (2 * k * shift + shift**2) / (2 * sigma**2)
    masses = np.exp(-0.5 * (k / sigma) ** 2) / theta(sigma)
    return math.fsum(masses * -np.expm1(np.minimum(excess, 0.0))) * (1 + 1e-12)


def _profile_smooth(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ from the Euler-Maclaurin tails, with digits to spare."""
    with mpmath.workdps(60 + math.ceil(abs(math.log10(epsilon)))):
        s, e, d = mpmath.mpf(sigma), mpmath.mpf(epsilon), mpmath.mpf(shift)
        first = mpmath.floor(e * s**2 / d - d / 2) + 1
        near, far = (_tail_probability(n / s, s) for n in (first, first + d))
        return near - mpmath.exp(e) * far


def _tail_probability(x: Any, s: Any) -> Any:
    """Return P(Y ≥ xσ) for a large σ, where Θ = σ√(2π)."""
    density = mpmath.npdf(x) / s
    return mpmath.ncdf(-x) + density * edge_weight(x, s, 12)
