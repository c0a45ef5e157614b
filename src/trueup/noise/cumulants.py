"""Cumulants of laws on the integers for which scipy subtracts what is nearly equal.

Geometric sums Lⱼ(z) = Σ kʲ zᵏ are the cumulants: of the geometric law κⱼ = Lⱼ₋₁(z), of the discrete
Laplace law twice those of even order, and of the Boltzmann law, cut off at N, κⱼ = Lⱼ₋₁(z) −
Nʲ·Lⱼ₋₁(zᴺ). For z = e^{−λ} near 1 doubles have no digits of 1 − z, nor of that difference.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mpmath

from trueup.noise.closed_forms import geometric_sums
from trueup.noise.fields import Digits, working_digits

if TYPE_CHECKING:
    from trueup.exact import Exact


def cumulants(name: str, shapes: tuple[Exact, ...]) -> list[Any] | None:
    """Return κ₁..κ₄ of a law at loc 0, None where scipy's own formulas keep their digits.

    Examples
    --------
    >>> from fractions import Fraction
    >>> [float(k) for k in cumulants("dlaplace", (Fraction(1, 10**15),))]
    [0.0, 2e+30, 0.0, 1.2e+61]
    """
    if name not in ("dlaplace", "boltzmann"):
        return None
    rate = float(shapes[0])
    # L₃ is 6/λ⁴, and what is left of a difference of two can be λ⁴ of it
    with working_digits(40 + math.ceil(8 * abs(math.log10(rate)))):
        z = mpmath.exp(-Digits().number(shapes[0]))
        whole = geometric_sums(z, 3)
        if name == "dlaplace":
            return [mpmath.mpf(0), 2 * whole[1], mpmath.mpf(0), 2 * whole[3]]
        count = int(shapes[1])
        beyond = geometric_sums(z**count, 3)
        whole[0], beyond[0] = whole[0] - 1, beyond[0] - 1  # Σ over k ≥ 1
        pairs = zip(whole, beyond, strict=True)
        return [w - count**j * b for j, (w, b) in enumerate(pairs, start=1)]
