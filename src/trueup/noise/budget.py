"""Families whose one parameter is a scale: stated as a number, or by a privacy budget.

ρ-zero-concentrated privacy fixes σ = Δ/√(2ρ). For (ε, δ) the smallest σ solves δ(σ) = δ with the
exact privacy profile of the family; the bisection keeps its upper end on the private side.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Self

import mpmath

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.elementwise import first
from trueup.noise.series import working_digits


@dataclasses.dataclass(frozen=True, repr=False, init=False)
class ScaleFamily(Noise):
    """A law that is known up to its scale, given as such or by what ``from_budget`` takes."""

    counts: ClassVar[bool] = False
    """Whether the statistic moves by integers, so that its sensitivity is one."""

    __signature__: ClassVar[inspect.Signature] = inspect.Signature(
        [inspect.Parameter("scale", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    )

    from_budget: ClassVar[Callable[..., Any]]
    """Make the noise that a privacy budget asks for."""

    scale: Exact

    def __init__(self, scale: Exact | None = None, **budget: Any) -> None:
        if budget and scale is not None:
            name = type(self).__name__
            raise TrueupError(
                f"{name}: scale and {next(iter(budget))} exclude each other, each says how large "
                "the noise is",
                f"write {name}(scale), or the privacy budget alone",
            )
        takes = inspect.signature(self.from_budget).parameters if budget else {}
        strange = [f"has no parameter {name!r}" for name in budget if name not in takes]
        strange += [
            f"needs {p.name}"
            for p in takes.values()
            if p.default is inspect.Parameter.empty and p.name not in budget
        ]
        if strange:
            hint = f"it takes scale, or {', '.join(takes)}"
            raise TrueupError(f"{type(self).__name__} {strange[0]}", hint)
        value = self.from_budget(**budget).scale if budget else scale
        object.__setattr__(self, "scale", self._checked("scale", value))

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


class GaussianFamily(ScaleFamily):
    """Laws with the tails of Gaussian noise."""

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
            return cls(_concentrated(positive(rho, "rho"), shift))
        if rho is None and epsilon is not None and delta is not None:
            loss = float(positive(epsilon, "epsilon"))
            chance = float(number(delta, "delta", positive=True))
            if chance < 1:
                return cls(cls._private(loss, chance, float(shift)))
            hint = "give a small probability, e.g. 1e-6"
            raise TrueupError(f"delta must be below 1, got {delta!r}", hint)
        parts = {"rho": rho, "epsilon": epsilon, "delta": delta}
        given = ", ".join(f"{name}={x!r}" for name, x in parts.items() if x is not None)
        raise TrueupError(
            f"the budget is not clear from {given or 'nothing'}", "give rho, or epsilon and delta"
        )

    @staticmethod
    def _private(epsilon: float, delta: float, shift: float) -> float:
        """Return the smallest σ for (ε, δ)-differential privacy."""
        return least_scale(_profile, epsilon, delta, shift)


def least_scale(
    profile: Callable[[float, float, float], Any], epsilon: float, delta: float, shift: float
) -> float:
    """Return the smallest σ with profile(σ, ε, Δ) ≤ δ, up to that of ρ + 2√(ρ log 1/δ) = ε.

    Examples
    --------
    >>> least_scale(lambda sigma, epsilon, shift: 1 / (2 * sigma), 1.0, 0.5, 1.0)
    1.0
    """
    depth = -math.log(delta)
    high = shift * (math.sqrt(depth + epsilon) + math.sqrt(depth)) / epsilon / math.sqrt(2)
    private = lambda sigma: profile(float(sigma), epsilon, shift) <= delta  # noqa: E731
    return float(first(private, min(shift, high) / 1000, high))


def _concentrated(rho: Exact, sensitivity: Exact) -> float:
    """Return Δ/√(2ρ), rounded to the private side."""
    square = Fraction(sensitivity) ** 2 / (2 * Fraction(rho))
    sigma = math.sqrt(square)
    return sigma if Fraction(sigma) ** 2 >= square else math.nextafter(sigma, math.inf)


def _profile(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ = P(Y > y) − e^ε P(Y > y + Δ), y = εσ²/Δ − Δ/2, with digits to spare."""
    with working_digits(60 + math.ceil(abs(math.log10(epsilon)))):
        s, e, d = map(mpmath.mpf, (sigma, epsilon, shift))
        y = e * s**2 / d - d / 2
        return mpmath.ncdf(-y / s) - mpmath.exp(e) * mpmath.ncdf(-(y + d) / s)
