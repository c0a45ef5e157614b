"""Where generated kernels live: a directory of the user's own, or a private one until the end."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from functools import lru_cache
from pathlib import Path

_MOST = 500
"""Compiled functions that are kept, at some tens of kilobytes each."""


def directory() -> Path:
    """Return the directory of compiled kernels, made if need be.

    It is ``kernels`` in $TRUEUP_CACHE, in $XDG_CACHE_HOME/trueup or in ~/.cache/trueup; where that
    cannot be written, or others could write into it, a private directory that is removed at the
    end.
    """
    chosen = os.environ.get("TRUEUP_CACHE")
    if not chosen:
        chosen = str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "trueup"))
    return _directory(chosen)


@lru_cache(maxsize=8)
def _directory(chosen: str) -> Path:
    try:
        home = Path(chosen).expanduser().absolute() / "kernels"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(home):
            (home / "__pycache__").mkdir(mode=0o700, exist_ok=True)
            if _is_private(home / "__pycache__"):
                return home
    except (OSError, RuntimeError):  # no such place, or no home
        pass
    private = tempfile.mkdtemp(prefix="trueup-")
    atexit.register(_remove, private, os.getpid())
    return Path(private)


def _remove(private: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process forked off
        shutil.rmtree(private, ignore_errors=True)


def _is_private(path: Path) -> bool:
    """Whether only we can write here."""
    if not hasattr(os, "getuid"):  # not a POSIX system: rights are inherited from the profile
        return os.access(path, os.W_OK)
    found = path.stat()
    return (
        found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and os.access(path, os.W_OK | os.X_OK)
    )


def store(name: str, text: str, suffix: str = ".py") -> Path:
    """Return the file of a module, or of data, with this text, written at once and whole.

    The file's time is always the same, so that what was compiled from it stays valid.
    """
    path = directory() / f"{name}{suffix}"
    data = text.encode()
    if not (path.is_file() and path.read_bytes() == data and path.stat().st_mtime == 0):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{name}-", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.utime(temporary, (0, 0))
            Path(temporary).replace(path)
            _prune(path.parent / "__pycache__")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    return path


def _prune(compiled: Path) -> None:
    """Forget the kernels compiled longest ago when there are very many."""
    with contextlib.suppress(OSError):  # another process may be doing the same
        files = sorted(compiled.glob("*.nbi"), key=lambda file: file.stat().st_mtime)
        for file in files[: max(0, len(files) - _MOST)]:
            discard(file.name.partition(".")[0])


def is_compiled(name: str) -> bool:
    """Whether machine code of this module lies on disk."""
    return any((directory() / "__pycache__").glob(f"{name}.*.nbi"))


def discard(name: str) -> None:
    """Remove everything that belongs to a module."""
    for file in (*directory().glob(f"{name}*"), *(directory() / "__pycache__").glob(f"{name}*")):
        file.unlink(missing_ok=True)
