"""``trueup release``: microdata in, a private table and its sidecar out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.cli.options import add_formats, add_repeatable
from trueup.errors import TrueupError

if TYPE_CHECKING:
    import argparse

    from trueup.cli.plan_file import Asked
    from trueup.microdata.writing import Release

HELP = "Release a private table from microdata: groups, measures, standard errors, a sidecar."

EXAMPLES = """\
measures:
  "n = count"                                 records
  "wage = mean(wage, 0, 120000)"              values are clipped to the bounds
  "sex = share(sex, ['f', 'm'])"              every possible category
  "hours = sum(hours, 0, 60)"                 values are clipped to the bounds
  "pay = per_record(pay, root:3, 10)"         values of any size; the loss depends on the record
  "pay = per_record(pay, log, 1/4, offset=1000)"      the same under the logarithm

plan (--spec plan.toml); options override it:
  epsilon = 1                       # of the whole table
  by = ["state", "industry"]
  unit = "person_id"                # whose privacy, if a person has several rows
  at_most = 2                       # rows of each are used, chosen at random
  size = 500                        # records of a group, roughly: may choose another method
  missing = "drop"                  # or a value, or a table of values by column
  on_error = "drop"                 # leave out rows that cannot be used; "refuse" by default
  keys = "groups.csv"               # a file with the columns of by; or [keys] as below
  [keys]                            # public levels, of which all combinations are taken
  state = ["A", "B"]
  industry = [1, 2, 3]
  [measures]
  n = "count"
  wage = "mean(wage, 0, 120000)"
  [weights]
  wage = 2                          # twice the budget of the others
  [ledger]
  file = "ledger.toml"              # where budgets are written down before noise is drawn
  dataset = "survey-2026"
  cap = 3

examples:
  trueup release people.parquet wages.csv "n = count" "wage = mean(wage, 0, 120000)" \\
      --by state --keys states.csv --epsilon 1
  trueup release people.parquet wages.csv --spec plan.toml --plan
  trueup release people.parquet wages.csv --spec plan.toml
  trueup debias wages.csv again.csv --spec wages.toml         what a reader does
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("input", metavar="IN", help="file, 'pattern', folder, or - for a pipe")
    parser.add_argument("output", metavar="OUT", help="table to write; its sidecar ends in .toml")
    parser.add_argument(
        "formulas", metavar="MEASURE", nargs="*", help='e.g. "wage = mean(wage, 0, 120000)"'
    )
    _add_asked(parser)
    _add_running(parser)


def _add_asked(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the release")
    group.add_argument("--spec", type=Path, metavar="TOML", help="the plan: all of this in a file")
    group.add_argument("--epsilon", metavar="E", help="privacy budget of the whole table")
    group.add_argument("--by", metavar="COLUMNS", help="columns of the groups: state,industry")
    group.add_argument("--keys", metavar="FILE", help="the groups to publish, which are public")
    group.add_argument("--unit", metavar="COLUMN", help="whose privacy; a row by default")
    group.add_argument("--at-most", metavar="M", type=int, help="rows of each unit that are used")
    group.add_argument("--missing", metavar="VALUE", help="drop rows, or a number to stand for it")
    group.add_argument(
        "--on-error", choices=("refuse", "drop"), help="drop rows that cannot be used; refuse"
    )
    add_repeatable(group, "--weight", "NAME=W", "part of the budget for a measure, 1 by default")
    group.add_argument("--size", metavar="N", help="records of a group, roughly; public knowledge")
    group.add_argument("--ledger", type=Path, metavar="TOML", help="write the budget down here")
    group.add_argument("--dataset", metavar="NAME", help="with --ledger: which data set it is")
    group.add_argument("--cap", metavar="E", help="with --ledger: what it may spend in all")


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument(
        "--plan", action="store_true", help="show the errors to expect; IN is not touched"
    )
    group.add_argument("--sizes", metavar="N,N", help="with --plan: group sizes")
    group.add_argument(
        "--seed", type=int, metavar="N", help="only simulate: the table is not private"
    )
    add_formats(group)
    group.add_argument("--force", action="store_true", help="replace OUT and its sidecar")
    group.add_argument(
        "--report", type=Path, metavar="HTML", help="write the report as a page with pictures"
    )
    group.add_argument("--quiet", action="store_true", help="no report on the screen")


def _show_plan(asked: Asked, release: Release) -> int:
    """Print what to expect, and what would be refused."""
    from trueup.microdata.report_text import planned

    print(planned(asked.reading.design, asked.sizes, asked.size))
    try:
        release.check()
    except TrueupError as error:
        print(f"\nAs it is, the release would be refused: {error}")
    return 0


def run(args: argparse.Namespace) -> int:
    """Plan or release; the report goes to standard error."""
    from trueup.cli.plan_file import read_plan
    from trueup.microdata.engines import Files
    from trueup.microdata.writing import Release

    asked = read_plan(args)
    data = Files(args.input, args.source_format, args.delimiter, args.hive)
    release = Release(
        data,
        args.output,
        asked.reading,
        asked.keys,
        args.seed,
        asked.ledger,
        args.target_format,
        args.force,
        args.report,
        asked.files,
    )
    if args.plan:
        return _show_plan(asked, release)
    made = release.write()
    if not args.quiet:
        print(made.report, file=sys.stderr)
        print(
            f"\nThe table is in {args.output}, its sidecar in {release.sidecar}.", file=sys.stderr
        )
    return 0
