"""`frontier()`: what a small bias costs in standard deviation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.arguments import read_arguments
from trueup.errors import TrueupError
from trueup.exact import number
from trueup.formula.text import text
from trueup.inverse.jets import derivative
from trueup.kernels.evaluate import evaluate
from trueup.near.construct import Solution, attempt, check_bounded
from trueup.near.prior import read_prior
from trueup.near.profile import Profile
from trueup.near.question import Question
from trueup.near.smoothing import Smoothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

BIASES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Bias bounds looked at: as they are if relative, else times the mean |f| near the bound."""

CHEAP, USUAL = 1.5, 0.01
"""A bias of 1 % is cheap where it costs at most half as much again as the delta method says."""


def frontier(
    f: object,
    noise: Noise,
    domain: object = None,
    relative: bool | None = None,
    biases: Sequence[Any] | None = None,
    prior: object = None,
) -> Frontier:
    """Return the standard deviation that each bias bound costs.

    Parameters
    ----------
    f, noise, domain, prior
        As for :func:`nearly_unbiased`, for one statistic.
    relative
        Whether bias and standard deviation are relative to |f(q)|; None: if f is nowhere zero.
    biases
        The bounds to look at; None: from 10 % down to 0.1 %.

    Examples
    --------
    >>> from trueup import DiscreteGaussian
    >>> front = frontier("1/n", DiscreteGaussian(3), (12, 400), biases=[0.05, 0.01])
    >>> front
    Frontier of 1/n under DiscreteGaussian(3), true value in {12..400}, relative to |f|
      bias bound  largest sd  at        average sd
            0.05      0.1...  ...
            0.01      0.2...  ...
      ...
    """
    if isinstance(noise, dict):
        raise TrueupError(
            "the frontier is for one statistic", "give one noise, e.g. DiscreteGaussian(2)"
        )
    source, (statistic,) = read_arguments(f, noise, domain, None)
    whole = statistic.noise.lattice or statistic.domain.lattice
    weights = read_prior(prior, statistic.domain, whole)
    given = (source.expr, statistic.symbol, statistic.noise, statistic.domain)
    question = Question(*given, 1.0, True, weights)
    if relative is None:
        relative = _never_zero(question)
    question = dataclasses.replace(question, relative=bool(relative))
    check_bounded(question)
    bounds = _read(biases, question)
    return Frontier(question, tuple(_points(question, bounds)))


def _never_zero(question: Question) -> bool:
    try:
        check_bounded(question)
    except TrueupError as error:
        if "is zero at" in error.message:
            return False
        raise
    return True


def _read(biases: Sequence[Any] | None, question: Question) -> list[float]:
    if biases is None:
        unit = 1.0 if question.relative else _typical(question)
        return [b * unit for b in BIASES]
    found = sorted((float(number(b, "a bias", positive=True)) for b in biases), reverse=True)
    if not found:
        raise TrueupError("biases is empty", "give bias bounds, e.g. [0.05, 0.01]")
    return found


def _typical(question: Question) -> float:
    """Return the size of f near the bounds."""
    low, high = question.low, question.high
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    step = Smoothing(question.noise).unit * (1 if math.isfinite(low) else -1)
    q = np.clip(np.rint(start + step * np.arange(1.0, 9.0)), low, high)
    return float(np.abs(question.truth(q)).mean()) or 1.0


@dataclasses.dataclass(frozen=True)
class Point:
    """One bias bound and what it costs; NaN where it could not be reached."""

    max_bias: float
    bias_bound: float
    largest_sd: float
    worst: float
    average_sd: float


def _points(question: Question, bounds: Sequence[float]) -> list[Point]:
    points = []
    for bound in bounds:
        found = attempt(dataclasses.replace(question, max_bias=bound))
        if isinstance(found, Solution):
            profile = Profile(found)
            largest, worst = profile.largest
            points.append(Point(bound, found.certificate.bound, largest, worst, profile.average))
        else:
            points.append(Point(bound, math.nan, math.nan, math.nan, math.nan))
    return points


@dataclasses.dataclass(frozen=True, repr=False)
class Frontier:
    """Standard deviation against bias bound, and where a small bias is cheap.

    ``biases``, ``bounds``, ``largest_sd``, ``worst`` and ``average_sd`` are arrays, one entry for
    each bias asked for; NaN where it cannot be reached.
    """

    question: Question
    points: tuple[Point, ...]

    @property
    def biases(self) -> Floats:
        """The bias bounds asked for."""
        return np.array([p.max_bias for p in self.points])

    @property
    def bounds(self) -> Floats:
        """The certified bias bounds."""
        return np.array([p.bias_bound for p in self.points])

    @property
    def largest_sd(self) -> Floats:
        """The largest standard deviation over the domain."""
        return np.array([p.largest_sd for p in self.points])

    @property
    def worst(self) -> Floats:
        """The true value at which it is largest."""
        return np.array([p.worst for p in self.points])

    @property
    def average_sd(self) -> Floats:
        """The root of the prior-averaged variance."""
        return np.array([p.average_sd for p in self.points])

    @cached_property
    def advice(self) -> str:
        """The smallest lower bound at which a bias of 1 % is cheap, in one line."""
        question = self.question
        if not (question.smooth and math.isfinite(question.low)):
            return "no advice: it is for a smooth f on a domain bounded below"
        bias = USUAL if question.relative else USUAL * _typical(question)
        shown = f"{bias:.0%}" if question.relative else f"{bias:.2g}"
        found = cheap_from(question, bias)
        if found is None:
            return (
                f"a bias of {shown} is nowhere cheap on this domain: the standard deviation is "
                f"more than {CHEAP:g} times σ·|f′|"
            )
        unit = "·|f|" if question.relative else ""
        return (
            f"a bias of {shown} is cheap from {question.symbol.name} = {found[0]:.4g} on: with "
            f"that lower bound the sd is {found[1]:.2g}{unit} at most, and within {CHEAP:g} times "
            "σ·|f′|"
        )

    def __repr__(self) -> str:
        question = self.question
        kind = ", relative to |f|" if question.relative else ""
        title = (
            f"Frontier of {text(question.f)} under {question.noise!r}, true value in "
            f"{question.domain}{kind}"
        )
        rows = [f"  {'bias bound':>10}  {'largest sd':>10}  {'at':<8}  {'average sd':>10}"]
        for p in self.points:
            if math.isnan(p.bias_bound):
                rows.append(f"  {p.max_bias:>10.3g}  cannot be reached")
            else:
                rows.append(
                    f"  {p.max_bias:>10.3g}  {p.largest_sd:>10.4g}  {p.worst:<8.6g}  "
                    f"{p.average_sd:>10.4g}"
                )
        return "\n".join([title, *rows, f"  {self.advice}"])

    def plot(self, axes: Any = None) -> Any:
        """Draw standard deviation against bias bound (:func:`trueup.plots.frontier`)."""
        from trueup.plots.trade import frontier as draw

        return draw(self, ax=axes)


def cheap_from(question: Question, bias: float) -> tuple[float, float] | None:
    """Return the least lower bound from which a bias costs little, and the largest sd there.

    At every true value from there on the standard deviation is compared with σ·|f′|, what the delta
    method says of the plug-in. None if no such bound is seen.
    """
    unit = Smoothing(question.noise).unit
    low, high = question.low, min(question.high, question.low + 60 * unit)
    best = _price(question, bias, low)
    if best is not None:
        return low, best
    best = _price(question, bias, high := _on(question, high))
    while best is not None and high - low > max(unit / 8, 1.0 if question.whole else 0.0):
        middle = _on(question, (low + high) / 2)
        price = _price(question, bias, middle)
        low, high = (middle, high) if price is None else (low, middle)
        best = best if price is None else price
    return None if best is None else (high, best)


def _on(question: Question, low: float) -> float:
    return float(math.floor(low)) if question.whole else low


def _price(question: Question, bias: float, low: float) -> float | None:
    """Return the largest sd with this lower bound, None if it is not cheap."""
    domain = type(question.domain)(low, question.domain.bounds[1])
    asked = dataclasses.replace(question, domain=domain, max_bias=bias)
    found = attempt(asked)
    if not isinstance(found, Solution):
        return None
    profile = Profile(found)
    q = profile.truths
    slopes = np.abs(evaluate(derivative(asked.f, asked.symbol, 1), {asked.symbol: q}))
    usual = math.sqrt(float(question.noise.variance)) * slopes / asked.size(q)
    return profile.largest[0] if (profile.sds <= CHEAP * usual).all() else None
