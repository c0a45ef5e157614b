"""Discrete Gaussian noise on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import mpmath
import numpy as np
import scipy

from trueup.noise.lattice import check_drawable, smallest_integer
from trueup.noise.privacy import discrete_scale
from trueup.noise.scale_families import GaussianFamily
from trueup.noise.theta import CROSSING, direct_sums, dual_sums, tail_sum, theta

if TYPE_CHECKING:
    import sympy

    from trueup.noise.budget import Solver
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field


@dataclasses.dataclass(frozen=True, repr=False)
class DiscreteGaussian(GaussianFamily):
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
    counts: ClassVar[bool] = True
    solver: ClassVar[Solver] = staticmethod(discrete_scale)

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
