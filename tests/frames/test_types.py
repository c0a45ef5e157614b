"""Which columns are numbers, and what is said of the others."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import trueup as tu
from extras import needs
from frames.backends import same

SQUARE = tu.unbiased("s**2", tu.Laplace(2))
COUNT = tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None))


def squares(values):
    return [None if v is None else SQUARE(float(v)) for v in values]


def test_decimals(constructor):
    values = [Decimal("4.25"), None, Decimal("-3.5"), Decimal("100.00")]
    if constructor.name == "pandas pyarrow":
        pa, pd = needs("pyarrow"), needs("pandas")
        values = pd.Series(values, dtype=pd.ArrowDtype(pa.decimal128(10, 2)))
    frame = constructor({"s": values})
    out = constructor.read(tu.debias(frame, e=SQUARE))
    assert all(map(same, out["e"], [SQUARE(4.25), None, SQUARE(-3.5), SQUARE(100.0)])), out["e"]
    assert out["s"] == constructor.read(frame)["s"]


def test_integers_with_nulls(constructor):
    values = [5, None, 2, 9_007_199_254_740_991]
    out = constructor.read(tu.debias(constructor({"n": values}), e=COUNT))
    want = [None if v is None else COUNT(float(v)) for v in values]
    assert all(map(same, out["e"], want)), out["e"]


def test_a_column_of_nulls(constructor):
    values = [math.nan, math.nan] if constructor.nan_is_null else [None, None]
    out = constructor.read(tu.debias(constructor({"s": values, "other": [1, 2]}), e=SQUARE))
    assert out["e"] == out["e_stderr"] == [None, None]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_every_width_of_number(dtype):
    pa, pl, pd = (needs(m) for m in ("pyarrow", "polars", "pandas"))
    x = np.array([1, 2, 100], dtype)
    want = SQUARE(x.astype(float))
    for out in (
        tu.debias(pa.table({"s": x}), e=SQUARE)["e"].to_numpy(),
        tu.debias(pl.DataFrame({"s": x}), e=SQUARE)["e"].to_numpy(),
        tu.debias(pd.DataFrame({"s": x}), e=SQUARE)["e"].to_numpy(),
    ):
        assert out.dtype == np.float64
        assert out.tolist() == want.tolist()


def test_text_is_refused_with_its_place(eager_constructor):
    frame = eager_constructor({"s": [None, None, "12x"], "n": [1, 2, 3]})
    with pytest.raises(tu.TrueupError, match=r"'s' holds .*, not numbers: '12x', at row 2"):
        tu.debias(frame, e=SQUARE)


@pytest.mark.parametrize("values", [["a", "b"], [True, False]], ids=["text", "truth"])
def test_what_is_no_number(constructor, values):
    frame = constructor({"s": values})
    with pytest.raises(tu.TrueupError, match=r"the column 's' holds .*, not numbers"):
        tu.debias(frame, e=SQUARE)


def test_objects_of_pandas():
    pd = needs("pandas")
    good = pd.Series([Decimal("1.5"), 2, 3.0, Fraction(1, 4), None, np.int64(7)], dtype=object)
    out = tu.debias(pd.DataFrame({"s": good}), e=SQUARE)["e"]
    assert [None if v != v else v for v in out] == squares([1.5, 2, 3, 0.25, None, 7])
    for bad in ("7", True, [1], 1j):
        frame = pd.DataFrame({"s": pd.Series([1, bad], dtype=object)})
        with pytest.raises(tu.TrueupError, match="at row 1"):
            tu.debias(frame, e=SQUARE)


def test_categories_are_no_numbers_and_dictionaries_of_numbers_are():
    pd, pa = needs("pandas"), needs("pyarrow")
    frame = pd.DataFrame({"s": pd.Categorical([1, 2, 1])})
    with pytest.raises(tu.TrueupError, match="holds category, not numbers: 1, at row 0"):
        tu.debias(frame, e=SQUARE)
    encoded = pa.table({"s": pa.array([1.0, 2.0, None, 1.0]).dictionary_encode()})
    assert tu.debias(encoded, e=SQUARE)["e"].to_pylist() == squares([1, 2, None, 1])


def test_broken_numbers_under_integer_noise(eager_constructor):
    frame = eager_constructor({"n": [3.0, 4.0, None, 5.5]})
    with pytest.raises(tu.TrueupError, match=r"'n' has 5\.5 at row 3, but n has integer"):
        tu.debias(frame, e=COUNT)


def test_garbage_under_a_null_is_not_looked_at():
    pa = needs("pyarrow")
    values = pa.Array.from_buffers(
        pa.float64(),
        3,
        [pa.py_buffer(bytes([0b101])), pa.py_buffer(np.array([2.0, 0.5, 4.0]).tobytes())],
    )
    assert values.to_pylist() == [2.0, None, 4.0]
    out = tu.debias(pa.table({"n": values}), e=COUNT)
    assert out["e"].to_pylist() == [COUNT(2.0), None, COUNT(4.0)]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int64[pyarrow]", "double[pyarrow]"])
@pytest.mark.parametrize("missing", [np.nan, None], ids=["NaN", "object"])
def test_nan_of_numpy_beside_a_nullable_column_is_null_as_in_pandas(dtype, missing):
    """Unmasked, a NaN would be no <NA> and spoil the mean of the column."""
    pd, _ = needs("pandas"), needs("pyarrow")
    s = pd.Series([1.0, missing, 3.0, 4.0], dtype=object if missing is None else float)
    n = pd.array([10, 20, None, 30], dtype=dtype)
    frame = pd.DataFrame({"s": s, "n": n, "t": s})
    noise = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}
    mean = tu.unbiased("s/n", noise, {"n": (1, None)})
    out = tu.debias(frame, mean=mean, plain=tu.unbiased("t**2", tu.Laplace(2)), interval=0.9)
    for name in ("mean", "mean_stderr", "mean_low", "mean_high"):
        assert out[name].isna().tolist() == [False, True, True, False], name
        assert not np.isnan(out[name].to_numpy(float, na_value=0.0)).any(), name
    assert out["mean"].mean() == pytest.approx((mean(s=1.0, n=10.0) + mean(s=4.0, n=30.0)) / 2)
    assert out["plain"].dtype == np.float64
    assert out["plain"].isna().tolist() == [False, True, False, False]
    whole = frame.dropna().astype({"s": float})
    for made in (tu.total, tu.ratio):
        found = made(frame, missing="skip", mean=mean)
        assert found.equals(made(whole, mean=mean))
        with pytest.raises(tu.TrueupError, match="2 of 4 rows miss a number"):
            made(frame, mean=mean)
