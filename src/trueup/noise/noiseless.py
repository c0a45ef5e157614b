"""A number that was published as it is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import sympy

from trueup.exact import symbolic
from trueup.noise.base import Noise
from trueup.noise.operator import IDENTITY, Branch, Operator

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.noise.elementwise import Floats


@dataclasses.dataclass(frozen=True, repr=False)
class Noiseless(Noise):
    """State that nothing was added: Z = 0, M(t) = 1. For known columns in a formula.

    Examples
    --------
    >>> Noiseless().variance
    0
    """

    rational: ClassVar[bool] = True
    known: ClassVar[bool] = True

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator:
        """Return the identity: there is nothing to undo, beyond the bounds neither."""
        branch = Branch("inside", None, {IDENTITY: sympy.Integer(1)})
        bounds = symbolic(domain.low), symbolic(domain.high)
        edges = (-sympy.oo, sympy.oo)
        return Operator((branch,), "a known number stays what it is", *bounds, edges)

    @staticmethod
    def generating(t: Any) -> Any:
        """Return M(t) = 1."""
        return 1 + t * 0

    def log_density(self, x: Floats) -> Floats:
        """Return ∞ at 0, −∞ elsewhere."""
        return np.where(x == 0, np.inf, -np.inf)

    def _upper(self, x: Floats) -> Floats:
        return np.zeros_like(x)

    def _upper_quantile(self, q: Floats) -> Floats:
        return np.zeros_like(q)
