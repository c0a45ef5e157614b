"""The groups of a table, which must be public: a list, levels of each column, a frame or a file.

Which keys occur in the data is confidential. So a group is published if and only if it is listed:
rows of other groups are left out, and how many is not told; groups without records get noise like
any other.

Keys are compared in the type of their column: those of another type would find no rows, and none
would tell. Types are public, like the names of columns: what does not fit is refused. Text is
compared as it is, whole numbers and booleans by how they are written once they are read, and
everything else in the type of the column, by the engine.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from trueup.errors import TrueupError
from trueup.microdata.measures import PLAIN, key_text, plain_value
from trueup.microdata.privacy_notice import UNRELEASED

_MOST = 10**7
"""Groups: they are held in memory, one noisy number each at least."""
_REFUSED = (
    "list the groups to publish: which of them occur in the data is itself confidential; "
    "e.g. keys=['A', 'B'], keys={'state': [...], 'industry': [...]}, a table, or a file"
)


@dataclasses.dataclass(frozen=True)
class Keys:
    """The groups in the order of the table: values as they were given.

    Examples
    --------
    >>> read_keys({"state": ["A", "B"], "year": [1, 2]}, ("state", "year")).rows[:2]
    [('A', 1), ('A', 2)]
    """

    by: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return the keys as columns."""
        return {name: [row[i] for row in self.rows] for i, name in enumerate(self.by)}


def read_by(by: object) -> tuple[str, ...]:
    """Return the columns that make the groups; none for one group of everything."""
    names = [by] if isinstance(by, str) else [] if by is None else by
    good = isinstance(names, Iterable) and not isinstance(names, Mapping)
    listed = list(names) if isinstance(names, Iterable) else []
    if not good or not all(isinstance(n, str) and n for n in listed):
        raise TrueupError(f"by names columns, got {by!r}", "e.g. by=['state', 'industry']")
    if len(set(listed)) != len(listed):
        raise TrueupError(f"by names a column twice: {by!r}", "name each once")
    return tuple(listed)


def read_keys(keys: Any, by: tuple[str, ...]) -> Keys:
    """Return the public groups, or refuse what does not list them."""
    if not by:
        if keys is not None:
            raise TrueupError("keys are given, but no columns", "name the columns, by=[...]")
        return Keys((), [()])
    if keys is None:
        raise TrueupError(f"the groups of {', '.join(by)} are not public without keys", _REFUSED)
    rows = _rows(keys, by)
    if not rows:
        raise TrueupError("the list of keys is empty", _REFUSED)
    texts = [tuple(map(key_text, row)) for row in rows]
    for i, _ in _repeated(texts):
        raise TrueupError(f"the key {', '.join(texts[i])} is listed twice", "list every group once")
    return Keys(by, rows)


def _repeated(keys: Sequence[tuple[str, ...]]) -> Iterator[tuple[int, int]]:
    """Yield the places of keys that are there again, each with the first one."""
    if len(set(keys)) < len(keys):
        seen: dict[tuple[str, ...], int] = {}
        yield from ((seen[k], j) for j, k in enumerate(keys) if seen.setdefault(k, j) != j)


def _rows(keys: Any, by: tuple[str, ...]) -> list[tuple[Any, ...]]:
    if isinstance(keys, (str, Path)):
        return _from_columns(_file(Path(keys)), by)
    if isinstance(keys, Mapping):
        return _product(keys, by)
    columns = _frame(keys)
    if columns is not None:
        return _from_columns(columns, by)
    if not isinstance(keys, Iterable):
        raise TrueupError(f"keys are a list, got {keys!r}", _REFUSED)
    return [_row(key, by) for key in keys]


def _row(key: Any, by: tuple[str, ...]) -> tuple[Any, ...]:
    several = isinstance(key, (tuple, list))
    row = tuple(key) if several else (key,)
    if len(row) != len(by):
        raise TrueupError(
            f"a key has a value for each of {', '.join(by)}, got {key!r}", "e.g. keys=[('A', 1)]"
        )
    return tuple(_plain(v, name) for v, name in zip(row, by, strict=True))


def _plain(value: Any, column: str) -> Any:
    """Return a value of a key as a plain Python value; refuse what is missing or no key."""
    if type(value) in PLAIN:
        return value
    value = plain_value(value)
    if value is None or value != value:
        raise TrueupError(
            f"a key of {column} is missing", "a missing value makes no group: fill it"
        )
    key_text(value)
    return value


def _product(levels: Mapping[Any, Any], by: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return all combinations of the levels of each column."""
    strange = [name for name in levels if name not in by]
    lacking = [name for name in by if name not in levels]
    if strange or lacking:
        what = f"levels of {strange[0]!r}, which is" if strange else f"no levels of {lacking[0]!r},"
        raise TrueupError(
            f"the keys have {what} {'not ' if strange else ''}one of the columns {', '.join(by)}",
            "give the levels of every column of by, and of no other",
        )
    listed = []
    for name in by:
        given = levels[name]
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise TrueupError(f"the levels of {name} are a list, got {given!r}", "e.g. ['A', 'B']")
        listed.append([_plain(v, name) for v in given])
    size = math.prod(map(len, listed))
    if size > _MOST:
        raise TrueupError(
            f"the keys make {size} groups, more than {_MOST}", "list those that matter"
        )
    return list(product(*listed))


def _from_columns(
    columns: Mapping[str, Sequence[Any]], by: tuple[str, ...]
) -> list[tuple[Any, ...]]:
    lacking = [name for name in by if name not in columns]
    if lacking:
        raise TrueupError(
            f"the table of keys has no column {lacking[0]!r}; it has {', '.join(columns)}",
            "name its columns like those of by",
        )
    rows = zip(*(columns[name] for name in by), strict=True)
    return [_row(tuple(row), by) for row in rows]


def _frame(keys: Any) -> dict[str, list[Any]] | None:
    """Return a frame of any library as columns, None for what is no frame."""
    import narwhals as nw

    wrapped = nw.from_native(keys, pass_through=True)
    if isinstance(wrapped, nw.LazyFrame):
        wrapped = wrapped.collect()
    if not isinstance(wrapped, nw.DataFrame):
        return None
    return {name: wrapped[name].to_list() for name in wrapped.columns}


def _file(path: Path) -> dict[str, list[Any]]:
    """Return a file of keys as columns; those of text files are text, so that 01 stays 01."""
    from trueup.files.duck import Duck
    from trueup.files.query import quote
    from trueup.files.scans import reading
    from trueup.files.sources import opened

    with opened(str(path), None, None) as source, closing(Duck("512MB")) as duck:
        names = ", ".join(map(quote, source.columns))
        rows = duck.ask(f"SELECT {names} FROM {reading(duck, source)}")
    return {name: [row[i] for row in rows] for i, name in enumerate(source.columns)}


# -- keys in the types of the data -----------------------------------------------------------------

_TEXTS = ("VARCHAR", "STRING", "CHAR", "ENUM")
_TRUTHS = {"true": "true", "1": "true", "false": "false", "0": "false"}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?[0-9]*")  # not of lists of them
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]+))?)?"
    r"(Z|[-+][0-9]{2}(?::?[0-9]{2})?)?"
)
_DIGITS = {"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP_NS": 9}
"""Of a second: more would be rounded to another moment. All other types have microseconds."""
_WIDE = ("HUGEINT", "UHUGEINT", "UBIGINT")
"""Whole numbers that 64 bits with a sign do not hold."""
_ZONED = "TIMESTAMP WITH TIME ZONE"
_SAYS = {
    "whole": "whole numbers",
    "truth": "true or false",
    "DATE": "days such as 2024-03-01",
    "TIMESTAMP": "moments such as 2024-03-01 12:00:00, without a time zone",
    _ZONED: "moments with their time zone, such as 2024-03-01 12:00:00+00:00",
    "text": "text: write keys as the data write them, in quotes, e.g. '002'",
}


def is_cast(kind: str) -> bool:
    """Whether keys are compared in the type of their column, not as text."""
    return _family(kind) not in ("whole", "truth", "text")


@cache
def _family(kind: str) -> str:
    plain = kind.upper().partition("(")[0].strip()
    if plain in _TEXTS:
        return "text"
    if plain == "BOOLEAN":
        return "truth"
    return "whole" if _INTEGER.fullmatch(plain) else plain


def fitted(keys: Keys, types: Mapping[str, str], dialect: str) -> list[list[str]]:
    """Return the columns of the keys as text that is read in the types of those of the data.

    Examples
    --------
    >>> fitted(read_keys(["01", 2], ("year",)), {"year": "BIGINT"}, "duckdb")
    [['1', '2']]
    """
    columns = []
    for name, values in keys.columns().items():
        kind = types[name].upper()
        read = {(type(v), v): _fit(v, name, kind, dialect) for v in values}
        columns.append([read[type(v), v] for v in values])
    for i, j in _repeated(list(zip(*columns, strict=True))):
        raise _twice(keys, i, j)
    return columns


def check_in_engine(
    ask: Callable[[str], Sequence[Sequence[Any]]], keys: Keys, kinds: Sequence[str], table: str
) -> None:
    """Refuse keys that the engine does not read, or reads as one, where it compares them."""
    read = {f"c{i}": as_type(f"c{i}", kind) for i, kind in enumerate(kinds)}
    unread = " OR ".join(f"COUNT({what}) = 0" for what in read.values())
    found = ask(
        f"SELECT MIN(i), MAX(i) FROM {table} AS p GROUP BY {', '.join(read.values())} "
        f"HAVING COUNT(*) > 1 OR {unread} LIMIT 1"
    )
    for i, j in found:
        if i != j:
            raise _twice(keys, i, j)
        raise _unfit(keys.rows[i], ", ".join(keys.by), ", ".join(kinds))


def check_category(category: str, name: str, kind: str) -> None:
    """Refuse a category that no value of the type is written as."""
    if _family(kind) in ("whole", "truth", "DATE"):
        found = _fit(category, name, kind.upper(), "", "category")
        if found != category:
            raise TrueupError(
                f"the category {category!r} of {name} is written {found!r} in the data",
                f"write {found!r}; {UNRELEASED}",
            )


def as_type(column: str, kind: str) -> str:
    """Return a column of keys, which is text, as it is compared."""
    if _family(kind) == "whole":
        return f"TRY_CAST({column} AS {'HUGEINT' if kind.upper() in _WIDE else 'BIGINT'})"
    return f"TRY_CAST({column} AS {kind})" if is_cast(kind) else column


def compared(column: str, kind: str, text: str) -> str:
    """Return a column that makes the groups as it is compared with keys.

    ``text`` is what the engine calls text. Columns of files of text may be compared as numbers.
    """
    if _family(kind) == "whole":
        return as_type(column, kind)
    return column if is_cast(kind) else f"CAST({column} AS {text})"


def as_numbers(keys: Keys, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types of columns of a file of text, those with whole numbers as keys as such.

    A file of text states no types: the keys say how its columns are read.
    """
    numeric = {
        name: "BIGINT"
        for name, values in keys.columns().items()
        if name in types and all(type(value) is int for value in values)
    }
    return {**types, **numeric}


def _fit(value: Any, name: str, kind: str, dialect: str, what: str = "key") -> str:
    text, family = key_text(value), _family(kind)
    found: str | None = text
    if family == "whole":
        known = type(value) is int or _WHOLE.fullmatch(text.strip())
        found = str(int(text)) if known else None
    elif family == "truth":
        found = _TRUTHS.get(text.strip().lower())
    elif family == "text":  # there is no one way to write these
        found = None if isinstance(value, (bool, int, datetime.datetime)) else text
    elif family == "DATE" or family.startswith("TIMESTAMP"):
        found = _moment(text.strip(), family, dialect)
    if found is None:
        raise _unfit(value, name, kind, what)
    return found


def _moment(text: str, family: str, dialect: str) -> str | None:
    """Return a day or moment as engines read it, None for what the type cannot hold."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    day, clock, digits, zone = match.groups()
    rest = (digits or "").rstrip("0")
    try:
        at = datetime.datetime.fromisoformat(f"{day} {clock or '00:00'}{zone or ''}")
    except ValueError:
        return None
    if family == "DATE":
        return day if at.time() == datetime.time() and not rest and not zone else None
    local = dialect == "spark" and family == "TIMESTAMP"  # in the time zone of the session
    if len(rest) > _DIGITS.get(family, 6) or (bool(zone) != (family == _ZONED) and not local):
        return None
    return f"{day} {at.time().isoformat()}{'.' * bool(rest)}{rest}{zone or ''}"


def _unfit(value: Any, name: str, kind: str, what: str = "key") -> TrueupError:
    family = _family(kind)
    family = "TIMESTAMP" if family.startswith("TIMESTAMP_") else family
    shown = repr(value) if isinstance(value, str) else value
    return TrueupError(
        f"the {what} {shown} of {name} does not fit its type, {kind}",
        f"the column holds {_SAYS.get(family, kind)}; {UNRELEASED}",
    )


def _twice(keys: Keys, i: int, j: int) -> TrueupError:
    one, other = (", ".join(map(key_text, keys.rows[k])) for k in (i, j))
    return TrueupError(
        f"the keys {one} and {other} are the same in the data",
        f"list every group once; {UNRELEASED}",
    )
