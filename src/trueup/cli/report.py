"""``trueup report``: what errors to expect of a table's estimates, and which estimator to take."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.cli.options import (
    NOISE_HELP,
    SPEC_HELP,
    add_columns,
    add_numbers,
    add_release,
    add_source,
)

if TYPE_CHECKING:
    import argparse

HELP = "Show the errors to expect of a table's estimates, by size, and which estimator to take."

EXAMPLES = f"""\
Prints, for every class of cell sizes, the expected error of the unbiased, the nearly unbiased, the
clipped and the naive estimate (cells with a denominator of 0 or less left out), of one cell and of
the average of the class; from how many cells on the unbiased average or total is closer than the
clipped one; and how many cells are too noisy to use alone. --cells says how many cells will be
added up, say those of a state (default: all).

{NOISE_HELP}
{SPEC_HELP}
examples:
  trueup report cells.csv "mean = s/n" --noise "s=laplace(2)" \\
      --noise "n=discrete_laplace(2)" --domain "n>=1"
  trueup report 'cells/*.parquet' "pay_per_emp = pay/emp" --spec release.toml --cells 400
  trueup report cells.csv "mean = s/n" --spec release.toml --plot report.png --table report.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("input", metavar="IN", help="file, 'pattern', folder, or - for a pipe")
    parser.add_argument(
        "formulas", metavar="FORMULA", nargs="*", help='what to estimate, e.g. "mean = s/n"'
    )
    add_release(parser)
    add_columns(parser)
    group = parser.add_argument_group("files")
    add_source(group)
    add_numbers(group)
    group.add_argument("--table", type=Path, metavar="CSV", help="write the figures to a file, too")
    group.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the first estimate: .png, .svg or .pdf"
    )
    group.add_argument("--force", action="store_true", help="replace these files if they exist")


def run(args: argparse.Namespace) -> int:
    """Read, count, print."""
    from trueup.cli import WrongUsage
    from trueup.cli.hints import reworded
    from trueup.cli.sidecar import make_job, read_release
    from trueup.files.job import report_job

    release = read_release(args, args.formulas)
    if not release.formulas:
        raise WrongUsage("there is no formula", 'give one after IN, e.g. "mean = s/n"')
    _check(args)
    cells = release.cells.pop("", None)  # of the total: the estimator may be any
    job = make_job(release, args, release.estimators, output="-", outputs=("value",))
    found = report_job(job, None if cells is None else float(cells))
    own_words = [replace(d, notes=tuple(map(reworded, d.notes))) for d in found.decisions]
    found = replace(found, decisions=tuple(own_words))
    print(found)
    if args.table is not None:
        with args.table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(found.rows[0]))
            writer.writeheader()
            writer.writerows(found.rows)
    if args.plot is not None:
        found.plot()[0].figure.savefig(args.plot, dpi=150)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before anything is computed."""
    from trueup.errors import TrueupError

    for path in (args.table, args.plot):
        if path is not None and path.exists() and not args.force:
            raise TrueupError(f"{path} exists", "add --force to replace it")
    if args.plot is None:
        return
    from trueup.plots.style import require

    require()
    if args.plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise TrueupError(
            f"--plot {args.plot} is no kind of picture that we draw",
            "end its name in .png, .svg or .pdf",
        )
