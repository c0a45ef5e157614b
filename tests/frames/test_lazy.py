"""Lazy Polars frames: batches of the case in memory, and the libraries that are refused."""

import math

import narwhals as nw
import pytest

import trueup as tu
from extras import needs

pl = needs("polars")

MEAN = tu.unbiased("1/n", tu.DiscreteLaplace(1), (1, None))


def test_numbers_that_are_no_integers_are_null_where_nothing_can_be_raised():
    out = tu.debias(pl.LazyFrame({"n": [3.0, 3.5, float("nan")]}), e=MEAN).collect()
    assert out["e"].to_list()[:2] == [MEAN(3.0), None]
    assert math.isnan(out["e"][2])


def test_a_number_that_is_added_reads_no_input():
    noise = {"s": tu.DiscreteLaplace(5), "n": tu.DiscreteLaplace(2)}
    growth = tu.unbiased("100*(s/n - 1)", noise, "s >= 0, n >= 1")
    frame = pl.DataFrame({"s": [20, 400], "n": [3, 90]})
    lazy = tu.debias(frame.lazy(), interval=0.95, growth=growth).collect()
    assert lazy.equals(tu.debias(frame, interval=0.95, growth=growth))


def half(q):
    return q / 2


@pytest.mark.parametrize(
    "est",
    [
        tu.unbiased(half, tu.DiscreteLaplace(1), (0, 9)),
        tu.unbiased({k: float(k % 7) for k in range(5000)}, tu.DiscreteLaplace(1)),
        tu.unbiased("1/q", tu.Laplace(2), (1, None), 5),
        tu.nearly_unbiased("1/q", tu.DiscreteGaussian(2), (1, 30), max_bias=0.05, relative=True),
    ],
    ids=["a Python function", "a long table", "an extension of degree 5", "nearly unbiased"],
)
def test_whatever_runs_in_memory_runs_lazily(est):
    frame = pl.DataFrame({"q": [1, 2, 7, None, 8]})
    assert tu.debias(frame.lazy(), e=est).collect().equals(tu.debias(frame, e=est))


def test_batches_are_computed_one_by_one():
    """Streams give batches; filters read what is added, selections leave out what is read."""
    frame = pl.DataFrame({"n": list(range(1, 1001)) * 300})
    eager = tu.debias(frame, e=MEAN).filter(pl.col("e") < 0.01).select("e_stderr")
    lazy = tu.debias(frame.lazy(), e=MEAN).filter(pl.col("e") < 0.01).select("e_stderr")
    assert lazy.collect(engine="streaming").equals(eager)
    assert lazy.head(3).collect().equals(eager.head(3))


def test_nothing_runs_before_the_frame_is_collected():
    def fails(batch):
        raise AssertionError("ran")

    frame = pl.LazyFrame({"n": [1, 2]}).map_batches(fails, schema={"n": pl.Int64})
    lazy = tu.debias(frame, e=MEAN)
    assert lazy.collect_schema().names() == ["n", "e", "e_stderr"]
    with pytest.raises(AssertionError, match="ran"):
        lazy.collect()


def test_further_libraries_in_memory_go_through_arrow(monkeypatch):
    """Modin and cuDF are not here: pandas stands in for a library without a module of its own."""
    pd = needs("pandas")
    from trueup.frames import of_narwhals

    is_arrow = nw.dependencies.is_pyarrow_table
    monkeypatch.setattr(of_narwhals, "has_own_module", is_arrow)
    frame = pd.DataFrame({"g": ["a", "a", "b"], "n": [3, 40, 7]})
    out = tu.debias(frame, e=MEAN)
    assert isinstance(out, pd.DataFrame)
    assert out["e"].tolist() == [MEAN(3), MEAN(40), MEAN(7)]
    assert tu.total(frame, by="g", e=MEAN)["rows"].tolist() == [2, 1]
    assert isinstance(nw.from_native(tu.report(frame, e=MEAN).table), nw.DataFrame)
