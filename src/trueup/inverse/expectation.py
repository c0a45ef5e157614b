"""Exact expectations over the noise: closed forms where there are, quadrature and sums elsewhere.

E φ(q + Z) for φ given region by region. A statistic on which φ depends as an exponential
polynomial is integrated symbolically by M(D), the forward twin of the inverse. Any other one is
integrated by panels that break at q and at the bounds, or summed over the integers; panels are
refined until two levels agree.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from math import factorial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long, parts_of
from trueup.formula.substitution import at, decimal
from trueup.inverse import quadrature, spectral
from trueup.inverse.jets import Jet
from trueup.inverse.quadrature import DEPTH, Rule, reach
from trueup.inverse.spectral import Complex, Frequencies
from trueup.kernels.blocks import evaluate
from trueup.noise.extension import LaguerreExtension, orthogonal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.component import Cell, Region
    from trueup.inverse.growth import Growth
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Truth = Mapping[sympy.Symbol, float]
    Growths = Mapping[sympy.Symbol, tuple[Growth, Growth]]

_TOLERANCE = 1e-12
_ACCEPTED = 1e-10
_NOTHING = 1e-8  # what is left of terms that cancel
_LEVELS = 12
_SLAB = 8192  # nodes at once: their columns stay in the cache
_MOST_WORK = 5 * 10**10  # nodes times parts of φ: some seconds
_SURE = 3
"""Levels before which rules may agree and both miss a step that is narrow beside the noise: panels
are then an eighth of the quartiles' distance wide, with 16 nodes each."""
_ROUNDING = 2.0**-50  # relative error of a sum of doubles, a few last bits
_LOST = 1e-3  # of what is typical: a sum with a larger error says nothing
_LONG = 1000  # parts beyond which nodes are cheaper than symbols
_SHALLOW = 30.0
"""What e^−30 leaves out of sums over three statistics and more is 1e-13 of them."""


def push_forward(expr: sympy.Expr, symbol: sympy.Symbol, noise: Noise) -> sympy.Expr | None:
    """Return q ↦ E expr(q + Z) in the same symbol, None if it has no closed form.

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> s = sympy.Symbol("s", real=True)
    >>> push_forward(s**2, s, Gaussian(3))
    s**2 + 9
    """
    if symbol not in expr.free_symbols:
        return expr
    modes = spectral.decompose(decimal(_exact(expr)), [symbol])
    if modes is None:
        return None
    result: dict[Frequencies, Complex] = {}
    for frequency, mode in modes.items():
        degree = max(spectral.degree(p, symbol) for p in mode)
        try:
            moments = noise.tilted(frequency[0], degree)
        except TrueupError:
            return None
        jets = [Jet(p, [symbol], {symbol: symbol}) for p in mode]
        re, im = sympy.Integer(0), sympy.Integer(0)
        for j, moment in enumerate(moments):
            values = (jets[0][((j, 0),)], jets[1][((j, 0),)])
            weight = (decimal(_exact(moment)) / factorial(j)).as_real_imag()
            term = spectral.times(weight, values)
            re, im = re + term[0], im + term[1]
        result[frequency] = (re, im)
    return spectral.realise(result, [symbol])


def _exact(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression in which numbers of more digits than a double keep them."""
    return expr.xreplace({x: sympy.Rational(x) for x in expr.atoms(sympy.Float) if x._prec > 53})


class TooLargeError(TrueupError):
    """The product of the rules has too many nodes."""

    @classmethod
    def over(cls, statistics: int) -> TooLargeError:
        """Return the refusal."""
        return cls(
            f"an exact expectation over {statistics} statistics that do not separate is too large "
            "to compute",
            "look at fewer cells, or simulate with noise.sample",
        )


class Settled(NamedTuple):
    """E φ, E |φ| and a typical |φ|: (E √|φ|)²."""

    value: float
    size: float
    typical: float

    def check(self, truth: Truth) -> None:
        """Refuse a mean of which rounding leaves nothing."""
        if self.size * _ROUNDING > _LOST * max(abs(self.value), self.typical, _NOTHING):
            raise TrueupError(
                f"the expectation at {_shown(truth)} is lost in rounding: terms of size "
                f"{self.size:.0g} far from the true value cancel in it",
                "the formula outgrows the noise; give narrower bounds, or less noise",
            )


class Expectation:
    """E φ as a function of the true values, prepared once.

    Parameters
    ----------
    pieces
        φ on each region (one branch index per cell).
    cells
        The statistics with branches.
    others
        The other statistics: φ is an exponential polynomial in them.
    growths
        How fast φ may grow below and above, per cell.
    breaks
        Further points at which φ is not smooth, per cell.
    """

    def __init__(
        self,
        pieces: Callable[[Region], sympy.Expr],
        cells: Sequence[Cell],
        others: Mapping[sympy.Symbol, Noise],
        growths: Growths,
        breaks: Mapping[sympy.Symbol, Sequence[float]],
    ) -> None:
        self.growths, self.breaks = growths, breaks
        regions = product(*(range(len(c.operator.branches)) for c in cells))
        self.exprs = {region: _over(pieces(region), others) for region in regions}
        self._long = any(is_long(e, _LONG) for e in self.exprs.values())
        self.left = [(i, cell) for i, cell in enumerate(cells) if not self._close(cell)]
        series = {e for expr in self.exprs.values() for e in expr.atoms(LaguerreExtension)}
        self._wiggles = max((4.0 * int(e.args[0]) for e in series), default=0.0)

    def _close(self, cell: Cell) -> bool:
        """Integrate a cell symbolically, if it has one branch and φ is of the right kind.

        A known number is what it is in every φ.
        """
        if cell.noise.known:
            return True
        if len(cell.operator.branches) > 1 or self._long:
            return False
        moved = {r: push_forward(e, cell.symbol, cell.noise) for r, e in self.exprs.items()}
        if any(e is None for e in moved.values()):
            return False
        self.exprs = moved
        return True

    @property
    def closed(self) -> sympy.Expr | None:
        """E φ as one formula, None if nodes are needed."""
        return None if self.left else next(iter(self.exprs.values()))

    def at(self, truth: Truth) -> float:
        """Return E φ at a true value."""
        return self.settled(truth).value

    def settled(self, truth: Truth) -> Settled:
        """Return E φ at a true value, with the sizes that tell what rounding does to it."""
        if self.closed is not None:
            value = exactly(self.closed, truth)
            return Settled(value, abs(value), abs(value))
        found = self._integrated(truth, 0)
        if all(cell.noise.lattice for _, cell in self.left):
            return found
        gap = math.inf
        for level in range(1, _LEVELS):
            last, found = found, self._integrated(truth, level)
            gap = abs(found.value - last.value) / max(found.size, _NOTHING)
            sure = level >= _SURE or len(self.left) > 1
            if not math.isfinite(found.value) or (sure and gap <= _TOLERANCE):
                return found
        if not gap <= _ACCEPTED:
            raise TrueupError(
                f"the expectation at {_shown(truth)} did not settle: {found.value:g}, with a "
                f"relative error of {gap:.1g}",
                "the formula oscillates too fast for the noise, or its curvature is infinite "
                "at a point; simulate with noise.sample instead",
            )
        return found

    def _integrated(self, truth: Truth, level: int) -> Settled:
        """Return E φ with panels of the given level."""
        total = size = roots = 0.0
        for region, raw in self.exprs.items():
            expr = self._orthogonal(region, raw, truth)
            rules = {c.symbol: self._rule(c, region[i], truth, expr, level) for i, c in self.left}
            expr, rules = self._merged(region, expr, rules)
            nodes = math.prod(len(r.nodes) for r in rules.values())
            if nodes > _SLAB and nodes * parts_of(expr, _MOST_WORK // nodes) > _MOST_WORK:
                raise TooLargeError.over(len(rules))
            for value, weight in _tensor(expr, rules, truth):
                value[weight == 0] = 0.0  # where the noise has no mass left in a double
                total += float(value @ weight)
                magnitude = np.abs(value)
                size += float(magnitude @ weight)
                roots += float(np.sqrt(magnitude) @ weight)
        return Settled(total, size, roots * roots)

    def _orthogonal(self, region: Region, expr: sympy.Expr, truth: Truth) -> sympy.Expr:
        """Integrate Laguerre series beyond the bounds by their orthogonality.

        For a true value inside the bounds, x beyond one of them is exponential whatever q is.
        """
        for i, cell in self.left:
            side, q = cell.operator.branches[region[i]].side, truth[cell.symbol]
            if side != "inside" and cell.operator.low <= q <= cell.operator.high:
                expr = orthogonal(expr, cell.symbol)
        return expr

    def _merged(
        self, region: Region, expr: sympy.Expr, rules: dict[sympy.Symbol, Rule]
    ) -> tuple[sympy.Expr, dict[sympy.Symbol, Rule]]:
        """Sum over a + b at once where φ depends on these two integers through their sum alone."""
        whole = [
            c.symbol
            for i, c in self.left
            if c.noise.lattice and c.operator.branches[region[i]].side == "inside"
        ]
        for a, b in combinations(whole, 2):
            if not {a, b} <= rules.keys() & expr.free_symbols:
                continue
            moved = expr.xreplace({a: a - b})
            if b not in moved.free_symbols:
                one, other = rules[a], rules.pop(b)
                if not len(one.nodes) or not len(other.nodes):
                    continue
                expr, first = moved, one.nodes[0] + other.nodes[0]
                weights = np.convolve(one.weights, other.weights)
                rules[a] = Rule(first + np.arange(float(len(weights))), weights)
        return expr, rules

    def _rule(self, cell: Cell, branch: int, truth: Truth, expr: sympy.Expr, level: int) -> Rule:
        """Return a rule for x = q + Z restricted to one branch."""
        q, noise = float(truth[cell.symbol]), cell.noise
        low, high = map(float, cell.operator.starts)
        side = cell.operator.branches[branch].side
        if cell.symbol not in expr.free_symbols:
            return quadrature.point(q, _probability(noise, side, low - q, high - q))
        left, right = self._reaches(cell, q)
        ends = {"below": (-math.inf, low), "inside": (low, high), "above": (high, math.inf)}
        start = max(ends[side][0], min(q, high) - left)
        stop = min(ends[side][1], max(q, low) + right)
        if noise.lattice:
            inside = side == "inside"
            first, last = start + (inside and start == low), stop - (inside and stop == high)
            return quadrature.integers(noise, q, first, last)
        if cell.operator.jumps is not None:
            return quadrature.unit_cells(noise, q, (start, stop), cell.operator.jumps, level)
        marks = (q, low, high, *self.breaks.get(cell.symbol, ()))
        return quadrature.panels(noise, q, (start, stop), marks, level)

    def _reaches(self, cell: Cell, q: float) -> tuple[float, float]:
        """Return how far below and above q the noise matters; beyond bounds φ does not grow."""
        depth = DEPTH if len(self.left) < 3 else _SHALLOW
        ends = q - float(cell.operator.low), float(cell.operator.high) - q
        found = []
        for side, size, end in zip((-1, 1), self.growths[cell.symbol], ends, strict=True):
            if self._wiggles:
                size, end = size._replace(power=max(size.power, self._wiggles)), math.inf
            found.append(reach(cell.noise, side, size, end, depth))
        return found[0], found[1]


def _over(expr: sympy.Expr, others: Mapping[sympy.Symbol, Noise]) -> sympy.Expr:
    for symbol, noise in others.items():
        moved = push_forward(expr, symbol, noise)
        if moved is None:
            raise TrueupError(
                f"the expectation over {symbol.name} needs moments of {noise!r} that do not exist "
                "or are not known",
                "give more moments, or ask at a noise with lighter tails",
            )
        expr = moved
    return expr


def _probability(noise: Noise, side: str, low: float, high: float) -> float:
    """Return the probability of a branch; z = low, high are its ends."""
    below = float(noise.cdf(low)) if math.isfinite(low) else 0.0
    if noise.symmetric:
        above = float(noise.cdf(-high)) if math.isfinite(high) else 0.0
    else:
        above = 1.0 - float(noise.cdf(high - noise.lattice)) if math.isfinite(high) else 0.0
    return {"below": below, "above": above, "inside": 1.0 - below - above}[side]


def _tensor(
    expr: sympy.Expr, rules: Mapping[sympy.Symbol, Rule], truth: Truth
) -> Iterator[tuple[Floats, Floats]]:
    """Yield values and weights on the product of the rules, slab by slab."""
    fixed = expr.free_symbols - set(rules)
    constants = {s: np.array([float(truth[s])]) for s in sorted(fixed, key=str)}
    shape = [len(r.nodes) for r in rules.values()]
    count = math.prod(shape)
    for start in range(0, count, _SLAB):
        places = np.unravel_index(np.arange(start, min(start + _SLAB, count)), shape)
        pairs = list(zip(rules.values(), places, strict=True))
        columns = {s: r.nodes[i] for s, (r, i) in zip(rules, pairs, strict=True)}
        weights = np.prod([r.weights[i] for r, i in pairs], axis=0)
        yield evaluate(expr, columns | constants), weights


def exactly(expr: sympy.Expr, truth: Truth) -> float:
    """Return an expression at a true value with as many digits as it takes.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> exactly(q**4 - (q**2 - 1) * (q**2 + 1), {q: 1e9})
    1.0
    """
    values = {s: float(q) for s, q in truth.items() if s in expr.free_symbols}
    value = at(expr, {s: sympy.Rational(q) for s, q in values.items()}).evalf(20)
    if value.is_Float or value.is_Rational:
        return float(value)
    return float(evaluate(expr, {s: np.array([q]) for s, q in values.items()})[0])


def _shown(truth: Truth) -> str:
    return ", ".join(f"{s.name} = {q:g}" for s, q in truth.items())
