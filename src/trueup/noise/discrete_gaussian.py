"""Discrete Gaussian noise on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import mpmath
import numpy as np
import scipy

from trueup.noise.base import Noise
from trueup.noise.budget import gaussian_scale, whole_sensitivity
from trueup.noise.lattice import check_drawable, smallest_integer
from trueup.noise.privacy import discrete_scale
from trueup.noise.theta import CROSSING, direct_sums, dual_sums, tail_sum, theta

if TYPE_CHECKING:
    import sympy

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

        σ = sensitivity/√(2ρ), or the smallest σ such that it and all larger ones have an exact
        privacy profile [1]_ of at most δ (which falls with σ, but not monotonically).

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
        return cls(gaussian_scale(discrete_scale, rho, epsilon, delta, shift))

    @property
    def variance(self) -> Exact:
        """E Z²."""
        return self.moment(2)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        sums = direct_sums if self.scale < CROSSING else dual_sums
        variance = field.number(self.scale) ** 2
        total = sums(variance, mpmath.mpf(0), 0, field)[0]
        return [value / total for value in sums(variance, c, order, field)]

    def _working_digits(self, c: sympy.Expr, order: int) -> int:
        return order + super()._working_digits(c, order)

    def _density(self, x: Floats) -> Floats:
        sigma = float(self.scale)
        return np.exp(-0.5 * (x / sigma) ** 2) / theta(sigma)

    def _cdf(self, x: Floats) -> Floats:
        k, sigma = np.floor(x), float(self.scale)
        beyond = np.where(k < 0, -k, k + 1)
        tail = tail_sum(beyond, sigma) / theta(sigma)
        return np.where(k < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        return smallest_integer(self._cdf, p, scipy.special.ndtri(p) * float(self.scale))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        """Return accepted discrete Laplace draws (Canonne, Kamath, Steinke, Algorithm 3)."""
        check_drawable(self.scale)
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
