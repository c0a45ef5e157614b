"""Standard deviations against n, and the facts that the paper reads off them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.paper.contenders import Contender, contenders

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST = 150  # the figures run from n = 1 to here
ZOOM_FROM = 20  # Figure 2 starts here
FAR = 10_000  # stands for n → ∞
SHOWN = (1, 5, 10, 13, 20, 50, 115, 200)  # counts of the printed table


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


def curves(last: int = LAST) -> Curves:
    """Compute the sds of every contender up to a count."""
    found = contenders()
    counts = np.arange(1, last + 1)
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


def far(found: Curves, means: tuple[float, ...] = (0.5, 1.0)) -> dict[float, list[float]]:
    """Return n·sd for many records, by mean: what each mechanism settles at."""
    return {m: [FAR * c.sd(FAR, m) for c in found.contenders] for m in means}


def overtakes(found: Curves, better: str, other: str) -> int:
    """Return the n from which one contender stays ahead of another."""
    behind = found.counts[found.sds[better] >= found.sds[other]]
    return int(behind.max(initial=0)) + 1
