"""The command ``trueup``: one file in this folder for each subcommand.

::

    debias, report, release, explain, paper, explore, completion     the subcommands
    sidecar, plan_file, options                                      what their options say
    hints                                     the library's, in the words of options

A subcommand is a module named in ``COMMANDS`` that has

    HELP            one line for the overview
    EXAMPLES        lines shown below its own help
    configure(p)    add its arguments to an argparse parser
    run(args)       do the work and return the exit code

Its module level imports only what is cheap: the parser needs every subcommand's arguments, and
``trueup --help`` must answer at once. Numerical libraries are imported inside ``run``.

Exit codes: 0 done; 1 refused, with the reason and a hint on standard error; 2 wrong usage;
130 interrupted; 141 the reader of our output went away.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from trueup._version import __version__
from trueup.errors import BoundWarning, SelectionWarning, TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMANDS = ("debias", "report", "release", "explain", "explore", "paper", "completion")

DONE, REFUSED, USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

_EXAMPLES = """\
examples:
  trueup debias cells.csv out.csv "mean = s/n" --noise "s=laplace(2)" \\
      --noise "n=discrete_laplace(2)" --domain "n>=1"
  trueup report cells.csv "mean = s/n" --spec release.toml      which estimator to take
  trueup release people.csv table.csv --spec plan.toml
  trueup explain "1/n" --noise "n=laplace(2)" --domain "n>=1"
  trueup explore                   a local web page for all of this
  trueup paper                     the paper's figures and numbers, recomputed, in ./trueup-paper
  trueup debias --help             what a command takes
"""


_ELSEWHERE = {
    "total": "trueup debias … --total",
    "ratio": "trueup debias … --ratio",
    "plan": "trueup release … --plan",
}
"""What is no command, but an option of one."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors end with a hint, as all of ours do."""

    def error(self, message: str, hint: str = "") -> NoReturn:
        """Show the usage, what was wrong, and a hint."""
        self.print_usage(sys.stderr)
        hint = hint or f"{self.prog} --help shows what it takes"
        self.exit(USAGE, f"{self.prog}: error: {message}\nHint: {hint}\n")


class WrongUsage(TrueupError):
    """The arguments do not go together."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    trueup ...
    0
    """
    _never_fail_to_print()
    try:
        with _warnings_told():
            code = _run(argv)
        sys.stdout.flush()
    except WrongUsage as error:
        _refuse(str(error))
        return USAGE
    except TrueupError as error:
        from trueup.cli.hints import in_shell  # not above: it imports the noise families

        return _refuse(in_shell(error))
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        hint = "Hint: check the path, its permissions and the space left"
        return _refuse(f"{where}{error.strerror or error}\n{hint}")
    except Exception as error:
        if os.environ.get("TRUEUP_DEBUG"):
            raise
        return _refuse(
            f"this should not happen: {type(error).__name__}: {error}\n"
            "Hint: please report it; TRUEUP_DEBUG=1 shows where it comes from"
        )
    except KeyboardInterrupt:
        print("trueup: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


def build_parser() -> _Parser:
    """Return the parser with every subcommand."""
    parser = _Parser(
        prog="trueup",
        description="Unbiased numbers from differentially private releases, and how sure they are.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"trueup {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name in COMMANDS:
        module = import_module(f"trueup.cli.{name}")
        sub = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(sub)
        sub.set_defaults(run=module.run, parser=sub)
    return parser


def _run(argv: Sequence[str] | None) -> int:
    """Parse and run; argparse's own exits become exit codes."""
    parser, given = build_parser(), sys.argv[1:] if argv is None else argv
    try:
        if given and given[0] not in COMMANDS and not given[0].startswith("-"):
            parser.error(f"there is no command {given[0]!r}", _meant(given[0]))
        args, rest = parser.parse_known_args(_joined(given))
        if rest and (not hasattr(args, "formulas") or any(r.startswith("-") for r in rest)):
            getattr(args, "parser", parser).error(f"unrecognized arguments: {' '.join(rest)}")
        if rest:  # formulas after an option
            args.formulas += rest
    except SystemExit as stop:  # --help, --version, wrong usage
        return stop.code if isinstance(stop.code, int) else USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    code: int = args.run(args)
    return code


def _meant(word: str) -> str:
    """Return a hint at the command that a word may stand for.

    Examples
    --------
    >>> _meant("debais"), _meant("total")
    ('did you mean trueup debias?', 'did you mean trueup debias … --total?')
    """
    near = difflib.get_close_matches(word.lower(), [*COMMANDS, *_ELSEWHERE], 1)
    if near:
        return f"did you mean {_ELSEWHERE.get(near[0], f'trueup {near[0]}')}?"
    return f"the commands are {', '.join(COMMANDS)}"


def _joined(argv: Sequence[str]) -> list[str]:
    """Return the arguments with bounds such as -1<=n<=9 tied to --domain: they are no options.

    Examples
    --------
    >>> _joined(["explain", "n", "--domain", "-1<=n<=9"])
    ['explain', 'n', '--domain=-1<=n<=9']
    """
    found: list[str] = []
    for text in argv:
        if found and found[-1] == "--domain" and text[:1] == "-" and text[1:2] in {*"0123456789."}:
            found[-1] += f"={text}"
        else:
            found.append(text)
    return found


@contextlib.contextmanager
def _warnings_told() -> Iterator[None]:
    """Print warnings of the library, in the words of the command line."""
    show = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not issubclass(category, (BoundWarning, SelectionWarning)):
            return show(message, category, *rest, **more)
        from trueup.cli.hints import told  # not above: it imports the noise families

        print(f"trueup: warning: {told(str(message))}", file=sys.stderr)
        return None

    with warnings.catch_warnings():
        for kind in (BoundWarning, SelectionWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = tell
        yield


def _refuse(message: str) -> int:
    """Say what was wrong and what to do about it."""
    with contextlib.suppress(BrokenPipeError):
        print(f"trueup: {message}", file=sys.stderr)
    return REFUSED


def _never_fail_to_print() -> None:
    """Let a terminal that lacks ε show '?' instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Point standard output at nothing, so that closing it at exit stays quiet."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
