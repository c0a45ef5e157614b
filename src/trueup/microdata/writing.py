"""A released table as a file, with its sidecar beside it: both whole, or neither.

The sidecar names the hash of its table: where a run was killed between the two, a reader is told.
All files are put in their places while the folder is locked: of two runs that write the same table
at once, the later one replaces all files of the other, never the table alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.files import formats, targets
from trueup.files.duck import Duck
from trueup.files.sources import Source, find
from trueup.microdata.release import run
from trueup.plots.style import require

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.microdata.engines import Files
    from trueup.microdata.ledger import Ledger
    from trueup.microdata.private_table import PrivateTable
    from trueup.microdata.public_keys import Keys
    from trueup.microdata.totals import Reading

_TABLE = "trueup_table"
_TEXT = formats.Format("csv")  # as a target a sidecar is a file of text like any other


@dataclasses.dataclass(frozen=True)
class Release:
    """One run of ``trueup release``."""

    data: Files
    output: str
    reading: Reading
    keys: Keys
    rng: Any = None
    ledger: Ledger | None = None
    target_format: str | None = None
    force: bool = False
    page: Path | None = None
    """Where the report goes as a page."""
    kept: tuple[Path, ...] = ()
    """Files that must not be written over: the plan, the keys, the ledger."""

    @property
    def sidecar(self) -> Path:
        """Where the sidecar goes: beside the table, with its name."""
        path = Path(self.output)
        found = formats.by_suffix(path)
        inner = path.with_suffix("") if found and found.packed else path
        return inner.with_suffix(".toml")

    def write(self) -> PrivateTable:
        """Release the table and write it; whatever is wrong is refused before noise is drawn."""
        form = self.check()
        if self.page is not None:
            require()
        with contextlib.ExitStack() as stack:
            table, *texts = (
                stack.enter_context(targets.Target(str(path), kind, force=self.force))
                for path, kind in ((self.output, form), *((p, _TEXT) for p in self._texts))
            )
            made = run(self.data, self.reading, self.keys, self.rng, self._spend)
            with self._after_spending():
                _write(made, table.part, form)
                contents = [_of_table(made.spec, table.part)]
                contents += [] if self.page is None else [made.page()]
                for target, content in zip(texts, contents, strict=True):
                    target.part.write_text(content, encoding="utf-8")
                with _alone(Path(self.output).parent):
                    _commit([*texts, table])
        return made

    @contextlib.contextmanager
    def _after_spending(self) -> Iterator[None]:
        """Say of what goes wrong now that the budget is spent."""
        try:
            yield
        except TrueupError as error:
            raise self._spent(error.message, error.hint) from None
        except OSError as error:
            hint = "make room, or choose another place"
            raise self._spent(f"the table cannot be written: {error}", hint) from None

    def _spent(self, message: str, hint: str) -> TrueupError:
        spent = f"; the budget of this release, {self.reading.design.epsilon}, was spent"
        return TrueupError(message, hint + spent * (self.ledger is not None))

    @property
    def _texts(self) -> list[Path]:
        return [self.sidecar, *([] if self.page is None else [self.page])]

    def _spend(self) -> None:
        if self.ledger is not None:
            self.ledger.spend(self.reading.design, self.output)

    def check(self) -> formats.Format:
        """Return the format of the table; refuse places that are taken, and budgets too large."""
        _ = self.reading.design.estimators
        if self.ledger is not None:
            self.ledger.check(self.reading.design)
        if self.output == "-":
            raise TrueupError(
                "a private table is written to a file, with its sidecar beside it",
                "name it, e.g. table.csv",
            )
        source = _source(self.data)
        form = targets.check(self.output, self.target_format, source, force=self.force)
        for path in self._texts:
            targets.check(str(path), "csv", source, force=self.force)
        places = [Path(self.output), *self._texts]
        if len({os.path.realpath(p) for p in places}) < len(places):
            raise TrueupError(
                f"the report {self.page} is the table or its sidecar", "give it another name"
            )
        for path in places:
            for other in self.kept:
                if os.path.realpath(path) == os.path.realpath(other) or targets.same(path, other):
                    raise TrueupError(
                        f"{path} would be written over, and this release reads or keeps it",
                        "give the table another name: the sidecar has the name of the table",
                    )
        return form


def _commit(written: list[targets.Target]) -> None:
    """Put all files in their places, the table last, or leave there what was there before."""
    try:
        for target in written:
            target.keep()
            target.commit()
    except BaseException:
        for target in written:
            target.settle(whole=False)
        raise
    for target in written:
        target.settle(whole=True)


def _of_table(spec: str, table: Path) -> str:
    """Return a sidecar that names the table it is for, which a reader checks."""
    with table.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f'{spec.rstrip()}\n\n[table]\nsha256 = "{digest}"\n'


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other run puts files into a folder, and keep others waiting."""
    if sys.platform == "win32":  # which opens no folders
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _source(data: Files) -> Source:
    """Return the files that must not be written over; what is wrong with them is told later."""
    try:
        files, form = find(data.path, data.format)
    except TrueupError:
        return Source(data.path, (), _TEXT, ())
    return Source(data.path, tuple(files), form, ())


def _write(made: PrivateTable, path: Path, form: formats.Format) -> None:
    pyarrow = optional("pyarrow", "tables", "releasing tables")
    with contextlib.closing(Duck("512MB")) as duck:
        duck.connection.register(_TABLE, pyarrow.table(made.columns))
        duck.write(f"SELECT * FROM {_TABLE}", path, form, None, {})
