"""Per-record sums of a skewed population: roots and the logarithm, Laplace against Gaussian noise.

Every mechanism is scaled so that the record at the 95th percentile has the same loss. Pure ε-DP
implies ε²/2-zCDP, so ε under Laplace noise is matched with ρ = ε²/2 under Gaussian noise; as both
losses follow from φ(r + a) − φ(a), this matches every record at once, with σ = b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.mechanisms import PerRecordSum, Policy

EPSILON = 1.0  # the loss at the 95th percentile, under Laplace noise
LOW_LOSS = 0.5  # "the share of records that lose at most this"
SEED, RECORDS = 2025, 10_000
LOG_MEAN, LOG_SD = 3.0, 1.5


@dataclass(frozen=True)
class Population:
    """The records and what is asked of them."""

    total: float
    median: float
    high: float
    largest: float


@dataclass(frozen=True)
class Row:
    """One mechanism on the population; losses are ε (Laplace) or ρ (Gaussian)."""

    transform: str
    noise: str
    scale: float
    sd: float
    relative_sd: float
    median_loss: float
    high_loss: float
    largest_loss: float
    share_low: float


def compare() -> tuple[Population, list[Row]]:
    """Return the population and every mechanism on it."""
    records = np.random.default_rng(SEED).lognormal(LOG_MEAN, LOG_SD, RECORDS)
    people = Population(
        float(records.sum()),
        float(np.median(records)),
        float(np.quantile(records, 0.95)),
        float(records.max()),
    )
    transforms = [("root:1", 0.0), ("root:2", 0.0), ("root:3", 0.0), ("root:4", 0.0)]
    transforms.append(("log", 4 * people.high))  # keeps b below ½, where the variance is finite
    rows = [
        _row(transform, offset, noise, people, records)
        for transform, offset in transforms
        for noise in ("laplace", "gaussian")
    ]
    return people, rows


def _row(transform: str, offset: float, noise: str, people: Population, records: np.ndarray) -> Row:
    reach = PerRecordSum(transform, 0.1, offset).sensitivity(people.high)
    mechanism = PerRecordSum(transform, reach / EPSILON, offset, noise)
    sd = mechanism.sd(people.total)
    return Row(
        transform,
        noise,
        reach / EPSILON,
        sd,
        sd / people.total,
        mechanism.policy(people.median),
        mechanism.policy(people.high),
        mechanism.policy(people.largest),
        Policy(mechanism).share_below(records, matched(LOW_LOSS, noise)),
    )


def matched(epsilon: float, noise: str) -> float:
    """Return the loss that is matched with ε: itself, or ρ = ε²/2.

    Examples
    --------
    >>> matched(1.0, "laplace"), matched(1.0, "gaussian")
    (1.0, 0.5)
    """
    return epsilon if noise == "laplace" else epsilon**2 / 2
