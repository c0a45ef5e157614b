"""Regions of two noises: half-planes beside them are rare, and they are hardly larger than that."""

import itertools
import math

import numpy as np
import pytest

from trueup.noise import DiscreteLaplace, Laplace, Mass, Noise
from trueup.noise.ratio_regions import law, region

LEAN = Mass({-5: 0.03, -2: 0.17, 0: 0.5, 1: 0.26, 9: 0.04})
OTHER = Mass({-1: 0.48, 0: 0.05, 2: 0.4, 4: 0.07})


def above(first: Noise, second: Noise, u: np.ndarray, t: float) -> float:
    """Return P(u·Z > t) of two laws on few integers."""
    pairs = itertools.product(first.masses, second.masses)
    return math.fsum(
        float(p) * float(q) for (j, p), (k, q) in pairs if u[0] * j + u[1] * k > t + 1e-9
    )


@pytest.mark.parametrize("tail", [0.02, 0.1])
def test_ratio_regions_beside_the_region_of_leaning_laws_are_rare(tail: float) -> None:
    corners = region(LEAN, OTHER, tail).corners
    for angle in np.linspace(0, 2 * math.pi, 300):
        u = np.array([math.cos(angle), math.sin(angle)])
        assert above(LEAN, OTHER, u, float((corners @ u).max())) <= tail


@pytest.mark.parametrize("noise", [LEAN, OTHER, DiscreteLaplace(2), Laplace(2)], ids=repr)
def test_the_law_of_the_negative_noise(noise: Noise) -> None:
    t = np.arange(-12, 12.5, 0.5)
    mirrored = law(noise, 0.01).mirrored()
    at = np.array([float(noise.pmf(v)) for v in -t]) if noise.lattice else 0.0
    np.testing.assert_allclose(mirrored.tail(t), noise.cdf(-t) - at, atol=1e-12)
    np.testing.assert_allclose(mirrored.low, -law(noise, 0.01).high)


@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (2, 5000)])
@pytest.mark.parametrize("tail", [0.3, 0.025, 1e-6])
def test_the_region_of_two_laplace_noises(scales: tuple[int, int], tail: float) -> None:
    """P(a·Z₁ + b·Z₂ > t) is ½(a²e^{−t/a} − b²e^{−t/b})/(a² − b²), or ½e^{−t/a}(1 + t/2a)."""
    found = region(Laplace(scales[0]), Laplace(scales[1]), tail)
    for u, h in zip(found.directions, found.heights, strict=True):
        a, b = sorted(abs(u * scales))
        if a < 1e-12 * b:
            beyond = math.exp(-h / b) / 2
        elif b - a < 1e-9 * b:
            beyond = math.exp(-h / b) * (1 + h / (2 * b)) / 2
        else:
            beyond = (b**2 * math.exp(-h / b) - a**2 * math.exp(-h / a)) / (2 * (b**2 - a**2))
        assert beyond == pytest.approx(tail, rel=1e-4)
        assert beyond <= tail
