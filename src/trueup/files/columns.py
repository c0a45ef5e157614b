"""Which column of a file an option names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.files.paths import folder_keys
from trueup.formula.refusal import quoted

if TYPE_CHECKING:
    from trueup.files.sources import Source


def found(column: str, option: str, source: Source) -> str:
    """Return the column of a source that an option names; refuse one that is not there."""
    letters = getattr(column, "letters", column)
    same = [name for name in dict.fromkeys((letters, str(column))) if name in source.columns]
    flag, _, name = option.partition(" ")
    if len(same) > 1:
        raise TrueupError(
            f"{source.name} has the columns {' and '.join(map(repr, same))}: {flag} "
            f"{name + letters!r} does not say which",
            f"in backticks it is to the letter: {flag} '{name}`{letters}`'",
        )
    if same:
        return same[0]
    shown = ", ".join(source.columns[:12]) + (", …" if len(source.columns) > 12 else "")
    use = "" if name else f" for {flag}"
    raise TrueupError(
        f"{source.name} has no column {quoted(column)}{use}; it has {shown}",
        _likely(column, option, source),
    )


def _likely(column: str, option: str, source: Source) -> str:
    """Return what to do about a column that is not there."""
    if column in {key for file in source.files for key in folder_keys(file)}:
        return f"add --hive: there are folders called {column}=…"
    folded = {name.lower(): name for name in source.columns}
    near = [folded[c] for c in difflib.get_close_matches(column.lower(), folded, 1)]
    return f"did you mean {option}{near[0]}?" if near else f"say which column it is: {option}…"
