"""Spark DataFrames: native columns that Spark itself plans and compiles, no Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narwhals import dependencies

from trueup.extras import optional
from trueup.frames.columns import not_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.tables.request import Request

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def is_frame(frame: Any) -> bool:
    """Whether this is a Spark DataFrame, classic or connected."""
    return dependencies.is_pyspark_dataframe(frame) or dependencies.is_pyspark_connect_dataframe(
        frame
    )


def names(frame: Any) -> list[str]:
    """Return the names of the columns."""
    return list(frame.columns)


def fold(name: Any) -> Any:
    """Return a name as it is compared: Spark does not tell upper case from lower."""
    return name.casefold() if isinstance(name, str) else name


def check(frame: Any, names: Sequence[str]) -> None:
    """Raise unless these columns hold numbers."""
    kinds = {fold(name): kind for name, kind in frame.dtypes}
    for name in names:
        kind = kinds[fold(name)]
        if kind.partition("(")[0] not in _NUMBERS:
            raise not_numbers(name, kind)


def extend(frame: Any, new: Mapping[str, tuple[Request, str]]) -> Any:
    """Return the DataFrame with columns added, as native expressions."""
    functions = optional("pyspark.sql.functions", "spark", "a Spark DataFrame")
    return frame.withColumns(
        {name: functions.expr(w.sql("spark", output)) for name, (w, output) in new.items()}
    )


def returned(frame: Any, made: Any, keys: Sequence[str]) -> Any:
    """Return an Arrow table as a DataFrame of the same session; its keys keep their types."""
    types = optional("pyspark.sql.types", "spark", "a Spark DataFrame")
    kinds = {"int64": types.LongType(), "double": types.DoubleType(), "string": types.StringType()}
    fields = [f for k in keys for f in frame.schema.fields if f.name.lower() == k.lower()]
    fields += [types.StructField(f.name, kinds[str(f.type)]) for f in made.schema][len(fields) :]
    rows = list(zip(*(made[n].to_pylist() for n in made.column_names), strict=True))
    return frame.sparkSession.createDataFrame(rows, types.StructType(fields))
