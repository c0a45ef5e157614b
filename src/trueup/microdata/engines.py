"""Where rows are selected and added up: with DuckDB, or in Spark where they are.

DuckDB's rows come as Arrow batches. In Spark the workers add their own rows up by the same
function, and only totals of groups leave them.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
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
from trueup.microdata.privacy_notice import UNRELEASED
from trueup.microdata.public_keys import as_numbers, check_in_engine, fitted, is_cast
from trueup.microdata.selection import Selection
from trueup.microdata.totals import Totals, partial_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from trueup.microdata.public_keys import Keys
    from trueup.microdata.totals import Fault, Reading

    Selecting = Callable[..., Selection]
    """The query, of which the types of the columns are still to be told."""


class Files(NamedTuple):
    """Files of microdata: a path, a pattern, a folder, or - for a pipe."""

    path: str
    format: str | None = None
    delimiter: str | None = None
    hive: bool = False


_KEYS, _ROWS = "trueup_public_keys", "trueup_rows"
_BATCH = 2**18
"""Rows at a time: their columns, a few megabytes, stay in a cache of the processor."""


def totals(
    data: Any, reading: Reading, keys: Keys, secret: str, *, simulated: bool = False
) -> list[list[int]]:
    """Return the totals of the design in every public group.

    Everything that is wrong with the data is refused here. In a simulation Spark numbers rows as
    DuckDB does, one after another, so that both use the same rows of a unit.
    """
    select = partial(Selection, reading, secret=secret)
    if isinstance(data, (str, Path)):
        data = Files(str(data))
    if isinstance(data, Files):
        return _of_files(data, select, keys)
    if dependencies.is_duckdb_relation(data):
        return _of_relation(data, select, keys)
    if of_spark.is_frame(data):
        return _of_spark(data, partial(select, in_order=simulated), keys)
    return _of_frame(data, reading.design.needed, select, keys)


def _of_files(data: Files, select: Selecting, keys: Keys) -> list[list[int]]:
    given = opened(data.path, data.format, data.delimiter, hive=data.hive)
    with given as source, _duck(len(source.columns)) as duck:
        try:
            table = reading(duck, source)
            kinds, is_text = types(duck, table, source.columns), source.format.is_text
            kinds = as_numbers(keys, kinds) if is_text else kinds
            return _answered(duck, select(kinds, text_numbers=is_text), table, keys)
        except TrueupError as error:
            raise TrueupError(f"{data.path}: {error.message}", error.hint) from None
        except duck.errors as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise _engine_error(error) from None


def _of_frame(data: Any, needed: Sequence[str], select: Selecting, keys: Keys) -> list[list[int]]:
    import narwhals as nw

    try:
        wrapped: Any = nw.from_native(data, pass_through=True)
        names = list(getattr(wrapped, "collect_schema", dict)())
    except nw.exceptions.DuplicateError as error:
        raise _unreadable(error, "give each column a name of its own") from None
    if not isinstance(wrapped, (nw.DataFrame, nw.LazyFrame)):
        raise TrueupError(
            f"{type(data).__name__} is not a supported type of table",
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
        return _answered(duck, select(kinds), _ROWS, keys)


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


def _answered(duck: Duck, selection: Selection, table: str, keys: Keys) -> list[list[int]]:
    """Return the totals from a connection of our own, the keys as a table of it."""
    selection.check_types()
    if keys.by:
        pyarrow = optional("pyarrow", "tables", "releasing tables")
        texts = fitted(keys, selection.types, selection.dialect)
        columns = {f"c{i}": pyarrow.array(c, pyarrow.string()) for i, c in enumerate(texts)}
        columns["i"] = pyarrow.array(range(len(keys)), pyarrow.int64())
        duck.connection.register(_KEYS, pyarrow.table(columns))
    try:
        _check_keys(duck.ask, keys, selection, _KEYS)
        return _added(duck.connection.sql(selection.sql(table, _KEYS)), selection, keys)
    except duck.duckdb.Error as error:  # which a file is named with
        raise _engine_error(error) from None


def _of_relation(data: Any, select: Selecting, keys: Keys) -> list[list[int]]:
    """Select in the connection of the relation, which sees no table of ours."""
    kinds = {n: str(t) for n, t in zip(data.columns, data.types, strict=True)}
    selection = select(kinds)
    selection.check_types()
    duckdb = optional("duckdb", "tables", "a DuckDB relation")
    listed = _values(keys, kinds)
    try:
        _check_keys(lambda sql: data.query(_ROWS, sql).fetchall(), keys, selection, listed)
        return _added(data.query(_ROWS, selection.sql(_ROWS, listed)), selection, keys)
    except duckdb.Error as error:
        raise _engine_error(error) from None


def _added(rows: Any, selection: Selection, keys: Keys) -> list[list[int]]:
    """Return the totals of the rows of a relation, which are read in batches."""
    totals = Totals(selection.reading, len(keys))
    for batch in getattr(rows, "to_arrow_reader", rows.fetch_arrow_reader)(_BATCH):
        totals.add(batch)
    _refuse(totals.fault())
    return totals.sums()


def _of_spark(data: Any, select: Selecting, keys: Keys) -> list[list[int]]:
    kinds, session = {name: kind.upper() for name, kind in data.dtypes}, data.sparkSession
    selection = select(kinds, dialect="spark")
    if selection.text_numbers:
        kinds = as_numbers(keys, kinds)
        selection = select(kinds, dialect="spark")
    selection.check_types()
    data.createOrReplaceTempView(_ROWS)
    listed = session.createDataFrame(
        list(zip(range(len(keys)), *fitted(keys, kinds, selection.dialect), strict=True)),
        ", ".join(["i bigint", *(f"c{i} string" for i in range(len(keys.by)))]),
    )
    listed.createOrReplaceTempView(_KEYS)
    try:
        _check_keys(lambda sql: session.sql(sql).collect(), keys, selection, _KEYS)
        rows = session.sql(selection.sql(_ROWS, _KEYS))
        return _added_by_workers(rows, selection.reading, len(keys))
    except optional("pyspark.errors", "spark", "a Spark DataFrame").PythonException as error:
        reason = str(error).strip().rsplit("\n", 1)[-1]
        raise TrueupError(
            f"Spark's workers cannot add the rows up: {reason}",
            "install trueup with its extra tables for the Python of the workers, which "
            f"PYSPARK_PYTHON names; {UNRELEASED}",
        ) from None
    finally:
        for view in (_ROWS, _KEYS):
            session.catalog.dropTempView(view)


def _added_by_workers(rows: Any, reading: Reading, groups: int) -> list[list[int]]:
    """Return the totals that Spark's workers add up, each of its own rows."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        yield from partial_sums(reading, groups, batches)

    names = [f"s{k}" for k in range(len(reading.design.totals))]
    schema = ", ".join(["i bigint", "f bigint", *(f"{name} string" for name in names)])
    added = [f"SUM(CAST({name} AS DECIMAL(38, 0)))" for name in names]  # whole numbers: exact
    with warnings.catch_warnings():  # Spark warns of new versions of pandas, which is not used
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        found = rows.mapInArrow(work, schema).groupBy("i", "f")
    rows = found.agg(*map(_expression, added)).collect()
    faults = [reading.faults[row[1]] for row in rows if row[1] >= 0]
    _refuse(min(faults, key=reading.faults.index, default=None))
    sums = [[0] * groups for _ in names]
    for i, _, *values in rows:
        for into, value in zip(sums, values, strict=True):
            into[i] = int(value)
    return sums


def _expression(sql: str) -> Any:
    functions = optional("pyspark.sql.functions", "spark", "a Spark DataFrame")
    return functions.expr(sql)


def _refuse(fault: Fault | None) -> None:
    """Refuse data, saying what is wrong but never in how many rows."""
    if fault is not None:
        raise TrueupError(fault.problem, f"{fault.hint}; {UNRELEASED}")


def _check_keys(
    ask: Callable[[str], Sequence[Sequence[Any]]], keys: Keys, selection: Selection, table: str
) -> None:
    """Refuse keys that the engine cannot read in the types of the columns."""
    if any(map(is_cast, selection.kinds)):
        check_in_engine(ask, keys, selection.kinds, table)


def _values(keys: Keys, types: Mapping[str, str]) -> str:
    """Return the keys as a table written out in the query."""
    if not keys.by:
        return ""
    names = ", ".join(["i", *(f"c{i}" for i in range(len(keys.by)))])
    texts = zip(*fitted(keys, types, "duckdb"), strict=True)
    rows = [f"({', '.join([str(i), *map(literal, key)])})" for i, key in enumerate(texts)]
    return f"(SELECT * FROM (VALUES {', '.join(rows)}) AS listed({names}))"


def _engine_error(error: Exception) -> TrueupError:
    reason = str(error).split("\n", 1)[0]
    return TrueupError(f"the rows cannot be added up: {reason}", f"check the data; {UNRELEASED}")
