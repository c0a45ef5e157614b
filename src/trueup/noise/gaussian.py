"""Gaussian noise, on the line and on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy

from trueup.noise.budget import GaussianFamily, analytic_scale, discrete_scale
from trueup.noise.elementwise import check_drawable
from trueup.noise.series import Series, exp, is_real, mean_exp, ncdf, pi_of, significant
from trueup.noise.theta import CROSSING, tail_sum, theta

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
        if scale < CROSSING:
            total = _around(lambda k: exp(t * k - k * k / scale / scale / 2), _direct(t, scale))
            return total / _around(lambda k: exp(0 * scale - k * k / scale / scale / 2), 8)
        turn = 2j * pi_of(scale) * scale
        whole = _around(lambda m: exp((turn * m) * (turn * m) / 2).real, _dual(t, scale))
        return _dual_sum(lambda s: exp((s * scale) * (s * scale) / 2), t, scale) / whole

    def log_density(self, x: Floats) -> Floats:
        """Return −k²/(2σ²) − log Θ."""
        sigma = float(self.scale)
        return np.asarray(-0.5 * (x / sigma) ** 2 - math.log(theta(sigma)))

    def _upper(self, x: Floats) -> Floats:
        sigma = float(self.scale)
        return tail_sum(x + 1, sigma) / theta(sigma)

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
        if scale < CROSSING:
            return _around(lambda k: exp(t * k) * _mass(k, scale), _direct(t, scale))
        return _dual_sum(
            lambda s: exp((s * scale) * (s * scale) / 2 - s / 2) * mean_exp(s), t, scale
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
        check_drawable(self.scale)
        return np.rint(rng.normal(scale=float(self.scale), size=shape))


def _mass(k: int, scale: Any) -> Any:
    """Return Φ((½ − |k|)/σ) − Φ((−½ − |k|)/σ)."""
    near, far = (ncdf((side - 2 * abs(k)) / (2 * scale)) for side in (1, -1))
    return near - far


def _around(term: Callable[[int], Any], reach: int) -> Any:
    """Return the sum of the terms from −reach to reach, the largest first."""
    order = sorted(range(-reach, reach + 1), key=abs)
    return sum((term(k) for k in order[1:]), term(order[0]))


def _direct(t: Any, scale: Any) -> int:
    """Return how far a direct sum reaches: the largest term of e^{tk − k²/(2σ²)} is at σ²·Re t."""
    start = t.coefficients[0] if isinstance(t, Series) else t
    slope = np.abs(start.real).max(initial=0) if isinstance(start, np.ndarray) else abs(start.real)
    return int(scale * (significant(t) + 2 * slope * scale)) + 3


def _dual(t: Any, scale: Any) -> int:
    """Return how many whole turns 2πi on either side matter."""
    return int(significant(t) / (2 * math.pi * scale)) + 2


def _dual_sum(term: Callable[[Any], Any], t: Any, scale: Any) -> Any:
    """Return Σₘ term(t + 2πim), which is real for real t."""
    turn = 2j * pi_of(scale)
    total = _around(lambda m: term(t + turn * m if m else t), _dual(t, scale))
    if not isinstance(total, Series):
        return total.real if is_real(t) else total
    if not is_real(t.coefficients[0]):
        return total
    return Series([a.real for a in total.coefficients])
