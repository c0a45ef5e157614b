"""What must not be in the rows, and what to say if it is."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence

from trueup.errors import TrueupError
from trueup.microdata.noisy_totals import LARGEST

SPENT = "nothing was released, no privacy was spent"


@dataclasses.dataclass(frozen=True)
class Fault:
    """What must not be in a column, and what to say if it is."""

    column: str
    problem: str
    hint: str


def no_column(name: str, columns: Sequence[str]) -> TrueupError:
    """Return the error about a column that is not there, with one that is near."""
    folded = {c.casefold(): c for c in columns}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    shown = ", ".join(columns[:12]) + (", …" if len(columns) > 12 else "")
    hint = f"did you mean {folded[near[0]]}?" if near else f"it has {shown}"
    return TrueupError(f"the data has no column {name!r}", f"{hint}; {SPENT}")


def no_value(column: str) -> Fault:
    """Return what to say of a missing value."""
    return Fault(
        column,
        f"{column} is missing",
        f"missing='drop' leaves such rows out, missing={{{column!r}: …}} names a value",
    )


def nobody(unit: str) -> Fault:
    """Return what to say of a row of nobody."""
    return Fault(unit, f"{unit} is missing: whose are they?", "missing='drop' leaves such rows out")


def no_number(column: str) -> Fault:
    """Return what to say of text that is no number."""
    return Fault(column, f"{column} is text that is no number", "clean the data first")


def infinite(column: str) -> Fault:
    """Return what to say of an infinite number."""
    return Fault(column, f"{column} is infinite", "clean the data first")


def strange(column: str) -> Fault:
    """Return what to say of a value that is no category."""
    return Fault(
        column, f"{column} is not one of its categories", "name them all, or map others to one"
    )


def wild(column: str) -> Fault:
    """Return what to say of a value that has no place in a per-record sum."""
    return Fault(
        column,
        f"{column} is negative, or above {LARGEST}, where whole totals could overflow",
        "a per-record sum takes non-negative values; measure them in another unit",
    )
