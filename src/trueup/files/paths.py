"""Paths as engines and libraries must be told them: absolute, so that every sign is only a sign.

DuckDB and Arrow take ``~`` at the start of a relative path for the home directory, and ``file:``
or ``s3:`` for a protocol. An absolute path starts with none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from pathlib import Path


def exact(path: Path) -> str:
    """Return a path that names one place, whatever is in it.

    Examples
    --------
    >>> from pathlib import Path
    >>> exact(Path("~/cells.csv")) == f"{Path.cwd()}/~/cells.csv"
    True
    """
    text = str(path.absolute())
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise TrueupError(
            f"the name {str(path)!a} is not UTF-8 text", "rename the file or its folder"
        ) from None
    return text


def folder_keys(file: Path) -> tuple[str, ...]:
    """Return the keys of the folders called key=value that lead to a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> folder_keys(Path("cells/state=01/year=2024/part.csv"))
    ('state', 'year')
    """
    return tuple(part.split("=")[0] for part in file.parts[:-1] if "=" in part[1:])
