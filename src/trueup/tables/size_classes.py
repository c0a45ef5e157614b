"""Cells by their true size, though only noisy sizes are published.

Noisy sizes are counted in bins, an eighth of the noise's quartiles wide and wider in proportion
where sizes are large. Classes of true sizes have four parts each; the share of cells in each part
is the one of greatest likelihood given these counts and the law of the noise.
"""

from __future__ import annotations

import dataclasses
import math
from functools import reduce
from itertools import count, pairwise
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.formula.substitution import denominators
from trueup.noise.gaussian import Gaussian

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

FINE = 8
"""Bins for each distance of the quartiles: within one the law of the noise hardly changes."""
PARTS = 4
"""Of a class: errors change by less than a factor of two between neighbours."""
_NODES = 16  # sizes looked at in a part of a class: some for each bin
_ROUNDS = 200
"""Of expectation and maximisation, from log-uniform shares on: parts that the noise does not tell
apart stay near those, and do not trade all of their cells for a last bit of likelihood."""
_CLEARLY = 2.0
"""By how much empty cells must raise the log of the likelihood: chance does so once in forty times
where there are none, and a tenth of 20,000 cells, under noise of scale 5, nearly always if sizes
are log-uniform; where most cells have size 1, which hides them, every other time."""
_OUTSIDE = 1e-12  # the likelihood of what the noise does not explain: a wrong bound


@dataclasses.dataclass(frozen=True)
class Size:
    """What makes a cell large: the denominator of the formula, or else its first statistic.

    ``parts`` are the statistics that add up to it, ``law`` the noise of the published size, and
    ``divides`` says whether it is a denominator: other statistics are then taken to grow with it.
    """

    parts: tuple[str, ...]
    law: Noise
    low: float
    high: float
    divides: bool

    @property
    def name(self) -> str:
        """The size, as a formula."""
        return " + ".join(self.parts)

    @property
    def whole(self) -> bool:
        """Whether sizes are whole numbers."""
        return self.law.lattice

    @property
    def unit(self) -> float:
        """The distance of the noise's quartiles."""
        low, high = (float(self.law.quantile(p)) for p in (0.25, 0.75))
        return high - low or 1.0

    def edges(self, bins: Floats) -> Floats:
        """Return the lower ends of bins."""
        return np.asarray(self.unit * np.sinh(bins / FINE))


def size_of(estimator: Estimator) -> Size:
    """Return what the cells of a table are sorted by.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, unbiased
    >>> law = DiscreteLaplace(2)
    >>> size_of(unbiased("s/n", {"s": law, "n": law}, {"n": (1, None)})).name
    'n'
    >>> shares = unbiased("a/(a + b)", {"a": law, "b": law}, "a >= 0, b >= 0, a + b >= 1")
    >>> size_of(shares).name, size_of(shares).low
    ('a + b', 1.0)
    """
    found = denominators(estimator.estimand)
    parts: tuple[str, ...] = estimator.statistics[:1]
    if found:
        names = sorted(s.name for s in found[0].free_symbols)
        is_sum = found[0] == sum(found[0].free_symbols)
        parts = tuple(names if is_sum else names[:1])
    noises = [estimator.noise[p] for p in parts]
    bounds = [estimator.domain[p].bounds for p in parts]
    low, high = (math.fsum(float(e if e is not None else s * math.inf) for e in ends)
                 for ends, s in zip(zip(*bounds, strict=True), (-1, 1), strict=True))  # fmt: skip
    if len(parts) > 1 and low <= 0:
        low = 1.0 if all(n.lattice for n in noises) else low  # a denominator is not 0
    return Size(parts, _law(noises), low, high, bool(found))


def _law(noises: list[Noise]) -> Noise:
    """Return the noise of a sum, as a normal law if nothing but its variance is known."""
    try:
        law = reduce(add, noises)
        law.quantile(0.25), law.cdf(0.0)
    except TrueupError:
        return Gaussian(math.sqrt(sum(float(n.variance) for n in noises)))
    return law


@dataclasses.dataclass(frozen=True)
class SizeClass:
    """True sizes from ``low`` up to, not including, ``high``."""

    low: float
    high: float
    whole: bool

    @property
    def words(self) -> str:
        """The sizes, as text.

        Examples
        --------
        >>> SizeClass(20, 50, True).words, SizeClass(0, 0.5, False).words
        ('20–49', '0 to 0.5')
        """
        if not self.whole:
            return f"{self.low:,g} to {self.high:,g}"
        if self.high - self.low == 1:
            return f"{self.low:,.0f}"
        between = "–" if self.low >= 0 else " to "
        return f"{self.low:,.0f}{between}{self.high - 1:,.0f}"

    @property
    def weight(self) -> float:
        """How much of a log-uniform law is in the class; one around 0 counts as a doubling."""
        low, high = sorted((abs(self.low), abs(self.high)))
        return math.log(high / low) if self.low * self.high > 0 else math.log(2)

    def sizes(self, count: int) -> Floats:
        """Return sizes that are log-uniform in the class, uniform in one that contains 0.

        Examples
        --------
        >>> SizeClass(2, 5, True).sizes(4)
        array([2., 2., 3., 4.])
        """
        at = (np.arange(count) + 0.5) / count
        low, high = self.low, self.high
        if self.whole and high <= 1 and low < 0:
            return np.asarray(-SizeClass(1 - high, 1 - low, True).sizes(count))
        found = low * (high / low) ** at if low * high > 0 else low + (high - low) * at
        return np.floor(found) if self.whole else found


def classes(size: Size, smallest: float, largest: float) -> list[SizeClass]:
    """Return classes with ends at 1, 2, 5, 10, …, between bounds and what is seen.

    Examples
    --------
    >>> from trueup import DiscreteLaplace
    >>> size = Size(("n",), DiscreteLaplace(2), 1, math.inf, True)
    >>> [c.words for c in classes(size, -9.0, 40.0)]
    ['1', '2–4', '5–9', '10–19', '20–49']
    """
    low = max(size.low, min(smallest, 0.0)) if math.isinf(size.low) else size.low
    high = max(min(size.high, largest), low)
    least = 1.0 if size.whole else size.unit / 4
    ends, steps = [low], list(_steps(least, max(abs(low), abs(high))))
    least = next(_steps(least, math.inf))
    cuts = sorted({0.0 if size.whole else least, *steps, *(size.whole - s for s in steps)})
    ends += [c for c in cuts if low < c <= high]
    top = next(s for s in _steps(least, math.inf) if s > ends[-1])
    ends.append(min(top, size.high + size.whole))
    if ends[-1] <= ends[-2]:  # one size alone is possible
        ends[-1] = ends[-2] + (size.whole or max(abs(ends[-2]), least) * 1e-9)
    return [SizeClass(a, b, size.whole) for a, b in pairwise(ends)]


def _steps(least: float, reach: float) -> Iterator[float]:
    """Yield 1, 2, 5, 10, … from one number to another."""
    for power in count(math.floor(math.log10(least))):
        for digit in (1, 2, 5):
            step = float(f"{digit}e{power}")
            if step > reach:
                return
            if step >= least:
                yield step


EMPTY = SizeClass(0.0, 1.0, True)
"""Cells of size 0, where bounds say that there are none."""


@dataclasses.dataclass(frozen=True)
class Shares:
    """How the cells of a table are spread over classes of true sizes.

    Parameters
    ----------
    classes, shares, parts
        The classes, the share of cells in each, and in each of its parts.
    belongs, first, second
        For each bin and class, what is to be expected of "a cell is in the class", and of this
        times its size or the square of its size.
    """

    classes: list[SizeClass]
    shares: Floats
    parts: Floats
    belongs: Floats
    first: Floats
    second: Floats


def shares(size: Size, bins: Floats, cells: Floats) -> Shares:
    """Return the shares of the classes, given how many cells there are in each bin.

    Where bounds say that a denominator is never 0, and the bins that some cells are empty, these
    are the first class.

    Examples
    --------
    >>> from trueup import DiscreteLaplace
    >>> law, sizes = DiscreteLaplace(3), np.repeat([3.0, 30.0], [6000, 2000])
    >>> size = Size(("n",), law, 1, math.inf, True)
    >>> x = sizes + law.sample(8000, rng=np.random.default_rng(1))
    >>> bins, cells = np.unique(np.floor(FINE * np.arcsinh(x / size.unit)), return_counts=True)
    >>> found = shares(size, bins, cells.astype(float))
    >>> {c.words: round(float(s), 2) for c, s in zip(found.classes, found.shares) if s > 0.1}
    {'2–4': 0.73, '20–49': 0.25}
    """
    edges = size.edges(np.array([bins[0], bins[-1] + 1]))
    kinds = classes(size, float(edges[0]), float(edges[1]))
    found, fit = _likeliest(size, kinds, bins, cells)
    if size.divides and size.low > 0:
        other, better = _likeliest(size, [EMPTY, *kinds], bins, cells)
        if better > fit + _CLEARLY:
            return other
    return found


def _likeliest(
    size: Size, kinds: list[SizeClass], bins: Floats, cells: Floats
) -> tuple[Shares, float]:
    """Return the shares of greatest likelihood, and its logarithm."""
    nodes = np.concatenate([c.sizes(PARTS * _NODES) for c in kinds])
    chance = _below(size, size.edges(bins + 1), nodes) - _below(size, size.edges(bins), nodes)
    chance = np.maximum(chance, _OUTSIDE) / _NODES
    by_part = chance.reshape(len(bins), -1, _NODES).sum(axis=2)
    weight = np.repeat([c.weight for c in kinds], PARTS)
    weight = weight / weight.sum()
    for _ in range(_ROUNDS):
        weight = weight * (by_part.T @ (cells / (by_part @ weight))) / cells.sum()
    joint = chance * np.repeat(weight, _NODES)
    joint /= joint.sum(axis=1, keepdims=True)
    by_class = [
        (joint * nodes**power).reshape(len(bins), len(kinds), -1).sum(axis=2) for power in range(3)
    ]
    parts = weight.reshape(-1, PARTS)
    fit = float(cells @ np.log(by_part @ weight))
    return Shares(kinds, parts.sum(axis=1), parts, *by_class), fit


def _below(size: Size, ends: Floats, nodes: Floats) -> Floats:
    """Return P(n + Z < end), for ends in rows and sizes in columns."""
    gaps = ends[:, None] - nodes
    if size.whole:
        gaps = np.ceil(gaps) - 1
    elif size.law.known:  # P(Z < 0) is 0
        gaps = np.where(gaps == 0, -1.0, gaps)
    return np.asarray(size.law.cdf(gaps), float)
