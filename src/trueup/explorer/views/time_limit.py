"""Stop a computation from within after some seconds of processor time, and keep what is done."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


class TimeUp(BaseException):
    """The seconds are spent; not an error, so that nobody else takes it for one."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`TimeUp` in the block when it has used so many seconds.

    Examples
    --------
    >>> with contextlib.suppress(TimeUp), time_limit(0.05):
    ...     while True:
    ...         pass
    """
    timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not timed:
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(*_: object) -> NoReturn:
    raise TimeUp
