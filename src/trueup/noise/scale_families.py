"""Families whose one parameter is a scale: stated as a number, or by a privacy budget."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, Self

from trueup.noise.base import Noise, positive
from trueup.noise.budget import gaussian_scale, pure_scale, whole_sensitivity

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.budget import Solver


@dataclasses.dataclass(frozen=True, repr=False)
class ScaleFamily(Noise):
    """A law that is known up to its scale."""

    counts: ClassVar[bool] = False
    """Whether the statistic moves by integers, so that its sensitivity is one."""

    scale: Exact

    def __post_init__(self) -> None:
        self._normalise("scale")

    @classmethod
    def _shift(cls, sensitivity: Exact) -> Exact:
        if cls.counts:
            return whole_sensitivity(sensitivity)
        return positive(sensitivity, "sensitivity")


class LaplaceFamily(ScaleFamily):
    """Laws with the tails of Laplace noise."""

    @classmethod
    def from_budget(cls, epsilon: Exact, sensitivity: Exact = 1) -> Self:
        """Return the noise that makes a statistic ε-differentially private: b = sensitivity / ε.

        Examples
        --------
        >>> from trueup.noise import Laplace, RoundedLaplace
        >>> Laplace.from_budget(3, sensitivity=2), RoundedLaplace.from_budget(2)
        (Laplace(Fraction(2, 3)), RoundedLaplace(Fraction(1, 2)))
        """
        return cls(pure_scale(epsilon, cls._shift(sensitivity)))

    @property
    def mgf_radius(self) -> float:
        """1/b."""
        return 1 / float(self.scale)


class GaussianFamily(ScaleFamily):
    """Laws with the tails of Gaussian noise."""

    solver: ClassVar[Solver]
    """The least σ for (ε, δ)-differential privacy."""

    @classmethod
    def from_budget(
        cls,
        *,
        rho: Exact | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        sensitivity: Exact = 1,
    ) -> Self:
        """Return the least noise for ρ-zCDP, or for (ε, δ)-differential privacy.

        σ = sensitivity/√(2ρ), or the smallest σ of the analytic Gaussian mechanism [1]_. For the
        discrete Gaussian it is the smallest σ such that it and all larger ones have an exact
        privacy profile [2]_ of at most δ (which falls with σ, but not monotonically).

        References
        ----------
        .. [1] B. Balle, Y.-X. Wang, Improving the Gaussian mechanism for differential privacy,
           ICML 2018.
        .. [2] C. Canonne, G. Kamath, T. Steinke, The discrete Gaussian for differential privacy,
           NeurIPS 2020, Theorem 7.

        Examples
        --------
        >>> from fractions import Fraction
        >>> from trueup.noise import DiscreteGaussian, Gaussian, RoundedGaussian
        >>> Gaussian.from_budget(epsilon=1, delta=1e-5)
        Gaussian(3.7306316...)
        >>> DiscreteGaussian.from_budget(epsilon=1, delta=1e-5)
        DiscreteGaussian(3.7...)
        >>> RoundedGaussian.from_budget(rho=Fraction(1, 8))
        RoundedGaussian(2)
        """
        return cls(gaussian_scale(cls.solver, rho, epsilon, delta, cls._shift(sensitivity)))
