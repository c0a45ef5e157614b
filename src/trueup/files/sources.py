"""The files to read: one, a glob, a folder with or without Hive partitions, or a pipe."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import difflib
import glob
import io
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trueup.errors import TrueupError, quoted
from trueup.extras import optional
from trueup.files import formats, kinds
from trueup.files.paths import exact, folder_keys
from trueup.files.targets import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trueup.files.formats import Format

_MISSING = "check the path; a pattern such as 'data/*.parquet' needs quotes in the shell"
_HEAD = 1 << 20
_SPOOL = "trueup-pipe-"

Columns = dict[str, Any]
"""Names in order, with their Arrow types, or None for text."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Files of one format with the same columns, in the order in which they are read.

    Parameters
    ----------
    name
        What the user calls them.
    files, format, delimiter
        Where they are, and what they hold.
    columns
        All names, those of folders last.
    hive
        The names among them that come from folders called key=value.
    types
        The Arrow types of the columns; text files have none.
    """

    name: str
    files: tuple[Path, ...]
    format: Format
    columns: tuple[str, ...]
    delimiter: str = ","
    hive: tuple[str, ...] = ()
    types: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@contextmanager
def opened(
    text: str, given: str | None, delimiter: str | None, *, hive: bool = False
) -> Iterator[Source]:
    """Yield the source; what comes through a pipe is kept in a temporary file meanwhile."""
    delimiter = checked_delimiter(delimiter)
    if text != "-" and not _is_stream(Path(text)):
        yield locate(text, given, delimiter, hive=hive)
        return
    name = "standard input" if text == "-" else text
    if hive:
        raise TrueupError(f"{name} is a pipe and lies in no folders", "leave --hive out")
    with _spool() as (spool, kept):
        with contextlib.ExitStack() as stack:
            stream = sys.stdin.buffer if text == "-" else stack.enter_context(Path(text).open("rb"))
            shutil.copyfileobj(stream, spool, _HEAD)
        spool.flush()
        with kept.open("rb") as file:
            found = formats.by_suffix(Path(text)) or formats.by_content(file.read(_HEAD))
        form = found if given is None else formats.Format(given, found.packed)
        yield _source(name, [kept], form, delimiter)


@contextmanager
def _spool() -> Iterator[tuple[IO[bytes], Path]]:
    """Yield a temporary file that is locked while it is used; remove those of killed runs."""
    for old in Path(tempfile.gettempdir()).glob(f"{_SPOOL}*"):
        with contextlib.suppress(OSError), old.open("rb") as file:
            if locked(file.fileno()):
                old.unlink()
    with tempfile.NamedTemporaryFile(prefix=f"new-{_SPOOL}", delete=False) as spool:
        kept = Path(spool.name).with_name(Path(spool.name).name.removeprefix("new-"))
        locked(spool.fileno(), wait=True)  # before it has the name by which others look for it
        Path(spool.name).rename(kept)
        try:
            yield spool, kept
        finally:
            kept.unlink(missing_ok=True)


def checked_delimiter(text: str | None) -> str | None:
    """Return the sign that an option stands for."""
    delimiter = {"\\t": "\t", "tab": "\t"}.get(text or "", text)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise TrueupError(f"a delimiter is one sign, got {delimiter!r}", "e.g. --delimiter ';'")
    return delimiter


def _is_stream(path: Path) -> bool:
    """Whether a path can be read once only: a named pipe, /dev/stdin, <(process substitution)."""
    handles = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
    there = path.exists() and not path.is_dir()
    return there and (not path.is_file() or str(path).startswith(handles))


def locate(text: str, given: str | None, delimiter: str | None, *, hive: bool = False) -> Source:
    """Return the files that a path, a pattern or a folder stands for, and what they hold."""
    files, form = find(text, given)
    return _source(text, files, form, delimiter, hive_keys(text, files) if hive else ())


def find(text: str, given: str | None) -> tuple[list[Path], Format]:
    """Return the files that a path, a pattern or a folder stands for, and their format."""
    path = Path(text)
    if path.is_dir():
        files = [f for f in sorted(path.rglob("*")) if not (f.is_dir() or _hidden(f, path))]
        if given is None:
            files = [f for f in files if formats.by_suffix(f)]
        return _several(text, files, given)
    if path.exists():
        return [path], formats.named(given, path, "--from")
    if glob.has_magic(text):
        found = map(Path, sorted(glob.glob(text, recursive=True)))  # noqa: PTH207
        return _several(text, [f for f in found if not f.is_dir()], given)
    if "://" in text:
        raise TrueupError(f"{text} is not a local file", "download it first")
    raise TrueupError(f"there is no file {text}", _MISSING)


def _hidden(file: Path, folder: Path) -> bool:
    """Whether a file is bookkeeping, such as _SUCCESS or .crc, and not data."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _several(text: str, files: list[Path], given: str | None) -> tuple[list[Path], Format]:
    if not files:
        raise TrueupError(f"no data file matches {text}", _MISSING)
    for file in files:
        if not file.is_file():
            what = "a link that leads nowhere" if file.is_symlink() else "no file, but a pipe or so"
            raise TrueupError(f"{file} is {what}", "remove it, or choose others with a pattern")
    found = {formats.named(given, file, "--from") for file in files}
    if len(found) > 1:
        names = ", ".join(sorted(" ".join(filter(None, form[::-1])) for form in found))
        raise TrueupError(
            f"{text} holds files of several formats: {names}",
            "choose one with a pattern, e.g. 'folder/*.parquet'",
        )
    return files, found.pop()


def _source(
    text: str,
    files: list[Path],
    form: Format,
    delimiter: str | None,
    hive: tuple[str, ...] = (),
) -> Source:
    """Return the source, once all files have the same columns."""
    first: Columns | None = None
    for file in files:
        if file.stat().st_size == 0:
            raise TrueupError(f"{_shown(text, file)} is empty", "give a file with a header")
        if form.is_text and delimiter is None:
            delimiter = usual_delimiter(file, form, text)
        columns = _columns(file, form, delimiter or ",", text)
        check_names(text, columns)
        if first is None:
            first = dict(columns)
        else:
            first = _common((files[0], first), (file, dict(columns)))
    assert first is not None  # noqa: S101  (there is at least one file)
    check_hive(text, tuple(first), hive)
    types = {} if form.is_text else first
    return Source(text, tuple(files), form, (*first, *hive), delimiter or ",", hive, types)


def _shown(text: str, file: Path) -> str:
    """Return what to call a file: a pipe's copy by the name of the pipe."""
    return text if file.name.startswith(_SPOOL) else str(file)


# -- folders called key=value ----------------------------------------------------------------------


def hive_keys(text: str, files: Sequence[Path]) -> tuple[str, ...]:
    """Return the keys of the folders called key=value that lead to the files."""
    keys = {folder_keys(file) for file in files}
    if len(keys) > 1:
        shown = " and ".join(sorted("/".join(k) or "none" for k in keys)[:2])
        raise TrueupError(
            f"the folders of {text} have different keys: {shown}", "leave --hive out, or move them"
        )
    found = keys.pop()
    if not found:
        raise TrueupError(f"no folder in {text} is called key=value", "leave --hive out")
    return found


def check_hive(text: str, own: Sequence[str], hive: Sequence[str]) -> None:
    """Refuse folders whose key is a column of the files, or the key of a folder above."""
    if not hive:
        return
    here = () if Path(text).is_absolute() else folder_keys(Path.cwd() / "file")
    above = {key.lower() for key in here}
    for key in hive:
        if key.lower() in {name.lower() for name in own}:
            raise TrueupError(
                f"{text}: {quoted(key)} is a column of the files and the key of a folder",
                "leave --hive out to keep the column, or rename the folders",
            )
    check_names(text, [(key, None) for key in hive])
    for name in (*own, *hive):
        if name.lower() in above:
            raise TrueupError(
                f"{quoted(name)} is also the key of a folder above, in {Path.cwd()}",
                "leave --hive out, or move the files elsewhere",
            )


# -- names and types -------------------------------------------------------------------------------


def check_names(text: str, columns: Iterable[tuple[str, Any]]) -> None:
    """Refuse names that an engine would take for one: SQL does not tell n from N."""
    names = [name for name, _ in columns]
    for name, count in Counter(name.lower() for name in names).items():
        if count > 1:
            same = [n for n in names if n.lower() == name]
            problem = (
                f"the column {quoted(same[0])} occurs {count} times"
                if len(set(same)) == 1
                else f"the columns {', '.join(map(quoted, same))} differ in case only"
            )
            raise TrueupError(f"{text}: {problem}", "rename them so that each name is unique")
    nameless = next((i for i, name in enumerate(names, start=1) if not name.strip()), None)
    if nameless is not None:
        raise TrueupError(f"{text}: column {nameless} has no name", "give it one")


def _common(one: tuple[Path, Columns], two: tuple[Path, Columns]) -> Columns:
    """Return the types that hold the columns of two files unchanged; refuse files that differ."""
    (first, columns), (other, others) = one, two
    shared = {c: kinds.common(kind, others[c]) for c, kind in columns.items() if c in others}
    odd = next((c for c, kind in shared.items() if kind is None and columns[c] is not None), None)
    lacking = [c for c in columns if c not in others]
    extra = [c for c in others if c not in columns]
    if lacking or extra:
        file, names = (other, lacking) if lacking else (first, extra)
        what = f"{file} lacks {', '.join(map(quoted, names))}"
    elif list(columns) != list(others):
        what = f"{other} has them in another order"
    elif odd is not None:
        what = f"{quoted(odd)} is {columns[odd]} in {first} and {others[odd]} in {other}"
    else:
        return shared
    raise TrueupError(
        f"the files differ in their columns: {what}", "debias them one by one, or make them alike"
    )


def found(column: str, option: str, source: Source) -> str:
    """Return the column of a source that an option names; refuse one that is not there."""
    letters = getattr(column, "letters", column)
    same = [name for name in dict.fromkeys((letters, str(column))) if name in source.columns]
    flag, _, name = option.partition(" ")
    if len(same) > 1:
        raise TrueupError(
            f"{source.name} has the columns {' and '.join(map(repr, same))}: {flag} "
            f"{name + letters!r} does not say which",
            f"in backticks it is to the letter: {flag} '{name}`{letters}`'",
        )
    if same:
        return same[0]
    shown = ", ".join(source.columns[:12]) + (", …" if len(source.columns) > 12 else "")
    use = "" if name else f" for {flag}"
    raise TrueupError(
        f"{source.name} has no column {quoted(column)}{use}; it has {shown}",
        _likely(column, option, source),
    )


def _likely(column: str, option: str, source: Source) -> str:
    """Return what to do about a column that is not there."""
    if column in {key for file in source.files for key in folder_keys(file)}:
        return f"add --hive: there are folders called {column}=…"
    folded = {name.lower(): name for name in source.columns}
    near = [folded[c] for c in difflib.get_close_matches(column.lower(), folded, 1)]
    flag, _, name = option.partition(" ")
    plain = not name or _to_the_letter(name[:-1]) == name[:-1]
    name = name if plain else f"{_to_the_letter(name[:-1])}="
    if near:
        return f"did you mean {flag} {shlex.quote(name + _to_the_letter(near[0]))}?"
    return f"say which column it is: {flag} " + (f"{name}…" if plain else f"'{name}…'")


def _to_the_letter(column: str) -> str:
    """Return a column as an option takes it: in backticks where spaces at its ends are its own."""
    return column if column == column.strip() else f"`{column}`"


# -- the columns of one file -----------------------------------------------------------------------


def _columns(file: Path, form: Format, delimiter: str, text: str) -> list[tuple[str, Any]]:
    """Return the names, and the Arrow types where there are any."""
    if form.is_text:
        return [(name, None) for name in _header(file, form, delimiter, text)]
    try:
        return [(field.name, field.type) for field in _schema(file, form)]
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
        return optional("pyarrow.parquet", "tables", "reading Parquet").read_schema(exact(file))
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
    if not names:
        raise TrueupError(f"{_shown(text, file)} has no header", "give the names of the columns")
    return tuple(names)


def usual_delimiter(file: Path, form: Format, text: str) -> str:
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
        with pyarrow.input_stream(exact(file), compression=form.packed) as stream:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(text, file, form, error) from None
