"""From the components of an estimator to what the kernels evaluate."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from trueup.kernels.grid import Bounds, Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import sympy

    from trueup.inverse.component import Cell, Component, Region
    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Formula, Products


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
        return bounds_of(c.cells, inputs), reads, WorkedOut(c, what)

    parts = [(*formula(c, what), products(c, what, formula)) for c in components]
    whole = frozenset(i for i, s in enumerate(statistics) if s.noise.lattice)
    return Grid(inputs, parts, whole)


def products(
    component: Component, what: str, formula: Callable[[Component, str], Formula]
) -> Products:
    """Return a component as a sum of products of factors that share no statistic, if it is one.

    The value is Π gᵢ; the variance Π gᵢ² − Π T[fᵢ²] is, one factor after the other, so that no
    large terms cancel, V₁·T[f₂²] + g₁²·V₂. Factors without bounds come first: their squares are
    short.
    """
    factors = sorted(component.independent, key=lambda f: len(list(f.regions())))
    if len(factors) < 2:
        return ()
    if what == "value":
        return [[(formula(f, "value"), 1) for f in factors]]
    terms: list[list[tuple[Formula, int]]] = []
    for i, f in enumerate(factors):
        before = [(formula(g, "value"), 2) for g in factors[:i]]
        after = [(formula(g.squared, "value"), 1) for g in factors[i + 1 :]]
        terms.append([(formula(f, "variance"), 1), *after, *before])
    return terms


@dataclasses.dataclass(frozen=True)
class WorkedOut:
    """The value or the variance of a component on each region."""

    component: Component
    what: str

    def __call__(self, region: Region) -> sympy.Expr:
        """Return the formula."""
        found: sympy.Expr = getattr(self.component, self.what)(region)
        return found


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
