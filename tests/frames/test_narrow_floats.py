"""A column of singles clamped at a bound that singles cannot hold: every engine knows it is there.

1/q on (0.1, ∞) under Laplace(2): f(L) − b·f′(L) = 210 at the bound, −7990 just inside.
"""

import numpy as np
import pytest

import trueup as tu

BELOW = tu.unbiased("1/q", tu.Laplace(2), (0.1, None))
ABOVE = tu.unbiased("q**3", tu.Laplace(2), (None, 0.7))


def _pandas(values):
    pd = pytest.importorskip("pandas")
    return [
        pd.DataFrame({"q": np.array([np.nan if v is None else v for v in values], "f4")}),
        pd.DataFrame({"q": pd.array(values, dtype="Float32")}),
        pd.DataFrame({"q": pd.array(values, dtype="float[pyarrow]")}),
    ]


def _polars(values):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"q": pl.Series(values, dtype=pl.Float32)})
    return [frame, frame.head(2), frame.lazy()]


def _arrow(values):
    pa = pytest.importorskip("pyarrow")
    return [pa.table({"q": pa.array(values, pa.float32())})]


def _first(frame):
    if hasattr(frame, "collect"):
        frame = frame.collect()
    column = frame["y"]
    return float(column[0].as_py() if hasattr(column[0], "as_py") else column[0])


@pytest.mark.parametrize("library", [_pandas, _polars, _arrow])
@pytest.mark.parametrize(
    ("est", "bound", "expected"), [(BELOW, 0.1, 210), (ABOVE, 0.7, 0.343 + 6 * 0.49)]
)
def test_frames(library, est, bound, expected):
    for frame in library([bound, 0.4, None]):
        assert _first(tu.debias(frame, y=est)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("est", "bound", "expected"), [(BELOW, 0.1, 210), (ABOVE, 0.7, 0.343 + 6 * 0.49)]
)
def test_sql(est, bound, expected):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()  # of its own: the default one is everybody's
    relation = connection.sql(f"SELECT CAST({bound} AS FLOAT) AS q")
    assert tu.debias(relation, y=est).fetchall()[0][1] == pytest.approx(expected, rel=1e-12)
    found = relation.project(est.sql())
    assert found.fetchall()[0][0] == pytest.approx(expected, rel=1e-12)
