"""Several statistics: exact factors times nearly unbiased ones."""

import numpy as np
import pytest

import trueup as tu
from near.laws import sums

NOISES = {"s": tu.Laplace(2), "n": tu.DiscreteGaussian(2), "m": tu.DiscreteGaussian(1)}
DOMAIN = {"n": (5, 40), "m": (4, 30), "s": (-50, 50)}


def made(f, bias=0.02, relative=True, domain=DOMAIN):
    used = {name: noise for name, noise in NOISES.items() if name in f.replace("min", "")}
    domain = {name: bounds for name, bounds in domain.items() if name in used}
    return tu.nearly_unbiased(f, used, domain, bias, relative=relative)


def over_n(est, s, n):
    """Return E of the estimate of s/n: s times the estimate of 1/n, by direct sums."""
    return s * sums(lambda x: est(s=np.ones(np.shape(x)), n=x), 2, n, n)[0][0]


def test_a_ratio_is_bounded_relative_to_it():
    est = made("s/n", domain={"n": (5, None)})
    for n in (5, 7, 11, 30, 200):
        for s in (-40.0, 3.0):
            expected = over_n(est, s, n)
            assert est.expectation(s=s, n=n) == pytest.approx(expected, rel=1e-9)
            assert abs(expected - s / n) <= est.bias_bound * abs(s / n)
    assert est.bias_bound <= 0.02


def test_an_absolute_bound_needs_bounds_on_everything():
    est = made("s/n", bias=0.1, relative=False)
    assert est.bias_bound <= 0.1
    worst = max(abs(over_n(est, s, n) - s / n) for n in range(5, 41) for s in (-50.0, 50.0))
    assert worst <= est.bias_bound
    assert worst > 0.97 * est.bias_bound
    with pytest.raises(tu.TrueupError, match=r"(?s)not bounded on the domain.*relative=True"):
        made("s/n", bias=0.1, relative=False, domain={"n": (5, None)})


def test_the_exact_factor_is_debiased_too():
    est = made("s**2/n**2")
    x = np.array([10, 20])
    g = est(s=np.array([7.0, 7.0]), n=x) / (7.0**2 - 2 * 2**2)  # T[s²] = s² − 2b²
    again = est(s=np.array([1.0, -3.0]), n=x) / (np.array([1.0, 9.0]) - 8)
    assert g == pytest.approx(again, rel=1e-9)


@pytest.mark.parametrize("f", ["s/n", "s**2/n", "1/(n*m)", "s*log(n)/m"])
def test_exact_law_of_a_product(f):
    est = made(f)
    truth = {"s": 12.0, "n": 8, "m": 6}
    point = {k: v for k, v in truth.items() if k in est.statistics}
    rng = np.random.default_rng(5)
    draws = {k: v + NOISES[k].sample(300_000, rng) for k, v in point.items()}
    values = est(**draws)
    assert values.std() == pytest.approx(est.sd(**point), rel=0.02)
    error = 4.5 * values.std() / np.sqrt(len(values))
    assert values.mean() == pytest.approx(est.expectation(**point), abs=error)
    exact = {"s/n": 12 / 8, "s**2/n": 144 / 8, "1/(n*m)": 1 / 48, "s*log(n)/m": 2 * np.log(8)}[f]
    assert abs(est.bias(**point)) <= est.bias_bound * exact <= 0.02 * exact
    assert est.expectation(**point) - exact == pytest.approx(est.bias(**point))


def test_the_variance_of_a_product():
    est = made("s/n", domain={"n": (5, None)})
    rng = np.random.default_rng(6)
    for n, s in ((8, 12.0), (60, 12.0)):
        draws = {
            "s": s + NOISES["s"].sample(300_000, rng),
            "n": n + NOISES["n"].sample(300_000, rng),
        }
        average = est.variance(**draws).mean()
        assert average == pytest.approx(est.sd(s=s, n=n) ** 2, rel=0.15 if n < 20 else 0.02)


def test_sums_of_products_share_the_bias():
    est, alone = (made(f, bias=0.5, relative=False) for f in ("s/n + m", "s/n"))
    for n in (5, 12, 40):
        expected = over_n(alone, 50.0, n)
        assert abs(expected - 50 / n) <= 0.5
        assert est.expectation(s=50.0, n=n, m=7) == pytest.approx(expected + 7, rel=1e-6)
    assert est.sd(s=5.0, n=20, m=7) > 1.0
    assert est.variance(s=5.0, n=20, m=7) > 1.0


def test_two_terms_divide_the_bias_among_them():
    est = made("s/n + 10*log(m)", bias=0.5, relative=False)
    assert 0.4 < est.bias_bound <= 0.5
    biases = [
        est.bias(s=s, n=n, m=m) for s in (-50.0, 50.0) for n in (5, 6, 7, 9) for m in (4, 5, 6)
    ]
    assert 0.2 < max(map(abs, biases)) <= est.bias_bound
    alone = made("s/n", bias=0.5, relative=False)
    assert max(abs(alone.bias(s=50.0, n=n)) for n in range(5, 41)) > 0.4


def test_one_statistic_in_several_terms():
    est = made("s/n + n", bias=0.5, relative=False)
    rng = np.random.default_rng(8)
    draws = {"s": 9.0 + NOISES["s"].sample(300_000, rng), "n": 8 + NOISES["n"].sample(300_000, rng)}
    values = est(**draws)
    assert values.std() == pytest.approx(est.sd(s=9.0, n=8), rel=0.02)
    assert values.mean() == pytest.approx(est.expectation(s=9.0, n=8), abs=0.03)
    with pytest.raises(tu.TrueupError, match="terms share statistics"):
        est.variance(s=9.0, n=8)


def test_what_does_not_separate_is_refused():
    with pytest.raises(tu.NoUnbiasedEstimator, match="no sum of products"):
        made("1/(n + m)")
    with pytest.raises(tu.TrueupError, match="cancel"):
        made("s/n - m")
    with pytest.raises(tu.TrueupError, match="max_bias is missing"):
        tu.nearly_unbiased("s/n", {"s": tu.Laplace(1), "n": tu.Gaussian(1)}, {"n": (5, 9)})


def test_a_logarithm_of_a_positive_product_separates():
    """log(a·b) = log(a) + log(b): the same estimator as that of the sum."""
    noise = {"a": tu.Gaussian(1), "b": tu.Laplace(1)}
    domain = dict.fromkeys("ab", (20, 40))
    one = tu.nearly_unbiased("log(a*b)", noise, domain, max_bias=0.01)
    two = tu.nearly_unbiased("log(a) + log(b)", noise, domain, max_bias=0.01)
    assert one(a=30, b=25) == pytest.approx(two(a=30, b=25), rel=1e-9)


LAPLACE = tu.DiscreteLaplace(5)
SMALL = {"n": (1, None)}


@pytest.mark.parametrize(
    ("f", "part", "at"),
    [
        ("m/n - 1", "m/n", {"m": 3}),
        ("(m - n)/n", "m/n", {"m": 3}),
        ("100*(m/n - 1)", "100*m/n", {"m": 3}),
        ("a/n - b/n", "f", {"a": 5, "b": 2}),
    ],
)
def test_growth_rates_are_traded_like_their_ratio(f, part, at):
    """The bias of 100·(m/n − 1) is that of 100·m/n, by sums over the noise of n."""
    noises = dict.fromkeys((*at, "n"), LAPLACE)
    est = tu.nearly_unbiased(f, noises, SMALL, cells=20)
    exact = tu.unbiased("m/n", dict.fromkeys("mn", LAPLACE), SMALL)
    assert est.measure == part
    assert (f"% of {part}, certified" in est.certified) == (part != "f")
    k = np.arange(-300, 301)
    fixed = {name: np.full(len(k), float(value)) for name, value in at.items()}
    size, less = (100.0, 100.0) if f[:3] == "100" else (1.0, 0.0 if part == "f" else 1.0)
    off = []
    for n in range(1, 40):
        mean = LAPLACE.pmf(k) @ est(**fixed, n=n + k)
        truth = size * 3 / n
        off.append(abs(mean - (truth - less)) / truth)
    assert 0.98 * est.bias_bound < max(off) <= est.bias_bound
    assert est.sd(**at, n=3) < float(size) * exact.sd(m=3, n=3) / 10
    assert est.stderr(**at, n=30) > 0


def test_what_cannot_be_traded_is_told_and_keeps_its_conditions():
    noises = {"m": LAPLACE, "n": LAPLACE}
    with pytest.warns(tu.BoundWarning, match=r"no bias of m/\(m \+ n\) can be traded.*no sum of"):
        est = tu.nearly_unbiased("m/(m + n)", noises, "m>=0, n>=0, m + n >= 1", cells=20)
    k = np.arange(-160, 161)
    masses = np.outer(LAPLACE.pmf(k), LAPLACE.pmf(k))
    for m, n in ((1, 0), (0, 1), (2, 3)):
        values = est(m=(m + k)[:, None], n=(n + k)[None, :])
        assert np.sum(masses * values) == pytest.approx(m / (m + n), abs=1e-9)
    assert "can be traded" in est.explain()


def test_with_a_condition_the_better_of_two_is_returned_and_told():
    """Near s = n and far from n = 0 the condition is worth more than a bias."""
    law = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
    bounds = "0 <= s <= n, n >= 4"
    with pytest.warns(tu.BoundWarning, match="this is the unbiased estimator, which uses it"):
        est = tu.nearly_unbiased("s/n", law, bounds, max_bias=0.01, relative=True)
    assert est.bias_bound == 0
    assert est.sd(s=12, n=12) == pytest.approx(tu.unbiased("s/n", law, bounds).sd(s=12, n=12))
    with pytest.warns(tu.BoundWarning, match="s <= n is not used where a bias is allowed; "):
        near = tu.nearly_unbiased("s/n", law, "0 <= s <= n, n >= 1", cells=9)
    assert near.bias_bound > 0
