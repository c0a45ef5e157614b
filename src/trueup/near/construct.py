"""From a question to an estimator with a certificate: by the programme, or exact if there is one.

Also whether the bias can be bounded at all, and which bias is reachable.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import InfiniteVariance, MissingExtra, TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.inverse import spectral
from trueup.inverse.component import Component
from trueup.inverse.ranges import Walk
from trueup.inverse.smooth import Kind, breaks
from trueup.inverse.solve import Statistic, invert
from trueup.near.certificate import Certificate, certify
from trueup.near.curve import Curve
from trueup.near.plan import Plan, stretch
from trueup.near.question import rounded_off
from trueup.near.series import Exact, Terms
from trueup.near.smoothing import Smoothing
from trueup.near.spline import Spline
from trueup.near.spread import Profile

if TYPE_CHECKING:
    from trueup.near.question import Question


@dataclasses.dataclass(frozen=True)
class Solution:
    """An estimator of one statistic and what is proven of it.

    ``spread`` is the unbiased estimator of its variance, None where that has to be looked for.
    """

    question: Question
    smoothing: Smoothing
    curve: Curve
    certificate: Certificate
    spread: Curve | None = None


T = TypeVar("T")

EFFORTS = ((3, 0.0), (6, 2.0), (12, 4.0))
"""Pieces of a spline per unit of noise, and by how many units to move the join: try by try."""

_TIGHTER = {True: 2e-4, False: 4e-3}
"""By how much τ is tightened at first, for integer and for real true values, …"""

_NEAR_MISS = 1.2
"""… and up to which factor above it a bound is brought down by tightening τ further."""


_MANY = 120
"""With more unknowns a second try is not worth its time."""

_USELESS = 0.9
"""Relative to f the estimator 0 has a bias of 1: nobody is helped by a bound close to that."""

_FINE = 1.25
"""The least bias that can be reached is found up to this factor."""

_TRIES = 5
"""How often τ is tightened at most."""


def construct(question: Question, part: bool = False) -> Solution:
    """Return the estimator of least variance whose bias is certified, or say what can be had.

    The question may be a ``part`` of another one: what can be had then is not what was asked.
    """
    closed = spectral.decompose(question.f, [question.symbol]) is not None
    exists = closed or question.noise.inverse(question.domain) is not None
    best = unbiased(question) if exists else None
    try:
        check_bounded(question)
    except TrueupError:
        if part and best is not None:
            return best
        raise
    if closed or best is not None:
        return _traded(question, best, EFFORTS[:1] if closed else EFFORTS)
    found = attempt(question)
    if isinstance(found, Solution):
        return found
    rounded = _rounded_off(question)
    if rounded is not None:
        return rounded
    raise unreachable(question, None if part else _reachable(question, found))


def _traded(
    question: Question, best: Solution | None, efforts: Sequence[tuple[int, float]]
) -> Solution:
    """Return the estimator asked for, the unbiased one if nothing is better."""
    try:
        found = attempt(question, efforts)
    except MissingExtra:
        raise
    except TrueupError:  # its series does not settle
        found = math.inf
    if best is None:
        return found if isinstance(found, Solution) else exact(question)
    some = [best, found] if isinstance(found, Solution) else [best]
    return min(some, key=lambda solution: Profile(solution).price)


def _rounded_off(question: Question) -> Solution | None:
    """Return the unbiased estimator of f with its kinks rounded off, None if there is none."""
    found = rounded_off(question) if question.noise.inverse(Interval()) is not None else None
    if found is None:
        return None
    f, bound, worst = found
    try:
        solution = exact(dataclasses.replace(question, f=f))
    except TrueupError:  # beyond the domain it is not defined, or grows too fast
        return None
    return dataclasses.replace(solution, question=question, certificate=Certificate(bound, worst))


def attempt(question: Question, efforts: Sequence[tuple[int, float]] = EFFORTS) -> Solution | float:
    """Return the estimator, or the least bias that seems possible."""
    smoothing, terms = Smoothing(question.noise), Terms(question)
    if question.cells is not None:
        return _most_accurate(
            Plan(question, smoothing, stretch(question, smoothing, terms, 0.0), 6)
        )
    least = math.inf
    constant = _constant(question, smoothing)
    if constant is not None:
        return constant
    for pieces, further in efforts:
        where = stretch(question, smoothing, terms, further)
        plan = Plan(question, smoothing, where, pieces)
        if (pieces, further) != efforts[0] and sum(zone.size for zone in plan.zones) > _MANY:
            break
        found = _tightened(plan)
        if isinstance(found, Solution):
            return found
        least = min(least, found)
    return least


def _constant(question: Question, smoothing: Smoothing) -> Solution | None:
    """Return a constant if one is close enough to f: its variance is 0."""
    low, high = question.low, question.high
    if math.isinf(low) or math.isinf(high) or question.f.has(Opaque):
        return None
    edges = np.linspace(low, high, 2049)
    least, greatest, _ = Walk({question.symbol: (edges[:-1], edges[1:])}).range(question.f)
    bottom, top = float(least.min()), float(greatest.max())
    middle = (bottom + top) / 2
    if question.relative:  # 0 is off by no more than all of f
        middle = 2 * bottom * top / (bottom + top) if bottom * top > 0 else 0.0
    size = np.maximum(np.maximum(least, -greatest), 0.0) if question.relative else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.maximum(np.abs(least - middle), np.abs(greatest - middle)) / size
    worst = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
    if not gaps[worst] <= question.max_bias:
        return None
    spline = Spline(math.floor(low), 1.0, [[middle]])
    curve = Curve(question.symbol, None, spline, None, math.inf, math.inf)
    return Solution(
        question, smoothing, curve, Certificate(float(gaps[worst]), float(edges[worst]))
    )


def _most_accurate(plan: Plan) -> Solution:
    """Return the estimator of least error for the average of many cells, and the bias it has."""
    question, programme = plan.question, plan.programme
    assert question.cells is not None  # noqa: S101  (asked of such questions only)
    unknowns = np.empty(0) if programme is None else programme.least_error(question.cells)
    curve = plan.curve(unknowns)
    certificate = certify(question, curve, plan.smoothing, question.max_bias)
    return Solution(question, plan.smoothing, curve, certificate)


def _tightened(plan: Plan) -> Solution | float:
    """Return the estimator of a plan, or the least bias that seems possible with it."""
    question, smoothing, programme = plan.question, plan.smoothing, plan.programme

    def solve(shrink: float) -> tuple[Solution, float] | None:
        unknowns = np.empty(0) if programme is None else programme.least_variance(shrink)
        if unknowns is None:
            return None
        curve = plan.curve(unknowns)
        certificate = certify(question, curve, smoothing, question.max_bias)
        return Solution(question, smoothing, curve, certificate), certificate.bound

    found = tightened(solve, _TIGHTER[question.whole], question.max_bias)
    if found is not None or programme is None:
        return math.inf if found is None else found
    least = programme.least_bias()
    return math.inf if math.isnan(least) else max(least, 1.0) * question.max_bias


def tightened(
    solve: Callable[[float], tuple[T, float] | None], shrink: float, max_bias: float
) -> T | float | None:
    """Solve with a slightly smaller τ, until the bound holds between the rows of a programme too.

    ``solve`` takes by how much τ is tightened, and returns what it found and the bound on its bias.
    If the bound does not hold in the end it is returned; None if nothing was found at all.
    """
    bound: float | None = None
    for _ in range(_TRIES):
        found = solve(shrink)
        if found is None:
            return bound
        bound, excess = found[1], found[1] / max_bias
        if excess <= 1:
            return found[0]
        if not excess < _NEAR_MISS:
            break
        shrink = 1 - (1 - shrink) / excess * (1 - 5e-4)
    return bound


class Reached(NamedTuple):
    """A bias that is allowed and for which an estimator was found, and the bias that it has."""

    allowed: float
    bound: float


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


def _reachable(question: Question, least: float) -> Reached | None:
    """Return a bias that can be reached, not far from the least: by steps that become smaller."""
    below = least if math.isfinite(least) else question.max_bias
    above: Reached | None = None
    for _ in range(10):
        tried = up(4 * below if above is None else math.sqrt(below * above.bound))
        if above is not None and tried >= above.allowed:
            break
        found = attempt(dataclasses.replace(question, max_bias=tried), EFFORTS[:1])
        if isinstance(found, Solution):
            above = Reached(tried, found.certificate.bound)
        else:
            below = tried
        if above is not None and above.allowed < _FINE * below:
            break
    return above


def up(value: float) -> float:
    """Return a number of two digits that is not below the value: one that can be said and tried."""
    return float(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(value))


def never_zero(question: Question) -> bool:
    """Whether f is nowhere zero on the domain; raise if it is not bounded there."""
    try:
        check_bounded(dataclasses.replace(question, relative=True))
    except TrueupError as error:
        if "is zero at" in error.message:
            return False
        raise
    return True


def check_bounded(question: Question) -> None:
    """Raise unless f is finite on the domain, and nowhere zero if the bias is relative to it."""
    ends = [b for b in (question.low, question.high) if math.isfinite(b)]
    if question.whole and math.isfinite(question.low) and math.isfinite(question.high):
        ends = list(np.arange(question.low, min(question.high, question.low + 1e6) + 1))
    values = question.truth(np.array(ends)) if ends else np.empty(0)
    bad = [q for q, v in zip(ends, values, strict=True) if not math.isfinite(v)]
    if not question.whole and not bad:
        found = breaks(question.f, question.symbol, {question.symbol: question.domain})
        bad = [s.point for s in found if s.kind in (Kind.POLE, Kind.UNDEFINED)]
    if bad:
        raise TrueupError(
            f"{text(question.f)} is not bounded on {question.domain}: at {bad[0]:g} it is infinite "
            "or not defined, and no estimator has a bounded bias there",
            "give a domain on which f is bounded, e.g. with a larger lower bound",
        )
    zero = [q for q, v in zip(ends, values, strict=True) if v == 0]
    if question.relative and not question.whole and not zero:
        found = breaks(1 / question.f, question.symbol, {question.symbol: question.domain})
        zero = [s.point for s in found if s.kind in (Kind.POLE, Kind.UNDEFINED, Kind.UNDECIDED)]
    if question.relative and zero:
        raise TrueupError(
            f"{text(question.f)} is zero at {zero[0]:g}: no bias is small relative to it",
            "use relative=False, or a domain on which f is not zero",
        )


# -- the unbiased estimator in the shape of a solution: nothing to choose --------------------------


def exact(question: Question) -> Solution:
    """Return the unbiased estimator.

    Given the bounds where it is constant beyond them (Laplace, discrete Laplace), otherwise the one
    of the whole line.
    """
    known = question.noise.inverse(question.domain) is not None
    found = _estimator(question, question.domain) if known else None
    if found is None:
        found = _estimator(question, Interval())
    if found is None:
        raise TrueupError(
            f"the unbiased estimator of {text(question.f)} is no single formula between constants",
            "use unbiased()",
        )
    value, spread = found
    certificate = Certificate(0.0, math.nan)
    return Solution(question, Smoothing(question.noise), value, certificate, spread)


def unbiased(question: Question) -> Solution | None:
    """Return the unbiased estimator, None if there is none or none of finite variance."""
    try:
        return exact(question)
    except TrueupError:
        return None


def _estimator(question: Question, domain: Interval) -> tuple[Curve, Curve] | None:
    """Return value and variance, None if they are not constant beyond the bounds."""
    domain = domain.integers() if question.noise.lattice else domain
    inverse = invert(question.f, [Statistic(question.symbol, question.noise, domain)])
    if inverse.infinite:
        raise InfiniteVariance(
            f"the unbiased estimator of {text(question.f)} has no finite variance: "
            f"{inverse.infinite}",
            "bound the domain on both sides, or use less noise",
        )
    if len(inverse.components) != 1 or type(inverse.components[0]) is not Component:
        return None
    (component,) = inverse.components
    value, spread = (_pieces(component, what) for what in ("value", "variance"))
    if value is None or spread is None:
        return None
    series = Exact(question.symbol, value.inside, spread.inside)
    return value.curve(question.symbol, series), spread.curve(question.symbol, series.variance)


class _Pieces(NamedTuple):
    """A formula between constants, and where these begin."""

    inside: sympy.Expr
    below: float | None
    above: float | None
    low: float
    high: float

    def curve(self, symbol: sympy.Symbol, series: Exact) -> Curve:
        left = None if self.below is None else Spline(self.low - 1, 1.0, [[self.below]])
        right = None if self.above is None else Spline(self.high, 1.0, [[self.above]])
        return Curve(symbol, series, left, right, self.low, self.high)


def _pieces(component: Component, what: str) -> _Pieces | None:
    """Return value or variance, None if one is not constant beyond a bound."""
    parts: dict[str, sympy.Expr] = {}
    low, high = -math.inf, math.inf
    for region in component.regions():
        side = component.cells[0].operator.branches[region[0]].side if region else "inside"
        parts[side] = getattr(component, what)(region)
    if component.cells:
        low, high = map(float, component.cells[0].operator.starts)
    ends = {side: parts[side] for side in ("below", "above") if side in parts}
    if len(component.cells) > 1 or any(e.free_symbols for e in ends.values()):
        return None
    below, above = (float(ends[s]) if s in ends else None for s in ("below", "above"))
    return _Pieces(parts["inside"], below, above, low, high)
