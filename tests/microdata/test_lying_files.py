"""A file that says wrong things of its own values costs nobody's privacy."""

import struct

import numpy as np
import pytest

import trueup as tu
from extras import needs


@pytest.fixture
def lying(tmp_path):
    """Return a Parquet file of x = 1000, 0.5, … whose footer says that all lie in [0, 1]."""
    pyarrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    values = [1000.0, *[0.5] * 999]
    table = pyarrow.table({"x": values})
    parquet.write_table(table, path, use_dictionary=False, compression="none")
    data = path.read_bytes()
    length = struct.unpack("<I", data[-8:-4])[0]
    body, footer = data[: -8 - length], data[-8 - length :]
    told = footer.replace(struct.pack("<d", 1000.0), struct.pack("<d", 1.0))
    assert told != footer
    path.write_bytes(body + told)
    assert parquet.read_metadata(path).row_group(0).column(0).statistics.max == 1.0
    assert np.array_equal(parquet.read_table(path)["x"], values)
    return path


@pytest.mark.parametrize("kind", ["path", "relation"])
@pytest.mark.parametrize("measure", ["sum(x, 0, 1)", "mean(x, 0, 1)"])
def test_values_are_clipped_whatever_the_footer_says(lying, kind, measure):
    """With a clip in SQL the sum was 1499.5: one record moved it by a thousand times its bound."""
    data = lying if kind == "path" else needs("duckdb").read_parquet(str(lying))
    made = tu.release(data, epsilon=10_000, rng=1, n="count", x=measure).columns
    total = made["x"][0] * (made["n"][0] if measure.startswith("mean") else 1)
    assert total == pytest.approx(1 + 999 * 0.5, abs=0.5)


def test_missing_values_are_found_whatever_the_footer_says(tmp_path):
    pyarrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"x": [0.25, float("nan"), 0.75]}), path)
    with pytest.raises(tu.TrueupError, match="x is missing in some rows"):
        tu.release(path, epsilon=1, rng=1, x="sum(x, 0, 1)")
