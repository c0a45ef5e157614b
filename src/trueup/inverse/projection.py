"""Intervals for any function of several statistics: a box around the noise, mapped through f.

Each published number is undone by itself, at a level that gives all of them together the level
wanted; the box of true values is cut by the domain, and its image under f covers f(q) at least as
often. Where f rises or falls along every axis the image lies between two corners; elsewhere it is
enclosed by interval arithmetic on a few cells of the box.
"""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.enclosure import enclose
from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import rational
from trueup.formula.unkinked import without_kinks
from trueup.inverse.approach import approach
from trueup.inverse.definite import definite
from trueup.inverse.jets import derivative
from trueup.inverse.regularity import singularities
from trueup.kernels.evaluate import evaluate
from trueup.noise.half_planes import reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

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


def image(f: sympy.Expr, ranges: Box, signs: tuple[int, ...] | None) -> tuple[Floats, Floats]:
    """Return the least and the largest value of f on boxes, or numbers beyond them."""
    if signs is not None:
        corners = [
            {
                q: ends[(sign < 0) ^ side]
                for (q, ends), sign in zip(ranges.items(), signs, strict=True)
            }
            for side in (False, True)
        ]
        return evaluate(f, corners[0]), evaluate(f, corners[1])
    pieces = round(_CELLS ** (1 / len(ranges)))
    shape = np.shape(next(iter(ranges.values()))[0])
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    steps = np.linspace(0.0, 1.0, pieces + 1)
    cuts = {q: [lo + (hi - lo) * t for t in steps] for q, (lo, hi) in ranges.items()}
    cuts = {q: [*c[:-1], ranges[q][1]] for q, c in cuts.items()}
    for choice in product(range(pieces), repeat=len(ranges)):
        cell = {q: (cuts[q][i], cuts[q][i + 1]) for q, i in zip(ranges, choice, strict=True)}
        least, most = enclose(f, cell)
        low, high = np.minimum(low, least), np.maximum(high, most)
    return low, high
