"""The noise of sums of many cells in all directions, where its law is known."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from trueup.noise import Gaussian, Laplace, Mass
from trueup.noise.noiseless import Noiseless
from trueup.tables.many import Summand, beyond, height, mean, region, spread

SHARE = (Summand(Gaussian(2), 1.0, 1.0, 50), Summand(Gaussian(3), 0.0, 1.0, 8))
UNLIKE = (Summand(Gaussian(1), 1.0, 0.0, 10**6), Summand(Gaussian(0.1), 0.0, 1.0, 4))
TILTED = (*UNLIKE, Summand(Gaussian(2), -30.0, 0.02, 9))


def sd(summands, u):
    """Return the standard deviation of u·Z, Gaussian noises."""
    return math.sqrt(
        sum(
            s.cells * float(s.noise.scale) ** 2 * np.dot(u, (s.top, s.bottom)) ** 2
            for s in summands
        )
    )


@pytest.mark.parametrize("summands", [SHARE, UNLIKE, TILTED], ids=["share", "unlike", "tilted"])
def test_the_polygon_is_close_around_the_ellipse_of_gaussian_noises(summands):
    tail = 0.025
    quantile = NormalDist().inv_cdf(1 - tail)
    found = region(summands, tail)
    angles = np.linspace(0, 2 * math.pi, 200)
    axes = [sd(summands, u) for u in ((1.0, 0.0), (0.0, 1.0))]
    for u in np.stack([np.cos(angles), np.sin(angles)], axis=1) / axes:
        support = float((found @ u).max())
        assert 1 <= support / (quantile * sd(summands, u)) < 1.05


@pytest.mark.parametrize("u", [(1.0, 0.0), (0.0, 1.0), (1.0, -0.3), (-2.0, 0.7)])
def test_mean_and_spread_in_a_direction(u):
    lean = Mass({-1: 0.25, 0: 0.25, 3: 0.5})
    summands = (Summand(lean, 1.0, 1.0, 3), Summand(Laplace(2), -1.0, 0.5, 5))
    weights = [u[0] + u[1], -u[0] + u[1] / 2]
    variance = 3 * weights[0] ** 2 * float(lean.variance) + 5 * weights[1] ** 2 * 8
    assert mean(summands, u) == pytest.approx(3 * weights[0] * float(lean.moment(1)))
    assert spread(summands, u) == pytest.approx(math.sqrt(variance))


def test_nothing_lies_beyond_the_mean_of_what_is_known():
    known = (Summand(Noiseless(), 0.0, 1.0, 7), Summand(Laplace(1), 1.0, 0.0, 7))
    assert beyond(known, (0.0, 1.0), 1e-12) == 0
    assert beyond(known[:1], (1.0, 0.0), 1e-12) == 0
    assert height(known, (0.0, 1.0), 0.025) == 0
    assert beyond(known, (1.0, 0.0), 1e-12) > 7
