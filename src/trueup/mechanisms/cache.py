"""Where solved programmes are kept: a directory of the user's own, or one until the end."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from functools import lru_cache
from pathlib import Path


def directory() -> Path:
    """Return the directory of solved programmes, made if need be.

    It is ``programmes`` in $TRUEUP_CACHE, in $XDG_CACHE_HOME/trueup or in ~/.cache/trueup; where
    that cannot be written, or others could write into it, a private directory that is removed at
    the end.
    """
    chosen = os.environ.get("TRUEUP_CACHE")
    if not chosen:
        chosen = str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "trueup"))
    return _directory(chosen)


@lru_cache(maxsize=8)
def _directory(chosen: str) -> Path:
    try:
        home = Path(chosen).expanduser().absolute() / "programmes"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(home):
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


def store(path: Path, text: str) -> None:
    """Write a file at once and whole."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
