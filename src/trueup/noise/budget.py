"""Families whose one parameter is a scale: stated as a number, or by a privacy budget.

ρ-zero-concentrated privacy fixes σ = Δ/√(2ρ). For (ε, δ) the smallest σ solves δ(σ) = δ with the
exact privacy profile of the family; the bisection keeps its upper end on the private side.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import mpmath
import numpy as np
import scipy

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.series import working_digits
from trueup.noise.theta import SMOOTH, edge_weight, theta

if TYPE_CHECKING:
    from trueup.noise.elementwise import Floats

Solver = Callable[[float, float, float], float]
"""(ε, δ, Δ) ↦ σ."""


@dataclasses.dataclass(frozen=True, repr=False)
class ScaleFamily(Noise):
    """A law that is known up to its scale."""

    counts: ClassVar[bool] = False
    """Whether the statistic moves by integers, so that its sensitivity is one."""

    scale: Exact

    @classmethod
    def _shift(cls, sensitivity: Exact) -> Exact:
        shift = positive(sensitivity, "sensitivity")
        if cls.counts and not isinstance(shift, int):
            hint = "a statistic on the integers moves by an integer: give that, e.g. 1"
            raise TrueupError(f"sensitivity must be an integer, got {sensitivity!r}", hint)
        return shift


class LaplaceFamily(ScaleFamily):
    """Laws with the tails of Laplace noise."""

    @classmethod
    def from_budget(cls, epsilon: Exact, sensitivity: Exact = 1) -> Self:
        """Return the noise that makes a statistic ε-differentially private: b = sensitivity / ε.

        b is exact if both are, else rounded to the private side.

        Examples
        --------
        >>> from trueup.noise import Laplace, RoundedLaplace
        >>> Laplace.from_budget(3, sensitivity=2), RoundedLaplace.from_budget(2)
        (Laplace(Fraction(2, 3)), RoundedLaplace(Fraction(1, 2)))
        """
        given = positive(epsilon, "epsilon"), cls._shift(sensitivity)
        scale = Fraction(given[1]) / Fraction(given[0])
        if not any(isinstance(x, float) for x in given):
            return cls(scale)
        near = float(scale)
        return cls(near if near >= scale else math.nextafter(near, math.inf))

    @property
    def mgf_radius(self) -> float:
        """1/b."""
        return 1 / float(self.scale)

    def _upper_quantile(self, q: Floats) -> Floats:
        return -np.log(2 * q) * float(self.scale)


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
        shift = cls._shift(sensitivity)
        if rho is not None and epsilon is None and delta is None:
            return cls(concentrated_scale(positive(rho, "rho"), shift))
        if rho is None and epsilon is not None and delta is not None:
            loss = float(positive(epsilon, "epsilon"))
            return cls(cls.solver(loss, _probability(delta), float(shift)))
        parts = {"rho": rho, "epsilon": epsilon, "delta": delta}
        given = ", ".join(f"{name}={x!r}" for name, x in parts.items() if x is not None)
        raise TrueupError(
            f"the budget is not clear from {given or 'nothing'}", "give rho, or epsilon and delta"
        )

    def _upper_quantile(self, q: Floats) -> Floats:
        return -np.asarray(scipy.special.ndtri(q)) * float(self.scale)


# -- scales from budgets ---------------------------------------------------------------------------


def concentrated_scale(rho: Exact, sensitivity: Exact) -> Exact:
    """Return Δ/√(2ρ): exact where it is rational, else rounded to the private side.

    Examples
    --------
    >>> concentrated_scale(Fraction(1, 8), 1), concentrated_scale(1, 1)
    (2, 0.7071067811865476)
    """
    square = Fraction(sensitivity) ** 2 / (2 * Fraction(rho))
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root**2 == square and not isinstance(rho, float) and not isinstance(sensitivity, float):
        return root.numerator if root.denominator == 1 else root
    sigma = math.sqrt(square)
    return sigma if Fraction(sigma) ** 2 >= square else math.nextafter(sigma, math.inf)


def least_scale(private: Callable[[float], bool], start: float) -> float:
    """Return a σ that is private while the next smaller float is not, searching from a start.

    Examples
    --------
    >>> least_scale(lambda sigma: 3 / sigma <= 0.25, 1.0)
    12.0
    """
    high = start
    while not private(high):
        high *= 2
    while private(high / 2):
        high /= 2
    return crossing(private, high / 2, high)


def crossing(private: Callable[[float], bool], low: float, high: float) -> float:
    """Return a private σ just above one that is not, between low (not private) and high (private).

    Examples
    --------
    >>> crossing(lambda sigma: sigma >= 1.5, 1.0, 2.0)
    1.5
    """
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


def _probability(delta: Exact) -> float:
    """Return 0 < δ < 1, or refuse it."""
    value = float(number(delta, "delta", positive=True))
    if value < 1:
        return value
    raise TrueupError(
        f"delta must be below 1, got {delta!r}", "give a small probability, e.g. 1e-6"
    )


# -- exact privacy profiles ------------------------------------------------------------------------

BUMPY = 20
"""Below this σ the discrete profile does not fall everywhere: its bumps are looked for."""


def analytic_scale(epsilon: float, delta: float, shift: float) -> float:
    """Return the smallest σ for which Gaussian noise is (ε, δ)-private.

    Examples
    --------
    >>> analytic_scale(1.0, 1e-5, 1.0)
    3.7306316...
    """
    return least_scale(lambda sigma: bool(gaussian_profile(sigma, epsilon, shift) <= delta), shift)


def gaussian_profile(sigma: float, epsilon: float, shift: float, whole: bool = False) -> Any:
    """Return δ = P(Y > y) − e^ε P(Y > y + Δ), y = εσ²/Δ − Δ/2, with digits to spare.

    On the integers, for a large σ, from the Euler-Maclaurin tails.

    Examples
    --------
    >>> print(mpmath.nstr(gaussian_profile(1.0, 1.0, 1.0), 6))
    0.126937
    """
    with working_digits(60 + math.ceil(abs(math.log10(epsilon)))):
        s, e, d = mpmath.mpf(sigma), mpmath.mpf(epsilon), mpmath.mpf(shift)
        y = e * s**2 / d - d / 2
        start = mpmath.floor(y) + 1 if whole else y
        near, far = (
            mpmath.ncdf(-x) + (mpmath.npdf(x) / s * edge_weight(x, s) if whole else 0)
            for x in (start / s, (start + d) / s)
        )
        return near - mpmath.exp(e) * far


def discrete_scale(epsilon: float, delta: float, shift: float) -> float:
    """Return the σ from which on discrete Gaussian noise is (ε, δ)-private.

    δ(σ) = maxₙ P(Y ≥ n) − e^ε P(Y ≥ n + Δ) has bumps between the knots σ² = (n + Δ/2) Δ/ε where
    the maximum moves to the next n. They get lower, and half as much noise again is beyond them.

    Examples
    --------
    >>> discrete_scale(1.0, 1e-5, 1.0)
    3.7...
    """

    def private(sigma: float) -> bool:
        return bool(discrete_profile(sigma, epsilon, shift) <= delta)

    best = least_scale(private, shift)
    above = np.linspace(best, 1.5 * best, 1001).tolist() if best < BUMPY else []
    for low, high in reversed(list(itertools.pairwise(above))):
        if not private(low):
            return crossing(private, low, high)
    return best


def discrete_profile(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ = P(Y > y) − e^ε P(Y > y + Δ), y = εσ²/Δ − Δ/2, or a hair above.

    It is Σ_{k>y} p(k) (1 − e^{ε − (2kΔ+Δ²)/(2σ²)}), in which every term is positive.

    Examples
    --------
    >>> discrete_profile(1.0, 1.0, 1.0)
    0.1413...
    """
    if sigma >= SMOOTH:
        return gaussian_profile(sigma, epsilon, shift, whole=True)
    first = max(math.floor(epsilon * sigma**2 / shift - shift / 2), -math.ceil(39 * sigma) - 1)
    k = np.arange(first, max(first, 0) + math.ceil(12 * sigma) + 40, dtype=float)
    excess = epsilon - (2 * k * shift + shift**2) / (2 * sigma**2)
    masses = np.exp(-0.5 * (k / sigma) ** 2) / theta(sigma)
    return math.fsum(masses * -np.expm1(np.minimum(excess, 0.0))) * (1 + 1e-12)
