"""Student t noise."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from trueup.noise.base import Noise

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats

FAR = 1e9
"""From so many s√ν on the tail is a power of |x| to all digits."""


@dataclasses.dataclass(frozen=True, repr=False)
class StudentT(Noise):
    """State the Student t law: density ∝ (1 + x²/(νs²))^{−(ν+1)/2} on the line.

    E Zᵏ = sᵏ ν^{k/2} (k−1)!! / ((ν−2)(ν−4)…(ν−k)) for even k < ν. There is no generating function:
    only polynomials are debiased.

    Parameters
    ----------
    df
        ν, positive.
    scale
        s, positive.

    Examples
    --------
    >>> StudentT(5).variance, StudentT(5).highest_moment
    (Fraction(5, 3), 4)
    """

    df: Exact
    scale: Exact = 1

    @property
    def highest_moment(self) -> int | None:
        """The largest integer below ν."""
        return math.ceil(self.df) - 1

    def _moments(self, order: int) -> list[Exact]:
        nu, s = Fraction(self.df), Fraction(self.scale)
        values = [Fraction(1), Fraction(0)]
        for k in range(2, order + 1):
            even = values[k - 2] * (k - 1) * nu / (nu - k) * s**2
            values.append(even if k % 2 == 0 else Fraction(0))
        exact: list[Exact] = list(values[: order + 1])
        return exact if self._is_exact else [float(m) if m else 0 for m in exact]

    def log_density(self, x: Floats) -> Floats:
        """Return −(ν+1)/2·log(1 + x²/(νs²)) − log(√ν s B(ν/2, ½))."""
        nu, width = float(self.df), float(self.scale) * math.sqrt(self.df)
        z = np.abs(x) / width
        depth = np.where(z < 1, np.log1p(z * z) / 2, np.log(np.hypot(1.0, z)))
        return np.asarray(-(nu + 1) * depth - math.log(width) - scipy.special.betaln(nu / 2, 0.5))

    def _upper(self, x: Floats) -> Floats:
        """Return scipy's tail, and P(Z > s√ν z) = z^{−ν} / (ν B(ν/2, ½)) for very large z."""
        nu, z = float(self.df), x / float(self.scale) / math.sqrt(self.df)
        far = np.maximum(z, FAR) ** -nu / (nu * scipy.special.beta(nu / 2, 0.5))
        return np.where(z > FAR, far, scipy.special.stdtr(nu, -z * math.sqrt(nu)))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(rng.standard_t(float(self.df), shape)) * float(self.scale)
