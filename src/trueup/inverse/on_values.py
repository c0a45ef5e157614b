"""Branches of an operator that read f at integers: a sum over neighbours, or a table of weights.

Under noise on the integers, or for a statistic known to be an integer, only the values f(q) at
integers q enter. With k the place that belongs to x (x itself, or ⌊x⌋) such a branch is

    g(x) = f(k) + Σᵢ φᵢ(x) Σⱼ wᵢⱼ (f(j) − f(k)),     φ₀ = 1,

which leaves constants alone, and the variance g² − T[f²] of it is free of f(k) and f(k)²: large
terms do not cancel. Far from the bounds the weights depend on j − k only (:class:`Stencil`, a
formula in x); near them every k has its own (:class:`Rows`, tables).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque, Table, opaque
from trueup.formula.substitution import at, stepped
from trueup.formula.text import text
from trueup.inverse.refusals import too_large_at, undefined_at
from trueup.kernels.blocks import evaluate
from trueup.noise.operator import Branch, X

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ONE = sympy.Integer(1)
_J = sympy.Dummy("j", integer=True)


@dataclasses.dataclass(frozen=True)
class OnValues(Branch):
    """A branch that computes T[h], and T[h]·T[l] − T[h·l], from h and l themselves."""

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h] as an expression in the published n."""
        raise NotImplementedError

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h]·T[l] − T[h·l]."""
        raise NotImplementedError

    def place(self, n: sympy.Symbol) -> sympy.Expr:
        """Return the integer k that belongs to the published n."""
        return n if self.at is None else at(self.at, {X: n})


@dataclasses.dataclass(frozen=True, eq=False)
class Stencil(OnValues):
    """Weights that depend on the distance only: {j: (w₀ⱼ, w₁ⱼ, …)} for f(k + j), j ≠ 0."""

    shapes: tuple[sympy.Expr, ...] = (ONE,)
    weights: Mapping[int, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    squares: bool = True
    """Whether the sum over neighbours converges for products too."""

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return h(k) + Σᵢ φᵢ Σⱼ wᵢⱼ (h(k+j) − h(k))."""
        return self._placed(h + self._total(self._steps(h, n), n), n)

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return (Σ wⱼ δⱼh)(Σ wⱼ δⱼl) − Σ wⱼ δⱼh δⱼl."""
        if not self.squares:
            raise TrueupError(
                f"no unbiased estimate of the variance is known: the square of {text(h)} grows too "
                "fast for the noise",
                "use sd(q) at plausible true values, which is exact, or bound the domain",
            )
        left = self._steps(h, n)
        right = left if other == h else self._steps(other, n)
        both = {j: left[j] * right[j] for j in left}
        totals = [self._total(steps, n) for steps in (left, right, both)]
        return self._placed(totals[0] * totals[1] - totals[2], n)

    def _steps(self, h: sympy.Expr, n: sympy.Symbol) -> dict[int, sympy.Expr]:
        """Return h(n + j) − h(n), over one denominator where it is a quotient."""
        if h.is_rational_function(n) and not h.is_polynomial(n):
            step = sympy.factor(stepped(h, {n: n + _J}) - h)
            return {j: at(step, {_J: sympy.Integer(j)}) for j in self.weights}
        return {j: stepped(h, {n: n + j}) - h for j in self.weights}

    def _total(self, steps: Mapping[int, sympy.Expr], n: sympy.Symbol) -> sympy.Expr:
        parts = []
        for i, shape in enumerate(self.shapes):
            terms = [(w[i], steps[j]) for j, w in self.weights.items() if w[i]]
            if all(step.is_polynomial(n) and step.free_symbols <= {n} for _, step in terms):
                parts.append(shape * _combined(terms, n))
            else:
                parts.append(shape * sympy.Add(*(sympy.Float(w) * step for w, step in terms)))
        return sympy.Add(*parts)

    def _placed(self, expr: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Put k for n in values of f, and n for X in the shapes."""
        return expr if self.at is None else at(expr, {n: self.place(n), X: n})


def _combined(terms: Iterable[tuple[float, sympy.Expr]], n: sympy.Symbol) -> sympy.Expr:
    """Return Σ w·p(n) for polynomials p, coefficient by coefficient: what cancels is gone."""
    found: dict[int, list[float]] = {}
    for weight, step in terms:
        for (power,), coefficient in sympy.Poly(step, n).terms():
            found.setdefault(power, []).append(weight * float(coefficient))
    totals = {power: math.fsum(values) for power, values in found.items()}
    return sympy.Add(*(sympy.Float(total) * n**power for power, total in totals.items() if total))


@dataclasses.dataclass(frozen=True, eq=False)
class Rows(OnValues):
    """Weights of their own for every k from ``first`` on, for the values from ``start`` on.

    Beyond the first and the last k the estimator is constant.
    """

    first: int = 0
    start: int = 0
    weights: tuple[Any, ...] = ()
    shapes: tuple[sympy.Expr, ...] = (ONE,)

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return Σᵢ φᵢ·(table i)."""
        centre, steps = self._steps(h, n)
        tables = [(w * steps).sum(axis=1) for w in self.weights]
        tables[0] = tables[0] + centre
        return self._combined(zip(self.shapes, tables, strict=True), n)

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return (Σᵢ φᵢGᵢ)(Σᵢ φᵢHᵢ) − Σᵢ φᵢ·(table i of the products)."""
        left, right = self._steps(h, n)[1], self._steps(other, n)[1]
        totals = [((w * left).sum(axis=1), (w * right).sum(axis=1)) for w in self.weights]
        shaped = zip(self.shapes, self.weights, strict=True)
        tables = {shape: -(w * left * right).sum(axis=1) for shape, w in shaped}
        for p, (a, _) in zip(self.shapes, totals, strict=True):
            for q, (_, b) in zip(self.shapes, totals, strict=True):
                tables[p * q] = tables.get(p * q, 0.0) + a * b
        return self._combined(tables.items(), n)

    def _steps(self, h: sympy.Expr, n: sympy.Symbol) -> tuple[Floats, Floats]:
        """Return h(k) for every row, and h(j) − h(k) where the row reads h(j)."""
        rows, columns = self.weights[0].shape
        values = values_at(h, n, np.arange(self.start, self.start + columns, dtype=float))
        near = np.clip(np.arange(self.first, self.first + rows) - self.start, 0, columns - 1)
        used = np.any([w != 0 for w in self.weights], axis=0)
        return values[near], np.where(used, values - values[near][:, None], 0.0)

    def _combined(self, tables: Iterable[tuple[sympy.Expr, Floats]], n: sympy.Symbol) -> Any:
        terms = [
            shape.xreplace({X: n}) * table(self.first, t, self.place(n)) for shape, t in tables
        ]
        return sympy.Add(*terms)


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


def values_at(h: sympy.Expr, n: sympy.Symbol, q: Floats) -> Floats:
    """Return h at integers, all of them finite numbers, or refuse."""
    values = evaluate(h, {n: q})
    if np.isfinite(values).all():
        return values
    undefined = np.isnan(values) | (np.isinf(values) & h.has(Opaque))
    wrong, error = (
        (undefined, undefined_at) if undefined.any() else (~np.isfinite(values), too_large_at)
    )
    raise error(h, {n: q[np.argmax(wrong)]})
