"""From a privacy budget to the scale of Laplace or Gaussian noise.

ρ-zero-concentrated privacy fixes σ = Δ/√(2ρ). For (ε, δ) the smallest σ solves δ(σ) = δ with the
exact privacy profile of the family; the bisection keeps its upper end on the private side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import positive

Solver = Callable[[float, float, float], float]
"""(ε, δ, Δ) ↦ σ."""


def pure_scale(epsilon: Exact, sensitivity: Exact) -> Exact:
    """Return sensitivity / ε, exact if both are, else rounded to the private side.

    Examples
    --------
    >>> pure_scale(2, 1), pure_scale(0.4, 1), pure_scale(0.75, 1)
    (Fraction(1, 2), 2.5, 1.3333333333333335)
    """
    epsilon, sensitivity = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
    scale = Fraction(sensitivity) / Fraction(epsilon)
    if not isinstance(epsilon, float) and not isinstance(sensitivity, float):
        return scale
    near = float(scale)
    return near if near >= scale else math.nextafter(near, math.inf)


def gaussian_scale(
    solve: Solver,
    rho: Exact | None,
    epsilon: Exact | None,
    delta: Exact | None,
    sensitivity: Exact,
) -> Exact:
    """Return σ for a budget given as ρ, or as ε and δ.

    Examples
    --------
    >>> gaussian_scale(lambda epsilon, delta, shift: shift, Fraction(1, 2), None, None, 3)
    3
    """
    if rho is not None and epsilon is None and delta is None:
        return concentrated_scale(positive(rho, "rho"), sensitivity)
    if rho is None and epsilon is not None and delta is not None:
        return solve(float(positive(epsilon, "epsilon")), _probability(delta), float(sensitivity))
    parts = {"rho": rho, "epsilon": epsilon, "delta": delta}
    given = ", ".join(f"{name}={x!r}" for name, x in parts.items() if x is not None) or "nothing"
    raise TrueupError(f"the budget is not clear from {given}", "give rho, or epsilon and delta")


def concentrated_scale(rho: Exact, sensitivity: Exact) -> Exact:
    """Return Δ/√(2ρ): exact where it is rational, else rounded to the private side.

    Examples
    --------
    >>> concentrated_scale(Fraction(1, 8), 1), concentrated_scale(1, 1)
    (2, 0.7071067811865476)
    """
    square = Fraction(sensitivity) ** 2 / (2 * Fraction(rho))
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root**2 == square and not isinstance(rho, float) and not isinstance(sensitivity, float):
        return root.numerator if root.denominator == 1 else root
    sigma = math.sqrt(square)
    return sigma if Fraction(sigma) ** 2 >= square else math.nextafter(sigma, math.inf)


def least_scale(private: Callable[[float], bool], start: float) -> float:
    """Return a σ that is private while the next smaller float is not, searching from a start.

    Examples
    --------
    >>> least_scale(lambda sigma: 3 / sigma <= 0.25, 1.0)
    12.0
    """
    high = start
    while not private(high):
        high *= 2
    while private(high / 2):
        high /= 2
    return crossing(private, high / 2, high)


def crossing(private: Callable[[float], bool], low: float, high: float) -> float:
    """Return a private σ just above one that is not, between low (not private) and high (private).

    Examples
    --------
    >>> crossing(lambda sigma: sigma >= 1.5, 1.0, 2.0)
    1.5
    """
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


def whole_sensitivity(value: object) -> Exact:
    """Return a sensitivity on the integers, which must be an integer.

    Examples
    --------
    >>> whole_sensitivity(2.0)
    2
    """
    sensitivity = positive(value, "sensitivity")
    if isinstance(sensitivity, int):
        return sensitivity
    hint = "a statistic on the integers moves by an integer: give that, e.g. 1"
    raise TrueupError(f"sensitivity must be an integer, got {value!r}", hint)


def _probability(delta: Exact) -> float:
    """Return 0 < δ < 1, or refuse it."""
    value = float(number(delta, "delta", positive=True))
    if value < 1:
        return value
    raise TrueupError(
        f"delta must be below 1, got {delta!r}", "give a small probability, e.g. 1e-6"
    )
