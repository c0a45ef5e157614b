"""Proofs that a formula φ is increasing and concave on a half-line, and that an inverse undoes it.

A policy is φ(r + a) − φ(a) only if no record moves φ by more than the first one does, that is if φ
is concave from a on, everywhere: samples of it prove nothing. Here φ is proven smooth above a and
continuous at a, φ′ ≥ 0 and φ″ ≤ 0, all by interval arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.formula.substitution import at, decimal, real
from trueup.inverse.ranges import Walk
from trueup.inverse.signs import sign

if TYPE_CHECKING:
    from trueup.exact import Exact

_SMOOTH = (sympy.exp, sympy.log, sympy.atan, sympy.asinh, sympy.sinh, sympy.cosh, sympy.tanh)
"""Functions that are smooth wherever they are defined."""
_SIMPLE = 60  # operations up to which sympy brings a formula together in well under a second,
_POWER = 20  # and whole powers up to which it multiplies out
LARGEST = 1e300
"""The largest total that is ever transformed: up to here the proofs reach."""
_CELLS = np.concatenate([[0.0], np.geomspace(1e-6, LARGEST, 400)])


def shape_doubt(phi: sympy.Expr, start: Exact) -> str | None:
    """Return what is not proven of φ on [start, ∞), None if it increases and is concave.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> shape_doubt(sympy.log(1 + q), 0)
    >>> shape_doubt(sympy.sqrt(q) + q**2 / 10**30, 0)
    'it is not proven to be concave'
    """
    exact = decimal(phi)
    (q,) = exact.free_symbols
    box = {q: Interval(_double_below(start), None)}
    if not _is_smooth(exact, q, start, box):
        return "it is not proven to be smooth"
    slope = sympy.diff(exact, q)
    if not _is_never_negative(slope, box):
        return "it is not proven to increase"
    if not _is_never_negative(-sympy.diff(slope, q), box):
        return "it is not proven to be concave"
    return None


def inverse_doubt(phi: sympy.Expr, inverse: sympy.Expr) -> str | None:
    """Return None if sympy finds that the inverse undoes φ above 0, what is in doubt otherwise.

    Examples
    --------
    >>> q, v = sympy.symbols("q v", real=True)
    >>> inverse_doubt(sympy.log(1 + q), sympy.exp(v) - 1)
    >>> inverse_doubt(sympy.log(1 + q), sympy.exp(v) - 2)
    'its inverse is not proven to undo it'
    """
    above = sympy.Symbol("t", positive=True)
    (q,), (v,) = phi.free_symbols, inverse.free_symbols
    back = at(decimal(inverse), {v: at(decimal(phi), {q: above})}) - above
    undone = _is_simple(back) and (sympy.expand(back) == 0 or sympy.cancel(back) == 0)
    return None if undone else "its inverse is not proven to undo it"


def _is_simple(expr: sympy.Expr) -> bool:
    """Whether sympy rearranges a formula in well under a second."""
    powers = (abs(p.exp) for p in expr.atoms(sympy.Pow) if p.exp.is_Integer)
    return expr.count_ops() <= _SIMPLE and all(p <= _POWER for p in powers)


def _double_below(value: Exact) -> float:
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def _is_smooth(
    phi: sympy.Expr, q: sympy.Symbol, start: Exact, box: dict[sympy.Symbol, Interval]
) -> bool:
    """Prove φ continuous on [start, ∞) and infinitely often differentiable above start."""
    if any(not isinstance(f, _SMOOTH) for f in phi.atoms(sympy.Function)):
        return False
    if phi.has(sympy.Piecewise, sympy.Min, sympy.Max):
        return False
    roots = [p for p in phi.atoms(sympy.Pow) if not p.exp.is_Integer]
    if not all(_is_positive_above(p.base, q, start, box) for p in roots):
        return False
    ends = box[q].low + _CELLS
    return bool(Walk({q: (ends[:-1], ends[1:])}).range(phi).sure.all())


def _is_positive_above(
    base: sympy.Expr, q: sympy.Symbol, start: Exact, box: dict[sympy.Symbol, Interval]
) -> bool:
    """Prove what a root is taken of positive above start: at start itself it may vanish."""
    if sign(base, box) > 0:
        return True
    first = real(at(base, {q: sympy.Rational(Fraction(start))}))
    return first == 0 and sign(sympy.diff(base, q), box, defined=False) > 0


def _is_never_negative(expr: sympy.Expr, box: dict[sympy.Symbol, Interval]) -> bool:
    """Prove a formula never negative on the box, as it stands or brought together."""
    if sign(expr, box, strict=False, defined=False) > 0:
        return True
    if not _is_simple(expr):
        return False
    whole = sympy.factor(sympy.together(expr))
    return sign(whole, box, strict=False, defined=False) > 0
