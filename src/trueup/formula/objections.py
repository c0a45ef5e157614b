"""What sympy cannot decide, told as a reason.

Deep inside a formula of nested cases sympy may compare what is not real, or ask for the sign of
what has none, and object with an error of its own. Such an objection says that the formula
could not be analysed; it is no fault of the caller's. Other errors pass as they are.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.formula.text import text

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOME = str(Path(sympy.__file__).parent)
_OBJECTIONS = (TypeError, ValueError, ArithmeticError, AttributeError, NotImplementedError)


@contextmanager
def objections(f: sympy.Expr) -> Iterator[None]:
    """Tell what sympy objects to while a formula is analysed as "not found", with its words.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> with objections(q):
    ...     sympy.I < 1
    Traceback (most recent call last):
    trueup.errors.NoUnbiasedEstimator: no unbiased estimator of q was found: ...
    Hint: write the formula more simply, e.g. with fewer nested cases, or bound the domain further
    """
    try:
        yield
    except TrueupError:
        raise
    except _OBJECTIONS as error:
        if not _in_sympy(error):
            raise
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(f)} was found: the formula could not be analysed "
            f"({error})",
            "write the formula more simply, e.g. with fewer nested cases, or bound the domain "
            "further",
            proved=False,
        ) from error


def _in_sympy(error: BaseException) -> bool:
    """Whether the innermost place that an error comes from is sympy's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HOME)
