"""Uniform noise on an interval of width w: every function with a slope, by sums over midpoints.

E g(q + Z) = f(q) means g(x + w) − g(x) = w·f′(x + w/2): g is known up to a function of period w and
mean zero. For any distribution function Π on the domain, with m over its points x + (j − ½)·w,

    g(x) = ∫ f dΠ + w·Σ_{m < x} f′(m)·Π(m) − w·Σ_{m > x} f′(m)·(1 − Π(m))

is unbiased (integrate by parts), and of least variance averaged over Π: given x mod w its mean is
∫ f dΠ, whatever x mod w is, so that no function of period w can be taken off. On a bounded domain Π
is flat (:class:`Flat`). On a half-line it is the limit of priors that move to infinity
(:class:`Fading`): the slopes beyond x are summed, the far ones by the series (1/M)(D) f,

    g(x) = Σⱼ ν₂ⱼ·f⁽²ʲ⁾(X)/(2j)! − w·Σ_{i<N} f′(x + (i + ½)·w),     X = x + N·w,

the trigamma function for 1/q. Kinks of f do no harm; f′ is never read outside the domain.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from itertools import islice
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.exact import symbolic
from trueup.formula.nodes import parts_of
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.formula.unkinked import without_kinks
from trueup.inverse import quadrature
from trueup.inverse.cases import beside
from trueup.inverse.existence import KINDS, refusal_at
from trueup.inverse.high_derivatives import derivatives
from trueup.inverse.jets import derivative
from trueup.inverse.on_values import OnValues
from trueup.inverse.regularity import singularities
from trueup.inverse.removable import Steady, steadied
from trueup.inverse.spectral import reciprocal
from trueup.kernels.digits import DigitsProgram
from trueup.kernels.evaluate import evaluate, roughly
from trueup.kernels.tape import lower
from trueup.noise.operator import Operator
from trueup.noise.uniform import Uniform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST = 64
"""Midpoints in one sum: each has its own slope in the formula."""

_LONGEST = 12_000
"""Parts of slopes in the covariances of all functions: sympy writes a thousand in a second."""

_HALF = sympy.Rational(1, 2)
_ORDERS = (0, 1, 2, 4, 6, 8, 10, 12)
"""How many terms of the series are tried; its terms fall until about π·X/w of them."""

_SETTLED = 1e-17  # of f: the variance, some hundredth of f², keeps its digits too
_CLOSE, _CLOSE_ENOUGH, _LEVELS = 1e-15, 1e-11, 6  # of mean values, relative to mean sizes;
# a square of what is left of a difference has no more digits
_FEW_LEVELS = 3  # some thousand values with all their digits: tenths of a second
_PLAIN = 10**6  # fractions with a larger denominator are doubles in disguise


def operator(noise: Uniform, domain: Interval, functions: Sequence[sympy.Expr], n: Any) -> Operator:
    """Return the inverse of uniform noise for functions that it was found to exist for."""
    low, high = domain.bounds
    for h in functions:
        _check(noise, domain, h, n)
    w, ends = _exact(noise.width), (symbolic(domain.low), symbolic(domain.high))
    edges = (ends[0] - w / 2, ends[1] + w / 2)
    inside: OnValues
    if low is not None and high is not None:
        flat = inside = Flat("inside", None, {}, w, _exact(low), _exact(high))
        if flat.last > MOST:
            raise _too_many(noise, domain, functions, flat.last)
        theorem = _THEOREM + "the one of least variance under a flat prior on the domain"
    elif low is not None or high is not None:
        side, bound = (1, low) if low is not None else (-1, high)
        fading = inside = Fading("inside", None, {}, w, _exact(bound), side)
        theorem = _THEOREM + "the one that fades, of least variance for true values far away"
        for h in functions:
            fading.settled((h,), n)
    else:
        raise _endless(noise, functions)
    branches: list[OnValues] = [inside]
    branches += [Beyond("below", edges[0], {}, inside)] if low is not None else []
    branches += [Beyond("above", edges[1], {}, inside)] if high is not None else []
    return Operator(tuple(branches), theorem, *ends, edges=edges)


_THEOREM = (
    "uniform noise of width w: g(x + w) − g(x) = w·f′(x + w/2), a sum of slopes at midpoints; of "
    "all solutions, which differ by functions of period w and mean 0, "
)


def steady(h: sympy.Expr, n: sympy.Symbol, domain: Interval) -> sympy.Expr:
    """Return a function with power series around its removable points."""
    return _steady(h, n, domain).f


def _steady(h: sympy.Expr, n: sympy.Symbol, domain: Interval) -> Steady:
    return Steady(h, ()) if h.has(Opaque) else steadied(h, n, domain)


def _check(noise: Uniform, domain: Interval, h: sympy.Expr, n: sympy.Symbol) -> None:
    """Refuse jumps, poles and points: an expectation under uniform noise is continuous."""
    for e in h.atoms(Opaque):
        if e.derivative is None:
            raise TrueupError(
                f"{e} is known by its values only, but {noise!r} needs its slope",
                "write it as a formula, or give derivatives=(f1, f2)",
            )
    proves_nothing = KINDS if domain.lattice else ("steep", "rough")  # integers are far apart
    for found in singularities(h, n, Interval(*domain.bounds), 1):
        if found.kind not in ("mild", "kink", "removable"):
            raise refusal_at(h, n, domain, found, unless=proves_nothing)


def _exact(value: Any) -> sympy.Rational:
    return sympy.Rational(*value.as_integer_ratio())


def _in_doubles(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression with doubles for the fractions that stand for them."""
    fractions = [r for r in expr.atoms(sympy.Rational) if r.q > _PLAIN]
    return at(expr, {r: sympy.Float(r) for r in fractions})


class _Slope(NamedTuple):
    """A function without kinks, and its slope."""

    h: sympy.Expr
    slope: sympy.Expr


@lru_cache(maxsize=256)
def _slope(h: sympy.Expr, n: sympy.Symbol) -> _Slope:
    plain = without_kinks(h)
    return _Slope(plain, derivative(plain, n, 1))


def _kinks(h: sympy.Expr, n: sympy.Symbol, domain: Interval) -> list[float]:
    """Return where f′ may jump, inside the domain."""
    return [found.point for found in singularities(h, n, domain, 1)]


@dataclasses.dataclass(frozen=True, eq=False)
class Beyond(OnValues):
    """Where no true value in the domain can bring x: the constant that continues the inside."""

    inside: OnValues | None = None

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h] at the edge."""
        assert self.inside is not None  # noqa: S101
        return self._at_edge(self.inside.value(h, n), n)

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h]·T[l] − T[h·l] at the edge."""
        assert self.inside is not None  # noqa: S101
        return self._at_edge(self.inside.covariance(h, other, n), n)

    def check_work(self, functions: Sequence[sympy.Expr], n: sympy.Symbol) -> None:
        """Refuse what the inside refuses."""
        assert self.inside is not None  # noqa: S101
        self.inside.check_work(functions, n)

    def _at_edge(self, expr: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        edge = float(self.at or 0)
        return sympy.Float(evaluate(expr, {n: np.array([edge])})[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Flat(OnValues):
    """The inverse on [L, U] under a flat prior.

    With y = (x − L)/w + ½ = k₀ + t the midpoints are mₖ = L + (k + t)·w, beyond x from k₀ on.
    """

    words: ClassVar[str] = "a sum over the slopes of f at midpoints"
    width: sympy.Rational = sympy.S.One
    low: sympy.Rational = sympy.S.Zero
    high: sympy.Rational = sympy.S.One

    @property
    def last(self) -> int:
        """The largest k that occurs."""
        return int(self._length)

    @property
    def _length(self) -> sympy.Rational:
        return (self.high - self.low) / self.width

    @property
    def _domain(self) -> Interval:
        return Interval(float(self.low), float(self.high))

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return h̄ + w·Σ h′(mₖ)·(Π(mₖ) − [mₖ > x])."""
        return _in_doubles(sympy.Float(self._mean(h, n)) + self._sum(_slope(h, n).slope, n))

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h]·T[l] − T[h·l], of functions less their means: large terms do not cancel."""
        (left, slope), (right, inclination) = _slope(h, n), _slope(other, n)
        if slope == 0 or inclination == 0:
            return sympy.S.Zero
        left, right = (e - sympy.Float(self._mean(e, n)) for e in (left, right))
        both = 2 * slope * left if h == other else slope * right + inclination * left
        sums = [self._sum(e, n) for e in (slope, inclination, both)]
        mean = sympy.Float(self._mean(left * right, n))
        return _in_doubles(sums[0] * sums[1] - mean - sums[2])

    def breaks(self, h: sympy.Expr, n: sympy.Symbol) -> tuple[float, ...]:
        """Return where the estimator is not smooth: where a midpoint meets a bound or a kink."""
        points = [float(self.low), float(self.high), *_kinks(h, n, self._domain)]
        steps = (np.arange(-self.last - 2, self.last + 3) + 0.5) * float(self.width)
        return tuple(np.unique(np.add.outer(points, steps)).tolist())

    def _sum(self, slope: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return w·Σ h′(mₖ)·(Π(mₖ) − [mₖ > x])."""
        if slope == 0:
            return sympy.S.Zero
        w, length = self.width, self._length
        y = (n - self.low) / w + _HALF
        first = sympy.Max(0, sympy.floor(y))
        t = sympy.Max(0, y - first)
        terms = []
        for k in range(self.last + 1):
            weight = (k + t) / length - sympy.Piecewise((1, y < k + 1), (0, True))
            m = self.low + (k + t) * w
            if k < self.last:
                terms.append(at(slope, {n: m}) * weight)
            else:  # the last midpoint may lie beyond U
                inside = at(slope, {n: sympy.Min(m, self.high)}) * weight
                terms.append(sympy.Piecewise((inside, t <= length - k), (0, True)))
        return w * sympy.Add(*terms)

    def _mean(self, h: sympy.Expr, n: sympy.Symbol) -> float:
        """Return the mean of a function over the domain."""
        return mean(h, n, self._domain)


@lru_cache(maxsize=256)
def mean(h: sympy.Expr, n: sympy.Symbol, domain: Interval) -> float:
    """Return the mean of a function over an interval, to the last digits.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> mean(1 / q, q, Interval(1, 2))
    0.6931471805599453
    """
    if n not in h.free_symbols:
        return float(h)
    low, high = float(domain.low), float(domain.high)
    flat, middle, marks = Uniform(high - low), (low + high) / 2, _kinks(h, n, domain)
    for values, levels in ((_doubles, _LEVELS), (_digits, _FEW_LEVELS)):
        value, gap, size = math.nan, math.inf, 0.0
        for level in range(levels):
            rule = quadrature.panels(flat, middle, low, high, marks, level)
            terms = values(h, n, rule.nodes) * rule.weights
            total = math.fsum(rule.weights)  # 0 where no double lies between the bounds
            if not (total and np.isfinite(terms).all()):
                break
            size = math.fsum(np.abs(terms))
            refined = math.fsum(terms) / total
            value, gap = refined, abs(refined - value)
            if gap <= _CLOSE * size:
                return value
        if gap <= _CLOSE_ENOUGH * size:
            return value
    raise NoUnbiasedEstimator(
        f"no unbiased estimator of {text(h)} on {domain} was found: its mean over the domain could "
        "not be computed",
        "bound the domain further, or write the formula more simply",
        proved=False,
    )


def _doubles(h: sympy.Expr, n: sympy.Symbol, x: Floats) -> Floats:
    return evaluate(h, {n: x})


def _digits(h: sympy.Expr, n: sympy.Symbol, x: Floats) -> Floats:
    """Return values with all the digits of a double, where terms cancel: f less its mean."""
    program = DigitsProgram(lower([h], (n,), exact=True))
    first = program([float(x[0])]) if len(x) and not h.has(Opaque) else math.nan
    if math.isnan(first):
        return np.full(len(x), math.nan)
    return np.array([first, *(program([v]) for v in x[1:].tolist())])


class Settled(NamedTuple):
    """How many slopes are summed, and how many terms of the series take the rest."""

    steps: int
    order: int


@dataclasses.dataclass(frozen=True, eq=False)
class Fading(OnValues):
    """The inverse on [L, ∞), or, with outward −1, on (−∞, U], by the slopes beyond x alone."""

    words: ClassVar[str] = "a sum over the slopes of f at midpoints, and a series"
    width: sympy.Rational = sympy.S.One
    bound: sympy.Rational = sympy.S.Zero
    outward: int = 1
    _splits: dict[tuple[sympy.Expr, ...], Settled] = dataclasses.field(
        default_factory=dict, repr=False
    )

    def value(self, h: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return S(X) − w·Σ h′(x + (i + ½)·w)."""
        steps, order = self.settled((h,), n)
        slope = _slope(self._turned(h, n), n).slope
        series = self._series(self._tail(h, n), n, order)
        g = self._far(series, n, steps) - self.width * self._sum(slope, n, steps)
        return _in_doubles(self._turned(g, n))

    def covariance(self, h: sympy.Expr, other: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        """Return T[h]·T[l] − T[h·l], of functions less their values at X: f² does not occur."""
        if n not in h.free_symbols or n not in other.free_symbols:
            return sympy.S.Zero
        steps, order = self.settled((h, other), n)
        pair = [self._steps(e, n, steps, order) for e in ((h,) if h == other else (h, other))]
        (left, rises, falls), (right, climbs, drops) = pair[0], pair[-1]
        tails = self._tail(h, n), self._tail(other, n)
        far = self._far(self._product(tails[0], tails[1], n, order, inner=True), n, steps)
        crossed = [a * d + c * b for a, b, c, d in zip(rises, falls, climbs, drops, strict=True)]
        both = far - self.width * sympy.Add(*crossed)
        return _in_doubles(self._turned(left * right - both, n))

    def check_work(self, functions: Sequence[sympy.Expr], n: sympy.Symbol) -> None:
        """Refuse covariances of each with each whose slopes have too many parts."""
        own = [h for h in functions if n in h.free_symbols]
        slopes = [_slope(self._turned(h, n), n).slope for h in own]
        parts = sum(
            self.settled((h,), n).steps * parts_of(slope, _LONGEST)
            for h, slope in zip(own, slopes, strict=True)
        )
        if len(own) * parts > _LONGEST:
            raise TrueupError(
                f"the variance needs the covariances of {len(own)} sums of slopes, with {parts} "
                f"parts, each with each: {len(own) * parts} parts, more than {_LONGEST}, are too "
                "many to write down",
                "use sd(q) at plausible true values, which is exact, or bound the domain on both "
                "sides",
            )

    def breaks(self, h: sympy.Expr, n: sympy.Symbol) -> tuple[float, ...]:
        """Return where the estimator is not smooth: where a midpoint meets a kink."""
        points = _kinks(self._turned(h, n), n, self._domain)
        steps = (np.arange(self.settled((h,), n).steps + 1) + 0.5) * float(self.width)
        return tuple((self.outward * np.subtract.outer(points, steps)).ravel().tolist())

    def settled(self, functions: tuple[sympy.Expr, ...], n: sympy.Symbol) -> Settled:
        """Return how the sum is split for some functions, and for the product of two."""
        if functions not in self._splits:
            self._splits[functions] = _settled(self, functions, n)
        return self._splits[functions]

    @property
    def start(self) -> sympy.Rational:
        """The least x, with the half-line turned upwards."""
        return self.outward * self.bound - self.width / 2

    @property
    def _domain(self) -> Interval:
        return Interval(float(self.outward * self.bound), None)

    def _turned(self, expr: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
        return expr if self.outward > 0 else at(expr, {n: -n})

    def _far(self, expr: sympy.Expr, n: sympy.Symbol, steps: int) -> sympy.Expr:
        return at(expr, {n: n + steps * self.width}) if steps else expr

    def _sum(self, slope: sympy.Expr, n: sympy.Symbol, steps: int) -> sympy.Expr:
        return sympy.Add(*(at(slope, {n: m}) for m in self._midpoints(n, steps)))

    def _midpoints(self, n: sympy.Symbol, steps: int) -> Iterator[sympy.Expr]:
        return (n + (i + _HALF) * self.width for i in range(steps))

    def _steps(
        self, h: sympy.Expr, n: sympy.Symbol, steps: int, order: int
    ) -> tuple[sympy.Expr, list[sympy.Expr], list[sympy.Expr]]:
        """Return T[h] − h(X), all slopes h′(m), and all h(m) − h(X)."""
        plain, slope = _slope(self._turned(h, n), n)
        tail = self._tail(h, n)
        last = self._far(tail[0], n, steps)
        slopes = [at(slope, {n: m}) for m in self._midpoints(n, steps)]
        rises = [at(plain, {n: m}) - last for m in self._midpoints(n, steps)]
        if h.is_rational_function(n) and not h.atoms(sympy.Float):
            rises = [sympy.factor(e) for e in rises]
        moved = self._far(self._series(tail, n, order) - tail[0], n, steps)
        return moved - self.width * sympy.Add(*slopes), slopes, rises

    def _tail(self, h: sympy.Expr, n: sympy.Symbol) -> tuple[sympy.Expr, ...]:
        """Return the derivatives of the case of h that holds beyond all kinks."""
        return _derivatives(self._turned(h, n), n, self._domain)

    def _series(self, tail: Sequence[sympy.Expr], n: sympy.Symbol, order: int) -> sympy.Expr:
        """Return Σ_{j ≤ order} ν₂ⱼ·h⁽²ʲ⁾/(2j)!."""
        return sympy.Add(*(c * tail[2 * j] for j, c in enumerate(self._weights(order)) if c))

    def _product(
        self,
        left: Sequence[sympy.Expr],
        right: Sequence[sympy.Expr],
        n: sympy.Symbol,
        order: int,
        *,
        inner: bool = False,
    ) -> sympy.Expr:
        """Return the series of h·l by Leibniz' rule; ``inner`` leaves out h and l themselves."""
        a = int(inner)
        return sympy.Add(
            *(
                c * comb(2 * j, i) * left[i] * right[2 * j - i]
                for j, c in enumerate(self._weights(order))
                for i in range(a, 2 * j + 1 - a)
            )
        )

    def _weights(self, order: int) -> tuple[sympy.Expr, ...]:
        unit = reciprocal(Uniform(1), sympy.S.Zero, 2 * order)[::2]
        return tuple(c * self.width ** (2 * j) for j, c in enumerate(unit))

    def term(self, functions: Sequence[sympy.Expr], n: sympy.Symbol, j: int) -> sympy.Expr:
        """Return one term of the series, of one function or the product of two."""
        weight, left = self._weights(j)[j], self._tail(functions[0], n)
        if len(functions) == 1:
            return weight * left[2 * j]
        right = self._tail(functions[1], n)
        return weight * sympy.Add(
            *(comb(2 * j, i) * left[i] * right[2 * j - i] for i in range(2 * j + 1))
        )

    def defect(self, functions: Sequence[sympy.Expr], n: sympy.Symbol, order: int) -> sympy.Expr:
        """Return S(x + w) − S(x) − w·f′(x + w/2), f one function or the product of two."""
        tails = [self._tail(h, n) for h in functions]
        if len(tails) == 1:
            series, slope = self._series(tails[0], n, order), tails[0][1]
        else:
            series = self._product(tails[0], tails[1], n, order)
            slope = tails[0][1] * tails[1][0] + tails[0][0] * tails[1][1]
        step = at(series, {n: n + self.width}) - series
        return step - self.width * at(slope, {n: n + self.width / 2})


@lru_cache(maxsize=256)
def _derivatives(h: sympy.Expr, n: sympy.Symbol, domain: Interval) -> tuple[sympy.Expr, ...]:
    """Return h and its derivatives beyond all kinks, as long as they are short."""
    beyond = max([float(domain.low), *_kinks(h, n, domain)]) + 1.0
    tail = beside(without_kinks(h), {n: (_exact(beyond), 1)})
    return tuple(islice(derivatives(tail, n), 2 * _ORDERS[-1] + 3))


def _settled(branch: Fading, functions: tuple[sympy.Expr, ...], n: sympy.Symbol) -> Settled:
    """Return the least work with which the series is as good as exact, or refuse."""
    kinks = [k for h in functions for k in _kinks(branch._turned(h, n), n, branch._domain)]
    first = max([0.0, *((k - float(branch.start)) / float(branch.width) for k in kinks)])
    known = 0 if any(h.has(Opaque) for h in functions) else len(branch._tail(functions[0], n))
    known = min(known, len(branch._tail(functions[-1], n))) if known else 0
    several = [functions] if len(functions) == 1 else [functions[:1], functions[1:], functions]
    trials = [Trial(branch, some, n) for some in dict.fromkeys(several)]
    found = [
        Settled(max(t.least(order, math.ceil(first)) for t in trials), order)
        for order in _ORDERS
        if 2 * order + 2 < known and first <= MOST
    ]
    found = [split for split in found if split.steps <= MOST]
    for steps, order in sorted(found, key=lambda split: _work(branch, functions, n, *split))[
        :_TRIED
    ]:
        for more in (0, 1, 2, 4, 8):
            if steps + more <= MOST and all(t.fits(order, steps + more) for t in trials):
                return Settled(steps + more, order)
    raise _unsettled(functions)


def _work(
    branch: Fading, functions: Sequence[sympy.Expr], n: sympy.Symbol, steps: int, order: int
) -> int:
    """Return how long the formula becomes: slopes at midpoints, and derivatives in the series."""
    total = 0
    for h in functions:
        tail = branch._tail(h, n)
        parts = [sum(1 for _ in sympy.preorder_traversal(e)) for e in tail[: 2 * order + 1]]
        total += steps * len(functions) * parts[min(1, order)] + sum(parts) * len(functions)
    return total


_FROM_START = np.array([0, 0.3, 0.8, 2, 6, 20, 1e2, 1e4])
"""Where the series is tried, in widths from the least x on, unless f overflows or vanishes. Farther
out its terms only fall, below the range of doubles."""

_VANISHED = 1e-280
_TRIED = 3  # ways to split the sum, those with the fewest terms


class Trial:
    """One function, or the product of two, and how well its series is summed.

    The first term that the series S leaves out must be nothing beside f, and so must
    S(x + w) − S(x) − w·f′(x + w/2), which is computed with as many digits as it takes.
    """

    def __init__(self, branch: Fading, functions: Sequence[sympy.Expr], n: sympy.Symbol) -> None:
        self.branch, self.functions, self.n = branch, functions, n
        self.width, self.start = float(branch.width), float(branch.start)
        self.x = self.start + self.width * _FROM_START
        sizes = self._size()
        known = np.isfinite(sizes) & (sizes > _VANISHED)
        self.x, self.allowed = self.x[known], _SETTLED * sizes[known]

    def least(self, order: int, low: int) -> int:
        """Return after how many steps the next term is nothing, more than allowed if never."""
        high, term = MOST + 1, self.branch.term(self.functions, self.n, order + 1)
        while low < high:
            middle = (low + high) // 2
            values = np.abs(roughly(term, self.n, self.x + middle * self.width))
            settled = (values <= self.allowed) | ~np.isfinite(values)  # those are for fits
            low, high = (low, middle) if settled.all() else (middle + 1, high)
        return low

    def fits(self, order: int, steps: int) -> bool:
        """Whether the series makes the step that it should, beyond so many steps."""
        if not self.branch.term(self.functions, self.n, order + 1):  # a polynomial: it is exact
            return True
        defect = self.branch.defect(self.functions, self.n, order)
        program = DigitsProgram(lower([defect], (self.n,), exact=True))
        far = self.x + steps * self.width
        found = np.array([abs(program([place])) for place in far.tolist()])
        return bool((found <= self.allowed).all())

    def _size(self) -> Floats:
        """Return |f| + w·|f′| a little beyond x."""
        pairs = [_slope(self.branch._turned(h, self.n), self.n) for h in self.functions]
        h, slope = pairs[0]
        if len(pairs) > 1:
            h, slope = h * pairs[1].h, slope * pairs[1].h + h * pairs[1].slope
        places = [self.x + u * self.width for u in _PLACES]
        sizes: Floats = np.max(
            [
                np.abs(evaluate(h, {self.n: x})) + self.width * np.abs(evaluate(slope, {self.n: x}))
                for x in places
            ],
            axis=0,
        )
        return sizes


_PLACES = (0.5, 0.8, 1.1, 1.5)  # in widths beyond x: f and f′ do not vanish at all of them


def _too_many(
    noise: Uniform, domain: Interval, functions: Sequence[sympy.Expr], last: int
) -> NoUnbiasedEstimator:
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {_longest(functions)} under {noise!r} on {domain} was found: "
        f"the domain is {last} widths of the noise long, and at most {MOST} slopes are summed",
        "leave one side of the domain open, or accept a small bias: nearly_unbiased(f, noise, "
        "domain, max_bias=...)",
        proved=False,
    )


def _endless(noise: Uniform, functions: Sequence[sympy.Expr]) -> NoUnbiasedEstimator:
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {_longest(functions)} was found under {noise!r}: it is not a "
        "sum of terms q^k·e^(c·q), and the domain has no end",
        "bound the domain on one side at least, or accept a small bias: "
        "nearly_unbiased(f, noise, domain, max_bias=...)",
        proved=False,
    )


def _unsettled(functions: Sequence[sympy.Expr]) -> TrueupError:
    if len(functions) > 1:
        return TrueupError(
            f"no unbiased estimate of the variance is known: the slopes of the square of "
            f"{_longest(functions)} could not be summed with {MOST} terms and a series",
            "use sd(q) at plausible true values, which is exact, or bound the domain on both sides",
        )
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {_longest(functions)} was found under uniform noise on a "
        f"half-line: its slopes could not be summed with {MOST} terms and a series",
        "bound the domain on both sides, or accept a small bias: nearly_unbiased(f, noise, domain, "
        "max_bias=...)",
        proved=False,
    )


def _longest(functions: Sequence[sympy.Expr]) -> str:
    return text(max(functions, key=lambda h: len(str(h))))
