"""How large a formula may be: every limit in one place.

They keep any text, hostile ones included, far below half a second, and leave room for every
formula a person would write.
"""

from __future__ import annotations

from typing import Final

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
