"""Intervals for any function: a box around the noise, mapped through f.

Each published number is undone by itself, at a level that gives all of them together the level
wanted; the box of true values is cut by the domain, and its image under f covers f(q) at least as
often. Where f rises or falls along every axis the image lies between two corners; of one statistic
also the values at the points where f turns or jumps count. Elsewhere f is read at all integers of
the box, or enclosed by interval arithmetic on a few cells of it.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque
from trueup.inverse import signs as proof
from trueup.inverse.cells import halfway
from trueup.inverse.jets import derivative
from trueup.inverse.points import without_kinks
from trueup.inverse.ranges import Walk
from trueup.kernels.blocks import evaluate
from trueup.kernels.grid import Grid
from trueup.noise.ratio_regions import reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Ends = tuple[Floats, Floats]
    Formulas = tuple[sympy.Expr, sympy.Expr]
    Box = Mapping[sympy.Symbol, Ends]
    Scales = Mapping[sympy.Symbol, sympy.Symbol]

ENDS = ("low", "high")
"""The outputs that are ends of an interval."""

HINT = "collect the table first: in memory every interval is computed"

MOST_LEVELS = 2000
"""Pairs of noise scales in a column: on the integers each takes a tenth of a second."""

MOST_INTEGERS = 4096
"""Points of one box that are read one by one; larger boxes are enclosed in cells."""

_MOST_TURNS = 24  # a formula has two comparisons for each of them
_MOST_PIECES = 64  # that are open at once: some leave two for each turn
_FAR, _TINY, _HALVINGS = 1e100, 1e-12, 130  # the first 60 lead from 1e100 to 1e-15
_ALL = 1_000_000  # integers of a bounded domain at which all values of f are compared
_VALUES = 2**20  # read at once: eight megabytes
_CELLS = 64  # of a box: they halve what interval arithmetic adds, several times


def box(statistics: Sequence[Statistic], x: Sequence[Any], level: float) -> dict[Any, Any]:
    """Return where the true values are, all of them at once with probability ``level`` or more.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.laplace import Laplace
    >>> q = sympy.Symbol("q", real=True)
    >>> box([Statistic(q, Laplace(1), Interval(0, None))], [np.array([1.0])], 0.5)
    {q: (array([0.30685282]), array([1.69314718]))}
    """
    tail = tail_of(level, len(statistics))
    found = {}
    for statistic, value in zip(statistics, x, strict=True):
        below, above = reach(statistic.noise, tail)
        low, high = np.asarray(value, float) - above, np.asarray(value, float) - below
        domain = statistic.domain
        if domain.lattice:  # the integers in between, and the nearest one
            nearest = np.floor(np.asarray(value, float) + 0.5)
            low, high = np.minimum(np.ceil(low), nearest), np.maximum(np.floor(high), nearest)
        ends = (np.clip(end, float(domain.low), float(domain.high)) for end in (low, high))
        found[statistic.symbol] = tuple(ends)
    return found


def tail_of(level: float, count: int) -> float:
    """Return how often each of several noises may be beyond an end, for the level of all.

    Examples
    --------
    >>> round(tail_of(0.81, 2), 12)
    0.05
    """
    return float(-np.expm1(np.log(level) / count) / 2)


def rescaled(
    statistics: Sequence[Statistic], scales: Mapping[str, Any], rows: int
) -> Iterator[tuple[Any, Sequence[Statistic]]]:
    """Yield the rows of each noise level, with what is known of the statistics there."""
    if not scales:
        yield slice(None), statistics
        return
    levels = np.stack([np.asarray(v, float) for v in scales.values()], axis=1).reshape(rows, -1)
    known = (levels > 0).all(axis=1)
    distinct, which = np.unique(levels[known], axis=0, return_inverse=True)
    if len(distinct) > MOST_LEVELS:
        raise TrueupError(
            f"{len(distinct)} different noise levels, intervals are made for {MOST_LEVELS} at most",
            "round the scales up to fewer levels, or leave interval= out",
        )
    for i, level in enumerate(distinct):
        at = dict(zip(scales, level.tolist(), strict=True))
        yield (
            np.flatnonzero(known)[which.ravel() == i],
            [at_scale(s, at.get(s.symbol.name)) for s in statistics],
        )


def at_scale(statistic: Statistic, scale: float | None) -> Statistic:
    """Return a statistic with another noise scale."""
    if scale is None:
        return statistic
    return dataclasses.replace(statistic, noise=statistic.noise.at_scale(scale))


def unscaled(noise: Noise) -> tuple[Noise, float]:
    """Return noise that is a multiple of that of scale 1 as such, with the factor.

    Examples
    --------
    >>> from trueup.noise.laplace import DiscreteLaplace
    >>> from trueup.noise.laplace import Laplace
    >>> unscaled(Laplace(3)), unscaled(DiscreteLaplace(3))
    ((Laplace(1), 3.0), (DiscreteLaplace(3), 1.0))
    """
    if noise.lattice or not is_multiple(noise):
        return noise, 1.0
    return noise.at_scale(1), float(getattr(noise, noise.scale_name))


def is_multiple(noise: Noise) -> bool:
    """Whether the law, if it is continuous, is that of scale 1 times its scale."""
    return hasattr(noise, noise.scale_name) and not getattr(noise, "loc", 0)


# -- which way f goes ------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def slopes(f: sympy.Expr, statistics: tuple[Statistic, ...]) -> tuple[int, ...] | None:
    """Return the direction of f along every axis of the domain, None where it is not proven.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.laplace import Laplace
    >>> q = sympy.Symbol("q", real=True)
    >>> slopes(1 / q, (Statistic(q, Laplace(2), Interval(1, None)),))
    (-1,)
    """
    line = {s.symbol: Interval(*s.domain.bounds) for s in statistics}  # no jumps between integers
    if len(statistics) == 1 and statistics[0].domain.lattice:
        found = _by_values(f, statistics[0])
        if found is not None:
            return (found,) if found else None
    if f.has(Opaque):
        return None
    signs = tuple(proof.monotone(f, q, line) if q in f.free_symbols else 1 for q in line)
    return signs if all(signs) else None


def _by_values(f: sympy.Expr, statistic: Statistic) -> int | None:
    """Return the direction of f on few integers, 0 if it has none, None if they are many."""
    low, high = map(float, (statistic.domain.low, statistic.domain.high))
    if high - low > _ALL:
        return None
    steps = np.diff(evaluate(f, {statistic.symbol: np.arange(low, high + 1)}))
    return 1 if (steps >= 0).all() else -1 if (steps <= 0).all() else 0


class Turn(NamedTuple):
    """Where f turns or jumps: on [low, high], tiny, it lies between ``least`` and ``most``."""

    low: float
    high: float
    least: float
    most: float


@lru_cache(maxsize=256)
def turns(f: sympy.Expr, statistic: Statistic) -> tuple[Turn, ...] | None:
    """Return where f may turn or jump, None unless it is proven to be monotone in between.

    Examples
    --------
    >>> from trueup.domain import Integers
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.laplace import DiscreteLaplace
    >>> n = sympy.Symbol("n", real=True)
    >>> turns((n - 3) ** 2, Statistic(n, DiscreteLaplace(2), Integers(0, None)))
    (Turn(low=3.0, high=3.0, least=0.0, most=0.0),)
    """
    symbol, whole = statistic.symbol, statistic.domain.lattice
    pieces = None if f.has(Opaque) else _pieces(f, statistic)
    if pieces is None:
        return None
    found: list[Turn] = []
    sign = 0
    for low, high, here in pieces:
        if here and here == -sign:
            found += _turned(f, symbol, (low, low), whole=whole)
        elif math.isnan(here):
            found += _turned(f, symbol, (low, high), whole=whole)
        sign = int(here) if here in (-1, 1) else 0 if math.isnan(here) else sign
    return tuple(dict.fromkeys(found)) if len(found) <= _MOST_TURNS else None


def _pieces(f: sympy.Expr, statistic: Statistic) -> list[tuple[float, float, float]] | None:
    """Return the domain in pieces, each with the sign of the slope of f; tiny ones have NaN."""
    symbol, domain = statistic.symbol, statistic.domain
    slope = derivative(without_kinks(f), symbol, 1)
    low, high = (np.clip([float(end)], -_FAR, _FAR) for end in (domain.low, domain.high))
    found: list[tuple[float, float, float]] = []
    for _ in range(_HALVINGS):
        walk = Walk({symbol: (low, high)})
        least, most, _ = walk.range(slope)
        sign = np.where(most <= 0, np.where(least >= 0, 0, -1.0), np.where(least >= 0, 1.0, np.nan))
        sign[~walk.range(f).sure] = np.nan
        left = np.isnan(sign) & (high - low > _TINY * np.maximum(np.abs(low), 1e-3))
        done = ~left
        found += zip(low[done].tolist(), high[done].tolist(), sign[done].tolist(), strict=True)
        if not left.any():
            return sorted(found)
        if left.sum() > _MOST_PIECES:
            return None
        low, high = low[left], high[left]
        cut = halfway(low, high)
        low, high = np.concatenate([low, cut]), np.concatenate([cut, high])
    return None


def _turned(
    f: sympy.Expr, symbol: sympy.Symbol, place: tuple[float, float], *, whole: bool
) -> list[Turn]:
    """Return what f is at a turn; of integers those around it, one by one."""
    low, high = place
    if not whole:
        least, most, _ = Walk({symbol: (np.array([low]), np.array([high]))}).range(f)
        return [Turn(low, high, float(least[0]), float(most[0]))]
    at = np.arange(math.floor(low), math.ceil(high) + 1.0)
    values = evaluate(f, {symbol: at})
    return [Turn(*map(float, (k, k, y, y))) for k, y in zip(at, values, strict=True)]


# -- images of boxes -------------------------------------------------------------------------------


def image(
    f: sympy.Expr, ranges: Box, statistics: tuple[Statistic, ...], tied: Sequence[Condition] = ()
) -> Ends:
    """Return the least and the largest value of f on boxes, or numbers beyond them.

    Points outside the conditions of ``tied`` do not count, unless the box has no others.
    """
    signs = slopes(f, statistics)
    if signs is not None:
        low, high = (evaluate(f, corner) for corner in corners(ranges, signs))
    elif len(statistics) == 1 and (turned := turns(f, statistics[0])) is not None:
        low, high = _turning(f, ranges, turned)
    else:
        return _around(f, ranges, statistics, tied)
    known = ~np.isnan(np.sum([end for ends in ranges.values() for end in ends], axis=0))
    lost = known & (np.isnan(low) | np.isnan(high))  # at a corner f may have a limit only
    if lost.any():
        low[lost], high[lost] = _around(f, _rows(ranges, lost), statistics, tied)
    return low, high


def corners(
    ranges: Mapping[sympy.Symbol, Any], signs: Sequence[int]
) -> list[dict[sympy.Symbol, Any]]:
    """Return the corners of a box at which a monotone f is least and largest."""
    return [
        {q: ends[(sign < 0) ^ side] for (q, ends), sign in zip(ranges.items(), signs, strict=True)}
        for side in (False, True)
    ]


def _turning(f: sympy.Expr, ranges: Box, turned: Sequence[Turn]) -> Ends:
    """Return the extremes of f at both ends of intervals and at the turns in between."""
    ((symbol, (start, stop)),) = ranges.items()
    ends = [evaluate(f, {symbol: end}) for end in (start, stop)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    for turn in turned:
        met = (start <= turn.high) & (stop >= turn.low)
        low = np.where(met, np.minimum(low, turn.least), low)
        high = np.where(met, np.maximum(high, turn.most), high)
    return low, high


def _around(
    f: sympy.Expr, ranges: Box, statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> Ends:
    """Return the extremes on boxes: of integers at all of them, else around cells."""
    whole = frozenset(s.symbol for s in statistics if s.domain.lattice)
    counts = np.prod([stop - start + 1 for start, stop in ranges.values()], axis=0)
    low, high = np.full(counts.shape, np.nan), np.full(counts.shape, np.nan)
    few = (counts <= MOST_INTEGERS) & (whole == set(ranges))
    if few.any():
        low[few], high[few] = at_integers(f, _rows(ranges, few), tied)
    left = ~np.isnan(counts) & np.isnan(low)  # many, or none that meets the conditions
    if left.any() and f.has(Opaque):
        raise TrueupError(
            "the interval is not known: a Python function is known only where it is called, not "
            "between these points",
            "write it as a formula, or use estimate and stderr",
        )
    if left.any():
        pieces = round(_CELLS ** (1 / len(ranges)))
        low[left], high[left] = proof.image(f, _rows(ranges, left), whole, tied, pieces)
    return low, high


def _rows(ranges: Box, rows: NDArray[np.bool_]) -> Box:
    return {q: (start[rows], stop[rows]) for q, (start, stop) in ranges.items()}


def at_integers(f: sympy.Expr, ranges: Box, tied: Sequence[Condition] = ()) -> Ends:
    """Return the least and the largest value of f at the integers of each box.

    Points outside the conditions do not count; NaN for a box without others.

    Examples
    --------
    >>> n = sympy.Symbol("n", real=True)
    >>> at_integers(sympy.Abs(n - 3), {n: (np.array([1.0, 5.0]), np.array([4.0, 9.0]))})
    (array([0., 2.]), array([2., 6.]))
    """
    ends = np.stack([end for pair in ranges.values() for end in pair])
    boxes, which = np.unique(ends, axis=1, return_inverse=True)
    found = np.full((2, boxes.shape[1]), np.nan)
    longest = [int(d.max(initial=0)) + 1 for d in boxes[1::2] - boxes[::2]]
    steps = np.indices(longest).reshape(len(longest), -1)
    count = max(1, _VALUES // steps.shape[1])
    for i in range(0, boxes.shape[1], count):
        start, stop = boxes[::2, i : i + count, None], boxes[1::2, i : i + count, None]
        points = np.minimum(start + steps[:, None, :], stop)
        shape, given = points.shape[1:], dict(zip(ranges, points, strict=True))
        values = evaluate(f, {q: x.ravel() for q, x in given.items()}).reshape(shape)
        allowed = _meets(given, tied)
        values = np.where(allowed, values, np.nan)
        found[:, i : i + count] = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    low, high = found[:, which.ravel()]
    return low, high


def _meets(points: Mapping[sympy.Symbol, Floats], tied: Sequence[Condition]) -> NDArray[np.bool_]:
    """Return which points meet all conditions."""
    named = {q.name: x for q, x in points.items()}
    met = np.ones(next(iter(named.values())).shape, bool)
    for condition in tied:
        met &= sum(float(c) * named[name] for name, c in condition.terms) >= float(condition.low)
    return met


# -- as formulas -----------------------------------------------------------------------------------


def grids(ends: Formulas, statistics: Sequence[Statistic], scales: Scales) -> tuple[Grid, Grid]:
    """Return formulas of the ends as functions of the statistics, then of the scales."""
    inputs = (*(s.symbol for s in statistics), *scales.values())
    whole = frozenset(i for i, s in enumerate(statistics) if s.noise.lattice)
    every = tuple(range(len(inputs)))
    low, high = (Grid(inputs, [([], every, lambda _, e=e: e)], whole) for e in ends)
    return low, high


def unit(noise: Noise, scale: sympy.Symbol | None) -> tuple[Noise, sympy.Expr]:
    """Return a noise and its factor: the family at scale 1 times the symbol of a scale."""
    if scale is None:
        unit, factor = unscaled(noise)
        return unit, number(factor)
    if noise.lattice:
        raise TrueupError(
            f"an interval under {type(noise).__name__} noise with a scale per row has no formula: "
            "quantiles on the integers are no multiples of the scale",
            HINT,
        )
    if not is_multiple(noise):
        raise TrueupError(
            f"{noise!r} has no scale that could differ from row to row",
            "make one estimator per noise level",
        )
    return unscaled(noise)[0], scale


def limited(x: sympy.Expr, low: float, high: float) -> sympy.Expr:
    """Return x, not beyond bounds that may be infinite."""
    if math.isfinite(low):
        x = sympy.Max(x, number(low), evaluate=False)
    return sympy.Min(x, number(high), evaluate=False) if math.isfinite(high) else x


def number(x: float) -> sympy.Expr:
    """Return a double as a number of sympy, as an integer where it is one."""
    return sympy.Integer(int(x)) if x == int(x) else sympy.Float(x)


def projected(
    f: sympy.Expr, statistics: tuple[Statistic, ...], level: float, scales: Scales
) -> Formulas:
    """Return the image of the box around the published values.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.uniform import Uniform
    >>> q = sympy.Symbol("q", real=True)
    >>> projected(2 * q, (Statistic(q, Uniform(4), Interval(1, None)),), 0.5, {})[0]
    2*Max(1, q - 1.0)
    """
    ranges = _box_of_formulas(statistics, level, scales)
    signs = slopes(f, statistics)
    if signs is not None:
        low, high = (f.xreplace(corner) for corner in corners(ranges, signs))
        return low, high
    turned = turns(f, statistics[0]) if len(statistics) == 1 else None
    if turned is None:
        raise TrueupError(
            "the interval of a function that jumps, ends or goes up and down inside its bounds has "
            "no formula",
            HINT,
        )
    ((symbol, (start, stop)),) = ranges.items()
    ends = [f.xreplace({symbol: end}) for end in (start, stop)]
    met = [(start <= number(t.high)) & (stop >= number(t.low)) for t in turned]
    low, high = (
        extreme(
            *ends,
            *(case(number(y), here, ends[0]) for y, here in zip(ys, met, strict=True)),
            evaluate=False,
        )
        for extreme, ys in (
            (sympy.Min, [t.least for t in turned]),
            (sympy.Max, [t.most for t in turned]),
        )
    )
    return low, high


def _box_of_formulas(
    statistics: Sequence[Statistic], level: float, scales: Scales
) -> dict[sympy.Symbol, Formulas]:
    tail, found = tail_of(level, len(statistics)), {}
    for statistic in statistics:
        noise, factor = unit(statistic.noise, scales.get(statistic.symbol))
        below, above = (number(end) * factor for end in reach(noise, tail))
        low, high = statistic.symbol - above, statistic.symbol - below
        if statistic.domain.lattice:
            low, high = _whole(statistic.symbol, low, high)
        known = float(statistic.domain.low), float(statistic.domain.high)
        found[statistic.symbol] = limited(low, *known), limited(high, *known)
    return found


def case(value: sympy.Expr, condition: sympy.Basic, otherwise: sympy.Expr) -> sympy.Expr:
    """Return a value where a condition holds, another one elsewhere."""
    return sympy.Piecewise((value, condition), (otherwise, True), evaluate=False)


def _whole(x: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> Formulas:
    """Return the integers in between; the nearest one if there is none."""
    first, last = -sympy.floor(-low), sympy.floor(high)
    nearest = sympy.floor(x + sympy.Rational(1, 2))
    return sympy.Min(first, nearest, evaluate=False), sympy.Max(last, nearest, evaluate=False)
