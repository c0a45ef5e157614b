"""Private tables on Spark: the same whole numbers, added up by the workers."""

import pytest

import trueup as tu
from backends.engines import spark_session
from extras import needs
from frames.spark_frames import make, read
from microdata.people import KEYS, MEASURES, people
from microdata.test_public_keys import FOUND, REFUSED

DATA = people(60)
ASKED = {"by": "state", "keys": KEYS, "epsilon": 1, "rng": 3}


@pytest.fixture(scope="module")
def frame():
    return make(spark_session(), DATA)


def test_the_same_seed_gives_the_same_table(frame):
    here = tu.release(frame, **ASKED, **MEASURES)
    there = tu.release(needs("pandas").DataFrame(DATA), **ASKED, **MEASURES)
    assert here.columns == there.columns
    assert here.spec == there.spec
    assert type(here.table) is type(frame)
    shown = read(here.table)
    assert sorted(shown["wage"]) == sorted(here.columns["wage"])
    assert shown["simulation"] == ["not private"] * 3


def test_at_most_so_many_rows_of_a_unit_count_and_the_same_ones(frame):
    asked = {**ASKED, "keys": ["A", "B", "secret"], "epsilon": 1000}
    asked |= {"unit": "person", "at_most": 1, "n": "count", "hours": "sum(hours, -5, 60)"}
    made = tu.release(frame.repartitionByRange(3, "row number"), **asked)
    assert round(sum(made.columns["n"])) == len(set(DATA["person"]))
    assert made.columns == tu.release(needs("pandas").DataFrame(DATA), **asked).columns


def test_bad_rows_and_columns_are_refused(frame):
    with pytest.raises(tu.TrueupError, match="sex has values that are not one of its categories"):
        tu.release(frame, **ASKED, sex="share(sex, [f, m])")
    with pytest.raises(tu.TrueupError, match="'sex' holds STRING, not numbers"):
        tu.release(frame, **ASKED, sex="mean(sex, 0, 1)")


@pytest.mark.parametrize("kind", ["array<int>", "struct<a:int>", "interval day to second"])
def test_columns_of_several_values_and_spans_are_no_numbers(kind):
    rows = spark_session().createDataFrame([], f"x {kind}, y int")
    with pytest.raises(tu.TrueupError, match=r"the column 'x' holds .*, not numbers"):
        tu.release(rows, epsilon=1, rng=1, x="sum(x, 0, 1)")
    if "<" in kind:
        with pytest.raises(tu.TrueupError, match="the column 'x' of keys or categories holds"):
            tu.release(rows, "x", [1], 1, rng=1, n="count")


def test_keys_of_another_type_find_their_rows():
    names = [f"k{i}" for i in range(len(FOUND))]
    row = [values[0] for values, _, _ in FOUND.values()]
    frame = spark_session().createDataFrame([row, [None] * len(row)], names)
    keys = [tuple(listed[0] for _, listed, _ in FOUND.values())]
    made = tu.release(frame, names, keys, 1000, rng=1, n="count")
    assert made.columns["n_noisy"] == [1]


def test_keys_that_do_not_fit_are_refused():
    here = {"no zone", "a zone too much"}  # Spark's moments are in the time zone of the session
    cases = [case for what, case in REFUSED.items() if what not in here]
    names = [f"k{i}" for i in range(len(cases))]
    frame = spark_session().createDataFrame([[values[0] for values, _, _ in cases]], names)
    for name, (_, keys, told) in zip(names, cases, strict=True):
        with pytest.raises(tu.TrueupError, match=told.replace("of k ", f"of {name} ")):
            tu.release(frame, name, keys, 1, rng=1, n="count")


def test_large_numbers_and_columns_read_twice():
    low, values = 10**17, [10**17 + 3 * 10**9, 10**17 + 6, 10**17 - 9, 10**17 + 10**10, None]
    data = {"x": values, "y": [0, 1, 1, 1, None]}
    asked = {
        "x": f"mean(x, {low}, {low + 8 * 10**9})",
        "y": "mean(y, 0, 1)",
        "s": "share(y, [0, 1])",
    }
    asked |= {"epsilon": 1, "rng": 3, "missing": {"x": low + 1, "y": 1}}
    here = tu.release(make(spark_session(), data), **asked).columns
    assert here == tu.release(needs("pyarrow").table(data), **asked).columns
