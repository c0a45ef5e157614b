"""Discrete Laplace (two-sided geometric) noise on the integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.exact import symbolic
from trueup.noise import deconvolution
from trueup.noise.closed_forms import geometric_sums
from trueup.noise.lattice import check_drawable, smallest_integer
from trueup.noise.scale_families import LaplaceFamily

if TYPE_CHECKING:
    import sympy

    from trueup.domain import Interval
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field
    from trueup.noise.operator import Operator


@dataclasses.dataclass(frozen=True, repr=False)
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
    exact_tilt: ClassVar[bool] = False
    counts: ClassVar[bool] = True

    def allows_conditions(self, domain: Interval) -> bool:
        """Tell that conditions between statistics can be used."""
        return True

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator:
        """Return f ↦ f − λ·(second difference of f) inside the domain, constant beyond."""
        return self.inverse_at(symbolic(self.scale), domain)

    def inverse_at(
        self, scale: sympy.Expr, domain: Interval, extension: object = "optimal"
    ) -> Operator:
        """Return the operator at another scale, a number or a symbol."""
        return deconvolution.discrete_laplace(scale, domain)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        """Return (1−α)/(1+α) [Σ_{k≥0} kʲ (αeᶜ)ᵏ + (−1)ʲ Σ_{k≥1} kʲ (αe^{−c})ᵏ]."""
        rate = 1 / field.number(self.scale)
        alpha = field.exp(-rate)
        right = geometric_sums(field.exp(c - rate), order)
        left = geometric_sums(field.exp(-c - rate), order)
        left[0] -= 1
        weight = (1 - alpha) / (1 + alpha)
        return [
            weight * (r + (-1) ** j * s) for j, (r, s) in enumerate(zip(right, left, strict=True))
        ]

    def _density(self, x: Floats) -> Floats:
        b = float(self.scale)
        return math.tanh(0.5 / b) * np.exp(-np.abs(x) / b)

    def log_density(self, x: Floats) -> Floats:
        """Return −|k|/b + log((1 − α)/(1 + α))."""
        b = float(self.scale)
        return np.asarray(-np.abs(x) / b + math.log(math.tanh(1 / (2 * b))))

    def _cdf(self, x: Floats) -> Floats:
        k, b = np.floor(x), float(self.scale)
        tail = np.exp(-np.where(k < 0, -k, k + 1) / b) / (1 + math.exp(-1 / b))
        return np.where(k < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        b = float(self.scale)
        size = -b * np.log(np.minimum(p, 1 - p) * (1 + math.exp(-1 / b)))
        guess = np.where(p < 0.5, -size, size - 1)
        return smallest_integer(self._cdf, p, guess)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        """Return differences of two geometric draws."""
        check_drawable(self.scale)
        p = -math.expm1(-1 / float(self.scale))
        return np.asarray(rng.geometric(p, shape)) - np.asarray(rng.geometric(p, shape))
