"""Nothing with the same bias has less variance: the programme written down once more, in cvxpy."""

import numpy as np
import pytest

import trueup as tu
from extras import needs
from near.laws import discrete_gaussian

cp = needs("cvxpy")


def best(sigma, low, high, tolerance, weights, truth):
    """Return the least Σ w·Var there is on {low..high}, g free at every integer."""
    k, mass = discrete_gaussian(sigma)
    kept = np.abs(k) <= 7 * sigma
    k, mass = k[kept], mass[kept] / mass[kept].sum()
    q = np.arange(low, high + 1)
    matrix = np.zeros((len(q), len(q) + len(k) - 1))
    for i in range(len(q)):
        matrix[i, i : i + len(k)] = mass
    g = cp.Variable(matrix.shape[1])
    roots = [np.sqrt(w * mass) for w in weights]
    spread = sum(
        cp.sum_squares(
            cp.multiply(roots[i], g[i : i + len(k)] - matrix[i, i : i + len(k)] @ g[i : i + len(k)])
        )
        for i in range(len(q))
    )
    off = cp.multiply(1 / tolerance, matrix @ g - truth)
    problem = cp.Problem(cp.Minimize(spread), [cp.abs(off) <= 1])
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize(
    ("sigma", "low", "high", "bias", "loss"),
    [(2, 1, 12, 0.05, 1e-3), (1, 2, 30, 0.01, 1e-3), (3, 12, 60, 0.01, 0.02)],
    ids=["no room for the series", "joined early", "joined"],
)
def test_least_prior_averaged_variance(sigma, low, high, bias, loss):
    est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(sigma), (low, high), bias, relative=True)
    q = np.arange(low, high + 1)
    weights = q**2 / q / (1 / q).sum()  # log-uniform, relative to f²
    least = best(sigma, low, high, bias / q, weights, 1 / q)
    reached = float(weights @ est.sd(q) ** 2)
    assert least * (1 - 1e-4) <= reached <= least * (1 + loss)


def test_the_prior_decides_where_it_is_best():
    domain, noise, q = (2, 20), tu.DiscreteGaussian(2), np.arange(2, 21)
    low, high = (
        tu.nearly_unbiased("1/n", noise, domain, 0.02, relative=True, prior={n: 1}).sd(q) * q
        for n in (2, 12)
    )
    assert low[0] < 0.95 * high[0]
    assert high[10] < 0.95 * low[10]


@pytest.mark.parametrize(
    ("prior", "same"),
    [
        ("log-uniform", None),
        (lambda q: 3 / q, None),
        ([1 / n for n in range(2, 21)], None),
        ({n: 5 / n for n in range(2, 21)}, None),
        ("uniform", [7] * 19),
    ],
    ids=["name", "function", "list", "mapping", "uniform"],
)
def test_the_ways_to_say_a_prior(prior, same):
    x = np.arange(-5, 30)
    first, second = (
        tu.nearly_unbiased("1/n", tu.DiscreteGaussian(2), (2, 20), 0.02, relative=True, prior=p)(x)
        for p in (prior, same)
    )
    assert first == pytest.approx(second, rel=1e-4, abs=1e-6)


def test_more_bias_buys_less_variance():
    made = [
        tu.nearly_unbiased("log(n)", tu.Gaussian(2), (1, 100), bias) for bias in (0.2, 0.05, 0.01)
    ]
    averages = [est.average_sd for est in made]
    assert averages == sorted(averages)
    assert averages[2] > 1.2 * averages[0]


def test_a_constant_that_is_close_enough_has_no_variance():
    est = tu.nearly_unbiased("1/n", tu.Gaussian(2), (5, 6), 0.1, relative=True)
    assert est.sd(5.5) == pytest.approx(0, abs=1e-12)
    assert est(-3.0) == est(99.0) == pytest.approx(2 / 11, rel=1e-3)
    assert est.bias_bound == pytest.approx(1 / 11, rel=1e-2)
    assert tu.nearly_unbiased("1/n", tu.DiscreteGaussian(2), (5, 5), 1e-6)(7) == pytest.approx(0.2)


def test_an_exponential_beyond_the_programme_is_unbiased():
    est = tu.nearly_unbiased("exp(n)", tu.Gaussian(2), (1, 50), 0.1, relative=True)
    assert est(3.0) == pytest.approx(np.exp(3 - 2))
    assert est.bias_bound == 0
    falling = tu.nearly_unbiased("exp(-n/7)", tu.Staircase(3), (4, None), 0.1, relative=True)
    assert falling.bias_bound == 0
    assert falling.sd(9.0) > 0
    with pytest.raises(tu.InfiniteVariance, match="variance of the estimator of exp"):
        tu.nearly_unbiased("exp(-n/7)", tu.Staircase(0.2), (4, None), 0.1, relative=True)
