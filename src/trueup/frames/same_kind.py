"""Results made in memory, returned as the kind of frame that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narwhals import dependencies

from trueup.extras import optional
from trueup.frames import of_spark

if TYPE_CHECKING:
    from collections.abc import Sequence


def same_kind(frame: Any, made: Any, keys: Sequence[str] = ()) -> Any:
    """Return an Arrow table as the kind of a lazy frame or engine; ``keys`` are its columns."""
    if dependencies.is_polars_lazyframe(frame):
        return optional("polars", "tables", "a Polars frame").from_arrow(made).lazy()
    if dependencies.is_duckdb_relation(frame):
        return frame.query("trueup_cells", "SELECT * FROM made")
    if of_spark.is_frame(frame):
        return _to_spark(frame, made, keys)
    if dependencies.is_dask_dataframe(frame):
        dask = optional("dask.dataframe", "tables", "a Dask frame")
        return dask.from_pandas(made.to_pandas(), npartitions=1, sort=False)
    if dependencies.is_ibis_table(frame):
        return optional("ibis", "tables", "an Ibis table").memtable(made)
    return made


def _to_spark(frame: Any, made: Any, keys: Sequence[str]) -> Any:
    types = optional("pyspark.sql.types", "spark", "a Spark DataFrame")
    kinds = {"int64": types.LongType(), "double": types.DoubleType(), "string": types.StringType()}
    fields = [f for k in keys for f in frame.schema.fields if f.name.lower() == k.lower()]
    fields += [types.StructField(f.name, kinds[str(f.type)]) for f in made.schema][len(fields) :]
    rows = list(zip(*(made[n].to_pylist() for n in made.column_names), strict=True))
    return frame.sparkSession.createDataFrame(rows, types.StructType(fields))
