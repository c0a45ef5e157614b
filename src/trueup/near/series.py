"""The asymptotic series (1/M)(D) f, cut off: where it is accurate, and what it leaves out.

With 1/M(t) = Σ wⱼ tʲ the cut-off series is S = Σ_{j≤m} wⱼ f⁽ʲ⁾. By Taylor's theorem every term of
E S(q + Z) up to the order m cancels but f(q), and what is left is bounded by f⁽ᵐ⁺¹⁾ and moments of
the noise. Where x falls outside the stretch on which g = S, with probability P, the missing parts
of the moments are at most √(E Z²ⁱ · P).
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from math import comb, factorial
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import Walk
from trueup.inverse.smooth import breaks
from trueup.inverse.spectral import reciprocal
from trueup.kernels.blocks import evaluate
from trueup.near.question import KINKED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.near.question import Question
    from trueup.near.smoothing import Smoothing

    Floats = NDArray[np.float64]

ORDERS = (2, 4, 6, 8, 10)
FAR = 1e15
"""An unbounded domain is certified as far as so many units of noise."""

_LONG = 2_000
_ROUNDING = 1e-15


class Terms:
    """The derivatives of f and the weights of the series, as far as both are known."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.derivatives = [question.f]
        top = ORDERS[-1] + 2
        known = question.noise.highest_moment
        try:
            order = top if known is None else min(top, known)
            weights = reciprocal(question.noise, sympy.S.Zero, order)
        except TrueupError:
            weights = (sympy.S.One,)
        self.weights = weights
        self.sizes = [abs(float(w)) for w in weights]

    def derivative(self, order: int) -> sympy.Expr | None:
        """Return f⁽ᵒʳᵈᵉʳ⁾, None if it becomes unwieldy."""
        while len(self.derivatives) <= order:
            last = self.derivatives[-1]
            if is_long(last, _LONG):
                return None
            self.derivatives.append(_tidy(derivative(last, self.question.symbol, 1)))
        return self.derivatives[order]

    def size(self, order: int, x: Floats) -> Floats:
        """Return the size of the first term after a given order that does not vanish."""
        if not any(self.sizes[order + 1 : order + 3]):
            return np.zeros(x.shape)
        for j in range(order + 1, order + 3):
            part = self.derivative(j)
            if part is None:
                break
            if self.sizes[j]:
                values = evaluate(part, {self.question.symbol: x})
                return np.nan_to_num(np.abs(self.sizes[j] * values), nan=np.inf)
        return np.full(x.shape, np.inf)


def orders(terms: Terms) -> list[int]:
    """Return the orders at which the series can be cut off and its remainder bounded."""
    known = terms.question.noise.highest_moment
    return [
        m
        for m in ORDERS
        if m + 2 < len(terms.weights)
        and (known is None or 2 * (m + 1) <= known)
        and terms.derivative(m + 1) is not None
    ]


@dataclasses.dataclass(frozen=True)
class Series:
    """S = Σ_{j≤m} wⱼ f⁽ʲ⁾ and a bound on its bias."""

    terms: Terms
    order: int

    @cached_property
    def expr(self) -> sympy.Expr:
        """S as a formula."""
        parts = zip(self.terms.weights[: self.order + 1], self.terms.derivatives, strict=False)
        return sympy.Add(*(_plain(w) * d for w, d in parts if w != 0))

    @cached_property
    def jet(self) -> tuple[sympy.Expr, ...]:
        """S and its first three derivatives."""
        return jet(self.expr, self.terms.question.symbol)

    @cached_property
    def variance(self) -> Exact:
        """V = Σ_{a,b ≥ 1} (w_a w_b − C(a+b, a) w_{a+b}) f⁽ᵃ⁾ f⁽ᵇ⁾, a + b ≤ m: S[f]² − S[f²]."""
        m, w = self.order, [_plain(v) for v in self.terms.weights]
        d = self.terms.derivatives
        parts = [
            (w[a] * w[b] - comb(a + b, a) * w[a + b]) * d[a] * d[b]
            for a in range(1, m)
            for b in range(1, m - a + 1)
        ]
        return Exact(self.terms.question.symbol, sympy.Add(*parts))

    def bound(self, low: Floats, high: Floats, n: int) -> Floats:
        """Return bounds on |f⁽ⁿ⁾| over cells."""
        return bound_on(self.terms.derivatives[n], self.terms.question.symbol, low, high)

    def remainder(
        self,
        cells: tuple[Floats, Floats],
        stretch: tuple[float, float],
        outside: float,
        by: Smoothing,
    ) -> Floats:
        """Return bounds on |E g(q + Z) − f(q)| over cells of q inside the stretch where g = S.

        ``outside`` bounds |g| elsewhere.
        """
        m, (low, high) = self.order, cells
        window = max(-by.low, by.high)
        left = np.minimum((low - stretch[0]) / 2, np.maximum(window, np.abs(low) / 2))
        right = np.minimum((stretch[1] - high) / 2, np.maximum(window, np.abs(high) / 2))
        far = by.below(-left) + by.above(right)
        gone = by.below(stretch[0] - low) + by.above(stretch[1] - high)
        near_top, top = self._tops(low - left, high + right, stretch, by.unit)
        total = outside * gone
        for j, w in enumerate(self.terms.sizes[: m + 1]):
            k = m + 1 - j
            missing = np.sqrt(by.moment(2 * k)) * np.sqrt(far)
            total = total + w * (near_top * by.moment(k) + top * missing) / factorial(k)
        for n in range(m + 1):
            weight = sum(
                self.terms.sizes[n - i] * math.sqrt(by.moment(2 * i)) / factorial(i)
                for i in range(n + 1)
            )
            rounding = 0.0 if self.terms.weights[n].is_Rational else _ROUNDING * self.terms.sizes[n]
            total = total + _times(self.bound(low, high, n), weight * np.sqrt(gone) + rounding)
        return np.asarray(total, float)

    def _tops(
        self, low: Floats, high: Floats, stretch: tuple[float, float], unit: float
    ) -> tuple[Floats, float]:
        """Return bounds on |f⁽ᵐ⁺¹⁾| between low and high, and on the whole stretch."""
        edges = graded(*stretch, unit)
        tops = self.bound(edges[:-1], edges[1:], self.order + 1)
        first = np.clip(np.searchsorted(edges, low, "right") - 1, 0, len(tops) - 1)
        last = np.clip(np.searchsorted(edges, high, "left"), first + 1, len(tops))
        pairs = np.column_stack([first, last]).ravel()
        tops = np.append(tops, 0.0)
        return np.maximum.reduceat(tops, pairs)[::2], float(tops.max())


@dataclasses.dataclass(frozen=True)
class Exact:
    """A formula in place of a series: nothing is cut off, or nothing is proven of it."""

    symbol: sympy.Symbol
    expr: sympy.Expr
    spread: sympy.Expr | None = None

    def breaks(self, low: float, high: float) -> list[float]:
        """Return where the formula may fail to be smooth between two points."""
        if not self.expr.has(*KINKED):
            return []
        stretch = Interval(*(b if math.isfinite(b) else None for b in (low, high)))
        return [s.point for s in breaks(self.expr, self.symbol, {self.symbol: stretch})]

    @cached_property
    def jet(self) -> tuple[sympy.Expr, ...]:
        """The formula and its first three derivatives."""
        return jet(self.expr, self.symbol)

    @property
    def variance(self) -> Exact:
        """The unbiased variance of an exact estimator."""
        assert self.spread is not None  # noqa: S101  (asked of estimators only)
        return Exact(self.symbol, self.spread)


def jet(expr: sympy.Expr, symbol: sympy.Symbol) -> tuple[sympy.Expr, ...]:
    """Return an expression and its first three derivatives."""
    parts = [expr]
    for _ in range(3):
        parts.append(derivative(parts[-1], symbol, 1))
    return tuple(parts)


def bound_on(expr: sympy.Expr, symbol: sympy.Symbol, low: Floats, high: Floats) -> Floats:
    """Return bounds on |expr| over cells."""
    if symbol not in expr.free_symbols:
        return np.full(np.shape(low), abs(float(expr)) * (1 + 2.0**-50))
    least, greatest, _ = Walk({symbol: (low, high)}).range(expr)
    return np.maximum(np.abs(least), np.abs(greatest))


def _tidy(expr: sympy.Expr) -> sympy.Expr:
    """Bring a quotient of polynomials over one denominator: repeated derivatives stay short."""
    if expr.is_rational_function() and not expr.atoms(sympy.Float):
        return sympy.factor(expr)
    return expr


def _times(a: Floats, b: Floats) -> Floats:
    """Return a·b, where nothing times infinity is nothing: the noise has no mass there."""
    with np.errstate(invalid="ignore"):
        return np.where(b == 0, 0.0, a * b)


def _plain(weight: sympy.Expr) -> sympy.Expr:
    """Return a weight as a rational, or as a double."""
    return weight if weight.is_Rational else sympy.Float(float(weight))


def graded(low: float, high: float, unit: float) -> Floats:
    """Return edges on [low, high]: a quarter of a unit at finite ends, then growing by a tenth.

    Examples
    --------
    >>> graded(0.0, 2.0, 4.0)
    array([0., 1., 2.])
    """
    if math.isinf(low) and math.isinf(high):
        half = graded(0.0, math.inf, unit)
        return np.concatenate([-half[:0:-1], half])
    if math.isinf(low):
        return -graded(-high, math.inf, unit)[::-1]
    count = math.ceil(math.log1p(0.1 * 4 * min(high - low, FAR * unit) / unit) / math.log(1.1))
    steps = unit / 4 * (1.1 ** np.arange(count + 1.0) - 1) / 0.1
    if math.isinf(high):
        return low + steps
    left, right = low + steps, high - steps
    middle = (low + high) / 2
    return np.unique(
        np.concatenate([left[left < middle], [middle], right[right > middle], [low, high]])
    )
