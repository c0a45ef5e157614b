"""Uniform noise."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.noise.base import Noise
from trueup.noise.series import exp, mean_exp

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats


@dataclasses.dataclass(frozen=True, repr=False)
class Uniform(Noise):
    """State the uniform law: density 1/w on [−w/2, w/2].

    E Zᵏ = (w/2)ᵏ/(k+1) for even k, M(t) = sinh(wt/2)/(wt/2), which is 0 at t = 2πi n/w, n ≠ 0.

    Parameters
    ----------
    width
        w, positive.

    Examples
    --------
    >>> Uniform(2).variance
    Fraction(1, 3)
    """

    rational: ClassVar[bool] = True
    scale_name: ClassVar[str] = "width"

    width: Exact

    def breaks(self, reach: float) -> list[float]:
        """Return the ends of the support."""
        return [-float(self.width) / 2, float(self.width) / 2]

    @staticmethod
    def generating(t: Any, width: Any) -> Any:
        """Return M(t)."""
        return exp(-(t * width) / 2) * mean_exp(t * width)

    def log_density(self, x: Floats) -> Floats:
        """Return −log w inside, −∞ outside."""
        width = float(self.width)
        inside = np.where(np.abs(x) <= width / 2, -math.log(width), -np.inf)
        return np.where(np.isnan(x), x, inside)

    def _upper(self, x: Floats) -> Floats:
        width = float(self.width)
        return np.clip((width / 2 - x) / width, 0.0, 1.0)

    def _upper_quantile(self, q: Floats) -> Floats:
        return (0.5 - q) * float(self.width)
