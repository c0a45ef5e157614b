"""Apply weighted sums of derivatives and shifts to f, and to products f₁·f₂ by their coproduct.

A functional Dⁿ or Sˢ (the shift f ↦ f(· + s)) acts on a product by a rule of its own:
Dⁿ(uv) = Σ C(n,k) Dᵏu·Dⁿ⁻ᵏv and Sˢ(uv) = Sˢu·Sˢv. With the difference δₛ = Sˢ − 1 in place of Sˢ,
every operator T that leaves constants alone reads T = 1 + (terms without the identity), and in

    T[u]·T[v] − T[u·v]

every term with a bare u or v cancels *symbolically*: the variance of an estimator is a quadratic
form in derivatives and differences alone, free of the cancellation of g² − T[f²].
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import product
from math import comb
from textwrap import shorten
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long, parts_of
from trueup.formula.opaque import known_values
from trueup.formula.substitution import at, decimal, real_at, stepped
from trueup.formula.text import text
from trueup.noise.operator import IDENTITY, Key, Taps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST_PARTS = 6000  # of all derivatives of one function: sympy makes some thousand in a second

_SHOWN = 200  # characters of a formula in a message: enough to tell which one it is

_GROWTH = 3  # times as many parts has the derivative of a long expression, at the least

_HOPELESS = 9000
"""Parts of a derivative of which factoring leaves too many in any case, after seconds."""

Keys = tuple[Key, ...]
"""One functional per coordinate; a pure shift (0, s) stands for the difference δₛ."""

Weights = dict[Keys, sympy.Expr]


def compose(several: Iterable[Taps]) -> Taps:
    """Return the product of operators that act on one coordinate.

    Weights are multiplied out and like terms collected: n cells with equal noises make polynomials
    of n + 1 terms, where sums inside sums would triple with every cell.
    """
    result: dict[Key, _Terms] = {IDENTITY: {(): 1}}
    for taps in several:
        total: dict[Key, _Terms] = defaultdict(lambda: defaultdict(int))
        for (left, terms), (right, weight) in product(result.items(), taps.items()):
            own = () if weight == 1 else (weight,)
            for sign, key in _times(left, right):
                for factors, coefficient in terms.items():
                    total[key][_ordered(factors + own)] += sign * coefficient
        result = total
    found = {key: sympy.Add(*_products(terms)) for key, terms in result.items()}
    return {key: weight for key, weight in found.items() if weight != 0}


_Terms = dict[tuple[sympy.Expr, ...], int]
"""A sum of products of weights: how often each product occurs."""


def _ordered(factors: tuple[sympy.Expr, ...]) -> tuple[sympy.Expr, ...]:
    """Return factors so that the same ones are the same product."""
    return tuple(sorted(factors, key=hash))


def _products(terms: _Terms) -> list[sympy.Expr]:
    return [c * sympy.Mul(*factors) for factors, c in terms.items() if c]


def _times(left: Key, right: Key) -> list[tuple[int, Key]]:
    """Return the product of two functionals: δₛδₜ = δₛ₊ₜ − δₛ − δₜ, and δₛDⁿSᵗ = DⁿSˢ⁺ᵗ − DⁿSᵗ."""
    (m, s), (n, t) = left, right
    both = (m + n, s + t)
    if IDENTITY in (left, right) or (m and n):
        return [(1, both)]
    if m or n:
        return [(1, both), (-1, right if n else left)]
    return [(sign, key) for sign, key in ((1, both), (-1, left), (-1, right)) if key != IDENTITY]


def tensor(coordinates: Sequence[Taps]) -> Weights:
    """Return the operator that acts on every coordinate at once."""
    weights: Weights = {}
    for items in product(*(taps.items() for taps in coordinates)):
        weight = sympy.Mul(*(w for _, w in items))
        if weight != 0:
            weights[tuple(key for key, _ in items)] = weight
    return weights


@lru_cache(maxsize=1024)
def _coproduct(key: Key) -> tuple[tuple[int, Key, Key], ...]:
    """Return Δ of one functional as terms (coefficient, left, right)."""
    order, shift = key
    if order == 0:
        if shift == 0:
            return ((1, IDENTITY, IDENTITY),)
        return ((1, key, key), (1, key, IDENTITY), (1, IDENTITY, key))
    terms = []
    for k in range(order + 1):
        for left, right in product(_split(k, shift), _split(order - k, shift)):
            terms.append((comb(order, k), left, right))
    return tuple(terms)


def _split(order: int, shift: int) -> tuple[Key, ...]:
    """Return DᵏSˢ in the basis of differences: the bare shift Sˢ is 1 + δₛ."""
    return ((order, shift),) if order or not shift else (IDENTITY, (0, shift))


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
        """Return a functional of f as a function of the coordinates."""
        expr = self.f
        for symbol, (order, _) in zip(self.symbols, keys, strict=True):
            expr = self._derivative(expr, symbol, order)
        for symbol, (order, shift) in zip(self.symbols, keys, strict=True):
            if shift:
                moved = stepped(expr, {symbol: symbol + shift})
                expr = moved if order else moved - expr
        return expr

    def _derivative(self, expr: sympy.Expr, symbol: sympy.Symbol, order: int) -> sympy.Expr:
        """Return a derivative; refuse when all of them together grow too long."""
        for n in range(1, order + 1):
            found = derivative(expr, symbol, n)
            if found not in self._parts:
                self._parts[found] = parts_of(found, _MOST_PARTS)
            grows = n < order and _GROWTH * self._parts[found] > _MOST_PARTS
            if grows or sum(self._parts.values()) > _MOST_PARTS:
                raise TrueupError(
                    f"the derivatives of {shorten(text(self.f), _SHOWN, placeholder=' …')} by "
                    f"{len(self.symbols)} statistics at once have more than {_MOST_PARTS} parts",
                    "under integer noise (DiscreteLaplace) values of f are enough; or debias its "
                    "parts one by one",
                )
        return derivative(expr, symbol, order)

    def _placed(self, expr: sympy.Expr) -> sympy.Expr:
        """Return expr at the place, nan where it has no value there."""
        placed = known_values(at(expr, self.place))
        if placed.is_Float:  # some of its digits may have cancelled
            exact = {symbol: decimal(value) for symbol, value in self.place.items()}
            return real_at(decimal(expr), exact) or placed
        return sympy.nan if placed.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) else placed


@lru_cache(maxsize=4096)
def derivative(expr: sympy.Expr, symbol: sympy.Symbol, order: int) -> sympy.Expr:
    """Return the derivative of the given order, each one found once and kept."""
    if order == 0:
        return expr
    found = derivative(expr, symbol, order - 1).diff(symbol)
    return found if is_long(found, _HOPELESS) else sympy.factor_terms(found)
