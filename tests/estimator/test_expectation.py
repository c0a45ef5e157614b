"""Expectations over the noise: known numbers, sums that overflow, series beyond the bounds."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import trueup as tu
from oracle import Axis, laplace, moments

KNOWN = [
    ("log(s + n)", (1, None)),
    ("s*log(n)", (0, None)),
    ("1/(s**2 + n)", (None, None)),
    ("sqrt(n)/(s + n)", (0, 9)),
    ("n**s", (0, 4)),
    ("exp(n)/(s**2 + n**2)", (1, None)),
]


@pytest.mark.parametrize(("f", "domain"), KNOWN, ids=str)
@pytest.mark.parametrize("noise", [tu.Laplace(1), tu.DiscreteLaplace(1)], ids=repr)
def test_a_known_number_is_like_a_constant(f: str, domain: tuple, noise: tu.Noise) -> None:
    known = tu.unbiased(f, {"s": noise, "n": tu.Noiseless()}, {"s": domain, "n": (1, None)})
    plain = tu.unbiased(re.sub(r"\bn\b", "3", f), {"s": noise}, {"s": domain})
    assert known(s=1, n=3) == pytest.approx(plain(s=1), rel=1e-12)
    assert known.variance(s=1, n=3) == pytest.approx(plain.variance(s=1), rel=1e-9)
    assert known.expectation(s=2, n=3) == pytest.approx(plain.expectation(s=2), rel=1e-9)
    assert known.sd(s=2, n=3) == pytest.approx(plain.sd(s=2), rel=1e-9)


@pytest.mark.parametrize("factor", [4.4e153, 4.6e153, 1e200])
def test_a_square_that_overflows_at_few_points_is_refused(factor: float) -> None:
    """(g − E g)² is near the largest double at the top of the hill, and beyond it there."""
    hill, hills = (
        tu.unbiased(f"{height!r}*exp(-(q - 5)**2)", tu.Laplace(1)) for height in (1.0, factor)
    )
    assert hills.expectation(3.0) / factor == pytest.approx(math.exp(-4), rel=1e-9)
    assert hill.sd(3.0) == pytest.approx(math.sqrt(moments(hill, Axis(laplace(1), 3.0))[1]))
    if factor == 4.4e153:
        assert hills.sd(3.0) / factor == pytest.approx(hill.sd(3.0), rel=1e-9)
    else:
        with pytest.raises(tu.TrueupError, match="overflows on the way"):
            hills.sd(3.0)


@pytest.mark.parametrize(("rate", "q"), [(0.5, 300.0), (1.0, 100.0), (0.5, 0.0)])
def test_what_grows_exponentially_on_an_open_side(rate: float, q: float) -> None:
    """E e^{rate·Z} = 1/(1 − b²·rate²), far from a bound."""
    b = 0.3
    est = tu.unbiased(f"exp(q)**{rate}", tu.Laplace(b), (-60, None))
    weight = 1 - (b * rate) ** 2
    spread = math.sqrt(weight**2 / (1 - (2 * b * rate) ** 2) - 1)
    assert est.sd(q) == pytest.approx(spread * math.exp(rate * q), rel=1e-11)
    assert est.expectation(q) == pytest.approx(math.exp(rate * q), rel=1e-11)


@pytest.mark.parametrize(
    ("f", "noise"),
    [
        ("exp(q)/q", tu.Laplace(1)),
        ("exp(0.97*q)*log(q)", tu.Laplace(1)),
        ("exp(0.97*q)/q", tu.DiscreteLaplace(1)),
    ],
)
def test_what_grows_almost_as_fast_as_the_noise_falls_is_refused(f: str, noise: tu.Noise) -> None:
    """Densities smaller than all doubles would count."""
    est = tu.unbiased(f, noise, (1, None))
    assert math.isfinite(est(3.0))
    with pytest.raises(tu.TrueupError, match="almost as fast as the tail"):
        est.expectation(1.0)


def test_sums_over_four_counts_that_do_not_separate() -> None:
    names = "abcd"
    est = tu.unbiased(
        "(c - d)/(a + b + c + d)",
        dict.fromkeys(names, tu.DiscreteLaplace(0.5)),
        dict.fromkeys(names, (1, None)),
    )
    x = np.arange(-8.0, 13.0)
    grid = dict(zip(names, np.meshgrid(x, x, x, x, indexing="ij"), strict=True))
    truth = {"a": 1, "b": 2, "c": 3, "d": 1}
    mass = math.prod(tu.DiscreteLaplace(0.5).pmf(grid[k] - q) for k, q in truth.items())
    g = est(**{k: v.ravel() for k, v in grid.items()}).reshape(mass.shape)
    mean = float((mass * g).sum())
    assert mean == pytest.approx(2 / 7, abs=1e-6)
    assert est.expectation(**truth) == pytest.approx(2 / 7, rel=1e-12)
    assert est.sd(**truth) == pytest.approx(math.sqrt((mass * (g - mean) ** 2).sum()), rel=1e-6)
