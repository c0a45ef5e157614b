"""Options that several commands take: noise, bounds, columns, sidecar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.files.formats import FORMATS

if TYPE_CHECKING:
    import argparse

NOISE_HELP = """\
noise:
  --noise "n=discrete_laplace(2)"       by scale; also laplace, gaussian, discrete_gaussian,
                                        rounded_laplace, rounded_gaussian, uniform(width),
                                        staircase(epsilon, sensitivity), student_t(df, scale),
                                        moments([m1, m2, ...]), scipy(name, shapes..., scale=2)
  --noise "s=laplace(epsilon=0.5, sensitivity=3)"      by privacy budget
  --noise "g=gaussian(rho=1/8)"                        or epsilon=1, delta=1e-6
  --noise "t=laplace(1) + laplace(2)"                  the noise of a sum
  --noise "laplace(2)"                                 of every statistic without one of its own

bounds on the true value:
  --domain "n>=1"    --domain "1<=n<=500"    --domain "n in [1, 500]"
  --domain "0 <= s <= n"    --domain "a + b >= 1"    --domain "s <= 300*n"    between statistics

cells that may be empty (integer noise):
  --empty 0          what every quotient is where its denominator is 0; --empty mean=0 for one;
                     with --domain "n>=0", or counts below 0 are taken to be possible

less noise for some bias, which is certified (needs trueup[near]):
  --max-bias 0.2     of every quotient, relative to it; --max-bias mean=0.2 for one
  --cells 400        as much bias as makes the sum of 400 cells most accurate
"""

SPEC_HELP = """\
sidecar (--spec release.toml); options override it:
  [noise.n]
  family = "discrete_laplace"       # as above, with its parameters
  scale = 2                         # or epsilon = 0.5 and sensitivity = 1; rho; delta
  bounds = [1, inf]                 # of the true value
  column = "emp"                    # if the column is not called n
  scale_column = "emp_scale"        # if each row has a noise scale of its own
  [noise]
  s = "laplace(2)"                  # short form
  [estimate]
  mean = "s/n"                      # used when the command line has no formula
  [empty]
  mean = 0                          # what mean is where its denominator is 0; or empty = 0
  [max_bias]
  mean = 0.2                        # bias allowed, relative; or [cells] and mean = 400
conditions = ["0 <= s <= n"]        # between statistics; before the first table
clamped = true                      # values were moved to a bound before they were published
"""


def add_repeatable(
    group: argparse._ActionsContainer, option: str, metavar: str, text: str, **more: Any
) -> None:
    """Add an option that may be given several times, and is a list."""
    group.add_argument(
        option, action="append", default=[], metavar=metavar, help=f"{text}; repeatable", **more
    )


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a release."""
    group = parser.add_argument_group("the release")
    for option, metavar, text in (
        ("--noise", "NAME=LAW", "noise of a statistic, e.g. 's=laplace(2)'"),
        ("--domain", "BOUND", "what is known of a true value, e.g. 'n>=1'"),
        (
            *("--empty", "VALUE"),
            "what a quotient is where its denominator is 0, or 'mean=0' for one; it is no bound: "
            "say --domain 'n>=0', too, of a count",
        ),
        ("--max-bias", "BIAS", "bias allowed, relative to the result, or 'mean=0.2' for one"),
        ("--cells", "COUNT", "choose the bias for sums of so many cells, or 'mean=400' for one"),
    ):
        add_repeatable(group, option, metavar, text)
    group.add_argument(
        "--clamped", action="store_true", help="values were moved to a bound, as max(x, 0)"
    )
    group.add_argument("--spec", type=Path, metavar="TOML", help="sidecar that describes the noise")


def add_formats(group: argparse._ArgumentGroup) -> None:
    """Add the options that say how IN is read and OUT is written."""
    add_source(group)
    group.add_argument(
        "--to", dest="target_format", choices=FORMATS, help="format of OUT, if not its suffix"
    )


def add_numbers(group: argparse._ArgumentGroup) -> None:
    """Add the options that say how numbers are written in a text file IN."""
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        help="before the decimals in a text file IN; new columns of OUT have points, and commas "
        "between the columns",
    )
    missing = "text that stands for a missing number, e.g. NA"
    add_repeatable(group, "--null", "TEXT", missing, dest="nulls")


def add_source(group: argparse._ArgumentGroup) -> None:
    """Add the options that say how IN is read."""
    group.add_argument(
        "--from", dest="source_format", choices=FORMATS, help="format of IN, if not its suffix"
    )
    group.add_argument("--delimiter", metavar="SIGN", help="between the fields of a text file IN")
    group.add_argument(
        "--hive", action="store_true", help="folders called key=value are columns of text"
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which columns hold what."""
    group = parser.add_argument_group("columns")
    column = "the column of a statistic, if it has another name; in `…` to the letter"
    add_repeatable(group, "--column", "NAME=COLUMN", column)
    scale = "a column with the noise scale of each row"
    add_repeatable(group, "--scale", "NAME=COLUMN", scale)
