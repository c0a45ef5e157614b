"""Cells on which a formula is defined nowhere."""

from __future__ import annotations

import sympy

from trueup.enclosure.intervals import Mask
from trueup.enclosure.ranges import Walk


def nowhere(walk: Walk, expr: sympy.Basic) -> Mask:
    """Return on which cells of a walk an expression is proven to have no real value.

    Parameters
    ----------
    walk
        The ranges on the cells.
    expr
        The expression.

    Examples
    --------
    >>> import numpy as np
    >>> q = sympy.Symbol("q", real=True)
    >>> nowhere(Walk({q: (np.array([-2.0, -1.0]), np.array([-1.0, 1.0]))}), sympy.log(q) + 1)
    array([ True, False])
    """
    if isinstance(expr, sympy.Piecewise):
        return _cases(walk, expr)
    result = _itself(walk, expr)
    for part in expr.args:
        result = result | nowhere(walk, part)
    return result


def _itself(walk: Walk, expr: sympy.Basic) -> Mask:
    """Return where the outermost function has no value whatever the rest does."""
    if isinstance(expr, sympy.log):
        return walk.range(expr.args[0]).high <= 0
    if isinstance(expr, sympy.Pow) and expr.exp.is_number and not expr.exp.is_Integer:
        base = walk.range(expr.base)
        return base.high < 0 if expr.exp.is_positive else base.high <= 0
    if isinstance(expr, (sympy.asin, sympy.acos, sympy.atanh)):
        inner = walk.range(expr.args[0])
        return (inner.low > 1) | (inner.high < -1)
    if isinstance(expr, sympy.acosh):
        return walk.range(expr.args[0]).high < 1
    return ~walk.all


def _cases(walk: Walk, expr: sympy.Piecewise) -> Mask:
    """Return where every case that can occur has no value."""
    result, left = walk.all, walk.all
    for value, test in expr.args:
        possible, certain = walk.truth(test)
        result = result & (nowhere(walk, value) | ~(left & possible))
        left = left & ~certain
    return result
