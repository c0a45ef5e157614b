"""Exact expectations over the noise: closed forms where there are, one rule of nodes elsewhere.

E φ(q + Z) for φ given region by region. A statistic on which φ depends as an exponential
polynomial is integrated symbolically by M(D), the forward twin of the inverse. All others take the
product of one rule each: Gauss panels that break at q and at the bounds, or sums over the integers.
Panels are refined until two levels agree.
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
from trueup.inverse import spectral
from trueup.inverse.growth import Growth
from trueup.inverse.jets import derivative
from trueup.inverse.spectral import Complex, Frequencies
from trueup.kernels.blocks import evaluate
from trueup.noise.extension import LaguerreExtension, orthogonal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.inverse.component import Cell, Region
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

_MOST_INTEGERS = 20_000_000  # of one sum: beyond, it takes gigabytes and many seconds
DEPTH = 42.0  # e^-42 is below the last bit of a double
_SHALLOW = 30.0
"""What e^−30 leaves out of sums over three statistics and more is 1e-13 of them."""
_LOWEST = -700.0  # the logarithm of the density at which doubles end, nearly
_STEEPEST = 4000.0  # power that stands for larger ones
_GAUSS = np.polynomial.legendre.leggauss(16)
_DEEPEST = 96  # 5⁻⁹⁶ of a panel is next to nothing of any integrable pole


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
        terms = []
        for j, moment in enumerate(moments):
            weight = (decimal(_exact(moment)) / factorial(j)).as_real_imag()
            re, im = (derivative(p, symbol, j) for p in mode)
            terms.append(spectral.times(weight, (re, im)))
        result[frequency] = spectral.total(terms)
    return spectral.realise(result, [symbol])


def _exact(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression in which numbers of more digits than a double keep them."""
    return expr.xreplace({x: sympy.Rational(x) for x in expr.atoms(sympy.Float) if x._prec > 53})


def too_large(statistics: int) -> TrueupError:
    """Return the refusal of a product of rules with too many nodes."""
    return TrueupError(
        f"an exact expectation over {statistics} statistics that do not separate is too large "
        "to compute",
        "look at fewer cells, or simulate with noise.sample",
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
        self.exprs = {region: pieces(region) for region in regions}
        for symbol, noise in others.items():
            if not self._integrated(symbol, noise):
                raise TrueupError(
                    f"the expectation over {symbol.name} needs moments of {noise!r} that do not "
                    "exist or are not known",
                    "give more moments, or ask at a noise with lighter tails",
                )
        self._long = any(is_long(e, _LONG) for e in self.exprs.values())
        self.left = [(i, cell) for i, cell in enumerate(cells) if not self._close(cell)]
        series = {e for expr in self.exprs.values() for e in expr.atoms(LaguerreExtension)}
        # beyond a bound a series wiggles as far out as this power of the distance matters
        self._beyond = Growth(0.0, max((4.0 * int(e.args[0]) for e in series), default=0.0))

    def _close(self, cell: Cell) -> bool:
        """Integrate a cell symbolically, if it has one branch and φ is of the right kind.

        A known number is what it is in every φ.
        """
        if cell.noise.known:
            return True
        if len(cell.operator.branches) > 1 or self._long:
            return False
        return self._integrated(cell.symbol, cell.noise)

    def _integrated(self, symbol: sympy.Symbol, noise: Noise) -> bool:
        """Integrate a statistic symbolically, or tell that there is no closed form."""
        moved = {region: push_forward(e, symbol, noise) for region, e in self.exprs.items()}
        if any(e is None for e in moved.values()):
            return False
        self.exprs = moved
        return True

    @property
    def closed(self) -> sympy.Expr | None:
        """E φ as one formula, None if nodes are needed."""
        return None if self.left else next(iter(self.exprs.values()))

    def at(self, truth: Truth) -> float:
        """Return E φ at a true value; refuse one of which rounding leaves nothing."""
        if self.closed is not None:
            return exactly(self.closed, truth)
        value, size, typical = self._settled(truth)
        if size * _ROUNDING > _LOST * max(abs(value), typical, _NOTHING):
            raise TrueupError(
                f"the expectation at {_shown(truth)} is lost in rounding: terms of size "
                f"{size:.0g} far from the true value cancel in it",
                "the formula outgrows the noise; give narrower bounds, or less noise",
            )
        return value

    def _settled(self, truth: Truth) -> Sums:
        """Return sums over panels so narrow that they do not change any more."""
        found = self._summed(truth, 0)
        if all(cell.noise.lattice for _, cell in self.left):
            return found
        gap = math.inf
        for level in range(1, _LEVELS):
            last, found = found, self._summed(truth, level)
            gap = abs(found.value - last.value) / max(found.size, _NOTHING)
            settled = gap <= _TOLERANCE and (level >= _SURE or len(self.left) > 1)
            if settled or not math.isfinite(found.value):
                return found
        if not gap <= _ACCEPTED:
            raise TrueupError(
                f"the expectation at {_shown(truth)} did not settle: {found.value:g}, with a "
                f"relative error of {gap:.1g}",
                "the formula oscillates too fast for the noise, or its curvature is infinite "
                "at a point; simulate with noise.sample instead",
            )
        return found

    def _summed(self, truth: Truth, level: int) -> Sums:
        """Return E φ with panels of the given level."""
        rules = {
            (i, branch): self._rule(cell, branch, truth[cell.symbol], level)
            for i, cell in self.left
            for branch in range(len(cell.operator.branches))
        }
        whole = [cell.symbol for _, cell in self.left if cell.noise.lattice]
        total = np.zeros(3)
        for region, raw in self.exprs.items():
            expr = self._orthogonal(region, raw, truth)
            own = {cell.symbol: rules[i, region[i]] for i, cell in self.left}
            for symbol in own.keys() - expr.free_symbols:
                own[symbol] = Rule(np.zeros(1), own[symbol].weights.sum(keepdims=True))
            total += _sums(*_merged(expr, own, whole), truth)
        value, size, root = map(float, total)
        return Sums(value, size, root * root)

    def _orthogonal(self, region: Region, expr: sympy.Expr, truth: Truth) -> sympy.Expr:
        """Integrate Laguerre series beyond the bounds by their orthogonality.

        For a true value inside the bounds, x beyond one of them is exponential whatever q is.
        """
        for i, cell in self.left:
            side, q = cell.operator.branches[region[i]].side, truth[cell.symbol]
            if side != "inside" and cell.operator.low <= q <= cell.operator.high:
                expr = orthogonal(expr, cell.symbol)
        return expr

    def _rule(self, cell: Cell, branch: int, q: float, level: int) -> Rule:
        """Return a rule for x = q + Z restricted to one branch, as far as the noise matters."""
        noise, operator = cell.noise, cell.operator
        low, high = map(float, operator.starts)
        side = operator.branches[branch].side
        depth = DEPTH if len(self.left) < 3 else _SHALLOW
        reaches = []
        bounds = q - float(operator.low), float(operator.high) - q
        for sign, size, end in zip((-1, 1), self.growths[cell.symbol], bounds, strict=True):
            own = reach(noise, sign, size, end, depth)
            reaches.append(max(own, reach(noise, sign, self._beyond, math.inf, depth)))
        start = max({"inside": low, "above": high}.get(side, -math.inf), q - reaches[0])
        stop = min({"inside": high, "below": low}.get(side, math.inf), q + reaches[1])
        if noise.lattice:
            inside = side == "inside"
            first, last = start + (inside and start == low), stop - (inside and stop == high)
            return integers(noise, q, first, last)
        marks = (q, low, high, *self.breaks.get(cell.symbol, ()))
        return panels(noise, q, (start, stop), marks, level, operator.jumps)


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


# -- nodes and weights for x = q + Z ---------------------------------------------------------------


class Rule(NamedTuple):
    """Nodes and weights: the integral of φ is ``weights @ φ(nodes)``."""

    nodes: Floats
    weights: Floats


class Sums(NamedTuple):
    """E φ, E |φ| and a typical |φ|: (E √|φ|)²."""

    value: float
    size: float
    typical: float


def _merged(
    expr: sympy.Expr, rules: dict[sympy.Symbol, Rule], whole: Sequence[sympy.Symbol]
) -> tuple[sympy.Expr, dict[sympy.Symbol, Rule]]:
    """Sum over a + b at once where φ depends on these two integers through their sum alone."""
    for a, b in combinations(whole, 2):
        if not {a, b} <= rules.keys() & expr.free_symbols:
            continue
        moved = expr.xreplace({a: a - b})
        one, other = rules[a], rules[b]
        if b not in moved.free_symbols and len(one.nodes) and len(other.nodes):
            expr, first = moved, one.nodes[0] + other.nodes[0]
            weights = np.convolve(one.weights, other.weights)
            rules[a] = Rule(first + np.arange(float(len(weights))), weights)
            del rules[b]
    return expr, rules


def _sums(expr: sympy.Expr, rules: Mapping[sympy.Symbol, Rule], truth: Truth) -> Floats:
    """Return the sums of φ, |φ| and √|φ| over the product of the rules, slab by slab."""
    shape = [len(r.nodes) for r in rules.values()]
    count = math.prod(shape)
    if count > _SLAB and count * parts_of(expr, _MOST_WORK // count) > _MOST_WORK:
        raise too_large(len(rules))
    fixed = sorted(expr.free_symbols - set(rules), key=str)
    constants = {s: np.array([float(truth[s])]) for s in fixed}
    total = np.zeros(3)
    for start in range(0, count, _SLAB):
        places = np.unravel_index(np.arange(start, min(start + _SLAB, count)), shape)
        pairs = list(zip(rules.values(), places, strict=True))
        columns = {s: r.nodes[i] for s, (r, i) in zip(rules, pairs, strict=True)}
        weights = np.prod([r.weights[i] for r, i in pairs], axis=0)
        value = evaluate(expr, columns | constants)
        value[weights == 0] = 0.0  # where the noise has no mass left in a double
        size = np.abs(value)
        total += [part @ weights for part in (value, size, np.sqrt(size))]
    return total


def unit(noise: Noise) -> float:
    """Return the distance of the quartiles."""
    return float(noise.quantile(0.75) - noise.quantile(0.25))


def reach(noise: Noise, side: int, size: Growth, end: float, depth: float = DEPTH) -> float:
    """Return how far on a side the noise matters to what grows like e^{rate·x}·x^power.

    It grows as far as the end, a distance, and is constant beyond. Where the product falls below
    e^{−depth} of its top, nothing is left. Noise that ends is followed to its end, and tails that
    fall like a power to their quantiles.
    """
    last = side * float(noise.quantile(float(side > 0)))
    if math.isfinite(last):
        return max(last, 0.0)
    if not noise.mgf_radius:
        low, high = float(noise.quantile(1e-25)), float(noise.quantile(1 - 1e-16))
        return max(-low, high)
    distance = max(unit(noise), float(noise.lattice)) * np.exp2(np.arange(-3.0, 60.0, 0.25))
    distance = np.ceil(distance) if noise.lattice else distance
    grown = np.minimum(distance, max(end, 0.0))
    with np.errstate(all="ignore"):
        density = noise.log_density(side * distance)
        power = min(max(size.power, 0.0), _STEEPEST)
        height = density + max(size.rate, 0.0) * grown + power * np.log1p(grown)
    top = height[np.isfinite(height)].max(initial=-np.inf)
    last = int(np.flatnonzero(height > top - depth).max(initial=0))
    if density[last] < _LOWEST and size.rate > 0:
        raise TrueupError(
            f"the formula grows almost as fast as the tail of {noise!r} carries: an exact "
            "expectation would need densities that are no doubles",
            "bound the domain, use less noise, or simulate with noise.sample",
        )
    return float(distance[min(last + 1, len(distance) - 1)])


def integers(noise: Noise, q: float, start: float, stop: float) -> Rule:
    """Return the integers from start to stop with their probabilities."""
    first, last = math.ceil(start), math.floor(stop)
    if last - first > _MOST_INTEGERS:
        raise TrueupError(
            f"{noise!r} is too wide for an exact sum", "Laplace of the same scale is close to it"
        )
    nodes = np.arange(first, last + 1, dtype=float)
    return Rule(nodes, np.exp(noise.log_density(nodes - q)))


def panels(
    noise: Noise,
    q: float,
    ends: tuple[float, float],
    marks: Iterable[float],
    level: int = 0,
    jumps: float | None = None,
) -> Rule:
    """Return Gauss panels between two ends that break at marks and shrink fivefold towards them.

    Every level halves the panels and deepens the shrinking; under a heavy tail they widen with the
    distance from the marks. What jumps at all k + ``jumps`` and is smooth between has panels that
    break there, without shrinking.
    """
    start, stop = ends
    if math.nextafter(start, stop) >= stop:  # no double lies between
        return Rule(np.empty(0), np.empty(0))
    breaks = np.asarray(noise.breaks(max(stop - q, q - start))) + q
    inner = [start, *(float(m) for m in (*marks, *breaks) if start < m < stop), stop]
    width = unit(noise) * 0.5**level
    steps = width * 0.2 ** np.arange(min(6 << level, _DEEPEST) + 1.0)
    flat = np.array(ends)
    if jumps is not None:
        parts = math.ceil(2 / width)
        first, last = math.floor(start - jumps), math.ceil(stop - jumps)
        flat = np.arange(first * parts, last * parts + 1) / parts + jumps
        steps = np.zeros(1)
    elif noise.mgf_radius:
        flat = np.linspace(start, stop, 1 + math.ceil((stop - start) / width))
    else:
        growth = np.arange(1.0, 1 + max(1, math.ceil(math.log((stop - start) / width, 1.5))))
        steps = np.concatenate([steps, width * 1.5**growth])
    beside = np.add.outer(inner, np.concatenate([-steps, [0.0], steps])).ravel()
    edges = np.unique(np.clip(np.concatenate([flat, beside]), start, stop))
    return _gauss(noise, q, edges, inner)


def _gauss(noise: Noise, q: float, edges: Floats, marks: Sequence[float]) -> Rule:
    """Return nodes on panels, with the density of x = q + Z in their weights.

    Nodes that rounding has put on a mark, where φ may be 0/0, are moved beside it.
    """
    points, weights = _GAUSS
    half = np.diff(edges)[:, None] / 2
    into, left = half * (1 + points), edges[:-1, None]
    nodes = left + into
    for near, inwards in ((edges[:-1], np.inf), (edges[1:], -np.inf)):
        on = (nodes == near[:, None]) & np.isin(near, marks)[:, None]
        nodes[on] = np.nextafter(nodes[on], inwards)
    # x − q to all digits: where q is large beside the noise, a double x has lost them
    density = np.exp(noise.log_density((left - q + into).ravel()))
    return Rule(nodes.ravel(), (half * weights).ravel() * density)
