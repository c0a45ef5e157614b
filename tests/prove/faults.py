"""How the page shows what a section has found to be wrong: in bold, which also fails the run."""

from __future__ import annotations

FAULT = "**"


def shown(what: object, wrong: bool) -> str:
    """Return something as it stands on the page."""
    return f"{FAULT}{what}{FAULT}" if wrong else str(what)


def number(count: int) -> str:
    """Return how many faults there are: any is wrong."""
    return shown(count, count > 0)


def expected(answer: bool, wanted: bool) -> str:
    """Return yes or no: wrong if the other was to be expected."""
    return shown("yes" if answer else "no", answer != wanted)
