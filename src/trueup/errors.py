"""Errors: what was wrong, with the value, then one line ``Hint:``.

::

    ValueError
    └── TrueupError
        ├── FormulaError            the text is not a formula we read
        ├── NoUnbiasedEstimator     no unbiased estimator exists, or none was found
        ├── InfiniteVariance        the estimator exists, its variance does not
        └── MissingExtra            an optional part is not installed

    UserWarning
    ├── BoundWarning                a bound is contradicted by a table, or has no effect
    └── SelectionWarning            rows were dropped by their published values, or clamped
"""

from __future__ import annotations

_WINDOW = 60  # characters of a formula that are shown


class TrueupError(ValueError):
    """Say what was wrong, with the value, and what to do about it.

    Parameters
    ----------
    message
        What was wrong, with the offending value.
    hint
        One line saying what to do.

    Examples
    --------
    >>> print(TrueupError("scale must be positive, got -1", "give the noise scale, e.g. 2"))
    scale must be positive, got -1
    Hint: give the noise scale, e.g. 2
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}"


class FormulaError(TrueupError):
    """The text is not a formula: the message points at the place."""

    @classmethod
    def at(cls, text: str, position: int, problem: str, hint: str) -> FormulaError:
        """Return the error: the problem, the text around it, a caret under the place (from 0).

        Examples
        --------
        >>> print(FormulaError.at("1 + q!", 5, "cannot read '!'", "remove it"))
        cannot read '!' at character 6
          1 + q!
               ^
        Hint: remove it
        """
        start = max(0, min(position, len(text)) - _WINDOW // 2)
        end = start + _WINDOW
        before, after = "…" if start else "", "…" if end < len(text) else ""
        line = before + "".join(map(_visible, text[start:end])) + after
        indent = " " * (len(before) + position - start)
        return cls(f"{problem} at character {position + 1}\n  {line}\n  {indent}^", hint)


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


class NoUnbiasedEstimator(TrueupError):
    """No unbiased estimator exists, or none was found: the message says which, and why.

    Parameters
    ----------
    message, hint
        What stands in the way, and the nearest thing that works.
    proved
        Whether it is proved that there is none; otherwise the message says "was found".
    """

    def __init__(self, message: str, hint: str, *, proved: bool = True) -> None:
        super().__init__(message, hint)
        self.proved = proved


class InfiniteVariance(TrueupError):
    """The estimator is unbiased but has no finite variance."""


class MissingExtra(TrueupError):
    """An optional part is not installed."""


class BoundWarning(UserWarning):
    """A bound, on values or on a bias, is contradicted by a table, or has no effect."""


class SelectionWarning(UserWarning):
    """Rows seem to have been dropped by their published values: what is left is not unbiased."""
