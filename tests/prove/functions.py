"""The same f given as a Python function: what it is bound to, and what is said of its derivatives.

A function of several statistics gets each by the name of its parameter, whatever the order of the
noises. Derivatives given beside f are compared with f: true ones give the estimator of the formula,
others are refused.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import trueup as tu
from prove import reading
from prove.expectations import expect_jointly
from prove.reading import BeyondError, UndefinedError
from prove.targets import same

Row = Mapping[str, float]
FALSE = 1.5
"""What a derivative is multiplied by to be false; where f′ is 0 it still is true."""


CALLS = 20_000
"""The oracle computes f to 200 digits, a thousandth of a second each; a search may ask more."""


class EnoughError(BaseException):
    """The function was called too often. Not an Exception, so that nobody in between takes it."""


def disagreements(e: Any, est: Any, points: Sequence[Row]) -> Iterator[tuple[str, Row, float, Any]]:
    """Yield (check, point, what the formula gives, what the function gives)."""
    if e.laws is None or any(e.on_integers(n) for n in e.names):
        return
    if all(law.lattice and law.closed for law in e.laws.values()):
        yield from _by_name(e, est, points)
    elif e.single and e.laws[e.names[0]].closed and _smooth(e):
        yield from _by_derivatives(e, est, points)


def function(tree: Any, names: Sequence[str], order: int = 0) -> Callable[..., float]:
    """Return the formula, or a derivative of it, as a function with these parameters."""

    calls = itertools.count()

    def f(*given: float, **named: float) -> float:
        if next(calls) > CALLS:
            raise EnoughError
        at = {**dict(zip(names, map(float, given), strict=False)), **named}
        return float(reading.derivatives(tree, at, names[0], order)[order])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    f.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return f


def _by_name(e: Any, est: Any, points: Sequence[Row]) -> Iterator[tuple[str, Row, float, Any]]:
    """Values are enough on the integers; parameters stand in another order than the noises."""
    if e.single and e.judged.answer != "exists":
        return
    noises, bounds = e.case.noise(), e.case.bounds()
    backwards = {n: noises[n] for n in reversed(e.names)}
    try:
        again = tu.unbiased(function(e.tree, e.names), backwards, bounds)
        if e.ties:  # conditions between statistics leave more than one estimator
            yield from _unbiased(e, again)
        else:
            yield from _compared("function", e, est, again, points)
    except (UndefinedError, BeyondError, OverflowError, EnoughError):
        e.report.unsettled["function"] += 1
    except tu.TrueupError:  # a function's growth cannot be read off it
        e.report.unsettled["function refused"] += 1


def _unbiased(e: Any, again: Any) -> Iterator[tuple[str, Row, float, Any]]:
    """The mean of the estimator is f: exact sums at a corner of the domain and somewhere inside."""

    def rows(**x: Any) -> Any:
        return np.asarray(again(**x), float)[None]

    corner = {n: next(b for b in (*e.ends(n), 0.0) if math.isfinite(b)) for n in e.names}
    for q in (corner, {n: e.inside(n) for n in e.names}):
        f = e.f(q) if e.meets_ties(q) else None
        answers = None if f is None else expect_jointly(rows, e.laws, q, dict.fromkeys(q, ()))
        if answers is None or not answers[0].settled:
            e.report.unsettled["function"] += 1
            continue
        e.report.compared["function"] += 1
        first = answers[0]
        if not abs(first.mean - f) <= 1e-8 * first.size + 4 * first.error + e.least:
            yield "function", q, f, first.mean


def _smooth(e: Any) -> bool:
    """Whether f has two derivatives in the whole domain, as far as the oracle sees."""
    (name,) = e.names
    ends = [b for b in e.ends(name) if math.isfinite(b)]
    return not e.marks[name] and len(ends) < 2 and e.judged.answer == "exists"


def _by_derivatives(
    e: Any, est: Any, points: Sequence[Row]
) -> Iterator[tuple[str, Row, float, Any]]:
    noises, bounds = e.case.noise(), e.case.bounds()
    f, first, second = (function(e.tree, e.names, k) for k in range(3))
    try:
        again = tu.unbiased(f, noises, bounds, derivatives=(first, second))
        yield from _compared("derivatives", e, est, again, points)
        yield from _false_derivatives(e, f, first, second)
    except (UndefinedError, BeyondError, OverflowError, EnoughError):
        e.report.unsettled["function"] += 1
    except tu.TrueupError:
        e.report.unsettled["function refused"] += 1


def _false_derivatives(
    e: Any, f: Any, first: Any, second: Any
) -> Iterator[tuple[str, Row, float, Any]]:
    q = {n: e.inside(n) for n in e.names}
    for order, right in ((1, first), (2, second)):
        if abs(right(**q)) <= 1e-3 * abs(f(**q)) or abs(right(**q)) < 1e-6:
            continue

        def wrong(x: float, right: Any = right) -> float:
            return FALSE * float(right(x))

        given = (wrong, second) if order == 1 else (first, wrong)
        e.report.compared["false derivatives"] += 1
        try:
            tu.unbiased(f, e.case.noise(), e.case.bounds(), derivatives=given)
        except tu.TrueupError:
            continue
        yield "false derivatives", q, math.nan, f"derivative {order} times {FALSE} is believed"


def _compared(
    check: str, e: Any, est: Any, again: Any, points: Sequence[Row]
) -> Iterator[tuple[str, Row, float, Any]]:
    for x in points:
        truth = est(**x)
        try:
            got = again(**x)
        except (UndefinedError, BeyondError, OverflowError, ZeroDivisionError):
            e.report.unsettled[check] += 1
            continue
        e.report.compared[check] += 1
        size = float(reading.sizes(e.tree, {n: np.float64(v) for n, v in x.items()}))
        if not same(truth, got, size if math.isfinite(size) else 0.0, e.least):
            yield check, x, truth, got
