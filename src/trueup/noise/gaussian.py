"""Gaussian noise, on the line and on the integers."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import mpmath
import numpy as np
import scipy

from trueup.noise.budget import GaussianFamily, least_scale
from trueup.noise.series import Series, exp, mean_exp

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.noise.elementwise import Floats

SMOOTH = 2000
"""From this σ on sums over the integers are integrals with one correction."""


@dataclasses.dataclass(frozen=True, repr=False, init=False)
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

    def _upper_quantile(self, q: Floats) -> Floats:
        return -np.asarray(scipy.special.ndtri(q)) * float(self.scale)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(rng.normal(scale=float(self.scale), size=shape))


@dataclasses.dataclass(frozen=True, repr=False, init=False)
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
        """Return Σ_{k>x}, read from a table, or the integral from x + ½ on for a large σ."""
        sigma = float(self.scale)
        if sigma >= SMOOTH:
            z = (x + 0.5) / sigma
            density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
            return scipy.special.ndtr(-z) - np.minimum(z, 50.0) * density / (24 * sigma**2)
        table = _tails(sigma)
        index = np.nan_to_num(np.minimum(x + 1, table.size - 1), nan=0.0).astype(np.int64)
        return np.where(np.isnan(x), x, table[index])

    @staticmethod
    def _private(epsilon: float, delta: float, shift: float) -> float:
        """Return the σ from which on the noise is (ε, δ)-private.

        δ(σ) = maxₙ P(Y ≥ n) − e^ε P(Y ≥ n + Δ) has bumps between the knots σ² = (n + Δ/2) Δ/ε where
        the maximum moves to the next n. They get lower, and half as much noise again is beyond
        them. For a large σ, δ is at most ∂δ/∂σ·1/(24σ) above that of continuous noise.
        """
        smooth = GaussianFamily._private(epsilon, delta, shift)
        if smooth >= SMOOTH:
            return smooth + 1 / (12 * smooth)
        best = least_scale(discrete_profile, epsilon, delta, shift)
        above: list[float] = np.linspace(best, 1.5 * best, 1001).tolist()
        private = [discrete_profile(sigma, epsilon, shift) <= delta for sigma in above]
        return above[max((i + 1 for i, right in enumerate(private) if not right), default=0)]


def discrete_profile(sigma: float, epsilon: float, shift: float) -> float:
    """Return δ = P(Y > y) − e^ε P(Y > y + Δ), y = εσ²/Δ − Δ/2, or a hair above.

    It is Σ_{k>y} p(k) (1 − e^{ε − (2kΔ+Δ²)/(2σ²)}), in which every term is positive.

    Examples
    --------
    >>> discrete_profile(1.0, 1.0, 1.0)
    0.1413...
    """
    start = max(math.floor(epsilon * sigma**2 / shift - shift / 2), -math.ceil(39 * sigma) - 1)
    k = np.arange(start, max(start, 0) + math.ceil(12 * sigma) + 40, dtype=float)
    excess = epsilon - (2 * k * shift + shift**2) / (2 * sigma**2)
    masses = np.exp(-0.5 * (k / sigma) ** 2) / theta(sigma)
    return math.fsum(masses * -np.expm1(np.minimum(excess, 0.0))) * (1 + 1e-12)


def theta(sigma: float) -> float:
    """Return Σₖ e^{−k²/(2σ²)}: σ√(2π) up to 4·e^{−2π²σ²}, which is below 1e-34 from σ = 2 on.

    Examples
    --------
    >>> theta(1e6) / math.sqrt(2 * math.pi)
    1000000.0
    """
    if sigma > 2:
        return sigma * math.sqrt(2 * math.pi)
    return 1 + 2 * math.fsum(math.exp(-0.5 * (k / sigma) ** 2) for k in range(1, 20))


@functools.lru_cache(maxsize=16)
def _tails(sigma: float) -> Floats:
    """Return P(Z ≥ n) for n = 0, 1, … until it underflows, then 0."""
    k = np.arange(math.ceil(39 * sigma) + 2)
    masses = np.exp(-0.5 * (k / sigma) ** 2) / theta(sigma)
    return np.append(np.cumsum(masses[::-1])[::-1], 0.0)


WIDE = 1e3
"""From this σ on the mass at k is φ(z)/σ·(1 + (z² − 1)/(24σ²)), z = k/σ, to 1e-9 at z = 38."""


@dataclasses.dataclass(frozen=True, repr=False, init=False)
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
