"""How large a formula may be: every limit in one place.

They keep any text, hostile ones included, far below half a second, and leave room for every
formula a person would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import sympy

CHARACTERS: Final = 2_000
"""Characters of the text."""

DEPTH: Final = 60
"""Brackets, signs, powers and calls inside one another."""

CALLS: Final = 12
"""Function calls inside one another, `where` not counted."""

NODES: Final = 400
"""Names, numbers, operators and calls together."""

DIGITS: Final = 40
"""Digits of a number literal."""

DECIMAL_EXPONENT: Final = 300
"""The exponent of a number literal, 1e300."""

EXPONENT: Final = 100
"""A constant exponent, q**100."""

DEGREE: Final = 200
"""The degree that powers and products build up, (q**50)**4."""

CONSTANT_DIGITS: Final = 400
"""Digits of an exact constant, numerator and denominator each: 3**100 has 48."""

CONSTANT_NODES: Final = 16
"""Parts of an exact irrational constant, sqrt(2)/pi; a larger one becomes a float."""

ROOT_DIGITS: Final = 60
"""Digits of an exact constant under a root."""

ARGUMENTS: Final = 8
"""Arguments of one min or max, min(min(a, b), c) counting as three."""

EXTREMA: Final = 12
"""Calls of min and max in one formula."""

JOINED: Final = 16
"""Comparisons joined by `and`, `or`, `not` in one formula."""


def parts(expr: sympy.Basic) -> Iterator[sympy.Basic]:
    """Yield every part of an expression, without recursion."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(part.args)


def parts_of(expr: sympy.Basic, most: int) -> int:
    """Return how many parts an expression has; more than so many count as one more.

    Examples
    --------
    >>> parts_of(sympy.Symbol("x") + 1, 100), parts_of(sympy.Symbol("x") + 1, 1)
    (3, 2)
    """
    return sum(1 for _ in islice(parts(expr), most + 1))


def is_long(expr: sympy.Basic, most: int) -> bool:
    """Whether an expression has more than so many parts, without counting them all."""
    return parts_of(expr, most) > most
