"""Spark, the distributed engine: reads and writes files and folders, wherever Spark can."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.files import formats, targets
from trueup.files.job import counted, ratios
from trueup.files.paths import exact
from trueup.files.query import MARK, Statement
from trueup.files.sources import Source, check_names, checked_delimiter, find, locate
from trueup.files.summary import Tally
from trueup.formula.refusal import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trueup.files.job import Job

_VIEW = "trueup_source"
_READS = ("csv", "tsv", "parquet")
_TYPES = {"string": "VARCHAR", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER"}
_TYPES |= {"bigint": "BIGINT", "double": "DOUBLE", "float": "FLOAT"}


def run_spark(job: Job) -> list[str]:
    """Do a job on Spark, and return the lines of the summary."""
    _check(job)
    with _session() as spark:
        try:
            return _Run(job, spark).lines()
        except optional("pyspark.errors", "spark", "the engine spark").PySparkException as error:
            raise _translated(error, job) from None


@contextlib.contextmanager
def spark_frame(
    path: str, source_format: str | None, delimiter: str | None, *, hive: bool
) -> Iterator[tuple[Source, Any]]:
    """Yield files as a Spark frame, with what is known of them; text stays text."""
    from trueup.files.job import Job

    job = Job(path, "", {}, {}, {}, source_format=source_format, delimiter=delimiter, hive=hive)
    _check(job)
    with _session() as spark:
        try:
            yield _Run(job, spark)._source()
        except optional("pyspark.errors", "spark", "the engine spark").PySparkException as error:
            raise _translated(error, job) from None


def _check(job: Job) -> None:
    if "-" in (job.input, job.output):
        raise TrueupError("spark reads and writes files, not pipes", "use --engine duckdb")


@contextlib.contextmanager
def _session() -> Iterator[Any]:
    """Yield the session that is there, or a local one for this run."""
    sql = optional("pyspark.sql", "spark", "the engine spark")
    core = optional("pyspark", "spark", "the engine spark")
    if core.SparkContext._active_spark_context is not None:
        yield sql.SparkSession.builder.getOrCreate()
        return
    logging.getLogger("SQLQueryContextLogger").disabled = True
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # its workers add private tables up
    builder = sql.SparkSession.builder.appName("trueup").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    try:
        with _silent(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except (core.errors.PySparkException, RuntimeError) as error:
        raise TrueupError(
            f"Spark does not start: {str(error).splitlines()[0]}",
            "it needs Java 17 or newer: set JAVA_HOME, or use --engine duckdb",
        ) from None
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Start processes whose messages go nowhere: errors reach us as exceptions."""
    sys.stderr.flush()
    saved, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nothing)


class _Run:
    """A job on a session."""

    def __init__(self, job: Job, spark: Any) -> None:
        self.job, self.spark = job, spark
        self.told: list[str] | None = None

    def lines(self) -> list[str]:
        """Run, and return the summary."""
        source, frame = self._source()
        requests, job = self.job.on(source)
        self.job = job
        frame.createOrReplaceTempView(_VIEW)
        kinds = {name: _TYPES.get(kind, kind.upper()) for name, kind in frame.dtypes}
        statement = Statement(
            requests, _VIEW, kinds, nulls=job.nulls, dialect="spark", decimal=job.decimal
        )
        ratio = job.totals is not None and job.totals.ratio
        query = (
            statement.cells(job.totals.by) if job.totals and ratio else statement.query(job.totals)
        )
        if job.dry_run:
            print(query + ";")
            return []
        return self._write(source, statement, query)

    def _source(self) -> tuple[Source, Any]:
        """Return the columns of the input, and the frame; text stays text."""
        job = self.job
        self.spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        source = self._remote() if "://" in job.input else self._local()
        paths = [_told(file) for file in source.files] or [job.input]
        reader = self._reader(source)
        frame = reader.option("recursiveFileLookup", "true").load(paths)  # folders are no columns
        own = tuple(frame.columns)
        check_names(job.input, [(name, None) for name in own])
        if job.hive:
            base = {} if "://" in job.input else {"basePath": f"file://{_base(job.input)}"}
            frame = self._reader(source).options(**base).load(paths)
            _check_keys(job.input, own, frame)
        return dataclasses.replace(source, columns=tuple(frame.columns)), frame

    def _reader(self, source: Source) -> Any:
        """Return what reads a format; the names of text are those that we have read and checked."""
        if not source.format.is_text:
            return self.spark.read.format(source.format.name)
        reader = self.spark.read.format("csv")
        reader = reader.options(header="true", inferSchema="false", mode="FAILFAST")
        reader = reader.options(sep=source.delimiter, escape='"', enforceSchema="false")
        if source.columns:
            types = optional("pyspark.sql.types", "spark", "the engine spark")
            fields = [types.StructField(name, types.StringType()) for name in source.columns]
            reader = reader.schema(types.StructType(fields))
        return reader

    def _remote(self) -> Source:
        job = self.job
        form = _readable(formats.named(job.source_format, Path(job.input), "--from"))
        delimiter = checked_delimiter(job.delimiter) or formats.DELIMITERS.get(form.name, ",")
        return Source(job.input, (), form, (), delimiter)

    def _local(self) -> Source:
        """Return the files, looked at as for the other engine: text with its names."""
        job = self.job
        files, form = find(job.input, job.source_format)
        _readable(form)
        pipe = next((file for file in files if not file.is_file()), None)
        if pipe is not None:
            raise TrueupError(f"spark reads files, and {pipe} is a pipe", "use --engine duckdb")
        if form.is_text:
            return locate(job.input, job.source_format, checked_delimiter(job.delimiter))
        return Source(job.input, tuple(files), form, ())

    def _write(self, source: Source, statement: Statement, query: str) -> list[str]:
        job = self.job
        if "://" in job.output:
            self._save(self._checked(statement, query), job.output, self._output_format())
            return self._summary(statement)
        form = targets.check(
            job.output, self._output_format(), source, force=job.force, folder=True
        )
        with targets.Target(job.output, form, force=job.force, folder=True) as target:
            self._save(self._checked(statement, query), f"file://{exact(target.part)}", form.name)
            lines = self._summary(statement)
            target.commit()
        return lines

    def _output_format(self) -> str:
        found = formats.by_suffix(Path(self.job.output))
        form = self.job.target_format or (found.name if found else "parquet")
        if form not in _READS:
            raise TrueupError(f"spark does not write {form} files", "use --engine duckdb")
        return form

    def _checked(self, statement: Statement, query: str) -> Any:
        """Return the frame to write; of totals the rows left out are looked at first."""
        frame, totals = self.spark.sql(query), self.job.totals
        if totals is None:
            return frame
        if totals.ratio:
            return self._ratios(frame, statement)
        frame = frame.cache()
        sums = frame.groupBy().sum(statement.missing, "rows").collect()[0]
        self.job.check_missing(*(int(n or 0) for n in sums))
        return frame.drop(statement.missing).orderBy(*map(statement.quote, totals.by)).coalesce(1)

    def _ratios(self, cells: Any, statement: Statement) -> Any:
        """Return ratios of sums; what is said of them stands in the place of the summary."""
        rows, missing = cells.count(), cells.where(statement.incomplete()).count()
        self.job.check_missing(missing, rows - missing)
        made, told = ratios(cells, statement, self.job)
        self.told = [counted(rows, made.count()), *told]
        by = self.job.totals.by if self.job.totals else ()
        return made.orderBy(*map(statement.quote, by)).coalesce(1)

    def _save(self, frame: Any, path: str, form: str) -> None:
        writer = frame.write.mode("overwrite" if self.job.force else "errorifexists")
        if form in formats.DELIMITERS:
            writer.options(header="true", escape='"', sep=formats.DELIMITERS[form]).csv(path)
        else:
            compression = (self.job.compression or "snappy").replace("none", "uncompressed")
            writer.option("compression", compression).parquet(path)

    def _summary(self, statement: Statement) -> list[str]:
        if self.job.quiet or self.told is not None:
            return [] if self.job.quiet else self.told or []
        rows = self.spark.sql(f"SELECT COUNT(*) FROM {statement.source}").collect()[0][0]
        tally = Tally(statement, rows)
        row = self.spark.sql(tally.sql()).collect()[0]
        return tally.read(tuple(row)).lines()


def _told(file: Path) -> str:
    """Return a local file as Spark must be told it: a pattern that matches only itself."""
    return "file://" + "".join(f"\\{s}" if s in "\\*?[]{}" else s for s in exact(file))


def _base(text: str) -> str:
    """Return the folder below which folders called key=value were asked for."""
    return "/" if Path(text).is_absolute() else exact(Path())


def _readable(form: formats.Format) -> formats.Format:
    if form.name not in _READS:
        raise TrueupError(f"spark does not read {form.name} files", "use --engine duckdb")
    return form


def _check_keys(text: str, own: Sequence[str], frame: Any) -> None:
    """Refuse folders called key=value that make no column, or would hide one."""
    paths = [str(path).lower() for path in frame.inputFiles()]
    hidden = next((c for c in own if any(f"/{c.lower()}=" in path for path in paths)), None)
    if hidden is not None:
        raise TrueupError(
            f"{text}: {quoted(hidden)} is a column of the files and the key of a folder",
            "leave --hive out to keep the column, or rename the folders",
        )
    if len(frame.columns) == len(own):
        raise TrueupError(f"no folder in {text} is called key=value", "leave --hive out")


def _translated(error: Any, job: Job) -> TrueupError:
    """Return an error of Spark as one of ours."""
    message = str(error)
    if MARK in message:
        return TrueupError(
            f"{job.input} holds a value that cannot be: a number that is not whole under integer "
            "noise, or a noise scale that is not positive",
            "--engine duckdb says which row and value it is",
        )
    if cast := re.search(r"\[CAST_INVALID_INPUT\] The value ('.*?') of", message):
        return TrueupError(
            f"{job.input}: {cast[1]} in a column of numbers is no number",
            f"correct it, or add --null {cast[1]} if it stands for a missing number",
        )
    line = next((line for line in message.splitlines() if line.strip()), "").strip()
    return TrueupError(f"Spark: {line}", "check the files; --engine duckdb may say more")
