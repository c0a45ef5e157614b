"""Branches of an operator that read f at integers: a sum over neighbours, or tables.

Under noise on the integers, or for a statistic known to be an integer, only the values f(q) at
integers q enter. With k the place that belongs to x (x itself, or ⌊x⌋) such a branch is

    g(x) = f(k) + Σᵢ φᵢ(x) Σⱼ wᵢⱼ (f(j) − f(k)),     φ₀ = 1.

It leaves constants alone, so that g² − T[f²] is free of f(k): large terms do not cancel. Far from
the bounds the weights depend on j − k only (:class:`Stencil`, a formula in x); near them the sums
are tables (:class:`Tables`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.formula.opaque import Opaque, Table, opaque
from trueup.formula.substitution import at, stepped
from trueup.inverse.refusals import no_number_at
from trueup.kernels.blocks import evaluate
from trueup.noise.operator import Branch, X

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Steps = Mapping[int, sympy.Expr]

ONE = sympy.Integer(1)
STEEPEST = 10.0
"""Power of e by which f² may grow over the weights: rounding grows as much."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class OnValues(Branch):
    """A branch that computes T[h], and T[h]·T[l] − T[h·l], from h and l themselves."""

    shapes: tuple[sympy.Expr, ...] = (ONE,)

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h] as an expression in the published n."""
        raise NotImplementedError

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h]·T[l] − T[h·l]."""
        raise NotImplementedError

    def place(self, n: sympy.Symbol) -> sympy.Expr:
        """Return the integer k that belongs to the published n."""
        return n if self.at is None else at(self.at, {X: n})


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Stencil(OnValues):
    """Weights that depend on the distance only: {j: (w₀ⱼ, w₁ⱼ, …)} for f(k + j), j ≠ 0."""

    weights: Mapping[int, tuple[float, ...]]

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return h(k) + Σᵢ φᵢ Σⱼ wᵢⱼ (h(k+j) − h(k))."""
        return self._placed(h + self._total(self._steps(h, n)), n)

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return (Σ wⱼ δⱼh)(Σ wⱼ δⱼl) − Σ wⱼ δⱼh δⱼl."""
        left, right = self._steps(h, n), self._steps(other, n)
        both = {j: left[j] * right[j] for j in left}
        totals = [self._total(steps) for steps in (left, right, both)]
        return self._placed(totals[0] * totals[1] - totals[2], n)

    def _steps(self, h: sympy.Expr, n: sympy.Symbol) -> Steps:
        return {j: stepped(h, {n: n + j}) - h for j in self.weights}

    def _total(self, steps: Steps) -> sympy.Expr:
        """Return Σᵢ φᵢ Σⱼ wᵢⱼ δⱼ, a polynomial multiplied out."""
        parts = []
        for i, shape in enumerate(self.shapes):
            part = sympy.Add(*(sympy.Float(w[i]) * steps[j] for j, w in self.weights.items()))
            short = part.is_polynomial() and len(part.free_symbols) < 2
            parts.append(shape * (sympy.expand(part) if short else part))
        return sympy.Add(*parts)

    def _placed(self, expr: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Put k for n in values of f, and n for X in the shapes."""
        return expr if self.at is None else at(expr, {n: self.place(n), X: n})


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Tables(OnValues):
    """Tables that are made from the values of f at ``truths``, one for each shape.

    They begin at k = ``first``; before and behind it the estimator is constant.
    """

    first: int
    truths: Floats

    def tables(self, values: Floats, h: sympy.Expr) -> list[Floats]:
        """Return the sums over values for every shape; ``h`` is to be named in errors."""
        raise NotImplementedError

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return Σᵢ φᵢ·(table i)."""
        return self._shown(
            dict(zip(self.shapes, self.tables(self._values(h, n), h), strict=True)), n
        )

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[u]·T[v] − T[u·v], with u and v measured from their least values."""
        u, v = (_less_least(self._values(e, n)) for e in (h, other))
        with np.errstate(over="ignore"):
            both = u * v
        found = {s: -t for s, t in zip(self.shapes, self.tables(both, h), strict=True)}
        right = dict(zip(self.shapes, self.tables(v, other), strict=True))
        for p, a in zip(self.shapes, self.tables(u, h), strict=True):
            for q, b in right.items():
                found[p * q] = found.get(p * q, 0.0) + a * b
        return self._shown(found, n)

    def _values(self, h: sympy.Expr, n: sympy.Symbol) -> Floats:
        """Return h at the integers, all of them finite numbers, or refuse."""
        values = evaluate(h, {n: self.truths})
        if np.isfinite(values).all():
            return values
        undefined = np.isnan(values) | (np.isinf(values) & h.has(Opaque))
        wrong = undefined if undefined.any() else np.isinf(values)
        place = {n: self.truths[np.argmax(wrong)]}
        raise no_number_at(h, place, too_large=not undefined.any())

    def _shown(self, tables: Mapping[sympy.Expr, Floats], n: sympy.Symbol) -> sympy.Expr:
        """Return the tables, times their shapes, as functions of the published n."""
        k = self.place(n)
        terms = (s.xreplace({X: n}) * table(*self._trimmed(t), k) for s, t in tables.items())
        return sympy.Add(*terms)

    def _trimmed(self, values: Floats) -> tuple[int, Floats]:
        """Return where a table begins, and the table."""
        return self.first, values


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Rows(Tables):
    """Weights of their own for every k from ``first`` on: one matrix for each shape."""

    weights: tuple[Floats, ...]

    def tables(self, values: Floats, h: sympy.Expr) -> list[Floats]:
        """Return the weighted sums of values, those of the first shape with sum 1."""
        start = values[np.argmin(np.abs(values))]
        found = [w @ (values - start) for w in self.weights]
        return [found[0] + start, *found[1:]]


def _less_least(values: Floats) -> Floats:
    return np.asarray(values - values[np.argmin(np.abs(values))])


def table(first: int, values: Floats, place: sympy.Expr) -> sympy.Expr:
    """Return the table as a function of an integer, constant beyond its ends.

    Examples
    --------
    >>> n = sympy.Symbol("n", real=True)
    >>> table(3, np.array([1.0, 2.0]), n), table(3, np.array([1.0, 1.0]), n)
    (table(Max(3, Min(4, n))), 1.00000000000000)
    """
    if (values == values[0]).all():
        return sympy.Float(float(values[0])) if values[0] else sympy.Integer(0)
    last = first + len(values) - 1
    inside = sympy.Max(sympy.Min(place, last), first)
    return opaque("table", Table(first, tuple(map(float, values))))(inside)
