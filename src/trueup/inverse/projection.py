"""Intervals for any function: a box around the noise, mapped through f.

Each published number is undone by itself, at a level that gives all of them together the level
wanted; the box of true values is cut by the domain, and its image under f covers f(q) at least as
often. Where f rises or falls along every axis the image lies between two corners; of one statistic
also the values at the points where f turns or jumps count. Elsewhere f is read at all integers of
the box, or enclosed by interval arithmetic on a few cells of it.

Ends are arrays if published values are arrays, and formulas if they are symbols.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque
from trueup.inverse import signs as proof
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import Mask, Question, Walk, undecided
from trueup.kernels.blocks import evaluate
from trueup.noise.ratio_regions import reach

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Ends = tuple[Floats, Floats]
    Box = Mapping[sympy.Symbol, tuple[Any, Any]]

ENDS = ("low", "high")
"""The outputs that are ends of an interval."""

HINT = "collect the table first: in memory every interval is computed"

MOST_INTEGERS = 4096
"""Points of one box that are read one by one; larger boxes are enclosed in cells."""

_MOST_TURNS = 24  # a formula has two comparisons for each of them
_NARROW = 1e-9  # cells that are left are narrower, unless there are too many
_VALUES = 2**20  # read at once: eight megabytes
_CELLS = 64  # of a box: they halve what interval arithmetic adds, several times
FAR = 1e30  # infinity in formulas: where they have it, a nearer end follows
_WHOLE = 2.0**53  # integers up to here are doubles


# -- of arrays and of formulas ---------------------------------------------------------------------


def number(x: float) -> float:
    """Return a number as formulas write it: without a decimal point if it is an integer."""
    return int(x) if abs(x) < _WHOLE and x == int(x) else float(x)


def least(*terms: Any) -> Any:
    """Return the smallest of numbers, arrays or formulas."""
    return _extreme(sympy.Min, np.minimum, terms)


def most(*terms: Any) -> Any:
    """Return the largest of numbers, arrays or formulas."""
    return _extreme(sympy.Max, np.maximum, terms)


def _extreme(formula: type[sympy.Expr], array: np.ufunc, terms: Sequence[Any]) -> Any:
    if not is_formula(*terms) or len(terms) == 1:
        return reduce(array, terms)
    written = [sympy.sympify(t) for t in terms]
    return formula(*written, evaluate=all(t.is_number for t in written))


def case(test: Any, value: Any, other: Any) -> Any:
    """Return a value where a condition holds, another one elsewhere."""
    if not is_formula(test, value, other):
        return np.where(test, value, other)
    ends = [np.clip(x, -FAR, FAR) if isinstance(x, float) else x for x in (value, other)]
    return sympy.Piecewise((ends[0], sympy.sympify(test)), (ends[1], True), evaluate=False)


def is_formula(*terms: Any) -> bool:
    """Whether one of them at least is a formula."""
    return any(isinstance(term, sympy.Basic) for term in terms)


def _floor(x: Any) -> Any:
    return sympy.floor(x) if is_formula(x) else np.floor(x)


def _read(f: sympy.Expr, point: Mapping[sympy.Symbol, Any]) -> Any:
    return f.xreplace(dict(point)) if is_formula(*point.values()) else evaluate(f, point)


def limited(x: Any, low: float, high: float) -> Any:
    """Return x, not beyond bounds that may be infinite."""
    x = most(x, number(low)) if math.isfinite(low) else x
    return least(x, number(high)) if math.isfinite(high) else x


# -- boxes -----------------------------------------------------------------------------------------


def box(
    statistics: Sequence[Statistic],
    x: Sequence[Any],
    level: float,
    scales: Mapping[str, Any],
) -> Box:
    """Return where the true values are, all of them at once with probability ``level`` or more.

    Examples
    --------
    >>> from trueup import Interval, Laplace
    >>> from trueup.inverse.solve import Statistic
    >>> q = sympy.Symbol("q", real=True)
    >>> box([Statistic(q, Laplace(1), Interval(0, None))], [np.array([1.0])], 0.5, {})
    {q: (array([0.30685282]), array([1.69314718]))}
    """
    tail = float(-np.expm1(np.log(level) / len(statistics)) / 2)  # of each end of each statistic
    found = {}
    for statistic, value in zip(statistics, x, strict=True):
        domain, noise = statistic.domain, statistic.noise
        law, factor = unit(noise, scales.get(statistic.symbol.name))
        low, high = (value - number(end) * factor for end in reversed(reach(law, tail)))
        if domain.lattice and not noise.lattice:  # the integers in between, and the nearest one
            nearest = _floor(value + 0.5)
            low, high = least(-_floor(-low), nearest), most(_floor(high), nearest)
        ends = float(domain.low), float(domain.high)
        found[statistic.symbol] = limited(low, *ends), limited(high, *ends)
    return found


def has_unit(noise: Noise) -> bool:
    """Whether the law is that of scale 1 times its scale."""
    return bool(noise.unit) and not noise.lattice and not getattr(noise, "loc", 0)


def unit(noise: Noise, scale: Any) -> tuple[Noise, Any]:
    """Return the noise at scale 1 with its scale as a factor, where it is a multiple of that.

    Another scale, an array or a symbol, may be given.
    """
    if has_unit(noise):
        return noise.at_scale(1), number(float(noise.unit)) if scale is None else scale
    if scale is None:
        return noise, 1
    raise TrueupError(
        f"the quantiles of {noise!r} are no multiples of a scale that could differ from row to "
        "row: the interval has no formula",
        HINT,
    )


# -- which way f goes ------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def slopes(f: sympy.Expr, statistics: tuple[Statistic, ...]) -> tuple[int, ...] | None:
    """Return the direction of f along every axis of the domain, None where it is not proven.

    Examples
    --------
    >>> from trueup import Interval, Laplace
    >>> from trueup.inverse.solve import Statistic
    >>> q = sympy.Symbol("q", real=True)
    >>> slopes(1 / q, (Statistic(q, Laplace(2), Interval(1, None)),))
    (-1,)
    """
    if f.has(Opaque):
        return None
    line = {s.symbol: Interval(*s.domain.bounds) for s in statistics}  # no jumps between integers
    signs = tuple(proof.monotone(f, q, line) if q in f.free_symbols else 1 for q in line)
    return signs if all(signs) else None


class Turn(NamedTuple):
    """Where f turns or jumps: on [low, high], tiny, it lies between ``least`` and ``most``."""

    low: float
    high: float
    least: float
    most: float


@lru_cache(maxsize=256)
def turns(f: sympy.Expr, statistics: tuple[Statistic, ...]) -> tuple[Turn, ...] | None:
    """Return where f of one statistic may turn or jump, None unless it is monotone in between.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, Integers
    >>> from trueup.inverse.solve import Statistic
    >>> n = sympy.Symbol("n", real=True)
    >>> found = turns((n - 3) ** 2, (Statistic(n, DiscreteLaplace(2), Integers(0, None)),))
    >>> Turn(3.0, 3.0, least=0.0, most=0.0) in found
    True
    """
    if f.has(Opaque) or len(statistics) > 1:
        return None
    symbol, domain = statistics[0].symbol, statistics[0].domain
    slope = derivative(proof.without_kinks(f), symbol, 1)
    pieces: list[tuple[float, float, float]] = []

    def check(walk: Walk) -> Mask:
        low, high, _ = walk.range(symbol)
        below, above, _ = walk.range(slope)
        sign = np.where(below >= 0, 1.0, 0.0) - np.where(above <= 0, 1.0, 0.0)
        known = walk.range(f).sure & ((below >= 0) | (above <= 0))
        ends = (end[known].tolist() for end in (low, high, sign))
        pieces.extend(zip(*ends, strict=True))
        return known

    open_cells = undecided(Question(check, {symbol: Interval(*domain.bounds)}))
    left = [cell[symbol] for cell in open_cells]
    if any(high - low > _NARROW * max(abs(low), 1.0) for low, high in left):
        return None
    cells = sorted([*pieces, *((*ends, math.nan) for ends in left)])
    sloping = [cell for cell in cells if cell[2]]  # it is constant on the others
    spots = [(low, high) for low, high, sign in sloping if math.isnan(sign)]
    spots += [(b[0], b[0]) for a, b in pairwise(sloping) if a[2] == -b[2]]
    found = [turn for spot in sorted(spots) for turn in _turned(f, symbol, domain, *spot)]
    return tuple(dict.fromkeys(found)) if len(found) <= _MOST_TURNS else None


def _turned(
    f: sympy.Expr, symbol: sympy.Symbol, domain: Interval, low: float, high: float
) -> list[Turn]:
    """Return what f is at a turn; of integers those around it, one by one."""
    if not domain.lattice:
        below, above, _ = Walk({symbol: (np.array([low]), np.array([high]))}).range(f)
        return [Turn(low, high, float(below[0]), float(above[0]))]
    at = np.arange(math.floor(low), math.ceil(high) + 1.0)
    values = evaluate(f, {symbol: at})
    return [Turn(k, k, y, y) for k, y in zip(at.tolist(), values.tolist(), strict=True)]


# -- images of boxes -------------------------------------------------------------------------------


def image(
    f: sympy.Expr,
    ranges: Box,
    statistics: tuple[Statistic, ...],
    tied: Sequence[Condition] = (),
) -> tuple[Any, Any]:
    """Return the least and the largest value of f on boxes, or numbers beyond them.

    Points outside the conditions of ``tied`` do not count, unless the box has no others.

    Examples
    --------
    >>> from trueup import Interval, Laplace
    >>> from trueup.inverse.solve import Statistic
    >>> q = sympy.Symbol("q", real=True)
    >>> image(1 / q, {q: (q - 1, q + 1)}, (Statistic(q, Laplace(2), Interval(1, None)),))
    (1/(q + 1), 1/(q - 1))
    """
    found = _between(f, ranges, statistics)
    if is_formula(*(end for pair in ranges.values() for end in pair)):
        if found is None:
            raise TrueupError(
                "the interval of a function that jumps, ends or goes up and down inside its bounds "
                "has no formula",
                HINT,
            )
        return found
    known = found is not None and not np.isnan(found).any()  # at a corner f may have a limit
    return found if found and known else _around(f, ranges, statistics, tied)


def _between(
    f: sympy.Expr, ranges: Box, statistics: tuple[Statistic, ...]
) -> tuple[Any, Any] | None:
    """Return the values of f at corners and turns, None unless these are its extremes."""
    signs = slopes(f, statistics)
    if signs is not None:
        rising = {q: ends[:: int(d)] for d, (q, ends) in zip(signs, ranges.items(), strict=True)}
        low, high = (_read(f, {q: e[side] for q, e in rising.items()}) for side in (0, 1))
        return low, high
    turned = turns(f, statistics)
    if turned is None:
        return None
    ((symbol, (start, stop)),) = ranges.items()
    ends = [_read(f, {symbol: end}) for end in (start, stop)]
    low, high = least(*ends), most(*ends)
    met = [(t, (start <= number(t.high)) & (stop >= number(t.low))) for t in turned]
    if met:
        low = least(low, least(*(case(m, number(t.least), math.inf) for t, m in met)))
        high = most(high, most(*(case(m, number(t.most), -math.inf) for t, m in met)))
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
        low[few], high[few] = _at_integers(f, _rows(ranges, few), tied)
    left = np.isnan(low)  # many, or none that meets the conditions
    if left.any() and f.has(Opaque):
        raise TrueupError(
            "the interval is not known: a Python function is known only where it is called, not "
            "between these points",
            "write it as a formula, or use estimate and stderr",
        )
    if left.any():
        pieces = round(_CELLS ** (1 / len(ranges)))
        low[left], high[left] = proof.image(f, _rows(ranges, left), tied, pieces)
    return low, high


def _rows(ranges: Box, rows: NDArray[np.bool_]) -> Box:
    return {q: (start[rows], stop[rows]) for q, (start, stop) in ranges.items()}


def _at_integers(f: sympy.Expr, ranges: Box, tied: Sequence[Condition]) -> Ends:
    """Return the extremes at the integers of each box that meet the conditions, NaN for none."""
    ends = np.stack([end for pair in ranges.values() for end in pair])
    boxes, which = np.unique(ends, axis=1, return_inverse=True)
    longest = [int(d.max()) + 1 for d in boxes[1::2] - boxes[::2]]
    steps = np.indices(longest).reshape(len(longest), 1, -1)
    low, high = [], []
    for part in np.array_split(boxes, 1 + boxes.shape[1] * steps.shape[2] // _VALUES, axis=1):
        points = np.minimum(part[::2, :, None] + steps, part[1::2, :, None])
        given = dict(zip(ranges, points.reshape(len(points), -1), strict=True))
        values, named = evaluate(f, given), {q.name: at for q, at in given.items()}
        for condition in tied:
            total = sum(float(c) * named[name] for name, c in condition.terms)
            values[total < float(condition.low)] = np.nan
        values = values.reshape(points.shape[1:])
        low.append(np.fmin.reduce(values, axis=1))
        high.append(np.fmax.reduce(values, axis=1))
    return np.concatenate(low)[which.ravel()], np.concatenate(high)[which.ravel()]
