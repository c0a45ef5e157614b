"""The files to read: one, a glob, a folder with or without Hive partitions, or a pipe."""

from __future__ import annotations

import csv
import dataclasses
import glob
import io
import itertools
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.files import formats
from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.formula.refusal import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.cli.files.formats import Format

_MISSING = "check the path; a pattern such as 'data/*.parquet' needs quotes in the shell"
_HEAD = 1 << 20


@dataclasses.dataclass(frozen=True)
class Source:
    """Files of one format with the same columns, in the order in which they are read."""

    name: str
    files: tuple[Path, ...]
    format: Format
    columns: tuple[str, ...]
    delimiter: str = ","
    hive: tuple[str, ...] = ()


@contextmanager
def opened(text: str, given: str | None, delimiter: str | None) -> Iterator[Source]:
    """Yield the source; what comes through a pipe is kept in a temporary file meanwhile."""
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise TrueupError(f"a delimiter is one sign, got {delimiter!r}", "e.g. --delimiter ';'")
    if text != "-":
        yield locate(text, given, delimiter)
        return
    with tempfile.NamedTemporaryFile(prefix="trueup-stdin-") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool, _HEAD)
        spool.flush()
        with Path(spool.name).open("rb") as file:
            found = formats.by_content(file.read(_HEAD))
        form = found if given is None else formats.Format(given, found.packed)
        yield _source("standard input", [Path(spool.name)], form, delimiter)


def locate(text: str, given: str | None, delimiter: str | None) -> Source:
    """Return the files that a path, a pattern or a folder stands for."""
    path = Path(text)
    if path.is_dir():
        files = [f for f in sorted(path.rglob("*")) if f.is_file() and not _hidden(f, path)]
        if given is None:
            files = [f for f in files if formats.by_suffix(f)]
        return _several(text, files, given, delimiter, path)
    if path.exists():
        return _source(text, [path], formats.named(given, path, "--from"), delimiter)
    if glob.has_magic(text):
        files = [f for f in map(Path, sorted(glob.glob(text, recursive=True))) if f.is_file()]  # noqa: PTH207
        base = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
        return _several(text, files, given, delimiter, base)
    if "://" in text:
        raise TrueupError(f"{text} is not a local file", "download it first")
    raise TrueupError(f"there is no file {text}", _MISSING)


def _hidden(file: Path, folder: Path) -> bool:
    """Whether a file is bookkeeping, such as _SUCCESS or .crc, and not data."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _several(
    text: str, files: list[Path], given: str | None, delimiter: str | None, base: Path
) -> Source:
    if not files:
        raise TrueupError(f"no data file matches {text}", _MISSING)
    found = {formats.named(given, file, "--from") for file in files}
    if len(found) > 1:
        names = ", ".join(sorted(" ".join(filter(None, form[::-1])) for form in found))
        raise TrueupError(
            f"{text} holds files of several formats: {names}",
            "choose one with a pattern, e.g. 'folder/*.parquet'",
        )
    return _source(text, files, found.pop(), delimiter, _hive_keys(files, base))


def _source(
    text: str,
    files: list[Path],
    form: Format,
    delimiter: str | None,
    hive: tuple[str, ...] = (),
) -> Source:
    """Return the source, once all files have the same columns."""
    first: tuple[str, ...] | None = None
    for file in files:
        if file.stat().st_size == 0:
            raise TrueupError(f"{_shown(text, file)} is empty", "give a file with a header")
        if form.is_text and delimiter is None:
            delimiter = _delimiter(file, form, text)
        columns = _columns(file, form, delimiter or ",", text)
        if first is None:
            first = columns
        elif columns != first:
            raise _different(files[0], first, file, columns)
    assert first is not None  # noqa: S101  (there is at least one file)
    names = (*first, *(key for key in hive if key not in first))
    check_names(text, names)
    return Source(text, tuple(files), form, names, delimiter or ",", hive)


def _shown(text: str, file: Path) -> str:
    return text if text == "standard input" else str(file)


def _hive_keys(files: list[Path], base: Path) -> tuple[str, ...]:
    """Return the keys of folders named key=value below the base, if all files have the same."""
    keys = {
        tuple(part.split("=")[0] for part in file.relative_to(base).parts[:-1] if "=" in part[1:])
        for file in files
    }
    return keys.pop() if len(keys) == 1 else ()


def check_names(text: str, names: tuple[str, ...]) -> None:
    """Refuse names that an engine would take for one: SQL does not tell n from N."""
    for name, count in Counter(name.lower() for name in names).items():
        if count > 1:
            same = [n for n in names if n.lower() == name]
            problem = (
                f"the column {quoted(same[0])} occurs {count} times"
                if len(set(same)) == 1
                else f"the columns {', '.join(map(quoted, same))} differ in case only"
            )
            raise TrueupError(f"{text}: {problem}", "rename them so that each name is unique")


def _different(
    one: Path, first: tuple[str, ...], other: Path, columns: tuple[str, ...]
) -> TrueupError:
    lacking, extra = [c for c in first if c not in columns], [c for c in columns if c not in first]
    what = (
        f"{other} lacks {', '.join(map(quoted, lacking))}"
        if lacking
        else f"{one} lacks {', '.join(map(quoted, extra))}"
        if extra
        else f"{other} has them in another order"
    )
    return TrueupError(
        f"the files differ in their columns: {what}", "debias them one by one, or make them alike"
    )


# -- the columns of one file -----------------------------------------------------------------------


def _columns(file: Path, form: Format, delimiter: str, text: str) -> tuple[str, ...]:
    if form.is_text:
        return _header(file, form, delimiter, text)
    try:
        return tuple(_schema(file, form).names)
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(text, file, form, error) from None
    except optional("pyarrow", "tables", "reading files").ArrowException as error:
        raise _damaged(text, file, form, error) from None


def _damaged(text: str, file: Path, form: Format, error: Exception) -> TrueupError:
    reason = str(error).split("\n", 1)[0].split(". ", 1)[0]
    return TrueupError(
        f"{_shown(text, file)} cannot be read as {form.name}: {reason}",
        "the file is damaged, incomplete or of another format; fetch it again, or give --from",
    )


def _schema(file: Path, form: Format) -> Any:
    if form.name == "parquet":
        return optional("pyarrow.parquet", "tables", "reading Parquet").read_schema(file)
    ipc = optional("pyarrow.ipc", "tables", "reading Arrow files")
    with file.open("rb") as stream:
        return (ipc.open_file if form.name == "arrow" else ipc.open_stream)(stream).schema


def _header(file: Path, form: Format, delimiter: str, text: str) -> tuple[str, ...]:
    """Return the names in the first record of a text file."""
    with text_of(file, form, text) as lines:
        try:
            names = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
        except (csv.Error, UnicodeDecodeError) as error:
            raise TrueupError(
                f"the header of {_shown(text, file)} cannot be read: {error}",
                "the first line must hold the names of the columns, in UTF-8",
            ) from None
    if any(not name.strip() for name in names):
        place = 1 + next(i for i, name in enumerate(names) if not name.strip())
        raise TrueupError(
            f"{_shown(text, file)}: column {place} has no name", "name it in the first line"
        )
    if not names:
        raise TrueupError(f"{_shown(text, file)} has no header", "give the names of the columns")
    return tuple(names)


def _delimiter(file: Path, form: Format, text: str) -> str:
    """Return the sign between columns: the usual one, or ; or | if only that is there."""
    usual = formats.DELIMITERS[form.name]
    with text_of(file, form, text) as lines:
        first = _first_line(file, lines, text)
    others = [sign for sign in ";|\t" if sign in first]
    return others[0] if usual not in first and len(others) == 1 and form.name == "csv" else usual


def _first_line(file: Path, lines: io.TextIOBase, text: str) -> str:
    try:
        return lines.readline(_HEAD)
    except UnicodeDecodeError as error:
        raise TrueupError(
            f"{_shown(text, file)} is not UTF-8 text: {error.reason} at byte {error.start}",
            "convert it, e.g. iconv -f latin1 -t utf-8, or name its format with --from",
        ) from None


@contextmanager
def text_of(file: Path, form: Format, text: str) -> Iterator[io.TextIOWrapper]:
    """Yield a text file, unpacked."""
    if form.packed is None:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            yield lines
        return
    pyarrow = optional("pyarrow", "tables", "reading compressed files")
    try:
        with pyarrow.input_stream(str(file), compression=form.packed) as stream:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(text, file, form, error) from None
