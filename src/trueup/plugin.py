"""What the plug-in f(x) gets wrong: E f(q + Z) − f(q), kinks and jumps included."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import sympy

from trueup.domain import Interval
from trueup.inputs import at_truth, read_arguments
from trueup.inverse.component import Cell
from trueup.inverse.expectation import Expectation, push_forward
from trueup.inverse.growth import growth
from trueup.inverse.jets import derivative
from trueup.inverse.points import Kind, Trouble, without_kinks
from trueup.inverse.quadrature import reach
from trueup.inverse.smooth import breaks
from trueup.kernels.blocks import value_at
from trueup.noise.operator import IDENTITY, Branch, Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike

    from trueup.inverse.solve import Statistic
    from trueup.noise.base import Noise

    Truth = Mapping[sympy.Symbol, float]

_WITH_CURVATURE = (Kind.MILD, Kind.POINT, Kind.KINK, Kind.JUMP)
"""What f may do where E f is f + b²·E f″ and what the jumps of value and slope add."""
_PLAIN = Operator((Branch("inside", None, {IDENTITY: sympy.Integer(1)}),), "the plug-in")


def plugin_bias(f: object, noise: Noise | Mapping[str, Noise]) -> PluginBias:
    """Return the bias of f(x) as a function of the true value.

    Under Laplace noise a slope jump J at a adds (b/2)·J·e^{−|q−a|/b}, a value jump J adds
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
    >>> plugin_bias("abs(q)", Laplace(2))(0.0)  # b·e^{−|q|/b}
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
        self._bias = self._prepare()

    def __call__(self, *q: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return E f(q + Z) − f(q)."""
        return at_truth(self._bias, self._statistics, q, statistics)

    def __repr__(self) -> str:
        given = ", ".join(f"{s.symbol.name}: {s.noise!r}" for s in self._statistics)
        return f"<bias of the plug-in {self._source.expr} ({given})>"

    def _prepare(self) -> Callable[[Truth], float]:
        """Choose the way: closed form, jumps and curvature, or plain expectation."""
        f = self._source.expr
        moved: sympy.Expr | None = f
        for s in self._statistics:
            moved = None if moved is None else push_forward(moved, s.symbol, s.noise)
        if moved is not None:
            return lambda truth: value_at(moved - f, truth)
        if len(self._statistics) == 1 and self._statistics[0].noise.by_curvature:
            return _LaplaceBias(f, self._statistics[0])
        return _Difference(f, self._statistics)


class _LaplaceBias:
    """b²·E f″ with its point masses, for one statistic under Laplace noise."""

    def __init__(self, f: sympy.Expr, statistic: Statistic) -> None:
        self.f, self.statistic = f, statistic
        self.plain = _Difference(f, [statistic])

    def __call__(self, truth: Truth) -> float:
        symbol, b = self.statistic.symbol, float(self.statistic.noise.unit)
        q = truth[symbol]
        found = self.plain.singular(truth)
        if found is None:
            return math.nan
        if any(s.kind not in _WITH_CURVATURE or s.exponent <= -1 for s in found):
            return self.plain(truth)
        curvature = derivative(without_kinks(self.f), symbol, 2)
        smooth = 0.0
        if curvature != 0 and not _vanishes(curvature):
            smooth = b**2 * self.plain.expect(curvature, truth, found)
        return smooth + sum(self._point(s, q, b) for s in found)

    def _point(self, s: Trouble, q: float, b: float) -> float:
        """Return what the jumps of slope and value at one point add."""
        decay = math.exp(-abs(q - s.point) / b)
        if math.isclose(q, s.point, rel_tol=1e-14, abs_tol=1e-300):
            here = value_at(self.f, {self.statistic.symbol: s.point})
            value = s.middle - here if s.jump else 0.0
        else:
            value = math.copysign(0.5, s.point - q) * s.jump * decay
        return b / 2 * s.slope * decay + value


def _vanishes(curvature: sympy.Expr) -> bool:
    """Whether a curvature is zero in every case."""
    return isinstance(curvature, sympy.Piecewise) and all(value == 0 for value, _ in curvature.args)


class _Difference:
    """E f(x) − f(q) by direct expectation."""

    def __init__(self, f: sympy.Expr, statistics: list[Statistic] | tuple[Statistic, ...]) -> None:
        self.f, self.statistics = f, statistics
        self.cells = [Cell(s.symbol, _PLAIN, s.noise) for s in statistics]
        self.rates = {s.symbol: self._rates(s) for s in statistics}
        self.box = {
            s.symbol: s.domain.integers() if s.noise.lattice else s.domain for s in statistics
        }
        self.exists = all(map(self._carried, self.statistics))
        self.seen: dict[tuple[sympy.Symbol, int], list[Trouble]] = {}
        for s in statistics:
            if self.exists and not s.noise.lattice and math.isinf(float(s.noise.quantile(0))):
                found = breaks(f, s.symbol, self.box)  # noise gets everywhere
                self.exists = not any(t.kind is not Kind.UNDECIDED and _is_fatal(t) for t in found)

    def __call__(self, truth: Truth) -> float:
        found = self.singular(truth)
        if found is None:
            return math.nan
        return self.expect(self.f, truth, found) - value_at(self.f, truth)

    def expect(self, expr: sympy.Expr, truth: Truth, found: list[Trouble]) -> float:
        """Return the expectation of an expression, NaN if it is not finite."""
        points = {s.symbol: tuple(p.point for p in found) for s in self.statistics}
        value = Expectation(lambda _: expr, self.cells, {}, self.rates, points).at(truth)
        return value if math.isfinite(value) else math.nan

    def singular(self, truth: Truth) -> list[Trouble] | None:
        """Return what happens to f within reach of the noise, None if E f(x) does not exist."""
        if not self.exists or any(math.isnan(q) for q in truth.values()):
            return None
        found: list[Trouble] = []
        for s in self.statistics:
            if s.noise.lattice:
                continue
            left, right = reach(s.noise, self.rates[s.symbol])
            q = truth[s.symbol]
            found += self._between(s.symbol, q, left, right)
        return None if any(map(_is_fatal, found)) else found

    def _between(self, s: sympy.Symbol, q: float, left: float, right: float) -> list[Trouble]:
        """Return what happens within reach of a true value, looked up by windows of that width."""
        width = left + right
        k = math.floor(q / width)
        if (s, k) not in self.seen:
            near = Interval(k * width - left, (k + 1) * width + right)
            self.seen[s, k] = breaks(self.f, s, self.box | {s: near})
        outside = [t.point < q - left or t.point > q + right for t in self.seen[s, k]]
        return [t for t, out in zip(self.seen[s, k], outside, strict=True) if not out]

    def _rates(self, s: Statistic) -> tuple[float, float]:
        left, right = (max(growth(self.f, s.symbol, d).rate, 0.0) for d in (-1, 1))
        return left, right

    def _carried(self, s: Statistic) -> bool:
        """Whether the tails of the noise carry the growth of f."""
        highest = s.noise.highest_moment
        for direction, rate in zip((-1, 1), s.noise.tail_rates, strict=True):
            if math.isfinite(s.noise.quantile(float(direction > 0))):  # the noise ends
                continue
            size = growth(self.f, s.symbol, direction)
            if rate == 0:
                if size.rate > 0 or (highest is not None and size.power > highest):
                    return False
            elif not size.carried(rate):
                return False
        return True


def _is_fatal(t: Trouble) -> bool:
    """Whether E f(x) does not exist, or cannot be shown to, because of what happens at a point."""
    pole = t.kind is Kind.POLE and t.exponent <= -1
    return pole or t.kind in (Kind.UNDEFINED, Kind.UNDECIDED)
