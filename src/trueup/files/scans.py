"""What follows FROM, for DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.files.paths import exact
from trueup.files.query import is_known, literal, misfit, quote, with_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trueup.files.duck import Duck
    from trueup.files.sources import Source

_ARROW = "trueup_arrow_files"
_FIRST = "trueup_first_rows"
_ROWS = 20_480  # ten of the engine's vectors: enough to see a type, read in a moment
_AT_ONCE = 32  # columns: the engine plans a query in a time that grows like their square
_SIGNS = "*?["
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_TYPES = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP")


def reading(duck: Duck, source: Source) -> str:
    """Return the files as a table; text files as columns of text, so that 01 stays 01.

    Names of folders are text for the same reason, and columns only where that was asked for.
    """
    if source.format.name == "parquet":
        return parquet(source.files, hive=bool(source.hive))
    if source.format.is_text:
        return _csv(source)
    duck.connection.register(_ARROW, _dataset(source))
    return _ARROW


def parquet(files: Sequence[Path], *, hive: bool = False) -> str:
    """Return Parquet files as a table, the names in them as the only columns unless ``hive``."""
    union = ", union_by_name = true" if len(files) > 1 else ""
    return f"read_parquet({_files(files)}{union}{_hive(hive=hive)})"


def _hive(*, hive: bool) -> str:
    """Return whether folders called key=value are columns: DuckDB must be told, or it guesses."""
    return f", hive_partitioning = {str(hive).lower()}{', hive_types_autocast = false' * hive}"


def _files(files: Sequence[Path]) -> str:
    """Return names as a list, with the signs of patterns escaped.

    Examples
    --------
    >>> from pathlib import Path
    >>> _files([Path("/a*.csv")])
    "['/a[*].csv']"
    """
    return f"[{', '.join(literal(_escaped(exact(file))) for file in files)}]"


def _escaped(path: str) -> str:
    """Return a path as a pattern that matches only itself."""
    if "\\" in path and any(sign in path for sign in _SIGNS):  # in patterns \ is a / to the engine
        raise TrueupError(
            f"the engine cannot be told the path {path}: it has both \\ and one of {_SIGNS}",
            "rename the file or its folder",
        )
    return "".join(f"[{sign}]" if sign in _SIGNS else sign for sign in path)


def _csv(source: Source) -> str:
    own = [name for name in source.columns if name not in source.hive]
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in own)
    return (
        f"read_csv({_files(source.files)}, auto_detect = false, header = true, "
        f"delim = {literal(source.delimiter)}, quote = '\"', escape = '\"', "
        f"allow_quoted_nulls = false, compression = '{source.format.packed or 'none'}', "
        f"columns = {{{columns}}}{_hive(hive=bool(source.hive))})"
    )


def _dataset(source: Source) -> Any:
    """Return Arrow files as a dataset that can be scanned more than once."""
    pyarrow = optional("pyarrow", "tables", "reading Arrow files")
    dataset = optional("pyarrow.dataset", "tables", "reading Arrow files")
    if source.format.name == "arrows":
        return _streams(pyarrow, source)
    keys = pyarrow.schema([(key, pyarrow.string()) for key in source.hive])
    partitioning = dataset.partitioning(keys, flavor="hive") if source.hive else None
    parts = [dataset.dataset(exact(f), format="ipc").schema for f in source.files]
    schema = pyarrow.unify_schemas([*parts, keys], promote_options="permissive")
    files = [exact(file) for file in source.files]
    return dataset.dataset(files, schema, format="ipc", partitioning=partitioning)


def _streams(pyarrow: Any, source: Source) -> Any:
    """Return the batches of Arrow streams, memory-mapped, with the names of their folders."""
    ipc = optional("pyarrow.ipc", "tables", "reading Arrow streams")
    tables = []
    for file in source.files:
        table = ipc.open_stream(pyarrow.memory_map(exact(file))).read_all()
        values = dict(part.split("=", 1) for part in file.parts[:-1] if "=" in part[1:])
        for key in source.hive:
            value = None if values[key] == _NO_VALUE else unquote(values[key])
            column = pyarrow.repeat(pyarrow.scalar(value, pyarrow.string()), len(table))
            table = table.append_column(key, column)
        tables.append(table)
    return pyarrow.concat_tables(tables, promote_options="permissive")


def types(duck: Duck, table: str, names: Sequence[str]) -> dict[str, str]:
    """Return the columns and their types in the engine."""
    listed = ", ".join(map(quote, names))
    return {str(row[0]): str(row[1]) for row in duck.ask(f"DESCRIBE SELECT {listed} FROM {table}")}


def guessed(
    duck: Duck, table: str, names: Sequence[str], nulls: Sequence[str] = (), decimal: str = "."
) -> Mapping[str, str]:
    """Return the types that columns of text have in their first rows, where it is not text."""
    if not names:
        return {}
    listed = ", ".join(f"{with_points(quote(n), decimal)} AS {quote(n)}" for n in names)
    duck.ask(f"CREATE OR REPLACE TEMP TABLE {_FIRST} AS SELECT {listed} FROM {table} LIMIT {_ROWS}")
    found: dict[str, str] = {}
    for i in range(0, len(names), _AT_ONCE):
        found |= _guessed(duck, names[i : i + _AT_ONCE], nulls)
    duck.ask(f"DROP TABLE {_FIRST}")
    return found


def _guessed(duck: Duck, names: Sequence[str], nulls: Sequence[str]) -> dict[str, str]:
    tests = [
        f"COUNT_IF({test})"
        for column in map(quote, names)
        for test in (is_known(column, nulls), *(misfit(column, kind, nulls) for kind in _TYPES))
    ]
    row = duck.ask(f"SELECT {', '.join(tests)} FROM {_FIRST}")[0]
    found, size = {}, 1 + len(_TYPES)
    for i, name in enumerate(names):
        known, *misfits = row[size * i : size * (i + 1)]
        kinds = [kind for kind, count in zip(_TYPES, misfits, strict=True) if not count]
        if known and kinds:
            found[name] = kinds[0]
    return found
