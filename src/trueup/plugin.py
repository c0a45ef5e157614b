"""What the plug-in f(x) gets wrong: E f(q + Z) − f(q), kinks and jumps included."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.inputs import at_truth, read_arguments
from trueup.inverse.component import Cell
from trueup.inverse.expectation import Expectation
from trueup.inverse.growth import Growth, growth
from trueup.inverse.smooth import Kind, Trouble, breaks
from trueup.kernels.blocks import evaluate
from trueup.noise.operator import IDENTITY, Branch, Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from trueup.noise.base import Noise

    Truth = Mapping[sympy.Symbol, float]

_PLAIN = Operator((Branch("inside", None, {IDENTITY: sympy.Integer(1)}),), "the plug-in")


def plugin_bias(f: object, noise: Noise | Mapping[str, Noise]) -> PluginBias:
    """Return the bias of f(x) as a function of the true value.

    It is integrated between the points where f is not smooth, to 1e-12 of the size of f. Under
    Laplace noise a slope jump J at a adds (b/2)·J·e^{−|q−a|/b}, a value jump J adds
    ½·sign(a−q)·J·e^{−|q−a|/b}, and the smooth parts b²·E f″. It is NaN where E f(x) does not exist,
    or could not be shown to.

    Parameters
    ----------
    f
        What :func:`unbiased` takes.
    noise
        The noise, or one for each statistic.

    Examples
    --------
    >>> from trueup import Laplace, plugin_bias
    >>> round(plugin_bias("abs(q)", Laplace(2))(0.0), 9)  # b·e^{−|q|/b}
    2.0
    >>> plugin_bias("q**2", Laplace(2))(7.0)  # 2·b²
    8.0
    >>> plugin_bias("1/q", Laplace(2))(7.0)  # has no expectation
    nan
    """
    return PluginBias(f, noise)


class PluginBias:
    """The bias of the plug-in as a function of the true value; see :func:`plugin_bias`."""

    def __init__(self, f: object, noise: Noise | Mapping[str, Noise]) -> None:
        self._source, self._statistics, _ = read_arguments(f, noise, None)
        f, statistics = self._source.expr, self._statistics
        cells = [Cell(s.symbol, _PLAIN, s.noise) for s in statistics]
        growths = {s.symbol: (growth(f, s.symbol, -1), growth(f, s.symbol, 1)) for s in statistics}
        points: dict[sympy.Symbol, list[float]] = {}
        self._mean = Expectation(lambda _: f, cells, {}, growths, points)
        self._fatal: dict[sympy.Symbol, list[Trouble]] = {}
        if self._mean.closed is not None:
            return
        box = {s.symbol: s.domain for s in statistics}
        for s in statistics:
            found = [] if s.noise.lattice else breaks(f, s.symbol, box)
            points[s.symbol] = [t.point for t in found]
            self._fatal[s.symbol] = [t for t in found if _is_fatal(t)]
        self._carried = all(
            _carried(size, s.noise, end)
            for s in statistics
            for end, size in enumerate(growths[s.symbol])
        )

    def __call__(self, *q: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return E f(q + Z) − f(q)."""
        return at_truth(self._at, self._statistics, q, statistics)

    def __repr__(self) -> str:
        given = ", ".join(f"{s.symbol.name}: {s.noise!r}" for s in self._statistics)
        return f"<bias of the plug-in {self._source.expr} ({given})>"

    def _at(self, truth: Truth) -> float:
        f, point = self._source.expr, {s: np.array([q]) for s, q in truth.items()}
        if self._mean.closed is not None:
            return float(evaluate(self._mean.closed - f, point)[0])
        if not self._exists(truth):
            return math.nan
        mean = self._mean.at(truth)
        return mean - float(evaluate(f, point)[0]) if math.isfinite(mean) else math.nan

    def _exists(self, truth: Truth) -> bool:
        """Whether the noise carries f, and does not get to where its integral ends."""
        if not self._carried or any(map(math.isnan, truth.values())):
            return False
        for s in self._statistics:
            low, high = (truth[s.symbol] + float(s.noise.quantile(p)) for p in (0, 1))
            fatal = self._fatal[s.symbol]
            if any(t.kind is Kind.UNDECIDED or low <= t.point <= high for t in fatal):
                return False
        return True


def _carried(size: Growth, noise: Noise, end: float) -> bool:
    """Whether the lower tail of the noise, or the upper one, carries the growth of f."""
    highest, rate = noise.highest_moment, noise.mgf_radius
    if math.isfinite(noise.quantile(end)):  # the noise ends
        return True
    if rate:
        return size.carried(rate)
    return size.rate <= 0 and (highest is None or size.power <= highest)


def _is_fatal(t: Trouble) -> bool:
    """Whether E f(x) does not exist, or cannot be shown to, because of what happens at a point."""
    pole = t.kind is Kind.POLE and t.exponent <= -1
    return pole or t.kind in (Kind.UNDEFINED, Kind.UNDECIDED)
