"""Regions of two noises: half-planes beside them are rare, and they are hardly larger than that."""

import itertools
import math

import numpy as np
import pytest

from trueup.noise import Laplace, Mass, Noise
from trueup.noise.ratio_regions import region

LEAN = Mass({-5: 0.03, -2: 0.17, 0: 0.5, 1: 0.26, 9: 0.04})
OTHER = Mass({-1: 0.48, 0: 0.05, 2: 0.4, 4: 0.07})
ANGLES = np.linspace(0, 2 * math.pi, 300)


def above(first: Noise, second: Noise, u: np.ndarray, t: float) -> float:
    """Return P(u·Z > t) of two laws on few integers."""
    pairs = itertools.product(first.masses, second.masses)
    return math.fsum(
        float(p) * float(q) for (j, p), (k, q) in pairs if u[0] * j + u[1] * k > t + 1e-9
    )


@pytest.mark.parametrize("tail", [0.02, 0.1])
def test_half_planes_beside_the_region_of_skewed_laws_are_rare(tail: float) -> None:
    corners = region(LEAN, OTHER, tail)
    for angle in ANGLES:
        u = np.array([math.cos(angle), math.sin(angle)])
        assert above(LEAN, OTHER, u, float((corners @ u).max())) <= tail


@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (2, 5000)])
@pytest.mark.parametrize("tail", [0.3, 0.025, 1e-6])
def test_the_region_of_two_laplace_noises(scales: tuple[int, int], tail: float) -> None:
    """P(a·Z₁ + b·Z₂ > t) is ½(a²e^{−t/a} − b²e^{−t/b})/(a² − b²), or ½e^{−t/a}(1 + t/2a)."""

    def beyond(h: float) -> float:
        if a < 1e-12 * b:
            return math.exp(-h / b) / 2
        if b - a < 1e-9 * b:
            return math.exp(-h / b) * (1 + h / (2 * b)) / 2
        return (b**2 * math.exp(-h / b) - a**2 * math.exp(-h / a)) / (2 * (b**2 - a**2))

    corners = region(Laplace(scales[0]), Laplace(scales[1]), tail)
    for angle in ANGLES:
        u = np.array([math.cos(angle), math.sin(angle)])
        a, b = sorted(abs(u))
        h = float((corners / scales @ u).max())
        assert beyond(h) <= tail <= beyond(0.96 * h)
