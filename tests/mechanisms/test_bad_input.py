"""Bad input: a TrueupError with a hint, before any noise is drawn. No records are no bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import trueup as tu
from trueup.errors import TrueupError
from trueup.mechanisms import (
    GroupMean,
    GroupShare,
    Mean,
    PerRecordSum,
    Shares,
    SmoothSensitivityMean,
    TwoTotalsMean,
    means,
    per_record,
    plan,
    shares,
)

NAN = math.nan


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every draw of noise fail the test, secure or simulated."""

    def draw(*_args: Any, **_options: Any) -> Any:
        pytest.fail("noise was drawn before the input was refused")

    for module in (means, shares, per_record):
        monkeypatch.setattr(module, "publish", draw)
    for family in (tu.Laplace, tu.DiscreteLaplace, tu.Gaussian):
        monkeypatch.setattr(family, "sample", draw)


def refused(call: Callable[[], Any], message: str) -> None:
    """Check that a call is refused in a clear way."""
    with pytest.raises(TrueupError, match=message) as caught:
        call()
    text = str(caught.value)
    assert text.count("\nHint: ") == 1
    assert text.split("\nHint: ")[0].strip()
    assert text.split("\nHint: ")[1].strip()


# -- parameters ------------------------------------------------------------------------------------

NOT_POSITIVE = [0, -1, -0.5, NAN, math.inf, -math.inf, "1", "one", None, True, 1j, [1], (0.5,)]

BUDGETS = {
    "Mean, count": (lambda e: Mean(e, 0.5), "epsilon_count"),
    "Mean, sum": (lambda e: Mean(0.5, e), "epsilon_sum"),
    "M_SS, count": (lambda e: SmoothSensitivityMean(e, 0.5), "epsilon_count"),
    "M_SS, mean": (lambda e: SmoothSensitivityMean(0.5, e), "epsilon_mean"),
    "TwoTotalsMean": (lambda e: TwoTotalsMean(e), "epsilon"),
    "Shares": (lambda e: Shares(e, ["a", "b"]), "epsilon"),
    "PerRecordSum": (lambda e: PerRecordSum("root:2", e), "scale"),
    "plan": (lambda e: plan(e, 100), "epsilon"),
}


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=repr)
@pytest.mark.parametrize("name", BUDGETS)
def test_budgets(no_noise, name, bad):
    make, parameter = BUDGETS[name]
    refused(lambda: make(bad), f"{parameter} must be")


BOUNDED = {
    "Mean": lambda b: Mean(0.5, 0.5, bounds=b),
    "M_SS": lambda b: SmoothSensitivityMean(0.5, 0.5, bounds=b),
    "TwoTotalsMean": lambda b: TwoTotalsMean(1, bounds=b),
    "plan": lambda b: plan(1, 100, bounds=b),
}
BAD_BOUNDS = {
    "reversed": (1, 0),
    "equal": (2, 2),
    "nan": (NAN, 1),
    "infinite": (0, math.inf),
    "minus infinity": (-math.inf, 1),
    "text": ("0", "1"),
    "a string": "01",
    "one": (0,),
    "three": (0, 1, 2),
    "a number": 1,
    "none": None,
    "half none": (0, None),
}


@pytest.mark.parametrize("bad", BAD_BOUNDS)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds(no_noise, name, bad):
    refused(lambda: BOUNDED[name](BAD_BOUNDS[bad]), "bound")


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda c: Mean(0.5, 0.5, count_at_least=c),
        lambda c: TwoTotalsMean(1, count_at_least=c),
        lambda c: Shares(1, ["a", "b"], count_at_least=c),
        lambda c: plan(1, 100, count_at_least=c),
    ],
    ids=["Mean", "TwoTotalsMean", "Shares", "plan"],
)
def test_lower_bounds_of_the_count(no_noise, make, bad):
    refused(lambda: make(bad), "count_at_least must be")


@pytest.mark.parametrize("bad", ["gaussian", "Laplace", None, 1, ["laplace"]], ids=repr)
def test_count_noise(no_noise, bad):
    refused(lambda: Mean(0.5, 0.5, count_noise=bad), "count_noise must be 'laplace' or 'discrete'")


@pytest.mark.parametrize("bad", ["drop", None, True, ["clip"]], ids=repr)
@pytest.mark.parametrize("kind", [Mean, TwoTotalsMean], ids=["Mean", "TwoTotalsMean"])
def test_outside(no_noise, kind, bad):
    budget = (0.5, 0.5) if kind is Mean else (1,)
    refused(lambda: kind(*budget, outside=bad), "outside must be 'clip' or 'raise'")


@pytest.mark.parametrize("bad", ["best", 1, 0, -3, 2.5, None, True], ids=repr)
def test_extension(no_noise, bad):
    refused(lambda: Mean(0.5, 0.5, extension=bad), "extension|degree")


def test_an_extension_needs_laplace_noise(no_noise):
    refused(lambda: Mean(0.5, 0.5, extension=10, count_noise="discrete"), "extension|Laplace")


@pytest.mark.parametrize(
    "options",
    [
        {"beta": 0.1, "tau": 3.0},
        {"beta": 0.5 / 12, "tau": math.sqrt(3) / 0.5 * 1.0001},
        {"beta": 0.125},  # nothing is left for the noise
        {"beta": 0.2},
        {"tau": 2 / (math.sqrt(3) * 0.5)},  # nothing is left for β
        {"tau": 1.0},
        {"beta": 0},
        {"beta": -0.1},
        {"tau": 0},
        {"tau": -2},
        {"beta": NAN},
        {"tau": math.inf},
        {"beta": "0.1"},
    ],
    ids=str,
)
def test_smoothing_that_breaks_its_equation(no_noise, options):
    refused(lambda: SmoothSensitivityMean(0.5, 0.5, **options), "beta|tau")


@pytest.mark.parametrize(
    "bad",
    [[], ["a"], ["a", "a"], ["a", "b", "a"], "ab", None, 3, [["a"], ["b"]], range(30)],
    ids=repr,
)
def test_categories(no_noise, bad):
    refused(lambda: Shares(1, bad), "categories must be")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offset": -1}, "offset"),
        ({"offset": NAN}, "offset"),
        ({"offset": "1"}, "offset"),
        ({"offset": math.inf}, "offset"),
        ({"noise": "student"}, "noise must be"),
        ({"noise": None}, "noise must be"),
        ({"noise": tu.Laplace(1)}, "noise must be"),
    ],
    ids=str,
)
def test_per_record_options(no_noise, options, message):
    refused(lambda: PerRecordSum("root:2", 1, **options), message)


# -- records ---------------------------------------------------------------------------------------

NUMERIC = {
    "Mean": lambda: Mean(0.5, 0.5),
    "Mean, discrete": lambda: Mean(0.5, 0.5, count_noise="discrete"),
    "M_SS": lambda: SmoothSensitivityMean(0.5, 0.5),
    "TwoTotalsMean": lambda: TwoTotalsMean(1),
    "PerRecordSum": lambda: PerRecordSum("root:2", 1),
}
BAD_DATA = {
    "nan": [0.5, NAN],
    "infinity": [0.5, math.inf],
    "minus infinity": [-math.inf],
    "text": ["0.5", "0.7"],
    "mixed": [0.5, "0.7"],
    "none": [0.5, None],
    "a string": "0.5",
    "a number": 0.5,
    "nothing": None,
    "a table": [[0.1, 0.2], [0.3, 0.4]],
    "ragged": [[0.1], [0.2, 0.3]],
    "complex": [1j],
    "decimals": [Decimal("0.5"), "x"],
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "numpy nan": np.array([0.1, NAN]),
}


@pytest.mark.parametrize("rng", [None, 1], ids=["secure", "simulated"])
@pytest.mark.parametrize("bad", BAD_DATA)
@pytest.mark.parametrize("name", NUMERIC)
def test_records_that_are_no_numbers(no_noise, name, bad, rng):
    mechanism = NUMERIC[name]()
    refused(lambda: mechanism.release(BAD_DATA[bad], rng=rng), "the data must be|not finite")


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("bad", [[-1], [3.0, -1e-300], [0.0, 5.0, -math.pi]], ids=str)
def test_negative_records(no_noise, noise, bad):
    mechanism = PerRecordSum("root:2", 1, noise=noise)
    for rng in (None, 1):
        refused(lambda rng=rng: mechanism.release(bad, rng=rng), "negative")


def test_sums_beyond_a_float(no_noise):
    refused(lambda: PerRecordSum("root:2", 1).release([1e308, 1e308], rng=1), "exceeds 1e\\+300")


@pytest.mark.parametrize(
    "bad", [["c"], ["a", "c"], [NAN], [None], [1], [["a"]], 5, None, "c"], ids=repr
)
def test_values_that_are_no_category(no_noise, bad):
    mechanism = Shares(1, ["a", "b"])
    for rng in (None, 1):
        refused(lambda rng=rng: mechanism.release(bad, rng=rng), "not a category|must be a list")


@pytest.mark.parametrize(
    "bad", [[1], [1, 2, 3], [], [1, -1], [1, NAN], ["1", "2"], None, 7, [[1, 2]]], ids=repr
)
def test_counts_that_are_no_histogram(no_noise, bad):
    mechanism = Shares(1, ["a", "b"])
    for rng in (None, 1):
        refused(lambda rng=rng: mechanism.release_counts(bad, rng=rng), "counts|the data|finite")


@pytest.mark.parametrize("kind", [Mean, TwoTotalsMean], ids=["Mean", "TwoTotalsMean"])
def test_outside_raises_on_request(no_noise, kind):
    budget = (0.5, 0.5) if kind is Mean else (1,)
    mechanism = kind(*budget, bounds=(-1, 2), outside="raise")
    for values in ([2.0001], [0, -1.0001], [0, -1.5, 7], np.array([3])):
        for rng in (None, 1):
            refused(
                lambda values=values, rng=rng: mechanism.release(values, rng=rng),
                r"records lie outside \[-1, 2\]",
            )


def test_the_message_says_how_many(no_noise):
    mechanism = TwoTotalsMean(1, outside="raise")
    refused(lambda: mechanism.release([0.5, 2, 3, 0.1], rng=1), "2 of 4 records")
    refused(lambda: mechanism.release([0.5, NAN, 3, 0.1], rng=1), "1 of 4 records")


# -- what is no bad input --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Mean, TwoTotalsMean], ids=["Mean", "TwoTotalsMean"])
def test_outside_clips_by_default(kind):
    budget = (5, 5) if kind is Mean else (10,)
    raises = kind(*budget, bounds=(-1, 2), outside="raise")
    clips = kind(*budget, bounds=(-1, 2))
    inside = [-1, -1.0, 0.5, 2, 2]
    wild = [-1000, -1.0000001, 0.5, 2, 1e300]
    assert clips.release(wild, rng=3) == clips.release(inside, rng=3)
    assert raises.release(inside, rng=3) == clips.release(inside, rng=3)


def test_smooth_sensitivity_clips():
    mechanism = SmoothSensitivityMean(0.5, 0.5)
    assert mechanism.release([-5, 0.5, 9], rng=3).mean == mechanism.release([0, 0.5, 1], rng=3).mean


EMPTY = {
    **NUMERIC,
    "PerRecordSum, gaussian": lambda: PerRecordSum("root:2", 1, noise="gaussian"),
    "PerRecordSum, log": lambda: PerRecordSum("log", 0.3, offset=1),
    "Shares": lambda: Shares(1, ["a", "b", "c"]),
}


@pytest.mark.parametrize(
    "values",
    [[], (), np.array([]), np.array([], dtype=int), iter(())],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.parametrize("name", EMPTY)
def test_no_records_are_released_like_any_other(name, values):
    release = EMPTY[name]().release(values, rng=2)
    value = getattr(release, "mean", getattr(release, "total", None))
    found = [value] if value is not None else list(release.shares.values())
    assert all(math.isfinite(x) for x in found)
    assert release.simulated


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1],
        [True, False, True],
        (1.0, 0.0, 1.0),
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([1, 0, 1], dtype=np.float32),
        range(1, 2),
        iter([1, 0, 1]),
    ],
    ids=["list", "bools", "tuple", "uint8", "float32", "range", "iterator"],
)
def test_records_of_many_kinds(values):
    release = TwoTotalsMean(1000).release(values, rng=1)
    assert release.mean == pytest.approx(2 / 3 if release.count > 2 else 1, abs=0.05)


def test_numbers_of_many_kinds():
    for epsilon in (1, 1.0, np.float64(1), np.int64(1), Decimal(1)):
        assert TwoTotalsMean(epsilon).epsilon == 1
        assert TwoTotalsMean(epsilon).noise == tu.Laplace(1)
    exact = Mean(tu.Fraction(1, 3), tu.Fraction(1, 6), bounds=(0, tu.Fraction(1, 2)))
    assert exact.epsilon == tu.Fraction(1, 2)
    assert exact.noise["s"] == tu.Laplace(tu.Fraction(3, 2))


def test_a_refusal_leaves_the_mechanism_usable():
    mechanism = Mean(0.5, 0.5)
    with pytest.raises(TrueupError):
        mechanism.release([NAN])
    assert mechanism.release([0.5], rng=1).simulated


# -- what is no list of records, and what no records can have --------------------------------------

COUNTER = {"a": 5, "b": 3}


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (Shares(1, ["a", "b"]), COUNTER),
        (Shares(1, ["a", "b"]), COUNTER.keys()),
        (Shares(1, ["a", "b"]), {"a", "b"}),
        (Shares(1, ["a", "b"]), "aab"),
        (Shares(1, [97, 98]), b"aab"),
        (Shares(1, ["a", "b"]), np.array([["a", "b"]])),
        (Mean(0.5, 0.5), {0.1: 1, 0.2: 2}),
        (Mean(0.5, 0.5), frozenset([0.1, 0.2])),
        (Mean(0.5, 0.5, (0, 200)), b"aab"),
        (TwoTotalsMean(1), {0.1: 1, 0.2: 2}),
        (SmoothSensitivityMean(0.5, 0.5), {0.1, 0.2}),
        (PerRecordSum("root:2", 2), {4.0: 7}),
        (GroupMean(1), {0.1: 1}),
        (GroupShare(1), {0: 3, 1: 4}),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_histogram_a_set_and_a_text_are_no_list_of_records(
    mechanism: Any, data: Any, no_noise: None
) -> None:
    """They have no place for two records that are alike: what is released would lack some."""
    with pytest.raises(TrueupError, match=r"the data must be a (list|vector) of records") as caught:
        mechanism.release(data, rng=1)
    assert "nothing was released" in str(caught.value)


def test_a_table_is_not_read_by_the_names_of_its_columns(no_noise: None) -> None:
    table = pytest.importorskip("pandas").DataFrame({"a": [1], "b": [2]})
    with pytest.raises(TrueupError, match="a vector of records"):
        Shares(1, ["a", "b"]).release(table, rng=1)


def test_counts_come_in_the_order_of_the_categories(no_noise: None) -> None:
    with pytest.raises(TrueupError, match="a list of records"):
        Shares(1, [10, 20]).release_counts({10: 5, 20: 3}, rng=1)  # type: ignore[arg-type]
    for unordered in ({"a", "b"}, COUNTER):
        with pytest.raises(TrueupError, match="categories must be"):
            Shares(1, unordered)


@pytest.mark.parametrize(
    ("mechanism", "n", "mean"),
    [
        (TwoTotalsMean(1, bounds=(10, 30)), 50, 0.5),
        (TwoTotalsMean(1), 50, 2.0),
        (TwoTotalsMean(1), "50", 0.5),
        (TwoTotalsMean(1), -1, 0.5),
        (Mean(0.5, 0.5), 50, 1.5),
        (Mean(0.5, 0.5), 50, [0.1, 0.5]),
        (Mean(0.5, 0.5), 50, NAN),
        (Mean(0.5, 0.5), None, 0.5),
        (SmoothSensitivityMean(0.5, 0.5), 50, -1),
        (SmoothSensitivityMean(0.5, 0.5), -50, 0.5),
        (Shares(1, ["a", "b"]), 100, 1.5),
        (Shares(1, ["a", "b"]), 100, -0.5),
        (Shares(1, range(20)), 1000, [0.05] * 20),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_mean_that_no_records_have_has_no_standard_deviation(
    mechanism: Any, n: Any, mean: Any
) -> None:
    for ask in {mechanism.sd, getattr(mechanism, "bias", mechanism.sd)}:
        with pytest.raises(TrueupError, match="Hint: "):
            ask(n, mean)


def test_a_mean_at_a_bound_that_is_no_double_is_served() -> None:
    third = Fraction(1, 3)
    mechanism = TwoTotalsMean(1, bounds=(third, 1))
    assert mechanism.sd(50, float(third)) == pytest.approx(mechanism.sd(50, third), rel=1e-12)


@pytest.mark.parametrize("total", [-1, NAN, "5", [1.0]])
def test_a_total_that_no_records_have_has_no_standard_deviation(total: Any) -> None:
    with pytest.raises(TrueupError, match="Hint: "):
        PerRecordSum("root:2", 2).sd(total)
