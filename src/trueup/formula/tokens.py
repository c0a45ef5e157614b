"""Cut the text of a formula into tokens, and ``mean = s/n`` into a name and what it is given."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from trueup.errors import FormulaError
from trueup.formula.operations import CALLABLE, RESERVED
from trueup.formula.refusal import quoted, refusal

SPELLINGS = {"−": "-", "·": "*", "×": "*", "⋅": "*", "≤": "<=", "≥": ">=", "≠": "!="}
"""Signs that are read as the usual ones."""

HINTS = {
    "^": "write ** for a power, e.g. q**2",
    "=": "give the right-hand side only; == compares, inside where(...)",
    ":": "give the right-hand side only, without : or :=",
    ".": "attributes are not part of a formula; put a name with a dot in backticks, `a.b`",
    "&": "join conditions with `and`",
    "|": "join conditions with `or`",
    "~": "negate a condition with `not`",
    "!": "negate a condition with `not`; unequal is !=",
    "`": "close the name with a second backtick, `a b`; write a backtick inside as two",
    **dict.fromkeys("[{", "use round brackets; put a name with brackets in backticks"),
    **dict.fromkeys("%\"'", "put a name with special characters in backticks, `a b`"),
}

_ELSEWHERE = {"ln": "log", "greatest": "max", "least": "min", "if": "where", "ifelse": "where"}
"""What other languages call our functions, where that is spelt otherwise."""


class Kind(Enum):
    """What a token is; the words and, or, not are signs."""

    NUMBER = "number"
    NAME = "name"
    CALL = "call"
    SIGN = "sign"
    END = "end"


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[^\W\d]\w*)
      | `(?P<name>(?:[^`]|``)+)`
      | (?P<sign>\*\*|<=|>=|==|!=|[-+*/(),<>−·×⋅≤≥≠])
    """,
    re.VERBOSE,
)
_BRACKET = re.compile(r"\s*\(")
_ASSIGNMENT = re.compile(r"(?:`((?:[^`]|``)+)`\s*|([^=`<>!]*))=(?!=)(.*)", re.DOTALL)


class Token(NamedTuple):
    """A number, a name, a function, a sign or the end, with its place in the text."""

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
        kind, start, position = str(match.lastgroup), position, match.end()
        if kind == "word":
            position = word_end(text, position)
            yield _word(text, start, position)
        elif kind == "name":
            name = match[kind].replace("``", "`")
            control = any(unicodedata.category(c) in ("Cc", "Cs") for c in name)
            if control or not name.strip():
                raise _no_name(text, start, name, "use letters, digits, spaces and signs in names")
            yield Token(Kind.NAME, name, start, position)
        elif kind != "space":
            yield Token(Kind(kind), SPELLINGS.get(match[0], match[0]), start, position)
    yield Token(Kind.END, "", len(text), len(text))


def _word(text: str, start: int, end: int) -> Token:
    """Return a word as what it is: a sign, pi, a function or a name."""
    word = text[start:end]
    if word in ("and", "or", "not"):
        return Token(Kind.SIGN, word, start, end)
    if word == "pi":
        return Token(Kind.NUMBER, word, start, end)
    called = _BRACKET.match(text, end)
    if called and word not in CALLABLE:
        raise _unknown(text, start, word)
    if word in RESERVED and not called:
        problem = f"{quoted(word)} is a word of the grammar, not a variable"
        hint = f"put the name in backticks, `{word}`, if it is meant as a variable"
        raise refusal(text, start, problem, hint)
    if not word.isidentifier():
        hint = "write powers with **, e.g. q**2, or put the name in backticks"
        raise _no_name(text, start, word, hint)
    return Token(Kind.CALL if called else Kind.NAME, word, start, end)


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
    >>> is_word("größe"), is_word("a·b"), is_word("pay roll"), is_word("max")
    (True, False, False, False)
    """
    try:
        return next(tokens(name)) == Token(Kind.NAME, name, 0, len(name))
    except FormulaError:
        return False


def _no_name(text: str, start: int, name: str, hint: str) -> FormulaError:
    return refusal(text, start, f"{quoted(name)} is not a name", hint)


def _unknown(text: str, start: int, word: str) -> FormulaError:
    """Return the error for a function outside the grammar."""
    close = [_ELSEWHERE.get(word.lower()), *difflib.get_close_matches(word.lower(), CALLABLE, 1)]
    meant = next((name for name in close if name), None)
    known = f"the functions are {', '.join(CALLABLE)}; write * to multiply"
    hint = f"did you mean {meant}? Otherwise, {known}" if meant else known
    return refusal(text, start, f"unknown function {quoted(word)}", hint)


def _unreadable(text: str, position: int) -> FormulaError:
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
