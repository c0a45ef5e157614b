"""A noise whose scale is a symbol: its value differs from row to row."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import sympy

from trueup.domain import Interval
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.noise.base import Noise
    from trueup.noise.operator import Operator


@dataclasses.dataclass(frozen=True)
class Rescaled:
    """State that the noise is of a family, at a scale that is known only row by row.

    Parameters
    ----------
    family
        Any member of the family.
    scale
        The positive symbol that stands for the scale (for ``Uniform``, the width).

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.noise.laplace import Laplace
    >>> b = sympy.Symbol("b", positive=True)
    >>> Rescaled(Laplace(1), b).inverse(Interval()).branches[0].taps[2, 0]
    -b**2
    """

    many_points: ClassVar[str] = "weights"

    family: Noise
    scale: sympy.Symbol

    def __post_init__(self) -> None:
        zero = sympy.Integer(0)
        if not self.published and self.family.tilted_at(self.scale, zero, 0) is None:
            raise TrueupError(
                f"{self.family!r} has no scale that could differ from row to row: its inverse is "
                "no formula in one",
                "make one estimator per noise level, and debias the rows of each level with it",
            )

    @property
    def published(self) -> bool:
        """Whether every smooth function (or every function) can be inverted under the family."""
        return self.family.inverse_at(self.scale, Interval()) is not None

    @property
    def lattice(self) -> bool:
        """Whether the noise takes integer values only."""
        return self.family.lattice

    @property
    def highest_moment(self) -> int | None:
        """The order of the highest moment that exists and is known, None for all."""
        return self.family.highest_moment

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator | None:
        """Return the operator with the scale as a symbol in its weights."""
        return self.family.inverse_at(self.scale, domain, extension)

    def tilted(self, c: sympy.Expr, order: int) -> list[sympy.Expr]:
        """Return E[Zʲ e^{cZ}], j = 0..order, as formulas in the scale."""
        values = self.family.tilted_at(self.scale, c, order)
        if values is None:
            raise TrueupError(
                f"under {self.family!r} with a scale per row only polynomials can be debiased, not "
                f"waves or exponentials such as e^({c}·q)",
                "make one estimator per noise level, and debias the rows of each level with it",
            )
        return values

    def __repr__(self) -> str:
        return f"{type(self.family).__name__}({self.scale.name})"
