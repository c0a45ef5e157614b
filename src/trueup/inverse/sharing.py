"""What two estimates have in common when they read the same published number.

Rows i and j have statistics of their own and some that they share: two cells of a state with one
noisy count. With φᵢ = f freed from the noise of row i's own statistics, a function of the shared
ones, gᵢ = T[φᵢ] and

    cov(gᵢ, gⱼ) = gᵢ·gⱼ − T[φᵢ·φⱼ] = Σ K(a, b) · a[φᵢ] · b[φⱼ]

is unbiased for their covariance: a quadratic form over the functionals a, b (derivatives and
differences along the shared statistics), whose weights K depend on the shared numbers alone. So
the sum over all pairs of a group is Σ K(a, b) (Σᵢ a[φᵢ] · Σⱼ b[φⱼ] − Σᵢ a[φᵢ] b[φᵢ]), in one pass.
"""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import TYPE_CHECKING, Any

import sympy

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.inverse import spectral
from trueup.inverse.component import Cell, Component
from trueup.inverse.extended import Extended
from trueup.inverse.grids import bounds_of, reads_of
from trueup.inverse.jets import Keys, derivative, form
from trueup.inverse.on_integers import OnIntegers
from trueup.kernels.grid import Grid, Part
from trueup.noise.operator import Branch, Operator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.inverse.component import Region, Wave
    from trueup.inverse.solve import Statistic
    from trueup.noise.operator import Key

Pair = tuple[Keys, Keys]
_ONE = sympy.Integer(1)


@dataclasses.dataclass(frozen=True)
class _Differentiated(Component):
    """A component that reads derivatives of f, under noise on the integers too."""


class Sharing:
    """The covariance of two rows that share some statistics of a component.

    Parameters
    ----------
    component
        A connected piece of the estimator.
    shared
        The statistics that two rows have in common.
    statistics, scales
        The inputs of the grids: all statistics, then noise scales as {statistic: scale}.
    """

    def __init__(
        self,
        component: Component,
        shared: frozenset[sympy.Symbol],
        statistics: Sequence[Statistic],
        scales: Mapping[sympy.Symbol, sympy.Symbol],
    ) -> None:
        self.shared = shared & set(component.statistics)
        self.component = component = _with_cells(component, self.shared)
        self.statistics, self.scales = statistics, scales
        cells = tuple(c for c in component.cells if c.symbol in self.shared)
        self._common = Component(component.f, cells, (), {})
        self._forms: dict[Region, dict[Pair, sympy.Expr]] = {}

    @property
    def pairs(self) -> list[Pair]:
        """The pairs (a, b) of functionals that occur in some region."""
        found = (pair for region in self._common.regions() for pair in self._form(region))
        return list(dict.fromkeys(found))

    def weight(self, pair: Pair) -> Grid:
        """Return K(a, b) as a function of the inputs; only the shared ones are read."""
        zero = sympy.Integer(0)
        return self._grid(self._common.cells, self.shared, lambda r: self._form(r).get(pair, zero))

    def functional(self, keys: Keys) -> Grid:
        """Return a[φ] as a function of a row's inputs."""
        applied = self._applied(keys)
        places = [i for i, cell in enumerate(self.component.cells) if cell.symbol in self.shared]

        def expression(region: Region) -> sympy.Expr:
            pairs = self._form(tuple(region[i] for i in places))
            used = any(keys in pair for pair in pairs)
            return applied.value(region) if used else sympy.Integer(0)

        own = frozenset(self.component.statistics)
        return self._grid(self.component.cells, own, expression)

    # -- the form ------------------------------------------------------------------------------

    def _form(self, region: Region) -> dict[Pair, sympy.Expr]:
        """Return T⊗T − T∘(product) where the shared numbers lie in a region."""
        if region not in self._forms:
            weights = self._common.weights(region)
            exact = {k: sympy.expand_mul(w) for k, w in form(weights, weights, weights).items()}
            self._forms[region] = {k: w for k, w in exact.items() if w != 0 and self._matters(k)}
        return self._forms[region]

    def _matters(self, pair: Pair) -> bool:
        """Whether both functionals leave something of f: derivatives beyond its degree do not."""
        return all(
            derivative(self.component.f, c.symbol, order) != 0
            for keys in pair
            for c, (order, _) in zip(self._common.cells, keys, strict=True)
        )

    # -- one functional ------------------------------------------------------------------------

    def _applied(self, keys: Keys) -> Component:
        """Return the component with T along the shared statistics replaced by one functional."""
        left = iter(keys)
        cells = [
            _replaced(c, next(left)) if c.symbol in self.shared else c for c in self.component.cells
        ]
        return dataclasses.replace(self.component, cells=tuple(cells))

    def _grid(self, cells: Sequence[Cell], reads: frozenset[sympy.Symbol], expression: Any) -> Grid:
        inputs = (*(s.symbol for s in self.statistics), *self.scales.values())
        own = [s for s in self.component.statistics if s in reads]
        whole = frozenset(i for i, s in enumerate(self.statistics) if s.noise.lattice)
        places, bounds = reads_of(own, inputs, self.scales), bounds_of(cells, inputs)
        return Grid(inputs, [[Part(inputs, places, expression, bounds, whole)]], whole)


def _replaced(cell: Cell, key: Key) -> Cell:
    """Return a statistic with its operator replaced by one functional."""
    branches = (dataclasses.replace(b, taps={key: _ONE}) for b in cell.operator.branches)
    operator = dataclasses.replace(cell.operator, branches=tuple(branches))
    return dataclasses.replace(cell, operator=operator)


def _with_cells(component: Component, shared: frozenset[sympy.Symbol]) -> Component:
    """Return a component in which shared waves are cells: polynomials have finitely many terms."""
    waves = [w for w in component.waves if w.symbol in shared]
    if not waves:
        return component
    cells = [_cell(component, w) for w in waves]
    left = tuple(w for w in component.waves if w not in waves)
    modes = spectral.decompose(component.f, [w.symbol for w in left])
    assert modes is not None  # noqa: S101  (it was so with more waves)
    return _Differentiated(component.f, (*component.cells, *cells), left, modes)


def _cell(component: Component, wave: Wave) -> Cell:
    """Return a wave as a cell; refuse what is no polynomial in it."""
    place = component.waves.index(wave)
    if any(c[place] != 0 for c in component.modes):
        name = wave.symbol.name
        raise TrueupError(
            f"cells that share {name} under {wave.noise!r} have a covariance in closed form only "
            f"if the formula is a polynomial in {name}",
            "make totals of rows that do not share it, or sum the cells in one formula",
        )
    degree = max(component.degrees(mode)[place] for mode in component.modes.values())
    taps = wave.taps(sympy.Integer(0), 2 * degree)
    return Cell(wave.symbol, Operator((Branch("inside", None, taps),), "a polynomial"), wave.noise)


class SharingOnIntegers(Sharing):
    """The covariance of two rows that share the statistic of a component that is read at integers.

    With f = Σ aᵢ·hᵢ(n) the functionals are the factors T[aᵢ] of a row, and K(i, j) is the
    covariance T[hᵢ]·T[hⱼ] − T[hᵢ·hⱼ].
    """

    component: OnIntegers

    @property
    def pairs(self) -> list[Any]:
        """The pairs (i, j) of functions of n that vary."""
        varying = [i for i, h in enumerate(self.component.functions) if h.free_symbols]
        return list(product(varying, repeat=2))

    def weight(self, pair: Any) -> Grid:
        """Return K(i, j) as a function of n."""
        first, second = (self.component.own[i] for i in pair)
        return self._grid(self._common.cells, self.shared, lambda r: first.covariance(second, r))

    def functional(self, keys: Any) -> Grid:
        """Return T[aᵢ] as a function of a row's other statistics."""
        rest = self.component.rest[keys]
        return self._grid(self.component.cells[:-1], frozenset(rest.statistics), rest.value)


def sharing(
    component: Component,
    shared: frozenset[sympy.Symbol],
    statistics: Sequence[Statistic],
    scales: Mapping[sympy.Symbol, sympy.Symbol],
) -> Sharing:
    """Return the covariance of two rows that share these statistics, or refuse it."""
    if isinstance(component, Extended) and component.outer is not None:
        component = component.outer
    common = shared & set(component.statistics)
    if type(component) is Component or not common:
        return Sharing(component, shared, statistics, scales)
    if isinstance(component, OnIntegers) and common == {component.cells[-1].symbol}:
        return SharingOnIntegers(component, shared, statistics, scales)
    names = ", ".join(sorted(s.name for s in common))
    raise TrueupError(
        f"the covariance of rows that share {names} in {text(component.f)} has no closed form "
        "under this noise",
        "make totals of rows that do not share it, or sum the cells in one formula",
    )
