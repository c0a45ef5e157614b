"""Estimator and variance of integer statistics, with work like the number of values of f read.

With one operator Tᵢ per statistic, T = T₁⋯Tₖ and hᵢ = Tᵢ₊₁⋯Tₖ f (so h₀ = g and hₖ = f),

    g² − T[f²] = Σᵢ T₁⋯Tᵢ₋₁ [(Tᵢhᵢ)² − Tᵢ[hᵢ²]],

the law of total variance, one statistic after the other. Each bracket is a variance along one
statistic, (Σ wₛδₛ)² − Σ wₛδₛ² in differences δₛ of hᵢ, in which no large terms cancel.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property
from itertools import product

import sympy

from trueup.errors import TrueupError
from trueup.formula.build import parts_of
from trueup.formula.opaque import known_values
from trueup.formula.substitution import stepped
from trueup.formula.text import text
from trueup.kernels.tape import MAX_OPERATIONS
from trueup.noise.operator import IDENTITY, Taps

_Steps = tuple[int, ...]
_Changes = list[tuple[sympy.Expr, sympy.Expr]]
"""Differences, each with its weight."""

_VALUE, _VARIANCE = 10_000, 4000
"""Parts of f times the points that it is read at: sympy writes down so many in a second."""


@dataclasses.dataclass(frozen=True)
class OnLattice:
    """T[f] and V̂ for weights of differences per coordinate, each coordinate at its place.

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
        return self._averaged(())

    @property
    def variance(self) -> sympy.Expr:
        """g² − T[f²]."""
        self._check("the variance", _VARIANCE)
        return sympy.Add(*(self._outer(depth, ()) for depth in range(len(self.operators))))

    @property
    def short_variance(self) -> sympy.Expr:
        """g² − T[f²] as (Σ wₖδₖf)² − Σ wₖ(δₖf)² over all neighbours.

        It reads f less often, and loses the digits of λ where mixed differences cancel.
        """
        axes = [
            {0: self._identities[i] - sympy.Add(*own.values()), **own}
            for i, own in enumerate(self._weights)
        ]
        middle = self._averaged((0,) * len(axes))
        changes = [
            (sympy.Mul(*(axis[s] for axis, s in zip(axes, steps, strict=True))), steps)
            for steps in product(*axes)
            if any(steps)
        ]
        return _bracket([(w, self._averaged(steps) - middle) for w, steps in changes])

    def check_value(self) -> None:
        """Refuse an estimator that would take too long to write down."""
        self._check("the estimator", _VALUE)

    def _check(self, what: str, most: int) -> None:
        points = math.prod(len(own) + 1 for own in self._weights)
        parts = parts_of(self.f, MAX_OPERATIONS)
        if points * parts > most:
            raise TrueupError(
                f"{what} reads {text(self.f)}, of {parts} parts, at {points} points: at most "
                f"{most} parts in all are possible",
                "publish totals with a noise of their own, or debias parts that are then added",
            )

    @cached_property
    def _weights(self) -> list[dict[int, sympy.Expr]]:
        taps = self.operators.values()
        return [{s: w for (_, s), w in own.items() if s} for own in taps]

    @cached_property
    def _identities(self) -> list[sympy.Expr]:
        """One each; or none, for a single functional in place of an operator."""
        return [taps.get(IDENTITY, sympy.Integer(0)) for taps in self.operators.values()]

    @cached_property
    def _known(self) -> dict[_Steps, sympy.Expr]:
        return {}

    def _averaged(self, steps: _Steps) -> sympy.Expr:
        """Return hᵢ at these steps along the first i coordinates."""
        if steps not in self._known:
            if len(steps) < len(self.operators):
                middle = self._identities[len(steps)] * self._averaged((*steps, 0))
                found = sympy.Add(middle, *(w * change for w, change in self._changes(steps)))
            else:
                moved = zip(self.operators, steps, strict=True)
                found = stepped(self.f, {symbol: self.place[symbol] + s for symbol, s in moved})
            self._known[steps] = known_values(found)
        return self._known[steps]

    def _changes(self, steps: _Steps) -> _Changes:
        """Return the differences of hᵢ along coordinate i."""
        middle = self._averaged((*steps, 0))
        own = self._weights[len(steps)].items()
        return [(w, self._averaged((*steps, step)) - middle) for step, w in own]

    def _outer(self, depth: int, steps: _Steps) -> sympy.Expr:
        """Return Tⱼ₊₁⋯Tᵢ₋₁ of the bracket, j steps being taken."""
        if len(steps) == depth:
            return _bracket(self._changes(steps))
        middle = self._outer(depth, (*steps, 0))
        own = self._weights[len(steps)].items()
        changes = (w * (self._outer(depth, (*steps, step)) - middle) for step, w in own)
        return sympy.Add(middle, *changes)


def _bracket(changes: _Changes) -> sympy.Expr:
    """Return (Tᵢhᵢ)² − Tᵢ[hᵢ²]."""
    total = sympy.Add(*(w * change for w, change in changes))
    return _square(total) - sympy.Add(*(w * _square(change) for w, change in changes))


def _square(x: sympy.Expr) -> sympy.Expr:
    """Return x²; of a long sum as it stands, for sympy would look for its sign."""
    return sympy.Pow(x, 2, evaluate=False) if x.is_Add and x.free_symbols else x**2
