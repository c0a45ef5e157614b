"""Texts no reader expects: valid ones spoilt a little, drawn ones, hostile ones.

Every text is a pure function of the random numbers it is given. A text is ``str``; one that is to
be a file becomes bytes by :func:`as_bytes`, where a lone surrogate is a byte that is not UTF-8.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

_TOKEN = re.compile(r"\s+|\d+\.?\d*(?:[eE][+-]?\d+)?|\w+|[^\w\s]")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}

ODD_CHARACTERS = (
    *("\0", "\x01", "\x1b", "\x7f", "\x85", "\xa0", "\xad", "\u200b", "\u200f", "\u202e", "\u2028"),
    *("\ufeff", "\ufffe", "\uffff", "\ud800", "\udfff", "\udcff", "\udc80", "\u0301", "\u093f"),
    *("é", "e\u0301", "ß", "İ", "ſ", "K", "·", "×", "−", "≤", "≠", "∞", "²", "½", "٣", "三", "क"),
    *("😀", "👩\u200d👩\u200d👧", "\U000e0001", "\U0010ffff"),
    *("`", "``", '"', "'", "\\", "\r", "\n", "\t", "ท"),
)  # fmt: skip

ODD_NUMBERS = (
    *("0", "-0", "-1", "1e308", "1e309", "1e-308", "1e-324", "5e-324", "1e400", "-1e400"),
    *("1E9999999", "2**1023", "4503599627370497.5", "1e1e1"),
    *("9" * 17, "9" * 40, "9" * 41, "9" * 400, "9" * 5000, "0." + "0" * 400 + "1", "1" + "0" * 308),
    *("1/0", "0/0", "1/3", "9" * 300 + "/7", "1/" + "9" * 400, "nan", "inf", "-inf", "∞", "1_000"),
    *("0x10", "1e", "1.", ".5", "..5", "1.5.2", "1e+", "٣", "²", "-.5"),
)  # fmt: skip

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e308, 1e-320, 10**40, 10**400, -(10**5000)),
    *(float("nan"), float("inf"), float("-inf"), "", "q", "1/3", "1/0", "1e999", "0" * 50, "∞"),
    *("nan", "inf", "-inf", "\0", "\ud800", "9" * 5000, "1E9999999", "1/" + "9" * 5000, [], {}),
    *([None], [[]], [1, 2], [1, 2, 3], {"a": 1}, {"family": "Laplace"}, [0.5] * 2000, "integers"),
)  # fmt: skip


def as_bytes(text: str) -> bytes:
    """Return the bytes of a file that holds the text."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


Change = Callable[[random.Random, str], str]


def changed(
    rng: random.Random,
    text: str,
    words: Sequence[str],
    others: Sequence[str],
    ways: Sequence[Change],
) -> str:
    """Return the text after a few changes, mostly one or two."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        kind = rng.random()
        if ways and kind < 0.6:
            text = rng.choice(ways)(rng, text)
        elif kind < 0.7 and rng.random() < 0.5:
            text = _characters(rng, text)
        elif kind < 0.85:
            text = _tokens(rng, text, words)
        elif kind < 0.95:
            text = _groups(rng, text, others)
        else:
            text = _many(rng, text)
    return text


def _characters(rng: random.Random, text: str) -> str:
    """Delete, insert, exchange or double a character or a few."""
    i = rng.randrange(len(text) + 1)
    j = min(len(text), i + rng.choice((0, 1, 1, 2, 5)))
    new = rng.choice(ODD_CHARACTERS) if rng.random() < 0.4 else chr(rng.randrange(32, 127))
    return text[:i] + rng.choice(("", new, new, text[i:j] * 2, text[i:j][::-1])) + text[j:]


def _tokens(rng: random.Random, text: str, words: Sequence[str]) -> str:
    """Delete, exchange, swap or double a word, a number or a sign."""
    found = _TOKEN.findall(text) or [""]
    i, j = rng.randrange(len(found)), rng.randrange(len(found))
    way = rng.random()
    if way < 0.15:
        del found[i]
    elif way < 0.3:
        found[i], found[j] = found[j], found[i]
    elif way < 0.4:
        found.insert(i, found[j])
    elif way < 0.6:
        found[i] = rng.choice(ODD_NUMBERS)
    else:
        found[i] = rng.choice(words)
    return "".join(found)


def _groups(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """Exchange what stands in brackets for something else in brackets, drop it, or wrap it."""
    start, end = _group(rng, text)
    other = rng.choice(others)
    a, b = _group(rng, other)
    new = rng.choice((other[a:b], other, "", f"({text[start:end]})", text[start:end] * 2))
    return text[:start] + new + text[end:]


def _group(rng: random.Random, text: str) -> tuple[int, int]:
    """Return where a group in brackets begins and ends; of a text without any, a part."""
    opened = [i for i, c in enumerate(text) if c in _BRACKETS]
    if not opened:
        return tuple(sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1))))
    start = rng.choice(opened)
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] in _BRACKETS) - (text[end] in _BRACKETS.values())
        if not depth:
            return start, end + 1
    return start, len(text)


def _many(rng: random.Random, text: str) -> str:
    """Repeat a part so often that it hurts, or nest it."""
    start, end = _group(rng, text)
    part, times = text[start:end], rng.choice((10, 50, 200, 1500))
    opening = rng.choice(
        ("(", "[", "{", "-", "not ", "abs(", "[[", '"', "`", "where(q<1,", "1/(1+")
    )
    inside = rng.choice(
        (part * times, opening * times + part, opening * times + part + ")" * times)
    )
    return (text[:start] + inside + text[end:])[:40_000]


# -- data with a structure -------------------------------------------------------------------------


def spoilt(rng: random.Random, value: Any, odd: Sequence[Any] = ODD_VALUES) -> Any:
    """Return JSON data with something in it exchanged, dropped, added or nested."""
    place = rng.random()
    if isinstance(value, dict) and value and place < 0.85:
        key = rng.choice(list(value))
        if place < 0.08:
            return {k: v for k, v in value.items() if k != key}
        if place < 0.16:
            return {**value, str(rng.choice(odd)): rng.choice(odd)}
        if place < 0.22:
            return {(str(rng.choice(odd)) if k == key else k): v for k, v in value.items()}
        return {**value, key: spoilt(rng, value[key], odd)}
    if isinstance(value, list) and value and place < 0.85:
        i = rng.randrange(len(value))
        if place < 0.1:
            return value[:i] + value[i + 1 :]
        if place < 0.2:
            return [*value, rng.choice(odd)]
        return [*value[:i], spoilt(rng, value[i], odd), *value[i + 1 :]]
    if place < 0.92:
        return rng.choice(odd)
    nest = value
    for _ in range(rng.choice((1, 3, 30, 400))):
        nest = [nest] if rng.random() < 0.5 else {"family": nest}
    return nest


def spoilt_json(rng: random.Random, text: str) -> str:
    """Return JSON text after one change to what it says; text that is no JSON as it is."""
    try:
        return json.dumps(spoilt(rng, json.loads(text)), ensure_ascii=rng.random() < 0.5)
    except (ValueError, RecursionError):
        return text


def spoilt_table(rng: random.Random, text: str) -> str:
    """Return delimited text with a field, a line or all its line ends changed."""
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    way = rng.random()
    if way < 0.5:
        sign = rng.choice((",", ";", "\t", "|"))
        fields = lines[i].split(",")
        j = rng.randrange(len(fields))
        odd = rng.choice(
            (*ODD_NUMBERS, *ODD_CHARACTERS, "", "NA", "1,5", '"a,b"', '"', '"a""b"', "x" * 3000)
        )
        fields[j : j + rng.choice((0, 1, 1, 1))] = [odd] * rng.choice((0, 1, 1, 1, 2))
        lines[i] = (sign if rng.random() < 0.1 else ",").join(fields)
        return "\n".join(lines)
    if way < 0.7:
        lines[i : i + 1] = [lines[i]] * rng.choice((0, 2, 40))
        return "\n".join(lines)
    if way < 0.8:
        return rng.choice(("\r\n", "\r", "\n\n", "\0", "\u2028")).join(lines)
    if way < 0.9:
        return (
            rng.choice(("\ufeff", "\udcff\udcfe", "PAR1", "ARROW1", "\x1f\udc8b", "#", "\n", " "))
            + text
        )
    return rng.choice(
        (text.replace(",", ";"), text.replace(",", "\t"), text.replace("\n", ""), text[: i * 3])
    )


def spoilt_lines(rng: random.Random, text: str) -> str:
    """Return lines in another order, twice, or with another value after the sign =."""
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    if rng.random() < 0.7 and "=" in lines[i]:
        lines[i] = f"{lines[i].split('=')[0]}= {_toml(rng, rng.choice(ODD_VALUES))}"
    else:
        lines[i], lines[j] = rng.choice(
            ((lines[j], lines[i]), (lines[j], lines[j]), ("", lines[i]))
        )
    return "\n".join(lines)


def _toml(rng: random.Random, value: Any) -> str:
    """Return an odd value more or less as TOML writes it."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(rng, v)}" for k, v in value.items()) + "}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**4000:
        return "9" * 5000
    return rng.choice((json.dumps(value), "1979-05-27T07:32:00Z", "07:32:00", "'''x'''"))
