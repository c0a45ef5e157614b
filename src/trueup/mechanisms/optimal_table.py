"""Exact probability tables: rational numbers that keep every constraint, and exact draws."""

from __future__ import annotations

import dataclasses
import math
import secrets
from bisect import bisect_right
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.mechanisms.optimal_rays import Bools, Floats

_BITS = 128


def exp_below(exponent: Fraction, bits: int = _BITS) -> Fraction:
    """Return a rational number just below e^exponent, for an exponent ≥ 0.

    The power series has positive terms, and each is rounded down.

    Examples
    --------
    >>> bound = exp_below(Fraction(1, 2))
    >>> float(bound), bound**2 < Fraction("2.718281828459045235360287471353")
    (1.6487212707001282, True)
    """
    term = total = 1 << bits
    for k in range(1, 10**6):
        term = term * exponent.numerator // (exponent.denominator * k)
        total += term
        if not term:
            break
    return Fraction(total, 1 << bits)


@dataclasses.dataclass(frozen=True)
class Row:
    """What is published at one true value: integer weights of the labels, and their sum."""

    weights: tuple[int, ...]

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """The running sums of the weights."""
        return tuple(accumulate(self.weights))

    @property
    def total(self) -> int:
        """The common denominator of the probabilities."""
        return self.bounds[-1]

    @classmethod
    def of(cls, probabilities: Sequence[Fraction]) -> Row:
        """Return the weights over the least common denominator of the probabilities."""
        whole = math.lcm(*(p.denominator for p in probabilities))
        return cls(tuple(p.numerator * (whole // p.denominator) for p in probabilities))

    def draw(self, rng: np.random.Generator | None) -> int:
        """Return the index of a label: exact and secure, or by a NumPy generator."""
        if rng is None:
            return bisect_right(self.bounds, secrets.randbelow(self.total))
        words = -(-self.total.bit_length() // 64) + 1
        uniform = int.from_bytes(rng.bytes(8 * words), "little") * self.total >> (64 * words)
        return bisect_right(self.bounds, uniform)


@dataclasses.dataclass(frozen=True)
class Table:
    """A release: for each true value, exact probabilities of the labels that can be published.

    Examples
    --------
    >>> table = Table((0, 1), (-0.5, 1.5), (Row((3, 1)), Row((1, 3))))
    >>> table.probabilities(0), table.mean(0), table.variance(0)
    ((Fraction(3, 4), Fraction(1, 4)), Fraction(0, 1), Fraction(3, 4))
    """

    truths: tuple[int, ...]
    labels: tuple[float, ...]
    rows: tuple[Row, ...]

    def row(self, q: int) -> Row:
        """Return the row of a true value."""
        return self.rows[q - self.truths[0]]

    def probabilities(self, q: int) -> tuple[Fraction, ...]:
        """Return the probability of each label at a true value."""
        row = self.row(q)
        return tuple(Fraction(weight, row.total) for weight in row.weights)

    def mean(self, q: int) -> Fraction:
        """Return the mean of the published value."""
        return self._moment(q, Fraction(0), 1)

    def variance(self, q: int) -> Fraction:
        """Return the variance of the published value."""
        return self._moment(q, self.mean(q), 2)

    def _moment(self, q: int, center: Fraction, order: int) -> Fraction:
        row = self.row(q)
        terms = (
            (Fraction(label) - center) ** order * weight
            for label, weight in zip(self.labels, row.weights, strict=True)
        )
        return sum(terms, Fraction(0)) / row.total

    def broken(self, values: Sequence[Fraction], ratio: Fraction) -> str | None:
        """Return which exact constraint is broken, None if all hold.

        The weights are not negative and have a positive sum, every mean is the value to be
        published, and p(y|q) ≤ ratio·p(y|q ± 1).
        """
        for q, row, value in zip(self.truths, self.rows, values, strict=True):
            if len(row.weights) != len(self.labels) or min(row.weights) < 0 or row.total <= 0:
                return f"the probabilities at {q} are not a distribution"
            if self.mean(q) != value:
                return f"the mean at {q} is {float(self.mean(q))!r}, not {float(value)!r}"
        for q, (here, there) in zip(self.truths, pairwise(self.rows), strict=False):
            if not (_within(here, there, ratio) and _within(there, here, ratio)):
                return f"the probabilities at {q} and {q + 1} differ by more than e^epsilon"
        return None


def _within(row: Row, other: Row, ratio: Fraction) -> bool:
    """Tell whether each probability is at most ratio times the other row's."""
    left = ratio.denominator * other.total
    right = ratio.numerator * row.total
    pairs = zip(row.weights, other.weights, strict=True)
    return all(mine * left <= theirs * right for mine, theirs in pairs)


def exact_table(
    truths: Sequence[int],
    values: Sequence[Fraction],
    labels: Floats,
    rising: Bools,
    weights: Floats,
    ratio: Fraction,
) -> Table:
    """Return the mixture of rays, rounded so that every total and every mean is exact.

    Each ray steps by the rational ratio, so that the mixture is private by construction. What
    rounding takes from the total and the mean of a row is given back to two of its labels, far
    apart and likely; that moves two probabilities by a tiny share, for which the caller leaves
    room in the ratio.
    """
    order = sorted(set(labels.tolist()))
    bits = _BITS + math.ceil(len(truths) * math.log2(float(ratio)))
    powers = [(1 << bits) * ratio.denominator**k // ratio.numerator**k for k in range(len(truths))]
    steps = np.vstack([np.zeros((1, len(labels)), int), np.cumsum(np.where(rising, 1, -1), 0)])
    depth = (steps.max(axis=0) - steps).T.tolist()
    masses = {label: [Fraction(0)] * len(truths) for label in order}
    for label, weight, down in zip(labels.tolist(), weights.tolist(), depth, strict=True):
        scaled = Fraction(weight) / (1 << bits)
        row = masses[label]
        for q, k in enumerate(down):
            row[q] += scaled * powers[k]
    exact = [Fraction(label) for label in order]
    rows = (
        Row.of(_balanced([masses[label][q] for label in order], exact, value))
        for q, value in enumerate(values)
    )
    return Table(tuple(truths), tuple(order), tuple(rows))


def _balanced(row: list[Fraction], labels: list[Fraction], value: Fraction) -> list[Fraction]:
    """Return the row with total 1 and the given mean, changed at two labels."""
    low, high = _pair(np.array([float(p) for p in row]), np.array([float(y) for y in labels]))
    missing = 1 - sum(row)
    shift = value - sum(p * y for p, y in zip(row, labels, strict=True))
    upper = (shift - labels[low] * missing) / (labels[high] - labels[low])
    changed = list(row)
    changed[high] += upper
    changed[low] += missing - upper
    return changed


def _pair(row: Floats, labels: Floats) -> tuple[int, int]:
    """Return two labels that can take a correction: far apart, and both likely."""
    room = np.minimum(row[:, None], row) * np.abs(labels[:, None] - labels)
    low, high = np.unravel_index(int(room.argmax()), room.shape)
    if low == high:
        raise TrueupError(
            "a release with a single label cannot be corrected", "this is a fault in trueup"
        )
    return int(low), int(high)
