"""The mechanisms that are compared, at one total ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from trueup.mechanisms import Mean, SmoothSensitivityMean, TwoTotalsMean
from trueup.paper import printed


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
