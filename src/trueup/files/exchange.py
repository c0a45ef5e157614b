"""Exchange two names in one step, so that neither is ever absent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HERE = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


def exchanged(one: Path, other: Path) -> bool:
    """Exchange two files or folders; return False where the system or the disk cannot."""
    names = os.fsencode(one), os.fsencode(other)
    with contextlib.suppress(AttributeError, OSError):  # an old C library has no such function
        libc = ctypes.CDLL(None)
        if sys.platform == "linux":
            done = libc.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
            return bool(done == 0)
        if sys.platform == "darwin":
            return bool(libc.renamex_np(*names, _EXCHANGE) == 0)
    return False
