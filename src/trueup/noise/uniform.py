"""Uniform noise."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.exact import symbolic
from trueup.noise.base import Noise, scaled_power
from trueup.noise.closed_forms import exponential_integrals

if TYPE_CHECKING:
    import sympy

    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field


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

    scale_name: ClassVar[str] = "width"

    width: Exact

    def __post_init__(self) -> None:
        self._normalise("width")

    def breaks(self, reach: float) -> list[float]:
        """Return the ends of the support."""
        return [-float(self.width) / 2, float(self.width) / 2]

    def _moment(self, k: int) -> Exact:
        return 0 if k % 2 else scaled_power(Fraction(1, (k + 1) * 2**k), self.width, k)

    def tilted_at(self, scale: sympy.Expr, c: sympy.Expr, order: int) -> list[sympy.Expr] | None:
        """Return E Zʲ at another width; None for waves, which some widths average to zero."""
        unit = Uniform(1)
        return None if c else [symbolic(unit.moment(j)) * scale**j for j in range(order + 1)]

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        width = field.number(self.width)
        integrals = exponential_integrals(c, -width / 2, width / 2, order, field)
        return [integral / width for integral in integrals]

    def _density(self, x: Floats) -> Floats:
        width = float(self.width)
        return np.where(np.isnan(x), x, np.where(np.abs(x) <= width / 2, 1 / width, 0.0))

    def _cdf(self, x: Floats) -> Floats:
        width = float(self.width)
        return np.clip((x + width / 2) / width, 0.0, 1.0)

    def _quantile(self, p: Floats) -> Floats:
        return (p - 0.5) * float(self.width)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        half = float(self.width) / 2
        return np.asarray(rng.uniform(-half, half, shape))
