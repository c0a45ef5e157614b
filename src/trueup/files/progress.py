"""A progress bar on a terminal, and silence in a pipe."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_WIDTH, _EVERY, _PATIENCE = 30, 0.2, 0.5


def run(
    work: Callable[[], Any],
    share: Callable[[], float],
    stop: Callable[[], None],
    watch: Callable[[float], None] | None = None,
) -> Any:
    """Do work in a thread, so that it can be watched and interrupted, and return its result.

    Parameters
    ----------
    work
        What to do.
    share
        How much of it is done, from 0 to 100; negative where that is not known.
    stop
        Called when the user interrupts; ``work`` must end soon after.
    watch
        Told the share every now and then; None draws a bar, if there is a terminal.
    """
    box: dict[str, Any] = {}
    done = threading.Event()  # an interrupted join() would take the thread for ended

    def worker() -> None:
        try:
            box["result"] = work()
        except BaseException as error:  # raised again below
            box["error"] = error
        finally:
            done.set()

    threading.Thread(target=worker, daemon=True).start()
    try:
        _wait(done, share, watch)
    except BaseException:
        stop()
        done.wait()
        raise
    if "error" in box:
        raise box["error"]
    return box.get("result")


def _wait(
    done: threading.Event, share: Callable[[], float], watch: Callable[[float], None] | None
) -> None:
    """Wait for the end, and tell how far it is."""
    start, shown = time.monotonic(), False
    try:
        while not done.wait(_EVERY):
            seconds = time.monotonic() - start
            if watch is not None:
                watch(share())
            elif sys.stderr.isatty() and seconds > _PATIENCE:
                shown = True
                print(f"\r{bar(share(), seconds)}", end="", file=sys.stderr, flush=True)
    finally:
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def bar(share: float, seconds: float) -> str:
    """Return the bar as text.

    Examples
    --------
    >>> bar(50, 3)
    '[###############               ]  50 %  3 s'
    """
    if not share > 0:
        return f"[{' ' * _WIDTH}]       {seconds:.0f} s"
    filled = round(min(share, 100) / 100 * _WIDTH)
    return f"[{'#' * filled:<{_WIDTH}}] {min(share, 100):3.0f} %  {seconds:.0f} s"
