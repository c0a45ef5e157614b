"""An ordinary estimator: values, arrays, tables, SQL, variance, intervals, words."""

import pickle

import numpy as np
import pytest

import trueup as tu
from extras import needs
from near.laws import Gaussian, mean, sums


@pytest.fixture(scope="module")
def counts():
    return tu.nearly_unbiased("1/n", tu.DiscreteGaussian(3), (12, 400), 0.01, relative=True)


@pytest.fixture(scope="module")
def reals():
    return tu.nearly_unbiased("1/x", tu.Gaussian(2), (4, None), 0.02, relative=True)


@pytest.fixture(scope="module")
def ratio():
    noises = {"s": tu.Laplace(2), "n": tu.DiscreteGaussian(3)}
    return tu.nearly_unbiased("s/n", noises, {"n": (12, None)}, 0.01, relative=True)


def test_numbers_and_arrays(counts, reals):
    for est, x in ((counts, np.arange(-40, 60)), (reals, np.linspace(-20, 40, 101))):
        values = est(x)
        assert values == pytest.approx([est(v) for v in x.tolist()], rel=1e-12)
        assert np.isnan(est(float("nan")))
        assert np.isnan(est(np.array([np.nan, 5.0]))).tolist() == [True, False]
        assert est(x.reshape(-1, 1)).shape == (len(x), 1)
    assert counts(-40) == counts(-1000)  # constant far below the bound
    with pytest.raises(tu.TrueupError, match="whole numbers"):
        counts(3.5)


def test_the_estimate_is_continuous_where_it_is_joined(reals):
    curve = reals._answer.factors[0].solution.curve
    for knot in curve.knots:
        steps = reals(knot + np.array([-1e-6, 0.0, 1e-6]))
        assert np.abs(np.diff(steps)).max() < 1e-5 * np.abs(steps).max() + 1e-7


def test_the_law_at_a_true_value(counts, reals):
    means, variances = sums(counts, 3, 5, 60)
    q = np.arange(5, 61)  # from below the bound on
    assert counts.expectation(q) == pytest.approx(means, rel=1e-9)
    assert counts.sd(q) ** 2 == pytest.approx(variances, rel=1e-6)
    assert counts.bias(q) == pytest.approx(means - 1 / q, abs=1e-12)
    assert reals.expectation(7.3) == pytest.approx(mean(reals, Gaussian(2), [7.3])[0], rel=1e-7)
    assert np.isnan(reals.sd(float("nan")))


@pytest.mark.parametrize("name", ["counts", "reals"])
def test_the_variance_is_estimated_nearly_without_bias(name, request):
    est = request.getfixturevalue(name)
    if name == "counts":
        q = np.arange(12, 200)
        means = sums(est.variance, 3, 12, 199)[0]
    else:
        q = np.linspace(4, 60, 57)
        means = mean(est.variance, Gaussian(2), q)
    off = np.abs(means / est.sd(q) ** 2 - 1)
    assert off.max() <= est.variance_bias * 1.02 <= 0.21
    assert off[-1] < 1e-3  # far from the bound it is σ²·f′²
    x = np.arange(-20, 100)
    assert (est.variance(x) > 0).all()
    assert est.stderr(x) == pytest.approx(np.sqrt(est.variance(x)))


def test_intervals_cover(counts, ratio):
    rng = np.random.default_rng(3)
    for n in (12, 20, 60):
        x = n + tu.DiscreteGaussian(3).sample(4000, rng)
        low, high = counts.interval(x)
        assert ((low <= 1 / n) & (1 / n <= high)).mean() > 0.94
        s = 30 + tu.Laplace(2).sample(4000, rng)
        low, high = ratio.interval(s=s, n=x)
        assert ((low <= 30 / n) & (30 / n <= high)).mean() > (0.88 if n < 20 else 0.93)
    assert counts.interval_method == "exact"
    low, high = ratio.interval(s=30.0, n=20)
    assert low < ratio(s=30.0, n=20) < high


@pytest.mark.parametrize("output", ["value", "variance", "stderr"])
def test_sql_gives_the_same_numbers(counts, reals, ratio, output):
    duckdb = needs("duckdb")
    n, x = np.arange(-30, 70), np.linspace(-20.0, 50.0, 100)
    frame = duckdb.sql("SELECT UNNEST($n) AS n, UNNEST($x) AS x", params={"n": n, "x": x})
    query = ", ".join(
        f"{est.sql(output=output, columns=columns)} AS v{i}"
        for i, (est, columns) in enumerate([(counts, None), (reals, None), (ratio, {"s": "x"})])
    )
    found = frame.query("t", f"SELECT {query} FROM t").fetchnumpy()  # noqa: S608
    ask = {"value": "__call__"}.get(output, output)
    wanted = [getattr(counts, ask)(n), getattr(reals, ask)(x), getattr(ratio, ask)(s=x, n=n)]
    for i, values in enumerate(wanted):
        column = np.ma.filled(found[f"v{i}"], np.nan)
        assert column == pytest.approx(values, rel=1e-9, abs=1e-15, nan_ok=True)


def test_tables(counts, ratio):
    pl = needs("polars")
    frame = pl.DataFrame({"n": np.arange(10, 60), "s": np.linspace(0, 30, 50)})
    made = tu.debias(frame, inverse=counts, mean=ratio)
    n, s = frame["n"].to_numpy(), frame["s"].to_numpy()
    assert made["inverse"].to_numpy() == pytest.approx(counts(n))
    assert made["inverse_stderr"].to_numpy() == pytest.approx(counts.stderr(n))
    assert made["mean"].to_numpy() == pytest.approx(ratio(s=s, n=n))
    with pytest.raises(tu.TrueupError, match="the noise scale of n is 0 at row 0"):
        tu.debias(frame, inverse=counts, scales={"n": "s"})


def test_words_and_formula(counts, reals, ratio):
    words = counts.explain()
    assert "Nearly unbiased estimator of 1/n" in words
    assert "at most 0.9998 % of |f| (asked: 1 %)" in words
    assert "log-uniform prior" in words
    assert "cubic spline" in reals.explain()
    assert "s + Laplace(2)" in ratio.explain()
    assert "spline(n)" in str(counts.formula)
    assert "spline(x)" in str(reals.formula)
    assert "s*" in str(ratio.formula)
    assert "|bias| ≤ 0.01·|f|" in repr(counts)


def test_words_of_an_estimator_that_no_bias_improves():
    est = tu.nearly_unbiased("exp(n)", tu.Gaussian(2), (1, 50), 0.1, relative=True)
    assert "unbiased for exp(n): no bias that is allowed helps" in est.explain()
    assert "bounded bias" not in est.explain()


def test_it_pickles(counts):
    again = pickle.loads(pickle.dumps(counts))  # noqa: S301  (our own bytes)
    x = np.arange(-10, 50)
    assert (again(x) == counts(x)).all()
    assert again.bias_bound == counts.bias_bound


def test_what_it_refuses(counts):
    with pytest.raises(tu.TrueupError, match="no JSON form"):
        counts.to_json()
    with pytest.raises(tu.TrueupError, match="no formula near the bounds"):
        _ = counts.variance_formula


def test_averages_of_draws_stay_within_the_bound(counts):
    """The naive 1/x fails where the estimator does not, on the same draws."""
    rng = np.random.default_rng(11)
    noise, n = tu.DiscreteGaussian(3), 14
    x = n + noise.sample(400_000, rng)
    values = counts(x)
    error = 4 * values.std() / np.sqrt(len(x))
    assert abs(values.mean() - 1 / n) <= counts.bias_bound / n + error
    naive = 1 / np.maximum(x, 1)
    assert abs(naive.mean() - 1 / n) > counts.bias_bound / n + error
