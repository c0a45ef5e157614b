"""What options say beside formulas and noise: names, numbers. Nothing is evaluated."""

from __future__ import annotations

import ast
import re

from trueup.errors import TrueupError, quoted
from trueup.noise.reading import Number, number_of, parsed

_ASSIGNMENT = re.compile(r"(?:`((?:[^`]|``)+)`\s*|([^=`<>!]*))=(?!=)(.*)", re.DOTALL)
_BACKTICKED = re.compile(r"`((?:[^`]|``)+)`", re.DOTALL)
_LISTED = re.compile(r"\s*`(?:[^`]|``)+`\s*(?=,|$)|[^,]+", re.DOTALL)


class Name(str):
    """The name of a column as an option gives it: without blanks around it, unless in backticks.

    ``letters`` has the blanks: where a table has both, it cannot be told which one is meant.

    Examples
    --------
    >>> Name(" emp "), Name(" emp ").letters, Name("` emp`"), Name("` emp`").letters
    ('emp', ' emp ', ' emp', ' emp')
    """

    letters: str

    def __new__(cls, text: str) -> Name:
        """Read the name from the text of an option."""
        match = _BACKTICKED.fullmatch(text.strip())
        self = super().__new__(cls, text.strip() if match is None else match[1].replace("``", "`"))
        self.letters = text if match is None else str(self)
        return self


def names(text: str) -> tuple[Name, ...]:
    """Return names between commas; one in backticks may have commas and blanks of its own.

    Examples
    --------
    >>> names("state, `a, b`,")
    ('state', 'a, b')
    """
    return tuple(Name(part[0]) for part in _LISTED.finditer(text) if part[0].strip())


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


def read_numbers(text: str) -> list[Number]:
    """Return numbers separated by commas.

    Examples
    --------
    >>> read_numbers("1, 5/2, -3")
    [1, Fraction(5, 2), -3]
    """
    return _numbers(text, "give numbers separated by commas, e.g. 1,5,20")


def read_number(text: str) -> Number:
    """Return one number.

    Examples
    --------
    >>> read_number("5/2")
    Fraction(5, 2)
    """
    hint = "give one number, with a point before its decimals, e.g. 2 or 0.5"
    found = _numbers(text, hint)
    if len(found) == 1:
        return found[0]
    raise TrueupError(f"{quoted(text)} is {len(found)} numbers", hint)


def _numbers(text: str, hint: str) -> list[Number]:
    try:
        node = parsed(text)
        items = node.elts if isinstance(node, ast.Tuple) else [node]
        return [number_of(item) for item in items]
    except TrueupError as error:
        raise TrueupError(f"cannot read {quoted(text)}: {error.message}", hint) from None
