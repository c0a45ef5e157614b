"""The limit: privacy and unbiasedness of the table in exact arithmetic, and its ratios."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.stats

import trueup as tu
from trueup.mechanisms import GroupMean, GroupShare, OptimalRelease
from work import at_most

CASES = {
    "n": ("n", lambda n: n, 0, 25, 0.5, 1.000),
    "square": ("n**2", lambda n: n * n, 0, 25, 0.5, 1.000),
    "inverse, 2": ("1/n", lambda n: 1 / n, 1, 25, 2, 1.000),
    "log": ("log(n)", math.log, 1, 25, 0.5, 1.002),
    "inverse": ("1/n", lambda n: 1 / n, 1, 25, 0.5, 1.006),
    "root": ("sqrt(n)", math.sqrt, 0, 25, 0.7, 1.009),
    "inverse, 0.2": ("1/n", lambda n: 1 / n, 1, 25, 0.2, 1.32),
    "kink": ("abs(n - 8)", lambda n: abs(n - 8), 0, 25, 0.5, 1.37),
    "step": ("where(n > 5, 1, 0)", lambda n: float(n > 5), 0, 25, 0.5, 1.45),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    text, f, low, high, epsilon, ratio = CASES[request.param]
    return OptimalRelease(text, (low, high), epsilon), f, low, high, epsilon, ratio


def discrete_laplace_variance(f, low, high, epsilon):
    """The variance of discrete Laplace noise with its best estimator, by sums over the integers."""
    a = math.exp(-epsilon)
    n = np.arange(low, high + 1)
    values = np.array([f(int(k)) for k in n], float)
    steps, g = np.diff(values), values.copy()
    g[1:-1] -= a / (1 - a) ** 2 * np.diff(steps)
    g[0] -= a / (1 - a) * steps[0]
    g[-1] += a / (1 - a) * steps[-1]
    mass = (1 - a) / (1 + a) * a ** np.abs(n[:, None] - n)
    mass[:, [0, -1]] /= 1 - a
    assert np.allclose(mass @ g, values, atol=1e-9)
    return float(np.mean(mass @ g**2 - values**2))


def rows(release):
    """The probabilities of every label at every true value, as fractions."""
    table = release.table
    for q in release.truths:
        weights = [Fraction(w) for w in table.row(q).weights]
        yield q, [w / sum(weights) for w in weights]


def test_every_constraint_holds_exactly(case):
    release, f, *_, epsilon, _ = case
    with mpmath.workdps(60):
        above = mpmath.e ** mpmath.mpf(epsilon)
        limit = Fraction(int(mpmath.floor(above * 10**40)), 10**40)  # a rational below e^ε
    table = dict(rows(release))
    labels = [Fraction(y) for y in release.table.labels]
    for q, row in table.items():
        assert min(row) >= 0
        assert sum(row) == 1
        mean = sum(p * y for p, y in zip(row, labels, strict=True))
        assert abs(float(mean) - f(q)) <= 1e-9 * max(1.0, abs(f(q)))
        for other in (q - 1, q + 1):
            if other in table:
                pairs = zip(row, table[other], strict=True)
                assert all(p <= limit * r for p, r in pairs)


def test_the_ratio_to_discrete_laplace(case):
    release, f, low, high, epsilon, ratio = case
    found = discrete_laplace_variance(f, low, high, epsilon) / release.average_variance
    assert found == pytest.approx(ratio, rel=0.02)
    assert found >= 1 - 1e-4


def test_the_dual_bound_is_near(case):
    release = case[0]
    assert release.lower_bound <= release.average_variance * (1 + 1e-12)
    assert release.gap < 6e-4


def test_the_variance_is_that_of_the_table(case):
    release = case[0]
    labels = [Fraction(y) for y in release.table.labels]
    for q, row in rows(release):
        mean = sum(p * y for p, y in zip(row, labels, strict=True))
        spread = sum(p * (y - mean) ** 2 for p, y in zip(row, labels, strict=True))
        assert release.variance(q) == pytest.approx(float(spread), rel=1e-9)


def test_draws_follow_the_table_and_a_near_miss_is_rejected():
    release = OptimalRelease("1/n", (1, 8), 1)
    rng, q, size = np.random.default_rng(5), 3, 20_000
    drawn = [release.release(q, rng).value for _ in range(size)]
    table, labels = dict(rows(release)), list(release.table.labels)
    seen = np.array([drawn.count(y) for y in labels])

    def p_value(row):
        expected = np.array([float(p) * size for p in row])
        some = expected > 5
        rest = [seen[~some].sum()], [expected[~some].sum()]
        observed = np.append(seen[some], rest[0])
        wanted = np.append(expected[some], rest[1])
        keep = wanted > 0
        statistic = float((((observed - wanted) ** 2)[keep] / wanted[keep]).sum())
        return float(scipy.stats.chi2.sf(statistic, keep.sum() - 1))

    assert p_value(table[q]) > 1e-4
    assert p_value(table[q + 1]) < 1e-9


def test_secure_and_simulated_releases_say_what_they_are():
    release = OptimalRelease("n", (0, 3), 1)
    secure = release.release(2)
    assert secure.value in release.table.labels
    assert not secure.simulated
    assert "not private" in repr(release.release(2, np.random.default_rng(1)))


def test_efficiency_of_an_estimator():
    est = tu.unbiased("abs(n - 8)", tu.DiscreteLaplace(2), (0, 25))
    assert est.efficiency(epsilon=0.5) == pytest.approx(1.37, rel=0.02)
    two = tu.unbiased("a*b", {"a": tu.DiscreteLaplace(2), "b": tu.DiscreteLaplace(2)})
    with pytest.raises(tu.TrueupError, match="one statistic"):
        two.efficiency(epsilon=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1/n", (1, 25), 0), "epsilon"),
        (("1/n", (1, 25), -1), "epsilon"),
        (("1/n", (1, 25), "x"), "epsilon"),
        (("1/n", (25, 1), 1), "low"),
        (("1/n", (1, None), 1), "bounded"),
        (("1/n", (0, 25), 1), "0"),
        (("1/n", (1, 5000), 1), "too many"),
        (("n", (0, 3), 1, [1, 2]), "prior"),
        (("n", (0, 3), 1, [0, 0, 0, 0]), "prior"),
        (("n", (0, 3), 1, [1, -1, 1, 1]), "prior"),
    ],
    ids=str,
)
def test_bad_input(arguments, message):
    with pytest.raises(tu.TrueupError, match=message) as caught:
        OptimalRelease(*arguments)
    assert "\nHint: " in str(caught.value)


def test_a_true_value_outside_the_domain_is_refused():
    with pytest.raises(tu.TrueupError, match="must be an integer"):
        OptimalRelease("n", (0, 3), 1).release(7)


def plain_programme(values, epsilon, prior, labels):
    """The textbook programme on a fixed grid of labels, without any of our shortcuts."""
    m, n = len(values), len(labels)
    one, each = scipy.sparse.eye(m), scipy.sparse.eye(n)
    scale = np.abs(labels).max()
    totals = scipy.sparse.kron(one, np.ones((1, n)))
    means = scipy.sparse.kron(one, labels[None] / scale)
    band, ones = -math.exp(epsilon) * np.ones(m - 1), np.ones(m - 1)
    pairs = [
        scipy.sparse.diags([a, b], [0, 1], shape=(m - 1, m))
        for a, b in ((ones, band), (band, ones))
    ]
    found = scipy.optimize.linprog(
        (prior[:, None] * (labels - values[:, None]) ** 2).ravel(),
        A_ub=scipy.sparse.vstack([scipy.sparse.kron(p, each) for p in pairs]),
        b_ub=np.zeros(2 * (m - 1) * n),
        A_eq=scipy.sparse.vstack([totals, means]),
        b_eq=np.concatenate([np.ones(m), values / scale]),
        method="highs-ds",
    )
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("seed", range(6))
def test_the_plain_programme_lies_between_the_bounds(seed):
    rng = np.random.default_rng(seed)
    m, epsilon = int(rng.integers(2, 8)), float(rng.choice([0.2, 0.5, 1, 3]))
    values, prior = rng.normal(size=m), rng.dirichlet(np.ones(m))
    best = OptimalRelease(dict(enumerate(values.tolist())), (0, m - 1), epsilon, prior.tolist())
    inner = np.array(best.table.labels[1:-1])
    reach = 3 * math.sqrt(best.average_variance)
    grid = np.linspace(inner.min() - reach, inner.max() + reach, 200)
    plain = plain_programme(values, epsilon, prior, np.union1d(inner, grid))
    assert best.lower_bound <= plain * (1 + 1e-7)
    assert plain == pytest.approx(best.average_variance, rel=6e-4)


@pytest.mark.parametrize(
    ("f", "size", "epsilon", "prior"),
    [
        ("abs(n - 3)", 12, 6, None),  # labels much closer together than the values
        ("where(n > 3, 1, 0)", 12, 6, None),  # rows that are nearly certain
        ("abs(n - 9)", 30, 1, None),
        ("abs(n - 9)", 30, 0.05, None),  # discrete Laplace is 40 times worse
        ("1/(n + 1)", 30, 6, [0, 1] + [0] * 28),  # no weight on most values
        ("abs(n - 9)", 30, 10, [1, 1] + [0] * 28),
        ("1e6 + 1/(n + 1)", 12, 1, None),
    ],
)
def test_hard_cases_are_private_and_unbiased(f, size, epsilon, prior):
    best = OptimalRelease(f, (0, size - 1), epsilon, prior)  # checks every constraint exactly
    assert 0 <= best.lower_bound <= best.average_variance
    if prior is None:
        assert best.gap < 1e-3


def test_sixty_values_take_few_steps():
    with at_most(6_000_000):
        best = OptimalRelease("1/n", (1, 60), 0.5)
    assert best.gap < 4e-3


def test_efficiency_is_of_means_between_0_and_1_at_the_same_budget():
    limit = OptimalRelease.of_means(1, most=3)
    assert limit.efficiency(GroupMean(1, bounds=(-5, 95))) == pytest.approx(
        limit.efficiency(GroupMean(1))
    )
    with pytest.raises(tu.TrueupError, match=r"spends 2, this limit is of 1\nHint: Optimal"):
        limit.efficiency(GroupShare(2))
    with pytest.raises(tu.TrueupError, match="unbiased from 3 records on"):
        limit.efficiency(GroupShare(1, empty="n >= 3"))


@pytest.mark.parametrize("epsilon", [4, 8])
def test_under_little_noise_no_mechanism_beats_the_limit(epsilon):
    limit = OptimalRelease.of_means(epsilon, most=4)
    assert limit.efficiency(GroupShare(epsilon)) > 1 - 0.01
