"""Every estimate of a table has the right mean, its variance too: summed over the noise itself."""

import dataclasses
import re
from fractions import Fraction

import numpy as np
import pytest

import trueup as tu
from microdata.people import KEYS, MEASURES, people
from trueup.mechanisms.shares import Shares
from trueup.microdata.design import Design
from trueup.microdata.expected import expected, usable_from

REACH = 60


def geometric(scale):
    """Return the whole numbers, and their probabilities under discrete Laplace noise."""
    k = np.arange(-REACH, REACH + 1)
    a = np.exp(-1 / float(scale))
    return k, a ** np.abs(k) * (1 - a) / (1 + a)


def noise_of(design, measure):
    return next(s.noise for s in design.statistics if s.measure == measure)


def pairs(scale):
    """Return all pairs of whole numbers of two noises, and their probabilities."""
    k, p = geometric(scale)
    return np.repeat(k, len(k)), np.tile(k, len(k)), np.outer(p, p).ravel()


def law(design, n, part):
    """Return E g, Var g and E V̂ of a mean: sums over the noise, integrals over the rounding.

    Between the values of U at which the count jumps g is linear in U and V̂ a square: two points
    integrate them.
    """
    estimator, times = design.estimators["wage"], design.times("wage")
    zeros, ones, p = pairs(noise_of(design, "wage").scale)
    total = times * n * part
    rest, values, variances, mass = total - np.floor(total), [], [], []
    for start, end, count in ((0, 1 - rest, np.floor(total)), (1 - rest, 1, np.floor(total) + 1)):
        for at in (-1, 1):
            u = (start + end) / 2 + at * (end - start) / np.sqrt(12)
            given = {
                "wage_low_noisy": times * n - count + zeros,
                "wage_high_noisy": count + ones,
                "wage_rounding": np.full(len(p), 0.5 - u),
            }
            values.append(estimator(**given))
            variances.append(estimator.variance(**given))
            mass.append(p * (end - start) / 2)
    values, variances, mass = map(np.concatenate, (values, variances, mass))
    mean = values @ mass
    return mean, (values - mean) ** 2 @ mass, variances @ mass


@pytest.mark.parametrize("epsilon", [1.5, 6])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_a_mean_is_unbiased_also_of_no_records_and_so_is_its_variance(n, epsilon):
    design = Design.read({"wage": "mean(wage, 10, 70)"}, epsilon)
    assert design.times("wage") == {1.5: 1, 6: 3}[epsilon]
    for part in (0.0, 0.3, 0.5, 1.0):
        mean, variance, told = law(design, n, part)
        assert mean == pytest.approx(10 + 60 * part if n else 40, rel=1e-8)
        assert told == pytest.approx(variance, rel=1e-6)


def test_the_errors_to_expect_of_means_and_shares_are_those_of_the_exact_law():
    given = {"wage": "mean(wage, 0, 100)", "sex": "share(sex, [a, b])"}
    design = Design.read(given, 3)
    found = expected(design, (2, 8))
    a, b, p = pairs(noise_of(design, "sex").scale)
    for i, n in enumerate((2, 8)):
        worst = max(law(design, n, part)[1] for part in (0, 1 / 8, 1 / 4, 1 / 2))
        assert found["wage"][i] == pytest.approx(np.sqrt(worst), rel=1e-6)
        shares = []
        for s in {0, round(n / 8), round(n / 4), n // 2}:
            x = design.estimators["sex_a"](sex_a_noisy=s + a, sex_b_noisy=n - s + b)
            shares.append((x - s / n) ** 2 @ p)
        assert found["sex"][i] == pytest.approx(np.sqrt(max(shares)), rel=1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 6), Fraction(3)])
def test_the_errors_to_expect_are_the_largest(epsilon):
    design = Design.read({"sex": "share(sex, [a, b])"}, epsilon)
    for n in (10, 1000):
        shares = Shares(epsilon, range(2))
        worst = max(shares.sd(n, Fraction(k, n)) for k in range(min(n // 2, 60) + 1))
        assert 0.99 < expected(design, (n,))["sex"][0] / worst < 1 + 1e-9


@pytest.mark.parametrize("epsilon", [3, Fraction(1, 50)])
def test_so_many_records_are_enough(epsilon):
    design = Design.read({"wage": "mean(wage, 0, 100)"}, epsilon)
    n = usable_from(design, "wage", 50)
    few, enough = expected(design, (max(1, n // 2), n))["wage"]
    assert 2 * enough <= 50 < 2 * few


def test_the_report_says_which_cells_are_too_noisy(tmp_path):
    rows = "".join(f"{s},{i % 2}\n" for s, n in (("A", 200), ("B", 4)) for i in range(n))
    (tmp_path / "rows.csv").write_text(f"state,x\n{rows}")
    keys = ["A", "B", *(f"empty {i}" for i in range(40))]
    asked = {"n": "count", "x": "mean(x, 0, 1)", "s": "share(x, [0, 1])"}
    made = tu.release(tmp_path / "rows.csv", "state", keys, 1, rng=1, **asked)
    found = re.search(r"\nx: too noisy to use where n is below (\d+): (\d+) of 42", made.report)
    limit, few = map(int, found.groups())
    two = 2 * expected(made.design, (1,))["n"][0]
    enough = limit - two
    assert 2 * expected(made.design, (int(enough),))["x"][0] <= 0.5
    assert few == sum(n < limit for n in made.columns["n"]) == 41
    none = made.columns["s_0_stderr"].count(None)
    assert none
    assert f"\ns_0: {none} groups have no standard error" in made.report
    weak = sum(abs(n) < two for n in made.columns["n"])
    assert f"n: too noisy to use within {two:.4g} of 0: {weak} of 42 groups." in made.report


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (3, 9)])
def test_shares_are_unbiased_and_sum_to_one(counts):
    design = Design.read({"sex": "share(sex, [f, m])"}, 1)
    a, b, p = pairs(noise_of(design, "sex").scale)
    given = {"sex_f_noisy": counts[0] + a, "sex_m_noisy": counts[1] + b}
    f, m = (design.estimators[name](**given) for name in ("sex_f", "sex_m"))
    right = counts[0] / sum(counts) if sum(counts) else 0.5
    assert f @ p == pytest.approx(right, abs=1e-9)
    assert np.abs(f + m - 1).max() < 1e-9
    variance = design.estimators["sex_f"].variance(**given)
    assert variance @ p == pytest.approx((f - right) ** 2 @ p, rel=1e-7)
    assert design.estimators["count"](**given) @ p == pytest.approx(sum(counts), abs=1e-9)


@pytest.mark.parametrize("n", [0, 1, 7, 40])
@pytest.mark.parametrize("mean", [10.0, 70.0])
def test_a_mean_over_a_shared_count_is_unbiased_also_of_no_records(n, mean):
    design = Design.read({"n": "count", "wage": "mean(wage, 10, 70)"}, 4)
    design = dataclasses.replace(design, weights={"n": 1, "wage": 1}, shared=frozenset(["wage"]))
    estimator = design.estimators["wage"]
    k, p = geometric(noise_of(design, "n").scale)
    truth, sd = n * (mean - 40), np.sqrt(float(noise_of(design, "wage").variance))
    # the estimate is linear in the sum, its variance a square: two points have the same moments
    at = [(truth + z, n + k) for z in (-sd, sd)]
    values = np.array([estimator(wage_noisy=np.full(len(k), s), n_positive=c) for s, c in at])
    variances = np.array(
        [estimator.variance(wage_noisy=np.full(len(k), s), n_positive=c) for s, c in at]
    )
    right = mean if n else 40.0
    assert (values @ p).mean() == pytest.approx(right, rel=1e-9)
    assert (variances @ p).mean() == pytest.approx(((values - right) ** 2 @ p).mean(), rel=1e-8)


def test_the_size_of_groups_decides_whether_a_count_is_shared():
    """Ten means in large groups have less noise over one count; in small groups they do not."""
    ten = {f"m{i}": f"mean(c{i}, 0, 1)" for i in range(10)}
    small, large = (Design.read(ten, 10, size=n) for n in (3, 3000))
    assert not small.shared
    assert large.shared == set(ten)
    for n, design, other in ((3, small, large), (3000, large, small)):
        assert expected(design, (n,))["m0"] < expected(other, (n,))["m0"]
    assert not Design.read({"m": "mean(c, 0, 1)"}, 1, size=3000).shared
    assert Design.read({"s": "share(s, [a, b, c])"}, 1).shared == {"s"}


def test_the_errors_to_expect_over_a_shared_count_are_those_of_the_exact_law():
    design = Design.read({"n": "count", "sex": "share(sex, [a, b, c])"}, 3)
    at = {"sex_a_noisy": 5, "sex_b_noisy": 0, "sex_c_noisy": 0, "n_positive": 5}
    assert expected(design, (5,))["sex"] == [pytest.approx(design.estimators["sex_a"].sd(**at))]


def test_hardly_any_noise_leaves_hardly_any_error():
    design = Design.read({"n": "count", "sex": "share(sex, [a, b, c])"}, 3000)
    assert expected(design, (1, 5))["sex"] == [0, 0]


def test_counts_and_sums_use_that_they_are_not_negative():
    asked = {"n": "count", "hours": "sum(hours, 0, 60)", "debt": "sum(d, -9, 9)"}
    design = Design.read(asked, 3, weights={"n": 1})  # a count with noise of its own
    k, p = geometric(noise_of(design, "n").scale)
    for n in (0, 1, 5):
        assert design.estimators["n"](n + k) @ p == pytest.approx(n, abs=1e-9)
    assert [s.bounds for s in design.statistics] == [(0, None), (0, None), (None, None)]
    for name, q in (("hours", 0.0), ("hours", 30.0), ("debt", -4.0)):
        scale = float(noise_of(design, name).scale)
        x = (np.arange(-40_000, 40_000) + 0.5) * scale / 1000
        density = np.exp(-np.abs(x) / scale) / (2 * scale) * scale / 1000
        assert design.estimators[name](q + x) @ density == pytest.approx(q, abs=1e-4 * scale)


def test_repeated_releases_have_the_law_that_they_tell():
    """A thousand simulated releases at once: the same people under many keys, with own noise."""
    pandas, size = pytest.importorskip("pandas"), 1000
    one, asked = pandas.DataFrame(people(60)), {**MEASURES, "job": "share(job, [yes, no])"}
    frame = pandas.concat([one.assign(state=str(i)) for i in range(size)])
    made = tu.release(frame, "state", [str(i) for i in range(size)], 6, rng=11, **asked)
    assert sum(made.privacy.measures.values()) == pytest.approx(made.privacy.epsilon) == 6
    truth = {
        "n": len(one),
        "wage": np.clip(one["wage"], 0, 120_000).mean(),
        **{f"sex_{c}": (one["sex"] == c).mean() for c in "fmx"},
        "job_yes": (one["job"] == "yes").mean(),
        "hours": np.clip(one["hours"], -5, 60).sum(),
        "pay": one["pay"].sum(),
    }
    for name, right in truth.items():
        found = made.table[name]
        spread = found.std()
        assert abs(found.mean() - right) < 4 * spread / np.sqrt(size)
        assert abs(found.mean() - right - 0.4 * spread) > 4 * spread / np.sqrt(size)
        told = (made.table[f"{name}_stderr"] ** 2).mean()
        error = np.sqrt(((found - right) ** 2).var() / size)
        assert abs(spread**2 - told) < 4 * error
        assert abs(spread**2 - 2 * told) > 4 * error
        assert abs(spread**2 - told / 2) > 4 * error


def test_what_is_published_of_neighbours_differs_through_noise_only():
    """The groups, the columns and all words but those on noisy numbers are the same."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(people(90))
    asked = {"by": "state", "keys": KEYS, "epsilon": 1, "rng": 2, "wage": "mean(wage, 0, 9)"}
    one, other = (tu.release(f, **asked) for f in (frame, frame.iloc[1:]))
    assert one.spec == other.spec
    assert one.columns["state"] == other.columns["state"] == KEYS
    until = one.report.index("Standard errors achieved")
    assert one.report[:until] == other.report[: other.report.index("Standard errors achieved")]
    assert "secret" not in one.report + one.spec
    pages = [re.sub(r"(?s)<figure>.*?</figure>", "", made.page()) for made in (one, other)]
    assert pages[0].partition("achieved, median")[0] == pages[1].partition("achieved, median")[0]
