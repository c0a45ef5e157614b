"""The range of x**a·log(x), whose factors run to 0 and to −∞ at the same time."""

from __future__ import annotations

import numpy as np
import sympy

from trueup.enclosure import intervals
from trueup.enclosure.intervals import Range, loosened, monotone

_LOG = monotone(np.log, (0.0, np.inf), (-np.inf, np.inf))


def power_log(x: Range, exponent: float) -> Range:
    """Return x**a·log(x) for a > 0: it falls from 0 to −1/(a·e) at e**(−1/a), then rises.

    Examples
    --------
    >>> x = Range(np.array([0.0]), np.array([1.0]), np.array([True]))
    >>> power_log(x, 1.0)[0].round(6)
    array([-0.367879])
    """
    power = np.full(x.low.shape, exponent)
    ends = [_at(end, Range(power, power, x.tame)) for end in x[:2]]
    low = np.minimum(ends[0].low, ends[1].low)
    high = np.maximum(ends[0].high, ends[1].high)
    place, least = np.exp(-1 / power), -np.exp(-1.0) / power
    turns = (x.low <= place * (1 + 1e-9)) & (x.high >= place * (1 - 1e-9))
    low = np.where(turns, np.minimum(low, loosened(least, least, x.tame).low), low)
    nowhere = x.high <= 0
    low, high = np.where(nowhere, -np.inf, low), np.where(nowhere, np.inf, high)
    return Range(low, high, x.tame & (x.low > 0))


def _at(end: intervals.Floats, exponent: Range) -> Range:
    """Return the value at an end of the cells; at 0 it is the limit 0."""
    point = Range(end, end, exponent.tame)
    low, high, tame = intervals.multiply(intervals.power(point, exponent), _LOG(point))
    return Range(np.where(end <= 0, 0.0, low), np.where(end <= 0, 0.0, high), tame)


def entropic(expr: sympy.Mul) -> tuple[sympy.Expr, float, sympy.Expr] | None:
    """Return x, a and the rest of a product that holds x**a·log(x), None for others.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> entropic(3 * q**2 * sympy.log(q))
    (q, 2.0, 3)
    """
    for factor in expr.args:
        if isinstance(factor, sympy.log):
            inner = factor.args[0]
            for other in expr.args:
                base, exponent = other.as_base_exp()
                if base == inner and exponent.is_Rational and _is_dyadic(exponent):
                    rest = sympy.Mul(*(a for a in expr.args if a not in (factor, other)))
                    return inner, float(exponent), rest
    return None


def _is_dyadic(exponent: sympy.Rational) -> bool:
    """Tell positive exponents that a double holds exactly."""
    return bool(exponent > 0) and exponent.q in (1, 2, 4, 8)
