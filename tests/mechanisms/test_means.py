"""Means with unknown n: the printed figures, and E, Var and E V̂ by quadrature without library code.

The estimates are polynomials of degree 2 at most in everything but the noisy count, so those noises
are integrated exactly (Gauss rules) and the count by the panels of ``oracle``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import oracle
import trueup as tu
from trueup.mechanisms import Mean, SmoothSensitivityMean, TwoTotalsMean, means

UNBIASED = 1e-9
"""Of the width of the bounds, absolute."""
VARIANCE = 1e-8
"""Relative."""


def four_digits(x: float) -> str:
    return f"{float(f'{x:.4g}'):.4g}"


# -- the figures of theory.md ----------------------------------------------------------------------

SMOOTH = SmoothSensitivityMean(0.5, 0.5)
PAPER = Mean(0.5, 0.5, centred=False, extension=10)
PLAIN = Mean(0.5, 0.5, centred=False)
CENTRED = Mean(0.5, 0.5)
TOTALS = TwoTotalsMean(1)
TOTALS_5 = TwoTotalsMean(1, count_at_least=5)

TABLE = {
    1: ("6", "10.55", "7.249"),
    5: ("5.079", "5.171", "3.605"),
    13: ("3.639", "1.333", "0.9429"),
    20: ("2.719", "0.3718", "0.2839"),
    115: ("0.05217", "0.02752", "0.02752"),
}


@pytest.mark.parametrize("n", TABLE)
def test_the_table_of_the_paper(n):
    found = [four_digits(m.sd(n, 0.5)) for m in (SMOOTH, PAPER, PLAIN)]
    assert found == list(TABLE[n])


@pytest.mark.parametrize(("ours", "first"), [(PAPER, 6), (PLAIN, 3)], ids=["k=10", "UMVUE"])
def test_from_where_on_it_is_ahead_of_smooth_sensitivity(ours, first):
    ahead = [ours.sd(n, 0.5) < SMOOTH.sd(n, 0.5) for n in range(1, 41)]
    assert ahead == [n >= first for n in range(1, 41)]


@pytest.mark.parametrize(
    ("ours", "peak", "at"), [(PAPER, "15.93", 33), (PLAIN, "16.22", 31)], ids=["k=10", "UMVUE"]
)
def test_the_peak_of_the_ratio(ours, peak, at):
    ratios = {n: SMOOTH.sd(n, 0.5) / ours.sd(n, 0.5) for n in (5, 10, 20, *range(26, 39), 50, 100)}
    assert max(ratios, key=ratios.__getitem__) == at
    assert four_digits(ratios[at]) == peak
    assert four_digits(SMOOTH.sd(115, 0.5) / ours.sd(115, 0.5)) == "1.896"


@pytest.mark.parametrize(
    ("mechanism", "printed"),
    [
        (TOTALS, ["0.1189", "0.05153", "0.02009", "0.005001"]),
        (TOTALS_5, ["0.1143", "0.05153", "0.02009", "0.005001"]),
    ],
    ids=["L=1", "L=5"],
)
def test_the_table_of_two_totals(mechanism, printed):
    assert [four_digits(mechanism.sd(n, 0.5)) for n in (10, 20, 50, 200)] == printed


@pytest.mark.parametrize(
    ("mechanism", "printed"),
    [
        (SMOOTH, ["4.12", "2.72", "0.779", "0.0300"]),
        (PLAIN, ["1.59", "0.2839", "0.0636", "0.0158"]),
        (CENTRED, ["0.410", "0.0782", "0.0283", "0.0071"]),
    ],
    ids=["M_SS", "M_U", "centred"],
)
def test_the_rest_of_that_table(mechanism, printed):
    for n, sd in zip((10, 20, 50, 200), printed, strict=True):
        assert f"{mechanism.sd(n, 0.5):.{len(sd) - 2}f}" == sd


LIMITS = [
    pytest.param(SMOOTH, 6.0, 6.0, id="M_SS"),
    pytest.param(PLAIN, math.sqrt(10), 4.0, id="M_U"),
    pytest.param(CENTRED, math.sqrt(2), 2.0, id="centred"),
    # a complement that is never negative has half of its noise left at the end: 1 + ½ of 2
    pytest.param(TOTALS, 1.0, math.sqrt(1.5), id="two-totals"),
    pytest.param(TOTALS_5, 1.0, math.sqrt(1.5), id="two-totals, L=5"),
]


@pytest.mark.parametrize(("mechanism", "middle", "end"), LIMITS)
@pytest.mark.parametrize("n", [2_000, 10**6, 10**8])
def test_large_data_sets(mechanism, middle, end, n):
    for mean, limit in ((0.5, middle), (1.0, end)):
        slow = 2 / n if isinstance(mechanism, TwoTotalsMean) else 0.0  # the edge: 1/n, not 1/n²
        assert n * mechanism.sd(n, mean) == pytest.approx(limit, rel=40 / n**2 + 1e-7 + slow)


def test_centred_is_not_always_better():
    worse = [n for n in range(1, 40) if CENTRED.sd(n, 0.0) > PLAIN.sd(n, 0.0)]
    assert set(range(6, 26)) <= set(worse)
    assert not {38, 39} & set(worse)


def test_two_totals_are_better_than_a_count_and_a_sum():
    assert all(TOTALS.sd(n, 0.5) < CENTRED.sd(n, 0.5) for n in (3, 5, 10, 20))


# -- quadrature: Mean ------------------------------------------------------------------------------

LAGUERRE = np.polynomial.laguerre.laggauss(6)
LEGENDRE = np.polynomial.legendre.leggauss(6)


def laplace_nodes(b: float) -> tuple[Any, Any]:
    """Return a rule for Laplace noise that is exact on polynomials of degree 11."""
    t, w = LAGUERRE
    return b * np.concatenate([-t, t]), np.concatenate([w, w]) / 2


class MeanLaw:
    """Expectations of functions of (s̃, ñ) around n records with a given mean."""

    def __init__(self, mechanism: Mean, n: float, mean: float, count: str) -> None:
        self.mechanism = mechanism
        self.low, self.high = (float(b) for b in mechanism.bounds)
        self.middle = float(mechanism.middle)
        b = float(mechanism.noise["n"].scale)
        law = oracle.discrete_laplace(b) if count == "discrete" else oracle.laplace(b)
        bound = float(mechanism.count_at_least)
        self.axis = oracle.Axis(law, n, (bound,), feature=3 * bound)
        self.z, self.w = laplace_nodes(float(mechanism.noise["s"].scale))
        self.s = n * (mean - self.middle)

    def expect(self, h: Callable[[Any, Any], Any]) -> float:
        """Return E h(s̃, ñ)."""
        return oracle.expect(lambda x: h(self.s + self.z, x[:, None]) @ self.w, self.axis)

    def mean(self, s: Any, n: Any) -> Any:
        """Return what a release would report."""
        return self.middle + self.mechanism.estimator(s=s, n=n)

    def reported(self, s: Any, n: Any) -> Any:
        """Return the square of the reported standard error."""
        return self.mechanism.estimator.variance(s=s, n=n)


MEANS = {
    "centred": ({"epsilon_count": 0.5, "epsilon_sum": 0.5}, "laplace"),
    "plain": ({"epsilon_count": 0.5, "epsilon_sum": 0.5, "centred": False}, "laplace"),
    "paper": (
        {"epsilon_count": 0.5, "epsilon_sum": 0.5, "centred": False, "extension": 10},
        "laplace",
    ),
    "centred, k=4": ({"epsilon_count": 1, "epsilon_sum": 2, "extension": 4}, "laplace"),
    "other bounds": (
        {"epsilon_count": 0.3, "epsilon_sum": 1.2, "bounds": (-2, 6), "count_at_least": 4},
        "laplace",
    ),
    "plain, other bounds": (
        {
            "epsilon_count": 0.7,
            "epsilon_sum": 0.4,
            "bounds": (-2, 6),
            "centred": False,
            "extension": 3,
        },
        "laplace",
    ),
    "discrete": ({"epsilon_count": 0.5, "epsilon_sum": 0.5, "count_noise": "discrete"}, "discrete"),
    "plain, discrete, L=3": (
        {
            "epsilon_count": 0.4,
            "epsilon_sum": 1,
            "bounds": (1, 4),
            "centred": False,
            "count_at_least": 3,
            "count_noise": "discrete",
        },
        "discrete",
    ),
}


def grid(mechanism: Any, ns: tuple[int, ...] = (1, 2, 5, 13, 60)) -> list[tuple[int, float]]:
    """Return numbers of records from the bound on, and means from end to end."""
    low, high = (float(b) for b in mechanism.bounds)
    first = math.ceil(mechanism.count_at_least)
    shares = (0.0, 0.3, 0.5, 1.0)
    return [(n, low + s * (high - low)) for n in {first, *ns} if n >= first for s in shares]


def width(mechanism: Any) -> float:
    return float(mechanism.bounds[1] - mechanism.bounds[0])


@pytest.mark.parametrize("name", MEANS)
def test_mean_is_unbiased_and_knows_its_error(name):
    options, count = MEANS[name]
    mechanism = Mean(**options)
    for n, mean in grid(mechanism):
        law = MeanLaw(mechanism, n, mean, count)
        assert law.expect(law.mean) == pytest.approx(mean, abs=UNBIASED * width(mechanism))
        variance = law.expect(lambda s, x, law=law, m=mean: (law.mean(s, x) - m) ** 2)
        assert mechanism.sd(n, mean) ** 2 == pytest.approx(variance, rel=VARIANCE)
        assert law.expect(law.reported) == pytest.approx(variance, rel=VARIANCE)
        assert mechanism.bias(n, mean) == pytest.approx(0, abs=UNBIASED)


@pytest.mark.parametrize("name", ["other bounds", "plain, discrete, L=3"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_mean_with_a_wrong_bound(name, n):
    options, count = MEANS[name]
    mechanism = Mean(**options)
    low, high = (float(b) for b in mechanism.bounds)
    for mean in (low, 0.7 * high):
        law = MeanLaw(mechanism, n, mean, count)
        centre = law.expect(law.mean)
        if n:
            assert mechanism.bias(n, mean) == pytest.approx(centre - mean, rel=1e-8)
            assert abs(mechanism.bias(n, mean)) > 1e-4
        variance = law.expect(lambda s, x, law=law, c=centre: (law.mean(s, x) - c) ** 2)
        assert mechanism.sd(n, mean) ** 2 == pytest.approx(variance, rel=VARIANCE)


def test_the_quadrature_notices_a_wrong_scale():
    """Noise 0.1 % larger than assumed gives a bias far above the tolerance."""
    law = MeanLaw(PLAIN, 5, 0.5, "laplace")
    law.axis = oracle.Axis(oracle.laplace(2.002), 5, (1.0,), feature=3.0)
    assert abs(law.expect(law.mean) - 0.5) > 1e5 * UNBIASED


# -- quadrature: two totals ------------------------------------------------------------------------


class TwoTotalsLaw:
    """Expectations over two totals, clamped at 0, by panels: inner ones break where A + B = L."""

    def __init__(self, mechanism: TwoTotalsMean, n: float, mean: float) -> None:
        self.mechanism, self.b = mechanism, 1 / float(mechanism.epsilon)
        self.low, self.high = (float(x) for x in mechanism.bounds)
        share = (mean - self.low) / (self.high - self.low)
        self.truth, self.bound = (n * (1 - share), n * share), float(mechanism.count_at_least)

    def axis(self, s: float, breaks: tuple[float, ...]) -> tuple[Any, Any]:
        """Return nodes from 0 on and weights that include the density; 0 has all that is below."""
        b, (x, w) = self.b, np.polynomial.legendre.leggauss(10)
        ends = [0.0, s, *np.arange(0, s + 42 * b, 1.5 * b)]
        for point in breaks:  # 1/u⁵ is steep above a bound
            ends += [point, *(point + self.bound * (1.25 ** np.arange(1, 16) - 1))]
        edges = np.unique(np.array([e for e in ends if 0 <= e <= s + 42 * b]))
        half = np.diff(edges)[:, None] / 2
        y = (edges[:-1, None] + half * (1 + x)).ravel()
        weights = (half * w).ravel() * np.exp(-np.abs(y - s) / b) / (2 * b)
        return np.append(y, 0.0), np.append(weights, math.exp(-s / b) / 2)

    def expect(self, *functions: Callable[[Any, Any], Any]) -> list[float]:
        """Return E h(B, A) of the two totals (complement, sum)."""
        total = np.zeros(len(functions))
        breaks = (self.bound, self.bound - self.truth[1])
        for y, p in zip(*self.axis(self.truth[0], breaks), strict=True):
            other, q = self.axis(self.truth[1], (max(self.bound - y, 0.0),))
            total += [p * (q @ h(y, other)) for h in functions]
        return total.tolist()

    def mean(self, y: Any, x: Any) -> Any:
        """Return what a release would report."""
        return self.low + (self.high - self.low) * self.mechanism.quadrant.value(y, x)

    def reported(self, y: Any, x: Any) -> Any:
        """Return the square of the reported standard error."""
        return (self.high - self.low) ** 2 * self.mechanism.quadrant.variance(y, x)


TWO_TOTALS = {
    "L=1": {"epsilon": 1},
    "L=5": {"epsilon": 1, "count_at_least": 5},
    "other bounds": {"epsilon": 0.4, "bounds": (-2, 6), "count_at_least": 3},
    "large epsilon": {"epsilon": 4, "bounds": (10, 11)},
}


@pytest.mark.parametrize("name", TWO_TOTALS)
def test_two_totals_are_unbiased_and_know_their_error(name):
    mechanism = TwoTotalsMean(**TWO_TOTALS[name])
    low, high = (float(b) for b in mechanism.bounds)
    first = math.ceil(mechanism.count_at_least)
    for n, share in ((first, 0.3), (first + 2, 1.0)):
        mean = low + share * (high - low)
        law = TwoTotalsLaw(mechanism, n, mean)
        spread = lambda y, x, law=law, m=mean: (law.mean(y, x) - m) ** 2  # noqa: E731
        found, variance, reported = law.expect(law.mean, spread, law.reported)
        assert found == pytest.approx(mean, abs=1e-8 * width(mechanism))
        assert mechanism.sd(n, mean) ** 2 == pytest.approx(variance, rel=1e-7)
        assert reported == pytest.approx(variance, rel=1e-6)
        assert mechanism.bias(n, mean) == 0


@pytest.mark.parametrize("n", [0, 3])
def test_two_totals_with_a_wrong_bound(n):
    mechanism = TOTALS_5
    law = TwoTotalsLaw(mechanism, n, 0.2)
    (centre,) = law.expect(law.mean)
    (variance,) = law.expect(lambda y, x: (law.mean(y, x) - centre) ** 2)
    assert mechanism.bias(n, 0.2) == pytest.approx(centre - 0.2, abs=1e-8)
    assert mechanism.sd(n, 0.2) ** 2 == pytest.approx(variance, rel=VARIANCE)


def test_the_figures_of_two_totals_that_are_not_negative():
    """One total and a mean of ½ or 1; the sums as they were had 9.8 and 5.4 at n = 3 and 5."""
    for n, one, half in ((3, 0.974, 1.183), (5, 0.401, 0.486), (10, 0.1160, 0.1189)):
        assert TOTALS.sd(n, 1) == pytest.approx(one, abs=6e-4)
        assert TOTALS.sd(n, 0.5) == pytest.approx(half, abs=6e-4)
    assert TOTALS_5.sd(10, 1) == pytest.approx(0.1127, abs=6e-5)
    assert TOTALS_5.sd(10, 0.5) == pytest.approx(0.1143, abs=6e-5)


# -- the release computes what was integrated ------------------------------------------------------

RECORDS = [-7.0, -1.5, 0.25, 5.0, 40.0]
"""Clipped to [−2, 6]: −2, −1.5, 0.25, 5, 6."""
TRUE_SUM, TRUE_MEAN = 7.75, 1.55


def add_noise(monkeypatch: pytest.MonkeyPatch, *noises: float) -> None:
    """Let the next calls of publish add these numbers, in order, instead of drawing."""
    queue = list(noises)

    def publish(values: Any, noise: Any, rng: Any = None) -> Any:
        return np.array([v + queue.pop(0) for v in values])

    monkeypatch.setattr(means, "publish", publish)


@pytest.mark.parametrize("z", [(0.0, 0.0), (3.0, -1.25), (-4.0, 2.5), (-9.0, -30.0)], ids=str)
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "plain"])
@pytest.mark.parametrize("count", ["laplace", "discrete"])
def test_a_release_of_a_mean(monkeypatch, z, centred, count):
    mechanism = Mean(0.5, 0.25, bounds=(-2, 6), centred=centred, count_noise=count)
    b, middle = 2.0, 2.0 if centred else 0.0
    n, s = 5 + z[0], TRUE_SUM - 5 * middle + z[1]
    lam = b**2 if count == "laplace" else 1 / (4 * math.sinh(1 / (2 * b)) ** 2)
    kappa = b if count == "laplace" else 1 / math.expm1(1 / b)
    below = 1 + kappa if count == "laplace" else 1 + kappa / 2
    second = 2 / n**3 if count == "laplace" else 1 / (n + 1) - 2 / n + 1 / (n - 1) if n > 1 else 0
    inverse = 1 / n - lam * second if n > 1 else below
    add_noise(monkeypatch, *z)
    release = mechanism.release(RECORDS, rng=1)
    assert release.count == n
    assert release.mean == pytest.approx(middle + s * inverse, rel=1e-12)
    variance = mechanism.estimator.variance(s=s, n=n)
    expected = math.sqrt(variance) if variance >= 0 else math.nan
    assert release.stderr == pytest.approx(expected, rel=1e-12, nan_ok=True)
    reach = 4 if centred else 6
    assert release.noise["sum"] == tu.Laplace(4 * reach)
    assert float(release.noise["count"].scale) == 2


@pytest.mark.parametrize("z", [(0.0, 0.0), (3.0, -1.25), (-0.5, -2.5), (-9.0, 7.0)], ids=str)
def test_a_release_of_two_totals(monkeypatch, z):
    mechanism = TwoTotalsMean(2, bounds=(-2, 6))
    b, share = 0.5, (TRUE_MEAN + 2) / 8
    above, below = 5 * share + z[0], 5 * (1 - share) + z[1]
    u, y = above + below, above - below
    if below <= 0:
        expected = 1 + b / above - 2 * b**3 / above**3
    elif above <= 0:
        expected = -b / below + 2 * b**3 / below**3
    else:
        expected = 0.5 + 0.5 * y * (1 / u - 4 * b**2 / u**3 + 24 * b**4 / u**5)
    add_noise(monkeypatch, *z)
    release = mechanism.release(RECORDS, rng=1)
    assert release.count == pytest.approx(u, rel=1e-14)
    assert release.mean == pytest.approx(-2 + 8 * expected, rel=1e-12)
    assert release.published == pytest.approx((above, below))
    variance = 64 * mechanism.quadrant.variance(below, above)
    assert release.stderr == pytest.approx(
        math.sqrt(variance) if variance >= 0 else math.nan, nan_ok=True
    )
    assert set(release.noise.values()) == {tu.Laplace(0.5)}


@pytest.mark.parametrize("seed", [False, True], ids=["generator", "seed"])
@pytest.mark.parametrize("kind", ["mean", "smooth"])
def test_count_and_sum_have_independent_noise(seed, kind):
    """One seed must not serve twice: then the noises of count and sum would be equal."""
    mechanism = CENTRED if kind == "mean" else SMOOTH
    values, rng = [0.5] * 40, np.random.default_rng(3)
    count, other = [], []
    for i in range(400):
        release = mechanism.release(values, rng=i if seed else rng)
        z = release.mean - 0.5
        count.append(release.count - 40)
        other.append(z if kind == "smooth" else z / mechanism.estimator(s=1.0, n=release.count))
    ranks = scipy.stats.spearmanr(count, other)
    assert abs(ranks.statistic) < 0.25


# -- smooth sensitivity ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"beta": 0.1}, {"tau": 2.0}, {"beta": 0.05, "tau": 3 / math.sqrt(3)}], ids=str
)
def test_smoothing_parameters_spend_the_budget(options):
    epsilon = 4 * 0.05 + 2 / 3 if len(options) == 2 else 0.9
    mechanism = SmoothSensitivityMean(0.5, epsilon, **options)
    assert 4 * mechanism.beta + 2 / (math.sqrt(3) * mechanism.tau) == pytest.approx(epsilon)
    assert mechanism.epsilon == pytest.approx(0.5 + epsilon)
    for name, value in options.items():
        assert getattr(mechanism, name) == value


def test_smoothing_defaults():
    assert SMOOTH.beta == pytest.approx(0.5 / 12)
    assert SMOOTH.tau == pytest.approx(math.sqrt(3) / 0.5)


def test_the_scale_is_a_smooth_bound_of_the_local_sensitivity():
    """One more record moves a mean in [0, 1] by at most 1/(n + 1), one less by at most 1/n."""
    scale = [SMOOTH.scale(n) / SMOOTH.tau for n in range(200)]
    for n, bound in enumerate(scale):
        assert bound * (1 + 1e-12) >= 1 / max(n, 1)
        if n:
            assert abs(math.log(scale[n] / scale[n - 1])) <= max(SMOOTH.beta, 1 / 24) + 1e-12
    assert SmoothSensitivityMean(0.5, 0.5, bounds=(2, 10)).scale(9) == pytest.approx(
        8 * SMOOTH.scale(9)
    )


def test_smooth_sensitivity_draws_student_noise():
    rng = np.random.default_rng(7)
    values = [0.25, 0.5, 3.0]  # clipped: mean 7/12
    draws = [SMOOTH.release(values, rng).mean for _ in range(4_000)]
    z = (np.array(draws) - 7 / 12) / SMOOTH.scale(3)
    assert scipy.stats.kstest(z, scipy.stats.t(3).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(np.abs(z) / 1.3, lambda x: 2 * scipy.stats.t(3).cdf(x) - 1)[1] < 1e-9
    assert SMOOTH.sd(3, 0.4) == pytest.approx(scipy.stats.t(3).std() * SMOOTH.scale(3))


def test_the_error_of_smooth_sensitivity_does_not_disclose_n():
    """It is estimated from the noisy count alone."""
    for n in (1, 2, 50):
        release = SMOOTH.release([0.5] * n, rng=n)
        assert release.stderr == SMOOTH.sd(max(release.count, 1.0), 0.0)


def test_smooth_sensitivity_of_no_records():
    """The paper sets the mean of no records to the upper bound."""
    rng = np.random.default_rng(11)
    mechanism = SmoothSensitivityMean(0.5, 0.5, bounds=(0, 2))
    draws = [mechanism.release([], rng).mean for _ in range(2_000)]
    assert np.median(draws) == pytest.approx(2, abs=5 * 1.36 * mechanism.scale(0) / math.sqrt(2000))


def test_a_mean_that_a_double_cannot_hold_says_so():
    far = (10**17, 10**17 + 10)
    for mechanism in (Mean(0.5, 0.5, bounds=far), TwoTotalsMean(1, bounds=far)):
        release = mechanism.release([10**17 + 3] * 1000, rng=1)
        assert release.note == "rounded: doubles of this size are 16 apart"
        assert "16 apart" in repr(release)
    assert TwoTotalsMean(1).release([0.3] * 1000, rng=1).note is None
