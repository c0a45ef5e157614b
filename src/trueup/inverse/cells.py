"""Cells: which parts of a box a check of interval walks leaves open.

The whole box is tried first. What is left is halved, along the axes of *guards* that may vanish
(what f divides by, takes roots or logarithms of, or compares), integer axes between integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy
from sympy.core.relational import Relational

from trueup.inverse.ranges import Cells, Floats, Mask, Walk, constant_bounds, difference

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.formula.linear import Condition

    Box = Mapping[sympy.Symbol, Interval]

Cell = dict[sympy.Symbol, tuple[float, float]]
"""The ends of one cell along every axis."""

_CELLS = 4096  # at once: a walk over so many takes some milliseconds
_ROUNDS = 130  # of halving: 60 lead from 1e100 to 1e-15
_LEFT = 64  # tiny cells beyond which nothing is judged
_TINY, SMALLEST, FAR = 1e-12, 1e-3, 1e100
"""Relative width of a tiny cell; the size from which on it is relative; where cells end."""


@lru_cache(maxsize=1024)
def guards(f: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Return what f divides by, takes roots or logarithms of, or compares.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> guards(sympy.log(q) / (q - 2))
    (q - 2, q)
    """
    found = [g for node in sympy.preorder_traversal(f) for g in guards_of(node)]
    return tuple(dict.fromkeys(g for g in found if g.free_symbols))


def guards_of(node: sympy.Basic) -> Iterator[sympy.Expr]:
    """Yield the guards of the outermost operation of an expression."""
    if isinstance(node, sympy.Pow) and not (node.exp.is_Integer and node.exp > 0):
        yield node.base
    elif isinstance(node, (sympy.log, sympy.Abs, sympy.sign)):
        yield node.args[0]
    elif isinstance(node, (sympy.Min, sympy.Max)):
        for a, b in combinations(node.args, 2):
            yield a - b
    elif isinstance(node, Relational):
        yield difference(node)
    elif isinstance(node, sympy.tan):
        yield sympy.cos(node.args[0])
    elif isinstance(node, (sympy.asin, sympy.acos, sympy.atanh)):
        yield from (1 - node.args[0], 1 + node.args[0])
    elif isinstance(node, sympy.acosh):
        yield node.args[0] - 1


class Question(NamedTuple):
    """A check of walks on a box, with what guides it.

    ``check`` tells on which cells it is met. Cells are cut along the axes of ``suspects`` that may
    vanish, along all if they are None; cells where a condition of ``tied`` fails are dropped.
    """

    check: Callable[[Walk], Mask]
    box: Box
    free: frozenset[sympy.Symbol] = frozenset()
    suspects: tuple[sympy.Expr, ...] | None = None
    tied: Sequence[Condition] = ()
    analytic: bool = False


def tell(walk: Walk, tied: Sequence[Condition]) -> None:
    """Tell a walk what conditions say of sums of statistics."""
    for condition in tied:
        total = sympy.Add(*(c * sympy.Symbol(name, real=True) for name, c in condition.terms))
        bounds = constant_bounds(condition.low)
        if bounds is not None and total.free_symbols <= set(walk.memo):
            walk.tell(total, bounds[0])


def undecided(question: Question) -> list[Cell]:
    """Return cells, tiny unless there are too many, on which a check fails.

    The box is tried as it is; cut into cells it ends at ±1e100.
    """
    box = question.box
    cells = {s: (np.array([float(d.low)]), np.array([float(d.high)])) for s, d in box.items()}
    left: list[Cell] = []
    for _ in range(_ROUNDS):
        walk = Walk(cells, question.free, analytic=question.analytic)
        tell(walk, question.tied)
        keep = walk.allowed & ~question.check(walk)
        axes = _axes(question, walk, keep)
        cells = _rows(cells, keep)
        small = np.ones(int(keep.sum()), dtype=bool)
        for s in axes:
            small &= _is_tiny(*cells[s], whole=box[s].lattice)
        left += _listed(_rows(cells, small))
        cells = _rows(cells, ~small)
        count = int((~small).sum())
        if not count:
            return left
        if count * 2 ** len(axes) > _CELLS or len(left) > _LEFT:
            break
        for s in axes:
            cells = _halved(cells, s, whole=box[s].lattice)
    return left + _listed(_rows(cells, slice(_LEFT)))


def _axes(question: Question, walk: Walk, keep: Mask) -> list[sympy.Symbol]:
    """Return the axes of all suspects that may vanish on a cell that is left."""
    if question.suspects is None:
        return list(question.box)
    found: set[sympy.Symbol] = set()
    for guard in question.suspects:
        low, high, _ = walk.range(guard)
        if ((low <= 0) & (high >= 0) & keep).any():
            found |= guard.free_symbols
    return [s for s in question.box if s in found]


def _is_tiny(low: Floats, high: Floats, *, whole: bool) -> Mask:
    size = np.clip(np.maximum(np.abs(low), np.abs(high)), SMALLEST, FAR)
    tiny: Mask = high <= low if whole else high - low <= _TINY * size
    return tiny


def _rows(cells: Cells, which: Mask | slice) -> dict[sympy.Symbol, tuple[Floats, Floats]]:
    return {s: (low[which], high[which]) for s, (low, high) in cells.items()}


def _listed(cells: Cells) -> list[Cell]:
    ends = [zip(low.tolist(), high.tolist(), strict=True) for low, high in cells.values()]
    return [dict(zip(cells, row, strict=True)) for row in zip(*ends, strict=True)]


def _halved(
    cells: Cells, s: sympy.Symbol, *, whole: bool
) -> dict[sympy.Symbol, tuple[Floats, Floats]]:
    """Return both halves of every cell along an axis."""
    low, high = (np.clip(end, -FAR, FAR) for end in cells[s])
    middle = np.clip(np.floor(halfway(low, high)) if whole else halfway(low, high), low, high)
    after = np.minimum(middle + 1, high) if whole else middle
    cut = low < high
    halves = {t: (np.append(a, a[cut]), np.append(b, b[cut])) for t, (a, b) in cells.items()}
    ends = np.append(low, after[cut]), np.append(np.where(cut, middle, high), high[cut])
    return {**halves, s: ends}


def halfway(low: Floats, high: Floats) -> Floats:
    """Return a point inside: 0, or in the middle of the decades of a cell that spans some."""
    near, far = np.minimum(abs(low), abs(high)), np.maximum(abs(low), abs(high))
    size = np.sqrt(np.maximum(near, 1.0)) * np.sqrt(far)
    decades = (low * high >= 0) & (far > np.maximum(4.0, 4 * near))
    middle = np.where(decades, np.where(low < 0, -size, size), low / 2 + high / 2)
    across = (low < 0) & (high > 0) & (far > 4)
    inner: Floats = np.where(across, 0.0, middle)
    return inner


def lattice(box: Box) -> frozenset[sympy.Symbol]:
    """Return the statistics that are integers."""
    return frozenset(s for s, domain in box.items() if domain.lattice)
