"""What is asked of one statistic: f, noise, domain, how much bias, and what weighs the variance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy
from numpy.typing import NDArray

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.exact import number
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.inverse.jets import derivative
from trueup.inverse.lattice_inverse import prior_name
from trueup.inverse.ranges import Walk
from trueup.inverse.signs import KINKED, inside
from trueup.inverse.smooth import Kind, breaks
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from trueup.noise.base import Noise

Floats = NDArray[np.float64]

MOST_INTEGERS = 1_000_000
"""So many integers of a domain are looked at one by one."""


class Asked(NamedTuple):
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
    the mean squared error of an average of m cells of one size. Its standard error falls as 1/√m:
    ``max_bias`` is then the bias of that size, and says where f needs no correction.
    """

    f: sympy.Expr
    symbol: sympy.Symbol
    noise: Noise
    domain: Interval
    prior: Prior
    max_bias: float = 1.0
    relative: bool = False
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
    def kinks(self) -> tuple[float, ...]:
        """The points of the domain at which f is not smooth."""
        if not self.f.has(*KINKED) or self.f.has(Opaque):
            return ()
        found = breaks(self.f, self.symbol, {self.symbol: Interval(*self.domain.bounds)})
        return tuple(sorted({s.point for s in found if self.low < s.point < self.high}))

    def between(self, low: float, high: float) -> sympy.Expr:
        """Return f as it is between two points."""
        ends = (b if math.isfinite(b) else None for b in (low, high))
        return inside(self.f, {self.symbol: Interval(*ends)})

    def truth(self, q: Floats) -> Floats:
        """Return f at true values."""
        return evaluate(self.f, {self.symbol: np.atleast_1d(np.asarray(q, float))})

    def size(self, q: Floats) -> Floats:
        """Return what bias and standard deviation are measured in: |f(q)|, or 1."""
        return np.abs(self.truth(q)) if self.relative else np.ones(len(q))

    def least_size(self, low: Floats, high: Floats) -> Floats:
        """Return a lower bound on that on cells."""
        if not self.relative:
            return np.ones(low.shape)
        below, above, _ = Walk({self.symbol: (low, high)}).range(self.f)
        return np.maximum(np.maximum(below, -above), 0.0)

    def noise_beside(self, q: Floats) -> Floats:
        """Return the relative variance of what f is multiplied by, as far as it can be guessed.

        It is not known: s in s/n may be of any size. It is taken to be as noisy, relative to
        itself, as the delta method says f is: σ²·(f′/f)².
        """
        if not self.beside or self.f.has(*KINKED):
            return np.zeros(len(q))
        slope = evaluate(derivative(self.f, self.symbol, 1), {self.symbol: np.asarray(q, float)})
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(self.noise.variance) * (slope / self.truth(q)) ** 2
        return np.where(np.isfinite(found), found, 0.0)


def for_cells(question: Question, cells: float) -> Question:
    """Return the question that asks for the most accurate average of so many cells."""
    unit = 1.0 if question.relative else typical(question)
    return dataclasses.replace(question, cells=cells, max_bias=unit / math.sqrt(cells))


def typical(question: Question) -> float:
    """Return the size of f near the bounds."""
    low, high = question.low, question.high
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    step = math.sqrt(float(question.noise.variance)) * (1 if math.isfinite(low) else -1)
    q = np.clip(np.rint(start + step * np.arange(1.0, 9.0)), low, high)
    return float(np.abs(question.truth(q)).mean()) or 1.0


# -- can the bias be bounded at all? ---------------------------------------------------------------


def check_bounded(question: Question) -> None:
    """Raise unless f is finite on the domain, and nowhere zero if the bias is relative to it."""
    ends = [b for b in (question.low, question.high) if math.isfinite(b)]
    all_seen = question.whole and len(ends) == 2
    if all_seen:
        ends = list(np.arange(ends[0], min(ends[1], ends[0] + MOST_INTEGERS) + 1))
    values = question.truth(np.array(ends)) if ends else np.empty(0)
    bad = [q for q, v in zip(ends, values, strict=True) if not math.isfinite(v)]
    if not all_seen and not bad:
        bad = _points(question, question.f, Kind.POLE, Kind.UNDEFINED)
    if bad:
        raise unbounded(question, bad[0])
    zero = [q for q, v in zip(ends, values, strict=True) if v == 0]
    if question.relative and not all_seen and not zero:
        zero = _points(question, 1 / question.f, Kind.POLE, Kind.UNDEFINED, Kind.UNDECIDED)
    if question.relative and zero:
        raise TrueupError(
            f"{text(question.f)} is zero at {zero[0]:g}: no bias is small relative to it",
            "use relative=False, or a domain on which f is not zero",
        )


def unbounded(question: Question, q: float) -> TrueupError:
    """Return the error about a true value at which f is infinite or not defined."""
    return TrueupError(
        f"{text(question.f)} is not bounded on {question.domain}: at {q + 0.0:g} it is infinite "
        "or not defined, and no estimator has a bounded bias there",
        "give a domain on which f is bounded, e.g. with a larger lower bound",
    )


def _points(question: Question, f: sympy.Expr, *kinds: Kind) -> list[float]:
    domain = Interval(*question.domain.bounds)
    found = breaks(f, question.symbol, {question.symbol: domain})
    points = [s.point for s in found if s.kind in kinds]
    if not question.whole:
        return points
    own = evaluate(f, {question.symbol: np.array(points)})  # nothing is asked between integers
    return [q for q, v in zip(points, own, strict=True) if q.is_integer() and not math.isfinite(v)]


def never_zero(question: Question) -> bool:
    """Whether f is nowhere zero on the domain; raise if it is not bounded there."""
    try:
        check_bounded(dataclasses.replace(question, relative=True))
    except TrueupError as error:
        if "is zero at" in error.message:
            return False
        raise
    return True


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
            where = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0]
            raise TrueupError(
                "the prior must be finite and not negative, but it is "
                f"{float(weights[where])!r} at {q[where]:g}",
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
    prior = prior_name(domain) if prior is None else prior
    if prior == "uniform" and isinstance(prior, str):
        return Prior(prior, np.ones_like)
    if prior == "log-uniform" and isinstance(prior, str):
        if domain.low > 0:
            return Prior(prior, lambda q: 1 / q)
        raise TrueupError(f"a log-uniform prior needs a positive domain, got {domain}", _HINT)
    if isinstance(prior, str):
        raise TrueupError(f"no prior is called {prior!r}", _HINT)
    if callable(prior):
        return Prior(getattr(prior, "__name__", "a function"), prior)
    if isinstance(prior, (Mapping, Sequence, np.ndarray)):
        return _table(prior, domain, whole)
    raise TrueupError(f"prior must be weights of the true values, got {prior!r}", _HINT)


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
