"""Uploaded files: in a temporary folder of this process, debiased in another, removed.

Each upload has a folder and an unguessable id. The name it came with is only ever given back as
the name of the download; on the disk it is ``input.csv`` or ``input.parquet``.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.explorer import allowances
from trueup.explorer.pool import alone
from trueup.explorer.refused import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

FORMATS = ("csv", "tsv", "parquet")
_SAFE = re.compile(r"[^\w.\- ]+")


class Upload:
    """One file, and what became of it."""

    def __init__(self, folder: Path, name: str, largest: int) -> None:
        self.id = secrets.token_urlsafe(18)
        self.folder = folder / self.id
        self.name, self.suffix = _named(name)
        self.input = self.folder / f"input.{self.suffix}"
        self.output = self.folder / f"output.{self.suffix}"
        self.table: dict[str, Any] = {}
        self.result: dict[str, Any] = {}
        self.error: dict[str, Any] | None = None
        self.job: asyncio.Task[None] | None = None
        self.share = 0.0
        self.used = time.monotonic()
        self.seen = 0
        self.until = asyncio.timeout(allowances.PACE_SECONDS + largest / allowances.PACE)

    @property
    def paths(self) -> dict[str, Any]:
        """Where the files are, and what to call them: the user knows other names for them."""
        source, target = str(self.input), str(self.output)
        names = {source: f"“{self.name}”", target: f"“debiased-{self.name}”"}
        return {"source": source, "target": target, "names": names}

    @property
    def is_slow(self) -> bool:
        """Whether it arrives at less than the least pace, after a moment to begin."""
        seconds = time.monotonic() - self.used
        return seconds >= allowances.PACE_SECONDS and self.seen <= allowances.PACE * seconds

    @property
    def running(self) -> bool:
        """Whether it is being debiased."""
        return self.job is not None and not self.job.done()

    def record(self) -> dict[str, Any]:
        """Return what the page shows."""
        self.used = time.monotonic()
        state = "running" if self.running else "done" if self.result else "ready"
        return {
            "id": self.id,
            "name": self.name,
            "size": self.input.stat().st_size if self.input.exists() else 0,
            "state": "failed" if self.error and not self.running else state,
            "progress": self.share if self.running else float(bool(self.result)),
            "table": self.table,
            "result": self.result,
            "error": self.error,
        }

    async def remove(self) -> None:
        """Stop its computation and delete it."""
        if self.job is not None:
            self.job.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.job
        await asyncio.to_thread(shutil.rmtree, self.folder, True)


class Uploads:
    """All uploads of a running page."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._all: dict[str, Upload] = {}
        self._arriving: list[Upload] = []

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(
            prefix="trueup-explore-", ignore_cleanup_errors=True
        )
        self._sweeper = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._sweeper.cancel()
        for upload in list(self._all.values()):
            await upload.remove()
        self._folder.cleanup()

    def find(self, id: str) -> Upload:
        """Return an upload, or refuse."""
        if id not in self._all:
            raise Refusal(
                "there is no such upload, or it has been removed", "upload the file again", 404
            )
        return self._all[id]

    async def receive(self, name: str, pieces: AsyncIterator[bytes]) -> Upload:
        """Keep a file as it arrives, and look at its first rows."""
        upload = Upload(Path(self._folder.name), name, self.largest)
        self._make_way()
        upload.folder.mkdir()
        self._arriving.append(upload)
        try:
            async with upload.until:
                with upload.input.open("wb") as file:
                    async for piece in pieces:
                        await asyncio.to_thread(file.write, piece)
                        upload.seen += len(piece)
            upload.table = await alone("look", upload.paths)
            await self._make_room()
        except TimeoutError:
            await upload.remove()
            raise Refusal("the file arrives too slowly", "send it again", 408, "file") from None
        except BaseException:
            await upload.remove()
            raise
        finally:
            self._stop(upload)
        self._all[upload.id] = upload
        return upload

    def _make_way(self) -> None:
        """Stop an upload that is slow when too many arrive, or refuse the next one."""
        if len(self._arriving) < allowances.ARRIVING:
            return
        slow = next((upload for upload in self._arriving if upload.is_slow), None)
        if slow is None:
            raise Refusal(
                f"{len(self._arriving)} files are arriving already",
                "try again in a moment",
                503,
                "file",
            )
        self._stop(slow)

    def _stop(self, upload: Upload) -> None:
        """Let it be no longer among those arriving."""
        if upload in self._arriving:
            self._arriving.remove(upload)
        with contextlib.suppress(RuntimeError):  # it has not begun, or has ended
            upload.until.reschedule(asyncio.get_running_loop().time())

    def start(self, upload: Upload, asked: dict[str, Any]) -> None:
        """Debias a file in the background."""
        if upload.running:
            raise Refusal("this file is being debiased already", "wait for it, or remove it", 409)
        if any(other.running for other in self._all.values()):
            raise Refusal("another file is being debiased", "wait for it, or remove it", 503)
        upload.result, upload.error, upload.share = {}, None, 0.0
        upload.output.unlink(missing_ok=True)
        upload.job = asyncio.create_task(_debias(upload, asked))

    async def remove(self, id: str) -> None:
        """Delete an upload."""
        upload = self.find(id)
        del self._all[id]
        await upload.remove()

    async def _make_room(self) -> None:
        while len(self._all) >= allowances.FILES:
            idle = [u for u in self._all.values() if not u.running]
            if not idle:
                raise Refusal("too many files are being debiased", "try again in a moment", 503)
            await self.remove(min(idle, key=lambda u: u.used).id)

    async def _sweep(self) -> None:
        """Remove what has not been used for a while."""
        while True:
            await asyncio.sleep(60)
            old = time.monotonic() - allowances.KEEP_SECONDS
            for upload in list(self._all.values()):
                if upload.used < old and not upload.running:
                    await self.remove(upload.id)


async def _debias(upload: Upload, asked: dict[str, Any]) -> None:
    """Debias a file, and keep what became of it."""
    watch = partial(setattr, upload, "share")
    try:
        upload.result = await alone("debias", {**asked, **upload.paths}, watch)
    except Refusal as refusal:
        upload.error = refusal.record()
    upload.used = time.monotonic()


def _named(name: str) -> tuple[str, str]:
    """Return a name fit for a download, and the format.

    Examples
    --------
    >>> _named("../../etc/pass wd.CSV")
    ('pass wd.CSV', 'csv')
    """
    plain = _SAFE.sub("_", name.replace("\\", "/").rpartition("/")[2])[-80:].strip(" .")
    suffix = plain.rpartition(".")[2].lower()
    suffix = {"pq": "parquet", "tab": "tsv", "txt": "csv"}.get(suffix, suffix)
    if suffix not in FORMATS:
        raise Refusal(
            f"{plain[:60]!r} is neither CSV nor Parquet by its name",
            "name it .csv, .tsv or .parquet",
            415,
            "file",
        )
    return plain, suffix
