"""The groups of a table, which must be public: a list, levels of each column, a frame or a file.

Which keys occur in the data is confidential. So a group is published if and only if it is listed:
rows of other groups are left out, and how many is not told; groups without records get noise like
any other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from trueup.errors import TrueupError
from trueup.microdata.measures import PLAIN, key_text, plain_value

_MOST = 10**7
"""Groups: they are held in memory, one noisy number each at least."""
_REFUSED = (
    "list the groups to publish: which of them occur in the data is itself confidential; "
    "e.g. keys=['A', 'B'], keys={'state': [...], 'industry': [...]}, a table, or a file"
)


@dataclasses.dataclass(frozen=True)
class Keys:
    """The groups in the order of the table: values as they were given, and as engines write them.

    Examples
    --------
    >>> read_keys({"state": ["A", "B"], "year": [1, 2]}, ("state", "year")).texts[:2]
    [('A', '1'), ('A', '2')]
    """

    by: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def texts(self) -> list[tuple[str, ...]]:
        """The keys as engines write them."""
        return [tuple(key_text(v) for v in row) for row in self.rows]

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
    found = Keys(by, rows)
    texts = found.texts
    if len(set(texts)) < len(texts):
        seen: set[tuple[str, ...]] = set()
        twice = next(t for t in texts if t in seen or seen.add(t))  # type: ignore[func-returns-value]
        raise TrueupError(f"the key {', '.join(twice)} is listed twice", "list every group once")
    return found


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

    with opened(str(path), None, None) as source:
        duck = Duck("512MB")
        try:
            table = reading(duck, source)
            names = ", ".join(map(quote, source.columns))
            rows = duck.ask(f"SELECT {names} FROM {table}")
        finally:
            duck.close()
    return {name: [row[i] for row in rows] for i, name in enumerate(source.columns)}
