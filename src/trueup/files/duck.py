"""DuckDB, the embedded engine: streams files that are larger than memory."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.files import progress
from trueup.files.kinds import cast, restored
from trueup.files.paths import exact
from trueup.files.query import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from trueup.files.formats import Format
    from trueup.files.kinds import Kinds

_LEAST = 512
_PER_COLUMN = 6  # MB: a few row groups of 122,880 numbers on their way
_BATCH = 100_000
_DICTIONARY = 5_000  # noisy numbers hardly repeat: to look for more takes a fifth of the time
_PIPE = 1 << 16
_SETTINGS = (
    "enable_progress_bar = true",
    "enable_progress_bar_print = false",
    "progress_bar_time = 0",
    "arrow_lossless_conversion = true",  # a uuid is no text
)


def enough(columns: int, cores: int, installed: float) -> str:
    """Return how much memory to allow for rows of so many columns; the rest goes to disk.

    Parameters
    ----------
    columns, cores
        How wide the rows are, and how many threads work on them.
    installed
        Megabytes of the machine.

    Examples
    --------
    >>> enough(8, 2, 16_000), enough(300, 8, 64_000), enough(300, 8, 8_000)
    ('512MB', '14400MB', '4800MB')
    """
    wanted = max(_LEAST, _PER_COLUMN * columns * cores)
    return f"{min(wanted, max(_LEAST, round(0.6 * installed)))}MB"


def installed() -> float:
    """Return the memory of the machine in megabytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (AttributeError, ValueError, OSError):
        return 4000.0


class Duck:
    """A connection, with its settings."""

    def __init__(
        self,
        memory: str,
        spill: Path | None = None,
        watch: Callable[[float], None] | None = None,
    ) -> None:
        self.watch = watch
        self.duckdb = optional("duckdb", "tables", "the engine duckdb")
        arrow = optional("pyarrow", "tables", "the engine duckdb")
        self.errors: tuple[type[Exception], ...] = (
            self.duckdb.Error,
            arrow.ArrowException,
            OSError,
        )
        options = {"autoinstall_known_extensions": "false", "memory_limit": memory}
        if spill is not None:
            options["temp_directory"] = exact(spill)
        try:
            self.connection = self.duckdb.connect(config=options)
        except self.duckdb.Error as error:
            message = str(error).split("\n", 1)[0]
            raise TrueupError(f"duckdb refuses --memory {memory}: {message}", "e.g. 4GB") from None
        for setting in _SETTINGS:
            self.connection.execute(f"SET {setting}")

    def close(self) -> None:
        """Let go of files and memory."""
        self.connection.close()

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which is watched and can be interrupted."""
        rows: list[tuple[Any, ...]] = self._watched(lambda: self.connection.execute(sql).fetchall())
        return rows

    def aligned(self, query: str) -> str:
        """Return the rows of a query as a table to look at."""
        names = [str(row[0]) for row in self.ask(f"DESCRIBE {query}")]
        return aligned(names, self.ask(query))

    def _watched(self, work: Callable[[], Any]) -> Any:
        share = getattr(self.connection, "query_progress", lambda: -1.0)  # from DuckDB 1.3 on
        return progress.run(work, share, self.connection.interrupt, self.watch)

    def write(
        self, query: str, path: Path, form: Format, compression: str | None, kinds: Kinds
    ) -> int:
        """Write the rows of a query to a file, in order; return how many.

        Text is written, and packed, by us: where a disk is full, DuckDB's threads may wait for
        each other for ever (2.0).
        """
        if not (form.is_arrow or (form.is_text and os.name == "posix")):
            return int(self.ask(copy(query, exact(path), form, compression))[0][0])
        with path.open("wb") as file, self._packed(file, form.packed) as out:
            plain = form._replace(packed=None)
            return self.stream(query, out, plain, compression, kinds)

    def _packed(self, file: BinaryIO, packed: str | None) -> Any:
        """Return a stream that packs what is written to it."""
        if packed is None:
            return nullcontext(file)
        arrow = optional("pyarrow", "tables", "the engine duckdb")
        return arrow.CompressedOutputStream(file, packed)

    def stream(
        self, query: str, out: Any, form: Format, compression: str | None, kinds: Kinds
    ) -> int:
        """Write the rows of a query to a pipe; return how many."""
        if form.is_arrow:
            return self._write_arrow(query, out, form, compression, kinds)
        with self._pumped(out) as path:
            return int(self.ask(copy(query, path, form, compression))[0][0])

    def _write_arrow(
        self, query: str, out: Any, form: Format, compression: str | None, kinds: Kinds
    ) -> int:
        ipc = optional("pyarrow.ipc", "tables", "writing Arrow files")
        make = ipc.new_file if form.name == "arrow" else ipc.new_stream
        options = ipc.IpcWriteOptions(compression=None if compression == "none" else compression)

        def work() -> int:
            relation = self.connection.sql(query)
            reader = getattr(relation, "to_arrow_reader", relation.fetch_arrow_reader)(_BATCH)
            schema, rows = restored(reader.schema, kinds), 0
            with make(out, schema, options=options) as writer:
                for batch in reader:
                    writer.write_batch(cast(batch, schema))
                    rows += len(batch)
            return rows

        return int(self._watched(work))

    @contextmanager
    def _pumped(self, out: Any) -> Iterator[str]:
        """Yield a name to write to; what is written goes on to a stream, as it comes.

        Where that fails the query is stopped, and what it still writes is read and dropped.
        """
        read, write = os.pipe()
        failed: list[OSError] = []

        def pump() -> None:
            try:
                while block := os.read(read, _PIPE):
                    out.write(block)
                out.flush()
            except OSError as error:
                failed.append(error)
                self.connection.interrupt()
                while os.read(read, _PIPE):
                    pass
            finally:
                os.close(read)

        thread = threading.Thread(target=pump, daemon=True)
        thread.start()
        try:
            yield f"/dev/fd/{write}"
        finally:
            os.close(write)
            thread.join()
            if failed:
                raise failed[0] from None


def copy(query: str, path: str, form: Format, compression: str | None) -> str:
    """Return the statement that writes a query to a file.

    Examples
    --------
    >>> from trueup.files.formats import Format
    >>> print(copy("SELECT 1", "out.csv.gz", Format("csv", "gzip"), None))
    COPY (
    SELECT 1
    ) TO 'out.csv.gz' (FORMAT csv, HEADER, DELIMITER ',', COMPRESSION gzip, USE_TMP_FILE false)
    """
    if form.is_text:
        delimiter = literal("\t" if form.name == "tsv" else ",")
        options = f"csv, HEADER, DELIMITER {delimiter}, COMPRESSION {form.packed or 'none'}"
    else:
        packing = {"none": "uncompressed"}.get(compression or "", compression or "snappy")
        options = f"parquet, COMPRESSION {packing}, DICTIONARY_SIZE_LIMIT {_DICTIONARY}"
    return f"COPY (\n{query}\n) TO {literal(path)} (FORMAT {options}, USE_TMP_FILE false)"


def aligned(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table to look at.

    Examples
    --------
    >>> print(aligned(["state", "pay"], [["A", 1.25], ["B", None]]))
    state   pay
    A      1.25
    B
    """
    shown = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *shown, strict=True)]
    numeric = (int, float, type(None))
    right = [all(isinstance(row[i], numeric) for row in rows) for i in range(len(names))]
    lines = [
        "  ".join(
            f"{cell:>{w}}" if r else f"{cell:<{w}}"
            for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [list(names), *shown]
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else f"{value}"
