"""Keys find their rows in the type of the column, whatever they are written as, or are refused."""

import datetime

import numpy as np
import pytest

import trueup as tu
from extras import needs
from microdata.test_totals import ENGINES

DAY = datetime.date(2024, 3, 1)
NOON = datetime.datetime(2024, 3, 1, 12, 0, 0, 500_000)
UTC = NOON.replace(tzinfo=datetime.UTC)
MIDNIGHT = datetime.datetime(2024, 3, 1)
EAST = UTC.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
FOUND = {
    "a whole number as text": ([7, 7, 8], ["07", "8", "9"], [2, 1, 0]),
    "numbers beyond the type": ([7, 7], [7, 2**40], [2, 0]),
    "a boolean as text": ([True, True, False], ["True", "false"], [2, 1]),
    "a boolean as a number": ([True, True, False], [1, 0], [2, 1]),
    "a day as text": ([DAY, DAY], ["2024-03-01", "2024-03-02"], [2, 0]),
    "a day as a moment": ([DAY, DAY], [MIDNIGHT], [2]),
    "a moment as a day": ([MIDNIGHT, NOON], [DAY], [1]),
    "a moment as text": ([NOON, NOON], ["2024-03-01T12:00:00.50"], [2]),
    "a moment of NumPy": ([NOON, NOON], list(np.array([NOON], "datetime64[ns]")), [2]),
    "a moment with a zone": ([UTC, UTC], [EAST], [2]),
    "a moment in another zone": ([EAST, UTC], ["2024-03-01 13:00:00.5+0100"], [2]),
    "a day for text": (["2024-03-01", "x"], [DAY], [1]),
}
REFUSED = {
    "a fraction": ([7], ["7.5"], "'7.5' of k does not fit its type"),
    "truth for a number": ([1], [True], "True of k does not fit its type"),
    "a word for truth": ([True], ["yes"], "'yes' of k does not fit its type"),
    "no day": ([DAY], ["2024-02-30"], "2024-02-30' of k does not fit its type, DATE"),
    "not a day": ([DAY], [NOON], r"2024-03-01 12:00:00\.5.* of k does not fit its type, DATE"),
    "a zone too much": ([NOON], [UTC], r"\+00:00 of k does not fit its type, TIMESTAMP"),
    "no zone": ([UTC], [NOON], r"does not fit its type.*\nHint: .*with their time zone"),
    "digits": ([NOON], ["2024-03-01 12:00:00.5000001"], "does not fit its type, TIMESTAMP"),
    "truth for text": (["True"], [True], r"does not fit its type.*\nHint: .*as the data write"),
    "a number for text": (["002"], [2], r"2 of k does not fit its type.*\nHint: .*quotes"),
    "a moment for text": (["2024-03-01 12:00"], [NOON], "does not fit its type"),
    "a number twice": ([7], ["7", "07"], "the keys 7 and 07 are the same in the data"),
    "a moment twice": (
        [UTC],
        ["2024-03-01 12:00:00+00:00", "2024-03-01 14:00:00+02:00"],
        r"12:00:00\+00:00 and .* are the same in the data",
    ),
}
TYPED = [make for make in ENGINES if make.__name__ != "as_csv"]  # there everything is text


def counted(make, values, keys, tmp_path):
    data = make({"k": values}, tmp_path)
    return tu.release(data, "k", keys, 1000, rng=1, n="count").columns["n_noisy"]


@pytest.mark.parametrize("what", FOUND)
@pytest.mark.parametrize("make", TYPED, ids=lambda make: make.__name__)
def test_keys_of_another_type_find_their_rows(make, what, tmp_path):
    values, keys, counts = FOUND[what]
    assert counted(make, values, keys, tmp_path) == counts


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("make", TYPED, ids=lambda make: make.__name__)
def test_keys_that_do_not_fit_are_refused(make, what, tmp_path):
    values, keys, message = REFUSED[what]
    with pytest.raises(tu.TrueupError, match=rf"(?s){message}.*nothing was released"):
        counted(make, values, keys, tmp_path)


@pytest.mark.parametrize(
    ("values", "categories", "message"),
    [
        (
            [True, False],
            "['True', 'False']",
            "'True' of k is written 'true' in the data\nHint: write 'true'",
        ),
        ([1, 2], "['01', '02']", "'01' of k is written '1'"),
        ([1, 2], "['a', 'b']", "the category 'a' of k does not fit its type, BIGINT"),
        ([DAY, DAY], "['2024', '2025']", "the category '2024' of k does not fit its type, DATE"),
    ],
)
def test_categories_that_do_not_fit_are_refused(values, categories, message):
    frame = needs("polars").DataFrame({"k": values})
    with pytest.raises(tu.TrueupError, match=message):
        tu.release(frame, epsilon=1, rng=1, k=f"share(k, {categories})")


def test_moments_find_the_rows_of_units():
    frame = needs("polars").DataFrame(
        {"k": [UTC, UTC, UTC, MIDNIGHT.replace(tzinfo=UTC.tzinfo)], "u": [1, 1, 2, 2]}
    )
    made = tu.release(frame, "k", [EAST], 1000, rng=1, unit="u", at_most=1, n="count")
    assert made.columns["n_noisy"] == [2]


def test_keys_of_types_that_only_the_engine_knows():
    duckdb = needs("duckdb")
    rows = duckdb.sql("SELECT uuid AS k FROM (VALUES (CAST('a'||repeat('0', 31) AS UUID))) t(uuid)")
    one = "A0000000-0000-0000-0000-000000000000"
    assert counted(lambda *_: rows, None, [one], None) == [1]
    with pytest.raises(tu.TrueupError, match=r"'x',.* does not fit its type, UUID"):
        counted(lambda *_: rows, None, [one, "x"], None)
    with pytest.raises(tu.TrueupError, match="are the same in the data"):
        counted(lambda *_: rows, None, [one, one.lower()], None)


def test_lists_of_whole_numbers_are_not_whole_numbers():
    rows = needs("duckdb").sql("SELECT [1, 2] AS k")
    assert counted(lambda *_: rows, None, ["[1,2]"], None) == [1]
    with pytest.raises(tu.TrueupError, match=r"\(1,\) of k does not fit its type, INTEGER"):
        counted(lambda *_: rows, None, [1], None)


def test_keys_of_every_kind_find_their_rows(tmp_path):
    day = datetime.date(2024, 3, 1)
    frame = needs("polars").DataFrame(
        {"t": ["a", "a"], "i": [1, 2], "b": [True, False], "d": [day, day]}
    )
    keys = {"t": ["a", "z"], "i": [1, 2], "b": [True], "d": [day]}
    made = tu.release(frame, [*keys], keys, 1000, rng=1, n="count")
    assert made.columns["n_noisy"] == [1, 0, 0, 0]
    frame.head(1).write_csv(tmp_path / "keys.csv")
    for given in (tmp_path / "keys.csv", frame.head(1), [("a", 1, True, day)]):
        assert tu.release(frame, [*keys], given, 1000, rng=1, n="count").columns["n_noisy"] == [1]
