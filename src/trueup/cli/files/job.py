"""One run: source, plan and target, brought together."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.cli.files import formats, targets
from trueup.cli.files.duck import Duck, copy, enough, installed
from trueup.cli.files.faults import translated
from trueup.cli.files.kinds import check_kinds
from trueup.cli.files.paths import exact
from trueup.cli.files.plan import fitted, found
from trueup.cli.files.reading import guessed, parquet, reading, types
from trueup.cli.files.sources import opened
from trueup.cli.files.statement import Statement
from trueup.cli.files.summary import Summary, Tally
from trueup.cli.files.totals import Totals, aligned
from trueup.cli.notation import Name, names
from trueup.errors import TrueupError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from trueup.cli.files.formats import Format
    from trueup.cli.files.plan import Plan
    from trueup.cli.files.sources import Source


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks, apart from the estimators."""

    plan: Plan
    input: str
    output: str
    source_format: str | None
    target_format: str | None
    delimiter: str | None
    hive: bool
    nulls: tuple[str, ...]
    keep_text: tuple[str, ...]
    compression: str | None
    memory: str | None
    totals: Totals | None
    force: bool
    dry_run: bool
    quiet: bool

    @classmethod
    def read(cls, args: argparse.Namespace, plan: Plan) -> Job:
        """Return the job that the arguments describe."""
        weights = None if args.weights is None else Name(args.weights)
        totals = Totals(names(args.by or ""), weights, args.average, args.skip_missing)
        return cls(
            plan=plan,
            input=args.input,
            output=args.output,
            source_format=args.source_format,
            target_format=args.target_format,
            delimiter=args.delimiter,
            hive=args.hive,
            nulls=tuple(args.null),
            keep_text=names(args.text),
            compression=args.compression,
            memory=args.memory,
            totals=totals if args.total else None,
            force=args.force,
            dry_run=args.dry_run,
            quiet=args.quiet,
        )

    @property
    def to_pipe(self) -> bool:
        """Whether the output goes to standard output."""
        return self.output == "-"

    def fitted(self, source: Source) -> Job:
        """Return the job on the columns of a source."""
        totals, text = self.totals, [found(c, "--text ", source) for c in self.keep_text]
        return dataclasses.replace(
            self,
            plan=fitted(self.plan, source, new=totals is None),
            totals=None if totals is None else totals.fitted(source, self.plan.names),
            keep_text=tuple(text),
        )


def run_job(job: Job) -> list[str]:
    """Do it, and return the lines of the summary."""
    with opened(job.input, job.source_format, job.delimiter, hive=job.hive) as source:
        job = job.fitted(source)
        form = _target_format(job, source)
        formats.check_compression(form, job.compression)
        check_kinds(source, source.columns if job.totals is None else job.totals.by, form)
        if job.dry_run or job.to_pipe:
            with tempfile.TemporaryDirectory(prefix="trueup-") as folder:
                return _Run(job, source, form, None, Path(folder) / "spill").lines()
        with targets.Target(job.output, form, force=job.force) as target:
            return _Run(job, source, form, target, target.spill).lines()


def _target_format(job: Job, source: Source) -> Format:
    if not job.to_pipe:
        return targets.check(job.output, job.target_format, source, force=job.force, folder=False)
    usual = source.format.name if source.format.is_text else "csv"
    form = formats.Format(job.target_format or usual)
    if not form.is_text and sys.stdout.isatty() and not job.dry_run:
        raise TrueupError(
            f"{form.name} is not for a terminal", "name a file, redirect, or add --to csv"
        )
    return form


class _Run:
    """A job on DuckDB."""

    def __init__(
        self,
        job: Job,
        source: Source,
        form: Format,
        target: targets.Target | None,
        spill: Path,
    ) -> None:
        self.job, self.source, self.form, self.target = job, source, form, target
        width = len(source.columns) + len(job.plan.names)
        memory = job.memory or enough(width, os.cpu_count() or 1, installed())
        self.duck = Duck(memory, spill)
        self.statement: Statement | None = None

    def lines(self) -> list[str]:
        """Run, and return the summary; errors of the engine become ours."""
        try:
            self.statement = self._statement()
            return self._write(self.statement)
        except self.duck.errors as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            out = "standard output" if self.job.to_pipe else self.job.output
            raise translated(error, self.duck, self.source, self.statement, out) from None
        finally:
            self.duck.close()

    def _statement(self) -> Statement:
        job, source = self.job, self.source
        table = reading(self.duck, source)
        casts: Mapping[str, str] = {}
        if source.format.is_text and not self.form.is_text and job.totals is None:
            free = [n for n in source.columns if n not in (*source.hive, *job.keep_text)]
            casts = guessed(self.duck, table, free, job.nulls)
        weights = job.totals.weights if job.totals else None
        others = () if weights is None else (weights,)
        kinds = types(self.duck, table, source.columns)
        return Statement(job.plan, table, kinds, casts, job.nulls, others)

    def _write(self, statement: Statement) -> list[str]:
        job, duck = self.job, self.duck
        if job.dry_run:
            query = job.totals.sql(statement) if job.totals else statement.query()
            out = job.output if job.to_pipe else exact(Path(job.output))
            print(copy(query, out, self.form, job.compression) + ";")
            return []
        rows = 0
        if job.totals:
            query, rows = job.totals.compute(duck, statement)
        else:
            query = statement.query()
        kinds = self.source.types
        if self.target is not None:
            written = duck.write(query, self.target.part, self.form, job.compression, kinds)
        elif job.totals and sys.stdout.isatty() and job.target_format is None:
            print(aligned(*duck.table(query)))
            written = 0
        else:
            written = duck.stream(query, sys.stdout.buffer, self.form, job.compression, kinds)
        summary = None if job.quiet else self._summary(statement, rows or written)
        if self.target is not None:
            self.target.commit()
        if summary is None:
            return []
        return [*summary.lines(), *(f"trueup: warning: {text}" for text in summary.warnings())]

    def _summary(self, statement: Statement, rows: int) -> Summary:
        """Count in the output where that is quick, else in the input."""
        tally = Tally(statement, rows)
        if self.target is not None and self.form.name == "parquet" and self.job.totals is None:
            written = parquet([self.target.part])
            kinds = types(self.duck, written, (*statement.types, *statement.plan.written))
            again = dataclasses.replace(statement, source=written, types=kinds, casts={})
            tally = Tally(again, rows, frozenset(statement.plan.written))
        return tally.read(self.duck.ask(tally.sql())[0])
