"""Intervals for any function of several statistics: a box around the noise, mapped through f.

Each published number is undone by itself, at a level that gives all of them together the level
wanted; the box of true values is cut by the domain, and its image under f covers f(q) at least as
often. Where f is continuous and rises or falls along every axis the image lies between two corners;
elsewhere it is enclosed by interval arithmetic on a few cells of the box, those that meet the
conditions between the statistics.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.enclosure.intervals import Range
from trueup.enclosure.ranges import Walk, constant_bounds
from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import at, rational
from trueup.formula.unkinked import without_kinks
from trueup.inverse.approach import approach
from trueup.inverse.definite import definite
from trueup.inverse.jets import derivative
from trueup.inverse.regularity import Guard, guards_of, singularities
from trueup.kernels.evaluate import evaluate
from trueup.noise.half_planes import reach

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Box = Mapping[sympy.Symbol, tuple[Floats, Floats]]

MOST_LEVELS = 2000
"""Pairs of noise scales in a column: on the integers each takes a tenth of a second."""

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
    >>> from trueup.noise.discrete_laplace import DiscreteLaplace
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


def completed(f: sympy.Expr, statistics: Sequence[Statistic]) -> sympy.Expr:
    """Return f of one statistic with its limit at a bound where it has no value as written.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.laplace import Laplace
    >>> q = sympy.Symbol("q", real=True)
    >>> completed(q**2 * sympy.log(q), [Statistic(q, Laplace(1), Interval(0, 1))])
    Piecewise((0, Eq(q, 0)), (q**2*log(q), True))
    """
    if len(statistics) != 1 or f.has(Opaque):
        return f
    symbol, domain = statistics[0].symbol, statistics[0].domain
    found = f
    for bound, side in zip(domain.bounds, (1, -1), strict=True):
        if bound is None or not np.isnan(evaluate(f, {symbol: np.array([float(bound)])})[0]):
            continue
        limit = approach(rational(f), symbol, symbolic(bound), side).limit
        if limit is not None:
            found = sympy.Piecewise((limit, sympy.Eq(symbol, symbolic(bound))), (found, True))
    return found


def slopes(f: sympy.Expr, statistics: Sequence[Statistic]) -> tuple[int, ...] | None:
    """Return the direction of f along every axis of the domain, None where it is not proven."""
    try:
        return _slopes(f, statistics)
    except TypeError:  # sympy compares with NaN: between whole numbers f may be undefined
        return None


def _slopes(f: sympy.Expr, statistics: Sequence[Statistic]) -> tuple[int, ...] | None:
    domain = {s.symbol: s.domain for s in statistics}
    if not _joins(f, domain):
        return None
    found = []
    for s in statistics:
        if any(p.kind not in ("mild", "kink") for p in singularities(f, s.symbol, s.domain)):
            return None
        slope = derivative(without_kinks(f), s.symbol, 1)
        sign = definite(slope, domain, strict=False)
        if not sign and slope.is_rational_function(*domain):
            sign = definite(sympy.factor(sympy.together(slope)), domain, strict=False)
        found.append(sign)
    return tuple(found) if all(found) else None


def _joins(f: sympy.Expr, domain: Mapping[sympy.Symbol, Interval]) -> bool:
    """Whether f is continuous wherever several statistics together could make it break.

    Along s = n it may jump, along s + n = 1 have a pole: along an axis neither is seen.
    """
    for node in sympy.preorder_traversal(f):
        if isinstance(node, (sympy.Abs, sympy.Min, sympy.Max)):
            continue
        if isinstance(node, sympy.Piecewise):
            tests = [t for _, test in node.args for t in test.atoms(Relational)]
            crossed = [
                t for t in tests if len(t.free_symbols) > 1 and not definite(t.lhs - t.rhs, domain)
            ]
            if crossed and not _agree(node):
                return False
        elif not isinstance(node, Relational):
            for guard in guards_of(node):
                if len(guard.expr.free_symbols) > 1 and not _kept(node, guard, domain):
                    return False
    return True


def _kept(node: sympy.Basic, guard: Guard, domain: Mapping[sympy.Symbol, Interval]) -> bool:
    """Whether a guard keeps its sign on the domain; where a root begins, it may be zero."""
    if not guard.signed:
        return definite(guard.expr, domain) != 0
    begins = isinstance(node, (sympy.asin, sympy.acos, sympy.acosh)) or (
        isinstance(node, sympy.Pow) and node.exp.is_positive
    )
    return definite(guard.expr, domain, strict=not begins) > 0


def _agree(cases: sympy.Piecewise) -> bool:
    """Whether two cases have the same value where the sides of their comparison are equal.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> [_agree(sympy.Piecewise((s, s > 2 * n), (x, True))) for x in (2 * n, n)]
    [True, False]
    """
    (value, test), *rest = cases.args
    if len(rest) != 1 or rest[0].cond != sympy.true or not isinstance(test, Relational):
        return False
    difference = sympy.expand(test.lhs - test.rhs)
    for q in sorted(difference.free_symbols, key=str):
        slope = difference.diff(q)
        if slope.is_number and slope.is_nonzero:
            apart = at(value - rest[0].expr, {q: sympy.expand(q - difference / slope)})
            return bool(sympy.expand(apart) == 0)
    return False


def image(
    f: sympy.Expr,
    ranges: Box,
    signs: tuple[int, ...] | None,
    whole: Collection[sympy.Symbol] = (),
    tied: Sequence[Condition] = (),
) -> tuple[Floats, Floats]:
    """Return the least and the largest value of f on boxes, or numbers beyond them.

    ``whole`` are the statistics that are whole numbers; points outside the conditions of ``tied``
    do not count, unless the box has no others. At a corner where f has only a limit, as n²·log(n)
    has at 0, the end is that of the cells.
    """
    if signs is None:
        return _enclosed(f, ranges, whole, tied)
    low, high = (
        evaluate(
            f,
            {
                q: ends[(sign < 0) ^ side]
                for (q, ends), sign in zip(ranges.items(), signs, strict=True)
            },
        )
        for side in (False, True)
    )
    known = np.logical_and.reduce([~np.isnan(end) for ends in ranges.values() for end in ends])
    lost = known & (np.isnan(low) | np.isnan(high))
    if lost.any():
        there = {q: (a[lost], b[lost]) for q, (a, b) in ranges.items()}
        low, high = low.copy(), high.copy()
        for end, found in zip((low, high), _enclosed(f, there, whole, tied), strict=True):
            end[lost] = np.where(np.isnan(end[lost]), found, end[lost])
    return low, high


def _enclosed(
    f: sympy.Expr, ranges: Box, whole: Collection[sympy.Symbol], tied: Sequence[Condition]
) -> tuple[Floats, Floats]:
    """Return numbers around the values of f on boxes, cell by cell."""
    pieces = round(_CELLS ** (1 / len(ranges)))
    shape = np.shape(next(iter(ranges.values()))[0])
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    least, most = low.copy(), high.copy()
    cuts = {q: _cut(*ends, pieces, whole=q in whole) for q, ends in ranges.items()}
    for choice in product(range(pieces), repeat=len(ranges)):
        walk = Walk({q: cuts[q][i] for q, i in zip(ranges, choice, strict=True)})
        allowed = _told(walk, tied)
        below, above, _ = walk.range(f)
        low = np.where(allowed, np.minimum(low, below), low)
        high = np.where(allowed, np.maximum(high, above), high)
        least, most = np.minimum(least, below), np.maximum(most, above)
    outside = low > high
    return np.where(outside, least, low), np.where(outside, most, high)


def _cut(low: Floats, high: Floats, pieces: int, *, whole: bool) -> list[tuple[Floats, Floats]]:
    """Return cells that hold all of an interval, or all of its whole numbers.

    Examples
    --------
    >>> [(int(a), int(b)) for a, b in _cut(np.array(3.0), np.array(7.0), 3, whole=True)]
    [(3, 3), (4, 5), (6, 7)]
    """
    steps = np.linspace(0.0, 1.0, pieces + 1)
    if whole:
        starts = [low + np.floor((high - low + 1) * t) for t in steps[:-1]]
        ends = [np.maximum(a, b - 1) for a, b in pairwise(starts)]
    else:
        starts = [low + (high - low) * t for t in steps[:-1]]
        ends = starts[1:]
    return list(zip(starts, [*ends, high], strict=True))


def _told(walk: Walk, tied: Sequence[Condition]) -> Any:
    """Tell a walk over boxes what conditions say of sums, and return which boxes meet them all."""
    allowed = walk.all
    for condition in tied:
        total = sympy.Add(*(c * sympy.Symbol(name, real=True) for name, c in condition.terms))
        low, high, tame = walk.range(total)
        bound, _ = constant_bounds(condition.low) or (-np.inf, np.inf)
        allowed = allowed & (high >= bound)
        low, high = np.maximum(low, bound), np.maximum(high, bound)
        walk.memo[total] = Range(low, high, tame)
        walk.memo[-total] = Range(-high, -low, tame)
    return allowed
