"""Exact expectations over the noise: closed forms where there are, quadrature and sums elsewhere.

E φ(q + Z) for φ given region by region. A statistic on which φ depends as an exponential
polynomial is integrated symbolically by M(D), the forward twin of the inverse. Any other one is
integrated by panels that break at q and at the bounds, or summed over the integers; panels are
refined until two levels agree.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from math import factorial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.formula.substitution import at, decimal
from trueup.inverse import quadrature, spectral
from trueup.inverse.growth import growth
from trueup.inverse.jets import Jet
from trueup.inverse.quadrature import Rule
from trueup.inverse.spectral import Complex, Frequencies
from trueup.kernels.blocks import evaluate
from trueup.noise.extension import LaguerreExtension, orthogonal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.component import Cell, Region
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]
    Truth = Mapping[sympy.Symbol, float]

_TOLERANCE = 1e-12
_ACCEPTED = 1e-8
_NOTHING = 1e-8  # what is left of terms that cancel
_LEVELS = 12
_DENOMINATOR = 10**6  # of a rate, which is read from decimals
_SLAB = 8192  # nodes at once: their columns stay in the cache
_SURE = 3
"""Levels before which rules may agree and both miss a step that is narrow beside the noise: panels
are then an eighth of the quartiles' distance wide, with 16 nodes each."""
_ROUNDING = 2.0**-50  # relative error of a sum of doubles, a few last bits
_LOST = 1e-3  # of what is typical: a sum with a larger error says nothing
_LARGEST = 709.0  # e to this power is a double, its square far beyond
_LONG = 1000  # parts beyond which nodes are cheaper than symbols


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


def fewest_nodes(cell: Cell, q: float) -> int:
    """Return how many nodes a rule for x = q + Z inside the bounds has at least."""
    if cell.noise.known:
        return 1
    if not cell.noise.lattice:
        return quadrature.FEWEST
    low, high = map(float, cell.operator.starts)
    left, right = quadrature.reach(cell.noise, (0.0, 0.0))
    return max(1, int(min(high, q + right) - max(low, q - left)))


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
    rates
        How fast φ may grow, per cell and side: e^{rate·|x|}.
    breaks
        Further points at which φ is not smooth, per cell.
    degrees
        How fast φ may grow as a power, per cell, where that is known.
    anchors
        Points at which φ is infinite but integrable, per cell, from which x is measured nearby: a
        double x keeps no digits of x − a.
    """

    def __init__(
        self,
        pieces: Callable[[Region], sympy.Expr],
        cells: Sequence[Cell],
        others: Mapping[sympy.Symbol, Noise],
        rates: Mapping[sympy.Symbol, tuple[float, float]],
        breaks: Mapping[sympy.Symbol, Sequence[float]],
        degrees: Mapping[sympy.Symbol, float] | None = None,
        anchors: Mapping[sympy.Symbol, Sequence[sympy.Expr]] | None = None,
    ) -> None:
        self.anchors = {s: _stretches(points) for s, points in (anchors or {}).items() if points}
        self.rates, self.breaks, self.degrees = rates, breaks, degrees or {}
        regions = product(*(range(len(c.operator.branches)) for c in cells))
        self.exprs = {region: _over(pieces(region), others) for region in regions}
        self._long = any(is_long(e, _LONG) for e in self.exprs.values())
        self.left: list[tuple[int, Cell]] = []
        for i, cell in enumerate(cells):
            if not self._close(cell):
                self.left.append((i, cell))
        self.tilts = {
            c.symbol: sympy.Integer(0)
            if c.symbol in self.degrees
            else _tilt(c, *rates.get(c.symbol, (0.0, 0.0)))
            for _, c in self.left
        }
        self.exprs = {region: self._divided(region, e) for region, e in self.exprs.items()}
        self._measured: dict[tuple[Region, tuple[Stretch, ...]], sympy.Expr] = {}

    def _divided(self, region: Region, expr: sympy.Expr) -> sympy.Expr:
        """Divide by the exponential growth on an unbounded side.

        The weights make up for it from q on, :meth:`_root` for the rest.
        """
        for i, cell in self.left:
            tilt = self.tilts[cell.symbol]
            if tilt and cell.operator.branches[region[i]].side == "inside":
                expr = _divided_by(expr, tilt, cell.symbol)
        return expr

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
        size = typical = 0.0
        smooth = all(self._is_summed(c) for _, c in self.left)
        value, gap = math.nan, math.inf
        for level in range(_LEVELS):
            try:
                refined, size, typical = self._integrate(truth, level)
            except TooLargeError:
                if gap <= _ACCEPTED * max(size, _NOTHING):
                    return Settled(value, size, typical)
                raise
            value, gap = refined, abs(refined - value)
            if smooth or not math.isfinite(value):
                break
            agrees = gap <= _TOLERANCE * max(size, _NOTHING)
            if agrees and (level >= _SURE or len(self.left) > 1):
                break
        if not smooth and gap > _ACCEPTED * max(size, _NOTHING):
            raise TrueupError(
                f"the expectation at {_shown(truth)} did not settle: {value:g} ± {gap:.1g}",
                "the formula oscillates too fast for the noise; simulate with noise.sample instead",
            )
        return Settled(value, size, typical)

    def _is_summed(self, cell: Cell) -> bool:
        """Tell whether the first level reads every value that matters."""
        rates = self.rates.get(cell.symbol, (0.0, 0.0))
        slow = any(quadrature.is_slow(cell.noise, r) for r in rates)
        return cell.noise.known or (cell.noise.lattice and not slow)

    def _integrate(self, truth: Truth, level: int) -> tuple[float, float, float]:
        """Return E φ, E |φ| and a typical |φ|, (E √|φ|)², with panels of the given level."""
        total = size = roots = 0.0
        for region, stretches, raw in self._places():
            expr = self._orthogonal(region, raw, truth)
            rules = [
                self._rule(cell, region[i], truth, expr, level, stretch)
                for (i, cell), stretch in zip(self.left, stretches, strict=True)
            ]
            if math.prod(len(r.nodes) for r in rules) > quadrature.MAX_POINTS:
                raise TooLargeError.over(len(rules))
            root = self._root(region, truth)
            for value, weight in _tensor(expr, [c.symbol for _, c in self.left], rules, truth):
                with np.errstate(over="ignore"):  # a mean beyond all doubles is infinite
                    value *= root
                    value *= root
                value[weight == 0] = 0.0  # where the noise has no mass left in a double
                total += float(value @ weight)
                magnitude = np.abs(value)
                size += float(magnitude @ weight)
                roots += float(np.sqrt(magnitude) @ weight)
        return total, size, min(roots * roots, size)  # Jensen: weights with a tilt overstate it

    def _root(self, region: Region, truth: Truth) -> float:
        """Return the root of e^{tilt·q}, which itself may be too large for a double."""
        exponent = sum(
            float(self.tilts[cell.symbol]) * truth[cell.symbol]
            for i, cell in self.left
            if cell.operator.branches[region[i]].side == "inside"
        )
        return math.exp(min(exponent / 2, _LARGEST))

    def _places(self) -> Iterator[tuple[Region, tuple[Stretch, ...], sympy.Expr]]:
        """Yield every region, cut into the stretches around the anchors, with φ measured there."""
        for region, expr in self.exprs.items():
            axes = [self.anchors.get(c.symbol, [_WHOLE]) for _, c in self.left]
            for stretches in product(*axes):
                key = region, stretches
                if key not in self._measured:
                    shifts = {
                        c.symbol: s.anchor
                        for (_, c), s in zip(self.left, stretches, strict=True)
                        if c.symbol in self.anchors
                    }
                    self._measured[key] = _measured(expr, shifts)
                yield region, stretches, self._measured[key]

    def _orthogonal(self, region: Region, expr: sympy.Expr, truth: Truth) -> sympy.Expr:
        """Integrate Laguerre series beyond the bounds by their orthogonality.

        For a true value inside the bounds, x beyond one of them is exponential whatever q is.
        """
        for i, cell in self.left:
            side, q = cell.operator.branches[region[i]].side, truth[cell.symbol]
            if side != "inside" and cell.operator.low <= q <= cell.operator.high:
                expr = orthogonal(expr, cell.symbol)
        return expr

    def _rule(
        self,
        cell: Cell,
        branch: int,
        truth: Truth,
        expr: sympy.Expr,
        level: int,
        stretch: Stretch,
    ) -> Rule:
        """Return a rule for x = q + Z restricted to one branch and to one stretch.

        Its nodes are measured from the stretch's anchor.
        """
        q, noise = float(truth[cell.symbol]), cell.noise
        low, high = map(float, cell.operator.starts)
        side = cell.operator.branches[branch].side
        lumped = side != "inside" or not self.tilts[cell.symbol]
        if cell.symbol not in expr.free_symbols and lumped:
            weight = _probability(noise, side, low - q, high - q)
            return quadrature.point(q, weight if stretch.first else 0.0)
        if cell.symbol in self.degrees:
            degree = self.degrees[cell.symbol]
        else:
            degree = 0.0 if noise.lattice and self._long else _degree(expr, cell.symbol)
        rates = self.rates.get(cell.symbol, (0.0, 0.0))
        left, right = quadrature.reach(noise, rates, degree, level)
        ends = {"below": (-math.inf, low), "inside": (low, high), "above": (high, math.inf)}
        start = max(ends[side][0], min(q, high) - left)
        stop = min(ends[side][1], max(q, low) + right)
        if cell.symbol in self.degrees:  # its branches do not end at the bounds
            start, stop = max(ends[side][0], q - left), min(ends[side][1], q + right)
        tilt = float(self.tilts[cell.symbol]) if side == "inside" else 0.0
        if noise.lattice:
            inside = side == "inside"
            first, last = start + (inside and start == low), stop - (inside and stop == high)
            return quadrature.integers(noise, q, first, last, level, tilt)
        marks = (q, low, high, *self.breaks.get(cell.symbol, ()))
        jumps = cell.operator.jumps
        if jumps is not None:
            return quadrature.unit_cells(noise, q, (start, stop), jumps, level, tilt)
        few, a = len(self.left) > 2, float(stretch.anchor)
        start, stop = max(start, stretch.start) - a, min(stop, stretch.stop) - a
        return quadrature.panels(
            noise, q - a, start, stop, [m - a for m in (a, *marks)], level, tilt, few
        )


class Stretch(NamedTuple):
    """The values that are nearer to one anchor than to any other; ``first`` is the leftmost."""

    anchor: sympy.Expr
    start: float
    stop: float
    first: bool


_WHOLE = Stretch(sympy.Integer(0), -math.inf, math.inf, True)


def _stretches(anchors: Sequence[sympy.Expr]) -> list[Stretch]:
    points = sorted(set(anchors), key=float)
    cuts = [(float(a) + float(b)) / 2 for a, b in pairwise(points)]
    ends = zip([-math.inf, *cuts], [*cuts, math.inf], strict=True)
    return [
        Stretch(point, start, stop, not i)
        for i, (point, (start, stop)) in enumerate(zip(points, ends, strict=True))
    ]


def _measured(expr: sympy.Expr, shifts: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return an expression in x − a in place of x.

    Bases of powers are multiplied out, so that what vanishes at a is small near it in doubles too.
    """
    if not shifts:
        return expr
    expr = at(expr, {s: s + a for s, a in shifts.items() if a})
    bases = {
        p: sympy.Pow(_small_last(sympy.expand(p.base), shifts), p.exp, evaluate=False)
        for p in expr.atoms(sympy.Pow)
        if not p.exp.is_Integer or p.exp < 0
    }
    return expr.xreplace(bases)


def _small_last(base: sympy.Expr, small: Mapping[sympy.Symbol, object]) -> sympy.Expr:
    """Return a sum in which all other terms are added before those that may be tiny: (k − 1) + t.

    For an integer k they are exact; (k + t) − 1 would be 0.
    """
    tiny, others = base.as_independent(*small, as_Add=True)[::-1]
    return sympy.Add(tiny, others, evaluate=False) if base.is_Add and others else base


def _divided_by(expr: sympy.Expr, tilt: sympy.Rational, symbol: sympy.Symbol) -> sympy.Expr:
    """Return expr·e^{−tilt·x}, exponentials multiplied out; (x − 100)²² keeps its digits."""
    powers = [p for p in expr.atoms(sympy.Pow) if p.base.is_polynomial(symbol)]
    kept = {p: sympy.Dummy(real=True) for p in powers}
    found = sympy.expand(expr.xreplace(kept) * sympy.exp(-tilt * symbol))
    return found.xreplace({dummy: p for p, dummy in kept.items()})


def _tilt(cell: Cell, left: float, right: float) -> sympy.Rational:
    """Return the exponential growth if it is without bounds and on one side only.

    As the fraction that is meant, so that it cancels in every term: e^{x/3}·e^{−x/3}.
    """
    left = left if cell.operator.low.is_infinite else 0.0
    right = right if cell.operator.high.is_infinite else 0.0
    rate = right if right and not left else -left if left and not right else 0.0
    return sympy.Rational(Fraction(rate).limit_denominator(_DENOMINATOR))


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


def _degree(expr: sympy.Expr, symbol: sympy.Symbol) -> float:
    """Return how fast an expression grows as a power; Laguerre series oscillate up to 4k."""
    series = max((4.0 * int(e.args[0]) for e in expr.atoms(LaguerreExtension)), default=0.0)
    return max(series, *(growth(expr, symbol, direction).power for direction in (-1, 1)))


def _probability(noise: Noise, side: str, low: float, high: float) -> float:
    """Return the probability of a branch; z = low, high are its ends."""
    below = float(noise.cdf(low)) if math.isfinite(low) else 0.0
    if noise.symmetric:
        above = float(noise.cdf(-high)) if math.isfinite(high) else 0.0
    else:
        above = 1.0 - float(noise.cdf(high - noise.lattice)) if math.isfinite(high) else 0.0
    return {"below": below, "above": above, "inside": 1.0 - below - above}[side]


def _tensor(
    expr: sympy.Expr, symbols: Sequence[sympy.Symbol], rules: Sequence[Rule], truth: Truth
) -> Iterator[tuple[Floats, Floats]]:
    """Yield values and weights on the product of the rules, slab by slab."""
    fixed = expr.free_symbols - set(symbols)
    constants = {s: np.array([float(truth[s])]) for s in sorted(fixed, key=str)}
    shape = [len(r.nodes) for r in rules]
    count = math.prod(shape)
    for start in range(0, count, _SLAB):
        places = np.unravel_index(np.arange(start, min(start + _SLAB, count)), shape)
        columns = {s: r.nodes[i] for s, r, i in zip(symbols, rules, places, strict=True)}
        weights = np.prod([r.weights[i] for r, i in zip(rules, places, strict=True)], axis=0)
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
