"""Every dataframe library: how to make a frame of some columns, and how to read it back."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from extras import needs


@dataclasses.dataclass(frozen=True)
class Backend:
    """One library: ``make`` takes {column: list}, ``read`` gives that back, None for null."""

    name: str
    make: Callable[[dict[str, list[Any]]], Any]
    read: Callable[[Any], dict[str, list[Any]]]
    eager: bool = True
    nan_is_null: bool = False

    def __call__(self, data: dict[str, list[Any]]) -> Any:
        return self.make(data)

    def __repr__(self) -> str:
        return self.name


def _pandas(data):
    return needs("pandas").DataFrame(data)


def _read_pandas(frame):
    missing = needs("pandas").isna
    return {c: [None if missing(v) else v for v in frame[c].tolist()] for c in frame.columns}


def _pandas_nullable(data):
    return _pandas(data).convert_dtypes()


def _pandas_arrow(data):
    return _pandas(data).convert_dtypes(dtype_backend="pyarrow")


def _polars(data):
    return needs("polars").DataFrame(data, strict=False)


def _polars_chunks(data):
    frame = _polars(data)
    half = frame.height // 2
    return needs("polars").concat([frame[:half], frame[half:]], rechunk=False)


def _polars_lazy(data):
    return _polars(data).lazy()


def _read_polars(frame):
    return frame.lazy().collect().to_dict(as_series=False)


def _arrow(data):
    return needs("pyarrow").table(data)


def _arrow_chunks(data):
    table = _arrow(data)
    half = table.num_rows // 2
    return needs("pyarrow").concat_tables([table[:half], table[half:]])


def _arrow_batch(data):
    return needs("pyarrow").RecordBatch.from_pydict(data)


def _read_arrow(frame):
    return frame.to_pydict()


_CONNECTIONS = []


def _duckdb(data):
    duckdb = needs("duckdb")
    table = _arrow(data)
    _CONNECTIONS.append(duckdb.connect())  # an old relation does not hold on to its own
    return _CONNECTIONS[-1].from_arrow(table)


def _read_duckdb(frame):
    return frame.to_arrow_table().to_pydict()


def _narwhals(data):
    return needs("narwhals").from_native(_polars(data))


def _narwhals_lazy(data):
    return needs("narwhals").from_native(_polars_lazy(data))


def _read_narwhals(frame):
    return _read_polars(frame.to_native())


BACKENDS = [
    Backend("pandas", _pandas, _read_pandas, nan_is_null=True),
    Backend("pandas nullable", _pandas_nullable, _read_pandas, nan_is_null=True),
    Backend("pandas pyarrow", _pandas_arrow, _read_pandas, nan_is_null=True),
    Backend("polars", _polars, _read_polars),
    Backend("polars chunks", _polars_chunks, _read_polars),
    Backend("polars lazy", _polars_lazy, _read_polars, eager=False),
    Backend("pyarrow", _arrow, _read_arrow),
    Backend("pyarrow chunks", _arrow_chunks, _read_arrow),
    Backend("pyarrow batch", _arrow_batch, _read_arrow),
    Backend("duckdb", _duckdb, _read_duckdb, eager=False, nan_is_null=True),
    Backend("narwhals", _narwhals, _read_narwhals),
    Backend("narwhals lazy", _narwhals_lazy, _read_narwhals, eager=False),
]


def same(a: Any, b: Any, rel: float = 1e-12) -> bool:
    """Whether two cells agree: both null, both NaN, or close numbers."""
    if a is None or b is None:
        return a is b
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return math.isclose(a, b, rel_tol=rel, abs_tol=1e-300)
