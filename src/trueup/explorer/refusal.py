"""A request that is refused: what was wrong, what to do, and beside which field to say so."""

from __future__ import annotations

import re
from typing import Any

_ELSEWHERE = re.compile(r',? e\.g\. (?:domain=\{[^}]*\}|--domain (?:"[^"]*"|\'[^\']*\'))')
"""What a hint says in Python or as an option, and the page shows as fields."""


_OPTION = re.compile(r"(?:^| )--[a-z]")
"""What the page has no field for."""


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
        What sort of error it is: ``input``, ``none`` (no unbiased estimator exists), ``busy`` ...

    Examples
    --------
    >>> Refusal("pole at 0", "bound it, e.g. domain={'n': (1, None)}", field="n.low").record()
    {'field': 'n.low', 'kind': 'input', 'message': 'pole at 0', 'hint': 'bound it'}
    >>> Refusal("'x' is no number", "correct it, or add --null x").hint
    'correct it, or add --null x (an option of trueup debias in a terminal)'
    """

    def __init__(
        self, message: str, hint: str, status: int = 422, field: str = "", kind: str = "input"
    ) -> None:
        super().__init__(message)
        hint = _ELSEWHERE.sub("", hint).replace("Fraction(1, 3)", "1/3")
        where = " (an option of trueup debias in a terminal)"
        option = _OPTION.search(hint) and not hint.endswith(where)
        self.message, self.hint = message, hint + where if option else hint
        self.status, self.field, self.kind = status, field, kind

    def record(self) -> dict[str, Any]:
        """Return the error as the page reads it."""
        return {
            "field": self.field,
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
        }
