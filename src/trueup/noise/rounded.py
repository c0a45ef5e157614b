"""Continuous noise rounded to the nearest integer: what some libraries add to counts."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import mpmath
import numpy as np
import scipy

from trueup.noise.closed_forms import exponential_integrals, gaussian_tilted, geometric_sums
from trueup.noise.lattice import check_drawable, smallest_integer
from trueup.noise.privacy import analytic_scale
from trueup.noise.scale_families import GaussianFamily, LaplaceFamily
from trueup.noise.theta import CROSSING, sigmas

if TYPE_CHECKING:
    import sympy

    from trueup.noise.budget import Solver
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field


@dataclasses.dataclass(frozen=True, repr=False)
class RoundedLaplace(LaplaceFamily):
    """State the law of a Laplace number rounded to the nearest integer.

    With s = e^{−1/(2b)} the mass is 1 − s at 0 and ½(1/s − s)·s^{2|k|} elsewhere: the tails of a
    discrete Laplace law, with less mass at 0.

    Parameters
    ----------
    scale
        b, positive, of the Laplace noise before rounding.

    Examples
    --------
    >>> RoundedLaplace(1).pmf([0, 1])
    array([0.39346934, 0.19170025])
    """

    lattice: ClassVar[bool] = True
    exact_tilt: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    many_points: ClassVar[str] = "echoes"

    @property
    def echoes(self) -> tuple[float, float]:
        """C and ρ of the inverse on all integers, f + C·Σ_{k≥1} ρᵏ (f(x+k) − 2f(x) + f(x−k)).

        ρ is the zero of the generating function inside the unit circle,
        ρ = −s / ((1+s)√(1+s²) + 1 + s + s²), and C = (1+s)√(1+s²) / (1−s)².

        Examples
        --------
        >>> RoundedLaplace(1).echoes
        (12.136..., -0.157...)
        """
        half = 1 / (2 * float(self.scale))
        s = math.exp(-half)
        root = (1 + s) * math.sqrt(1 + s * s)
        return root / math.expm1(-half) ** 2, -s / (root + 1 + s + s * s)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        """Return [j = 0](1 − s) + ½(1/s − s) Σ_{k≥1} kʲ s^{2k} (e^{ck} + (−1)ʲ e^{−ck})."""
        rate = 1 / field.number(self.scale)
        right, left = (geometric_sums(field.exp(t - rate), order) for t in (c, -c))
        weight = (field.exp(rate / 2) - field.exp(-rate / 2)) / 2
        values = [
            weight * (r + (-1) ** j * s) for j, (r, s) in enumerate(zip(right, left, strict=True))
        ]
        values[0] += 1 - field.exp(-rate / 2) - 2 * weight
        return values

    def _density(self, x: Floats) -> Floats:
        b = float(self.scale)
        tails = -0.5 * math.expm1(-1 / b) * np.exp(-np.maximum(np.abs(x) - 0.5, 0.0) / b)
        return np.where(x == 0, -math.expm1(-0.5 / b), tails)

    def log_density(self, x: Floats) -> Floats:
        """Return log(½(1 − s²)) − (|k| − ½)/b, and log(1 − s) at 0."""
        b, size = float(self.scale), np.abs(np.asarray(x, float))
        tails = math.log(-0.5 * math.expm1(-1 / b)) - (size - 0.5) / b
        return np.where(size == 0, math.log(-math.expm1(-0.5 / b)), tails)

    def _cdf(self, x: Floats) -> Floats:
        k, b = np.floor(x), float(self.scale)
        tail = np.exp(-np.abs(k + 0.5) / b) / 2
        return np.where(k < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        size = -np.log(2 * np.minimum(p, 1 - p)) * float(self.scale)
        return smallest_integer(self._cdf, p, np.where(p < 0.5, -size, size) - 0.5)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        check_drawable(self.scale)
        return np.rint(rng.laplace(scale=float(self.scale), size=shape))


@dataclasses.dataclass(frozen=True, repr=False)
class RoundedGaussian(GaussianFamily):
    """State the law of a Gaussian number rounded to the nearest integer.

    The mass at k is Φ((k+½)/σ) − Φ((k−½)/σ), the density of N(0, σ²) plus a uniform number on
    [−½, ½]; its moments are direct sums for small σ and, by Poisson summation, short dual sums for
    large σ.

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
    exact_tilt: ClassVar[bool] = False
    solver: ClassVar[Solver] = staticmethod(analytic_scale)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        sigma = field.number(self.scale)
        sums = _direct_sums if self.scale < CROSSING else _dual_sums
        return sums(sigma, c, order, field)

    def _working_digits(self, c: sympy.Expr, order: int) -> int:
        return order + super()._working_digits(c, order)

    def _density(self, x: Floats) -> Floats:
        sigma = float(self.scale)
        near = _integrated(np.abs(x), sigma)
        size = np.abs(x)
        far = scipy.special.ndtr((0.5 - size) / sigma) - scipy.special.ndtr((-0.5 - size) / sigma)
        with np.errstate(invalid="ignore"):
            return np.where(size / sigma / sigma < 4, near, far) if sigma > 0.5 else far

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of Φ((k+½)/σ) − Φ((k−½)/σ) from those of the two tails."""
        sigma, size = float(self.scale), np.abs(np.asarray(x, float))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = scipy.special.log_ndtr((0.5 - size) / sigma)
            gap = scipy.special.log_ndtr((-0.5 - size) / sigma) - near
            far = near + np.log(-np.expm1(gap))
            density = np.log(self._density(size))
        return np.where(np.isfinite(density) | np.isnan(far), density, far)

    def _cdf(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr((np.floor(x) + 0.5) / float(self.scale)))

    def _quantile(self, p: Floats) -> Floats:
        guess = scipy.special.ndtri(p) * float(self.scale) - 0.5
        return smallest_integer(self._cdf, p, guess)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        check_drawable(self.scale)
        return np.rint(rng.normal(scale=float(self.scale), size=shape))


def _integrated(x: Floats, sigma: float) -> Floats:
    """Return ∫ φ(t) dt over [(x − ½)/σ, (x + ½)/σ] by Gauss–Legendre: nothing cancels."""
    half, total = 0.5 / sigma, np.zeros_like(x)
    for node, weight in zip(*np.polynomial.legendre.leggauss(20), strict=True):
        total = total + weight * np.exp(-0.5 * (x / sigma + half * node) ** 2)
    return np.asarray(total * half / math.sqrt(2 * math.pi))


@lru_cache(maxsize=32)
def _masses(sigma: Any, largest: int, digits: int) -> list[Any]:
    """Return the masses at 0..largest in the working precision (part of the key)."""
    tails = [mpmath.ncdf(-(k - mpmath.mpf(1) / 2) / sigma) for k in range(largest + 2)]
    return [a - b for a, b in pairwise(tails)]


def _direct_sums(sigma: Any, c: Any, order: int, field: Field) -> list[Any]:
    """Return Σₖ kʲ e^{ck} P(Z = k) for j = 0..order, term by term."""
    growth = abs(mpmath.re(c)) * sigma
    largest = int((sigmas(order) + 2 * growth) * sigma) + 3
    masses = _masses(sigma, largest, mpmath.mp.dps)
    terms = [(k, field.exp(c * k) * masses[abs(k)]) for k in range(-largest, largest + 1)]
    return [mpmath.fsum(k**j * mass for k, mass in terms) for j in range(order + 1)]


def _dual_sums(sigma: Any, c: Any, order: int, field: Field) -> list[Any]:
    """Return the same by Poisson summation: Σₘ E[Yʲ e^{(c + 2πim)Y}], Y = N(0, σ²) + uniform."""
    turn = 2 * mpmath.pi
    centre = -int(mpmath.nint(mpmath.im(c) / turn))
    width = int(sigmas(order) / (turn * sigma)) + 2
    sums = [mpmath.mpf(0)] * (order + 1)
    for m in range(centre - width, centre + width + 1):
        t = c + mpmath.mpc(0, turn * m) if m else c
        wide = gaussian_tilted(sigma**2, t, order, field)
        narrow = _uniform_tilted(t, order, field)
        for j in range(order + 1):
            sums[j] += sum(comb(j, i) * wide[i] * narrow[j - i] for i in range(j + 1))
    return [s if mpmath.im(c) else mpmath.re(s) for s in sums]


def _uniform_tilted(t: Any, order: int, field: Field) -> list[Any]:
    """Return ∫ uʲ e^{tu} du over [−½, ½]: closed, or a power series where that would cancel."""
    half = mpmath.mpf(1) / 2
    if abs(t) >= 1:
        return exponential_integrals(t, -half, half, order, field)
    terms = range(mpmath.mp.dps + 10)
    factors = [t**n / mpmath.factorial(n) for n in terms]
    return [
        mpmath.fsum(factors[n] * 2 * half ** (j + n + 1) / (j + n + 1) for n in terms[j % 2 :: 2])
        for j in range(order + 1)
    ]
