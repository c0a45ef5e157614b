"""``trueup explore``: the local web page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.errors import TrueupError

if TYPE_CHECKING:
    import argparse

HELP = "Open a local web page: type a formula, see the estimator, debias a file, plan a release."

EXAMPLES = """\
The page runs on this machine and asks nothing of the network. Formulas, noise and bounds live in
its address, so that a view can be shared; uploaded files are held in memory while it is open.

examples:
  trueup explore
  trueup explore --port 9000 --no-browser
  trueup explore --max-upload 2000
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--port", type=int, help="which port (default: 8765, or a free one if that is taken)"
    )
    parser.add_argument(
        "--max-upload", type=int, default=256, metavar="MB", help="largest upload (default: 256)"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    from trueup.explorer.serve import serve

    if args.max_upload < 1:
        raise TrueupError(
            f"--max-upload must be at least 1 (MB), got {args.max_upload}", "e.g. --max-upload 256"
        )
    serve(args.port, upload=args.max_upload, browse=not args.no_browser)
    return 0
