"""Neighbouring data sets: no record moves what is published by more than the noise was made for.

Every number that gets noise is caught just before it does. One record is added, and the exact loss
Σ |change| / scale, in fractions, must stay within the ε that the mechanism states: for bounds far
from zero, records at, beside and beyond them, integers that no double holds, and many records.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from mechanisms.neighbours import (
    BOUNDS,
    GROUPS,
    MEANS,
    SIZES,
    TRANSFORMS,
    added,
    before_noise,
    is_served,
    loss,
    summed_in_floats,
)
from trueup.errors import TrueupError
from trueup.mechanisms import (
    Mean,
    PerRecordSum,
    Shares,
    SmoothSensitivityMean,
    TwoTotalsMean,
    groups,
    means,
    per_record,
    shares,
)
from trueup.mechanisms.records import read_numbers
from trueup.mechanisms.transforms import read_transform
from trueup.mechanisms.whole_numbers import Grid, Whole, exact_sum, exact_total

# -- bounded records -------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("name", MEANS)
def test_one_record_costs_at_most_epsilon(monkeypatch, name, bounds):
    if not is_served(name, bounds):
        with pytest.raises(TrueupError, match=r"(scale|sensitivity) is too large"):
            MEANS[name](bounds)
        return
    mechanism = MEANS[name](bounds)
    stated, largest = Fraction(mechanism.epsilon), Fraction(0)
    for data, records in added(bounds):
        without = before_noise(monkeypatch, means, mechanism, data)
        for record in records:
            with_it = before_noise(monkeypatch, means, mechanism, [*data, record])
            largest = max(largest, loss(without, with_it))
    assert largest <= stated
    assert largest > Fraction(99, 100) * stated  # and no noise is wasted


@pytest.mark.parametrize("uniform", [0.0, 0.4, 1.0], ids=str)
@pytest.mark.parametrize("bounds", BOUNDS[::3], ids=str)
@pytest.mark.parametrize("name", GROUPS)
def test_one_record_moves_two_rounded_counts_by_one(monkeypatch, name, bounds, uniform):
    """For every U of their common rounding; what is drawn in the corner has a test of its own."""
    mechanism = GROUPS[name](bounds)
    rounded = lambda bound, rng: min(bound - 1, int(uniform * bound))  # noqa: E731
    monkeypatch.setattr(groups, "below", rounded)
    largest = Fraction(0)
    for data, records in added(bounds):
        without = before_noise(monkeypatch, groups, mechanism, data)
        for record in records:
            with_it = before_noise(monkeypatch, groups, mechanism, [*data, record])
            largest = max(largest, loss(without[:2], with_it[:2]))
    assert Fraction(99, 100) * Fraction(mechanism.epsilon) < largest <= Fraction(mechanism.epsilon)


@pytest.mark.parametrize("bounds", [(10**9, 10**9 + 1), (10**15, 10**15 + 1), (0.1, 0.7)], ids=str)
@pytest.mark.parametrize("name", ["centred", "two totals"])
def test_a_million_records(monkeypatch, name, bounds):
    mechanism = MEANS[name](bounds)
    low, high = (float(b) for b in bounds)
    data = np.random.default_rng(3).uniform(low, high, 10**6)
    data[::3] = high
    without = before_noise(monkeypatch, means, mechanism, data)
    for record in (low, high, math.nextafter(high, low)):
        with_it = before_noise(monkeypatch, means, mechanism, np.append(data, record))
        assert loss(without, with_it) <= Fraction(mechanism.epsilon)


def test_whole_numbers_beyond_doubles_keep_their_digits(monkeypatch):
    mechanism = TwoTotalsMean(1, bounds=(10**17, 10**17 + 10))
    data = [10**17 + 1, 10**17 + 7] * 50
    assert data != [float(x) for x in data]
    without = before_noise(monkeypatch, means, mechanism, data)
    assert without == before_noise(monkeypatch, means, mechanism, np.array(data))
    assert without == before_noise(monkeypatch, means, mechanism, np.array(data, np.uint64))
    assert without == before_noise(monkeypatch, means, mechanism, np.array(data, object))
    assert without[0][0] == pytest.approx(Fraction(8, 10) * 50, rel=1e-14)


ALONE: dict[str, Any] = {
    "an integer": 3,
    "a wide integer": 2**53 + 1,
    "the least integer": -(2**63),
    "a float": 0.1,
    "a large float": 1e300,
    "a bool": True,
    "np.int8": np.int8(-7),
    "np.int64": np.int64(2**63 - 1),
    "np.uint64": np.uint64(2**60 + 129),
    "np.float16": np.float16(0.1),
    "np.float32": np.float32(0.1),
    "np.float64": np.float64(0.1),
    "np.bool": np.True_,
}
"""A record of every kind, some of them wider than a double."""


def exactly(record: Any) -> Fraction:
    """Return the record as numpy and Python say it is, by no code of the library."""
    if isinstance(record, np.floating):
        return Fraction(*record.as_integer_ratio())
    return Fraction(int(record)) if isinstance(record, (np.integer, np.bool)) else Fraction(record)


@pytest.mark.parametrize("name", ALONE)
def test_a_record_is_read_as_what_it_is(name):
    assert exact_total(read_numbers([ALONE[name]])) == exactly(ALONE[name])


@pytest.mark.parametrize("other", ALONE)
@pytest.mark.parametrize("name", ALONE)
def test_what_a_record_is_read_as_depends_on_nothing_but_the_record(name, other):
    """[a] + [b] in a list, and in an array of objects, is what [a] is and what [b] is, or refused.

    A float among wide integers must not turn them into floats.
    """
    pair = [ALONE[name], ALONE[other]]
    objects = np.empty(2, object)
    objects[:] = pair
    floats = [isinstance(record, (float, np.floating)) for record in pair]
    wide = any(abs(exactly(r)) > 2**53 for r, f in zip(pair, floats, strict=True) if not f)
    for together in (pair, objects):
        if any(floats) and wide:
            with pytest.raises(TrueupError, match=r"whole numbers beyond 2\*\*53 stand beside"):
                read_numbers(together)
        else:
            assert list(map(Fraction, read_numbers(together).tolist())) == list(map(exactly, pair))


@pytest.mark.parametrize("name", [n for n in ALONE if isinstance(ALONE[n], np.generic)])
def test_a_list_of_one_kind_is_an_array_of_it(name):
    listed, array = read_numbers([ALONE[name]] * 3), read_numbers(np.array([ALONE[name]] * 3))
    assert listed.tolist() == array.tolist()


@pytest.mark.parametrize(
    "record",
    [2**63, -(2**63) - 1, 10**400, np.uint64(2**63), Decimal("0.5"), Fraction(1, 3),
     np.longdouble(1), np.array(3)],
    ids=lambda r: f"{type(r).__name__} {r!r:.12}",
)  # fmt: skip
def test_records_are_floats_or_whole_numbers_of_64_bits(record):
    for data in ([record], [record, record], [1, record]):
        with pytest.raises(TrueupError, match="the data must be") as caught:
            read_numbers(data)
        assert "nothing was released" in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [1j, np.complex128(1), "1", np.str_("1"), None, b"1", np.timedelta64(3), [1], np.ones(1), {}],
    ids=repr,
)
def test_what_is_no_number_is_refused_in_any_company(bad):
    for data in ([bad], [0.5, bad], [bad, 7]):
        with pytest.raises(TrueupError, match="the data must be") as caught:
            read_numbers(data)
        assert "nothing was released" in str(caught.value)


@pytest.mark.parametrize("record", [math.nan, math.inf, -math.inf], ids=repr)
def test_what_is_not_finite_is_refused_in_any_company(record):
    for data in ([record], [0.5, record], [record, np.uint64(3)]):
        with pytest.raises(TrueupError, match=f"1 of {len(data)} records are not finite"):
            read_numbers(data)


def test_the_policy_of_a_record_is_the_same_in_any_company():
    mechanism = PerRecordSum("root:1", 1)
    for record in (ALONE[n] for n in ALONE if ALONE[n] >= 0):
        alone = mechanism.policy(record)
        assert mechanism.policy([0.5, record, 2**64]).tolist()[1] == alone
        assert Fraction(alone) >= exactly(record)
    with pytest.raises(TrueupError, match="a record must be a number"):
        mechanism.policy(Decimal(3))


def test_the_grid_changes_no_record_by_more_than_rounding():
    """Against fractions, record by record: an error of a step at most, 2⁻⁴⁹ of the reach."""
    rng = np.random.default_rng(1)
    for bounds in [(0, 1), (0.1, 0.7), (10**15, 10**15 + 1), (Fraction(1, 3), 10**6)]:
        low, high = (Fraction(b) for b in bounds)
        for origin in (low, (low + high) / 2):
            grid = Grid.under(1, bounds, origin, high - low)
            values = rng.uniform(float(low), float(high), 300)
            for x, multiple in zip(values, grid.whole(read_numbers(values)), strict=True):
                exact = (min(max(Fraction(float(x)), low), high) - origin) / (high - low)
                assert abs(Fraction(int(multiple), grid.steps) - exact) <= Fraction(1, 2**49)


def test_sums_are_exact():
    rng = np.random.default_rng(2)
    wide = rng.integers(-(2**50), 2**50, 10**5)
    assert exact_sum(wide) == sum(wide.tolist())
    floats = rng.standard_normal(4_000) * 10.0 ** rng.integers(-300, 300, 4_000)
    assert exact_total(read_numbers(floats)) == sum(map(Fraction, floats.tolist()))
    integers = rng.integers(-(2**63), 2**63 - 1, 4_000)
    assert exact_total(read_numbers(integers)) == sum(integers.tolist())
    edges = [2**63 - 1, -(2**63), 2**53 + 1, 0, -1]
    assert exact_total(read_numbers(np.array(edges))) == sum(edges)


# -- histograms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(0, 0, 0), (10**6, 3, 1), (10**17 + 8, 2**53, 1)], ids=str)
def test_one_record_moves_one_count_by_one(monkeypatch, counts):
    mechanism = Shares(1, ["a", "b", "c"])
    monkeypatch.setattr(mechanism, "release", mechanism.release_counts)
    without = before_noise(monkeypatch, shares, mechanism, list(counts))
    for i in range(3):
        more = [c + (i == j) for j, c in enumerate(counts)]
        assert loss(without, before_noise(monkeypatch, shares, mechanism, more)) == 1


# -- per-record sums -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_policy_bounds_what_a_record_does_to_the_published_number(monkeypatch, name):
    mechanism = PerRecordSum(*TRANSFORMS[name])
    sets = [[], [1e17], [1e17, 8], [0.1] * 9, [3, 0.7, 1e-9], [2**53, 1.0]]
    for data in sets:
        without = before_noise(monkeypatch, per_record, mechanism, data)
        assert before_noise(monkeypatch, per_record, mechanism, [*data, 0.0]) == without
        for record in SIZES:
            with_it = before_noise(monkeypatch, per_record, mechanism, [*data, record])
            assert loss(without, with_it) <= Fraction(mechanism.policy(record))


def test_the_policy_of_the_first_record_is_tight(monkeypatch):
    for options in TRANSFORMS.values():
        mechanism = PerRecordSum(*options)
        without = before_noise(monkeypatch, per_record, mechanism, [])
        for record in (0.3, 1, 8, 1e17):
            moved = loss(without, before_noise(monkeypatch, per_record, mechanism, [record]))
            assert moved == pytest.approx(mechanism.policy(record), rel=1e-13)


def test_the_policy_holds_over_a_million_records(monkeypatch):
    mechanism = PerRecordSum("root:2", 2)
    data = np.random.default_rng(5).lognormal(3, 5, 10**6)
    without = before_noise(monkeypatch, per_record, mechanism, data)
    for record in (1e-300, 1e-3, 1e9):
        with_it = before_noise(monkeypatch, per_record, mechanism, np.append(data, record))
        assert loss(without, with_it) <= Fraction(mechanism.policy(record))


def test_the_published_root_is_the_nearest_step(monkeypatch):
    mechanism = PerRecordSum("root:2", 1)
    for total in (2, 10**17 + 1, 0.1):
        ((found, _),) = before_noise(monkeypatch, per_record, mechanism, [total])
        half = mechanism.step / 2
        assert (found - half) ** 2 <= Fraction(total) <= (found + half) ** 2


UNPROVEN = {
    "a convex beginning": ("where(q<1e-4,q/10,sqrt(q))", "v**2"),
    "convex far out": ("sqrt(q)+1e-30*q**2", "v**2"),
    "a straight line far out": ("where(q<1e10,sqrt(q),1e5+(q-1e10))", "v**2"),
    "a small jump": ("1e6*sqrt(q)+1e-9*atan(1/(5-q))", "1e-12*v**2"),
    "small waves": ("sqrt(q)+1e-12*sin(1e6*q)", "v**2"),
    "small kinks": ("sqrt(q)+1e-12*acos(cos(1e6*q))", "v**2"),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_a_policy_that_is_not_proven_is_not_stated(name):
    """Each of them moves some total by more than φ(r) − φ(0), at places no grid looks at."""
    with pytest.raises(TrueupError, match=r"no policy is known.*it is not proven to") as caught:
        PerRecordSum(UNPROVEN[name], 1)
    assert "\nHint: " in str(caught.value)


def test_an_inverse_that_is_not_proven_is_refused():
    """Privacy does not depend on it, but the total might be biased."""
    with pytest.raises(TrueupError, match="its inverse is not proven to undo it"):
        PerRecordSum(("sqrt(q)", "v**2 + 1e-9*sin(v)"), 2)


@pytest.mark.parametrize(
    ("transform", "offset"),
    [
        (("log(1 + q)", "exp(v) - 1"), 0),
        (("log(1 + q)/log(2)", "2**v - 1"), 0),
        (("q**0.3", "v**(10/3)"), 0),
        (("q**(1/3)", "v**3"), Fraction(5, 3)),
        (("log(q)", "exp(v)"), Fraction(1, 3)),
        (("sqrt(q + 4) - 2", "(v + 2)**2 - 4"), 0),
        (("sqrt(q/1000)", "1000*v**2"), 0),
        (("10*log(1 + q/10)", "10*(exp(v/10) - 1)"), 0.1),
        (("asinh(q)", "sinh(v)"), 0),
        (("log(1 + log(1 + q))", "exp(exp(v) - 1) - 1"), 0),
        (("log(1 + sqrt(q))", "(exp(v) - 1)**2"), 0),
        (("sqrt(q) + sqrt(q + 1)", "(v - 1/v)**2/4"), 0),
        (("2*q", "v/2"), 0),
    ],
    ids=str,
)
def test_what_is_smooth_and_concave_is_proven_so(transform, offset):
    assert read_transform(transform, offset).name == transform[0]


@pytest.mark.parametrize(
    "transform",
    ["root:²", "root:٣", "root:" + "9" * 5000, "root:", ("sqrt(q)", "v + w"), ("sqrt(q)", "2"),
     ("sqrt(q)", "v**2", "v"), (lambda q: None, lambda v: v, lambda v: 1, lambda v: 0)],
    ids=lambda t: "functions" if callable(t[0]) else repr(t)[:30],
)  # fmt: skip
def test_strange_transforms_are_refused(transform):
    with pytest.raises(TrueupError, match=r"root|variable|transform|function") as caught:
        PerRecordSum(transform, 1)
    assert "\nHint: " in str(caught.value)


# -- masked records --------------------------------------------------------------------------------

MASKED = np.ma.MaskedArray([0.2, 0.4, 0.9], mask=[False, True, False])


@pytest.mark.parametrize(
    "mechanism",
    [Mean(1, 1), TwoTotalsMean(1), SmoothSensitivityMean(1, 1), PerRecordSum("root:2", 1)],
    ids=lambda m: type(m).__name__,
)
def test_masked_records_are_refused(mechanism):
    for data in (MASKED, list(MASKED)):
        with pytest.raises(TrueupError, match="1 of 3 records are masked") as caught:
            mechanism.release(data, rng=1)
        assert "compressed" in str(caught.value)
    unmasked = np.ma.MaskedArray([0.2, 0.9], mask=[False, False])
    assert mechanism.release(unmasked, rng=1) == mechanism.release([0.2, 0.9], rng=1)


def test_masked_categories_and_counts_are_refused():
    mechanism = Shares(1, [1, 2])
    data = np.ma.MaskedArray([1, 2, 1], mask=[False, False, True])
    with pytest.raises(TrueupError, match="1 of 3 records are masked"):
        mechanism.release(data, rng=1)
    with pytest.raises(TrueupError, match="1 of 2 records are masked"):
        mechanism.release_counts(data[1:], rng=1)


# -- the attack ------------------------------------------------------------------------------------

FAR = (10**15, 10**15 + 1)
RELEASES = 1_500
"""Of each data set: the bounds of Clopper and Pearson at 1e-9 then are 0.06 apart from the rate,
and the rate of an honest mechanism, 0.61, is twice as far from what ε = 1 allows."""


def told_apart(monkeypatch: Any) -> tuple[float, float]:
    """Return bounds on how often 80 and 81 records are told apart by secure releases of the sum.

    The attacker knows the mechanism, so the two sums without noise, and cuts half way. Each bound
    fails with probability 1e-9: right guesses are at least as concentrated as a binomial number.
    """
    mechanism = Mean(0.5, 0.5, bounds=FAR)
    sums, publish = [], means.publish

    def spy(values: Any, noise: Any, rng: Any = None) -> Any:
        sums.extend([values] if isinstance(values, Whole) else [])
        return publish(values, noise, rng)

    with monkeypatch.context() as patch:
        patch.setattr(means, "publish", spy)
        for n in (80, 81):
            mechanism.release([float(FAR[1])] * n)
    small, large = sorted(sums, key=lambda total: total.multiples)
    cut = (small[0] + large[0]) / 2
    published = [
        publish(Whole(total.multiples * RELEASES, total.step), mechanism.noise["s"])
        for total in (small, large)
    ]
    right = int((published[0] < cut).sum() + (published[1] > cut).sum())
    wrong = 2 * RELEASES - right
    upper = float(beta.ppf(1 - 1e-9, right + 1, wrong)) if wrong else 1.0
    return float(beta.ppf(1e-9, right, wrong + 1)), upper


def test_an_attack_on_far_bounds_does_no_better_than_epsilon_allows(monkeypatch):
    """ε = 1 lets nobody be right in more than e/(1 + e) of all cases: 73.1 %."""
    pytest.importorskip("opendp", reason="secure releases need OpenDP")
    allowed = math.e / (1 + math.e)
    assert told_apart(monkeypatch)[1] < allowed
    monkeypatch.setattr(Grid, "total", summed_in_floats)
    assert told_apart(monkeypatch)[0] > allowed
