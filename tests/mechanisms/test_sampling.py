"""Secure noise through OpenDP: the claimed law is accepted, ±30 % is rejected, on the same draws.

OpenDP takes its randomness from the operating system, so these draws differ from run to run: the
thresholds are such that an honest sampler fails less than once in a million runs.
"""

from __future__ import annotations

import math
import os
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats

import trueup as tu
from trueup.errors import MissingExtra, TrueupError
from trueup.mechanisms import Mean, PerRecordSum, Shares, SmoothSensitivityMean, TwoTotalsMean
from trueup.mechanisms.sampling import publish

DRAWS = 4_000
SURE = 1e-8


@pytest.fixture
def opendp() -> Any:
    """OpenDP; without it the test is skipped, or fails where everything is required."""
    try:
        import opendp.prelude
    except ImportError:
        if os.environ.get("TRUEUP_REQUIRE_ALL") == "1":
            pytest.fail("opendp is not installed, and TRUEUP_REQUIRE_ALL=1")
        pytest.skip("opendp is not installed: pip install 'trueup[private]'")
    return opendp.prelude


# -- the law ---------------------------------------------------------------------------------------

FAMILIES = {
    "laplace": lambda s: tu.Laplace(2 * s),
    "laplace, small": lambda s: tu.Laplace(Fraction(1, 100) * Fraction(s)),
    "discrete": lambda s: tu.DiscreteLaplace(2.5 * s),
    "discrete, wide": lambda s: tu.DiscreteLaplace(40 * s),
    "gaussian": lambda s: tu.Gaussian(3 * s),
}


def p_value(size: Any, noise: tu.Noise) -> float:
    """Return the chi-square p-value of |Z| in about 16 cells of equal probability."""
    edges = np.unique(np.abs(noise.quantile(np.linspace(0.5, 1 - 1 / 32, 16))))
    lower = -edges - 1 if noise.lattice else -edges
    upper = noise.cdf(edges) - noise.cdf(lower)
    expected = np.diff(upper, prepend=0, append=1) * len(size)
    observed = np.bincount(np.searchsorted(edges, size), minlength=expected.size)
    used = expected > 1e-9 * len(size)
    assert observed[~used].sum() == 0
    return float(scipy.stats.chisquare(observed[used], expected[used]).pvalue)


@pytest.mark.parametrize("name", FAMILIES)
def test_secure_noise_has_the_claimed_law(opendp, name):
    family = FAMILIES[name]
    noise = family(1)
    z = publish([7] * DRAWS, noise) - 7
    sd = math.sqrt(float(noise.variance))
    kurtosis = float(noise.moment(4)) / sd**4
    assert abs(z.mean()) < 6 * sd / math.sqrt(DRAWS)
    assert abs(z.var() / sd**2 - 1) < 6.5 * math.sqrt((kurtosis - 1) / DRAWS)
    assert abs((z > 0).sum() - (z < 0).sum()) < 6 * math.sqrt(DRAWS)
    assert p_value(np.abs(z), noise) > SURE
    for wrong in (0.7, 1.3):
        assert p_value(np.abs(z), family(wrong)) < SURE


@pytest.mark.parametrize("name", FAMILIES)
def test_simulated_noise_has_the_same_law(name):
    family = FAMILIES[name]
    z = publish([7] * DRAWS, family(1), rng=np.random.default_rng(17)) - 7
    assert p_value(np.abs(z), family(1)) > 1e-3
    for wrong in (0.7, 1.3):
        assert p_value(np.abs(z), family(wrong)) < SURE


def test_draws_of_a_vector_are_independent(opendp):
    z = publish([0.0] * DRAWS, tu.Laplace(1))
    assert len(set(z.tolist())) > DRAWS - 3
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 6 / math.sqrt(DRAWS)


def test_kinds(opendp):
    whole = publish([3, 4], tu.DiscreteLaplace(2))
    assert whole.dtype == np.int64
    assert publish([3, 4], tu.DiscreteLaplace(2), rng=1).dtype == np.int64
    assert publish([3, 4], tu.Laplace(2)).dtype == np.float64
    assert publish([3, 4], tu.Laplace(2), rng=1).dtype == np.float64
    assert publish([3.5], tu.Gaussian(2)).shape == (1,)


def test_large_numbers_keep_their_noise(opendp):
    """Floats near 2⁴⁰ have room for the noise; the grid must not swallow it."""
    z = publish([2.0**40] * 500, tu.Laplace(1)) - 2.0**40
    assert np.abs(z).mean() == pytest.approx(1, abs=6 / math.sqrt(500))
    assert len(set(z.tolist())) > 400


def test_noise_that_opendp_does_not_have(opendp):
    with pytest.raises(TrueupError, match="no sampler for Uniform") as caught:
        publish([1.0], tu.Uniform(2))
    assert "\nHint: " in str(caught.value)


def test_a_missing_opendp_is_said_before_anything_is_released(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    for mechanism in (Mean(1, 1), TwoTotalsMean(1), PerRecordSum("root:2", 1)):
        with pytest.raises(MissingExtra, match="opendp is not installed") as caught:
            mechanism.release([0.5])
        assert "trueup[private]" in str(caught.value)
        assert mechanism.release([0.5], rng=1).simulated


# -- releases --------------------------------------------------------------------------------------

DATA = {"mean": [0.2, 0.9] * 100, "total": [3.0, 40.0] * 10, "shares": ["yes"] * 60 + ["no"] * 40}
MECHANISMS = {
    "Mean": (lambda: Mean(0.5, 0.5), "mean"),
    "Mean, discrete": (lambda: Mean(0.5, 0.5, count_noise="discrete"), "mean"),
    "TwoTotalsMean": (lambda: TwoTotalsMean(1), "mean"),
    "Shares": (lambda: Shares(1, ["yes", "no", "unsure"]), "shares"),
    "PerRecordSum": (lambda: PerRecordSum("root:2", 2), "total"),
    "PerRecordSum, gaussian": (lambda: PerRecordSum("root:2", 2, noise="gaussian"), "total"),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_secure_release(opendp, name):
    make, data = MECHANISMS[name]
    release = make().release(DATA[data])
    assert release.simulated is False
    assert "simulation" not in repr(release)
    assert "not private" not in repr(release)
    assert release.noise is not None


@pytest.mark.parametrize("rng", [1, np.random.default_rng(1)], ids=["seed", "generator"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_simulation_says_so(name, rng):
    make, data = MECHANISMS[name]
    release = make().release(DATA[data], rng=rng)
    assert release.simulated is True
    assert "simulation: not private" in repr(release)


@pytest.mark.parametrize("name", MECHANISMS)
def test_seeds_repeat_and_releases_differ(name):
    make, data = MECHANISMS[name]
    mechanism = make()
    first = repr(mechanism.release(DATA[data], rng=5))
    assert first == repr(mechanism.release(DATA[data], rng=5))
    assert first == repr(mechanism.release(DATA[data], rng=np.random.default_rng(5)))
    assert first != repr(mechanism.release(DATA[data], rng=6))


def test_secure_releases_differ(opendp):
    mechanism = TwoTotalsMean(1)
    assert len({mechanism.release([0.5] * 9).mean for _ in range(20)}) == 20


def test_counts_under_discrete_noise_are_whole(opendp):
    mechanism = Mean(0.5, 0.5, count_noise="discrete")
    for rng in (None, 1):
        release = mechanism.release([0.5] * 30, rng=rng)
        assert release.count == int(release.count)
        assert release.noise["count"] == tu.DiscreteLaplace(2)
        assert release.noise["sum"] == tu.Laplace(1)


@pytest.mark.parametrize("rng", [None, 1, np.random.default_rng(1)], ids=["none", "seed", "rng"])
def test_smooth_sensitivity_never_claims_to_be_private(rng):
    """Its Student noise is drawn in floats, whatever the generator."""
    release = SmoothSensitivityMean(0.5, 0.5).release([0.5] * 20, rng=rng)
    assert release.noise is None
    assert "for comparison, not for publication" in repr(release)
    assert release.simulated is True
    assert "simulation: not private" in repr(release)
    assert math.isfinite(release.mean)
    assert release.stderr > 0


def test_the_estimate_matches_the_noise_that_was_added(opendp):
    """The mean of secure releases is the truth, their spread the exact sd."""
    mechanism = TwoTotalsMean(1, count_at_least=20)
    values = [0.8] * 30 + [0.1] * 10
    found = np.array([mechanism.release(values).mean for _ in range(800)])
    sd = mechanism.sd(40, 0.625)
    assert abs(found.mean() - 0.625) < 6 * sd / math.sqrt(800)
    assert found.std() == pytest.approx(sd, rel=0.25)


@pytest.mark.parametrize("rng", [-1, "seed", 1.5], ids=str)
@pytest.mark.parametrize("name", [*MECHANISMS])
def test_bad_generators(name, rng):
    make, data = MECHANISMS[name]
    with pytest.raises(TrueupError, match="rng must be"):
        make().release(DATA[data], rng=rng)
