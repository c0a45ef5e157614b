"""Refusals say what is wrong and not how often; on_error="drop" leaves such rows out."""

import math
import re

import pytest

import trueup as tu
from extras import needs
from microdata.test_totals import ENGINES

BAD = {
    "state": ["A"] * 7,
    "id": [1, 1, 2, 2, 3, 3, 4],
    "x": [1.0, math.inf, 2.0, None, 3.0, -math.inf, 4.0],
    "sex": ["f", "f", "m", "f", "?", "m", "f"],
}
ASKED = {"by": "state", "keys": ["A"], "rng": 5}
MEASURES = {"n": "count", "x": "sum(x, 0, 10)", "sex": "share(sex, [f, m])"}


@pytest.mark.parametrize("seed", range(3))
def test_a_refusal_discloses_no_number_of_rows(seed):
    rows = {"sex": ["f", "?"] * (41 + seed), "x": [1.0, None] * (41 + seed)}
    for measure in ("share(sex, [f, m])", "sum(x, 0, 1)"):
        with pytest.raises(tu.TrueupError) as told:
            tu.release(needs("polars").DataFrame(rows), epsilon=1, rng=1, y=measure)
        assert not re.search("4[1-9]|8[2-9]", str(told.value))
        assert "privacy" not in str(told.value)  # a refusal is a function of the data


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("make", ENGINES, ids=lambda make: make.__name__)
def test_rows_with_errors_are_as_if_absent(make, unit, tmp_path):
    good = [
        i
        for i in range(7)
        if BAD["x"][i] is not None and math.isfinite(BAD["x"][i]) and BAD["sex"][i] in "fm"
    ]
    kept = {name: [values[i] for i in good] for name, values in BAD.items()}
    asked = {**ASKED, "epsilon": 10_000, **MEASURES}
    asked |= {} if unit is None else {"unit": unit, "at_most": 1}
    here = tu.release(make(BAD, tmp_path), **asked, on_error="drop")
    assert here.columns["n"][0] == pytest.approx(3, abs=0.1)
    (tmp_path / "kept").mkdir()
    there = tu.release(make(kept, tmp_path / "kept"), **asked)
    assert here.columns == there.columns


def test_on_error_is_refuse_or_drop():
    with pytest.raises(tu.TrueupError, match="on_error must be 'refuse' or 'drop', got 'ignore'"):
        tu.release(needs("polars").DataFrame({"x": [1]}), epsilon=1, on_error="ignore", n="count")


def test_the_key_that_chooses_rows_is_drawn_anew_for_every_release():
    """With a constant key both releases would use the same rows of 60 units."""
    needs("opendp")
    rows = {"id": [i for i in range(60) for _ in range(2)], "x": [0.0, 1.0] * 60}
    asked = {"epsilon": 1000, "unit": "id", "at_most": 1, "x": "sum(x, 0, 1)"}
    frame = needs("polars").DataFrame(rows)
    totals = {round(tu.release(frame, **asked).columns["x"][0]) for _ in range(6)}
    assert len(totals) > 1
