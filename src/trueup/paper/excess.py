"""Why the paper's small-n numbers differ: the excess they imply, and where it comes from.

M_U is unbiased whatever the left part of g, as long as its mean is right; only the excess of that
part is at stake. It adds (s² + 2/ε₂²)·½e^{(L−n)/b}·excess to the variance of the UMVUE, so each
published fact bounds it from one side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.paper import printed
from trueup.paper.curves import Curves, paper_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Bound(NamedTuple):
    """A published fact and what it says about the excess."""

    fact: str
    n: int
    at_least: bool
    excess: float


def sd_with(found: Curves, excess: float) -> NDArray[np.float64]:
    """Return the sds of M_U with a given excess."""
    base = found.sds["m_u_umvue"] ** 2
    return np.asarray(np.sqrt(base + excess * _weight(found.counts)))


def implied(found: Curves, n: int, sd: float) -> float:
    """Return the excess at which M_U has a given sd."""
    return float((sd**2 - found.at("m_u_umvue", n) ** 2) / _weight(np.array([n]))[0])


def bounds(found: Curves) -> list[Bound]:
    """Return what each published fact says about the excess of the paper's g."""
    ahead, useless = printed.AHEAD_FROM, printed.BOTH_ABOVE_ONE_UP_TO
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
    n, m = printed.LEAST_COUNT, printed.MEAN
    return {k: implied(found, n, paper_mean(k).sd(n, m)) for k in degrees}


def left_mean() -> float:
    """Return f(L) − b f′(L) for f = 1/q: the left mean that unbiasedness asks for."""
    L, b = printed.LEAST_COUNT, 1 / printed.EPSILON_COUNT
    return float(1 / L + b / L**2)


def _weight(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what one unit of excess adds to the variance of M_U."""
    b = float(1 / printed.EPSILON_COUNT)
    noise = 2 / float(printed.EPSILON_MEAN) ** 2
    decay = np.exp((printed.LEAST_COUNT - counts) / b) / 2
    return np.asarray(((counts * printed.MEAN) ** 2 + noise) * decay)
