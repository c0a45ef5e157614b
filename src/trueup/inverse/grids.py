"""From the components of an estimator to what the kernels evaluate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trueup.kernels.grid import Bounds, Grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sympy

    from trueup.inverse.component import Cell, Component
    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Formula


def grid(
    components: Sequence[Component],
    statistics: Sequence[Statistic | Cell],
    what: str,
    scales: Mapping[sympy.Symbol, sympy.Symbol] | None = None,
) -> Grid:
    """Return the ``value`` or ``variance`` of a sum of components, ready for numbers and arrays.

    The inputs are the statistics, then the noise scales that the formulas hold as symbols, given
    as {statistic: scale}.
    """
    scales = scales or {}
    inputs = (*(s.symbol for s in statistics), *scales.values())

    def formula(c: Component, what: str) -> Formula:
        reads = reads_of(c.statistics, inputs, scales)
        return bounds_of(c.cells, inputs), reads, partial(c.worked_out, what)

    parts = []
    for c in components:
        terms = [[(formula(f, own), n) for f, own, n in term] for term in c.products(what)]
        parts.append((*formula(c, what), terms))
    whole = frozenset(i for i, s in enumerate(statistics) if s.noise.lattice)
    return Grid(inputs, parts, whole)


def reads_of(
    statistics: Sequence[sympy.Symbol],
    inputs: Sequence[sympy.Symbol],
    scales: Mapping[sympy.Symbol, sympy.Symbol],
) -> tuple[int, ...]:
    """Return where the statistics, then their scales, are among the inputs."""
    index = {symbol: i for i, symbol in enumerate(inputs)}
    return tuple(index[s] for s in (*statistics, *(scales[s] for s in statistics if s in scales)))


def bounds_of(cells: Sequence[Cell], inputs: Sequence[sympy.Symbol]) -> list[Bounds]:
    """Return where the branches of each cell begin."""
    index = {symbol: i for i, symbol in enumerate(inputs)}
    found = []
    for cell in cells:
        sides = {branch.side: i for i, branch in enumerate(cell.operator.branches)}
        low, high = map(float, cell.operator.starts)
        below, above = sides.get("below", 0), sides.get("above", 0)
        found.append(Bounds(index[cell.symbol], low, high, below, above))
    return found
