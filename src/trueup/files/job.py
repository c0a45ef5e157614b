"""One run: source, plan and target, brought together."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trueup.errors import InfiniteVariance, TrueupError
from trueup.files import formats, targets
from trueup.files.duck import Duck, enough, installed
from trueup.files.faults import FULL, translated
from trueup.files.kinds import check_kinds
from trueup.files.query import Statement, quote
from trueup.files.scans import guessed, parquet, reading, types
from trueup.files.sources import found, opened
from trueup.files.summary import Summary, Tally
from trueup.tables.ratios import RatioRequest
from trueup.tables.request import check_new, needs_variance, read_requests
from trueup.tables.totals import ROWS, SIMULATION, Totals, check_weights, missing_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.files.formats import Format
    from trueup.files.sources import Source
    from trueup.frames.report import Report
    from trueup.tables.request import Request

_TOTALS = "trueup_totals"
_Made = TypeVar("_Made")


@dataclasses.dataclass(frozen=True)
class Job:
    """What is asked of a file; the options of ``trueup debias``.

    ``estimators`` are ratios of sums where these are asked for; ``columns`` and ``scales`` name
    the columns of statistics and of their noise scales; ``totals`` are written in place of the
    rows; ``clamped`` says that values were moved to a bound before they were published;
    ``simulated`` that the table
    is no release, which totals say too; ``watch`` is told how much is done, in percent.
    """

    input: str
    output: str
    estimators: Mapping[str, Any]
    columns: Mapping[str, str]
    scales: Mapping[str, str]
    outputs: tuple[str, ...] = ("value", "stderr")
    level: float = 0.95
    source_format: str | None = None
    target_format: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    hive: bool = False
    nulls: tuple[str, ...] = ()
    keep_text: tuple[str, ...] = ()
    compression: str | None = None
    memory: str | None = None
    totals: Totals | None = None
    clamped: bool = False
    simulated: bool = False
    force: bool = False
    quiet: bool = False
    watch: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        """Refuse errors that are infinite before any file is read."""
        if not needs_variance(self.outputs) or (self.totals and self.totals.ratio):
            return
        for name, estimator in self.estimators.items():
            try:
                estimator._inverse.check_variance()
            except InfiniteVariance as error:
                hint = "add --no-stderr: the estimate is still unbiased"
                raise InfiniteVariance(f"{name}: {error.message}", hint) from None

    @property
    def to_pipe(self) -> bool:
        """Whether the output goes to standard output."""
        return self.output == "-"

    def on(self, source: Source) -> tuple[list[Request], Job]:
        """Return what is asked of the columns of a source, and the job with their exact names."""
        totals, text = self.totals, [found(c, "--text ", source) for c in self.keep_text]
        if totals is not None:
            by = tuple(found(column, "--by ", source) for column in totals.by)
            if self.simulated and SIMULATION in source.columns and SIMULATION not in by:
                by = (*by, SIMULATION)
            weights = totals.weights
            weights = None if weights is None else found(weights, "--weights ", source)
            totals = dataclasses.replace(totals, by=by, weights=weights)
            check_new([ROWS], by, str.lower)
        requests = read_requests(
            *(source.columns, self.columns, self.scales, self.estimators),
            outputs=self.outputs,
            level=self.level,
            kept=source.columns if totals is None else (ROWS, *totals.by),
            fold=str.lower,
            find=lambda column, kind, statistic: found(column, f"--{kind} {statistic}=", source),
        )
        if totals is not None and totals.ratio:
            requests = [RatioRequest(**vars(request)) for request in requests]
        if totals is not None and totals.weights is not None:
            check_weights(totals.weights, requests, str.lower)
        return requests, dataclasses.replace(self, totals=totals, keep_text=tuple(text))

    def check_missing(self, missing: int, kept: int) -> None:
        """Refuse rows that miss a number, unless they are to be left out of the totals."""
        if missing and self.totals and not self.totals.skip:
            raise missing_numbers(missing, missing + kept, "--skip-missing")


def run_job(job: Job) -> list[str]:
    """Do it, and return the lines of the summary."""
    with opened(job.input, job.source_format, job.delimiter, hive=job.hive) as source:
        requests, job = job.on(source)
        form = _target_format(job, source)
        formats.check_compression(form, job.compression)
        check_kinds(source, source.columns if job.totals is None else job.totals.by, form)
        if job.to_pipe:
            with tempfile.TemporaryDirectory(prefix="trueup-") as folder:
                return _Run(job, requests, source, form, None, Path(folder) / "spill").lines()
        with targets.Target(job.output, form, force=job.force) as target:
            return _Run(job, requests, source, form, target, target.spill).lines()


def report_job(job: Job, cells: float | None = None) -> Report:
    """Return what errors to expect of the estimates of a job; nothing is written."""
    job = dataclasses.replace(job, output="-", totals=Totals())
    with opened(job.input, job.source_format, job.delimiter, hive=job.hive) as source:
        requests, job = job.on(source)
        with tempfile.TemporaryDirectory(prefix="trueup-") as folder:
            csv = formats.Format("csv")
            return _Run(job, requests, source, csv, None, Path(folder) / "spill").report(cells)


def ratios(cells: Any, statement: Statement, job: Job) -> Any:
    """Return ratios of sums over the cells of a statement."""
    from trueup.frames.ratio import ratio  # with narwhals, only where ratios are asked for

    totals = job.totals or Totals()
    estimators: dict[str, Any] = {r.name: r.estimator for r in statement.requests}
    return ratio(
        cells,
        list(totals.by),
        *statement.named,
        missing="skip",
        stderr="stderr" in job.outputs,
        interval=totals.level,
        **estimators,
    )


def counted(rows: int, groups: int) -> str:
    """Return how many rows made how many ratios, in words."""
    return f"{rows:,} row{'s' * (rows != 1)} in {groups:,} group{'s' * (groups != 1)}"


def _target_format(job: Job, source: Source) -> Format:
    if not job.to_pipe:
        return targets.check(job.output, job.target_format, source, force=job.force)
    usual = source.format.name if source.format.is_text else "csv"
    form = formats.Format(job.target_format or usual)
    if not form.is_text and sys.stdout.isatty():
        raise TrueupError(
            f"{form.name} is not for a terminal", "name a file, redirect, or add --to csv"
        )
    return form


class _Run:
    """A job on DuckDB."""

    def __init__(
        self,
        job: Job,
        requests: list[Request],
        source: Source,
        form: Format,
        target: targets.Target | None,
        spill: Path,
    ) -> None:
        self.job, self.requests, self.source = job, requests, source
        self.form, self.target = form, target
        width = len(source.columns) + len(requests) * len(job.outputs)
        memory = job.memory or enough(width, os.cpu_count() or 1, installed())
        self.duck = Duck(memory, spill, job.watch)
        self.statement: Statement | None = None

    def lines(self) -> list[str]:
        """Run, and return the summary."""
        return self._done(self._write)

    def report(self, cells: float | None) -> Report:
        """Return what errors to expect; the engine counts and adds up."""
        return self._done(partial(self._report, cells))

    def _done(self, work: Callable[[Statement], _Made]) -> _Made:
        """Return what is made of the statement; errors of the engine become ours."""
        try:
            self.statement = self._statement()
            return work(self.statement)
        except self.duck.errors as error:
            out = "standard output" if self.job.to_pipe else self.job.output
            if isinstance(error, OSError) and error.errno is not None:
                if error.errno in FULL:
                    error.filename = out
                raise
            raise translated(error, self.duck, self.source, self.statement, out) from None
        finally:
            self.duck.close()

    def _statement(self) -> Statement:
        job, source = self.job, self.source
        table = reading(self.duck, source)
        casts: Mapping[str, str] = {}
        if source.format.is_text and not self.form.is_text and job.totals is None:
            free = [n for n in source.columns if n not in (*source.hive, *job.keep_text)]
            casts = guessed(self.duck, table, free, job.nulls, job.decimal)
        weights = job.totals.weights if job.totals else None
        others = () if weights is None else (weights,)
        kinds = types(self.duck, table, source.columns)
        return Statement(self.requests, table, kinds, casts, job.nulls, others, decimal=job.decimal)

    def _write(self, statement: Statement) -> list[str]:
        job, duck = self.job, self.duck
        if job.totals is not None and job.totals.ratio:
            return self._write_ratios(statement, job.totals)
        query, rows = statement.query(), 0
        if job.totals:
            query, rows = self._computed(statement, job.totals)
        kinds = self.source.types
        if self.target is not None:
            written = duck.write(query, self.target.part, self.form, job.compression, kinds)
        elif job.totals and sys.stdout.isatty() and job.target_format is None:
            print(duck.aligned(query))
            written = 0
        else:
            written = duck.stream(query, sys.stdout.buffer, self.form, job.compression, kinds)
        summary = None if job.quiet else self._summary(statement, rows or written)
        if self.target is not None:
            self.target.commit()
        return [] if summary is None else summary.lines()

    def _write_ratios(self, statement: Statement, totals: Totals) -> list[str]:
        """Write ratios of sums: the engine adds up, the ratios of its groups are computed here."""
        job, duck = self.job, self.duck
        query = statement.cells(totals.by)
        count = f"COUNT(*), COUNT(*) FILTER (WHERE {statement.incomplete()})"
        rows, missing = (int(n) for n in duck.ask(f"SELECT {count} FROM (\n{query}\n)")[0])
        job.check_missing(missing, rows - missing)
        made = ratios(duck.connection.sql(query), statement, job)
        duck.connection.register(_TOTALS, made.to_arrow_table())
        order = f" ORDER BY {', '.join(map(quote, totals.by))}" if totals.by else ""
        results = f"SELECT * FROM {_TOTALS}{order}"
        kinds = self.source.types
        if self.target is not None:
            groups = duck.write(results, self.target.part, self.form, job.compression, kinds)
            self.target.commit()
        else:
            groups = duck.stream(results, sys.stdout.buffer, self.form, job.compression, kinds)
        return [] if job.quiet else [counted(rows, groups)]

    def _report(self, count: float | None, statement: Statement) -> Report:
        from trueup.frames.report import report  # likewise

        cells = self.duck.connection.sql(statement.cells())
        estimators: dict[str, Any] = {r.name: r.estimator for r in self.requests}
        given = {"cells": count, "clamped": self.job.clamped}
        return report(cells, *statement.named, **given | estimators)

    def _computed(self, statement: Statement, totals: Totals) -> tuple[str, int]:
        """Compute totals; return the query that reads them, groups in order, and all rows."""
        from trueup.frames import of_duckdb
        from trueup.frames.total import in_engine

        cells = self.duck.connection.sql(statement.cells(totals.by, totals.weights))
        weights = None if totals.weights is None else statement.weight
        asked = dataclasses.replace(totals, weights=weights, skip=True)
        made = in_engine(of_duckdb, cells, statement.on_helpers, asked)
        self.duck.ask(f"CREATE OR REPLACE TEMP TABLE {_TOTALS} AS\n{made.sql_query()}")
        rows = int(self.duck.ask(f"SELECT COUNT(*) FROM {statement.source}")[0][0])
        summed = int(self.duck.ask(f"SELECT SUM({quote(ROWS)}) FROM {_TOTALS}")[0][0] or 0)
        self.job.check_missing(rows - summed, summed)
        order = f" ORDER BY {', '.join(map(quote, totals.by))}" if totals.by else ""
        return f"SELECT * FROM {_TOTALS}{order}", rows

    def _summary(self, statement: Statement, rows: int) -> Summary:
        """Count in the output where that is quick, else in the input."""
        tally = Tally(statement, rows, clamped=self.job.clamped)
        if self.target is not None and self.form.name == "parquet" and self.job.totals is None:
            written = parquet([self.target.part])
            kinds = types(self.duck, written, (*statement.types, *statement.written))
            again = dataclasses.replace(statement, source=written, types=kinds, casts={})
            tally = Tally(again, rows, frozenset(statement.written), self.job.clamped)
        return tally.read(self.duck.ask(tally.sql())[0])
