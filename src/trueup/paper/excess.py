"""Why the paper's small-n numbers differ: the excess they imply, and where it comes from.

M_U is unbiased whatever the left part of g, as long as its mean is right; only the excess of that
part is at stake. It adds (s² + 2/ε₂²)·½e^{(L−n)/b}·excess to the variance of the UMVUE, so each
published fact bounds it from one side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.paper import published
from trueup.paper.contenders import paper_mean
from trueup.paper.curves import Curves, Facts, facts
from trueup.paper.newton import NewtonStep, Slips, over_priors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INVERSE = 1 / sympy.Symbol("q")


class Bound(NamedTuple):
    """A published fact and what it says about the excess."""

    fact: str
    n: int
    at_least: bool
    excess: float


@dataclass(frozen=True)
class Scenario:
    """What a Newton step with some misprints would have published."""

    name: str
    left_mean: tuple[float, float]
    excess: tuple[float, float]
    facts: Facts | None


@dataclass(frozen=True)
class Mixtures:
    """The mixtures of misprints that agree with the published facts, and what they share."""

    tried: int
    fitting: list[Slips]
    shared: set[str]


def sd_with(found: Curves, excess: float) -> NDArray[np.float64]:
    """Return the sds of M_U with a given excess."""
    base = found.sds["m_u_umvue"] ** 2
    return np.asarray(np.sqrt(base + excess * _weight(found.counts)))


def facts_with(found: Curves, excess: float) -> Facts:
    """Return what the paper would have read off the curve with a given excess."""
    return facts(found.counts, found.sds["m_ss"], sd_with(found, excess))


def implied(found: Curves, n: int, sd: float) -> float:
    """Return the excess at which M_U has a given sd."""
    return float((sd**2 - found.at("m_u_umvue", n) ** 2) / _weight(np.array([n]))[0])


def bounds(found: Curves) -> list[Bound]:
    """Return what each published fact says about the excess of the paper's g."""
    ahead, useless = published.AHEAD_FROM, published.BOTH_ABOVE_ONE_UP_TO
    at = {n: implied(found, n, found.at("m_ss", n)) for n in (ahead - 1, ahead)}
    at |= {n: implied(found, n, 1.0) for n in (useless, useless + 1)}
    return [
        Bound(f"M_U still behind at n = {ahead - 1}", ahead - 1, True, at[ahead - 1]),
        Bound(f"M_U ahead at n = {ahead}", ahead, False, at[ahead]),
        Bound(f"M_U still above 1 at n = {useless}", useless, True, at[useless]),
        Bound(f"M_U at most 1 at n = {useless + 1}", useless + 1, False, at[useless + 1]),
    ]


def interval(found: list[Bound]) -> tuple[float, float]:
    """Return the excesses that agree with every fact."""
    low = max(b.excess for b in found if b.at_least)
    return low, min(b.excess for b in found if not b.at_least)


def by_degree(found: Curves, degrees: tuple[int, ...]) -> dict[int, float]:
    """Return the excess of the exact optimum of each degree."""
    n, m = published.LEAST_COUNT, published.MEAN
    return {k: implied(found, n, paper_mean(k).sd(n, m)) for k in degrees}


def scenarios(found: Curves) -> list[Scenario]:
    """Return what the appendix gives as printed, in part and not at all."""
    step = {"half": True, "short": True, "square": True, "twice": True, "sign": True}
    rows = [
        ("no misprint: the exact optimum", Slips()),
        ("only ½ missing in ∂a₂/∂aᵢ", Slips(half=True)),
        ("only ∂a₁/∂aᵢ a term short", Slips(short=True)),
        ("only 2 + L² in ∂a₀/∂aᵢ", Slips(square=True)),
        ("only α = β counted twice", Slips(twice=True)),
        ("only the sign of the f(q) terms", Slips(sign=True)),
        ("only the b^2l missing", Slips(powers=True)),
        ("as printed", Slips(powers=True, **step)),
        ("as printed, with the b^2l", Slips(**step)),
    ]
    return [_scenario(found, name, slips) for name, slips in rows]


def mixtures(allowed: tuple[float, float]) -> Mixtures:
    """Try every mixture of the misprints that leave g unbiased, under all priors."""
    names = [f.name for f in fields(Slips) if f.name != "powers"]
    tried = [
        Slips(**dict(zip(names, choice, strict=True)))
        for choice in product((False, True), repeat=len(names))
    ]
    ranges = [over_priors(_step(slips))[1] for slips in tried]
    fit = [
        slips
        for slips, (low, high) in zip(tried, ranges, strict=True)
        if allowed[0] <= low and high <= allowed[1]
    ]
    shared = {name for name in names if fit and all(getattr(s, name) for s in fit)}
    return Mixtures(len(tried), fit, shared)


def _scenario(found: Curves, name: str, slips: Slips) -> Scenario:
    mean, excess = over_priors(_step(slips))
    unbiased = all(math.isclose(m, left_mean()) for m in mean)
    middle = facts_with(found, sum(excess) / 2) if unbiased else None
    return Scenario(name, mean, excess, middle)


def _step(slips: Slips) -> NewtonStep:
    scale = int(1 / published.EPSILON_COUNT)
    return NewtonStep(_INVERSE, published.LEAST_COUNT, scale, published.DEGREE, slips)


def left_mean() -> float:
    """Return f(L) − b f′(L) for f = 1/q: the left mean that unbiasedness asks for."""
    L, b = published.LEAST_COUNT, 1 / published.EPSILON_COUNT
    return float(1 / L + b / L**2)


def _weight(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what one unit of excess adds to the variance of M_U."""
    b = float(1 / published.EPSILON_COUNT)
    noise = 2 / float(published.EPSILON_MEAN) ** 2
    decay = np.exp((published.LEAST_COUNT - counts) / b) / 2
    return np.asarray(((counts * published.MEAN) ** 2 + noise) * decay)
