"""Parameters from 10⁻¹⁵⁰ to 10¹⁵: finite or refused, never a warning or another exception."""

import contextlib
import math

import numpy as np
import pytest

import depth
from noise.conftest import mgf
from trueup.errors import TrueupError
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RoundedGaussian,
    RoundedLaplace,
    Staircase,
    StudentT,
    Uniform,
)

FAMILIES = [
    Laplace,
    DiscreteLaplace,
    Gaussian,
    DiscreteGaussian,
    RoundedLaplace,
    RoundedGaussian,
    Uniform,
    StudentT,
    lambda scale: StudentT(3, scale),
    lambda scale: Staircase(1, scale),
    lambda scale: Staircase(min(scale, 700)),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: getattr(f, "__name__", "lambda"))
@pytest.mark.parametrize("size", depth.few([1e-20, 1e15, 1e-150, 1e-3], 3))
def test_extreme_parameters(family, size):
    noise = family(size)
    x = np.array([-math.inf, -1e300, -size, -1, 0, size / 3, 5, 1e200, math.inf])
    density = (noise.pmf if noise.lattice else noise.pdf)(x)
    assert (density >= 0).all()
    assert (np.diff(noise.cdf(np.sort(x))) >= -1e-15).all()
    quantiles = noise.quantile([0, 1e-300, 1e-9, 0.3, 0.5, 0.8, 1 - 1e-12, 1])
    assert (quantiles[1:] >= quantiles[:-1]).all()
    for method in (
        lambda: noise.sample(4, rng=1),
        lambda: noise.variance,
        lambda: noise.moment(4),
        lambda: mgf(noise, 1j / size),
        lambda: noise.tilted(0.3j / size, 2),
    ):
        with contextlib.suppress(TrueupError):
            method()


def test_scales_whose_draws_would_not_fit_into_64_bits_are_refused():
    for family in (DiscreteLaplace, DiscreteGaussian, RoundedLaplace, RoundedGaussian):
        with pytest.raises(TrueupError, match="scale is too large, got 1e"):
            family(1e16)
        assert family(1e15).sample(3).dtype == np.int64
