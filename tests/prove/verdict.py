"""Whether an unbiased estimator of f exists, judged without the library, for one statistic.

On the integers under discrete Laplace noise f must be a finite number everywhere and not outgrow
the noise. On the line under a density without jumps f must be C¹ inside the bounds up to their
ends: E g(q + Z) is. Where the noise is Laplace this is enough as well. A verdict is "exists",
"none" with a witness, or "open" where these arguments do not decide.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from prove import reading
from prove.laws import Law
from prove.reading import DIGITS, BeyondError, UndefinedError, exact
from prove.specials import LAST, MOST, Side, side, specials

SAME = mpf("1e-10")
"""One-sided limits that differ by less, relative to their size, are taken for equal: they are known
to 1e-12 at least, as the last distance is 1e-48 and f′ may go like its fourth root."""

SLIGHT = mpf("1e-9")
"""A value that is off its limit by less, relative to f nearby, may be that limit in decimals."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is true, and why."""

    answer: str
    """"exists", "none" or "open"."""
    reason: str = ""
    """"pole", "jump", "kink", "steep", "undefined", "point", "growth"."""
    at: float = math.nan


def judge(
    tree: ast.expr, name: str, law: Law, low: float | None, high: float | None
) -> tuple[Verdict, list[float]]:
    """Return the verdict and the special points met on the way."""
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    points = specials(tree, name, {}, *ends)
    marks = [float(p) for p in points]
    try:
        found = _judged(tree, name, law, ends, points)
    except BeyondError:
        return Verdict("open"), marks
    if found.answer == "exists" and len(points) == MOST:  # there may be more of them
        return Verdict("open"), marks
    return found, marks


def _judged(
    tree: ast.expr, name: str, law: Law, ends: tuple[float, float], points: list[mpf]
) -> Verdict:
    if ends[0] == ends[1]:
        return _at_one_point(tree, name, ends[0])
    if law.lattice:
        return _on_integers(tree, name, law, ends, [float(p) for p in points])
    return _on_line(tree, name, law, ends, points)


def _at_one_point(tree: ast.expr, name: str, point: float) -> Verdict:
    try:
        reading.value(tree, {name: exact(point)})
    except UndefinedError:
        return Verdict("open", "undefined", point)
    return Verdict("exists")


# -- on the integers -----------------------------------------------------------------------------


def _on_integers(
    tree: ast.expr, name: str, law: Law, ends: tuple[float, float], marks: list[float]
) -> Verdict:
    centres = {0.0, *marks, *(e for e in ends if math.isfinite(e))}
    near = sorted({math.floor(c) + k for c in centres for k in range(-4, 6)})
    for k in near:
        if ends[0] <= k <= ends[1]:
            try:
                reading.value(tree, {name: k})
            except UndefinedError:
                if math.isfinite(reading.values(tree, {name: np.array([float(k)])})[0]):
                    return Verdict("open", "infinite part", k)  # max(1, log(0)) may be read as 1
                ways = [s for s in (-1, 1) if _inside(exact(k), s, ends)]
                if all(side(tree, name, {}, k, s).value.how == "finite" for s in ways):
                    return Verdict("open", "removable", k)  # q/q may be read as 1
                return Verdict("none", "undefined", k)
    if len(law.laplaces) != 1:
        return Verdict("open")
    return _growth(tree, name, law, ends)


# -- on the line ---------------------------------------------------------------------------------


def _on_line(
    tree: ast.expr, name: str, law: Law, ends: tuple[float, float], points: list[mpf]
) -> Verdict:
    kinds = ("undefined", "pole", "jump", "point")
    if not law.jumps:  # a density without jumps makes E g continuously differentiable
        kinds = (*kinds, "kink", "steep")
    gap = _undefined(tree, name, ends, points)
    if gap is not None:
        return gap
    doubtful = False
    for point in _with_ends(points, ends):
        found = at_point(tree, name, point, ends)
        at_end = (
            any(abs(float(point) - e) < 1e-12 for e in ends) and not law.laplaces
        )  # E g need not reach beyond an end
        # a few units in the last place beside a bound may be at the bound
        beside = any(0 < abs(point - exact(e)) <= LAST * abs(e) for e in ends if math.isfinite(e))
        if found.answer == "none" and found.reason in kinds and not at_end and not beside:
            return found
        doubtful |= found.answer != "exists"
    if doubtful or len(law.laplaces) != 1 or law.lattice:
        return Verdict("open")
    return _growth(tree, name, law, ends)


def _with_ends(points: list[mpf], ends: tuple[float, float]) -> list[mpf]:
    finite = [exact(e) for e in ends if math.isfinite(e)]
    return [*points, *(e for e in finite if e not in points)]


_FAR = (0.7, 1e3, 1e7, 1e16)
"""Distances beyond the last special point seen, in case there is another."""


def _undefined(
    tree: ast.expr, name: str, ends: tuple[float, float], points: list[mpf]
) -> Verdict | None:
    """Return where f is not a real number on a whole stretch inside the domain."""
    stops = sorted({*(float(p) for p in points), *(e for e in ends if math.isfinite(e))})
    middles = [(a + b) / 2 for a, b in itertools.pairwise(stops)]
    first, last = (stops[0], stops[-1]) if stops else (0.0, 0.0)
    middles += [first - d for d in _FAR] if math.isinf(ends[0]) else []
    middles += [last + d for d in _FAR] if math.isinf(ends[1]) else []
    seen = reading.values(tree, {name: np.array(middles, float)})
    for x, value in zip(middles, seen, strict=True):
        if not math.isfinite(value) and ends[0] < x < ends[1]:
            try:
                reading.value(tree, {name: x})
            except UndefinedError:
                return Verdict("none", "undefined", x)
            except BeyondError:
                continue
    return None


def at_point(
    tree: ast.expr,
    name: str,
    point: mpf,
    ends: tuple[float, float],
    others: Mapping[str, float] | None = None,
) -> Verdict:
    """Return what f does at one point of the domain, along one statistic."""
    where, others = float(point), others or {}
    sides = [side(tree, name, others, point, s) for s in (-1, 1) if _inside(point, s, ends)]
    for reason, wrong in (("pole", "value"), ("steep", "slope")):
        how = [getattr(s, wrong).how for s in sides]
        if "infinite" in how:
            return Verdict("none", reason, where)
        if "undefined" in how:
            return Verdict("none", "undefined", where)
    if any("undecided" in (s.value.how, s.slope.how) for s in sides):
        return Verdict("open", "", where)
    return _met(tree, {name: point, **others}, where, sides)


def _met(tree: ast.expr, point: Mapping[str, Any], where: float, sides: list[Side]) -> Verdict:
    if len(sides) == 2:
        for reason, part in (("jump", "value"), ("kink", "slope")):
            left, right = (getattr(s, part).value for s in sides)
            if _differ(left, right):
                return Verdict("none", reason, where)
            if not _same(left, right):
                return Verdict("open", reason, where)
    try:
        here = reading.value(tree, point)
    except UndefinedError:
        if not sides:
            return Verdict("none", "undefined", where)
        chosen = any(isinstance(node, ast.Compare) for node in ast.walk(tree))  # as no number
        return Verdict("open" if chosen else "exists", "removable", where)
    if not sides:  # the only value there is
        return Verdict("exists")
    limit = sides[0].value.value
    assert limit is not None
    if _differ(here, limit):
        slight = abs(here - limit) <= SLIGHT * _nearby(tree, point)
        return Verdict("open" if slight else "none", "point", where)
    return Verdict("exists" if _same(here, limit) else "open", "point", where)


def _nearby(tree: ast.expr, point: Mapping[str, Any]) -> mpf:
    """Return how large f is at a distance of 1/1000."""
    sizes = [mpf(0)]
    for step in (mpf("1e-3"), mpf("-1e-3")):
        with contextlib.suppress(UndefinedError, BeyondError):
            sizes.append(abs(reading.value(tree, {n: v + step for n, v in point.items()})))
    return max(sizes)


def _differ(a: mpf | None, b: mpf | None) -> bool:
    assert a is not None
    assert b is not None
    return bool(abs(a - b) > SAME * max(abs(a), abs(b), mpf("1e-11")))


def _same(a: mpf, b: mpf) -> bool:
    """Whether two numbers are the same, not merely both below what is told from 0."""
    return bool(abs(a - b) <= SAME * max(abs(a), abs(b)))


def _inside(point: mpf, direction: int, ends: tuple[float, float]) -> bool:
    low, high = (mpf(e) if math.isinf(e) else exact(e) for e in ends)
    return bool(low < point) if direction < 0 else bool(point < high)


# -- growth --------------------------------------------------------------------------------------


def _growth(tree: ast.expr, name: str, law: Law, ends: tuple[float, float]) -> Verdict:
    """Compare the growth of f on open sides with e^{|q|/b}; close calls stay open."""
    for sign, end in zip((-1, 1), ends, strict=True):
        if math.isinf(end):
            rate = growth(tree, name, sign)
            if rate is None or abs(rate / law.rates[sign > 0] - 1) < 0.05:
                return Verdict("open")
            if rate > law.rates[sign > 0]:
                return Verdict("none", "growth", sign * math.inf)
    return Verdict("exists")


def growth(tree: ast.expr, name: str, sign: int) -> float | None:
    """Return lim log|f|/|q| on a side, None where it is not seen."""
    with mpmath.workdps(DIGITS):
        rates = []
        for far in (2_000, 8_000):
            try:
                here = [
                    abs(reading.value(tree, {name: sign * (far + step)}))
                    for step in (0, 1, 2, 3, 5, 7)
                ]
            except (UndefinedError, BeyondError, OverflowError, MemoryError, ValueError):
                return None
            top = max(here)
            rates.append(float(mpmath.log(top)) / far if top > 0 else -math.inf)
    if rates[1] == -math.inf or rates[1] <= 0:
        return 0.0
    if abs(rates[1] - rates[0]) < 0.02 * max(abs(rates[1]), 1e-3):
        return rates[1]
    return rates[1] if rates[1] < 0.01 else math.inf if rates[1] > 2 * rates[0] else None
