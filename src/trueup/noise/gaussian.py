"""Gaussian noise."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy
import sympy

from trueup.noise.base import scaled_power
from trueup.noise.closed_forms import gaussian_tilted
from trueup.noise.fields import Symbols
from trueup.noise.privacy import analytic_scale
from trueup.noise.scale_families import GaussianFamily

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.budget import Solver
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field


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

    solver: ClassVar[Solver] = staticmethod(analytic_scale)

    def _moment(self, k: int) -> Exact:
        return 0 if k % 2 else scaled_power(math.prod(range(1, k, 2)), self.scale, k)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        return gaussian_tilted(field.number(self.scale) ** 2, c, order, field)

    def tilted_at(self, scale: sympy.Expr, c: sympy.Expr, order: int) -> list[sympy.Expr]:
        """Return E[Zʲ e^{cZ}], j = 0..order, at another scale, a number or a symbol."""
        values = gaussian_tilted(scale**2, c, order, Symbols())
        return values if c.is_real else [sympy.expand_complex(value) for value in values]

    def _density(self, x: Floats) -> Floats:
        sigma = float(self.scale)
        return np.exp(-0.5 * (x / sigma) ** 2) / math.sqrt(2 * math.pi) / sigma

    def _cdf(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr(x / float(self.scale)))

    def _quantile(self, p: Floats) -> Floats:
        return np.asarray(scipy.special.ndtri(p) * float(self.scale))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(rng.normal(scale=float(self.scale), size=shape))
