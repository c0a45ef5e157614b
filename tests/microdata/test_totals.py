"""What gets noise: whole numbers that equal those of the mechanisms, the same in every engine."""

import math
from fractions import Fraction

import numpy as np
import pytest

import trueup as tu
from extras import needs
from microdata.people import KEYS, MEASURES, people
from trueup.microdata import engines
from trueup.microdata.design import Design
from trueup.microdata.noisy_totals import FINE
from trueup.microdata.public_keys import read_keys
from trueup.microdata.totals import Reading

DATA = people()


def totals(data, measures=MEASURES, keys=KEYS, missing=None):
    design = Design.read(measures, 1, ("state",))
    reading = Reading(design, missing or {})
    return engines.totals(data, reading, read_keys(keys, ("state",)), "")


def as_pandas(data, tmp_path):
    return needs("pandas").DataFrame(data)


def as_polars(data, tmp_path):
    return needs("polars").DataFrame(data)


def as_lazy(data, tmp_path):
    return needs("polars").LazyFrame(data)


def as_arrow(data, tmp_path):
    return needs("pyarrow").table(data)


def as_relation(data, tmp_path):
    return needs("duckdb").from_arrow(needs("pyarrow").table(data))


def as_csv(data, tmp_path):
    needs("pyarrow.csv").write_csv(needs("pyarrow").table(data), tmp_path / "people.csv")
    return str(tmp_path / "people.csv")


def as_parquet(data, tmp_path):
    needs("pyarrow.parquet").write_table(needs("pyarrow").table(data), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


ENGINES = [as_pandas, as_polars, as_lazy, as_arrow, as_relation, as_csv, as_parquet]


def by_hand(data, group):
    """Return the whole numbers of one group, in fractions and integers only."""
    rows = [i for i, state in enumerate(data["state"]) if state == group]
    design = Design.read(MEASURES, 1, ("state",))
    found = [len(rows)]
    for name, (low, high) in (("wage", (0, 120_000)), ("hours", (-5, 60))):
        grid = next(t.grid for t in design.totals if t.column == name)
        clipped = (min(max(Fraction(data[name][i]), Fraction(low)), Fraction(high)) for i in rows)
        found.append(sum(round((x - grid.origin) / grid.reach * grid.steps) for x in clipped))
    shares = [sum(data["sex"][i] == c for i in rows) for c in "fmx"]
    pay = sum(math.floor(Fraction(data["pay"][i]) * FINE) for i in rows)
    return [found[0], found[1], *shares, found[2], pay]


@pytest.mark.parametrize("make", ENGINES, ids=lambda make: make.__name__)
def test_totals_are_the_whole_numbers_of_the_definition(make, tmp_path):
    found = list(zip(*totals(make(DATA, tmp_path)), strict=True))
    for group, numbers in zip(KEYS, found, strict=True):
        for number, exact in zip(numbers, by_hand(DATA, group), strict=True):
            # on a grid as fine as doubles a value may be rounded to the next step
            near = len(DATA["state"]) if abs(exact) > 2**48 else 0
            assert abs(number - exact) <= near


def test_values_are_put_on_the_grid_like_the_mechanisms_do():
    from trueup.mechanisms.records import read_numbers

    pandas = needs("pandas")
    for low, high in (
        (0, 1),
        (-3, 1),
        (0.1, 0.7),
        (10**9, 10**9 + 1),
        (1e14, 1e14 + 1e7),
        (0, 1e14),
    ):
        rng = np.random.default_rng(3)
        width = float(high) - float(low)
        values = [float(low), float(high), 1e300, -1e300, *(low + width * rng.normal(0.5, 1, 200))]
        values += [float(low) + width * k / 2**12 for k in range(50)]
        frame = pandas.DataFrame({"state": [str(i) for i in range(len(values))], "x": values})
        keys = frame["state"].tolist()
        for what in (f"mean(x, {low!r}, {high!r})", f"sum(x, {low!r}, {high!r})"):
            found = totals(frame, {"x": what}, keys)[-1]
            design = Design.read({"x": what}, 1, ("state",))
            grid = design.statistics[-1].total.grid
            assert found == grid.whole(read_numbers(values)).tolist()
            assert max(map(abs, found)) <= grid.steps


BAD = {"missing": None, "no number": math.nan, "too large": math.inf, "too small": -math.inf}


@pytest.mark.parametrize("what", ["mean(x, 0, 1)", "sum(x, 0, 1)", "per_record(x, root:2, 1)"])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("make", [as_arrow, as_csv, as_parquet], ids=lambda make: make.__name__)
def test_a_bad_row_is_refused_in_a_public_group_only(make, bad, what, tmp_path):
    for others in ([0.25, 0.5], [2.0, 3.0], [0.0, 9.0]):  # within the bounds, beyond, on both sides
        data = {"state": ["A", "A", "B"], "x": [others[0], bad, others[1]], "y": [1.0, 2.0, 3.0]}
        measures = {"x": what, "y": "sum(y, 0, 3)", "n": "count"}
        with pytest.raises(tu.TrueupError, match=r"x (is missing|has values that are)"):
            totals(make(data, tmp_path), measures, ["A", "B"])
        found = totals(make(data, tmp_path), measures, ["B"])
        good = {**data, "x": [others[0], 0.75, others[1]]}
        assert found == totals(make(good, tmp_path), measures, ["B"])


@pytest.mark.parametrize("make", ENGINES[1:], ids=lambda make: make.__name__)
def test_the_same_seed_gives_the_same_table_in_every_engine(make, tmp_path):
    def table(data):
        asked = {"by": "state", "keys": KEYS, "epsilon": 1, "unit": "person", "at_most": 2}
        return tu.release(data, **asked, rng=3, **MEASURES).columns

    assert table(make(DATA, tmp_path)) == table(as_pandas(DATA, tmp_path))


def test_large_totals_are_exact():
    pandas = needs("pandas")
    frame = pandas.DataFrame({"state": ["A"] * 3000, "x": [2.0**41 + 0.5] * 3000})
    found = totals(frame, {"x": "per_record(x, root:2, 1)"}, ["A"])
    assert found == [[3000 * (2**61 + FINE // 2)]]


@pytest.mark.parametrize("low", [17 * 10**17, 10**30, -(10**17) - 22, 1e16])
def test_means_that_are_no_doubles_are_refused(low):
    """Beside such bounds a published mean would be off by many of its standard errors."""
    frame = needs("pandas").DataFrame({"x": [1.0]})
    told = r"means between them are no doubles\nHint: subtract"
    with pytest.raises(tu.TrueupError, match=told):
        tu.release(frame, epsilon=1, rng=1, x=f"mean(x, {low!r}, {int(low) + 22})")


@pytest.mark.parametrize("make", ENGINES[1:], ids=lambda make: make.__name__)
def test_no_value_of_a_per_record_sum_counts_as_more_than_it_is(make, tmp_path):
    """So no record loses more than its policy says: 0.48 and 1.99 millionths are 0 and 1 steps."""
    data = make({"state": ["A", "B"], "x": [4.8e-7, 1.99 / FINE]}, tmp_path)
    assert totals(data, {"x": "per_record(x, root:3, 1)"}, ["A", "B"]) == [[0, 1]]


def test_people_called_nan_and_blank_categories():
    pandas = needs("pandas")
    frame = pandas.DataFrame({"u": ["Nan", "b", "c"], "c": [True, None, False]})
    asked = {"epsilon": 1, "rng": 1}
    assert tu.release(frame[["u"]], **asked, unit="u", at_most=1, n="count").columns["n"]
    shares = {"s": "share(c, ['true', 'false'])", "missing": {"c": True}}
    assert tu.release(frame[["c"]].convert_dtypes(), **asked, **shares).columns["s_true"]
    with pytest.raises(tu.TrueupError, match="a category is blank"):
        tu.release(frame, **asked, s="share(c, ['', 'x'])")


@pytest.mark.parametrize("make", ENGINES[1:], ids=lambda make: make.__name__)
def test_a_column_is_read_as_numbers_and_as_categories(make, tmp_path):
    data = make({"state": ["A"] * 4, "x": [0, 1, 1, None]}, tmp_path)
    measures = {"x": "mean(x, 0, 1)", "s": "share(x, [0, 1])", "t": "sum(x, 0, 2)"}
    n, x, no, yes, t = (total[0] for total in totals(data, measures, ["A"], {"x": 1}))
    grids = [total.grid for total in Design.read(measures, 1).totals if total.grid]
    assert (n, x, no, yes, t) == (4, 3 * grids[0].steps, 1, 3, 3 * grids[1].steps // 2)
