"""Releases with several budget levels: the scale of a noise as one more input of the formulas.

The inverse of a scale family is a formula in its scale: 1 − b²D² for Laplace noise, with λ(b) and
κ(b) for discrete Laplace noise, polynomials in σ for Gaussian noise. So the estimator of a whole
table is one formula in the statistics and their scales.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import sympy

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.inverse.existence import widest
from trueup.inverse.grids import grid
from trueup.inverse.growth import growth
from trueup.inverse.jets import derivative
from trueup.inverse.solve import on_the_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trueup.inverse.component import Cell, Component, Wave
    from trueup.inverse.solve import Inverse, Statistic
    from trueup.kernels.grid import Grid
    from trueup.noise.base import Noise

_HINT = "make one estimator per noise level, and debias the rows of each level with it"


@dataclasses.dataclass(frozen=True)
class Rescaled:
    """State the generating function of a family, at a scale that is known only row by row.

    Parameters
    ----------
    family
        Any member of the family.
    scale
        The positive symbol that stands for the scale (for ``Uniform``, the width).

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> Rescaled(Gaussian(1), sympy.Symbol("b", positive=True)).tilted(sympy.S.Zero, 2)
    [1, 0, b**2]
    """

    family: Noise
    scale: sympy.Symbol

    @property
    def highest_moment(self) -> int | None:
        """The order of the highest moment that exists and is known, None for all."""
        return self.family.highest_moment

    def tilted(self, c: sympy.Expr, order: int) -> list[sympy.Expr]:
        """Return E[Zʲ e^{cZ}], j = 0..order, as formulas in the scale."""
        if c.is_zero and self.family.unit and not self.family.lattice:
            moments = self.family.at_scale(1).moments(order)
            return [symbolic(m) * self.scale**j for j, m in enumerate(moments)]
        if c.is_zero:
            raise _no_formula(self.family)
        if self.family.rational and self.family.unit and c.is_real:
            return self.family.series(c, order, symbolic, self.scale).moments
        raise TrueupError(
            f"under {self.family!r} with a scale per row e^({c}·q) cannot be debiased: polynomials "
            "can, and exponentials under Laplace, Gaussian and uniform noise, but no waves",
            _HINT,
        )

    def __repr__(self) -> str:
        return f"{type(self.family).__name__}({self.scale.name})"


class Scaled:
    """The estimator with the noise scales of some statistics as inputs.

    ``grid("value")`` and ``grid("variance")`` take the statistics, then the scales, in the order
    of ``names``; ``largest(what)`` says below which scale each is valid.
    """

    def __init__(
        self,
        inverse: Inverse,
        statistics: Sequence[Statistic],
        names: Sequence[str],
        extension: object = "optimal",
    ) -> None:
        self.statistics, self.extension = tuple(statistics), extension
        known = {s.symbol.name: s.symbol for s in statistics}
        self.scales = {
            known[name]: sympy.Symbol(f"scale of {name}", positive=True) for name in names
        }
        self.inverse = on_the_line(inverse, statistics, names, extension)
        self.components = [self._rescaled(component) for component in self.inverse.components]
        self._growth = [*self._grown()]
        self._grids: dict[str, Grid] = {}

    def grid(self, what: str) -> Grid:
        """Return the ``value`` or the ``variance`` as a function of statistics and scales."""
        if what == "variance":
            self.inverse.check_variance()
        if what not in self._grids:
            self._grids[what] = grid(self.components, self.statistics, what, self.scales)
        return self._grids[what]

    def largest(self, what: str) -> dict[str, float]:
        """Return below which scale of each statistic the value, or the variance, is valid.

        Under Laplace noise e^{cq} on a side where it grows has an estimator for b < 1/|c|, and that
        has a variance for b < 1/(2|c|); other functions have no such limit.
        """
        power = 2.0 if what == "variance" else 1.0
        limits = {symbol.name: math.inf for symbol in self.scales}
        for name, rate, widest_scale in self._growth:
            steepest = 1 / (power * rate) if rate > 0 else math.inf
            limits[name] = min(limits[name], steepest, widest_scale)
        return limits

    def _grown(self) -> Iterator[tuple[str, float, float]]:
        """Yield how fast the estimator grows along statistics, and the widest noise it bears."""
        for component in self.components:
            inside = component.value(tuple(0 for _ in component.cells))
            for cell in component.cells:
                if cell.symbol in self.scales:
                    rate = max(_rates(component, cell, inside), default=0.0)
                    yield cell.symbol.name, rate, widest(component.f, cell)

    def _rescaled(self, component: Component) -> Component:
        """Return a component with the scales of its noises as symbols."""
        if component.tied:
            raise TrueupError(
                "a noise scale per row cannot be combined with the condition "
                f"{', '.join(map(str, component.tied))}: what is best beyond it depends on the "
                "scale",
                _HINT,
            )
        own = self.scales
        cells = (self._cell(c) if c.symbol in own else c for c in component.cells)
        waves = (self._wave(w) if w.symbol in own else w for w in component.waves)
        return dataclasses.replace(component, cells=tuple(cells), waves=tuple(waves))

    def _wave(self, wave: Wave) -> Wave:
        noise: Any = Rescaled(wave.noise, self.scales[wave.symbol])
        return dataclasses.replace(wave, noise=noise)

    def _cell(self, cell: Cell) -> Cell:
        operator = cell.noise.inverse_at(self.scales[cell.symbol], cell.domain, self.extension)
        if operator is None:
            raise _no_formula(cell.noise)
        return dataclasses.replace(cell, operator=operator)


def _no_formula(noise: Noise) -> TrueupError:
    return TrueupError(
        f"{noise!r} has no scale that could differ from row to row: its inverse is no formula in "
        "one",
        _HINT,
    )


def _rates(component: Component, cell: Cell, g: sympy.Expr) -> Iterator[float]:
    """Yield the exponential rates at which f, its slope and its estimator grow on open sides."""
    for direction, end in ((1, "high"), (-1, "low")):
        if math.isinf(float(getattr(cell.operator, end))):
            for n in (0,) if cell.is_lattice else (0, 1):
                slope = derivative(component.f, cell.symbol, n)
                yield growth(slope, cell.symbol, direction).rate
            yield growth(g, cell.symbol, direction).rate
