"""What tu.debias is asked, and how it refuses."""

import pandas as pd
import pytest

import trueup as tu
from extras import needs

MEAN = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
COUNT = tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None))
DATA = {"s": [51.7, 3.0], "n": [103, 25], "pay": [12.0, 7.5], "emp": [11, 30]}


def test_columns_map_statistics(constructor):
    frame = constructor(DATA)
    out = constructor.read(tu.debias(frame, columns={"s": "pay", "n": "emp"}, m=MEAN, c=COUNT))
    assert out["m"] == pytest.approx([MEAN(s=12.0, n=11), MEAN(s=7.5, n=30)], rel=1e-13)
    assert out["c"] == pytest.approx([COUNT(11.0), COUNT(30.0)], rel=1e-13)


def refusal(constructor, /, *args, data=DATA, **kwargs):
    with pytest.raises(tu.TrueupError) as caught:
        tu.debias(constructor(data), *args, **kwargs)
    assert caught.value.hint
    return caught.value.message


def test_no_estimator(constructor):
    assert "no estimator" in refusal(constructor)


@pytest.mark.parametrize("value", ["s/n", 3, None, tu.Laplace(2)], ids=repr)
def test_what_is_no_estimator(constructor, value):
    assert "m must be an estimator" in refusal(constructor, m=value)


def test_a_misspelt_option_is_no_estimator(constructor):
    for given, meant in (({"colums": {"s": "pay"}}, True), ({"mean": 3}, False)):
        with pytest.raises(tu.TrueupError, match="must be an estimator") as caught:
            tu.debias(constructor({"s": [1.0], "n": [2]}), **given)
        assert caught.value.hint.startswith("did you mean columns?") == meant


def test_unknown_statistics(constructor):
    assert "columns= names 'x'" in refusal(constructor, columns={"x": "pay"}, m=MEAN)
    assert "scales= names 'q'" in refusal(constructor, scales={"q": "pay"}, m=MEAN)
    assert "columns must map" in refusal(constructor, columns=["pay"], m=MEAN)


def test_missing_columns(constructor):
    message = refusal(constructor, columns={"n": "employment"}, m=MEAN)
    assert "no column 'employment' for the statistic n" in message
    assert "'emp'" in message
    message = refusal(constructor, scales={"n": "b"}, m=MEAN)
    assert "no column 'b' for the noise scale of n" in message
    message = refusal(constructor, data={"s": [1.0]}, m=MEAN)
    assert "no column 'n' for the statistic n; it has 's'" in message


@pytest.mark.parametrize("argument", ["columns", "scales"])
def test_the_argument_that_says_which_column_it_is(constructor, argument):
    with pytest.raises(tu.TrueupError, match=rf"Hint: .*: {argument}=\{{'n': …\}}$"):
        tu.debias(constructor(DATA), m=MEAN, **{argument: {"n": "x"}})


def test_a_function_of_one_parameter_reads_the_column_of_its_name():
    frame = pd.DataFrame({"n": [20, 30]})
    made = tu.debias(frame, i=tu.unbiased(lambda n: 1 / n, tu.DiscreteLaplace(2), (1, None)))
    formula = tu.debias(frame, i=tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None)))
    assert made["i"].to_numpy() == pytest.approx(formula["i"].to_numpy(), rel=1e-12)


def test_a_near_miss_gets_a_suggestion(constructor):
    with pytest.raises(tu.TrueupError, match="did you mean 'emp'"):
        tu.debias(constructor(DATA), columns={"n": "empl"}, m=MEAN)


def test_existing_columns_are_not_replaced(constructor):
    assert "there is a column 'pay' already" in refusal(constructor, pay=MEAN)
    data = DATA | {"m_stderr": [0.0, 0.0]}
    assert "there is a column 'm_stderr' already" in refusal(constructor, data=data, m=MEAN)
    assert tu.debias(constructor(data), m=MEAN, stderr=False) is not None


def test_new_columns_are_not_written_twice(constructor):
    message = refusal(constructor, m=MEAN, m_stderr=COUNT)
    assert "there is a column 'm_stderr' already" in message


def test_engines_that_ignore_case_refuse_twins():
    duckdb = needs("duckdb")
    relation = duckdb.connect().sql("SELECT 5.0 AS s, 7 AS n, 1 AS mean")
    with pytest.raises(tu.TrueupError, match="there is a column 'mean' already"):
        tu.debias(relation, Mean=MEAN)


def test_duplicate_columns():
    pd = needs("pandas")
    frame = pd.DataFrame([[1.0, 2, 3]], columns=["s", "n", "n"])
    with pytest.raises(tu.TrueupError, match="the table has 2 columns 'n'"):
        tu.debias(frame, m=MEAN)
    pa = needs("pyarrow")
    table = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["s", "n", "n"])
    with pytest.raises(tu.TrueupError, match="the table has 2 columns 'n'"):
        tu.debias(table, m=MEAN)


@pytest.mark.parametrize("thing", [{"n": [1]}, [1, 2], "file.csv", None, 3], ids=repr)
def test_what_is_no_table(thing):
    with pytest.raises(tu.TrueupError, match=r"(?s)unsupported table type.*Hint: .*DuckDB"):
        tu.debias(thing, m=MEAN)


def test_stderr_is_no_estimator(constructor):
    assert "stderr must be True or False" in refusal(constructor, stderr=MEAN)


def test_infinite_variance_is_refused_unless_only_values_are_wanted(constructor):
    steep = tu.unbiased("exp(0.7*pay)", tu.Laplace(1))
    frame = constructor(DATA)
    with pytest.raises(tu.InfiniteVariance, match=r"(?s)infinite.*stderr=False"):
        tu.debias(frame, e=steep)
    out = constructor.read(tu.debias(frame, e=steep, stderr=False))
    assert out["e"] == pytest.approx([steep(12.0), steep(7.5)], rel=1e-12)
