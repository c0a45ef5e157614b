"""Bounded bias knows no unit: c·f gives c times the estimator; laws that end have no edge."""

from __future__ import annotations

import numpy as np
import pytest

import depth
import trueup as tu

X = np.arange(-3.0, 60.0, 2.5)


@pytest.mark.parametrize(
    ("noise", "unit", "relative"),
    depth.crossed([tu.DiscreteGaussian(2), tu.Gaussian(2)], [1e-12, 1e12], [True, False]),
)
def test_a_multiple_of_f_has_the_multiple_of_the_estimator(
    noise: tu.Noise, unit: float, relative: bool
) -> None:
    x = np.round(X) if noise.lattice else X
    plain = tu.nearly_unbiased("1/q", noise, (1, 50), max_bias=0.05, relative=relative)
    bias = 0.05 if relative else 0.05 * unit
    scaled = tu.nearly_unbiased(f"{unit!r}/q", noise, (1, 50), max_bias=bias, relative=relative)
    assert scaled(x) / unit == pytest.approx(plain(x), rel=1e-6, abs=1e-8)
    assert scaled.bias_bound == pytest.approx(plain.bias_bound * (bias / 0.05), rel=1e-6)


@pytest.mark.parametrize(
    "masses",
    [{-1: 0.1, 0: 0.8, 1: 0.1}, {1: 0.1, 2: 0.8, 3: 0.1}, {0: 0.5, 1: 0.3, 4: 0.2}],
    ids=str,
)
def test_the_certificate_holds_to_the_edge_of_a_law_that_ends(masses: dict[int, float]) -> None:
    est = tu.nearly_unbiased("1/q", tu.Mass(masses), (1, 20), max_bias=0.01)
    q = np.arange(1.0, 21.0)
    mean = sum(p * est(q + k) for k, p in masses.items())
    assert np.abs(mean - 1 / q).max() <= est.bias_bound <= 0.01
