"""tu.debias: what is added, and that nothing else changes."""

import math

import numpy as np
import pytest

import trueup as tu
from extras import needs
from frames.backends import same

MEAN = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
SQUARE = tu.unbiased("s**2", tu.Laplace(2))
DATA = {
    "key": ["b", "a", None, "c", "a"],
    "s": [51.7, None, 3.0, -2.5, 12.0],
    "n": [103, 25, 7, -4, None],
}


def expected(estimator, *names):
    """The estimator called cell by cell: null in, null out."""
    rows = list(zip(*(DATA[n] for n in names), strict=True))
    known = [None not in row for row in rows]
    cells = [
        dict(zip(names, map(float, row), strict=True)) if ok else None
        for row, ok in zip(rows, known, strict=True)
    ]
    value = [None if c is None else estimator(**c) for c in cells]
    stderr = [None if c is None else estimator.stderr(**c) for c in cells]
    return value, [None if e is None or math.isnan(e) else e for e in stderr]


def test_adds_estimates_and_standard_errors(constructor):
    out = constructor.read(tu.debias(constructor(DATA), mean=MEAN, square=SQUARE))
    assert list(out) == [*DATA, "mean", "mean_stderr", "square", "square_stderr"]
    for name, estimator, columns in (("mean", MEAN, ("s", "n")), ("square", SQUARE, ("s",))):
        value, stderr = expected(estimator, *columns)
        assert all(map(same, out[name], value)), (out[name], value)
        assert all(map(same, out[f"{name}_stderr"], stderr)), (out[f"{name}_stderr"], stderr)


def test_a_wrong_formula_would_be_noticed(constructor):
    plug_in = [None if None in r else r[0] / r[1] for r in zip(DATA["s"], DATA["n"], strict=True)]
    out = constructor.read(tu.debias(constructor(DATA), mean=MEAN))
    assert not all(map(same, out["mean"], plug_in))


def test_the_rest_is_untouched(constructor):
    frame = constructor(DATA)
    before = constructor.read(frame)
    after = constructor.read(tu.debias(frame, mean=MEAN))
    assert {c: after[c] for c in before} == before
    assert constructor.read(frame) == before
    assert type(tu.debias(frame, mean=MEAN)) is type(frame)


def test_values_alone(constructor):
    out = constructor.read(tu.debias(constructor(DATA), mean=MEAN, stderr=False))
    assert list(out) == [*DATA, "mean"]
    assert all(map(same, out["mean"], expected(MEAN, "s", "n")[0]))


def test_nan_stays_nan(constructor):
    out = constructor.read(tu.debias(constructor({"s": [1.0, math.nan], "n": [5, 6]}), mean=MEAN))
    nothing = None if constructor.nan_is_null else math.nan
    assert same(nothing, out["mean"][1])
    assert same(nothing, out["mean_stderr"][1])
    assert not any(v is None or math.isnan(v) for v in (out["mean"][0], out["mean_stderr"][0]))


def test_negative_variance_is_null(constructor):
    product = tu.unbiased("a*b", {"a": tu.Laplace(2), "b": tu.Laplace(2)})
    assert product.variance(a=0.1, b=0.1) < 0
    out = constructor.read(tu.debias(constructor({"a": [0.1, 9.0], "b": [0.1, 9.0]}), p=product))
    assert out["p_stderr"][0] is None
    assert same(out["p"][0], product(a=0.1, b=0.1))
    assert same(out["p_stderr"][1], product.stderr(a=9.0, b=9.0))


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(constructor, rows):
    out = constructor.read(tu.debias(constructor({"s": [4.0][:rows]}), square=SQUARE))
    assert out == {
        "s": [4.0][:rows],
        "square": [SQUARE(4.0)][:rows],
        "square_stderr": [SQUARE.stderr(4.0)][:rows],
    }


def test_columns_with_strange_names(constructor):
    name = 'a "b" `c` [d] é;--'
    frame = constructor({name: [4.0, 5.0], "other col": [1, 2]})
    out = constructor.read(tu.debias(frame, columns={"s": name}, **{"x y": SQUARE}))
    assert list(out) == [name, "other col", "x y", "x y_stderr"]
    assert out["x y"] == [SQUARE(4.0), SQUARE(5.0)]


def test_table_estimators(constructor):
    table = tu.unbiased({0: 3, 1: 1, 2: 4, 3: 1, 4: 5}, tu.DiscreteLaplace(1))
    k = [-2, 0, 1, 2, 3, 4, 9, None]
    out = constructor.read(tu.debias(constructor({"k": k}), columns={"q": "k"}, t=table))
    want = [None if v is None else table(float(v)) for v in k]
    assert all(map(same, out["t"], want)), (out["t"], want)


@pytest.mark.filterwarnings("ignore::trueup.BoundWarning")
def test_degree_k_extension(constructor):
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=7)
    x = np.linspace(-25, 6, 32).tolist()
    if constructor.name == "duckdb":
        with pytest.raises(tu.TrueupError, match="degree 7"):
            tu.debias(constructor({"q": x}), e=est)
        return
    out = constructor.read(tu.debias(constructor({"q": x}), e=est))
    assert np.allclose(out["e"], est(x), rtol=1e-11)
    want = est.stderr(x)
    got = [math.nan if v is None else v for v in out["e_stderr"]]
    assert np.allclose(got, want, rtol=1e-10, equal_nan=True)


def test_pandas_index_is_kept():
    pd = needs("pandas")
    for index in (
        pd.Index([3, 3, 1, 0, 3], name="i"),
        pd.MultiIndex.from_product([["x"], range(5)]).repeat(1),
        pd.date_range("2020", periods=5),
        pd.Index(list("aabbc")),
    ):
        frame = pd.DataFrame(DATA, index=index)
        out = tu.debias(frame, mean=MEAN)
        assert out.index.equals(index)
        assert out.index.names == index.names
        plain = tu.debias(pd.DataFrame(DATA), mean=MEAN)
        assert np.array_equal(out["mean"].to_numpy(), plain["mean"].to_numpy(), equal_nan=True)


def test_pandas_result_is_independent_of_the_frame():
    pd = needs("pandas")
    frame = pd.DataFrame({"s": [1.0, 2.0]})
    out = tu.debias(frame, square=SQUARE)
    out.loc[0, "s"] = 99.0
    assert frame["s"].tolist() == [1.0, 2.0]


def test_numbers_in_memory_are_not_copied():
    pa, pl = needs("pyarrow"), needs("polars")
    from trueup.frames import of_arrow, of_pandas, of_polars

    x = np.arange(1000.0)
    for backend, frame in (
        (of_arrow, pa.table({"x": x})),
        (of_polars, pl.DataFrame({"x": x})),
        (of_pandas, needs("pandas").DataFrame({"x": x}, copy=False)),
    ):
        (piece,) = backend.pieces(frame, ["x"])
        assert np.shares_memory(piece.columns["x"].values, x)


def test_pieces_cover_the_rows_whatever_the_chunks():
    pl = needs("polars")
    parts = [pl.DataFrame({"s": [float(i)] * 3}) for i in range(100)]
    frame = pl.concat(parts, rechunk=False)
    assert frame.n_chunks() == 100
    out = tu.debias(frame, square=SQUARE)
    assert out["square"].to_list() == SQUARE(frame["s"].to_numpy()).tolist()


def test_intervals_are_columns(eager_constructor):
    mean = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
    data = {"s": [51.7, 3.0, 8.0], "n": [103, 2, 25]}
    found = eager_constructor.read(
        tu.debias(eager_constructor(data), mean=mean, interval=0.9, stderr=False)
    )
    assert list(found) == ["s", "n", "mean", "mean_low", "mean_high"]
    for i, (s, n) in enumerate(zip(*data.values(), strict=True)):
        low, high = mean.interval(s=s, n=n, level=0.9)
        assert (found["mean_low"][i], found["mean_high"][i]) == pytest.approx((low, high))


def test_intervals_follow_the_scale_of_a_row(eager_constructor):
    noise = {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)}
    mean = tu.unbiased("s/n", noise, {"n": (1, None)})
    data = {"s": [51.7, 3.0, 8.0], "n": [103, 2, 25], "b": [1.0, 4.0, 4.0]}
    scales = {"s": "b", "n": "b"}
    found = eager_constructor.read(
        tu.debias(eager_constructor(data), None, scales, mean=mean, interval=0.9)
    )
    for i, (s, n, b) in enumerate(zip(*data.values(), strict=True)):
        own = tu.unbiased("s/n", {"s": tu.Laplace(b), "n": tu.DiscreteLaplace(b)}, {"n": (1, None)})
        expected = own.interval(s=s, n=n, level=0.9)
        assert (found["mean_low"][i], found["mean_high"][i]) == pytest.approx(expected)
