"""What a table publishes of every group: a count, means, shares, sums, totals of skewed values.

A measure is written like a call, ``mean(wage, 0, 120000)``::

    count                                   records
    mean(column, low, high)                 values are clipped to the bounds
    share(column, [category, ...])          every value must be one of the categories
    sum(column, low, high)                  values are clipped to the bounds
    per_record(column, root:3, scale)       non-negative values of any size (Algorithm 3); also
                                            log with offset=…: the loss depends on the record

Text in quotes or backticks may have commas and brackets of its own. Nothing is evaluated.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number, read_exact
from trueup.mechanisms.per_record import PerRecordSum
from trueup.mechanisms.records import read_bounds
from trueup.mechanisms.shares import MAX_CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.exact import Exact
    from trueup.mechanisms.records import Bounds

_CALL = re.compile(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_NAMED = re.compile(r"([a-z_]+)\s*=(.*)", re.DOTALL)
_PIECE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[^'"`]""", re.DOTALL)
_QUOTED = re.compile(r"""(['"`])(.*)\1""", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+|/[0-9]+)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_EXAMPLES = (
    "one of count, mean(wage, 0, 120000), share(sex, ['f', 'm']), sum(wage, 0, 120000), "
    "per_record(pay, root:3, 10)"
)
_FAR = 2**31  # widths: doubles there are 2⁻²¹ of one apart, like the error of a million records
_LARGEST_BOUND = 10**100  # the square of any error is then a double, however small epsilon is
_TRANSFORM = re.compile(r"log|root:[0-9]+")
_LONGEST = 60  # letters of a name: statistics and columns are called after it


@dataclasses.dataclass(frozen=True)
class Count:
    """The number of records."""


@dataclasses.dataclass(frozen=True)
class Mean:
    """The mean of a column, clipped to bounds."""

    column: str
    bounds: Bounds


@dataclasses.dataclass(frozen=True)
class Share:
    """The share of each category of a column."""

    column: str
    categories: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Sum:
    """The sum of a column, clipped to bounds."""

    column: str
    bounds: Bounds


@dataclasses.dataclass(frozen=True)
class PerRecord:
    """The total of non-negative values of any size, with a loss that depends on the record."""

    column: str
    transform: str
    scale: Exact
    offset: Exact = 0

    @property
    def mechanism(self) -> PerRecordSum:
        """The mechanism that has the policy and the arithmetic."""
        return PerRecordSum(self.transform, self.scale, self.offset)


Measure = Count | Mean | Share | Sum | PerRecord


def read_measures(given: Mapping[str, Any]) -> dict[str, Measure]:
    """Return the measures by name.

    Examples
    --------
    >>> read_measures({"wage": "mean(wage, 0, 120000)", "sex": "share(sex, ['f', 'm'])"})
    {'wage': Mean(column='wage', bounds=(0, 120000)), 'sex': Share(column='sex', categories=('f', \
'm'))}
    """
    if not given:
        raise TrueupError(
            "there is no measure to release", f"name some, e.g. n='count': {_EXAMPLES}"
        )
    found: dict[str, Measure] = {}
    for name, what in given.items():
        if not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise TrueupError(
                f"a measure cannot be called {name!r}",
                f"use letters, digits and _, a letter first, at most {_LONGEST}",
            )
        try:
            found[name] = what if isinstance(what, Measure) else read_measure(what)
        except TrueupError as error:
            raise TrueupError(f"{name}: {error.message}", error.hint) from None
    return found


def read_measure(text: object) -> Measure:
    """Return the measure that a text describes.

    Examples
    --------
    >>> read_measure("per_record(`total pay`, root:3, scale=10)")
    PerRecord(column='total pay', transform='root:3', scale=10, offset=0)
    """
    match = _CALL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise TrueupError(f"a measure is a text, got {text!r}", _EXAMPLES)
    make = _KINDS.get(match[1])
    if make is None:
        near = difflib.get_close_matches(match[1], _KINDS, 1) if match[1] != "median" else []
        hint = f"did you mean {near[0]}?" if near else _EXAMPLES  # a median is no misspelt mean
        raise TrueupError(f"there is no measure {match[1]!r}", hint)
    values, named = _arguments(match[2] or "")
    return make(values, named)


# -- the text --------------------------------------------------------------------------------------


def _arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return what stands between the brackets, without and with a name."""
    values: list[Any] = []
    named: dict[str, Any] = {}
    for part in _split(text):
        match = _NAMED.fullmatch(part)
        if match:
            named[match[1]] = _value(match[2])
        else:
            values.append(_value(part))
    return values, named


def _split(text: str) -> list[str]:
    """Return the parts between commas that are in no quotes and no brackets.

    Examples
    --------
    >>> _split("sex, ['a, b', c]")
    ['sex', "['a, b', c]"]
    """
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece == "[") - (piece == "]")
        if piece == "," and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    if depth:
        raise TrueupError(f"the brackets of {text!r} do not match", _EXAMPLES)
    return [part.strip() for part in parts if part.strip()]


def _value(text: str) -> Any:
    """Return a number, a list, or text."""
    text = text.strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[2]
    if text.startswith("[") and text.endswith("]"):
        return [_value(part) for part in _split(text[1:-1])]
    if _NUMBER.fullmatch(text):
        try:
            return number(read_exact(text.removeprefix("+")), "a number")
        except (ValueError, ZeroDivisionError) as error:
            if isinstance(error, TrueupError):
                raise
            raise TrueupError(f"{text} is beyond double precision", "e.g. 120000 or 1/3") from None
    return text


# -- kinds -----------------------------------------------------------------------------------------


def _take(
    kind: str,
    values: list[Any],
    named: dict[str, Any],
    needed: tuple[str, ...],
    also: tuple[str, ...] = (),
    usage: str = "",
) -> list[Any]:
    """Return the arguments in order, None for those that may be left out."""
    names = (*needed, *also)
    usage = usage or f"write {kind}({', '.join(needed)})"
    if len(values) > len(names):
        raise TrueupError(f"{kind} takes {', '.join(names)}, got {values!r}", usage)
    given = dict(zip(names, values, strict=False))
    for key, value in named.items():
        if key not in names or key in given:
            raise TrueupError(f"{kind} has no place for {key}={value!r}", usage)
        given[key] = value
    for name in needed:
        if name not in given:
            raise TrueupError(f"{kind} needs {name}, got {list(given.values())!r}", usage)
    return [given.get(name) for name in names]


def _column(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise TrueupError(f"a column has a name, got {value!r}", "in quotes if it looks like a number")


def _bounded(made: type[Mean] | type[Sum], values: list[Any], named: dict[str, Any]) -> Mean | Sum:
    kind = made.__name__.lower()
    column, *bounds = _take(kind, values, named, ("column", "low", "high"))
    low, high = read_bounds(tuple(bounds))
    if not -_LARGEST_BOUND <= low < high <= _LARGEST_BOUND:
        raise TrueupError(
            f"the bounds {float(low):g} and {float(high):g} leave no standard error a double",
            f"measure {column} in another unit",
        )
    if made is Mean and max(-low, high) > _FAR * (Fraction(high) - Fraction(low)):
        raise TrueupError(
            f"the bounds {low} and {high} are so far from 0 that means between them are no doubles",
            f"subtract {low} from {column} first, and say so",
        )
    return made(_column(column), (low, high))


def _share(values: list[Any], named: dict[str, Any]) -> Share:
    usage = f"list every possible value, e.g. {_example(values)}"
    column, categories = _take("share", values, named, ("column", "categories"), usage=usage)
    listed = [] if not isinstance(categories, list) else [key_text(c) for c in categories]
    if any(not c.strip() for c in listed):
        raise TrueupError(f"a category is blank: {categories!r}", "blank values count as missing")
    if not 2 <= len(set(listed)) == len(listed) <= MAX_CATEGORIES:
        raise TrueupError(
            f"categories must be 2 to {MAX_CATEGORIES} different names, got {categories!r}",
            usage,
        )
    return Share(_column(column), tuple(listed))


def _example(values: list[Any]) -> str:
    """Return a share as it is written, with the column and the categories that were given.

    Examples
    --------
    >>> _example(["union"]), _example(["tax band", "low", "high"])
    ("share(union, ['yes', 'no'])", "share(`tax band`, ['low', 'high'])")
    """
    column, *given = values or ["union"]
    loose = [str(v) for v in given if not isinstance(v, list)]
    listed = loose if len(loose) > 1 else ["yes", "no"]
    return f"share({column if _NAME.fullmatch(str(column)) else f'`{column}`'}, {listed!r})"


def _per_record(values: list[Any], named: dict[str, Any]) -> PerRecord:
    column, transform, scale, offset = _take(
        "per_record", values, named, ("column", "transform", "scale"), ("offset",)
    )
    if not isinstance(transform, str) or not _TRANSFORM.fullmatch(transform):
        raise TrueupError(
            f"a transform is root:k or log, got {transform!r}",
            "e.g. per_record(pay, root:3, 10), or per_record(pay, log, 1/4, offset=1000)",
        )
    measure = PerRecord(
        _column(column),
        transform,
        number(scale, "scale", positive=True),
        number(offset or 0, "offset"),
    )
    if transform == "log" and measure.scale >= Fraction(1, 2):
        raise TrueupError(
            f"under the logarithm the scale must be below 1/2, got {scale}",
            "from there on the total has no standard error",
        )
    _ = measure.mechanism  # refuses what is no transform
    return measure


def _count(values: list[Any], named: dict[str, Any]) -> Count:
    _take("count", values, named, ())
    return Count()


_KINDS: dict[str, Callable[[list[Any], dict[str, Any]], Measure]] = {
    "count": _count,
    "mean": partial(_bounded, Mean),
    "share": _share,
    "sum": partial(_bounded, Sum),
    "per_record": _per_record,
}


PLAIN = (int, str)  # asked first: keys are many, and most are such


def key_text(value: object) -> str:
    """Return a key or a category as engines write it, by which it is found in the data.

    Floats are refused: engines do not agree on how to write them.

    Examples
    --------
    >>> import datetime
    >>> key_text(7), key_text(True), key_text(datetime.date(2024, 3, 1))
    ('7', 'true', '2024-03-01')
    """
    if type(value) in PLAIN:
        return str(value)
    value = plain_value(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, str)) or hasattr(value, "isoformat"):
        return str(value)
    raise TrueupError(
        f"a key is text, a whole number, a date or true or false, got {value!r}",
        "write it as text, in the keys and in the data",
    )


def plain_value(value: Any) -> Any:
    """Return a NumPy value as one of Python: of moments ``item`` may be a number of nanoseconds."""
    if isinstance(value, np.datetime64):
        near = value.astype("datetime64[us]")
        return near.item() if near == value or np.isnat(value) else str(value)
    return getattr(value, "item", lambda: value)()
