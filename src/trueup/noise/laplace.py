"""Laplace noise, on the line and on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.noise import deconvolution
from trueup.noise.budget import LaplaceFamily
from trueup.noise.series import exp, expm1

if TYPE_CHECKING:
    import sympy

    from trueup.domain import Interval
    from trueup.noise.elementwise import Floats
    from trueup.noise.operator import Operator


@dataclasses.dataclass(frozen=True, repr=False, init=False)
class Laplace(LaplaceFamily):
    """State the Laplace law: density e^{−|x|/b} / (2b) on the line.

    E Zᵏ = k! bᵏ for even k, M(t) = 1/(1 − b²t²) for |Re t| < 1/b.

    Parameters
    ----------
    scale
        b, positive; or, by name, what :meth:`from_budget` takes.

    Examples
    --------
    >>> Laplace(2).variance, Laplace(2).moment(4)
    (8, 384)
    >>> Laplace(epsilon=0.5, sensitivity=3)
    Laplace(6)
    """

    rational: ClassVar[bool] = True
    many_points: ClassVar[str] = "cells"
    by_curvature: ClassVar[bool] = True

    def inverse_at(
        self, scale: sympy.Expr, domain: Interval, extension: object = "optimal"
    ) -> Operator:
        """Return f ↦ f − b²f″ inside the domain, extended beyond its bounds."""
        return deconvolution.laplace(scale, domain, extension)

    @staticmethod
    def generating(t: Any, scale: Any) -> Any:
        """Return M(t)."""
        return 1 / (1 - (t * scale) * (t * scale))

    def log_density(self, x: Floats) -> Floats:
        """Return −|x|/b − log 2b."""
        b = float(self.scale)
        return np.asarray(-np.abs(x) / b - math.log(2 * b))

    def _upper(self, x: Floats) -> Floats:
        return np.exp(-x / float(self.scale)) / 2

    def _upper_quantile(self, q: Floats) -> Floats:
        return -np.log(2 * q) * float(self.scale)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(rng.laplace(scale=float(self.scale), size=shape))


@dataclasses.dataclass(frozen=True, repr=False, init=False)
class DiscreteLaplace(LaplaceFamily):
    """State the discrete Laplace law: mass (1−α)/(1+α) α^{|k|} on the integers, α = e^{−1/b}.

    Var Z = 2α/(1−α)², M(t) = (1−α)² / ((1 − αeᵗ)(1 − αe^{−t})) for |Re t| < 1/b.

    Parameters
    ----------
    scale
        b, positive.

    Examples
    --------
    >>> DiscreteLaplace(2).variance
    7.835396...
    """

    lattice: ClassVar[bool] = True
    counts: ClassVar[bool] = True

    def inverse_at(
        self, scale: sympy.Expr, domain: Interval, extension: object = "optimal"
    ) -> Operator:
        """Return f ↦ f − λ·(second difference of f) inside the domain, constant beyond."""
        return deconvolution.discrete_laplace(scale, domain)

    @staticmethod
    def generating(t: Any, scale: Any) -> Any:
        """Return M(t)."""
        rate = 1 / scale
        square = expm1(-rate) * expm1(-rate)
        return square / (expm1(t - rate) * expm1(-t - rate))

    def log_density(self, x: Floats) -> Floats:
        """Return −|k|/b + log((1 − α)/(1 + α))."""
        b = float(self.scale)
        return np.asarray(-np.abs(x) / b + math.log(math.tanh(1 / (2 * b))))

    def _upper(self, x: Floats) -> Floats:
        b = float(self.scale)
        return np.exp(-(x + 1) / b) / (1 + math.exp(-1 / b))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        """Return differences of two geometric draws."""
        p = -math.expm1(-1 / float(self.scale))
        return np.asarray(rng.geometric(p, shape)) - np.asarray(rng.geometric(p, shape))


@dataclasses.dataclass(frozen=True, repr=False, init=False)
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
    counts: ClassVar[bool] = True
    many_points: ClassVar[str] = "echoes"

    @staticmethod
    def generating(t: Any, scale: Any) -> Any:
        """Return 1 − s + ½(1/s − s)·Σ_{k≥1} s^{2k} (e^{tk} + e^{−tk})."""
        rate = 1 / scale
        sides = 1 / expm1(rate - t) + 1 / expm1(rate + t)
        return sides * (expm1(rate) * exp(-rate / 2) / 2) - expm1(-rate / 2)

    def log_density(self, x: Floats) -> Floats:
        """Return log(½(1 − s²)) − (|k| − ½)/b, and log(1 − s) at 0."""
        b, size = float(self.scale), np.abs(np.asarray(x, float))
        tails = math.log(-0.5 * math.expm1(-1 / b)) - (size - 0.5) / b
        return np.where(size == 0, math.log(-math.expm1(-0.5 / b)), tails)

    def _upper(self, x: Floats) -> Floats:
        return np.exp(-(x + 0.5) / float(self.scale)) / 2

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.rint(rng.laplace(scale=float(self.scale), size=shape))
