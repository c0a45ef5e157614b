"""The sign of a formula on many boxes at once, also where its value over- or underflows.

exp(q) − q² is positive for large q although both terms exceed every double: compare the terms by
the logarithms of their sizes.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import sympy

from trueup.enclosure import intervals
from trueup.enclosure.intervals import Floats, Range
from trueup.enclosure.ranges import Box, Walk

Signs = npt.NDArray[np.int8]


def sign(expr: sympy.Expr, box: Box) -> Signs:
    """Return +1 where the expression is proven positive, -1 where negative, 0 where undecided.

    The box is as for :func:`trueup.enclosure.enclose`.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> sign(sympy.exp(q) - q**2, {q: (np.array([1e200, -1.0]), np.array([2e200, 1.0]))})
    array([1, 0], dtype=int8)
    """
    return sign_on(Walk(box), expr)


@np.errstate(over="ignore")
def sign_on(walk: Walk, expr: sympy.Expr) -> Signs:
    """Return the proven signs on the boxes of a walk.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> sign_on(Walk({q: (np.array([1.0]), np.array([2.0]))}), -q)
    array([-1], dtype=int8)
    """
    signs = _plain(walk.range(expr))
    if signs.all():
        return signs
    return np.where(signs == 0, _size(walk, expr).sign, signs)


def _plain(found: Range) -> Signs:
    """Return the signs that a range shows."""
    return (found.low > 0).astype(np.int8) - (found.high < 0).astype(np.int8)


class _Size(NamedTuple):
    """A proven sign, and bounds on log|value| (as a range, never tame)."""

    sign: Signs
    log: Range


def _size(walk: Walk, expr: sympy.Expr) -> _Size:
    """Return sign and logarithmic size without ever forming the value."""
    if isinstance(expr, sympy.Mul):
        return reduce(_times, (_size(walk, factor) for factor in expr.args))
    if isinstance(expr, sympy.exp):
        return _Size(np.ones(walk.all.shape, np.int8), walk.range(expr.args[0]))
    if isinstance(expr, (sympy.sinh, sympy.cosh)):
        return _hyperbolic(walk, expr)
    if isinstance(expr, sympy.Pow) and expr.exp.is_Rational:
        return _power(walk, _size(walk, expr.base), expr.exp)
    if isinstance(expr, sympy.Pow) and not expr.exp.is_number:
        base = _size(walk, expr.base)
        log = intervals.multiply(walk.range(expr.exp), base.log)
        return _Size((base.sign > 0).astype(np.int8), log)
    if isinstance(expr, sympy.Abs):
        inner = _size(walk, expr.args[0])
        return _Size(np.abs(inner.sign), inner.log)
    if isinstance(expr, sympy.Add) and expr.free_symbols:
        return _dominated(walk, expr)
    if isinstance(expr, sympy.Piecewise):
        return _cases(walk, expr)
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return _extremum(walk, expr)
    return _measured(walk.range(expr))


def _measured(found: Range) -> _Size:
    """Return sign and logarithmic size as a range shows them."""
    return _Size(_plain(found), intervals.logarithm(intervals.magnitude(found)))


def _hyperbolic(walk: Walk, expr: sympy.Expr) -> _Size:
    """Return the size of sinh or cosh: for |x| ≥ 1 e^{|x| − 1} ≤ |sinh x| ≤ cosh x ≤ e^{|x|}."""
    signs, log = _measured(walk.range(expr))
    x = intervals.magnitude(walk.range(expr.args[0]))
    low = np.where(x.low >= 1, np.nextafter(x.low - 1, -np.inf), log.low)
    return _Size(signs, _loose(low, np.where(x.low >= 1, x.high, log.high)))


def _times(a: _Size, b: _Size) -> _Size:
    return _Size(a.sign * b.sign, intervals.add(a.log, b.log))


def _power(walk: Walk, base: _Size, exponent: sympy.Rational) -> _Size:
    """Return the size of a constant power."""
    if not exponent.is_Integer:
        signs = (base.sign > 0).astype(np.int8)
    else:
        signs = base.sign if int(exponent) % 2 else np.abs(base.sign)
    return _Size(signs, intervals.multiply(walk.range(exponent), base.log))


def _dominated(walk: Walk, expr: sympy.Add) -> _Size:
    """Return the size of a sum: the sign of a term that outweighs all others together."""
    known = _measured(walk.range(expr))
    terms = [_size(walk, term) for term in expr.args]
    highs = np.array([term.log.high for term in terms])
    lows = np.array([term.log.low for term in terms])
    first = np.argmax(lows, axis=0)[np.newaxis]
    rest = highs.copy()
    np.put_along_axis(rest, first, -np.inf, axis=0)
    lead = np.take_along_axis(lows, first, axis=0)[0]
    others = _sum_log(rest)
    signs = np.take_along_axis(np.array([term.sign for term in terms]), first, axis=0)[0]
    signs = np.where(lead > others, signs, 0)
    high = np.minimum(known.log.high, _sum_log(highs))
    low = np.minimum(known.log.low, high)
    return _Size(np.where(known.sign == 0, signs, known.sign).astype(np.int8), _loose(low, high))


def _cases(walk: Walk, expr: sympy.Piecewise) -> _Size:
    """Return the sign that all possible cases share, and the hull of their sizes."""
    low, high = np.full(walk.all.shape, np.inf), np.full(walk.all.shape, -np.inf)
    least, greatest = np.ones(walk.all.shape, np.int8), -np.ones(walk.all.shape, np.int8)
    for value, here, _ in walk.cases(expr):
        case = _size(walk, value)
        least = np.where(here, np.minimum(least, case.sign), least)
        greatest = np.where(here, np.maximum(greatest, case.sign), greatest)
        low = np.where(here, np.minimum(low, case.log.low), low)
        high = np.where(here, np.maximum(high, case.log.high), high)
    signs = np.where((least == greatest) & (low <= high), least, 0)
    return _Size(signs.astype(np.int8), _loose(np.minimum(low, high), np.maximum(low, high)))


def _extremum(walk: Walk, expr: sympy.Expr) -> _Size:
    """Return the sign of a min or max from those of its arguments, and its size."""
    signs = np.array([_size(walk, arg).sign for arg in expr.args])
    if isinstance(expr, sympy.Max):
        found = np.where(signs.max(axis=0) > 0, 1, signs.max(axis=0) * (signs != 0).all(axis=0))
    else:
        found = np.where(signs.min(axis=0) < 0, -1, signs.min(axis=0) * (signs != 0).all(axis=0))
    return _Size(found.astype(np.int8), _measured(walk.range(expr)).log)


def _sum_log(logs: Floats) -> Floats:
    """Return an upper bound on the logarithm of a sum, given those of its terms."""
    bound: Floats = logs.max(axis=0) + np.log(len(logs))
    bound = bound + 1e-15 * np.abs(bound)
    return np.nextafter(bound, np.inf)


def _loose(low: Floats, high: Floats) -> Range:
    return intervals.ranged(low, high, np.zeros(low.shape, bool))
