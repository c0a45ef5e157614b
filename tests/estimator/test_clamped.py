"""A release clamped to [L, U] has atoms at both ends; the same estimator serves it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depth
import oracle
import trueup as tu
from estimator import drawn
from estimator.drawn import close, decimals, scales
from extras import needs
from oracle import Axis, expect


def clamped_mean(est: tu.Estimator, b: float, q: float, low: float, high: float) -> float:
    """Return E g(clamp(q + Z)): the atoms by the Laplace cdf, the middle by quadrature."""
    below, above = math.exp(-(q - low) / b) / 2, math.exp(-(high - q) / b) / 2
    inside = lambda x: np.where((x > low) & (x < high), est(np.clip(x, low, high)), 0.0)  # noqa: E731
    ends = (low,) if math.isinf(high) else (low, high)
    middle = expect(inside, Axis(oracle.laplace(b), q, ends))
    at_high = est(high) if math.isfinite(high) else 0.0
    return below * est(low) + middle + above * at_high


@settings(max_examples=depth.examples(60))
@given(st.data())
def test_a_clamped_laplace_release(data: st.DataObject) -> None:
    b, low = float(data.draw(scales())), data.draw(decimals(0.4, 4))
    high = data.draw(st.one_of(st.none(), decimals(0.2, 8).map(lambda w: low + w)))
    f = data.draw(drawn.positive(bounded=high is not None))
    top = math.inf if high is None else high
    q = min(low + data.draw(decimals(0, 8)), top)
    est = tu.unbiased(f.text, tu.Laplace(b), (low, high))
    assert close(clamped_mean(est, b, q, low, top), f(q))


@settings(max_examples=depth.examples(60))
@given(st.data())
def test_a_clamped_discrete_release(data: st.DataObject) -> None:
    b, low = data.draw(scales(0.3, 4)), data.draw(st.integers(1, 5))
    high = low + data.draw(st.integers(0, 12))
    f, q = data.draw(drawn.positive(bounded=True)), data.draw(st.integers(low, high))
    est = tu.unbiased(f.text, tu.DiscreteLaplace(b), (low, high))
    place = Axis(oracle.discrete_laplace(b), q)
    assert close(expect(lambda x: est(np.clip(x, low, high)), place), f(q))
    spread = expect(lambda x: est.variance(np.clip(x, low, high)), place)
    assert close(spread, est.sd(q) ** 2)


@pytest.mark.parametrize("noise", [tu.Laplace(2), tu.DiscreteLaplace(2)], ids=repr)
@pytest.mark.parametrize("domain", [(1, None), (None, -1), (1, 6), (3, 3)])
def test_clamping_changes_no_estimate(noise: tu.Noise, domain: tuple[Any, Any]) -> None:
    """The constant branch holds at x = L and x = U."""
    est = tu.unbiased("1/q", noise, domain)
    x = np.arange(-20.0, 21.0)
    low, high = (-np.inf if domain[0] is None else domain[0], domain[1] or np.inf)
    np.testing.assert_array_equal(est(np.clip(x, low, high)), est(x))
    np.testing.assert_array_equal(est.variance(np.clip(x, low, high)), est.variance(x))


@pytest.mark.parametrize("domain", [(1, None), (1, 6)])
@pytest.mark.parametrize(("noise", "beyond"), [(tu.Laplace(2), 0), (tu.RoundedLaplace(2), 1)])
def test_clamped_releases_of_whole_numbers(
    noise: tu.Noise, beyond: int, domain: tuple[int, int | None]
) -> None:
    """Rounded Laplace noise is geometric from ±1 on: the constant branch starts one step out."""
    est = tu.unbiased("1/q", noise, tu.Integers(*domain))
    x = np.arange(-9.0, 17.0)
    low, high = domain[0], np.inf if domain[1] is None else domain[1]
    kept = est(np.clip(x, low - beyond, high + beyond))
    np.testing.assert_allclose(kept, est(x), rtol=1e-9)
    if beyond:
        assert abs(est(np.clip(x, low, high)) - est(x)).max() > 0.1


def test_what_is_not_constant_beyond_the_bound_must_not_be_clamped() -> None:
    """Degree-k extensions and estimators of a bounded bias use how far beyond a value lies."""
    below = np.array([-4.0, -1.0, 1.0])
    extended = tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=4)
    assert np.ptp(extended(below)) > 1
    needs("clarabel")
    near = tu.nearly_unbiased("1/q", tu.Laplace(2), (1, None), max_bias=0.01)
    assert np.ptp(near(below)) > 1


OTHERS = [
    tu.Gaussian(2),
    tu.DiscreteGaussian(2),
    tu.RoundedGaussian(2),
    tu.Staircase(0.5),
    tu.Uniform(8),
    tu.Laplace(2) + tu.Laplace(1),
]


@pytest.mark.parametrize("noise", OTHERS, ids=repr)
def test_other_noises_bear_a_clamp_only_out_of_their_reach(noise: tu.Noise) -> None:
    """As the guide says: at a bound of the domain it costs a bias, ten sds beyond it none."""
    est, sd = tu.unbiased("n**2", noise), math.sqrt(float(noise.variance))
    if noise.lattice:
        z = np.arange(-60, 61)
        weights = np.asarray(noise.pmf(z))
    else:
        edges = np.linspace(-60, 60, 48_001)  # 1/400 wide: what is left is far below 1e-4
        z, weights = (edges[1:] + edges[:-1]) / 2, np.diff(np.asarray(noise.cdf(edges)))
    low = 20
    for q, clamp, harmless in ((low, low, False), (low, low - round(10 * sd), True)):
        off = weights @ (est(np.maximum(q + z, clamp)) - est(q + z)) / est.sd(float(q))
        assert (abs(off) < 1e-4) == harmless


def test_a_clamped_gaussian_count_is_biased_as_the_guide_says() -> None:
    """At σ = 3 a count of 2 that is clamped at 0 has the mean 2.44."""
    k = np.arange(-60, 61)
    mass = np.exp(-(k**2) / 18)
    mean = float((np.maximum(2 + k, 0) * mass).sum() / mass.sum())
    assert f"{mean:.2f}" == "2.44"


@pytest.mark.parametrize("c", [1.2, 2.0, 4.0])
def test_clamping_above_the_bound_is_not_repairable(c: float) -> None:
    """A release clamped at c > L is biased under our g, and under any other function of it.

    E h(max(x, c)) for q in [L, c] is a constant plus a multiple of e^{q/b}: for 1/q, which is no
    such function, three true values already contradict each other.
    """
    b, low = 2.0, 1.0
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
    places = [Axis(oracle.laplace(b), q, (low, c)) for q in (low, (low + c) / 2, c)]
    clamped = [expect(lambda x: est(np.maximum(x, c)), p) for p in places]
    assert max(abs(m - 1 / p.q) for m, p in zip(clamped, places, strict=True)) > 1e-3
    system = np.array([[1.0, math.exp(p.q / b), 1 / p.q] for p in places])
    assert abs(np.linalg.det(system)) > 1e-4
