"""Spark DataFrames: native columns, no Python on the workers."""

import math

import pytest

import trueup as tu
from backends.engines import spark_session
from extras import needs
from frames.backends import same
from frames.spark_frames import make, read

MEAN = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
DATA = {
    "key": ["b", "a", "b", "c", "a"],
    "s": [51.7, None, 3.0, -2.5, 12.0],
    "n": [103, 25, 70, -4, 31],
    "b": [1.0, 2.0, 0.5, 2.0, 0.0],
}

PYTHON = ("PythonUDF", "BatchEvalPython", "ArrowEvalPython", "MapInPandas", "MapInArrow")


@pytest.fixture(scope="module")
def frame():
    return make(spark_session(), DATA)


def plan(frame):
    return frame._jdf.queryExecution().toString()


def test_debias(frame):
    out = tu.debias(frame, mean=MEAN)
    assert type(out) is type(frame)
    assert out.columns == [*frame.columns, "mean", "mean_stderr"]
    assert not any(python in plan(out) for python in PYTHON)
    rows = read(out)
    assert {c: rows[c] for c in DATA} == DATA
    for s, n, value, stderr in zip(
        *(rows[c] for c in ("s", "n", "mean", "mean_stderr")), strict=True
    ):
        if s is None:
            assert value is None
            assert stderr is None
        else:
            assert same(value, MEAN(s=s, n=float(n)), 1e-11)
            assert same(stderr, MEAN.stderr(s=s, n=float(n)), 1e-10)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # about versions of pandas
def test_the_plan_check_sees_python(frame):
    functions = needs("pyspark.sql.functions")
    with_python = frame.withColumn("p", functions.udf(lambda x: x, "double")("s"))
    assert any(python in plan(with_python) for python in PYTHON)


def test_scales(frame):
    out = read(tu.debias(frame, scales={"n": "b"}, mean=MEAN))
    assert [v is None for v in out["mean"]] == [False, True, False, False, True]  # a scale of 0
    own = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(0.5)}, {"n": (1, None)})
    assert same(out["mean"][2], own(s=3.0, n=70.0), 1e-10)
    assert same(out["mean_stderr"][2], own.stderr(s=3.0, n=70.0), 1e-9)


def test_total(frame):
    out = tu.total(frame, by="key", missing="skip", pay=MEAN)
    assert type(out) is type(frame)
    assert not any(python in plan(out) for python in PYTHON)
    totals = {row["key"]: row for row in out.collect()}
    want = MEAN(s=51.7, n=103.0) + MEAN(s=3.0, n=70.0)
    error = math.sqrt(MEAN.variance(s=51.7, n=103.0) + MEAN.variance(s=3.0, n=70.0))
    assert totals["b"]["rows"] == 2
    assert same(totals["b"]["pay"], want, 1e-11)
    assert same(totals["b"]["pay_stderr"], error, 1e-11)
    assert totals["a"]["rows"] == 1
    (whole,) = tu.total(frame, pay=MEAN).collect()
    assert whole["rows"] == 5
    assert whole["pay"] is None  # a row misses its s, and nothing was said to skip it


def test_refusals(frame):
    with pytest.raises(tu.TrueupError, match="'key' holds string, not numbers"):
        tu.debias(frame, columns={"s": "key"}, mean=MEAN)
    with pytest.raises(tu.TrueupError, match="there is a column 'key' already"):
        tu.debias(frame, KEY=MEAN)
    with pytest.raises(tu.TrueupError, match="no column 'emp' for the statistic n"):
        tu.debias(frame, columns={"n": "emp"}, mean=MEAN)


def largest_method(frame):
    """The size of the largest method that Spark has generated and compiled, in bytes."""
    session = frame.sparkSession
    debug = session._jvm.org.apache.spark.sql.execution.debug.package
    parts = debug.codegenStringSeq(frame._jdf.queryExecution().executedPlan())
    return max(parts.apply(i)._3().maxMethodCodeSize() for i in range(parts.size()))


def test_generated_code_is_below_the_limit_of_java(frame):
    """A method above 64 KB does not compile, and the plan is then interpreted, with an error."""
    scales = {"s": "b", "n": "b"}
    assert 1_000 < largest_method(tu.debias(frame, scales=scales, mean=MEAN)) < 2**15
    both = tu.unbiased("s/n", both_laplace(), {"n": (1, None)})
    out = tu.debias(frame, scales=scales, mean=both, interval=0.95)
    assert 1_000 < largest_method(out) < 2**16


def test_ratios_of_sums(frame):
    options = {"by": "key", "noise": both_laplace(), "missing": "skip", "interval": 0.9}
    tables = (frame, needs("polars").DataFrame(DATA))
    made = []
    for table in tables:
        with pytest.warns(tu.BoundWarning, match="is small for its noise"):
            made.append(tu.ratio(table, pay="s/n", **options))
    found, expected = read(made[0]), made[1].sort("key").to_dict(as_series=False)
    assert list(found) == list(expected)
    for name in expected:
        for got, wanted in zip(found[name], expected[name], strict=True):
            assert got == wanted if isinstance(wanted, (str, int)) else same(got, wanted, 1e-12)


def both_laplace():
    return {"s": tu.Laplace(2), "n": tu.Laplace(2)}
