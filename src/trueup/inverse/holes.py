"""Box minus holes: the best value of f where the truth cannot be, and the inverse on the box.

On a box of integers under independent discrete Laplace noises every unbiased estimator on the box
minus a finite set E of holes is T[f̃] for some extension f̃ of f to E, T = T₁∘…∘T_d the inverse on
the box. With E at a corner of the box the best extension is the same for all true values beyond E
in every statistic (the *far rule*):

    Π (1 − Sᵢ)(1 − αᵢSᵢ) f̃ = 0 on E,     Sᵢ one step from the corner along statistic i,

solved from the hole farthest from the corner on.
Numbers may be fractions, floats of any precision, or formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    pass

Point = tuple[int, ...]
Values = Callable[[Point], Any]


class Axis(NamedTuple):
    """One statistic: α = e^{−1/b}, its bounds (None on an open side), and where its holes are.

    ``inward`` is 1 with holes at the lower bound, −1 at the upper one.
    """

    alpha: Any
    low: int | None
    high: int | None
    inward: int = 1

    def clamp(self, y: int) -> int:
        """Return the nearest number within the bounds."""
        if self.low is not None and y < self.low:
            return self.low
        return self.high if self.high is not None and y > self.high else y

    def inverse(self, y: int) -> dict[int, Any]:
        """Return the weights of values of f in T[f](y).

        Examples
        --------
        >>> from fractions import Fraction
        >>> Axis(Fraction(1, 2), 0, None).inverse(-3), Axis(Fraction(1, 2), 0, None).inverse(5)
        ({0: Fraction(2, 1), 1: Fraction(-1, 1)}, {5: Fraction(5, 1), 4: Fraction(-2, 1), ...})
        """
        k, a = self.clamp(y), self.alpha
        if self.low == self.high is not None:
            return {k: 1}
        if k in (self.low, self.high):
            kappa = a / (1 - a)
            return {k: 1 + kappa, k + (1 if k == self.low else -1): -kappa}
        lam = a / (1 - a) ** 2
        return {k: 1 + 2 * lam, k - 1: -lam, k + 1: -lam}


def inverted(f: Values, axes: Sequence[Axis], y: Point) -> Any:
    """Return T[f](y).

    Examples
    --------
    >>> from fractions import Fraction
    >>> half = Axis(Fraction(1, 2), 0, None)
    >>> share = extended(lambda s: Fraction(s[1], sum(s)), [half, half], {(0, 0)})
    >>> share((0, 0)), inverted(share, [half, half], (0, 1))
    (Fraction(1, 2), Fraction(17, 6))
    """
    total = 0
    for point, weight in _read(axes, y):
        total = total + weight * f(point)
    return total


def _read(axes: Sequence[Axis], y: Point) -> Iterator[tuple[Point, Any]]:
    """Yield the points at which T[f](y) reads f, with their weights."""
    weights = [axis.inverse(k) for axis, k in zip(axes, y, strict=True)]
    for items in product(*(w.items() for w in weights)):
        yield tuple(k for k, _ in items), math.prod(w for _, w in items)


def extended(f: Values, axes: Sequence[Axis], holes: set[Point]) -> Values:
    """Return f with values in the holes by the far rule."""
    known: dict[Point, Any] = {}
    steps = [(1, -(1 + axis.alpha), axis.alpha) for axis in axes]

    def value(point: Point) -> Any:
        if point not in known:
            known[point] = far(point) if point in holes else f(point)
        return known[point]

    def far(hole: Point) -> Any:
        total = 0
        for js in product(range(3), repeat=len(axes)):
            if any(js):
                near = zip(axes, hole, js, strict=True)
                moved = tuple(a.clamp(k + a.inward * j) for a, k, j in near)
                if moved == hole:  # the box is too narrow for the rule: any value is unbiased
                    continue
                total = total - math.prod(w[j] for w, j in zip(steps, js, strict=True)) * value(
                    moved
                )
        return total

    return value


def neighbours(axes: Sequence[Axis], holes: set[Point]) -> list[Point]:
    """Return a grid of all points at which the inverse reads a hole."""
    sides = zip(axes, zip(*holes, strict=True), strict=True)
    grids = [sorted({a.clamp(k + s) for k in ks for s in (-1, 0, 1)}) for a, ks in sides]
    return list(product(*grids))


def holes_of(
    axes: Sequence[Axis], violated: Callable[[Point], bool], most: int
) -> set[Point] | None:
    """Return the points around a corner that violate conditions, None if they are too many."""
    corner = [a.low if a.inward > 0 else a.high for a in axes]
    start = tuple(k for k in corner if k is not None)
    if len(start) < len(axes):
        return None
    found: set[Point] = set()
    queue = [start]
    while queue and len(found) <= most:
        point = queue.pop()
        inside = all(a.clamp(k) == k for a, k in zip(axes, point, strict=True))
        if inside and point not in found and violated(point):
            found.add(point)
            moves = ((*point[:i], point[i] + a.inward, *point[i + 1 :]) for i, a in enumerate(axes))
            queue += moves
    return found if len(found) <= most else None
