"""The columns and first rows of a file."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

from trueup.errors import TrueupError
from trueup.explorer import allowances
from trueup.extras import optional
from trueup.files.formats import Format, by_suffix
from trueup.files.sources import text_of, usual_delimiter

_CELL = 80
_COLUMNS = 200
_LINE = 1 << 20


def preview(path: Path) -> dict[str, Any]:
    r"""Return the columns with their types, the first rows as text, and the rows if known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "counts.csv")
    ...     _ = path.write_text("town,n\nAy,12\nBe,7\n", "utf-8")
    ...     preview(path)
    {'columns': ['town', 'n'], 'rows': [['Ay', '12'], ['Be', '7']], 'count': None}
    """
    if path.stat().st_size == 0:
        raise TrueupError(f"{path} is empty", "give a file with a header")
    table = _parquet(path) if path.suffix == ".parquet" else _text(path)
    if len(table["columns"]) > _COLUMNS:
        raise TrueupError(
            f"{path} has {len(table['columns'])} columns, the page takes {_COLUMNS}",
            "use trueup debias in a terminal",
        )
    return table


def _parquet(path: Path) -> dict[str, Any]:
    pyarrow = optional("pyarrow", "tables", "reading Parquet")
    parquet = optional("pyarrow.parquet", "tables", "reading Parquet")
    try:
        with parquet.ParquetFile(path, memory_map=False) as file:
            columns, count = list(file.schema_arrow.names), file.metadata.num_rows
            batch = next(file.iter_batches(allowances.PREVIEW, use_threads=False), None)
            rows = [] if batch is None else list(zip(*batch.to_pydict().values(), strict=True))
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0][:160]
        raise TrueupError(
            f"{path} cannot be read as Parquet: {reason}", "it may be damaged or incomplete"
        ) from None
    return {"columns": columns, "rows": [_cells(row) for row in rows], "count": count}


def _text(path: Path) -> dict[str, Any]:
    form = by_suffix(path) or Format("csv")
    delimiter = usual_delimiter(path, form, str(path))
    try:
        with text_of(path, form, str(path)) as lines:
            reader = csv.reader(_short(lines), delimiter=delimiter)
            columns = next(reader, [])
            rows = list(itertools.islice(reader, allowances.PREVIEW))
    except (csv.Error, UnicodeDecodeError) as error:
        problem = f"{path} cannot be read as CSV: {error}"
        raise TrueupError(problem, "check its quotes; it must be in UTF-8") from None
    if not columns or not any(name.strip() for name in columns):
        raise TrueupError(f"the first line of {path} names no columns", "give a file with a header")
    return {"columns": columns, "rows": [_cells(row) for row in rows], "count": None}


def _short(lines: Any) -> Any:
    """Yield lines, but refuse one without an end in sight."""
    while line := lines.readline(_LINE):
        if len(line) >= _LINE:
            raise csv.Error(f"a line has more than {_LINE} characters")
        yield line


def _cells(row: Any) -> list[str]:
    shown = ["" if cell is None else str(cell) for cell in row]
    return [cell if len(cell) <= _CELL else f"{cell[: _CELL - 1]}…" for cell in shown]
