"""Counts, sums and means that are read from the same noisy counts: no budget is spent twice."""

import math
from fractions import Fraction

import numpy as np
import pytest

import trueup as tu
from extras import needs
from trueup.microdata.design import Design
from trueup.microdata.expected import expected

N, MEAN = 40, 0.3


def sd_of_two(scale):
    """Return the standard deviation of two discrete Laplace noises, by direct sums."""
    k = np.arange(-400, 401)
    p = np.exp(-np.abs(k) / scale)
    return math.sqrt(2 * (k * k * p).sum() / p.sum())


def test_a_count_and_a_sum_share_one_release_of_the_whole_budget():
    """With a budget of ½ for each the standard errors were 2.8 and 169.7."""
    design = Design.read({"n": "count", "hours": "sum(hours, 0, 60)"}, 1)
    assert design.budget == {"hours": 1}
    assert design.sources == {"n": ("hours",)}
    found = expected(design, (100,))
    assert found["n"][0] == pytest.approx(sd_of_two(1), rel=1e-9)
    one = sd_of_two(1) ** 2 / 2
    assert found["hours"][0] == pytest.approx(60 * math.sqrt(one + 1 / 12), rel=1e-9)
    assert found["n"][0] < 1.93
    assert found["hours"][0] < 84


def test_a_sum_beside_its_mean_and_counts_of_several_measures_cost_nothing():
    asked = {"n": "count", "w": "mean(x, 10, 20)", "t": "sum(x, 10, 20)", "s": "share(y, [a, b])"}
    design = Design.read(asked, 2)
    assert design.budget == {"w": 1, "s": 1}
    assert design.sources == {"n": ("w", "s"), "t": ("w",)}
    assert expected(design, (9,))["n"][0] == pytest.approx(sd_of_two(1) / math.sqrt(2), rel=1e-9)
    weighted = Design.read(asked, 2, weights={"n": 1, "t": 1})
    assert set(weighted.budget) == {"n", "w", "t", "s"}


def test_unequal_counts_are_averaged_by_their_variances():
    asked = {"n": "count", "v": "mean(x, 0, 1)", "w": "mean(y, 0, 1)"}
    design = Design.read(asked, Fraction(6, 5), weights={"w": 2})
    a, b = (sd_of_two(float(1 / design.budget[name])) for name in "vw")
    best = a * b / math.hypot(a, b)
    assert expected(design, (9,))["n"][0] == pytest.approx(best, rel=1e-9)
    estimate = design.estimators["n"]
    assert estimate.sd(**dict.fromkeys(estimate.statistics, 500.0)) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("measures", [("sum(x, -5, 60)",), ("mean(x, -5, 60)", "sum(x, -5, 60)")])
@pytest.mark.parametrize("epsilon", [1, 6])
def test_repeated_releases_are_unbiased_with_right_standard_errors(measures, epsilon):
    rows = needs("polars").DataFrame({"x": [-5.0, 60.0, 7.25, 31.0] * 10})
    asked = {"n": "count", **{f"m{i}": what for i, what in enumerate(measures)}}
    name, truth, repeats = f"m{len(measures) - 1}", sum([-5.0, 60.0, 7.25, 31.0]) * 10, 200
    found = [tu.release(rows, epsilon=epsilon, rng=seed, **asked) for seed in range(repeats)]
    errors = expected(found[0].design, (40,))
    for column, true in ((name, truth), ("n", 40.0)):
        values = np.array([made.columns[column][0] for made in found])
        told = np.array([made.columns[f"{column}_stderr"][0] for made in found])
        sd = errors[column][0]
        assert abs(values.mean() - true) < 4 * sd / math.sqrt(repeats)
        assert values.std() == pytest.approx(sd, rel=0.25)
        assert (told**2).mean() == pytest.approx(sd**2, rel=0.1)
        assert abs(values.mean() - true - sd) > 4 * sd / math.sqrt(repeats)  # a near miss is seen
