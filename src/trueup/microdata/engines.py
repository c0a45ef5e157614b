"""Where the rows are added up: in DuckDB, or in Spark where they are.

Only one row for each public group leaves the engine.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from narwhals import dependencies

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.files.duck import Duck, enough, installed
from trueup.files.query import literal
from trueup.files.scans import reading, types
from trueup.files.sources import opened
from trueup.frames import of_spark
from trueup.microdata.aggregation import Aggregation
from trueup.microdata.privacy_notice import SPENT
from trueup.microdata.public_keys import fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trueup.microdata.design import Design
    from trueup.microdata.public_keys import Keys

    Asking = Callable[..., Aggregation]
    """The query, of which the types of the columns are still to be told."""


class Files(NamedTuple):
    """Files of microdata: a path, a pattern, a folder, or - for a pipe."""

    path: str
    format: str | None = None
    delimiter: str | None = None
    hive: bool = False
    engine: str = "duckdb"


_KEYS, _ROWS = "trueup_public_keys", "trueup_rows"


def totals(
    data: Any,
    design: Design,
    keys: Keys,
    missing: Mapping[str, Any],
    secret: str,
    *,
    simulated: bool = False,
) -> list[list[int]]:
    """Return the totals of the design in every public group.

    Everything that is wrong with the data is refused here. In a simulation Spark numbers rows as
    DuckDB does, one after another, so that both use the same rows of a unit.
    """
    ask = partial(Aggregation, design, missing=missing, secret=secret)
    if isinstance(data, (str, Path)):
        data = Files(str(data))
    if isinstance(data, Files) and data.engine == "spark":
        from trueup.files.spark import spark_frame

        read = spark_frame(data.path, data.format, data.delimiter, hive=data.hive)
        with read as (known, frame):
            ask = partial(ask, text_numbers=known.format.is_text, in_order=simulated)
            return _of_spark(frame, ask, keys)
    if isinstance(data, Files):
        return _of_files(data, ask, keys)
    if dependencies.is_duckdb_relation(data):
        return _of_relation(data, ask, keys)
    if of_spark.is_frame(data):
        return _of_spark(data, partial(ask, in_order=simulated), keys)
    return _of_frame(data, design.needed, ask, keys)


def _of_files(data: Files, ask: Asking, keys: Keys) -> list[list[int]]:
    given = opened(data.path, data.format, data.delimiter, hive=data.hive)
    with given as source, _duck(len(source.columns)) as duck:
        try:
            table = reading(duck, source)
            kinds = types(duck, table, source.columns)
            return _answered(duck, ask(kinds, text_numbers=source.format.is_text), table, keys)
        except TrueupError as error:
            raise TrueupError(f"{data.path}: {error.message}", error.hint) from None
        except duck.errors as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise _engine_error(error) from None


def _of_frame(data: Any, needed: tuple[str, ...], ask: Asking, keys: Keys) -> list[list[int]]:
    import narwhals as nw

    try:
        wrapped: Any = nw.from_native(data, pass_through=True)
        names = list(getattr(wrapped, "collect_schema", dict)())
    except nw.exceptions.DuplicateError as error:
        raise _unreadable(error, "give each column a name of its own") from None
    if not isinstance(wrapped, (nw.DataFrame, nw.LazyFrame)):
        raise TrueupError(
            f"{type(data).__name__} is no table that we know",
            "give a pandas, Polars or pyarrow table, a DuckDB relation, a Spark DataFrame, or the "
            "path of a CSV or Parquet file; nothing was released",
        )
    used = [n for n in needed if n in names]
    narrow: Any = wrapped.select(used) if used else wrapped
    try:
        table = (
            narrow.collect("pyarrow").to_native()
            if isinstance(narrow, nw.LazyFrame)
            else narrow.to_arrow()
        )
    except (ValueError, TypeError, NotImplementedError) as error:  # objects of several kinds
        raise _unreadable(error, "make each column of one kind of numbers or text") from None
    _check_arrow(table)
    with _duck(len(used)) as duck:
        duck.connection.register(_ROWS, table)
        kinds = types(duck, _ROWS, table.column_names)
        for name in names:  # so that a column that is not there is told apart
            kinds.setdefault(name, "")
        return _answered(duck, ask(kinds), _ROWS, keys)


def _unreadable(error: Exception, hint: str) -> TrueupError:
    reason = " ".join(str(error).split())
    return TrueupError(f"the table cannot be read: {reason}", f"{hint}; nothing was released")


def _check_arrow(table: Any) -> None:
    """Refuse types that the engine does not have, and names that it cannot tell apart."""
    pyarrow = optional("pyarrow", "tables", "releasing tables")
    seen: dict[str, str] = {}
    for field in table.schema:
        if pyarrow.types.is_float16(field.type) or pyarrow.types.is_decimal256(field.type):
            raise TrueupError(
                f"the column {field.name!r} holds {field.type}, a type that the engine has not",
                "convert it, e.g. to float32 or to decimals of 38 digits; nothing was released",
            )
        other = seen.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise TrueupError(
                f"the columns {other!r} and {field.name!r} differ in case only",
                "rename one of them; nothing was released",
            )


@contextlib.contextmanager
def _duck(columns: int) -> Iterator[Duck]:
    """Yield a connection of our own; what the engine cannot do is refused."""
    with tempfile.TemporaryDirectory() as spill:
        duck = Duck(enough(columns, os.cpu_count() or 1, installed()), Path(spill))
        try:
            yield duck
        except duck.duckdb.Error as error:
            raise _engine_error(error) from None
        finally:
            duck.close()


def _answered(duck: Duck, asked: Aggregation, table: str, keys: Keys) -> list[list[int]]:
    """Return the totals from a connection of our own, the keys as a table of it."""
    asked.check_types()
    if keys.by:
        pyarrow = optional("pyarrow", "tables", "releasing tables")
        texts = fitted(keys, asked.types, asked.dialect)
        columns = {f"c{i}": pyarrow.array(c, pyarrow.string()) for i, c in enumerate(texts)}
        columns["i"] = pyarrow.array(range(len(keys)), pyarrow.int64())
        duck.connection.register(_KEYS, pyarrow.table(columns))
    try:
        return asked.totals(duck.ask, table, _KEYS, keys)
    except duck.duckdb.Error as error:  # which a file is named with
        raise _engine_error(error) from None


def _of_relation(data: Any, ask: Asking, keys: Keys) -> list[list[int]]:
    """Add up in the connection of the relation, which sees no table of ours."""
    kinds = {n: str(t) for n, t in zip(data.columns, data.types, strict=True)}
    asked = ask(kinds)
    asked.check_types()
    duckdb = optional("duckdb", "tables", "a DuckDB relation")
    try:
        return asked.totals(
            lambda sql: data.query(_ROWS, sql).fetchall(), _ROWS, _values(keys, kinds), keys
        )
    except duckdb.Error as error:
        raise _engine_error(error) from None


def _of_spark(data: Any, ask: Asking, keys: Keys) -> list[list[int]]:
    kinds, session = {name: kind.upper() for name, kind in data.dtypes}, data.sparkSession
    asked = ask(kinds, dialect="spark")
    asked.check_types()
    data.createOrReplaceTempView(_ROWS)
    listed = session.createDataFrame(
        list(zip(range(len(keys)), *fitted(keys, kinds, asked.dialect), strict=True)),
        ", ".join(["i bigint", *(f"c{i} string" for i in range(len(keys.by)))]),
    )
    listed.createOrReplaceTempView(_KEYS)
    try:
        return asked.totals(lambda sql: session.sql(sql).collect(), _ROWS, _KEYS, keys)
    finally:
        for view in (_ROWS, _KEYS):
            session.catalog.dropTempView(view)


def _values(keys: Keys, types: Mapping[str, str]) -> str:
    """Return the keys as a table written out in the query."""
    names = ", ".join(["i", *(f"c{i}" for i in range(len(keys.by)))])
    texts = zip(*fitted(keys, types, "duckdb"), strict=True)
    rows = [f"({', '.join([str(i), *map(literal, key)])})" for i, key in enumerate(texts)]
    return f"(SELECT * FROM (VALUES {', '.join(rows)}) AS listed({names}))"


def _engine_error(error: Exception) -> TrueupError:
    reason = str(error).split("\n", 1)[0]
    return TrueupError(f"the rows cannot be added up: {reason}", f"check the data; {SPENT}")
