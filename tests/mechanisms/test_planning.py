"""Planning: the split is the best, the figures are the mechanisms' own, the table is complete."""

from __future__ import annotations

import functools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import depth
from trueup.errors import TrueupError
from trueup.mechanisms import (
    GroupMean,
    GroupShare,
    Mean,
    Plan,
    Shares,
    SmoothSensitivityMean,
    TwoTotalsMean,
    plan,
    planning,
)
from work import at_most

NAMES = {
    "group mean",
    "two totals",
    "centred mean",
    "centred mean, discrete",
    "plain mean (M_U)",
    "smooth sensitivity (M_SS)",
}
SHARE = "group share, 0/1 records"
CASES = {
    "default": (1, {"expected_count": 200}),
    "few records": (1, {"expected_count": 12}),
    "known mean": (1, {"expected_count": 200, "means": [0.5]}),
    "bounded count": (0.5, {"expected_count": 60, "bounds": (-2, 6), "count_at_least": 20}),
}


@functools.cache
def planned(name: str) -> Plan:
    """Return a plan, made once."""
    epsilon, options = CASES[name]
    return plan(epsilon, **options)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Plan:
    """One plan after the other."""
    return planned(request.param)


def worst(mechanism, n, means):
    if isinstance(mechanism, GroupShare):  # the means that there are, beside those given
        totals = [t for m in means for t in (math.floor(n * m + 1e-9), math.ceil(n * m - 1e-9))]
        means = [Fraction(t, n) for t in totals]
    elif isinstance(mechanism, GroupMean) and not mechanism.is_dithered:
        low, high = mechanism.bounds
        half = (high - low) / (2 * n)  # where a total is rounded up as often as down
        means = {
            *means,
            *(m + half if m + half < high else m - half for m in means if low < m < high),
        }
    return max(mechanism.sd(n, mean) for mean in means)


def test_every_mechanism_once_best_first(case):
    is_unit = case.means[-1] == 1 or case.means == (0.5,)
    assert {o.name for o in case.options} == NAMES | ({SHARE} if is_unit else set())
    assert len(case.options) == len(NAMES) + is_unit
    sds = [o.sd for o in case.options]
    assert sds == sorted(sds)
    assert case.best is next(o for o in case.options if o.name != SHARE)
    assert {o.only for o in case.options if o.name == SHARE} == (
        {"0/1 records"} if is_unit else set()
    )


def test_the_sd_is_that_of_the_mechanism(case):
    for option in case.options:
        found = worst(option.mechanism, case.expected_count, case.means)
        assert option.sd == pytest.approx(found, rel=1e-12)  # 0.1 is not 1/10


def test_the_whole_budget_is_spent(case):
    for option in case.options:
        assert float(option.mechanism.epsilon) == pytest.approx(float(case.epsilon))


def test_the_split_beats_its_neighbours(case):
    """No other split, near or far, is better by more than the search resolves."""
    epsilon, n = float(case.epsilon), case.expected_count
    kinds = {
        "centred mean": {},
        "centred mean, discrete": {"count_noise": "discrete"},
        "plain mean (M_U)": {"centred": False},
    }
    for option in case.options:
        if option.name not in kinds:
            continue
        found = option.mechanism
        share = 1 / float(found.noise["n"].scale) / epsilon
        for other in (share - 0.02, share + 0.02, 0.3, 0.5, 0.7):
            if 0.05 <= other <= 0.95:
                rival = Mean(
                    other * epsilon,
                    (1 - other) * epsilon,
                    found.bounds,
                    found.count_at_least,
                    **kinds[option.name],
                )
                assert option.sd <= worst(rival, n, case.means) * (1 + 1e-4)
        assert f"count {share:.2f}, sum {1 - share:.2f}" in option.split


def test_useful_from_is_the_first_count_below_the_target(case):
    for option in case.options:
        first = option.useful_from
        at_least = math.ceil(getattr(option.mechanism, "count_at_least", 1))
        assert worst(option.mechanism, first, case.means) < case.target
        if first > at_least:
            assert worst(option.mechanism, first - 1, case.means) >= case.target
        for n in (first + 1, 2 * first, 10 * first):
            assert worst(option.mechanism, n, case.means) < case.target


def test_the_sd_of_the_count(case):
    for option in case.options:
        mechanism = option.mechanism
        if isinstance(mechanism, (GroupMean, GroupShare)):
            assert math.isnan(option.sd_count) == (not mechanism.is_of_pairs)
            continue
        if isinstance(mechanism, TwoTotalsMean):
            variance = 4 / float(mechanism.epsilon) ** 2
        elif isinstance(mechanism, SmoothSensitivityMean):
            variance = 2 / (float(case.epsilon) / 2) ** 2
        else:
            variance = float(mechanism.noise["n"].variance)
        assert option.sd_count == pytest.approx(math.sqrt(variance))


@pytest.mark.parametrize(
    ("mechanism", "zeros", "ones"),
    [
        (GroupMean(1.5), 2, 3),
        (GroupMean(1), 3, 3),
        (GroupMean(2), 0, 1),
        (GroupShare(0.8), 1, 1),
        (GroupMean(1, empty="n >= 20"), 1, 5),
        (GroupShare(1, empty=0), 0, 3),
    ],
    ids=str,
)
def test_the_count_and_the_mean_scatter_as_stated(mechanism, zeros, ones):
    """Against draws, which reject a standard deviation that is a fifth off."""
    n, rng, draws = zeros + ones, np.random.default_rng(5), 2000
    mean = Fraction(ones, n)
    found = [mechanism.release([0.0] * zeros + [1.0] * ones, rng=rng) for _ in range(draws)]
    counts, means = (np.array([getattr(r, name) for r in found]) for name in ("count", "mean"))
    for values, sd, centre in (
        (counts, mechanism.sd_count(n, mean), n),
        (means, mechanism.sd(n, mean), float(mean) + mechanism.bias(n, mean)),
    ):
        assert abs(values.mean() - centre) < 4 * sd / draws**0.5
        square = (values - centre) ** 2
        error = square.std() / draws**0.5
        assert abs(square.mean() - sd**2) < 4 * error
        assert all(abs(square.mean() - (k * sd) ** 2) > 4 * error for k in (0.8, 1.25))
    assert abs(mechanism.bias(n, mean)) < 1e-12 or mechanism.count_at_least > n


def test_the_printed_table(case):
    lines = str(case).splitlines()
    assert len(lines) == 2 + len(case.options)
    for option, line in zip(case.options, lines[2:], strict=True):
        assert line.startswith(option.name)
        assert f"{option.sd:.4g}" in line
        assert f"n = {option.useful_from}" in line
        assert option.split in line
    assert f"n = {case.expected_count}" in lines[0]
    assert len({len(line) for line in lines[1:]}) == 1  # the columns line up


@pytest.mark.parametrize(
    ("epsilon", "n"), depth.crossed([0.002, 0.1, 0.5, 1, 3, 20], [12, 150, 1, 3, 10**5])
)
def test_none_is_recommended_that_another_beats(epsilon, n):
    """No mechanism that takes all records has an sd 5 % below that of the recommended one."""
    best = plan(epsilon, n).best
    splits = [(epsilon * x, epsilon * (1 - x)) for x in (0.3, 0.5, 0.7)]
    rivals = [GroupMean(epsilon), TwoTotalsMean(epsilon)]
    rivals += [
        Mean(*split, count_noise=kind) for split in splits for kind in ("laplace", "discrete")
    ]
    least = worst(best.mechanism, n, (0, 0.1, 0.5, 1))
    for rival in rivals:
        assert least <= 1.05 * worst(rival, n, (0, 0.1, 0.5, 1))
    assert best.private
    assert not best.only


def test_of_0_and_1_a_share_is_listed_and_never_recommended():
    """It refuses other records; for these it is nowhere behind the group mean."""
    for epsilon, n in ((1, 3), (0.3, 40), (2, 1000)):
        by_name = {o.name: o for o in plan(epsilon, n).options}
        assert by_name[SHARE].sd <= by_name["group mean"].sd * (1 + 1e-9)
        assert isinstance(by_name[SHARE].mechanism, GroupShare)
    assert SHARE not in {o.name for o in plan(1, 40, bounds=(0, 2)).options}


def test_a_plan_is_quick():
    """Splits are searched by moments of 1/n: no estimator is built for each."""
    with at_most(4_000_000):  # it took 40,000,000
        plan(1, 50)


@pytest.mark.parametrize(("epsilon", "n"), depth.crossed([1e-6, 1e-4, 1e-3, 0.05, 50], [10**7, 1]))
def test_no_budget_takes_long(epsilon, n, monkeypatch):
    """Few standard deviations are asked for, each a sum of few terms."""
    asked, worst = [], planning.worst_sd
    monkeypatch.setattr(planning, "worst_sd", lambda *given: asked.append(given) or worst(*given))
    tracemalloc.start()
    plan(epsilon, n)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(asked) < 160
    assert most < 24e6, "bytes: arrays of counts up to 40 scales away took gigabytes"


@pytest.mark.parametrize("jump", [(1e200, 0.1 - 1e-13), (0.1 + 1e-13, 1e-300)], ids=str)
@pytest.mark.parametrize("first", [2**17 - 100, 2**17 + 100, 123_456])
def test_a_jump_of_the_sd_is_found_by_halving(jump, first, monkeypatch):
    """A straight line is of no use there: of four counts in a row one halves what is left."""
    asked = []

    def step(mechanism, n, means):
        asked.append((mechanism, n))
        return jump[n >= first]

    monkeypatch.setattr(planning, "worst_sd", step)
    for option in plan(1, 50, target=0.1).options:
        assert option.useful_from == first
        low, high, left = 0, math.inf, []
        for n in (n for mechanism, n in asked if mechanism is option.mechanism):
            low, high = (low, min(n, high)) if n >= first else (max(n, low), high)
            left.append(high - low)
        assert left[-1] == 1
        left = [x for x in left if x < math.inf]
        assert all(
            after <= (before + 1) // 2 for before, after in zip(left, left[4:], strict=False)
        )


def test_a_mean_beside_a_bound_is_planned_for():
    """The total that is rounded up as often as down is on the side where there is one."""
    n, half = 12, Fraction(1, 24)
    for mean, other in ((0.01, 0.01 + half), (0.99, 0.99 - half)):
        options = {o.name: o for o in plan(0.5, n, means=[mean]).options}
        sds = [GroupMean(0.5).sd(n, m) for m in (mean, other)]
        assert options["group mean"].sd == pytest.approx(max(sds), rel=1e-12)


def test_a_known_mean_can_turn_the_order():
    """At m = ½ a centred split with little for the count wins for large n."""
    found = planned("known mean")
    assert found.best.name.startswith("centred mean")
    share = 1 / float(found.best.mechanism.noise["n"].scale)
    assert share < 0.293


def test_small_data_sets_prefer_a_group_mean():
    found = planned("few records")
    assert found.best.name == "group mean"
    *_, third = [o for o in found.options if o.is_for_all][:3]
    assert third.sd > 2 * found.best.sd  # two totals are next, within 10 %


def test_a_target_out_of_reach_is_never_useful():
    found = plan(1, 50, target=1e-12)
    assert all(o.useful_from is None for o in found.options)
    assert str(found).count("never") == len(NAMES | {SHARE})


def test_an_easy_target_is_useful_from_the_bound_on():
    found = plan(1, 50, count_at_least=30, target=1000)
    for option in found.options:
        free = isinstance(option.mechanism, (GroupMean, GroupShare, SmoothSensitivityMean))
        expected = 1 if free else 30
        assert option.useful_from == expected


def test_a_bound_between_two_counts_is_useful_from_the_next_one_on():
    for option in plan(1, 50, count_at_least=2.5, target=1000).options:
        free = isinstance(option.mechanism, SmoothSensitivityMean)
        assert option.useful_from == (1 if free else 3)


def test_means_in_an_array():
    found = plan(1, 40, means=np.array([0.2, 0.5]))
    assert found.means == (0.2, 0.5)
    assert found.best.sd == worst(found.best.mechanism, 40, (0.2, 0.5))


def test_a_scale_free_plan():
    """Bounds ten times as wide give ten times the sds, and the same splits."""
    one, ten = planned("few records"), plan(1, 12, bounds=(-3, 7))
    for option in (o for o in one.options if not o.only):
        (other,) = (o for o in ten.options if o.name == option.name)
        if "plain" in option.name:  # depends on where 0 lies
            continue
        assert other.sd == pytest.approx(10 * option.sd, rel=1e-9)
        assert other.useful_from == option.useful_from


BAD = [
    ({"expected_count": 0}, "expected_count"),
    ({"expected_count": -5}, "expected_count"),
    ({"expected_count": 2.5}, "expected_count"),
    ({"expected_count": math.nan}, "expected_count"),
    ({"expected_count": math.inf}, "expected_count"),
    ({"expected_count": "100"}, "expected_count"),
    ({"expected_count": None}, "expected_count"),
    ({"expected_count": 10, "count_at_least": 20}, "expected_count"),
    ({"expected_count": 100, "target": 0}, "target"),
    ({"expected_count": 100, "target": -1}, "target"),
    ({"expected_count": 100, "target": "small"}, "target"),
    ({"expected_count": 100, "target": math.nan}, "target"),
    ({"expected_count": 100, "means": [0.5, 1.5]}, "mean"),
    ({"expected_count": 100, "means": [-0.1]}, "mean"),
    ({"expected_count": 100, "means": [math.nan]}, "mean"),
    ({"expected_count": 100, "means": ["x"]}, "mean"),
    ({"expected_count": 100, "means": "0.5"}, "mean"),
    ({"expected_count": 100, "means": []}, "mean"),
    ({"expected_count": 100, "means": [None]}, "mean"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_bad_input(options, message):
    with pytest.raises(TrueupError, match=message) as caught:
        plan(1, **options)
    assert "\nHint: " in str(caught.value)


@pytest.mark.parametrize("low", [10**17], ids=str)
def test_far_bounds_are_planned_like_near_ones(low):
    """Only the width of the bounds matters, also where doubles are further apart than they."""
    near, far = (plan(1, 50, bounds=(b, b + 10)) for b in (0, low))
    found = {o.name: o.sd for o in far.options}
    for option in near.options:
        if "plain" not in option.name:  # not centred, its noise grows with the bounds
            assert found[option.name] == pytest.approx(option.sd, rel=1e-9)


def test_the_best_plan_can_be_released_privately():
    """Smooth sensitivity is never private, whatever its error."""
    table = plan(0.8, expected_count=3)
    assert [o.name for o in table.options if not o.private] == ["smooth sensitivity (M_SS)"]
    assert table.best.private
    assert "simulation only" in str(table)


def test_a_refused_group_mean_is_left_out(monkeypatch):
    """Refused here from ε = 1 down, so that the others are quick."""
    monkeypatch.setattr("trueup.mechanisms.corner._NOISIEST", 1.0)
    for epsilon in (0.51, 800):
        names = {o.name for o in plan(epsilon, expected_count=60).options}
        assert names == NAMES - {"group mean"}
    assert {o.name for o in plan(100, expected_count=60).options} == NAMES | {SHARE}


def test_the_best_plan_for_many_records_is_not_noise_of_rounding():
    made = plan(1, expected_count=10**9)
    group = next(o for o in made.options if o.name == "group mean")
    assert made.best.sd <= 1.05 * group.sd
    assert group.sd == pytest.approx(worst(GroupMean(1), 10**6, (0, 0.1, 0.5, 1)) / 1000, rel=1e-4)


def test_a_plan_is_shown_as_a_table():
    found = plan(1, expected_count=50)
    assert repr(found) == str(found)
    page = found._repr_html_()
    assert page.count("<tr>") == len(found.options) + 1
    assert "<th>sd of mean</th>" in page
    assert f"<td>{found.best.sd:.4g}</td>" in page


def test_mechanisms_show_their_budget():
    assert repr(GroupMean(1, bounds=(0, 40))) == "<GroupMean: epsilon 1, records in [0, 40]>"
    assert repr(Shares(0.5, ["a", "b"])) == "<Shares: epsilon 0.5, records in ['a', 'b']>"
