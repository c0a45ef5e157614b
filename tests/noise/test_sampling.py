"""Draws: the true scale is accepted and ±30 % is rejected, on the same draws."""

import math

import numpy as np
import pytest
import scipy.stats

from trueup.errors import TrueupError
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mass,
    Noise,
    RoundedGaussian,
    RoundedLaplace,
    Staircase,
    StudentT,
    Uniform,
)

DRAWS = 20_000
ACCEPT, REJECT = 1e-3, 1e-9

FAMILIES = [
    lambda s: Laplace(2 * s),
    lambda s: Gaussian(0.5 * s),
    lambda s: Uniform(3 * s),
    lambda s: StudentT(3, 2 * s),
    lambda s: StudentT(0.8, s),
    lambda s: Staircase(1, 2 * s),
    lambda s: Staircase(3, s),
    lambda s: Staircase(1.5 / s, 1, 0.2),
    lambda s: DiscreteLaplace(0.5 * s),
    lambda s: DiscreteLaplace(3 * s),
    lambda s: DiscreteLaplace(1e6 * s),
    lambda s: DiscreteGaussian(0.4 * s),
    lambda s: DiscreteGaussian(1 * s),
    lambda s: DiscreteGaussian(7.3 * s),
    lambda s: DiscreteGaussian(1e6 * s),
    lambda s: RoundedLaplace(0.5 * s),
    lambda s: RoundedLaplace(3 * s),
    lambda s: RoundedLaplace(1e6 * s),
    lambda s: RoundedGaussian(0.6 * s),
    lambda s: RoundedGaussian(7.3 * s),
    lambda s: Mass(dict(enumerate(DiscreteGaussian(3 * s).pmf(np.arange(-40, 41)).tolist(), -40))),
    lambda s: Noise.from_scipy(scipy.stats.logistic(scale=2 * s)),
    lambda s: Noise.from_scipy(scipy.stats.skellam(3 * s * s, 3 * s * s)),
]


def p_value(draws, noise):
    """Return the chi-square p-value of the draws, in up to 20 cells of the law."""
    edges = np.unique(noise.quantile(np.linspace(0.025, 0.975, 20)))
    expected = np.diff(noise.cdf(edges), prepend=0, append=1)
    cells = np.searchsorted(edges, draws)
    observed = np.bincount(cells, minlength=expected.size)
    keep = expected * DRAWS > 5
    rest_expected, rest_observed = expected[~keep].sum(), observed[~keep].sum()
    counts = np.append(observed[keep], rest_observed)
    wanted = np.append(expected[keep], rest_expected) * DRAWS
    used = wanted > 0
    return scipy.stats.chisquare(counts[used], wanted[used], sum_check=False).pvalue


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: repr(f(1))[:40])
def test_true_scale_accepted_and_wrong_scales_rejected(family):
    draws = family(1).sample(DRAWS, rng=20240607)
    assert draws.shape == (DRAWS,)
    assert p_value(draws, family(1)) > ACCEPT
    assert p_value(draws, family(1.3)) < REJECT
    assert p_value(draws, family(0.7)) < REJECT


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: repr(f(1))[:40])
def test_both_signs_are_equally_likely(family):
    draws = family(1).sample(DRAWS, rng=11)
    positive, negative = (draws > 0).sum(), (draws < 0).sum()
    assert abs(positive - negative) < 5 * math.sqrt(positive + negative)


def test_kinds_and_shapes(law):
    kind = np.int64 if law.noise.lattice else np.float64
    assert type(law.noise.sample()) is (int if law.noise.lattice else float)
    for size, shape in ((0, (0,)), (5, (5,)), ((2, 3), (2, 3)), ((), ())):
        draws = law.noise.sample(size, rng=1)
        assert np.shape(draws) == shape
        assert np.asarray(draws).dtype == kind


def test_seeds_and_generators(law):
    first = law.noise.sample(50, rng=7)
    np.testing.assert_array_equal(first, law.noise.sample(50, rng=7))
    np.testing.assert_array_equal(first, law.noise.sample(50, rng=np.random.default_rng(7)))
    assert (first != law.noise.sample(50, rng=8)).any() or law.noise.variance < 0.1


@pytest.mark.parametrize("size", [-1, 2.5, "3", (2, -1), True, (1.0,)])
def test_bad_sizes(size):
    with pytest.raises(TrueupError, match="size must be"):
        Laplace(1).sample(size)


@pytest.mark.parametrize("rng", [-1, "seed", 1.5])
def test_bad_generators(rng):
    with pytest.raises(TrueupError, match="rng must be"):
        Laplace(1).sample(3, rng=rng)
