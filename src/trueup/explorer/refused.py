"""A request that is refused: what was wrong, what to do, and beside which field to say so."""

from __future__ import annotations

import re
from typing import Any

_BIAS = "the card “What a little bias buys”"
_FIELDS = [
    (r",? e\.g\. (?:domain=\{[^}]*\}|domain=\([^)]*\)|--domain (?:\"[^\"]*\"|'[^']*'))", ""),
    (r'domain="([^"]*)"', r"the bound \1"),
    (r"Fraction\((-?\d+), (\d+)\)", r"\1/\2"),
    (r"nearly_unbiased\((?:[^()]|\([^()]*\))*\)", _BIAS),
    (r"\bmax_bias=(\S+) works", r"a bias of \1 works"),
    (r"\bcells=(\d+)", r"\1 cells"),
    (r"empty=value(?: \(--empty VALUE\))?", "fill in “Value in empty cells”"),
    (r"add --null (.+) if it stands for", r"write \1 under “Missing numbers” if it stands for"),
    (r"the decimals: --decimal ,", "the decimals, choose it under “Decimals”"),
    (r"--skip-missing sums", "“Leave out rows without a number” sums"),
    (r"(?:stderr=False gives|add --no-stderr: )", "without “Standard errors” "),
    (r"; or add --no-stderr", "; or leave out “Standard errors”"),
    (r"raise it, e\.g\. --memory 4GB", "take fewer columns or rows"),
    (r",? or (?:give|name its format with) --from", ""),
    (r",? or add --force to replace it", ""),
]
"""What hints say in Python or as options, and what the page calls it."""


_OPTION = re.compile(r"(?:^| )--[a-z]")
"""What the page has no field for."""


def in_page(words: str) -> str:
    """Return a hint in the words of the page.

    Examples
    --------
    >>> in_page("correct it, or add --null NA if it stands for a missing number")
    'correct it, or write NA under “Missing numbers” if it stands for a missing number'
    """
    for elsewhere, here in _FIELDS:
        words = re.sub(elsewhere, here, words)
    where = " (an option of trueup debias in a terminal)"
    return words + where if _OPTION.search(words) and not words.endswith(where) else words


class Refusal(Exception):
    """Say what was wrong, what to do about it, and where.

    Parameters
    ----------
    message, hint
        What was wrong, with the value; what to do.
    status
        The HTTP status.
    field
        The field of the page that caused it, such as ``formula`` or ``n.scale``.
    kind
        What sort of error it is: ``input``, ``missing`` (a field that must not be empty), ``none``
        (no unbiased estimator exists), ``busy`` ...

    Examples
    --------
    >>> Refusal("pole at 0", "bound it, e.g. domain={'n': (1, None)}", field="n.low").record()
    {'field': 'n.low', 'kind': 'input', 'message': 'pole at 0', 'hint': 'bound it'}
    >>> Refusal("the files differ", "leave --hive out").hint
    'leave --hive out (an option of trueup debias in a terminal)'
    """

    def __init__(
        self, message: str, hint: str, status: int = 422, field: str = "", kind: str = "input"
    ) -> None:
        super().__init__(message)
        self.message, self.hint = message, in_page(hint)
        self.status, self.field, self.kind = status, field, kind

    def record(self) -> dict[str, Any]:
        """Return the error as the page reads it."""
        return {
            "field": self.field,
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
        }
