"""A bound on work that no clock measures: calls of Python functions are counted, not seconds.

A computation without end fails as soon as its budget is used up, and a busy machine changes
nothing. Sympy's memory is emptied first, so that the count does not depend on what other tests have
asked before. Only this thread is counted, and what one call of NumPy or of a solver does inside is
not seen.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

import pytest
from sympy.core.cache import clear_cache

T = TypeVar("T")

LONG = 60.0
"""Seconds of processor time after which work is done again and counted."""


class TooMuchError(BaseException):
    """More work than is allowed. Not an Exception, so that nothing in between takes it for one."""


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


def bounded(action: Callable[[], T], lines: int, long: float | None = None) -> T:
    """Return what an action returns; raise TooMuchError if it needs more lines of Python than that.

    Counting makes Python five times slower. So what takes long is done a second time and counted:
    seconds decide when to count, and nothing else.
    """
    with contextlib.suppress(TooMuchError), interrupted(LONG if long is None else long) as late:
        answer = action()
        if not late:
            return answer
    with counted(lines) as count:
        answer = action()
    if count.left < 0:  # it was told, and took that for an error of its own
        raise TooMuchError(f"more than {lines:,} lines")
    return answer


@contextlib.contextmanager
def interrupted(long: float) -> Iterator[list[bool]]:
    """Raise TooMuchError in what takes long; what is yielded is not empty once that happened."""
    late: list[bool] = []

    def stop(*_: Any) -> None:
        late.append(True)
        raise TooMuchError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, long, 1.0)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Count:
    """How much work is left."""

    def __init__(self, most: int) -> None:
        self.left = most

    def lines(self, *_: Any) -> Any:
        """Count a call or a line."""
        self.left -= 1
        if self.left < 0:
            raise TooMuchError("more work than is allowed")
        return self.lines

    def calls(self, *_: Any) -> None:
        """Count a call."""
        self.lines()


@contextlib.contextmanager
def counted(most: int, calls: bool = False) -> Iterator[Count]:
    """Raise TooMuchError in what executes more lines (or makes more calls) than that."""
    count, before = Count(most), sys.gettrace()
    sys.settrace(count.calls if calls else count.lines)
    try:
        yield count
    finally:
        sys.settrace(before)
