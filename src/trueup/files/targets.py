"""The file to write: beside its place first, then renamed, so that it is whole or absent.

Until the end the rows go to ``.NAME.trueup-HOST-TOKEN.part`` in the folder of the output. The token
is drawn, and a file ``….lock`` beside it stays locked while the run lives: other runs tell by the
lock, not by a number of a process, which means another one inside a container. A run that is killed
leaves its part behind, unlocked; the next run that writes to the folder removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from trueup.errors import TrueupError
from trueup.files import formats

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from types import TracebackType

    from trueup.files.formats import Format
    from trueup.files.sources import Source

_MARK = "trueup"
_SYNC_EVERY = 0.5
_SHOWN = 30  # characters of the output's name: 255 bytes must do for all of the part's name
_FORCE = "choose another name, or add --force to replace it"


class Target:
    """A file that appears under its name when :meth:`commit` has been called."""

    def __init__(self, text: str, form: Format, *, force: bool) -> None:
        self.path = Path(text)
        self.format = form
        self.force = force
        self.placed = False

    def __enter__(self) -> Self:
        remove_leftovers(self.path.parent)
        self._lock, name = _claimed(self.path)
        self.part, self.spill, self.old = (_beside(name, end) for end in _ENDS)
        self.part.open("xb").close()
        self._stop = threading.Event()
        self._syncing = threading.Thread(target=self._sync, daemon=True)
        self._syncing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._syncing.join()
        _remove(self.part)
        _remove(self.spill)
        lock = _beside(self.part, "lock")
        with contextlib.suppress(PermissionError):  # on Windows not before it is closed
            _remove(lock)
        os.close(self._lock)
        _remove(lock)

    def commit(self) -> None:
        """Put the output in its place, on the disk."""
        self._stop.set()
        self._syncing.join()
        _flush(self.part)
        if self.force:
            self.part.replace(self.path)
        else:
            self._link()
        self.placed = True
        _flush(self.path.parent)

    def keep(self) -> None:
        """Keep the file that is to be replaced, until :meth:`settle`."""
        if self.force and os.path.lexists(self.path):
            try:
                os.link(self.path, self.old)
            except OSError:  # a file system without hard links
                shutil.copy2(self.path, self.old, follow_symlinks=False)

    def settle(self, *, whole: bool) -> None:
        """Forget the file that was kept; put it back unless all files of the run are in place."""
        if self.placed and not whole:
            if os.path.lexists(self.old):
                self.old.replace(self.path)
            else:
                self.path.unlink(missing_ok=True)
        _remove(self.old)

    def _link(self) -> None:
        """Rename without replacing a file that has come into being meanwhile."""
        try:
            os.link(self.part, self.path)
        except FileExistsError:
            raise _exists(self.path) from None
        except OSError:  # a file system without hard links
            if self.path.exists():
                raise _exists(self.path) from None
            self.part.replace(self.path)

    def _sync(self) -> None:
        """Write to the disk while rows are still coming, so that the end does not wait for it."""
        while not self._stop.wait(_SYNC_EVERY):
            with contextlib.suppress(OSError):
                _flush(self.part)


def check(text: str, given: str | None, source: Source, *, force: bool) -> Format:
    """Return the format of the output, or say why it cannot be written there."""
    path = Path(text)
    if path.is_dir():
        raise TrueupError(f"{path} is a folder", f"name a file in it, e.g. {path / 'out.parquet'}")
    form = formats.named(given, path, "--to")
    if "://" in text:
        raise TrueupError(f"{text} is not a local file", "write a local one, then upload it")
    if not path.parent.is_dir():
        raise TrueupError(f"there is no folder {path.parent}", f"make it: mkdir -p {path.parent}")
    if any(same(path, file) for file in source.files) or same(path, Path(source.name)):
        raise TrueupError(
            f"the output {path} is the input", "write to another file; the input is never changed"
        )
    if path.is_symlink() and not path.exists():
        raise TrueupError(f"{path} is a link to nothing", "remove the link, or name a file")
    if path.exists() and not path.is_file():
        raise TrueupError(f"{path} is not a file", f"use - to write to a pipe: - > {path}")
    if path.exists() and not force:
        raise _exists(path)
    return form


def _exists(path: Path) -> TrueupError:
    return TrueupError(f"{path} exists already", _FORCE)


def same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also through links."""
    try:
        return one.samefile(other)
    except OSError:
        return one.absolute() == other.absolute()


# -- leftovers -------------------------------------------------------------------------------------

_ENDS = ("part", "spill", "old")


def _claimed(path: Path) -> tuple[int, Path]:
    """Return a lock that is held, and the file that it locks; the name says whose part it is."""
    while True:
        name = f".{path.name[:_SHOWN]}.{_MARK}-{_host()}-{secrets.token_hex(8)}.lock"
        lock = path.with_name(name)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        os.write(handle, os.fsencode(path.name))
        locked(handle, wait=True)
        if lock.exists():  # else another run has found it before it was locked
            return handle, lock
        os.close(handle)


def locked(handle: int, *, wait: bool = False) -> bool:
    """Lock a file while this process lives; return False if another one holds it, or none can."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # it is held, or the file system has no locks: then nothing is ever removed
        return False
    return True


def _beside(lock: Path, end: str) -> Path:
    return lock.with_suffix(f".{end}")


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs on this machine have left in a folder."""
    pattern = re.compile(rf"\..*\.{_MARK}-{re.escape(_host())}-[0-9a-f]{{16}}\.lock", re.DOTALL)
    for entry in folder.iterdir():
        if pattern.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                _remove_leftover(entry)


def _remove_leftover(lock: Path) -> None:
    """Remove what belongs to a lock that nobody holds; put back what the run had put aside."""
    handle = os.open(lock, os.O_RDWR)
    try:
        if not locked(handle):
            return
        old, name = _beside(lock, "old"), Path(os.fsdecode(os.read(handle, 4096))).name
        if name and os.path.lexists(old) and not os.path.lexists(lock.with_name(name)):
            old.rename(lock.with_name(name))
        for end in (*_ENDS, "lock"):
            _remove(_beside(lock, end))
    finally:
        os.close(handle)


def _host() -> str:
    return re.sub(r"[^\w.]", "_", socket.gethostname(), flags=re.ASCII)[:64] or "host"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if path.is_file():
            raise
    finally:
        os.close(handle)
