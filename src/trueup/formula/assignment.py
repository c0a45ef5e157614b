"""A name and what it is given: ``mean = s/n``, in options and in lines of the page."""

from __future__ import annotations

import re

_ASSIGNMENT = re.compile(r"(?:`((?:[^`]|``)+)`\s*|([^=`<>!]*))=(?!=)(.*)", re.DOTALL)


def assignment(text: str) -> tuple[str | None, str]:
    """Return the name and what it is given, None for a text without a name.

    Examples
    --------
    >>> assignment("mean = s/n"), assignment("s/n"), assignment("`a b`=where(n == 1, 0, 1)")
    (('mean', 's/n'), (None, 's/n'), ('a b', 'where(n == 1, 0, 1)'))
    """
    name, value = split(text)
    return name, value.strip()


def split(text: str) -> tuple[str | None, str]:
    """Return the name and what it is given, with the blanks around that."""
    match = _ASSIGNMENT.fullmatch(text.lstrip())
    if match is None:
        return None, text
    return match[1].replace("``", "`") if match[1] else match[2].rstrip(), match[3]
