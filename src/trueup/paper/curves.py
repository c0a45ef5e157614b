"""The mechanisms compared, at one total ε: their sds against n, and the facts read off them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.mechanisms import Mean, SmoothSensitivityMean, TwoTotalsMean
from trueup.paper import printed

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST = 150  # the figures run from n = 1 to here
ZOOM_FROM = 20  # Figure 2 starts here
FAR = 10_000  # stands for n → ∞
SHOWN = (1, 5, 10, 13, 20, 50, 115, 200)  # counts of the printed table


@dataclass(frozen=True)
class Contender:
    """A mechanism with a key (CSV, code), a name (tables) and the counts it is unbiased for."""

    key: str
    name: str
    mechanism: Any
    at_least: int = printed.LEAST_COUNT

    def sd(self, n: int, mean: float = printed.MEAN) -> float:
        """Return the exact standard deviation of the mean, NaN where it is biased."""
        return float(self.mechanism.sd(n, mean)) if n >= self.at_least else math.nan


def paper_mean(extension: str | int) -> Mean:
    """Return the paper's M_U with a given extension below L."""
    return Mean(
        printed.EPSILON_COUNT,
        printed.EPSILON_MEAN,
        count_at_least=printed.LEAST_COUNT,
        centred=False,
        extension=extension,
    )


def contenders() -> tuple[Contender, ...]:
    """Return every mechanism of the comparison.

    Examples
    --------
    >>> [c.key for c in contenders()]
    ['m_ss', 'm_u_k10', 'm_u_umvue', 'centred', 'two_totals', 'two_totals_5']
    """
    count, mean = printed.EPSILON_COUNT, printed.EPSILON_MEAN
    k, least, five = printed.DEGREE, printed.LEAST_COUNT, 5
    return (
        Contender("m_ss", "M_SS", SmoothSensitivityMean(count, mean)),
        Contender(f"m_u_k{k}", f"M_U, k = {k}", paper_mean(k)),
        Contender("m_u_umvue", "M_U, UMVUE", paper_mean("optimal")),
        Contender("centred", "centred", Mean(count, mean, count_at_least=least)),
        Contender(
            "two_totals",
            f"two totals, L = {least}",
            TwoTotalsMean(count + mean, count_at_least=least),
        ),
        Contender(
            f"two_totals_{five}",
            f"two totals, L = {five}",
            TwoTotalsMean(count + mean, count_at_least=five),
            five,
        ),
    )


class Facts(NamedTuple):
    """What Section 5 says of M_U against M_SS, for one variant of M_U."""

    ahead_from: int
    both_above_one_up_to: int
    peak: float
    peak_at: int


@dataclass(frozen=True)
class Curves:
    """The sds of every contender, for n = 1, 2, … in turn."""

    contenders: tuple[Contender, ...]
    counts: NDArray[np.int64]
    sds: dict[str, NDArray[np.float64]]

    def ratio_at(self, key: str, n: int) -> float:
        """Return sd(M_SS)/sd(key) for n records."""
        return self.at("m_ss", n) / self.at(key, n)

    def facts(self, key: str) -> Facts:
        """Return the crossing, the range of useless n, and the peak for a contender."""
        return facts(self.counts, self.sds["m_ss"], self.sds[key])

    def at(self, key: str, n: int) -> float:
        """Return the sd for n records."""
        return float(self.sds[key][n - int(self.counts[0])])


def curves() -> Curves:
    """Compute the sds of every contender."""
    found = contenders()
    counts = np.arange(1, LAST + 1)
    sds = {c.key: np.array([c.sd(int(n)) for n in counts]) for c in found}
    return Curves(found, counts, sds)


def facts(
    counts: NDArray[np.int64], yardstick: NDArray[np.float64], sds: NDArray[np.float64]
) -> Facts:
    """Read the facts off two curves.

    Examples
    --------
    >>> facts(np.arange(1, 5), np.array([4.0, 3, 2, 1]), np.array([5.0, 1.5, 0.5, 0.5]))
    Facts(ahead_from=2, both_above_one_up_to=2, peak=4.0, peak_at=3)
    """
    behind, both = sds >= yardstick, (sds > 1) & (yardstick > 1)
    ratio = yardstick / sds
    best = int(np.argmax(ratio))
    return Facts(
        int(counts[behind].max(initial=0)) + 1,
        int(counts[~both].min()) - 1,
        float(ratio[best]),
        int(counts[best]),
    )


def settled_from(found: Curves) -> int:
    """Return the n from which n·sd(M_SS) is constant: its smooth bound has become 1/n."""
    scaled = found.counts * found.sds["m_ss"]
    moving = scaled > scaled[-1] * (1 + 1e-12)
    return int(found.counts[moving].max()) + 1


def shown(found: Curves) -> dict[int, list[float]]:
    """Return the sds of all contenders at the counts of the printed table."""
    return {n: [c.sd(n) for c in found.contenders] for n in SHOWN}


def far(found: Curves) -> dict[float, list[float]]:
    """Return n·sd for many records, by mean: what each mechanism settles at."""
    return {m: [FAR * c.sd(FAR, m) for c in found.contenders] for m in (0.5, 1.0)}


def overtakes(found: Curves, better: str, other: str) -> int:
    """Return the n from which one contender stays ahead of another."""
    behind = found.counts[found.sds[better] >= found.sds[other]]
    return int(behind.max(initial=0)) + 1
