"""A bound on work that no clock measures: calls of Python functions are counted, not seconds.

A computation without end fails as soon as its budget is used up, and a busy machine changes
nothing. Sympy's memory is emptied first, so that the count does not depend on what other tests have
asked before. Only this thread is counted, and what one call of NumPy or of a solver does inside is
not seen.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType

import pytest
from sympy.core.cache import clear_cache


@contextlib.contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Fail as soon as the block has made more than so many calls.

    A budget is about three times what was counted: sympy's ways depend on the order of its sets.
    """
    left = calls

    def count(_frame: FrameType, _event: str, _arg: object) -> None:
        nonlocal left
        left -= 1  # no line is traced: a function that returns None is asked once for every call
        if left < 0:
            pytest.fail(f"more than {calls:,} calls of functions")

    before = sys.gettrace()
    clear_cache()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)
