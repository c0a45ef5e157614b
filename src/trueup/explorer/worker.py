"""A worker: read a request from the pipe, compute, write the answer, until the pipe ends.

Workers are forked from a server that imports this module first: it has then imported everything
that they need, and filled the caches.
"""

from __future__ import annotations

import contextlib
import gc
import json
import signal
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer import allowances
from trueup.explorer.refused import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_SPARE_SECONDS = 5
_FIRST = {
    "formula": "s/n",
    "statistics": {
        "s": {"family": "laplace", "way": "scale", "scale": "2"},
        "n": {"family": "discrete_laplace", "way": "scale", "scale": "2", "low": "1"},
    },
}
"""What the page asks for first."""

SHARE = b"share "
"""How a message begins that tells how much is done."""


def work(pipe: Connection, memory: int) -> None:
    """Answer requests until the server goes away."""
    _warm()  # before the limit is set
    limit_memory(memory)
    while True:
        try:
            kind, request, seconds = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        with contextlib.suppress(OSError):
            pipe.send_bytes(b"begun")
        _die_after(seconds + _SPARE_SECONDS)
        reply = json.dumps(answer(kind, request, _teller(pipe)), allow_nan=False).encode()
        with contextlib.suppress(OSError):
            pipe.send_bytes(reply)
        _die_after(0)


@cache
def _warm() -> None:
    """Compute once what the page asks for first."""
    for kind in ("curve", "code"):
        answer(kind, _FIRST)
    gc.freeze()  # pages of what is there now stay shared between the workers


def _teller(pipe: Connection) -> Callable[[float], None]:
    """Return what tells the server the share done."""

    def tell(share: float) -> None:
        with contextlib.suppress(OSError):
            pipe.send_bytes(SHARE + f"{share:.3f}".encode())

    return tell


def answer(
    kind: str, request: dict[str, Any], watch: Callable[[float], None] = lambda share: None
) -> dict[str, Any]:
    """Return what was asked for, or the error, as plain data; ``watch`` is told the share done.

    Examples
    --------
    >>> answer("curve", {"formula": "1/n", "statistics": {}})["error"]["field"]
    'formula'
    """
    from trueup.explorer.views import FILE_VIEWS, VIEWS

    try:
        if kind in FILE_VIEWS:
            return FILE_VIEWS[kind](request, watch)
        return VIEWS[kind](request)
    except Refusal as refusal:
        return {"error": refusal.record()}
    except TrueupError as error:
        message, hint, kind = error.message, error.hint, "input"
    except (MemoryError, RecursionError) as error:
        what = "memory" if isinstance(error, MemoryError) else "depth"
        message = f"the computation needs more {what} than the page allows"
        hint, kind = "simplify the formula, or call the library, which has no such limit", "input"
    except Exception as error:  # the page must say something
        message = f"an error of ours: {type(error).__name__}: {str(error)[:200]}"
        hint, kind = "please report it, with the link of this view", "ours"
    return {"error": Refusal(message, hint, field="formula", kind=kind).record()}


def limit_memory(headroom: int) -> None:
    """Let this process grow by so many bytes and no more (Linux; elsewhere time is the limit)."""
    if sys.platform != "linux":
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + headroom
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (allowances.FILE_SIZE, allowances.FILE_SIZE))


def _die_after(seconds: float) -> None:
    """End this process by itself, should the server be gone by then; 0 takes it back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if any("multiprocessing.forkserver" in word for word in sys.orig_argv):
    _warm()
