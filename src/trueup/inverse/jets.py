"""Apply weighted sums of derivatives and shifts to f, and to products f₁·f₂ by their coproduct.

A functional Dⁿ or Sˢ (the shift f ↦ f(· + s)) acts on a product by a rule of its own:
Dⁿ(uv) = Σ C(n,k) Dᵏu·Dⁿ⁻ᵏv and Sˢ(uv) = Sˢu·Sˢv. With the difference δₛ = Sˢ − 1 in place of Sˢ,
every operator T that leaves constants alone reads T = 1 + (terms without the identity), and in

    T[u]·T[v] − T[u·v]

every term with a bare u or v cancels *symbolically*: the variance of an estimator is a quadratic
form in derivatives and differences alone, free of the cancellation of g² − T[f²].

Where f is read at integers only, less work does. With one operator Tᵢ per statistic, T = T₁⋯Tₖ and
hᵢ = Tᵢ₊₁⋯Tₖ f (so h₀ = g and hₖ = f),

    g² − T[f²] = Σᵢ T₁⋯Tᵢ₋₁ [(Tᵢhᵢ)² − Tᵢ[hᵢ²]],

the law of total variance, one statistic after the other. Each bracket is a variance along one
statistic, (Σ wₛδₛ)² − Σ wₛδₛ² in differences δₛ of hᵢ, in which no large terms cancel.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from itertools import product
from math import comb
from textwrap import shorten
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long, parts_of
from trueup.formula.substitution import at, decimal, real, stepped
from trueup.formula.text import text
from trueup.kernels.tape import MAX_OPERATIONS
from trueup.noise.operator import IDENTITY, Key, Taps

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_PARTS = 6000  # of all derivatives of one function: sympy makes some thousand in a second
_SHOWN = 200  # characters of a formula in a message: enough to tell which one it is
_GROWTH = 3  # times as many parts has the derivative of a long expression, at the least
_HOPELESS = 9000  # parts of a derivative of which factoring leaves too many in any case

Keys = tuple[Key, ...]
"""One functional per statistic; a pure shift (0, s) stands for the difference δₛ."""

Weights = dict[Keys, sympy.Expr]

_Changes = list[tuple[sympy.Expr, sympy.Expr]]
"""Differences, each with its weight."""
_OfSteps = Callable[[tuple[int, ...]], sympy.Expr]

_VALUE, _VARIANCE = 10_000, 7500
"""Parts of f times the points that it is read at: sympy writes down so many in a second."""


def tensor(statistics: Sequence[Taps]) -> Weights:
    """Return the operator that acts on every statistic at once."""
    weights: Weights = {}
    for items in product(*(taps.items() for taps in statistics)):
        weight = sympy.Mul(*(w for _, w in items))
        if weight != 0:
            weights[tuple(key for key, _ in items)] = weight
    return weights


@lru_cache(maxsize=1024)
def _coproduct(key: Key) -> tuple[tuple[int, Key, Key], ...]:
    """Return Δ of one functional as terms (coefficient, left, right)."""
    order, shift = key
    if shift:
        return ((1, key, key), (1, key, IDENTITY), (1, IDENTITY, key))
    return tuple((comb(order, k), (k, 0), (order - k, 0)) for k in range(order + 1))


def on_product(weights: Weights) -> dict[tuple[Keys, Keys], sympy.Expr]:
    """Return T as it acts on a product: coefficients of (left functional, right functional)."""
    result: dict[tuple[Keys, Keys], sympy.Expr] = defaultdict(lambda: sympy.Integer(0))
    for keys, weight in weights.items():
        for terms in product(*map(_coproduct, keys)):
            coefficient = 1
            for c, _, _ in terms:
                coefficient *= c
            left, right = tuple(t[1] for t in terms), tuple(t[2] for t in terms)
            result[left, right] += coefficient * weight
    return result


def form(left: Weights, right: Weights, both: Weights) -> dict[tuple[Keys, Keys], sympy.Expr]:
    """Return T[u]·T[v] − T[u·v] as weights of pairs of functionals, of u and of v.

    ``left``, ``right`` and ``both`` are T as it acts on u, on v and on u·v.
    """
    result = defaultdict(lambda: sympy.Integer(0), {k: -w for k, w in on_product(both).items()})
    for (k1, w1), (k2, w2) in product(left.items(), right.items()):
        result[k1, k2] += w1 * w2
    return result


class Jet:
    """The derivatives and differences of one function at one place, each computed once.

    ``place`` says where each of the ``symbols`` is: an expression, or a bound.
    """

    def __init__(
        self,
        f: sympy.Expr,
        symbols: Sequence[sympy.Symbol],
        place: Mapping[sympy.Symbol, sympy.Expr],
    ) -> None:
        self.f, self.symbols, self.place = f, symbols, place
        self._known: dict[Keys, sympy.Expr] = {}
        self._parts: dict[sympy.Expr, int] = {}

    def __getitem__(self, keys: Keys) -> sympy.Expr:
        if keys not in self._known:
            self._known[keys] = self._placed(self._applied(keys))
        return self._known[keys]

    def _applied(self, keys: Keys) -> sympy.Expr:
        """Return a functional of f as a function of the statistics."""
        expr = self.f
        for symbol, (order, _) in zip(self.symbols, keys, strict=True):
            expr = self._derivative(expr, symbol, order)
        for symbol, (_, shift) in zip(self.symbols, keys, strict=True):
            if shift:
                expr = stepped(expr, {symbol: symbol + shift}) - expr
        return expr

    def _derivative(self, expr: sympy.Expr, symbol: sympy.Symbol, order: int) -> sympy.Expr:
        """Return a derivative; refuse when all of them together grow too long."""
        for n in range(1, order + 1):
            found = derivative(expr, symbol, n)
            if found not in self._parts:
                self._parts[found] = parts_of(found, _MOST_PARTS)
            grows = n < order and _GROWTH * self._parts[found] > _MOST_PARTS
            if grows or sum(self._parts.values()) > _MOST_PARTS:
                shown = shorten(text(self.f), _SHOWN, placeholder=" …")
                raise too_long(f"the derivatives of {shown} have more than {_MOST_PARTS} parts")
        return derivative(expr, symbol, order)

    def _placed(self, expr: sympy.Expr) -> sympy.Expr:
        """Return expr at the place, nan where it has no value there."""
        placed = at(expr, self.place)
        if placed.is_Float:  # some of its digits may have cancelled
            exact = {symbol: decimal(value) for symbol, value in self.place.items()}
            return real(at(decimal(expr), exact)) or placed
        return sympy.nan if placed.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) else placed


@lru_cache(maxsize=4096)
def derivative(expr: sympy.Expr, symbol: sympy.Symbol, order: int) -> sympy.Expr:
    """Return the derivative of the given order, each one found once and kept."""
    if order == 0:
        return expr
    found = derivative(expr, symbol, order - 1).diff(symbol)
    return found if is_long(found, _HOPELESS) else sympy.factor_terms(found)


@dataclasses.dataclass(frozen=True)
class OnLattice:
    """T[f] and V̂ for weights of differences per statistic, each of them at its place.

    Examples
    --------
    >>> a, w = sympy.symbols("a w", real=True)
    >>> applied = OnLattice(a**2, {a: {IDENTITY: sympy.Integer(1), (0, 1): w}}, {a: a})
    >>> sympy.expand(applied.value), sympy.factor(applied.variance)
    (a**2 + 2*a*w + w, w*(2*a + 1)**2*(w - 1))
    """

    f: sympy.Expr
    operators: Mapping[sympy.Symbol, Taps]
    place: Mapping[sympy.Symbol, sympy.Expr]

    @property
    def value(self) -> sympy.Expr:
        """T[f]."""
        self.check_value()
        found = self._averaged(())
        return sympy.expand(found) if self.f.is_polynomial(*self.operators) else found

    @property
    def variance(self) -> sympy.Expr:
        """g² − T[f²]."""
        self._check("the variance", _VARIANCE)
        return sympy.Add(*(self._outer(depth, ()) for depth in range(len(self.operators))))

    def check_value(self) -> None:
        """Refuse an estimator that would take too long to write down."""
        self._check("the estimator", _VALUE)

    def _check(self, what: str, most: int) -> None:
        points = math.prod(len(own) + 1 for own in self._weights)
        parts = parts_of(self.f, MAX_OPERATIONS)
        if points * parts > most:
            read = f"{what} reads {text(self.f)}, of {parts} parts, at {points} points"
            raise too_long(f"{read}: at most {most} parts in all are possible")

    @cached_property
    def _weights(self) -> list[dict[int, sympy.Expr]]:
        return [{s: w for (_, s), w in own.items() if s} for own in self.operators.values()]

    @cached_property
    def _known(self) -> dict[tuple[int, ...], sympy.Expr]:
        return {}

    def _averaged(self, steps: tuple[int, ...]) -> sympy.Expr:
        """Return hᵢ at these steps along the first i statistics."""
        if steps not in self._known:
            if len(steps) < len(self.operators):
                own = list(self.operators.values())[len(steps)]
                found = self._applied(steps, own.get(IDENTITY, sympy.Integer(0)))
            else:
                moved = zip(self.operators, steps, strict=True)
                found = stepped(self.f, {symbol: self.place[symbol] + s for symbol, s in moved})
            self._known[steps] = found
        return self._known[steps]

    def _outer(self, depth: int, steps: tuple[int, ...]) -> sympy.Expr:
        """Return Tⱼ₊₁⋯Tᵢ₋₁ of the bracket (Tᵢhᵢ)² − Tᵢ[hᵢ²], j steps being taken."""
        if len(steps) < depth:
            outer = self._changes(lambda further: self._outer(depth, further), steps)
            middle = self._outer(depth, (*steps, 0))
            return sympy.Add(middle, *(w * change for w, change in outer))
        changes = self._changes(self._averaged, steps)
        total = sympy.Add(*(w * change for w, change in changes))
        return _square(total) - sympy.Add(*(w * _square(change) for w, change in changes))

    def _applied(self, steps: tuple[int, ...], identity: sympy.Expr) -> sympy.Expr:
        """Return Tᵢh, statistic i being the next one, as a weighted sum of terms of values."""
        own = self._weights[len(steps)]
        weights = {0: identity - sympy.Add(*own.values()), **own}
        total: dict[sympy.Expr, sympy.Expr] = defaultdict(lambda: sympy.Integer(0))
        for step, weight in weights.items():
            for term in sympy.Add.make_args(self._averaged((*steps, step))):
                number, rest = term.as_coeff_Mul()
                total[rest] += number * weight
        return sympy.Add(*(weight * rest for rest, weight in total.items()))

    def _changes(self, h: _OfSteps, steps: tuple[int, ...]) -> _Changes:
        """Return the differences of h along the next statistic."""
        middle = h((*steps, 0))
        return [(w, h((*steps, step)) - middle) for step, w in self._weights[len(steps)].items()]


def _square(x: sympy.Expr) -> sympy.Expr:
    """Return x²; of a long sum as it stands, for sympy would look for its sign."""
    return sympy.Pow(x, 2, evaluate=False) if x.is_Add and x.free_symbols else x**2


def too_long(reason: str) -> TrueupError:
    """Return the refusal of what would take too long to write down."""
    return TrueupError(
        reason, "publish totals with a noise of their own, or debias parts that are then added"
    )
