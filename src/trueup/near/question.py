"""What is asked of one statistic: f, noise, domain, how much bias, and what weighs the variance.

The bias allowed is given, or follows from the number of cells whose estimates will be averaged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from numpy.typing import NDArray

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.exact import number
from trueup.formula.opaque import Opaque
from trueup.inverse.jets import derivative
from trueup.inverse.lattice_inverse import prior_name
from trueup.inverse.signs import inside
from trueup.inverse.smooth import breaks
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from trueup.noise.base import Noise

Floats = NDArray[np.float64]

KINKED = (
    Opaque,
    sympy.Abs,
    sympy.Min,
    sympy.Max,
    sympy.Piecewise,
    sympy.sign,
    sympy.floor,
    sympy.ceiling,
)


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is asked of the bias: a bound on it, or of how many cells the average should be best.

    ``relative`` None stands for what is usual: an absolute bias if a bound is given; for ``cells``
    one that is relative to |f| where f is nowhere zero.
    """

    max_bias: float | None
    cells: float | None
    relative: bool | None
    prior: Any


@dataclasses.dataclass(frozen=True)
class Question:
    """Minimise the prior-averaged variance subject to |E g(q + Z) − f(q)| ≤ τ(q) on the domain.

    τ(q) is ``max_bias``, or ``max_bias``·|f(q)| if ``relative``; then the variance is relative to
    f² too. ``beside`` says that f is multiplied by a statistic with noise of its own.

    With ``cells`` = m there is no such bound: the prior-averaged bias² + variance/m is minimised,
    the mean squared error of an average of m cells of one size. ``max_bias`` then only says how
    accurate the series has to be.
    """

    f: sympy.Expr
    symbol: sympy.Symbol
    noise: Noise
    domain: Interval
    max_bias: float
    relative: bool
    prior: Prior
    beside: bool = False
    cells: float | None = None

    @property
    def low(self) -> float:
        """The lower bound of the domain."""
        return float(self.domain.low)

    @property
    def high(self) -> float:
        """The upper bound of the domain."""
        return float(self.domain.high)

    @property
    def whole(self) -> bool:
        """Whether the true value is an integer."""
        return self.noise.lattice or self.domain.lattice

    @cached_property
    def smooth(self) -> bool:
        """Whether f is a formula without kinks and jumps."""
        return not self.f.has(*KINKED)

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """The points of the domain at which f is not smooth."""
        if self.smooth or self.f.has(Opaque):
            return ()
        found = breaks(self.f, self.symbol, {self.symbol: Interval(*self.domain.bounds)})
        return tuple(sorted({s.point for s in found}))

    def truth(self, q: Floats) -> Floats:
        """Return f at true values."""
        return evaluate(self.f, {self.symbol: np.atleast_1d(np.asarray(q, float))})

    def size(self, q: Floats) -> Floats:
        """Return what bias and standard deviation are measured in: |f(q)|, or 1."""
        return np.abs(self.truth(q)) if self.relative else np.ones(len(q))

    def noise_beside(self, q: Floats) -> Floats:
        """Return the relative variance of what f is multiplied by, as far as it can be guessed.

        It is not known: s in s/n may be of any size. It is taken to be as noisy, relative to
        itself, as the delta method says f is: σ²·(f′/f)².
        """
        if not (self.beside and self.smooth):
            return np.zeros(len(q))
        slope = evaluate(derivative(self.f, self.symbol, 1), {self.symbol: np.asarray(q, float)})
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(self.noise.variance) * (slope / self.truth(q)) ** 2
        return np.where(np.isfinite(found), found, 0.0)


# -- what the variance is averaged over ------------------------------------------------------------


_HINT = (
    "give 'uniform', 'log-uniform' (a positive domain), a function of the true value, or one "
    "weight for each integer of the domain, in order or as {q: weight}"
)


@dataclasses.dataclass(frozen=True)
class Prior:
    """A weight for every true value, up to a factor."""

    name: str
    weight: Callable[[Floats], Any]

    def __call__(self, q: Floats) -> Floats:
        """Return the weights at true values, not negative and not all zero."""
        weights = np.asarray(self.weight(q), float)
        if weights.shape != q.shape:
            weights = np.array([float(self.weight(value)) for value in q])
        if not np.isfinite(weights).all() or (weights < 0).any():
            bad = float(q[~(np.isfinite(weights) & (weights >= 0))][0])
            raise TrueupError(
                f"the prior must be finite and not negative, but it is "
                f"{float(np.asarray(self.weight(np.array([bad]))).ravel()[0])!r} at {bad:g}",
                _HINT,
            )
        if not weights.sum() > 0:
            raise TrueupError(f"the prior ({self.name}) is zero on the whole domain", _HINT)
        return weights


def read_prior(prior: object, domain: Interval, whole: bool) -> Prior:
    """Return the prior meant by None, a name, a function, or weights on the integers.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> read_prior(None, Interval(1, None), False).name
    'log-uniform'
    >>> read_prior({0: 1, 1: 3}, Interval(0, 1), True)(np.array([0.0, 1.0]))
    array([0.25, 0.75])
    """
    positive = domain.low > 0
    if prior is None:
        prior = prior_name(domain)
    if isinstance(prior, str):
        return _named(prior, domain, positive)
    if callable(prior):
        return Prior(getattr(prior, "__name__", "a function"), prior)
    if isinstance(prior, (Mapping, Sequence, np.ndarray)):
        return _table(prior, domain, whole)
    raise TrueupError(f"prior must be weights of the true values, got {prior!r}", _HINT)


def _named(name: str, domain: Interval, positive: bool) -> Prior:
    if name == "uniform":
        return Prior(name, np.ones_like)
    if name == "log-uniform":
        if positive:
            return Prior(name, lambda q: 1 / q)
        raise TrueupError(f"a log-uniform prior needs a positive domain, got {domain}", _HINT)
    raise TrueupError(f"no prior is called {name!r}", _HINT)


def _table(prior: Any, domain: Interval, whole: bool) -> Prior:
    low, high = domain.bounds
    if not whole or low is None or high is None:
        raise TrueupError(
            f"a list of weights needs integer true values on a bounded domain, got {domain}", _HINT
        )
    count = int(high - low) + 1
    if not isinstance(prior, Mapping):
        if len(prior) != count:
            raise TrueupError(f"{len(prior)} prior weights for {count} true values", _HINT)
        prior = {int(low) + i: w for i, w in enumerate(prior)}
    strange = [q for q in prior if not isinstance(q, (int, float)) or q not in domain]
    if strange:
        raise TrueupError(f"the prior names {strange[0]!r}, which is not in {domain}", _HINT)
    weights = np.zeros(count)
    for q, w in prior.items():
        weights[int(q - low)] = float(number(w, f"the prior at {q}"))
    if (weights < 0).any() or not weights.sum() > 0:
        least = float(weights.min())
        what = f"but one is {least:g}" if least < 0 else "but all are"
        raise TrueupError(f"prior weights must not be negative and not all zero, {what}", _HINT)
    weights /= weights.sum()
    return Prior("given weights", lambda q: weights[(np.asarray(q) - float(low)).astype(int)])


# -- kinks, rounded off ----------------------------------------------------------------------------


_ROOM = sympy.Rational(999_999_999, 10**9)  # below what is allowed, whatever is rounded later


def _between(question: Question, low: float, high: float) -> Question:
    """Return the question with f as it is between two points."""
    here = Interval(*(b if math.isfinite(b) else None for b in (low, high)))
    f = inside(question.f, {question.symbol: here})
    return dataclasses.replace(question, f=f)


def rounded_off(question: Question) -> tuple[sympy.Expr, float, float] | None:
    """Return f with its kinks rounded off, how far that is from f at most, and where.

    Where the slope of f jumps by J at a, f + J·(h − |q − a|)²/(4h) for |q − a| < h has a continuous
    slope, so that Laplace noise and its like have an unbiased estimator of it; as one of f that is
    off by |J|·h/4 at most. Any bias can be reached in this way, if at a price. None unless kinks
    are all that is in the way, and the bias is not relative.

    Examples
    --------
    >>> from trueup.noise.laplace import Laplace
    >>> q = sympy.Symbol("q", real=True)
    >>> given = (abs(q), q, Laplace(1), Interval(-5, 5), 0.5, False)
    >>> f, off, where = rounded_off(Question(*given, read_prior(None, Interval(-5, 5), False)))
    >>> f.subs(q, 0).evalf(3), round(off, 6), where
    (0.500, 0.5, 0.0)
    """
    if question.relative or question.whole:
        return None
    inner = [k for k in question.kinks if question.low < k < question.high]
    if not inner:
        return None
    ends = [question.low, *inner, question.high]
    parts = [_between(question, *edges) for edges in pairwise(ends)]
    if not all(p.smooth for p in parts):
        return None
    q, kinks = question.symbol, [sympy.Rational(*k.as_integer_ratio()) for k in inner]
    cases: list[tuple[sympy.Expr, sympy.Basic]] = []
    worst = (0.0, inner[0])
    for i, (a, (left, right)) in enumerate(zip(kinks, pairwise(parts), strict=True)):
        jump = derivative(right.f - left.f, q, 1).xreplace({q: a})
        if (right.f - left.f).xreplace({q: a}) != 0 or not jump.is_Rational or jump == 0:
            return None
        gap = min(ends[i + 1] - ends[i], ends[i + 2] - ends[i + 1]) / 2
        allowed = sympy.Rational(*question.max_bias.as_integer_ratio())
        h = min(4 * allowed / abs(jump) * _ROOM, sympy.Rational(*gap.as_integer_ratio()))
        worst = max(worst, (float(abs(jump) * h / 4), float(a)))
        cases += [
            (left.f, q < a - h),
            (left.f + jump * (h - a + q) ** 2 / (4 * h), q < a),
            (right.f + jump * (h + a - q) ** 2 / (4 * h), q < a + h),
        ]
    return sympy.Piecewise(*cases, (parts[-1].f, True)), *worst
