"""Whether what a refusal names is there: a place or a side, read from the message, seen by f alone.

A message says "kink at 3: …", "… at q = -2, inside the domain", "(e.g. with n = 101)" or "outgrows
the noise on the right". At the place named the formula is no real number, or has a pole, a jump, a
kink, an infinite slope or a value that is not its limit; on the side named it grows too fast.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from mpmath import mpf

from prove import reading, verdict
from prove.reading import BeyondError, UndefinedError, exact
from prove.specials import side, specials

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
_PLACE = re.compile(rf"(?:at|near) (\w+) = {_NUMBER}")
_BOUND = re.compile(rf"(?:kink|jump|pole|infinite slope) at (?:the bound )?{_NUMBER}")
_WITH = re.compile(rf"(\w+) = {_NUMBER}")
_SIDE = re.compile(r"outgrows the noise on the (left|right)")
_SLIGHT = ("jump", "kink", "point")
"""What may be there though the oracle does not tell it from 0."""
SIX = 2e-5
"""Messages show six digits, relative to 1 + |a|."""
TRIES = 6
"""Values of other statistics tried where the message names none."""


def confirmed(e: Any, message: str) -> bool | None:
    """Return whether the oracle sees what a message names; None where it cannot say."""
    try:
        grown = _SIDE.search(message)
        if grown:
            return _outgrows(e, -1 if grown[1] == "left" else 1)
        named = _place(e, message)
        if named is None:
            return None
        name, place = named
        seen = any(_wrong(e, name, place, others) for others in _others(e, name, message))
        if not seen:
            with reading.as_doubles():
                seen = any(_wrong(e, name, place, others) for others in _others(e, name, message))
    except BeyondError:
        return None
    if seen or not e.single or not _decides(e) or _has_no_value(e, name, place):
        return True if seen else None
    return False


def _place(e: Any, message: str) -> tuple[str, float] | None:
    """Return the statistic and the value named."""
    reason = message.rpartition(" (e.g. with ")[0] or message
    places = [(name, float(a)) for name, a in _PLACE.findall(reason) if name in e.names]
    if places:
        return places[-1]
    bounds = _BOUND.findall(reason)
    return (e.names[0], float(bounds[-1])) if bounds and e.single else None


def _others(e: Any, name: str, message: str) -> Iterator[dict[str, float]]:
    """Yield values of the other statistics: as the message says, else drawn."""
    rest = [n for n in e.names if n != name]
    given = dict(_WITH.findall(message.rpartition(" (e.g. with ")[2]))
    if all(n in given for n in rest):
        yield {n: float(given[n]) for n in rest}
        return
    for _ in range(TRIES):
        yield {n: e.rng.choice(e.truths(n)) for n in rest}


def _decides(e: Any) -> bool:
    """Whether a place in the domain is all that can be wrong: not so under whole true values."""
    return e.laws is not None and not e.on_integers(e.names[0])


def _has_no_value(e: Any, name: str, place: float) -> bool:
    """Whether f is 0/0 at the place itself: read as 1 or not, its limit may differ from it."""
    try:
        reading.value(e.tree, {name: exact(place)})
    except (UndefinedError, BeyondError):
        return True
    return False


def _wrong(e: Any, name: str, place: float, others: dict[str, float]) -> bool:
    """Whether f is no real number there, or not smooth on the line."""
    points = _near(e, name, place, others)
    return any(_undefined(e, name, p, others) or _rough(e, name, p, others) for p in points)


def _near(e: Any, name: str, place: float, others: dict[str, float]) -> list[mpf]:
    ends = [exact(b) for b in e.ends(name) if math.isfinite(b)]
    near = SIX * (1 + abs(place))
    low, high = max(e.ends(name)[0], place - near), min(e.ends(name)[1], place + near)
    found = [] if e.whole(name) or low > high else specials(e.tree, name, others, low, high)
    return [exact(place), *(p for p in ends if abs(p - place) <= near), *found]


def _undefined(e: Any, name: str, point: mpf, others: dict[str, float]) -> bool:
    try:
        reading.value(e.tree, {name: point, **others})
    except UndefinedError:
        low, high = e.ends(name)
        ways = [s for s, end in ((-1, low), (1, high)) if abs(float(point) - end) > 1e-12]
        sides = [side(e.tree, name, others, point, s).value.how for s in ways]
        return e.whole(name) or not sides or any(how != "finite" for how in sides)
    except BeyondError:  # a condition on what is no number
        return True
    return False


def _rough(e: Any, name: str, point: mpf, others: dict[str, float]) -> bool:
    if e.whole(name):
        return False
    found = verdict.at_point(e.tree, name, point, e.ends(name), others)
    return found.answer == "none" or (found.answer == "open" and found.reason in _SLIGHT)


def _outgrows(e: Any, sign: int) -> bool | None:
    if not e.single or e.laws is None:
        return None
    (name,) = e.names
    rate = verdict.growth(e.tree, name, sign)
    limit = e.laws[name].rates[sign > 0]
    if rate is None or abs(rate - limit) <= 0.05 * limit:
        return None
    return rate > limit
