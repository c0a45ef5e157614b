"""The bound on the bias, attacked between its grid points."""

import numpy as np
import pytest

import depth
import trueup as tu
from near.laws import Gaussian, Staircase, largest, mean, sums

CASES = {
    "log": ("log(n)", np.log, (2, 60), 0.02, False),
    "sqrt": ("sqrt(n)", np.sqrt, (2, 60), 0.02, True),
    "square": ("1/n**2", lambda q: q**-2.0, (5, None), 0.05, True),
    "entropy": ("n*log(n)", lambda q: q * np.log(q), (1, None), 0.1, False),
    "ratio": ("s/n", lambda q: 1 / q, (4, None), 0.02, True),
}
LAWS = {
    "gaussian": (tu.Gaussian(2), Gaussian(2)),
    "staircase": (tu.Staircase(0.7), Staircase(0.7)),
}


def estimator(case, noise):
    f, truth, domain, bias, relative = CASES[case]
    noises = {"s": tu.Laplace(3), "n": noise} if case == "ratio" else noise
    est = tu.nearly_unbiased(f, noises, {"n": domain}, bias, relative=relative)
    assert 0 < est.bias_bound <= bias
    g = (lambda x: est(s=np.ones(np.shape(x)), n=x)) if case == "ratio" else est
    size = (lambda q: np.abs(truth(q))) if relative else np.ones_like
    return est, g, truth, size


@pytest.mark.parametrize(("case", "name"), depth.crossed([*CASES], [*LAWS]))
def test_no_true_value_beats_the_bound(case, name):
    noise, law = LAWS[name]
    est, g, truth, size = estimator(case, noise)
    found = largest(lambda q: (mean(g, law, q) - truth(q)) / size(q), est.domain["n"].low, 40.0)
    assert found <= est.bias_bound * (1 + 1e-8)
    assert found > 0.97 * est.bias_bound  # and the bound is no more than it has to be


@pytest.mark.parametrize("case", CASES)
def test_no_integer_beats_the_bound(case):
    est, g, truth, size = estimator(case, tu.DiscreteGaussian(2))
    low = int(est.domain["n"].low)
    high = int(min(est.domain["n"].high, 399))
    q = np.arange(low, high + 1.0)
    found = np.abs((sums(g, 2, low, high)[0] - truth(q)) / size(q)).max()
    assert found <= est.bias_bound * (1 + 1e-8)
    assert found > 0.97 * est.bias_bound


@pytest.mark.parametrize("name", LAWS)
def test_the_search_sees_what_is_biased(name):
    noise, law = LAWS[name]
    est = tu.nearly_unbiased("1/n", noise, (4, None), 0.02, relative=True)

    def wrong(x):  # four in a thousand too much
        return 1.004 * est(x)

    found = largest(lambda q: mean(wrong, law, q) * q - 1, 4.0, 40.0)
    assert found > est.bias_bound


def test_far_out_the_remainder_is_bounded_too():
    est = tu.nearly_unbiased("sqrt(n)", tu.Gaussian(2), (2, None), 0.02)
    q = np.geomspace(30, 1e6, 50)
    assert np.abs(mean(est, Gaussian(2), q) - np.sqrt(q)).max() <= est.bias_bound


@pytest.mark.parametrize(
    ("f", "truth", "domain"),
    [("sqrt(n)", np.sqrt, (0, 30)), ("abs(n - 9)", lambda q: np.abs(q - 9), (0, 20))],
    ids=["infinite slope", "kink"],
)
def test_where_f_is_not_smooth(f, truth, domain):
    est = tu.nearly_unbiased(f, tu.Gaussian(2), domain, 0.6)
    found = largest(lambda q: mean(est, Gaussian(2), q) - truth(q), *map(float, domain))
    assert 0.9 * est.bias_bound < found <= est.bias_bound * (1 + 1e-8)
    assert est.bias_bound <= 0.6


def test_a_bound_above_only():
    est = tu.nearly_unbiased("sqrt(100 - n)", tu.Gaussian(2), (None, 98), 0.1)
    q = np.linspace(-2000, 98, 600)
    found = np.abs(mean(est, Gaussian(2), q) - np.sqrt(100 - q)).max()
    assert 0.9 * est.bias_bound < found <= est.bias_bound * (1 + 1e-8)
    assert est.bias_bound <= 0.1


def test_the_whole_line_without_any_bound():
    est = tu.nearly_unbiased("1/(1 + q**2)", tu.Gaussian(0.2), None, 0.01)
    q = np.linspace(-20, 20, 801)
    assert np.abs(mean(est, Gaussian(0.2), q) - 1 / (1 + q**2)).max() <= est.bias_bound <= 0.01


def test_integers_under_continuous_noise():
    est = tu.nearly_unbiased("log(n)", tu.Gaussian(1), tu.Integers(1, 50), 0.01)
    q = np.arange(1.0, 51.0)
    found = np.abs(mean(est, Gaussian(1), q) - np.log(q)).max()
    assert 0.97 * est.bias_bound < found <= est.bias_bound * (1 + 1e-8)
    assert est.bias_bound <= 0.01


@pytest.mark.parametrize(
    "noise",
    [tu.RoundedLaplace(2), tu.RoundedGaussian(2), tu.DiscreteLaplace(3)],
    ids=repr,
)
def test_every_noise_with_masses(noise):
    est = tu.nearly_unbiased("1/n", noise, (5, 300), 0.01, relative=True)
    q, k = np.arange(5, 301), np.arange(-150, 151)
    means = np.array([est(n + k) @ np.asarray(noise.pmf(k)) for n in q])
    assert np.abs(means * q - 1).max() <= est.bias_bound <= 0.01
    assert est.expectation(q) == pytest.approx(means, rel=1e-9)


@pytest.mark.parametrize(
    "noise",
    [tu.StudentT(5), tu.Uniform(4), tu.ScipyNoise("gumbel_r", loc=0, scale=1), tu.Laplace(2)],
    ids=repr,
)
def test_every_noise_with_a_density(noise):
    est = tu.nearly_unbiased("1/n", noise, (6, 40), 0.02, relative=True)
    rng = np.random.default_rng(7)
    p = (np.arange(200_000) + rng.random(200_000)) / 200_000  # one draw from every slice of the law
    z = np.asarray(noise.quantile(p))
    for q in (6.0, 7.3, 11.0, 39.0):
        values = est(q + z)
        assert values.mean() == pytest.approx(est.expectation(q), abs=1e-3 / q)
        assert values.std() == pytest.approx(est.sd(q), rel=1e-2)
        assert abs(est.bias(q)) * q <= est.bias_bound <= 0.02
