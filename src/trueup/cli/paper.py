"""``trueup paper``: the paper's figures and numbers, recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "Recompute the paper's figures and numbers, side by side with what it prints."

EXAMPLES = """\
It writes Figures 1 to 3 (PNG and CSV) and the tables (CSV), prints every published number beside
the exact one, and says where and why they differ; report.txt keeps what is printed.

examples:
  trueup paper
  trueup paper --out figures --force
  trueup paper --no-plots
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("trueup-paper"),
        metavar="DIR",
        help="folder for figures, tables and report, made if absent (default: ./trueup-paper)",
    )
    parser.add_argument(
        "--no-plots", action="store_true", help="numbers and CSV only; needs no matplotlib"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files of an earlier run")


def run(args: argparse.Namespace) -> int:
    """Compute, write, print."""
    from trueup.paper import output, reproduce
    from trueup.paper.comparison import paragraph, report
    from trueup.plots import paper_figures, style

    plots = not args.no_plots
    if plots:
        style.require()
    output.prepare(args.out, output.names(plots), args.force)
    results = reproduce()
    told = report(results)
    written = output.write(args.out, results, told, paper_figures.draw(results) if plots else {})
    print(told)
    print("\n" + paragraph(f"Written to {args.out}: {', '.join(written)}"))
    return 0
