"""DuckDB relations: SQL beside what is selected already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.frames.columns import not_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.tables.request import Request

_NUMBERS = ("INT", "FLOAT", "DOUBLE", "DECIMAL", "REAL", "NUMERIC", "BIGNUM", "NULL")


def names(frame: Any) -> list[str]:
    """Return the names of the columns."""
    return list(frame.columns)


def fold(name: Any) -> Any:
    """Return a name as it is compared: DuckDB does not tell upper case from lower."""
    return name.casefold() if isinstance(name, str) else name


def check(frame: Any, names: Sequence[str]) -> None:
    """Raise unless these columns hold numbers."""
    kinds = {fold(n): str(t) for n, t in zip(frame.columns, frame.types, strict=True)}
    for name in names:
        kind = kinds[fold(name)]
        plain = kind.partition("(")[0]
        if "[" in kind or plain == "INTERVAL" or not any(n in plain for n in _NUMBERS):
            raise not_numbers(name, kind)


def extend(frame: Any, new: Mapping[str, tuple[Request, str]]) -> Any:
    """Return the relation with columns added, as SQL."""
    added = (f"{w.sql('duckdb', output)} AS {quoted(name)}" for name, (w, output) in new.items())
    return frame.project(", ".join(["*", *added]))


def returned(frame: Any, made: Any, keys: Sequence[str]) -> Any:
    """Return an Arrow table as a relation of the same connection."""
    return frame.query("trueup_cells", "SELECT * FROM made")


def quoted(name: str) -> str:
    """Return a name as an identifier.

    Examples
    --------
    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
