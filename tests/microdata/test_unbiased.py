"""Every estimate of a table has the right mean, its variance too: summed over the noise itself."""

import itertools

import numpy as np
import pytest

import trueup as tu
from microdata.people import KEYS, people
from trueup.microdata.design import Design
from trueup.microdata.expected import expected

REACH = 60


def geometric(scale):
    """Return the whole numbers, and their probabilities under discrete Laplace noise."""
    k = np.arange(-REACH, REACH + 1)
    a = np.exp(-1 / float(scale))
    return k, a ** np.abs(k) * (1 - a) / (1 + a)


def noise_of(design, measure):
    return next(s.noise for s in design.statistics if s.measure == measure)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("mean", [10.0, 30.0, 70.0])
def test_a_mean_is_unbiased_also_of_no_records(n, mean):
    design = Design.read({"n": "count", "wage": "mean(wage, 10, 70)"}, 4)
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


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (3, 9)])
def test_shares_are_unbiased_and_sum_to_one(counts):
    design = Design.read({"n": "count", "sex": "share(sex, [f, m])"}, 12)
    k, p = geometric(noise_of(design, "sex").scale)
    k, p = k[REACH - 6 : REACH + 7], p[REACH - 6 : REACH + 7]  # e^−6·6 is left out
    cells = np.array(list(itertools.product(k, k, k)))
    mass = np.prod(np.array(list(itertools.product(p, p, p))), axis=1)
    given = {
        "sex_1_noisy": counts[0] + cells[:, 0],
        "sex_2_noisy": counts[1] + cells[:, 1],
        "n_positive": sum(counts) + cells[:, 2],
    }
    f, m = (design.estimators[name](**given) for name in ("sex_f", "sex_m"))
    right = counts[0] / sum(counts) if sum(counts) else 0.5
    assert f @ mass == pytest.approx(right, abs=1e-9)
    assert np.abs(f + m - 1).max() < 1e-9
    variance = design.estimators["sex_f"].variance(**given)
    assert variance @ mass == pytest.approx((f - right) ** 2 @ mass, rel=1e-7)


def test_counts_and_sums_use_that_they_are_not_negative():
    design = Design.read({"n": "count", "hours": "sum(hours, 0, 60)", "debt": "sum(d, -9, 9)"}, 3)
    k, p = geometric(noise_of(design, "n").scale)
    for n in (0, 1, 5):
        assert design.estimators["n"](n + k) @ p == pytest.approx(n, abs=1e-9)
    assert [s.bounds for s in design.statistics] == [(0, None), (0, None), (None, None)]
    for name, q in (("hours", 0.0), ("hours", 30.0), ("debt", -4.0)):
        scale = float(noise_of(design, name).scale)
        x = (np.arange(-40_000, 40_000) + 0.5) * scale / 1000
        density = np.exp(-np.abs(x) / scale) / (2 * scale) * scale / 1000
        assert design.estimators[name](q + x) @ density == pytest.approx(q, abs=1e-4 * scale)


def test_the_errors_to_expect_are_those_of_the_exact_law():
    given = {"n": "count", "wage": "mean(wage, 0, 100)", "sex": "share(sex, [a, b, c])"}
    design = Design.read(given, 3)
    found = expected(design, (5, 80))
    wage, sex = design.estimators["wage"], design.estimators["sex_a"]
    for i, n in enumerate((5, 80)):
        assert found["wage"][i] == pytest.approx(wage.sd(wage_noisy=50.0 * n, n_positive=n))
        at = {"sex_1_noisy": n, "sex_2_noisy": 0, "sex_3_noisy": 0, "n_positive": n}
        assert found["sex"][i] == pytest.approx(sex.sd(**at))


def test_a_release_has_the_law_of_its_design():
    """Many simulated releases as one: the same people under many keys, which get noise each."""
    data = people(60)
    size, pandas = 400, pytest.importorskip("pandas")
    one = pandas.DataFrame(data).assign(state="A")
    wages = np.clip(one["wage"], 0, 120_000)
    frame = pandas.concat([one.assign(state=str(i)) for i in range(size)])
    made = tu.release(
        *(frame, "state", [str(i) for i in range(size)], 4),
        rng=11,
        n="count",
        wage="mean(wage, 0, 120000)",
        hours="sum(hours, -5, 60)",
    ).table
    for name, right in (
        ("n", len(one)),
        ("wage", wages.mean()),
        ("hours", np.clip(one["hours"], -5, 60).sum()),
    ):
        spread = made[name].std()
        assert abs(made[name].mean() - right) < 4 * spread / np.sqrt(size)
        squares = made[f"{name}_stderr"] ** 2
        assert squares.mean() == pytest.approx(spread**2, rel=0.35)  # Laplace: 4 errors are 0.33


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
