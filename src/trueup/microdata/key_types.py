"""Keys in the type of their column: those of another type would find no rows, and none would tell.

Types are public, like the names of columns: what does not fit is refused. Text is compared as it
is, whole numbers and booleans by how they are written once they are read, and everything else in
the type of the column, by the engine.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.microdata.measures import key_text
from trueup.microdata.row_faults import SPENT

if TYPE_CHECKING:
    from trueup.microdata.public_keys import Keys

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
_ZONED = "TIMESTAMP WITH TIME ZONE"
_SAYS = {
    "whole": "whole numbers",
    "truth": "true or false",
    "DATE": "days such as 2024-03-01",
    "TIMESTAMP": "moments such as 2024-03-01 12:00:00, without a time zone",
    _ZONED: "moments with their time zone, such as 2024-03-01 12:00:00+00:00",
    "text": "text: write keys as the data write them, e.g. 'True'",
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
    >>> from trueup.microdata.public_keys import read_keys
    >>> fitted(read_keys(["01", 2], ("year",)), {"year": "BIGINT"}, "duckdb")
    [['1', '2']]
    """
    columns = []
    for name, values in keys.columns().items():
        kind = types[name].upper()
        read = {(type(v), v): _fit(v, name, kind, dialect) for v in values}
        columns.append([read[type(v), v] for v in values])
    if columns and len(set(zip(*columns, strict=True))) < len(keys):
        seen: dict[tuple[str, ...], int] = {}
        rows = enumerate(zip(*columns, strict=True))
        i, j = next((seen[r], j) for j, r in rows if seen.setdefault(r, j) != j)
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
                f"write {found!r}; {SPENT}",
            )


def as_type(column: str, kind: str) -> str:
    """Return a column of keys, which is text, as it is compared."""
    return f"TRY_CAST({column} AS {kind})" if is_cast(kind) else column


def _fit(value: Any, name: str, kind: str, dialect: str, what: str = "key") -> str:
    text, family = key_text(value), _family(kind)
    found: str | None = text
    if family == "whole":
        known = type(value) is int or _WHOLE.fullmatch(text.strip())
        found = str(int(text)) if known else None
    elif family == "truth":
        found = _TRUTHS.get(text.strip().lower())
    elif family == "text":  # there is no one way to write these
        found = None if isinstance(value, (bool, datetime.datetime)) else text
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
        f"the {what} {shown} of {name} does not fit its type, {kind}: it would find no rows",
        f"the column holds {_SAYS.get(family, kind)}; {SPENT}",
    )


def _twice(keys: Keys, i: int, j: int) -> TrueupError:
    one, other = (", ".join(map(key_text, keys.rows[k])) for k in (i, j))
    return TrueupError(
        f"the keys {one} and {other} are the same in the data",
        f"list every group once; {SPENT}",
    )
