"""The file to write: beside its place first, then renamed, so that it is whole or absent.

Until the end the rows go to ``.NAME.trueup-HOST-PID.part`` in the folder of the output. A run
that is killed leaves that behind; the next run that writes to the folder removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from trueup.cli.files import formats
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from types import TracebackType

    from trueup.cli.files.formats import Format
    from trueup.cli.files.sources import Source

_MARK = "trueup"
_SYNC_EVERY = 0.5
_FORCE = "choose another name, or add --force to replace it"


class Target:
    """A file or a folder that appears under its name when :meth:`commit` has been called."""

    def __init__(self, text: str, form: Format, *, force: bool, folder: bool = False) -> None:
        self.path = Path(text)
        self.format = form
        self.force, self.folder = force, folder
        name = f".{self.path.name}.{_MARK}-{_host()}-{os.getpid()}"
        self.part = self.path.with_name(f"{name}.part")
        self.spill = self.path.with_name(f"{name}.spill")

    def __enter__(self) -> Self:
        remove_leftovers(self.path.parent)
        with self.part.open("xb"):  # fails here if the folder cannot be written to
            pass
        if self.folder:
            self.part.unlink()
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

    def commit(self) -> None:
        """Put the output in its place, on the disk."""
        self._stop.set()
        self._syncing.join()
        for file in [self.part] if not self.folder else self.part.rglob("*"):
            if file.is_file():
                _flush(file)
        if self.folder:
            self._rename_folder()
        elif self.force:
            self.part.replace(self.path)
        else:
            self._link()
        _flush(self.path.parent)

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

    def _rename_folder(self) -> None:
        if self.path.exists():
            if not self.force:
                raise _exists(self.path)
            old = self.part.with_suffix(".old.part")
            self.path.rename(old)
            self.part.rename(self.path)
            _remove(old)
        else:
            self.part.rename(self.path)

    def _sync(self) -> None:
        """Write to the disk while rows are still coming, so that the end does not wait for it."""
        while not self._stop.wait(_SYNC_EVERY):
            with contextlib.suppress(OSError):
                if self.part.is_file():
                    _flush(self.part)


def check(text: str, given: str | None, source: Source, *, force: bool, folder: bool) -> Format:
    """Return the format of the output, or say why it cannot be written there."""
    path = Path(text)
    if path.is_dir() and not folder:
        raise TrueupError(f"{path} is a folder", f"name a file in it, e.g. {path / 'out.parquet'}")
    form = formats.Format(given or "parquet") if folder else formats.named(given, path, "--to")
    if not path.parent.is_dir():
        raise TrueupError(f"there is no folder {path.parent}", f"make it: mkdir -p {path.parent}")
    if any(_same(path, file) for file in source.files) or _same(path, Path(source.name)):
        raise TrueupError(
            f"the output {path} is the input", "write to another file; the input is never changed"
        )
    if path.exists() and not force:
        raise _exists(path)
    if path.exists() and not folder and not path.is_file():
        raise TrueupError(f"{path} is not a file", "use - to write to a pipe")
    return form


def _exists(path: Path) -> TrueupError:
    return TrueupError(f"{path} exists already", _FORCE)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also through links."""
    try:
        return one.samefile(other)
    except OSError:
        return one.absolute() == other.absolute()


# -- leftovers -------------------------------------------------------------------------------------


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs on this machine have left in a folder."""
    pattern = re.compile(rf"\..*\.{_MARK}-{re.escape(_host())}-(\d+)(?:\.old)?\.(?:part|spill)")
    for entry in folder.iterdir():
        found = pattern.fullmatch(entry.name)
        if found and not _runs(int(found[1])):
            with contextlib.suppress(OSError):
                _remove(entry)


def _host() -> str:
    return re.sub(r"[^\w.]", "_", socket.gethostname()) or "host"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid != os.getpid()


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
