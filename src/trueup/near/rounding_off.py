"""Kinks under noise that can be undone: each is rounded off by a parabola, the rest is unbiased.

Where the slope of f jumps by J at a, f + J·(h − |q − a|)²/(4h) for |q − a| < h has a continuous
slope, so that Laplace noise and its like have an unbiased estimator of it; as one of f that is off
by |J|·h/4 at most. Any bias can be reached in this way, if at a price.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy

from trueup.domain import Interval
from trueup.inverse.inside import inside
from trueup.inverse.jets import derivative

if TYPE_CHECKING:
    from trueup.near.question import Question

_ROOM = sympy.Rational(999_999_999, 10**9)  # below what is allowed, whatever is rounded later


def _between(question: Question, low: float, high: float) -> Question:
    """Return the question with f as it is between two points."""
    here = Interval(*(b if math.isfinite(b) else None for b in (low, high)))
    f = inside(question.f, {question.symbol: here}, {question.symbol})
    return dataclasses.replace(question, f=f)


def rounded_off(question: Question) -> tuple[sympy.Expr, float, float] | None:
    """Return f with its kinks rounded off, how far that is from f at most, and where.

    None unless kinks are all that is in the way, and the bias is not relative.

    Examples
    --------
    >>> from trueup.near.prior import read_prior
    >>> from trueup.near.question import Question
    >>> from trueup.noise.laplace import Laplace
    >>> q = sympy.Symbol("q", real=True)
    >>> given = (abs(q), q, Laplace(1), Interval(-5, 5), 0.5, False)
    >>> f, off, where = rounded_off(Question(*given, read_prior(None, Interval(-5, 5), False)))
    >>> f.subs(q, 0).evalf(3), round(off, 6), where
    (0.500, 0.5, 0.0)
    """
    if question.relative or question.whole:
        return None
    inner = [k for k in question.kinks if question.low < k < question.high]
    if not inner:
        return None
    ends = [question.low, *inner, question.high]
    parts = [_between(question, *edges) for edges in pairwise(ends)]
    if not all(p.smooth for p in parts):
        return None
    q, kinks = question.symbol, [sympy.Rational(*k.as_integer_ratio()) for k in inner]
    cases: list[tuple[sympy.Expr, sympy.Basic]] = []
    worst = (0.0, inner[0])
    for i, (a, (left, right)) in enumerate(zip(kinks, pairwise(parts), strict=True)):
        jump = derivative(right.f - left.f, q, 1).xreplace({q: a})
        if (right.f - left.f).xreplace({q: a}) != 0 or not jump.is_Rational or jump == 0:
            return None
        gap = min(ends[i + 1] - ends[i], ends[i + 2] - ends[i + 1]) / 2
        allowed = sympy.Rational(*question.max_bias.as_integer_ratio())
        h = min(4 * allowed / abs(jump) * _ROOM, sympy.Rational(*gap.as_integer_ratio()))
        worst = max(worst, (float(abs(jump) * h / 4), float(a)))
        cases += [
            (left.f, q < a - h),
            (left.f + jump * (h - a + q) ** 2 / (4 * h), q < a),
            (right.f + jump * (h + a - q) ** 2 / (4 * h), q < a + h),
        ]
    return sympy.Piecewise(*cases, (parts[-1].f, True)), *worst
