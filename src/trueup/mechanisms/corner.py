"""What is published near the empty group in place of two small noisy counts.

The pair (0, 0) says nothing about a mean and yet is likely when records are few. So pairs in the
corner B = {0…R}² are not published. Instead a label is drawn from a row that belongs to the true
counts, each at most R, c(s) = min(s, R). Because α^|s − t| = α^|s − c(s)|·α^|c(s) − t| for t in B,
the release is private and unbiased for every s as soon as, on B, the masses of each label differ
between neighbours by at most e^ε, add up to those of the pairs, and have their mean. The empty
group is an ordinary input: pairs of positive counts are as likely as at (1, 1).

For larger ε a closed form is nearly the best (R = 1, the punctured geometric mechanism: the pairs
(0, 1), (1, 0) and (1, 1) stay, (0, 0) is dissolved); else the masses are a linear programme's.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.limit.programme import Programme, best_masses, edges_of, exact_rows
from trueup.limit.table import Row, wrong_pair
from trueup.mechanisms.two_counts import Cell, TwoCounts, alpha_of, rounded, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.mechanisms.two_counts import Function

    Floats = NDArray[np.float64]

PUNCTURED_FROM = 0.8
"""From this ε on the closed form is within 1.4 % of the best variance; it exists from ln 2 on."""
WIDEST = 8
"""A larger corner takes too long to be made; from ε = ¼ on, ⌈2/ε⌉ is no larger."""
_PAIRS: tuple[Cell, ...] = ((0, 1), (1, 0), (1, 1))
_HAIR = 1e-9
"""The noise is a little wider than 1/ε: that decides nothing."""
_FAR = 40
"""Groups of up to so many records count for the tables, each size n with weight 1/n."""
_ROOMS = (1e-5, 1e-3)
"""The programme is solved for e^ε less this part, which its rounding errors may use."""
_ROOMY = 100.0
"""Up to this scale; beyond, e^ε exceeds the steps between the rows' totals by order ε² only."""
_NOISIEST = 2000.0
"""At a larger scale ε² is no more than the errors of a linear programme solved in doubles."""


@dataclasses.dataclass(frozen=True, eq=False)
class Corner:
    """The labels in the corner, and the row of each database in it.

    ``cells`` are the pairs that the labels are; empty if they are means only. The last weight of
    the row of no records is that of pairs outside the corner with two positive counts.
    """

    counts: TwoCounts
    size: int
    labels: tuple[float, ...]
    cells: tuple[Cell, ...]
    rows: dict[Cell, Row]

    def row(self, truth: Cell) -> Row:
        """Return the row of true counts."""
        return self.rows[_nearest(truth, self.size)]

    def holds(self, cell: Cell) -> bool:
        """Tell whether a noisy pair lies in the corner."""
        return max(cell) <= self.size

    def probabilities(self, truth: Cell) -> list[Fraction]:
        """Return the probability of each label, and of going on outside, at true counts."""
        row = self.row(truth)
        inside = _inside(self.counts.alpha, self.size, truth)
        return [inside * Fraction(w, row.total) for w in row.weights]

    def floats(self, truth: Cell) -> Floats:
        """Return the probability of each label at true counts of any size, in floats."""
        near = _nearest(truth, self.size)
        far = float(self.counts.alpha) ** (sum(truth) - sum(near))
        return far * self._floats[near]

    @cached_property
    def _floats(self) -> dict[Cell, Floats]:
        return {c: np.array([float(p) for p in self.probabilities(c)[:-1]]) for c in self.rows}

    # -- pairs outside, for no records -------------------------------------------------------------

    @cached_property
    def sides(self) -> Row:
        """Where pairs of positive counts outside lie, as likely as at (1, 1).

        One count is 1 to R and the other above R, R times for either; or both are above R.
        """
        alpha, size = self.counts.alpha, self.size
        one = [(1 - alpha) * alpha**j for j in range(size)]
        weights = [*one, *one, alpha**size]
        return Row.of(weights)

    def outside(self, side: int, noise: Sequence[int]) -> Cell:
        """Return a pair on a side: beyond R by geometric numbers, which two-sided noise gives."""
        zeros, ones = (self.size + 1 + (z if z >= 0 else -z - 1) for z in noise)
        if side < self.size:
            return side + 1, ones
        return (zeros, side - self.size + 1) if side < 2 * self.size else (zeros, ones)

    # -- unbiased functions ------------------------------------------------------------------------

    def estimate(self, f: Function, pair: Cell) -> Fraction:
        """Return T′f at a pair that is a label, unbiased for f with one record or more."""
        alpha = self.counts.alpha
        hole = alpha * (f(0, 1) + f(1, 0)) - alpha**2 * f(1, 1)
        plain = self.counts.inverse(lambda z, o: f(z, o) if z or o else hole, pair)
        mass = _mass(alpha, pair)  # where (1, 1) has none left nothing is ever said
        return (
            plain * self.counts.mass(pair[0]) * self.counts.mass(pair[1]) / mass if mass else mass
        )

    def variance(self, f: Function) -> float:
        """Return the least variance to state at every label that never understates the true one.

        ``f`` is the squared mean. What pairs outside the corner say of it is unbiased; so much is
        missing, on average, where most is (the empty group apart). Labels are too few to say more.
        """
        size, nodes = self.size + 1, [c for c in self.rows if c != (0, 0)]
        cells = {(i, j): self.counts.inverse(f, (i, j)) for i in range(size) for j in range(size)}
        inner = _expected(self.counts, cells, self.size)
        masses = np.array([self._floats[c] for c in nodes])
        lacking = masses @ np.array(self.labels) ** 2 - np.array([float(inner[c]) for c in nodes])
        return float((lacking / masses.sum(axis=1)).max())

    # -- privacy -----------------------------------------------------------------------------------

    def problem(self, ratio: Fraction) -> str | None:
        """Return what tells neighbours apart by more than a ratio, in exact arithmetic, or None.

        All is computed to 200 bits; a part of 2⁻⁶⁰ of the ratio is left for that.
        """
        nodes, kept, alpha = list(self.rows), len(self.labels), self.counts.alpha
        masses = [self.probabilities(c) for c in nodes]
        room = ratio * (1 - Fraction(1, 2**60))
        pair = wrong_pair([m[:kept] for m in masses], edges_of(nodes), room)
        if pair:
            return f"a label tells {nodes[pair[0]]} from {nodes[pair[1]]}"
        if min(min(row.weights) for row in self.rows.values()) < 0:
            return "a probability is negative"
        extra = masses[0][kept]  # of pairs that two counts at (0, 0) give α² of what (1, 1) does
        limit = (room**2 - 1) * alpha**2 * _outer(alpha, self.size)
        return "pairs outside tell (0, 0)" if alpha * room < 1 or extra > limit else None


def _nearest(truth: Cell, size: int) -> Cell:
    return min(truth[0], size), min(truth[1], size)


def _inside(alpha: Fraction, size: int, truth: Cell) -> Fraction:
    """Return the probability that the clamped noisy pair lies in the corner."""
    near = [1 - alpha ** (size + 1 - min(s, size)) / (1 + alpha) for s in truth]
    far = sum(s - min(s, size) for s in truth)
    return rounded(near[0] * near[1], alpha) * alpha**far


def _outer(alpha: Fraction, size: int) -> Fraction:
    """Return the probability, at (1, 1), of pairs of positive counts outside the corner."""
    return (1 - (1 - alpha**size) ** 2) / (1 + alpha) ** 2


def _expected(counts: TwoCounts, cells: dict[Cell, Fraction], size: int) -> dict[Cell, Fraction]:
    """Return the part of the mean that pairs in the corner make, one count after the other."""
    sides, nothing = range(size + 1), Fraction(0)
    p = [[counts.mass(y) * counts.alpha ** abs(y - s) for y in sides] for s in sides]
    ones = {
        (y, s): sum((p[s][i] * cells[y, i] for i in sides), nothing) for y in sides for s in sides
    }
    return {
        (r, s): sum((p[r][i] * ones[i, s] for i in sides), nothing) for r in sides for s in sides
    }


# -- making them -----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def corner(scale: float, ratio: Fraction) -> Corner:
    """Return the corner for noise of a scale, private for a ratio a hair above e^{1/scale}.

    Examples
    --------
    >>> made = corner(1.0, Fraction("2.7183"))
    >>> made.size, [round(y, 4) for y in made.labels]
    (1, [1.3474, -0.3474, 0.5])
    """
    counts, problem = TwoCounts(alpha_of(scale)), "its rounding errors are larger than ε allows"
    tabled = scale * PUNCTURED_FROM > 1 + _HAIR
    for room in () if scale > _NOISIEST else _ROOMS if tabled else (0.0,):
        part = room * min(1.0, _ROOMY / scale) ** 2
        made = _tabled(counts, scale, part) if tabled else _punctured(counts)
        found = made.problem(ratio)
        if not found:
            return made
        problem = found
    raise TrueupError(
        f"no table of labels for few records was found at scale {scale:g}: {problem}",
        "nothing was published; a promise such as empty='n >= 2', or a value, needs no table",
    )


def _punctured(counts: TwoCounts) -> Corner:
    """Return the closed form."""
    alpha, rows = counts.alpha, {}
    for zeros, ones in ((0, 0), *_PAIRS):
        far = [abs(i - zeros) + abs(j - ones) for i, j in _PAIRS]
        if not zeros + ones:  # no records: where both counts are positive as at (1, 1)
            far[-1] = 0
        here = [_mass(alpha, t) * alpha**d for t, d in zip(_PAIRS, far, strict=True)]
        inside = _inside(alpha, 1, (zeros, ones))
        *first, last = (rounded(m / inside, alpha) for m in here)
        rest = 1 - sum(first, Fraction(0))
        both = (last, rest - last) if not zeros + ones else (rest, Fraction(0))
        rows[zeros, ones] = Row.of([*first, *both])
    bare = Corner(counts, 1, (), _PAIRS, rows)
    labels = tuple(float(bare.estimate(share, pair)) for pair in _PAIRS)
    return dataclasses.replace(bare, labels=labels)


def _mass(alpha: Fraction, pair: Cell) -> Fraction:
    """Return w′ of a pair: w(0, 0) goes to (0, 1) and (1, 0), and (1, 1) makes good for it."""
    return (1 if min(pair) == 0 else 1 - 2 * alpha) / (1 + alpha) ** 2


def _tabled(counts: TwoCounts, scale: float, room: float) -> Corner:
    """Return R = ⌈2·scale⌉: the masses of a linear programme on a grid of labels, if exact."""
    size, alpha = min(WIDEST, math.ceil(2 * scale - _HAIR)), counts.alpha
    nodes = [(i, j) for i in range(size + 1) for j in range(size + 1)]
    mean = counts.continued(share, 1)
    cells = {t: counts.inverse(mean, t) for t in nodes}
    totals = [_inside(alpha, size, c) for c in nodes]
    outside = rounded((1 - alpha**2) * _outer(alpha, size) / totals[0], alpha)
    totals[0] *= 1 - outside
    inner = _expected(counts, cells, size)
    means = [inner[c] / q for c, q in zip(nodes, totals, strict=True)]
    means[0] = Fraction(1, 2)
    values, prior = [rounded(m, alpha) for m in means], _prior(size, float(alpha))
    programme = Programme(
        np.array([float(v) for v in values]),
        np.array([prior[c] for c in nodes]),
        math.exp(1 / scale) * (1 - room),
        np.array([float(q) for q in totals]),
        edges_of(nodes),
    )
    labels = _grid(scale, float(max(cells.values())))
    masses = best_masses(programme, labels).masses
    found, rows = exact_rows(labels, masses, programme, values, totals, room)
    made = {c: Row((*row.weights, 0)) for c, row in zip(nodes, rows, strict=True)}
    first = [Fraction(w, rows[0].total) * (1 - outside) for w in rows[0].weights]
    made[0, 0] = Row.of([*first, outside])
    return Corner(counts, size, found, (), made)


def _prior(size: int, alpha: float) -> dict[Cell, float]:
    """Return the weight of each row: of all databases that use it, by how likely they do."""
    weights = {(i, j): 0.0 for i in range(size + 1) for j in range(size + 1)}
    for n in range(1, _FAR + 1):
        for ones in range(n + 1):
            cell = _nearest((n - ones, ones), size)
            weights[cell] += alpha ** (n - sum(cell)) / (n * (n + 1))
    total = sum(1 / n for n in range(1, _FAR + 1))
    return {cell: w / total for cell, w in weights.items()}


def _grid(scale: float, largest: float) -> Floats:
    """Return labels around ½: those that the best releases use, and the largest of two counts.

    Beside ½ none between ¾ and 1.3 carries any mass, and none far above 0.78·scale.
    """
    end = 0.78 * scale + 0.05
    far = np.geomspace(end, max(largest - 0.5, 1.5 * end), 3)[1:]
    side = np.concatenate([[0.12, 0.24], np.linspace(0.78, end, 8), far])
    return np.concatenate([0.5 - side[::-1], [0.5], 0.5 + side])
