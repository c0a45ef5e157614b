"""From a question to an estimator with a certificate: the programme, or unbiased if that is better.

Also what can be reached where the question cannot be answered.
"""

from __future__ import annotations

import dataclasses
import math
from decimal import ROUND_CEILING, Context
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.errors import MissingExtra, TrueupError
from trueup.estimator import Estimator
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.inverse import spectral
from trueup.inverse.signs import KINKED
from trueup.near.certificate import Certificate, certify
from trueup.near.curve import ACCURATE, Basis, Curve, Mesh, Tail, mesh, reach, true_values
from trueup.near.nodes import Law
from trueup.near.programme import Programme, Rows
from trueup.near.question import Question, check_bounded, unbounded
from trueup.near.spline import Spline

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_TIGHTER = {True: 2e-4, False: 4e-3}
"""By how much τ is tightened at first, for integer and for real true values, …"""

_NEAR_MISS, _TRIES = 1.2, 5
"""… and up to which factor above it a bound is brought down by tightening τ further, how often."""

_USELESS = 0.9
"""Relative to f the estimator 0 has a bias of 1: nobody is helped by a bound close to that."""

_FINE, _STEPS = 1.25, 10
"""The least bias that can be reached is found up to this factor, in so many steps."""

USED, ROOM = 3.3, 1.3
"""Where f(x) has less than 1/3.3 of the bias allowed less is used: soon hardly more than f(x) has.
"""

FAR = 1e4
"""An unbounded domain is looked at as far as so many units of noise from its bound."""


@dataclasses.dataclass(frozen=True)
class Solution:
    """A nearly unbiased estimator of one statistic and what is proven of it."""

    plan: Plan
    curve: Curve
    certificate: Certificate

    @property
    def question(self) -> Question:
        """What it answers."""
        return self.plan.question

    @property
    def law(self) -> Law:
        """What the noise does."""
        return self.plan.law

    @cached_property
    def profile(self) -> Profile:
        """Its standard deviations over the domain."""
        return Profile(self.law, self.curve, self.curve.knots, self.question)

    @cached_property
    def spread(self) -> Spread:
        """The estimator of its variance."""
        return spread(self)


class Plan:
    """The spline of one question, the true values looked at, and its programme."""

    def __init__(self, question: Question) -> None:
        self.question, self.law = question, Law(question.noise)
        self.mesh = mesh(question, self.law)
        self.q = true_values(question, self.law, self.mesh)
        self.widths = widths(self.q, question.whole)
        if not np.isfinite(question.truth(self.q)).all():
            raise unbounded(question, self.q[~np.isfinite(question.truth(self.q))][0])

    def programme(self, f: Callable[[Floats], Floats], rows: Rows, mesh: Mesh) -> Programme:
        """Return the programme for a function of the true value, given at the true values."""
        basis = Basis(mesh)
        start = basis.start(lambda x: f(np.clip(x, self.question.low, self.question.high)))
        return Programme(rows, self.law.nodes(self.q, mesh.edges), basis, start)

    @cached_property
    def value(self) -> Programme:
        """The programme of the estimator."""
        question, q = self.question, self.q
        size = question.size(q)
        weights = question.prior(q) * self.widths
        weights = (weights / weights.sum() + 1e-9 / len(q)) / size**2
        rows = question.truth(q), question.max_bias * size, weights, question.noise_beside(q)
        return self.programme(question.truth, Rows(*rows), self.mesh)

    @property
    def needed(self) -> Floats:
        """Return the part of the bias allowed that is used: less where f(x) is nearly unbiased.

        Far from the bounds noise is small, and no bias is spent on making it smaller still.
        """
        question, unit = self.question, self.law.unit
        if question.f.has(Opaque, *KINKED) or not self.law.has_variance:
            return np.ones(len(self.q))
        bend = Tail(question.f, question.symbol)
        away = unit * np.arange(-2.0, 3.0)[:, None]
        around = np.clip(self.q + away, question.low, question.high)
        bends = np.abs(bend(around.ravel(), 2)).reshape(around.shape).max(axis=0)
        off = self.law.moments[1] / 2 * bends / (question.max_bias * question.size(self.q))
        return np.asarray(np.clip(np.maximum(ROOM * off, (USED * off) ** 2), ACCURATE, 1.0))

    def solution(self, unknowns: Floats) -> Solution:
        """Return the estimator with these unknowns, and what is certain of it."""
        curve = Basis(self.mesh).curve(unknowns)
        return Solution(self, curve, certify(self.question, curve, self.law))


def widths(q: Floats, whole: bool) -> Floats:
    """Return how much each of some true values stands for: the trapezoidal rule, or integers."""
    if len(q) < 2:
        return np.ones(len(q))
    gaps = np.diff(q)
    found = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2
    if whole:
        found[[0, -1]] += 0.5
    return np.asarray(found, float)


# -- which estimator -------------------------------------------------------------------------------


def construct(question: Question, part: bool = False) -> Solution | Estimator:
    """Return the estimator of least variance whose bias is certified, or say what can be had.

    That is the unbiased one where it is better. The question may be a ``part`` of another one: what
    can be had then is not what was asked.
    """
    exact, refusal = _unbiased(question)
    try:
        check_bounded(question)
    except TrueupError:
        if part and exact is not None:
            return exact
        raise
    found: Solution | float = math.inf
    try:
        found = attempt(question)
    except MissingExtra:
        raise
    except TrueupError as error:  # f does not settle, or bends too much for a spline
        if exact is None:
            raise refusal or error from None
    if isinstance(found, Solution):
        if exact is not None and of_unbiased(exact, question).price <= found.profile.price:
            return exact
        return found
    if exact is not None:
        return exact
    raise refusal or unreachable(question, None if part else _reachable(question, found))


def _unbiased(question: Question) -> tuple[Estimator | None, TrueupError | None]:
    """Return the unbiased estimator if it has a variance; why not, if only that is missing."""
    closed = spectral.decompose(question.f, [question.symbol]) is not None
    if not closed and question.noise.inverse(question.domain) is None:
        return None, None
    try:
        name = question.symbol.name
        exact = Estimator(question.f, {name: question.noise}, {name: question.domain})
        exact._inverse.check_variance()
    except TrueupError as error:
        return None, error if closed else None
    return exact, None


def of_unbiased(exact: Estimator, question: Question | None) -> Profile:
    """Return the standard deviations of an unbiased estimator over the domain of a question."""
    starts = [b for c in exact._inverse.components for s in c.cells for b in s.operator.starts]
    knots = np.array(sorted(float(b) for b in starts if b.is_finite))
    (statistic,) = exact._statistics
    return Profile(Law(statistic.noise), lambda x: np.asarray(exact(x)), knots, question)


def attempt(question: Question) -> Solution | float:
    """Return the estimator, or the least bias that seems possible."""
    plan = Plan(question)
    if question.cells is not None:
        return plan.solution(plan.value.free(question.cells))
    constant = _constant(plan)
    if constant is not None:
        return constant
    reached = math.inf
    for part in (plan.needed, 1.0):  # what is needed far out may be too little for a spline
        found = _tightened(plan, part * question.max_bias * question.size(plan.q))
        if isinstance(found, Solution):
            return found
        reached = min(reached, found)
    if math.isfinite(reached):
        return reached
    least = plan.value.least_bias()
    return math.inf if math.isnan(least) else max(least, 1.0) * question.max_bias


def _tightened(plan: Plan, tolerance: Floats) -> Solution | float:
    """Return the estimator for this tolerance, or the bound that its bias has."""
    question, reached = plan.question, math.inf
    shrink, plan.value.tolerance = _TIGHTER[question.whole], tolerance
    for _ in range(_TRIES):
        unknowns = plan.value.bounded(1 - shrink)
        if unknowns is None:
            break
        found = plan.solution(unknowns)
        reached = found.certificate.bound
        excess = reached / question.max_bias
        if excess <= 1:
            return found
        if not excess < _NEAR_MISS:
            break
        shrink = 1 - (1 - shrink) / excess * (1 - 5e-4)
    return reached


def _constant(plan: Plan) -> Solution | None:
    """Return a constant if one is close enough to f: its variance is 0."""
    question, truth = plan.question, plan.question.truth(plan.q)
    low, high = float(truth.min()), float(truth.max())
    if plan.mesh.left is not None or plan.mesh.right is not None or low * high <= 0:
        return None
    middle = 2 * low * high / (low + high) if question.relative else (low + high) / 2
    if (np.abs(truth - middle) > question.max_bias * question.size(plan.q)).any():
        return None
    rows = np.outer(np.ones(len(plan.mesh.edges) - 1), [middle, 0.0, 0.0, 0.0])
    curve = Curve(plan.mesh, Spline(plan.mesh.edges, rows), abs(middle))
    found = Solution(plan, curve, certify(question, curve, plan.law))
    return found if found.certificate.bound <= question.max_bias else None


class Reached(NamedTuple):
    """A bias that is allowed and for which an estimator was found, and the bias that it has."""

    allowed: float
    bound: float


def _reachable(question: Question, least: float) -> Reached | None:
    """Return a bias that can be reached, not far from the least: by steps that become smaller."""
    below = least if math.isfinite(least) else question.max_bias
    above: Reached | None = None
    for _ in range(_STEPS):
        tried = up(4 * below if above is None else math.sqrt(below * above.bound))
        if above is not None and tried >= above.allowed:
            break
        found = attempt(dataclasses.replace(question, max_bias=tried))
        if isinstance(found, Solution):
            above = Reached(tried, found.certificate.bound)
        else:
            below = tried
        if above is not None and above.allowed < _FINE * below:
            break
    return above


def unreachable(question: Question, reached: Reached | None) -> TrueupError:
    """Return the error that says what can be reached instead."""
    kind = "relative bias" if question.relative else "bias"
    remedy = "bound the domain at the kink" if question.kinks else "raise the lower bound"
    advice = f"{remedy}, or use less noise; frontier() shows the price of a small bias"
    if reached is None or (question.relative and reached.allowed > _USELESS):
        return TrueupError(
            f"no estimator of {text(question.f)} on {question.domain} under {question.noise!r} "
            f"with a certified {kind} of {question.max_bias:g} was found",
            f"allow more bias, {advice}",
        )
    return TrueupError(
        f"a {kind} of at most {question.max_bias:g} cannot be reached for {text(question.f)} on "
        f"{question.domain} under {question.noise!r}: the least that was reached is "
        f"{reached.bound:.3g}",
        f"max_bias={reached.allowed!r} works; or {advice}",
    )


def up(value: float) -> float:
    """Return a number of two digits that is not below the value: one that can be said and tried."""
    return float(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(value))


# -- standard deviations over the domain: the largest, and the average over the prior --------------


@dataclasses.dataclass(frozen=True)
class Profile:
    """Mean and standard deviation of an estimator g at true values spread over the domain."""

    law: Law
    g: Callable[[Floats], Floats]
    knots: Floats
    asked: Question | None

    @property
    def question(self) -> Question:
        """What says where to look, and relative to what."""
        assert self.asked is not None  # noqa: S101  (only of factors of several statistics)
        return self.asked

    @cached_property
    def truths(self) -> Floats:
        """True values: close together near the bounds, then ever wider apart."""
        question, unit = self.question, self.law.unit
        low, high = question.low, question.high
        bounds = [b for b in (low, high) if math.isfinite(b)]
        span = high - low if len(bounds) == 2 else FAR * unit
        near = min(6 * reach(self.law), span)
        away = np.linspace(0.0, near, 400)
        if span > 0:
            away = np.concatenate([away, np.geomspace(min(unit / 100, span), span, 300)])
        q = np.concatenate([b + side * away for b in bounds or [0.0] for side in (-1, 1)])
        q = np.unique(q[(q >= low) & (q <= high)])
        return np.unique(np.rint(q)) if question.whole else q

    @cached_property
    def _at(self) -> tuple[Floats, Floats]:
        """Mean and variance at those true values, relative to f and f² if asked so."""
        size = self.question.size(self.truths)
        with np.errstate(all="ignore"):
            mean, variance = self.law.at(self.g, self.truths, self.knots)
        return mean / size, variance / size**2

    @property
    def largest(self) -> tuple[float, float]:
        """The largest standard deviation, and where it is."""
        sds = np.sqrt(self._at[1])
        top = int(np.argmax(sds))
        return float(sds[top]), float(self.truths[top])

    @property
    def average(self) -> float:
        """The root of the variance averaged over the prior."""
        return math.sqrt(self._averaged(self._at[1]))

    @property
    def average_bias(self) -> float:
        """The root of the squared bias averaged over the prior."""
        return math.sqrt(self._averaged(self._biases**2))

    @property
    def _biases(self) -> Floats:
        return self._at[0] - self.question.truth(self.truths) / self.question.size(self.truths)

    @property
    def price(self) -> float:
        """What was minimised: the averaged variance, or bias² + variance/m for m cells."""
        question, (mean, variance) = self.question, self._at
        variance = variance + question.noise_beside(self.truths) * (variance + mean**2)
        if question.cells is None:
            return self._averaged(variance)
        return self._averaged(self._biases**2 + variance / question.cells)

    def _averaged(self, values: Floats) -> float:
        q = self.truths
        weights = self.question.prior(q) * widths(q, self.question.whole)
        found = float(weights @ values) / float(weights.sum())
        return math.inf if math.isnan(found) else found


# -- the variance, estimated by the same means -----------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Spread:
    """An estimator of Var g, and its largest relative bias where it was looked at."""

    curve: Curve
    bias: float


_TRIES_OF_VARIANCE = ((0.12, 0.1), (0.12, 0.0), (0.12, None), (0.4, 0.0), (0.8, None))
"""Relative biases tried, one after the other, and what the estimate must not fall below: a share of
Var g at the true value nearest to the published one. None: it may be negative.
"""

_SQUARE = 1e3
"""How much its bias counts beside its own variance."""

_LEAST = 1e-7


def spread(solution: Solution) -> Spread:
    """Return the estimator of q ↦ Var g(q + Z), a function of the true value that is known."""
    question, plan, law = solution.question, solution.plan, solution.law

    def variance(q: Floats) -> Floats:
        return law.at(solution.curve, q, solution.curve.knots)[1]

    truth = variance(plan.q)
    size = np.maximum(truth, _LEAST * truth.max() or 1.0)
    weights = question.prior(plan.q) * plan.widths
    weights = (weights / weights.sum() + 1e-9 / len(size)) / size**2
    tails = (None if t is None else _squared(t, law) for t in plan.mesh[1:])
    knots = Mesh(plan.mesh.edges, *tails)
    rows = Rows(truth, size, weights, np.zeros(len(size)))
    programme = plan.programme(variance, rows, knots)
    for asked, floor in _TRIES_OF_VARIANCE:
        unknowns = programme.bounded(asked, _SQUARE, floor)
        if unknowns is not None:
            curve = Basis(knots).curve(unknowns)
            mean = law.means([curve], plan.q, curve.knots)[0]
            return Spread(curve, float(np.abs((mean - truth) / size).max()))
    raise TrueupError(
        f"the variance of the estimator of {text(question.f)} cannot be estimated from one "
        "published value",
        "use sd(q) at plausible true values",
    )


def _squared(tail: Tail, law: Law) -> Tail:
    """Return σ²·f′², the variance of f(q + Z) where f is nearly a line."""
    return Tail(float(law.noise.variance) * tail.jet[1] ** 2, tail.symbol)
