"""Refuse a formula and point at the place."""

from __future__ import annotations

from trueup.errors import FormulaError

WINDOW = 60


def refusal(text: str, position: int, problem: str, hint: str) -> FormulaError:
    """Return the error: the problem, the text around it, a caret under the place (from 0).

    Examples
    --------
    >>> print(refusal("1 + q!", 5, "cannot read '!'", "remove it"))
    cannot read '!' at character 6
      1 + q!
           ^
    Hint: remove it
    """
    start = max(0, min(position, len(text)) - WINDOW // 2)
    shown = text[start : start + WINDOW]
    before = "…" if start else ""
    after = "…" if start + WINDOW < len(text) else ""
    line = before + "".join(map(_visible, shown)) + after
    indent = " " * (len(before) + position - start)
    message = f"{problem} at character {position + 1}\n  {line}\n  {indent}^"
    return FormulaError(message, hint)


def quoted(text: str, length: int = 40) -> str:
    """Return text as shown in a message: short, on one line, in quotes.

    Examples
    --------
    >>> quoted("q * " * 100, 12)
    "'q * q * q *…'"
    """
    short = text if len(text) <= length else text[: length - 1] + "…"
    return f"'{''.join(map(_visible, short))}'"


def _visible(character: str) -> str:
    """Return the character, or a stand-in where it cannot be shown on a line."""
    return character if character.isprintable() else "�"
