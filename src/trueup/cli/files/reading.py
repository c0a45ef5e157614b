"""What follows FROM, for DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.cli.files.statement import is_known, literal, misfit, quote
from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trueup.cli.files.duck import Duck
    from trueup.cli.files.sources import Source

_ARROW = "trueup_arrow_files"
_SAMPLE = 20_480
_TYPES = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP")


def reading(duck: Duck, source: Source) -> str:
    """Return the files as a table; text files as columns of text, so that 01 stays 01.

    Names of folders are text for the same reason.
    """
    hive = ", hive_partitioning = true, hive_types_autocast = false" if source.hive else ""
    if source.format.name == "parquet":
        union = ", union_by_name = true" if len(source.files) > 1 else ""
        return f"read_parquet({_files(source.files)}{union}{hive})"
    if source.format.is_text:
        return _csv(source, hive or ", hive_partitioning = false")
    duck.connection.register(_ARROW, _dataset(source))
    return _ARROW


def _files(files: Sequence[Path]) -> str:
    """Return names as a list, with the signs of patterns escaped.

    Examples
    --------
    >>> from pathlib import Path
    >>> _files([Path("a*.csv")])
    "['a[*].csv']"
    """
    escape = str.maketrans({sign: f"[{sign}]" for sign in "*?["})
    return f"[{', '.join(literal(str(file).translate(escape)) for file in files)}]"


def _csv(source: Source, hive: str) -> str:
    own = [name for name in source.columns if name not in source.hive]
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in own)
    return (
        f"read_csv({_files(source.files)}, auto_detect = false, header = true, "
        f"delim = {literal(source.delimiter)}, quote = '\"', escape = '\"', "
        f"allow_quoted_nulls = false, compression = '{source.format.packed or 'none'}', "
        f"columns = {{{columns}}}{hive})"
    )


def _dataset(source: Source) -> Any:
    """Return Arrow files as a dataset that can be scanned more than once."""
    pyarrow = optional("pyarrow", "tables", "reading Arrow files")
    dataset = optional("pyarrow.dataset", "tables", "reading Arrow files")
    if source.format.name == "arrows":
        return _stream(pyarrow, source.files)
    keys = pyarrow.schema([(key, pyarrow.string()) for key in source.hive])
    partitioning = dataset.partitioning(keys, flavor="hive") if source.hive else None
    return dataset.dataset(
        [str(file) for file in source.files], format="ipc", partitioning=partitioning
    )


def _stream(pyarrow: Any, files: Sequence[Path]) -> Any:
    """Return the batches of Arrow streams, memory-mapped."""
    ipc = optional("pyarrow.ipc", "tables", "reading Arrow streams")
    tables = [ipc.open_stream(pyarrow.memory_map(str(file))).read_all() for file in files]
    return pyarrow.concat_tables(tables)


def types(duck: Duck, table: str, names: Sequence[str]) -> dict[str, str]:
    """Return the columns and their types in the engine."""
    listed = ", ".join(map(quote, names))
    return {str(row[0]): str(row[1]) for row in duck.ask(f"DESCRIBE SELECT {listed} FROM {table}")}


def guessed(
    duck: Duck, table: str, names: Sequence[str], nulls: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return the types that columns of text have in their first rows, where it is not text."""
    tests = [
        f"COUNT_IF({test})"
        for column in map(quote, names)
        for test in (is_known(column, nulls), *(misfit(column, kind, nulls) for kind in _TYPES))
    ]
    if not tests:
        return {}
    row = duck.ask(f"SELECT {', '.join(tests)} FROM (SELECT * FROM {table} LIMIT {_SAMPLE})")[0]
    found, size = {}, 1 + len(_TYPES)
    for i, name in enumerate(names):
        known, *misfits = row[size * i : size * (i + 1)]
        kinds = [kind for kind, count in zip(_TYPES, misfits, strict=True) if not count]
        if known and kinds:
            found[name] = kinds[0]
    return found
