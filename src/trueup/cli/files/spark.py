"""Spark, the distributed engine: reads and writes files and folders, wherever Spark can."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.files import formats, targets
from trueup.cli.files.plan import check_columns
from trueup.cli.files.sources import Source, check_names
from trueup.cli.files.statement import MARK, Statement
from trueup.cli.files.summary import Summary, Tally
from trueup.errors import TrueupError
from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.cli.files.job import Job

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


def _check(job: Job) -> None:
    if "-" in (job.input, job.output):
        raise TrueupError("spark reads and writes files, not pipes", "use --engine duckdb")
    if "://" not in job.input and not Path(job.input).exists() and "*" not in job.input:
        raise TrueupError(f"there is no file {job.input}", "check the path")


@contextlib.contextmanager
def _session() -> Iterator[Any]:
    """Yield the session that is there, or a local one for this run."""
    sql = optional("pyspark.sql", "spark", "the engine spark")
    core = optional("pyspark", "spark", "the engine spark")
    if core.SparkContext._active_spark_context is not None:
        yield sql.SparkSession.builder.getOrCreate()
        return
    logging.getLogger("SQLQueryContextLogger").disabled = True
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

    def lines(self) -> list[str]:
        """Run, and return the summary."""
        job = self.job
        source, frame = self._source()
        check_columns(job.plan, source, new=job.totals is None)
        if job.totals is not None:
            job.totals.check(source, job.plan.names)
        frame.createOrReplaceTempView(_VIEW)
        kinds = {name: _TYPES.get(kind, kind.upper()) for name, kind in frame.dtypes}
        statement = Statement(job.plan, _VIEW, kinds, nulls=job.nulls, dialect="spark")
        query = job.totals.sql(statement) if job.totals else statement.query()
        if job.dry_run:
            print(query + ";")
            return []
        return self._write(source, statement, query)

    def _source(self) -> tuple[Source, Any]:
        """Return the columns of the input, and the frame; text stays text."""
        job = self.job
        form = self._format(job.source_format, job.input)
        self.spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        reader = self.spark.read
        if form.is_text:
            delimiter = job.delimiter or formats.DELIMITERS[form.name]
            reader = reader.options(header="true", inferSchema="false", mode="FAILFAST")
            reader = reader.options(sep=delimiter, escape='"', enforceSchema="false")
        frame = reader.format("csv" if form.is_text else form.name).load(job.input)
        check_names(job.input, [(name, None) for name in frame.columns])
        files = () if "://" in job.input else (Path(job.input),)
        return Source(job.input, files, form, tuple(frame.columns)), frame

    def _format(self, given: str | None, text: str) -> formats.Format:
        path = Path(text)
        if given is None and path.is_dir():
            inside = (formats.by_suffix(f) for f in sorted(path.rglob("[!._]*")) if f.is_file())
            given = next((form.name for form in inside if form), None)
        form = formats.named(given, path, "--from")
        if form.name not in _READS:
            raise TrueupError(f"spark does not read {form.name} files", "use --engine duckdb")
        return form

    def _write(self, source: Source, statement: Statement, query: str) -> list[str]:
        job = self.job
        if "://" in job.output:
            self._save(self._checked(statement, query), job.output, self._output_format())
            return self._summary(statement)
        form = targets.check(
            job.output, self._output_format(), source, force=job.force, folder=True
        )
        with targets.Target(job.output, form, force=job.force, folder=True) as target:
            self._save(self._checked(statement, query), str(target.part), form.name)
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
        frame = self.spark.sql(query)
        if self.job.totals is None:
            return frame
        frame = frame.cache()
        missing = f"{statement.prefix}missing"
        sums = frame.groupBy().sum(missing, "rows").collect()[0]
        self.job.totals.check_missing(*(int(n or 0) for n in sums))
        return frame.drop(missing).orderBy(*map(statement.quote, self.job.totals.by)).coalesce(1)

    def _save(self, frame: Any, path: str, form: str) -> None:
        writer = frame.write.mode("overwrite" if self.job.force else "errorifexists")
        if form in formats.DELIMITERS:
            writer.options(header="true", escape='"', sep=formats.DELIMITERS[form]).csv(path)
        else:
            compression = (self.job.compression or "snappy").replace("none", "uncompressed")
            writer.option("compression", compression).parquet(path)

    def _summary(self, statement: Statement) -> list[str]:
        if self.job.quiet:
            return []
        tally = Tally(statement)
        row = self.spark.sql(tally.sql()).collect()[0]
        summary: Summary = tally.read(tuple(row))
        return [*summary.lines(), *(f"trueup: warning: {text}" for text in summary.warnings())]


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
