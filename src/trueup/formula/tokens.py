"""Cut the text of a formula into tokens, and ``mean = s/n`` into a name and what it is given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from trueup.errors import FormulaError
from trueup.formula.refusal import quoted, refusal

SPELLINGS = {"−": "-", "·": "*", "×": "*", "⋅": "*", "≤": "<=", "≥": ">=", "≠": "!="}
"""Signs that are read as the usual ones."""

HINTS = {
    "^": "write ** for a power, e.g. q**2",
    "=": "give the right-hand side only; == compares, inside where(...)",
    ":": "give the right-hand side only, without : or :=",
    ".": "attributes are not part of a formula; put a name with a dot in backticks, `a.b`",
    "[": "use round brackets; put a name with brackets in backticks",
    "{": "use round brackets; put a name with brackets in backticks",
    "%": "there is no remainder; put a name with % in backticks",
    "&": "join conditions with `and`",
    "|": "join conditions with `or`",
    "~": "negate a condition with `not`",
    "!": "negate a condition with `not`; unequal is !=",
    '"': "put a name with special characters in backticks, `a b`",
    "'": "put a name with special characters in backticks, `a b`",
    "`": "close the name with a second backtick, `a b`; write a backtick inside as two",
    ";": "give one formula",
    "\\": "remove it",
}


class Kind(Enum):
    """What a token is."""

    NUMBER = "number"
    WORD = "word"
    QUOTED = "quoted"
    SIGN = "sign"
    END = "end"


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[^\W\d]\w*)
      | `(?P<quoted>(?:[^`]|``)+)`
      | (?P<sign>\*\*|<=|>=|==|!=|[-+*/(),<>−·×⋅≤≥≠])
    """,
    re.VERBOSE,
)
_ASSIGNMENT = re.compile(r"(?:`((?:[^`]|``)+)`\s*|([^=`<>!]*))=(?!=)(.*)", re.DOTALL)


class Token(NamedTuple):
    """A number, a word, a quoted name, a sign or the end, with its place in the text."""

    kind: Kind
    value: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a formula, the end last.

    Examples
    --------
    >>> [token.value for token in tokens("2*`pay roll` − q")]
    ['2', '*', 'pay roll', '-', 'q', '']
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        name, start, position = str(match.lastgroup), position, match.end()
        if name == "space":
            continue
        if name == "word":
            position = word_end(text, position)
        raw = match[name] if name != "word" else text[start:position]
        value = raw.replace("``", "`") if name == "quoted" else SPELLINGS.get(raw, raw)
        token = Token(Kind(name), value, start, position)
        _check_name(text, token)
        yield token
    yield Token(Kind.END, "", len(text), len(text))


def word_end(text: str, end: int) -> int:
    """Return where a word ends of which letters and digits have been read up to ``end``.

    Vowel signs and accents that follow a letter as characters of their own belong to it.

    Examples
    --------
    >>> word_end("की + 1", 1)
    2
    """
    while end < len(text) and text[end] not in SPELLINGS and f"a{text[end]}".isidentifier():
        end += 1
    return end


def is_word(name: str) -> bool:
    """Tell whether a name reads back as one word, without backticks.

    Examples
    --------
    >>> is_word("größe"), is_word("a·b"), is_word("pay roll")
    (True, False, False)
    """
    try:
        first, *rest = tokens(name)
    except FormulaError:
        return False
    return len(rest) == 1 and first.kind is Kind.WORD and first.value == name


def _check_name(text: str, token: Token) -> None:
    """Refuse names no table could have."""
    hint = ""
    if token.kind is Kind.WORD and not token.value.isidentifier():
        hint = "write powers with **, e.g. q**2, or put the name in backticks"
    elif token.kind is Kind.QUOTED:
        control = any(unicodedata.category(c) in ("Cc", "Cs") for c in token.value)
        if control or not token.value.strip():
            hint = "use letters, digits, spaces and signs in names"
    if hint:
        raise refusal(text, token.start, f"{quoted(token.value)} is not a name", hint)


def _unreadable(text: str, position: int) -> Exception:
    """Return the error for a character that begins no token."""
    character = text[position]
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    hint = HINTS.get(character, "use names, numbers, + - * / **, brackets and functions")
    return refusal(text, position, f"cannot read '{shown}'", hint)


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
