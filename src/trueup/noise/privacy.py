"""Exact privacy profiles of Gaussian noises, and the least noise for a budget (ε, δ)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np

from trueup.noise.budget import crossing, least_scale
from trueup.noise.fields import working_digits
from trueup.noise.theta import SMOOTH, edge_weight, theta

SAMPLES = 32
"""Points looked at between two knots of the discrete profile."""


def analytic_scale(epsilon: float, delta: float, shift: float) -> float:
    """Return the smallest σ for which Gaussian noise is (ε, δ)-private.

    Examples
    --------
    >>> analytic_scale(1.0, 1e-5, 1.0)
    3.7306316...
    """
    return least_scale(lambda sigma: bool(gaussian_profile(sigma, epsilon, shift) <= delta), shift)


def gaussian_profile(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ = Φ(Δ/(2σ) − εσ/Δ) − e^ε Φ(−Δ/(2σ) − εσ/Δ), with digits to spare.

    Examples
    --------
    >>> print(mpmath.nstr(gaussian_profile(1.0, 1.0, 1.0), 6))
    0.126937
    """
    with working_digits(60 + math.ceil(abs(math.log10(epsilon)))):
        s, e, d = mpmath.mpf(sigma), mpmath.mpf(epsilon), mpmath.mpf(shift)
        near, far = d / (2 * s), e * s / d
        return mpmath.ncdf(near - far) - mpmath.exp(e) * mpmath.ncdf(-near - far)


def discrete_scale(epsilon: float, delta: float, shift: float) -> float:
    """Return the σ from which on discrete Gaussian noise is (ε, δ)-private.

    δ(σ) = maxₙ P(Y ≥ n) − e^ε P(Y ≥ n + Δ) has bumps between the knots σ² = (n + Δ/2) Δ/ε where
    the maximum moves to the next n. They get lower, so three private ones in a row are the end.

    Examples
    --------
    >>> discrete_scale(1.0, 1e-5, 1.0)
    3.7...
    """

    def private(sigma: float) -> bool:
        return bool(discrete_profile(sigma, epsilon, shift) <= delta)

    best = least_scale(private, shift)
    failed, row = None, list[float]()
    for sigma in _upwards(best, epsilon, shift) if best < SMOOTH else ():
        if not private(sigma):
            failed, row = sigma, []
            continue
        row.append(sigma)
        if len(row) > 3 * SAMPLES:
            break
    return best if failed is None else crossing(private, failed, row[0])


def _upwards(start: float, epsilon: float, shift: float) -> Iterator[float]:
    """Yield points from the start upwards, so many between any two knots."""
    left, first = start, math.floor(epsilon * start**2 / shift - shift / 2) + 1
    for n in itertools.count(first):
        right = math.sqrt((n + shift / 2) * shift / epsilon)
        yield from (left + (right - left) * i / SAMPLES for i in range(SAMPLES))
        left = right


def discrete_profile(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ = P(Y > y) − e^ε P(Y > y + Δ), y = εσ²/Δ − Δ/2, or a hair above.

    Examples
    --------
    >>> discrete_profile(1.0, 1.0, 1.0)
    0.1413...
    """
    profile = _profile_sum if sigma < SMOOTH else _profile_smooth
    return profile(sigma, epsilon, shift)


def _profile_sum(sigma: float, epsilon: float, shift: float) -> float:
    """Return Σ_{k>y} p(k) (1 − e^{ε − (2kΔ+Δ²)/(2σ²)}): every term is positive."""
    first = max(math.floor(epsilon * sigma**2 / shift - shift / 2), -math.ceil(39 * sigma) - 1)
    k = np.arange(first, max(first, 0) + math.ceil(12 * sigma) + 40, dtype=float)
    excess = epsilon - (2 * k * shift + shift**2) / (2 * sigma**2)
    masses = np.exp(-0.5 * (k / sigma) ** 2) / theta(sigma)
    return math.fsum(masses * -np.expm1(np.minimum(excess, 0.0))) * (1 + 1e-12)


def _profile_smooth(sigma: float, epsilon: float, shift: float) -> Any:
    """Return δ from the Euler-Maclaurin tails, with digits to spare."""
    with working_digits(60 + math.ceil(abs(math.log10(epsilon)))):
        s, e, d = mpmath.mpf(sigma), mpmath.mpf(epsilon), mpmath.mpf(shift)
        first = mpmath.floor(e * s**2 / d - d / 2) + 1
        near, far = (_tail_probability(n / s, s) for n in (first, first + d))
        return near - mpmath.exp(e) * far


def _tail_probability(x: Any, s: Any) -> Any:
    """Return P(Y ≥ xσ) for a large σ, where Θ = σ√(2π)."""
    density = mpmath.npdf(x) / s
    return mpmath.ncdf(-x) + density * edge_weight(x, s, 12)
