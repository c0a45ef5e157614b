"""Keys of groups and of draws: equal values are one key, whatever the table holds them as."""

import math

import pytest

import trueup as tu
from extras import needs

pa = needs("pyarrow")

MEAN = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
DATA = {"s": [50.0, 51.0], "n": [20, 20]}
NAMES = ("n#", "s##", "n#~", "n##")


def dictionary(indices, values, width=None):
    return pa.DictionaryArray.from_arrays(pa.array(indices, width), pa.array(values))


ONE_KEY = {
    "negative zero": lambda: pa.array([0.0, -0.0]),
    "negative zero in single precision": lambda: pa.array([0.0, -0.0], pa.float32()),
    "NaN of either sign": lambda: pa.array([math.nan, math.copysign(math.nan, -1)]),
    "a value twice": lambda: dictionary([0, 1], ["A", "A"]),
    "negative zero in a dictionary": lambda: dictionary([0, 1], [0.0, -0.0]),
    "null in the dictionary and as an index": lambda: dictionary([1, None], ["A", None]),
    "nothing but nulls": lambda: pa.nulls(2),
}


@pytest.mark.parametrize("keys", ONE_KEY.values(), ids=ONE_KEY)
def test_equal_keys_of_arrow_are_one(keys):
    """Two rows with one draw of n: their covariance counts, and they are one group."""
    cells = pa.table(DATA | {"g": keys()})
    (error,) = tu.total(cells, shared={"n": "g"}, pay=MEAN)["pay_stderr"].to_pylist()
    text = pa.table(DATA | {"g": ["A", "A"]})
    assert [error] == tu.total(text, shared={"n": "g"}, pay=MEAN)["pay_stderr"].to_pylist()
    assert error > 1.3 * tu.total(cells, pay=MEAN)["pay_stderr"][0].as_py()
    for summed in (tu.total, tu.ratio):
        assert summed(cells, by="g", pay=MEAN)["rows"].to_pylist() == [2]


def test_unequal_keys_of_arrow_stay_apart():
    for keys in (pa.array([math.nan, None]), pa.array([0.0, 5e-324]), dictionary([0, 1], "AB")):
        found = tu.total(pa.table(DATA | {"g": keys}), by="g", pay=MEAN)
        assert found["rows"].to_pylist() == [1, 1]


def test_a_dictionary_that_fills_its_indices():
    """An int8 counts to 127: there is no room for one more number, for null."""
    rows = 128
    keys = dictionary(range(rows), [f"k{i}" for i in range(rows)], pa.int8())
    cells = pa.table({"g": keys, "s": [1.0] * rows, "n": [9] * rows})
    assert tu.total(cells, by="g", pay=MEAN)["g"].to_pylist() == keys.to_pylist()


@pytest.mark.parametrize("summed", [tu.total, tu.ratio])
def test_an_empty_batch(summed):
    kinds = {"g": pa.string(), "s": pa.float64(), "n": pa.int64()}
    empty = pa.RecordBatch.from_pydict({name: pa.array([], k) for name, k in kinds.items()})
    found = summed(empty, by="g", pay=MEAN)
    assert isinstance(found, pa.RecordBatch)
    assert found.to_pydict() == {"g": [], "rows": [], "pay": [], "pay_stderr": []}


@pytest.mark.parametrize("summed", [tu.total, tu.ratio])
def test_a_key_given_twice_is_one(constructor, summed):
    frame = constructor(DATA | {"g": ["a", "b"]})
    twice = constructor.read(summed(frame, by=["g", "g"], pay=MEAN))
    assert list(twice) == ["g", "rows", "pay", "pay_stderr"]
    assert sorted(twice["g"]) == ["a", "b"]


@pytest.mark.parametrize("summed", [tu.total, tu.ratio])
def test_any_name_may_be_a_key(lazy_constructor, summed):
    names = ["g", *NAMES]
    frame = lazy_constructor(DATA | {name: ["a", "b"] for name in names})
    by_name = [lazy_constructor.read(summed(frame, by=name, pay=MEAN)) for name in names]
    plain, *others = [sorted(zip(*found.values(), strict=True)) for found in by_name]
    assert others == [plain] * len(NAMES)
