"""What cannot be released is refused before noise is drawn, a budget spent or a file written."""

import math
import tomllib

import numpy as np
import pytest

import trueup as tu
from extras import needs

GOOD = {"state": ["A", "B"], "wage": [1.0, 2.0], "sex": ["f", "m"], "id": [1, 2]}
ASKED = {"by": "state", "keys": ["A"], "epsilon": 1, "wage": "mean(wage, 0, 9)"}
REFUSED = {
    "no bounds": ({"wage": "mean(wage)"}, r"wage: mean needs low"),
    "one bound": ({"wage": "sum(wage, 3)"}, r"sum needs high"),
    "reversed bounds": ({"wage": "mean(wage, 9, 0)"}, r"lower bound must be below"),
    "infinite bounds": ({"wage": "mean(wage, 0, inf)"}, r"upper bound must be a number"),
    "equal bounds": ({"wage": "mean(wage, 1, 1)"}, r"lower bound must be below"),
    "a fraction of nothing": ({"wage": "mean(wage, 0, 1/0)"}, r"double precision"),
    "bounds beyond doubles": ({"wage": "mean(wage, 0, 1e999)"}, r"double precision"),
    "too many arguments": ({"wage": "mean(wage, 0, 1, 2)"}, r"mean takes column, low, high"),
    "no such measure": ({"wage": "median(wage, 0, 1)"}, r"no measure 'median'"),
    "no measure at all": ({"wage": None}, r"a measure is a text, got None"),
    "brackets": ({"wage": "share(sex, [f, m)"}, r"do not match"),
    "one category": ({"wage": "share(sex, [f])"}, r"2 to 20 different names"),
    "a category twice": ({"wage": "share(sex, [f, f])"}, r"2 to 20 different names"),
    "no scale": ({"wage": "per_record(wage, root:3)"}, r"per_record needs scale"),
    "a transform": (
        {"wage": "per_record(wage, cube, 1)"},
        r"root:k or log, got 'cube'\nHint: e\.g\. per_record\(pay, root:3, 10\)",
    ),
    "bounds without an error": ({"wage": "sum(wage, 0, 1e300)"}, r"bounds 0 and 1e\+300 leave no"),
    "no size": ({"size": 0}, r"a group has 1 record or more, a whole number, got 0"),
    "noise too wide": (
        {"epsilon": 1e-5},
        r"wage: noise of scale 1e\+05 at epsilon 1e-05 is too wide.*\nHint: make epsilon larger",
    ),
    "another case": ({"wage": "mean(WAGE, 0, 9)"}, r"no column 'WAGE'\nHint: did you mean wage"),
    "log without a variance": ({"wage": "per_record(wage, log, 0.5, offset=1)"}, r"below 1/2"),
    "epsilon zero": ({"epsilon": 0}, r"epsilon must be positive, got 0"),
    "epsilon negative": ({"epsilon": -1}, r"epsilon must be positive"),
    "epsilon nan": ({"epsilon": math.nan}, r"epsilon must be finite"),
    "no epsilon": ({"epsilon": None}, r"epsilon is not given"),
    "no keys": ({"keys": None}, r"not public without keys"),
    "empty keys": ({"keys": []}, r"list of keys is empty"),
    "keys twice": ({"keys": ["A", "A"]}, r"the key A is listed twice"),
    "a float key": ({"keys": [1.5]}, r"a key is text, a whole number"),
    "a missing key": ({"keys": ["A", None]}, r"a key of state is missing"),
    "keys too wide": ({"keys": [("A", 1)]}, r"a value for each of state"),
    "levels of another column": ({"keys": {"region": ["A"]}}, r"levels of 'region'"),
    "no levels": ({"by": ["state", "sex"], "keys": {"state": ["A"]}}, r"no levels of 'sex'"),
    "a key file that is not there": ({"keys": "nowhere.csv"}, r"no file nowhere\.csv"),
    "keys without by": ({"by": None}, r"keys are given, but no columns"),
    "by twice": ({"by": ["state", "state"]}, r"by names a column twice"),
    "by that is not there": ({"by": "region"}, r"no column 'region'"),
    "a column that is not there": ({"wage": "mean(wages, 0, 9)"}, r"no column 'wages'"),
    "a unit that is not there": ({"unit": "person", "at_most": 1}, r"no column 'person'"),
    "at_most zero": ({"unit": "id", "at_most": 0}, r"at_most must be a whole number from 1"),
    "at_most half": ({"unit": "id", "at_most": 1.5}, r"at_most must be a whole number"),
    "no at_most": ({"unit": "id"}, r"how many rows of each id"),
    "at_most without a unit": ({"at_most": 2}, r"of which unit"),
    "a weight of nothing": ({"weights": {"pay": 1}}, r"no measure 'pay'"),
    "a weight zero": ({"weights": {"wage": 0}}, r"the weight of wage must be positive"),
    "missing of nothing": ({"missing": {"pay": 0}}, r"missing names 'pay'"),
    "missing beyond the bounds": ({"missing": 1e9}, r"1000000000 would stand for a missing wage"),
    "missing negative": (
        {"missing": {"id": -5}, "pay": "per_record(id, root:3, 1)"},
        r"-5 would stand for a missing id, beyond the bounds 0 and",
    ),
    "missing text": ({"missing": "skip"}, r"missing must be a number"),
    "two counts": ({"n": "count", "m": "count"}, r"counted twice"),
    "keys of two kinds": ({"keys": ["a", 1]}, r"could not be written"),
    "keys beyond 64 bits": ({"keys": [1, 2**70]}, r"could not be written"),
    "keys that are no text": ({"keys": ["\ud800"]}, r"could not be written"),
    "categories that are no text": ({"wage": "share(sex, ['\ud800', b])"}, r"could not be written"),
    "a name for two numbers": (
        {"wage": "share(sex, [category2, 'a b'])"},
        r"would be called 'wage_category2_noisy'",
    ),
    "a divisor that is a measure": (
        {"n": "count", "n_positive": "sum(wage, 0, 1)", "wage": "share(sex, [a, b, c])"},
        r"would be called 'n_positive'",
    ),
    "names alike": ({"by": "state", "STATE": "count"}, r"two columns .* 'STATE'"),
    "a name": ({"a b": "count"}, r"a measure cannot be called 'a b'"),
    "text for numbers": ({"wage": "mean(sex, 0, 9)"}, r"'sex' holds VARCHAR, not numbers"),
    "numbers for categories": ({"wage": "share(wage, [1, 2])"}, r"numbers with a point"),
    "no table": ({"data": [1, 2]}, r"list is not a supported type of table"),
    "no file": ({"data": "nowhere.csv"}, r"no file nowhere\.csv"),
    "too little budget": ({"epsilon": 1e-300}, r"."),
}
ROWS = {
    "missing": ({"wage": [1.0, None]}, r"wage is missing"),
    "nan": ({"wage": [math.nan, 1.0]}, r"wage is missing"),
    "infinite": ({"wage": [math.inf, 1.0]}, r"\bwage has values that are infinite or no numbers"),
    "a strange category": (
        {"sex": ["f", "x"]},
        r"\bsex has values that are not one of its categories",
    ),
    "a missing category": ({"sex": ["f", None]}, r"sex is missing"),
    "negative": ({"pay": [-1.0, 3.0]}, r"\bpay has values that are no numbers, negative"),
    "overflow": (
        {"pay": [2.0**43, 3.0]},
        r"\bpay has values that are no numbers, negative, or above",
    ),
    "no unit": ({"id": [1, None]}, r"id is missing"),
}


@pytest.fixture
def no_noise(monkeypatch):
    def drawn(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("trueup.microdata.release.noisy", drawn)


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_asked_is_refused_before_noise(what, no_noise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given, message = REFUSED[what]
    asked = {**ASKED, **given}
    data = asked.pop("data", needs("pandas").DataFrame(GOOD))
    book = {"file": tmp_path / "ledger.toml", "dataset": "d", "cap": 9}
    with pytest.raises(tu.TrueupError, match=message) as refused:
        tu.release(data, **asked, ledger=book)
    assert "\nHint: " in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("kind", ["pandas", "csv"])
def test_rows_are_refused_before_noise(what, kind, no_noise, tmp_path):
    given, message = ROWS[what]
    rows = {"state": ["A", "A"], "wage": [1.0, 2.0], "sex": ["f", "m"], "id": [1, 2], "pay": [1, 2]}
    frame = needs("pandas").DataFrame({**rows, **given})
    if kind == "csv":
        frame.to_csv(tmp_path / "rows.csv", index=False)
    asked = {"sex": "share(sex, [f, m])", "pay": "per_record(pay, root:3, 9)", **ASKED}
    with pytest.raises(tu.TrueupError, match=rf"{message}.*\n*Hint: .*nothing was released"):
        tu.release(
            frame if kind == "pandas" else tmp_path / "rows.csv", **asked, unit="id", at_most=1
        )


@pytest.mark.parametrize("what", ["float16", "decimal256", "complex", "twice", "cases"])
def test_tables_that_the_engine_cannot_read_are_refused(what, no_noise):
    pandas, pyarrow = needs("pandas"), needs("pyarrow")
    wide = pyarrow.decimal256(50, 2)
    frames = {
        "float16": lambda: pandas.DataFrame({"wage": np.ones(2, np.float16)}),
        "decimal256": lambda: pyarrow.table({"wage": pyarrow.array([1, 2]).cast(wide)}),
        "complex": lambda: pandas.DataFrame({"wage": [1j, 2j]}),
        "twice": lambda: pandas.DataFrame([[1, 2]], columns=["wage", "wage"]),
        "cases": lambda: pandas.DataFrame([[1, 2]], columns=["wage", "Wage"]),
    }
    other = "sum(Wage, 0, 9)" if what == "cases" else "count"
    with pytest.raises(tu.TrueupError, match=r"(?i)wage.*\nHint: .*; nothing was released"):
        tu.release(frames[what](), epsilon=1, x="mean(wage, 0, 9)", m=other)


def test_a_table_without_columns_is_refused(no_noise):
    with pytest.raises(tu.TrueupError, match=r"cannot be added up: .*column"):
        tu.release(needs("polars").DataFrame({}), epsilon=1, n="count")


def test_text_in_a_column_of_numbers_of_a_csv_file_is_refused(no_noise, tmp_path):
    (tmp_path / "rows.csv").write_text("state,wage\nA,1\nA,many\n")
    with pytest.raises(tu.TrueupError, match="wage has values that are infinite or no numbers"):
        tu.release(tmp_path / "rows.csv", **ASKED)


def test_rows_of_other_groups_are_not_looked_at(tmp_path):
    (tmp_path / "rows.csv").write_text("state,wage\nA,1\nB,many\n,3\n")
    made = tu.release(tmp_path / "rows.csv", **{**ASKED, "epsilon": 1000}, rng=1)
    assert made.columns["count"] == pytest.approx([1], abs=0.05)


@pytest.mark.parametrize(
    ("missing", "count", "total"),
    [("drop", 2, 5), ({"x": 7}, 3, 12), (0, 3, 5), ({"x": "drop"}, 2, 5)],
    ids=["drop", "by column", "a number", "drop by column"],
)
def test_missing_values_are_dropped_or_named(missing, count, total, tmp_path):
    rows = {"x": [2.0, None, 3.0]}
    needs("pandas").DataFrame(rows).to_csv(tmp_path / "x.csv", index_label="row")
    for data in (needs("polars").DataFrame(rows), tmp_path / "x.csv"):
        asked = {"epsilon": 10_000, "missing": missing, "rng": 1}
        made = tu.release(data, **asked, n="count", x="sum(x, 0, 10)")
        assert made.columns["n"] == pytest.approx([count], abs=0.01)
        assert made.columns["x"][0] == pytest.approx(total, abs=0.1)


@pytest.mark.parametrize("rows", [[2.0, math.nan, 3.0], [math.nan, None, 3.0]], ids=["all", "some"])
def test_nan_in_a_parquet_file_is_missing_whatever_the_file_says_of_other_values(rows, tmp_path):
    pyarrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
    duckdb, path = needs("duckdb"), tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"x": pyarrow.array(rows)}), path, row_group_size=2)
    known = [x for x in rows if x is not None and x == x]
    asked = {"epsilon": 10_000, "rng": 1, "n": "count", "x": "sum(x, 0, 10)"}
    for data in (path, duckdb.read_parquet(str(path))):
        with pytest.raises(tu.TrueupError, match="x is missing in some rows"):
            tu.release(data, **asked)
        left = tu.release(data, **asked, missing="drop").columns["n"]
        assert left == pytest.approx([len(known)], abs=0.01)
        made = tu.release(data, **asked, missing=7)
        assert made.columns["x"][0] == pytest.approx(sum(known) + 7 * (3 - len(known)), abs=0.1)


def test_a_blank_of_an_enumeration_is_missing():
    blank = "SELECT CAST(x AS ENUM ('f', 'm', '')) AS x FROM (VALUES ('f'), ('')) t(x)"
    rows = needs("duckdb").sql(blank)
    asked = {"epsilon": 1000, "rng": 1, "n": "count", "x": "share(x, [f, m])"}
    with pytest.raises(tu.TrueupError, match="x is missing"):
        tu.release(rows, **asked)
    assert tu.release(rows, **asked, missing="drop").columns["x_f_noisy"] == [1]


def test_an_enumeration_may_have_values_that_look_like_types():
    rows = needs("duckdb").sql("SELECT CAST('<18' AS ENUM ('<18', 'float[]', 'array<int>')) AS x")
    made = tu.release(rows, "x", ["<18"], 1000, rng=1, n="count", y="share(x, ['<18', 'float[]'])")
    assert made.columns["y_<18_noisy"] == [1]


def test_rows_of_nobody_are_not_one_unit(tmp_path):
    polars = needs("polars")
    ids = [[1.0, math.nan], ["a", " "], ["a", "NaN"]]
    frames = [polars.DataFrame({"state": ["A", "A"], "wage": [1, 2], "id": i}) for i in ids]
    frames.append(frames[1].cast({"id": polars.Categorical}))
    (tmp_path / "rows.csv").write_text('state,wage,id\nA,1,a\nA,2,""\n')
    for data in (*frames, tmp_path / "rows.csv"):
        asked = {"epsilon": 1000, "unit": "id", "at_most": 1, "n": "count", "rng": 1}
        with pytest.raises(tu.TrueupError, match="id is missing"):
            tu.release(data, **asked)
        assert tu.release(data, **asked, missing="drop").columns["n_noisy"] == [1]


def test_a_unit_that_is_measured_too_is_not_filled():
    frame = needs("polars").DataFrame({"id": [1, 1, 2, None, None]})
    asked = {"epsilon": 1000, "unit": "id", "at_most": 1, "n": "count", "x": "sum(id, 0, 9)"}
    for missing in (None, 3, {"id": 3}):
        with pytest.raises(tu.TrueupError, match="id is missing: whose rows are they") as told:
            tu.release(frame, **asked, missing=missing, rng=1)
        assert "names a value" not in str(told.value)
    made = tu.release(frame, **asked, missing="drop", rng=1)
    assert made.columns["n"] == pytest.approx([2], abs=0.01)
    assert made.columns["x"][0] == pytest.approx(3, abs=0.1)


def test_what_is_wrong_in_a_row_that_would_not_be_used_is_refused_too(no_noise):
    rows = {"state": ["A"] * 3, "wage": [1.0, None, 2.0], "id": [1, 1, 1]}
    for seed in range(6):
        with pytest.raises(tu.TrueupError, match="wage is missing"):
            tu.release(needs("polars").DataFrame(rows), **ASKED, unit="id", at_most=1, rng=seed)


def test_names_with_control_characters_leave_the_sidecar_toml():
    frame = needs("pandas").DataFrame({"x\ny\x01": ["a\nb\x00", "\x7f"], "id\x02": [1, 2]})
    asked = {"c": "share(`x\ny\x01`, ['a\nb\x00', '\x7f'])", "unit": "id\x02", "at_most": 1}
    told = tomllib.loads(tu.release(frame, epsilon=1000, rng=1, **asked).spec)
    assert told["noise"]["c_category1_noisy"]["column"] == "c_a\nb\x00_noisy"
    assert told["privacy"]["unit"] == "id\x02"


def test_a_median_is_no_misspelt_mean():
    with pytest.raises(tu.TrueupError, match=r"there is no measure 'median'\nHint: (?!did you)"):
        tu.release({"g": ["a"]}, by="g", keys=["a"], epsilon=1, m="median(wage, 0, 9)")
