"""Cut the text of a formula into tokens, and ``mean = s/n`` into a name and what it is given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
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

    kind: str
    value: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a formula, the last one of kind ``end``.

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
        kind, end = str(match.lastgroup), match.end()
        raw = match[kind]
        if kind == "word":
            end = word_end(text, end)
            raw = text[position:end]
        token = Token(kind, _value(kind, raw), position, end)
        position = end
        if kind == "space":
            continue
        if kind in ("word", "quoted"):
            _check_name(text, token)
        yield token
    yield Token("end", "", len(text), len(text))


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
        first, *_ = found = list(tokens(name))
    except FormulaError:
        return False
    return len(found) == 2 and first.kind == "word" and first.value == name


def _value(kind: str, raw: str) -> str:
    """Return what a raw token stands for."""
    if kind == "quoted":
        return raw.replace("``", "`")
    return SPELLINGS.get(raw, raw)


def _check_name(text: str, token: Token) -> None:
    """Refuse names no table could have."""
    if token.kind == "word":
        if not token.value.isidentifier():
            hint = "write powers with **, e.g. q**2, or put the name in backticks"
            raise refusal(text, token.start, f"{quoted(token.value)} is not a name", hint)
        return
    bad = [c for c in token.value if unicodedata.category(c) in ("Cc", "Cs")]
    if bad or not token.value.strip():
        problem = f"{quoted(token.value)} is not a name"
        raise refusal(text, token.start, problem, "use letters, digits, spaces and signs in names")


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
