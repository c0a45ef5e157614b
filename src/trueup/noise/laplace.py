"""Laplace noise."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.exact import symbolic
from trueup.noise import deconvolution
from trueup.noise.base import scaled_power
from trueup.noise.scale_families import LaplaceFamily

if TYPE_CHECKING:
    import sympy

    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field
    from trueup.noise.operator import Operator


@dataclasses.dataclass(frozen=True, repr=False)
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

    many_points: ClassVar[str] = "cells"
    by_curvature: ClassVar[bool] = True

    def allows_conditions(self, domain: Interval) -> bool:
        """Tell whether the statistic is real: on integers the cells are read at many points."""
        return not domain.lattice

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator:
        """Return f ↦ f − b²f″ inside the domain, extended beyond its bounds."""
        return self.inverse_at(symbolic(self.scale), domain, extension)

    def inverse_at(
        self, scale: sympy.Expr, domain: Interval, extension: object = "optimal"
    ) -> Operator:
        """Return the operator at another scale, a number or a symbol."""
        return deconvolution.laplace(scale, domain, extension)

    def _moment(self, k: int) -> Exact:
        return 0 if k % 2 else scaled_power(math.factorial(k), self.scale, k)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        """Return j! bʲ ½ [(1 − bc)^{−j−1} + (−1)ʲ (1 + bc)^{−j−1}]."""
        b = field.number(self.scale)
        right, left = 1 - b * c, 1 + b * c
        return [
            math.factorial(j) * b**j * (1 / right ** (j + 1) + (-1) ** j / left ** (j + 1)) / 2
            for j in range(order + 1)
        ]

    def _density(self, x: Floats) -> Floats:
        b = float(self.scale)
        return np.exp(-np.abs(x) / b) / 2 / b

    def log_density(self, x: Floats) -> Floats:
        """Return −|x|/b − log 2b."""
        b = float(self.scale)
        return np.asarray(-np.abs(x) / b - math.log(2 * b))

    def _cdf(self, x: Floats) -> Floats:
        tail = np.exp(-np.abs(x) / float(self.scale)) / 2
        return np.where(x < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        size = -np.log(2 * np.minimum(p, 1 - p)) * float(self.scale)
        return np.asarray(np.where(p < 0.5, -size, size) + 0.0)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(rng.laplace(scale=float(self.scale), size=shape))
