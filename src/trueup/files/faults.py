"""What went wrong in the engine, said so that it can be put right: which file, line and value."""

from __future__ import annotations

import csv
import errno
import math
import os
import re
from typing import TYPE_CHECKING

from trueup.errors import TrueupError, quoted
from trueup.extras import optional
from trueup.files.paths import exact
from trueup.files.query import MARK, quote
from trueup.files.sources import text_of

if TYPE_CHECKING:
    from trueup.files.duck import Duck
    from trueup.files.query import Check, Statement
    from trueup.files.sources import Source

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""Errors of the system that only writing has."""

_ERRNO = re.compile(r'"errno":\s*"(\d+)"')
_LINE = re.compile(r"CSV Error on Line: (\d+)\s*\n(?:Original Line: .*\n)?(.*)")
_SYSTEM = {
    "No space left on device": errno.ENOSPC,
    "File too large": errno.EFBIG,
    "Broken pipe": errno.EPIPE,
    "Disk quota exceeded": errno.EDQUOT,
    "Permission denied": errno.EACCES,
    "Input/output error": errno.EIO,
}


def translated(
    error: Exception, duck: Duck, source: Source, statement: Statement | None, out: str
) -> BaseException:
    """Return an error of the engine as one of ours, of the system, or as an interrupt."""
    message = str(error)
    if "INTERRUPT Error" in message:
        return KeyboardInterrupt()
    if code := _system_code(message):
        return OSError(code, os.strerror(code), None if code == errno.EPIPE else out)
    if statement is not None and (MARK in message or "Conversion Error" in message):
        try:
            searched = (_search(duck, source, statement, c) for c in statement.checks())
            if found := next(filter(None, searched), None):
                return found
        except duck.errors as other:  # a line further on cannot be read at all
            return translated(other, duck, source, None, out)
    if "Out of Memory Error" in message:
        return TrueupError(
            f"the memory limit is too small: {_first(message)}", "raise it, e.g. --memory 4GB"
        )
    if (line := _LINE.search(message)) and "unterminated quote" in message:
        return TrueupError(
            f"{source.name}, line {line[1]}: a quote is opened there and never closed",
            'close it; a quote inside a quoted field is written ""',
        )
    if line:
        return TrueupError(
            f"{source.name}, line {line[1]}: {line[2].strip()}",
            "correct that line; every line needs as many fields as the header, in UTF-8",
        )
    return TrueupError(
        f"{source.name} cannot be read: {_first(message)}",
        "the file is damaged, incomplete or of another format; fetch it again, or give --from",
    )


def _system_code(message: str) -> int | None:
    found = _ERRNO.search(message)
    if found:
        return int(found[1])
    return next((code for text, code in _SYSTEM.items() if text in message), None)


def _first(message: str) -> str:
    """Return the first line, without the kind of error that the engine puts before it."""
    line = message.split("\n", 1)[0].strip()
    return re.sub(r"^[A-Z][\w ]*(?:Error|Exception): ", "", line)


def _search(duck: Duck, source: Source, statement: Statement, check: Check) -> TrueupError | None:
    """Return the refusal of the first value that fails a check, None if none does."""
    row = f"{statement.prefix}row"
    found = duck.ask(
        f"SELECT COUNT(*), MIN({row}), ARG_MIN(COALESCE(CAST({quote(check.column)} AS VARCHAR), "
        f"'NULL'), {row}) FROM (SELECT *, ROW_NUMBER() OVER () AS {row} FROM {statement.source}) "
        f"WHERE {check.bad}"
    )
    count, row, value = found[0]
    if not count:
        return None
    place = f"{_place(source, row)}, column {quoted(check.column)}"
    more = f" ({count:,} rows like it)" if count > 1 else ""
    shown = quoted(str(value)) if check.kind == "text" else value
    what, hint = _WORDS.get(check.kind, _WORDS["cast"])
    most = statement.limits.get(check.column, math.inf)
    limit = "finite" if math.isinf(most) else f"below {most:g} for this formula"
    if check.kind == "text" and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", str(value)):
        hint = "if a comma stands before the decimals: --decimal ,"
    names = {"value": shown, "kind": check.kind, "column": check.column, "limit": limit}
    return TrueupError(f"{place}: {what.format(**names)}{more}", hint.format(**names))


_WORDS = {
    "text": (
        "{value} is no number",
        "correct it, or add --null {value} if it stands for a missing number",
    ),
    "broken": (
        "{value} is not a whole number, but its noise is on the integers",
        "check the column, or describe the noise as continuous, e.g. laplace(2)",
    ),
    "scale": (
        "a noise scale must be positive and {limit}, got {value}",
        "leave these rows out, or correct their scale",
    ),
    "cast": (
        "{value} does not fit the type {kind} that the first rows have",
        "keep the column as text: --text {column}",
    ),
}


def _place(source: Source, row: int) -> str:
    """Return where a row is: file and line of text, file and row of others."""
    for file in source.files:
        shown = source.name if len(source.files) == 1 else str(file)
        rows = 0
        if source.format.is_text:
            with text_of(file, source.format, source.name) as lines:
                records = csv.reader(lines, delimiter=source.delimiter)
                next(records)
                for record in records:
                    rows += bool(record) or len(source.columns) == 1
                    if rows == row:
                        return f"{shown}, line {records.line_num}"
        elif source.format.name == "parquet" and len(source.files) > 1:
            parquet = optional("pyarrow.parquet", "tables", "reading Parquet")
            rows = parquet.read_metadata(exact(file)).num_rows
            if row <= rows:
                return f"{shown}, row {row:,}"
        else:
            break
        row -= rows
    return f"{source.name}, row {row:,}"
