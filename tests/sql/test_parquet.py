"""What Parquet files say of their columns is not said of NaN: it has no estimate all the same."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import trueup as tu
from extras import needs

ESTIMATORS = {
    "1/n": tu.unbiased("1/n", tu.Laplace(2), (1, None)),
    "1/n, counts": tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None)),
    "n**3": tu.unbiased("n**3", tu.Laplace(2), (0, 30)),
    "n**2": tu.unbiased("n**2", tu.Gaussian(1)),
}
OTHERS = {"above": [10.0, 20.0], "below": [-5.0, -7.0], "both": [-5.0, 40.0], "same": [1.0, 1.0]}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_nan_has_no_estimate_whatever_the_file_says_of_others(
    name: str, others: list[float], tmp_path: Path
) -> None:
    duckdb, arrow = needs("duckdb"), needs("pyarrow")
    column, est = [others[0], math.nan, others[1]], ESTIMATORS[name]
    file = tmp_path / "n.parquet"
    needs("pyarrow.parquet").write_table(arrow.table({"n": column}), file)
    outputs = ["value", "stderr", *(["low", "high"] if name != "1/n, counts" else [])]
    asked = ", ".join(est.sql("duckdb", output=output) for output in outputs)
    first, nan, last = duckdb.sql(f"SELECT {asked} FROM '{file}'").fetchall()
    assert nan == (None,) * len(outputs)
    assert [first[0], last[0]] == pytest.approx([est(others[0]), est(others[1])])
