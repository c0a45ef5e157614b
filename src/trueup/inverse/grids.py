"""From the components of an estimator to what the kernels evaluate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trueup.kernels.grid import Bounds, Grid, Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sympy

    from trueup.inverse.component import Cell, Component
    from trueup.inverse.solve import Statistic


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

    whole = frozenset(i for i, s in enumerate(statistics) if s.noise.lattice)

    def part(c: Component, what: str) -> Part:
        reads = reads_of(c.statistics, inputs, scales)
        bounds = bounds_of(c.cells, inputs)
        return Part(inputs, reads, partial(c.worked_out, what), bounds, whole)

    terms = []
    for c in components:
        products = c.products(what) or [[(c, what, 1)]]
        terms += [[f for g, own, n in term for f in [part(g, own)] * n] for term in products]
    return Grid(inputs, terms, whole)


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
        whole = cell.noise.lattice
        found.append(Bounds(index[cell.symbol], low, high, below, above, whole))
    return found
