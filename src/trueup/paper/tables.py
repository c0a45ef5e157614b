"""Plain text tables, at most 100 columns wide."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 100


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Lay out rows under a head; the first ``left`` columns are flush left, the others right.

    Examples
    --------
    >>> print(table(["n", "sd"], [["1", "6.00"], ["20", "0.28"]]))
      n     sd
      1   6.00
      20  0.28
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return ("  " + "  ".join(padded)).rstrip()

    return "\n".join(map(line, [head, *rows]))


def paragraph(text: str) -> str:
    """Wrap a paragraph to the width of the page, not at an equals sign."""
    tied = " ".join(text.split()).replace(" = ", "\u00a0=\u00a0")
    return "\n".join(wrap(tied, WIDTH, break_long_words=False)).replace("\u00a0", " ")


def title(text: str) -> str:
    """Underline a title."""
    return f"{text}\n{'-' * len(text)}"


def digits(value: float, figures: int = 4) -> str:
    """Write a number with so many significant figures, a dash if there is none.

    Examples
    --------
    >>> digits(10.5525), digits(0.0520), digits(633739.99), digits(math.nan)
    ('10.55', '0.05200', '633,740', '–')
    """
    if math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, figures - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"
