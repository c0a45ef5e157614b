"""Exact probability tables: rational numbers that keep every constraint, and exact draws."""

from __future__ import annotations

import dataclasses
import math
import secrets
from bisect import bisect_right
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    import numpy as np

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

    truths: tuple[Hashable, ...]
    labels: tuple[float, ...]
    rows: tuple[Row, ...]

    def row(self, q: Hashable) -> Row:
        """Return the row of a true value."""
        return self.rows[self.truths.index(q)]

    def probabilities(self, q: Hashable) -> tuple[Fraction, ...]:
        """Return the probability of each label at a true value."""
        row = self.row(q)
        return tuple(Fraction(weight, row.total) for weight in row.weights)

    def mean(self, q: Hashable) -> Fraction:
        """Return the mean of the published value."""
        return self._moment(q, Fraction(0), 1)

    def variance(self, q: Hashable) -> Fraction:
        """Return the variance of the published value."""
        return self._moment(q, self.mean(q), 2)

    def _moment(self, q: Hashable, center: Fraction, order: int) -> Fraction:
        row = self.row(q)
        terms = (
            (Fraction(label) - center) ** order * weight
            for label, weight in zip(self.labels, row.weights, strict=True)
        )
        return sum(terms, Fraction(0)) / row.total

    def broken(
        self, values: Sequence[Fraction], edges: Iterable[Sequence[int]], ratio: Fraction
    ) -> str | None:
        """Return which exact constraint is broken, None if all hold.

        The weights are not negative and have a positive sum, every mean is the value to be
        published, and p(y|q) ≤ ratio·p(y|q') for neighbours, given by their indices.
        """
        for q, row, value in zip(self.truths, self.rows, values, strict=True):
            if len(row.weights) != len(self.labels) or min(row.weights) < 0 or row.total <= 0:
                return f"the probabilities at {q} are not a distribution"
            if self.mean(q) != value:
                return f"the mean at {q} is {float(self.mean(q))!r}, not {float(value)!r}"
        pair = wrong_pair([self.probabilities(q) for q in self.truths], edges, ratio)
        if pair:
            here, there = (self.truths[i] for i in pair)
            return f"the probabilities at {here} and {there} differ by more than e^epsilon"
        return None


def wrong_pair(
    masses: Sequence[Sequence[Fraction]], edges: Iterable[Sequence[int]], ratio: Fraction
) -> tuple[int, int] | None:
    """Return a pair of neighbours that some label tells apart by more than the ratio, or None.

    Examples
    --------
    >>> masses = [[Fraction(1, 4)], [Fraction(3, 4)]]
    >>> wrong_pair(masses, [(0, 1)], Fraction(3))
    >>> wrong_pair(masses, [(0, 1)], Fraction(2))
    (1, 0)
    """
    rise, fall = ratio.as_integer_ratio()
    for one, two in [pair for a, b in edges for pair in ((int(a), int(b)), (int(b), int(a)))]:
        pairs = zip(masses[one], masses[two], strict=True)  # p > ratio·q, without any division
        if any(
            p.numerator * q.denominator * fall > rise * q.numerator * p.denominator
            for p, q in pairs
        ):
            return one, two
    return None


def corrected(
    masses: dict[Fraction, list[Fraction]], values: Sequence[Fraction], room: Fraction
) -> tuple[tuple[float, ...], tuple[Row, ...]]:
    """Return labels and rows with exact totals and means.

    Masses of a private mixture are off by rounding errors. They are made good by two more labels,
    far apart and equally likely, up to the corrections, at every true value: with a probability so
    small that it costs nothing, yet so much larger than the corrections that these labels are
    private too. ``room`` is by how much more than their totals, relatively, neighbours may differ
    in a label.
    """
    reach = 4 * (max(values) - min(values)) / room
    middle = (max(values) + min(values)) / 2
    low, high = Fraction(float(middle - reach)), Fraction(float(middle + reach))
    kept = 1 - _share(max(_errors(masses, values, reach)) / room)
    table = {label: [kept * p for p in row] for label, row in masses.items()}
    for label in (low, high):
        table.setdefault(label, [Fraction(0)] * len(values))
    for q, value in enumerate(values):
        missing = 1 - kept * sum(row[q] for row in masses.values())
        shift = value - kept * sum(y * row[q] for y, row in masses.items())
        upper = (shift - low * missing) / (high - low)
        table[high][q] += upper
        table[low][q] += missing - upper
    labels = sorted(table)
    rows = (Row.of([table[y][q] for y in labels]) for q in range(len(values)))
    return tuple(map(float, labels)), tuple(rows)


def _share(error: Fraction) -> Fraction:
    """Return a power of ½ well above an error: what the two correcting labels get."""
    bits = math.floor(-math.log2(64 * error)) if error else 60
    return Fraction(1, 2 ** min(60, max(1, bits)))


def _errors(
    masses: dict[Fraction, list[Fraction]], values: Sequence[Fraction], reach: Fraction
) -> Iterator[Fraction]:
    """Yield how far each row's total is from 1, and its mean from the value, per reach."""
    for q, value in enumerate(values):
        total = sum((row[q] for row in masses.values()), Fraction(0))
        moment = sum(((y - value) * row[q] for y, row in masses.items()), Fraction(0))
        yield abs(1 - total)
        yield abs(moment) / reach
