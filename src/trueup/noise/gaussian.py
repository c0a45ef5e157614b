"""Gaussian noise, on the line and on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import mpmath
import numpy as np
import scipy

from trueup.noise.budget import GaussianFamily, analytic_scale, discrete_scale
from trueup.noise.series import Series, exp, mean_exp
from trueup.noise.theta import tail_sum, theta

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.noise.budget import Solver
    from trueup.noise.elementwise import Floats


@dataclasses.dataclass(frozen=True, repr=False)
class Gaussian(GaussianFamily):
    """State the Gaussian law: density e^{−x²/(2σ²)} / (σ√(2π)) on the line.

    E Zᵏ = (k−1)!! σᵏ for even k, M(t) = e^{σ²t²/2} for every t.

    Parameters
    ----------
    scale
        σ, positive.

    Examples
    --------
    >>> Gaussian(2).variance, Gaussian(2).moment(4)
    (4, 48)
    """

    rational: ClassVar[bool] = True
    solver: ClassVar[Solver] = staticmethod(analytic_scale)

    @staticmethod
    def generating(t: Any, scale: Any) -> Any:
        """Return M(t)."""
        return exp((t * scale) * (t * scale) / 2)

    def log_density(self, x: Floats) -> Floats:
        """Return −x²/(2σ²) − log σ√(2π)."""
        sigma = float(self.scale)
        return np.asarray(-0.5 * (x / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi)))

    def _upper(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr(-x / float(self.scale)))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(rng.normal(scale=float(self.scale), size=shape))


@dataclasses.dataclass(frozen=True, repr=False)
class DiscreteGaussian(GaussianFamily):
    """State the discrete Gaussian law: mass e^{−k²/(2σ²)} / Θ on the integers.

    By Poisson summation Σₖ e^{tk − k²/(2σ²)} = σ√(2π) Σₘ e^{σ²(t + 2πim)²/2}: the direct sum is
    short for small σ, the dual one for large σ. Θ is the sum at t = 0.

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
    counts: ClassVar[bool] = True
    solver: ClassVar[Solver] = staticmethod(discrete_scale)

    @staticmethod
    def generating(t: Any, scale: Any) -> Any:
        """Return M(t), |Im t| ≤ π."""

        def total(t: Any) -> Any:
            """Return Σₖ e^{tk − k²/(2σ²)}, over σ√(2π) where σ is large."""
            return _over_integers(
                lambda k: exp(t * k - k * k / scale / scale / 2),
                lambda s: exp((s * scale) * (s * scale) / 2),
                t,
                scale,
            )

        return total(t) / total(0 * scale)

    def log_density(self, x: Floats) -> Floats:
        """Return −k²/(2σ²) − log Θ."""
        sigma = float(self.scale)
        return np.asarray(-0.5 * (x / sigma) ** 2 - math.log(theta(sigma)))

    def _upper(self, x: Floats) -> Floats:
        sigma = float(self.scale)
        return tail_sum(x + 1, sigma) / theta(sigma)

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


WIDE = 1e3
"""From this σ on the mass at k is φ(z)/σ·(1 + (z² − 1)/(24σ²)), z = k/σ, to 1e-9 at z = 38."""


@dataclasses.dataclass(frozen=True, repr=False)
class RoundedGaussian(GaussianFamily):
    """State the law of a Gaussian number rounded to the nearest integer.

    The mass at k is Φ((k+½)/σ) − Φ((k−½)/σ), the density of N(0, σ²) plus a uniform number on
    [−½, ½]; M is a direct sum for small σ and, by Poisson summation, a short dual one for large σ.

    Parameters
    ----------
    scale
        σ, positive, of the Gaussian noise before rounding.

    Examples
    --------
    >>> RoundedGaussian(3).variance  # σ² + 1/12
    9.083333...
    """

    lattice: ClassVar[bool] = True
    solver: ClassVar[Solver] = staticmethod(analytic_scale)

    @staticmethod
    def generating(t: Any, scale: Any) -> Any:
        """Return M(t), |Im t| ≤ π."""
        return _over_integers(
            lambda k: exp(t * k) * _mass(k, scale),
            lambda s: exp((s * scale) * (s * scale) / 2 - s / 2) * mean_exp(s),
            t,
            scale,
        )

    def log_density(self, x: Floats) -> Floats:
        """Return log (Φ((k+½)/σ) − Φ((k−½)/σ)), or of a smooth density's mean over a short cell."""
        sigma, size = float(self.scale), np.abs(np.asarray(x, float))
        with np.errstate(all="ignore"):
            if sigma > WIDE:
                z = size / sigma
                found = np.log1p((z * z - 1) / (24 * sigma**2)) - 0.5 * z * z
                found = found - math.log(sigma * math.sqrt(2 * math.pi))
            else:
                near = scipy.special.log_ndtr((0.5 - size) / sigma)
                gap = scipy.special.log_ndtr((-0.5 - size) / sigma) - near
                found = near + np.log(-np.expm1(gap))
        return np.where(np.isnan(found) & ~np.isnan(size), -np.inf, found)  # ∞ − ∞ far out

    def _upper(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr(-(x + 0.5) / float(self.scale)))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.rint(rng.normal(scale=float(self.scale), size=shape))


def _mass(k: int, scale: Any) -> Any:
    """Return Φ((½ − |k|)/σ) − Φ((−½ − |k|)/σ)."""
    below = scipy.special.ndtr if isinstance(scale, float) else mpmath.ncdf
    return below((1 - 2 * abs(k)) / (2 * scale)) - below((-1 - 2 * abs(k)) / (2 * scale))


CROSSING = 0.4
"""σ = 1/√(2π): the direct and the dual sum converge equally fast."""


def _over_integers(
    direct: Callable[[int], Any], dual: Callable[[Any], Any], t: Any, scale: Any
) -> Any:
    """Return Σₖ direct(k) or, by Poisson summation, Σₘ dual(t + 2πim), whichever is short."""
    if scale < CROSSING:
        start = t.coefficients[0] if isinstance(t, Series) else t
        slope = np.max(np.abs(np.real(start)), initial=0)  # e^{tk − k²/(2σ²)} is largest at tσ²
        reach, term = 15 + int(2 * slope * scale * scale), direct
    else:
        turn = 2j * (math.pi if isinstance(scale, float) else +mpmath.pi)
        reach, term = 10 if scale < 2 else 2, lambda m: dual(t + turn * m if m else t)
    largest_first = sorted(range(-reach, reach + 1), key=abs)
    return sum((term(k) for k in largest_first[1:]), term(0))
