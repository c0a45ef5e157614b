"""``trueup debias``: a noisy table in, the same table with unbiased columns out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trueup.cli.options import (
    NOISE_HELP,
    SPEC_HELP,
    add_columns,
    add_formats,
    add_numbers,
    add_release,
)

if TYPE_CHECKING:
    import argparse

    from trueup.files.job import Job
    from trueup.tables.spec import Spec

HELP = "Add unbiased columns, with standard errors, to a table in a file."

EXAMPLES = f"""\
Reads and writes CSV, TSV (also .gz, .zst), Parquet and Arrow files; reads patterns ('2024/*.csv')
and folders, with --hive also the names of Hive's folders (state=01/part.csv) as columns; - is a
pipe, named pipes and /dev/stdin are read too. All columns and the order of the rows are kept, NAME
and NAME_stderr are added, missing numbers stay missing; a column whose type the output cannot hold
is refused. The output appears under its name when it is complete, or not at all.

{NOISE_HELP}
{SPEC_HELP}
examples:
  trueup debias cells.csv out.csv "mean = s/n" --noise "s=laplace(2)" \\
      --noise "n=discrete_laplace(2)" --domain "n>=1"
  trueup debias 'cells/*.parquet' out.parquet "pay_per_emp = pay/emp" "size = emp/est" \\
      --spec release.toml
  trueup debias cells.parquet - "mean = s/n" --spec release.toml --total --by state
  zcat cells.csv.gz | trueup debias - - "mean = s/n" --spec release.toml | head
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("input", metavar="IN", help="file, 'pattern', folder, or - for a pipe")
    parser.add_argument("output", metavar="OUT", help="file to write, or - for a pipe")
    parser.add_argument(
        "formulas", metavar="FORMULA", nargs="*", help='what to estimate, e.g. "mean = s/n"'
    )
    add_release(parser)
    add_columns(parser)
    _add_results(parser)
    _add_files(parser)
    _add_running(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("results")
    group.add_argument("--no-stderr", action="store_true", help="leave out NAME_stderr")
    group.add_argument("--variance", action="store_true", help="add NAME_variance, unbiased")
    group.add_argument(
        "--total", action="store_true", help="write totals with standard errors, not the rows"
    )
    group.add_argument(
        "--ratio", action="store_true", help="write ratios of sums: s/n becomes Σs/Σn, unbiased"
    )
    group.add_argument(
        "--interval", metavar="LEVEL", type=float, help="e.g. 0.95: add NAME_low, NAME_high"
    )
    group.add_argument(
        "--by",
        metavar="COLUMNS",
        help="with --total, --ratio: one for each group, e.g. state,industry",
    )
    group.add_argument(
        "--weights", metavar="COLUMN", help="with --total: weigh the rows by a column"
    )
    group.add_argument(
        "--average", action="store_true", help="with --total: (weighted) averages in place of sums"
    )
    group.add_argument(
        "--nonempty", action="store_true", help="with --total: averages of the cells not empty"
    )
    group.add_argument(
        "--skip-missing",
        action="store_true",
        help="with --total, --ratio: leave out rows without a number",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files")
    add_formats(group)
    add_numbers(group)
    group.add_argument(
        "--text",
        metavar="COLUMNS",
        default="",
        help="from text to Parquet or Arrow: columns that stay text, e.g. zip,code",
    )
    group.add_argument(
        "--compression",
        choices=("snappy", "zstd", "lz4", "gzip", "none"),
        help="of the columns of a Parquet (default: snappy) or Arrow (zstd, lz4) file",
    )
    group.add_argument("--force", action="store_true", help="replace OUT if it exists")


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument(
        "--memory", metavar="SIZE", help="what DuckDB may take (default: 512MB, more if IN is wide)"
    )
    group.add_argument("--quiet", action="store_true", help="no summary")


def run(args: argparse.Namespace) -> int:
    """Read, debias, write; the summary goes to standard error."""
    from trueup.cli import WrongUsage
    from trueup.cli.hints import told
    from trueup.cli.sidecar import read_release
    from trueup.files.job import run_job

    release = read_release(args, args.formulas)
    release.check_table(args.input)
    if not release.formulas:
        raise WrongUsage("there is no formula", 'give one after OUT, e.g. "mean = s/n"')
    others = ("total", "weights", "average", "nonempty", "variance", "max_bias", "cells")
    if args.ratio and (given := [name for name in others if getattr(args, name)]):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise WrongUsage(
            f"{named} and --ratio do not go together",
            f"leave out {named}, or --ratio",
        )
    if args.interval is not None and args.total:
        raise WrongUsage("--interval does not go with --total", "use --ratio, or leave it out")
    if not (args.total or args.ratio) and (
        args.by or args.weights or args.average or args.nonempty or args.skip_missing
    ):
        raise WrongUsage(
            "--by and --skip-missing go with --total or --ratio, --weights and --average with "
            "--total",
            "add --total, or --ratio",
        )
    job = read_job(args, release)
    lines = [told(line) for line in run_job(job)]
    print("\n".join(lines), file=sys.stderr, end="\n" * bool(lines))
    return 0


def read_job(args: argparse.Namespace, release: Spec) -> Job:
    """Return the job that the arguments describe."""
    from trueup.adapters.notation import Name, names
    from trueup.cli.sidecar import make_job
    from trueup.inverse.projection import ENDS
    from trueup.tables.request import level_of
    from trueup.tables.totals import Totals

    estimators = release.ratios() if args.ratio else release.estimators
    totals = None
    if args.total:
        weights = None if args.weights is None else Name(args.weights)
        if weights is not None:
            release.check_weights(weights, {s for e in estimators.values() for s in e.statistics})
        kind = args.average or args.nonempty, args.nonempty
        totals = Totals(names(args.by or ""), weights, *kind, args.skip_missing)
    level = level_of(args.interval)
    if args.ratio:
        totals = Totals(names(args.by or ""), skip=args.skip_missing, ratio=True, level=level)
    return make_job(
        release,
        args,
        estimators,
        outputs=(
            *("value", *["stderr"][args.no_stderr :], *["variance"] * args.variance),
            *(ENDS if level is not None and not args.ratio else ()),
        ),
        level=level or 0.95,
        keep_text=names(args.text),
        totals=totals,
    )
