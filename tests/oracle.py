"""Expectations by brute force, written from the definitions and without any code of trueup.

A law is a density (or a mass function) typed in by hand. E g(q + Z) is a plain sum: composite
Gauss–Legendre panels that start and end at every point where something may break (the true value,
the bounds, kinks, steps of the density) and shrink towards it, or a sum over the integers. Tails
are lengthened until the outer eighth adds nothing. Every integral is computed twice, with different
nodes, and :class:`OracleError` is raised if the two disagree or the tails do not die out: an
inaccurate reference fails loudly.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]
Function = Callable[..., Any]

AGREEMENT = 2e-12
"""Largest difference of the two resolutions, relative to E|g|."""
NEGLIGIBLE = 1e-15
"""Largest part of E|g| in the outer eighth of the tails."""
GRADING = 3.0
"""Neighbouring panels near a breakpoint grow by this factor."""
SMALL = 1e-3
"""E|g| below it counts as this much when errors are judged."""
SMALLEST = 1e-65
"""The first panel beside a singular point: nearer, numbers are beyond the limits of formulas."""


class OracleError(AssertionError):
    """The reference itself is not accurate enough."""


# -- laws --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Law:
    """A noise distribution: its density or mass, and where to look for it."""

    density: Function
    panel: float
    """The widest panel on which a rule of 12 nodes gets the density right."""
    reaches: tuple[float, ...]
    """Half-widths to try, shortest first."""
    cuts: tuple[float, ...] = (0.0,)
    """Where the density is not smooth."""
    lattice: bool = False
    compact: bool = False
    """Whether the law ends within its only reach."""
    tail: float | None = None
    """The scale b of tails e^{−|z|/b} that Gauss–Laguerre rules take over beyond the last break."""
    core: float | None = None
    """The size of the middle, if panels may grow without end outside it (power-law tails)."""


def _reaches(unit: float, factors: Sequence[float]) -> tuple[float, ...]:
    return tuple(unit * f for f in factors)


def laplace(b: float, laguerre: bool = False) -> Law:
    """Density e^{−|z|/b}/(2b); Laguerre tails for integrands that hardly change within a few b."""
    b = float(b)
    if laguerre:
        return Law(lambda z: np.exp(-np.abs(z) / b) / (2 * b), 5 * b, (0.0,), tail=b)
    return Law(
        lambda z: np.exp(-np.abs(z) / b) / (2 * b), 5 * b, _reaches(b, (41, 90, 180, 360, 700))
    )


def gaussian(sigma: float) -> Law:
    """Density e^{−z²/(2σ²)}/(σ√(2π))."""
    s = float(sigma)
    root = s * math.sqrt(2 * math.pi)
    return Law(lambda z: np.exp(-((z / s) ** 2) / 2) / root, 2 * s, _reaches(s, (11, 16, 24, 36)))


def student_t(df: float, scale: float = 1.0, oscillating: bool = False) -> Law:
    """Density ∝ (1 + z²/(νs²))^{−(ν+1)/2}; waves need fewer tails than powers."""
    nu, s = float(df), float(scale)
    log_top = gammaln((nu + 1) / 2) - gammaln(nu / 2) - math.log(nu * math.pi) / 2 - math.log(s)

    def density(z: Array) -> Array:
        return np.exp(log_top - (nu + 1) / 2 * np.log1p((z / s) ** 2 / nu))

    powers = (1e2, 1e3, 1e4) if oscillating else (1e6, 1e12, 1e24, 1e48)
    return Law(density, math.inf, _reaches(s, powers), core=s)


def uniform(width: float) -> Law:
    """Density 1/w on [−w/2, w/2]."""
    w = float(width)
    ends = (-w / 2, w / 2)
    return Law(lambda z: np.full(np.shape(z), 1 / w), w, (w / 2,), ends, compact=True)


def staircase(epsilon: float, sensitivity: float = 1.0, gamma: float | None = None) -> Law:
    """Density a on [0, γΔ), a e^{−ε} on [γΔ, Δ), and e^{−ε} times that on every further step."""
    e, d = float(epsilon), float(sensitivity)
    g = 1 / (1 + math.exp(e / 2)) if gamma is None else float(gamma)
    top = (1 - math.exp(-e)) / (2 * d * (g + math.exp(-e) * (1 - g)))

    def density(z: Array) -> Array:
        steps = np.abs(z) / d
        whole = np.floor(steps)
        return top * np.exp(-e * (whole + (steps - whole >= g)))

    whole = d * np.arange(math.ceil(700 / e))
    half = np.unique(np.concatenate([whole, whole + g * d]))
    cuts = tuple(np.concatenate([-half[:0:-1], half]))
    return Law(density, d, _reaches(d / e, (45, 90, 180, 360)), cuts)


def logistic(scale: float) -> Law:
    """Density sech²(z/(2s))/(4s)."""
    s = float(scale)
    return Law(
        lambda z: 1 / (4 * s * np.cosh(z / (2 * s)) ** 2), s, _reaches(s, (45, 90, 180, 360))
    )


def triangular(low: float, mode: float, high: float) -> Law:
    """Density that rises from low to mode and falls to high, in straight lines."""
    top = 2 / (high - low)

    def density(z: Array) -> Array:
        up = (z - low) / (mode - low) if mode > low else np.ones_like(z)
        down = (high - z) / (high - mode) if high > mode else np.ones_like(z)
        return top * np.minimum(up, down)

    reach = max(abs(low), abs(high))
    return Law(density, high - low, (reach,), (low, mode, high), compact=True)


def exponential(loc: float, scale: float) -> Law:
    """Density e^{−(z−loc)/s}/s on z > loc."""
    s, at = float(scale), float(loc)

    def density(z: Array) -> Array:
        return np.where(z > at, np.exp(-np.maximum(z - at, 0) / s) / s, 0.0)

    return Law(density, 5 * s, _reaches(s, (41, 90, 180, 360, 700)), (at,))


def discrete_laplace(b: float) -> Law:
    """Mass (1−α)/(1+α) α^{|k|}, α = e^{−1/b}."""
    b = float(b)
    top = math.tanh(1 / (2 * b))
    reaches = _reaches(b, (41, 90, 180, 360, 700))
    return Law(lambda k: top * np.exp(-np.abs(k) / b), 1.0, reaches, lattice=True)


def discrete_gaussian(sigma: float) -> Law:
    """Mass ∝ e^{−k²/(2σ²)}."""
    s = float(sigma)
    far = np.arange(1, math.ceil(40 * s) + 2)
    total = 1 + 2 * math.fsum(np.exp(-((far / s) ** 2) / 2))
    reaches = tuple(f * s + 3 for f in (11, 16, 24, 36))
    return Law(lambda k: np.exp(-((k / s) ** 2) / 2) / total, 1.0, reaches, lattice=True)


def poisson(mu: float, loc: int = 0) -> Law:
    """Mass e^{−μ} μ^j/j! at loc + j."""

    def density(k: Array) -> Array:
        j = np.maximum(k - loc, 0)
        mass = np.exp(j * math.log(mu) - mu - gammaln(j + 1))
        return np.where(k >= loc, mass, 0.0)

    unit = abs(loc) + mu + 10 * math.sqrt(mu) + 20
    return Law(density, 1.0, _reaches(unit, (1, 2, 4, 8)), lattice=True)


def points(atoms: Sequence[tuple[Any, Any]]) -> Law:
    """Mass p at v for every (v, p): the integer v only."""
    table = {int(v): float(p) for v, p in atoms}

    def density(k: Array) -> Array:
        return np.array([table.get(int(j), 0.0) for j in k])

    return Law(density, 1.0, (float(max(map(abs, table))),), lattice=True, compact=True)


# -- rules -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Axis:
    """One published statistic: its law, its true value, and what its integrand looks like."""

    law: Law
    q: float
    breaks: tuple[float, ...] = ()
    """Bounds and kinks, in units of x."""
    feature: float = 1.0
    """No panel is wider: the size of the smallest smooth detail of the integrand."""
    finest: float = math.inf
    """The panels next to a breakpoint are not wider."""
    singular: bool = False
    """Whether the integrand may be infinite (integrably) at the breakpoint 0."""

    def rule(self, reach: float, order: int) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return nodes, weights, and which nodes lie in the outer eighth."""
        if self.law.lattice:
            k = np.arange(-math.ceil(reach), math.ceil(reach) + 1, dtype=float)
            return self.q + k, self.law.density(k), self._far(k, reach)
        if self.law.tail is not None:
            return self._with_laguerre_tails(order, self.law.tail)
        return self._panels(self._edges(reach), reach, order)

    def _panels(
        self, edges: Array, reach: float, order: int
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        nodes, weights = _gauss(order)
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        x = (middle[:, None] + half[:, None] * nodes).ravel()
        z = x - self.q
        weight = (half[:, None] * weights).ravel() * self.law.density(z)
        return x, weight, self._far(z, reach)

    def _with_laguerre_tails(self, order: int, b: float) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return panels between the outermost breaks and ∫ h e^{−t} dt rules beyond them."""
        marks = np.unique(np.array([self.q, *self.breaks]))
        edges = [self._between(a, c) for a, c in itertools.pairwise(marks)]
        x, w, _ = self._panels(np.unique(np.concatenate([*edges, marks[:1]])), math.inf, order)
        t, tail = np.polynomial.laguerre.laggauss(order)
        ends = [tail * b * self.law.density(m - self.q) for m in (marks[0], marks[-1])]
        x = np.concatenate([marks[0] - b * t, x, marks[-1] + b * t])
        return x, np.concatenate([ends[0], w, ends[1]]), np.zeros(x.shape, bool)

    def _far(self, z: Array, reach: float) -> NDArray[np.bool_]:
        if self.law.compact:
            return np.zeros(z.shape, bool)
        slow = self.law.core is not None and reach > 1e5 * self.law.core
        return np.abs(z) > reach * (0.125 if slow else 0.875)

    def _edges(self, reach: float) -> Array:
        cuts = np.array(self.law.cuts)
        if self.law.compact:
            low, high = self.q + cuts[0], self.q + cuts[-1]
        else:
            low, high = self.q - reach, self.q + reach
        marks = np.unique(np.concatenate([[low, high], self.breaks, self.q + cuts]))
        marks = marks[(marks >= low) & (marks <= high)]
        if len(marks) > 40:  # the many steps of a staircase
            return self._stepwise(marks)
        if self.law.compact:
            ladders = [self._between(a, c) for a, c in itertools.pairwise(marks)]
        else:
            ladders = self._open(marks)
        return np.unique(np.concatenate(ladders))

    def _stepwise(self, marks: Array) -> Array:
        """Return the marks with every gap cut into the same number of panels."""
        gaps = np.diff(marks)
        pieces = math.ceil(gaps.max() / min(self.law.panel, self.feature))
        parts = marks[:-1, None] + gaps[:, None] * np.arange(pieces) / pieces
        return np.unique(np.append(parts.ravel(), marks[-1]))

    def _open(self, marks: Array) -> list[Array]:
        """Return panel edges; the outermost marks are no breakpoints."""
        inner = [self._between(a, c) for a, c in itertools.pairwise(marks[1:-1])]
        left = marks[1] - self._ladder(marks[1], marks[1] - marks[0])
        right = marks[-2] + self._ladder(marks[-2], marks[-1] - marks[-2])
        return [left, *inner, right]

    def _between(self, a: float, c: float) -> Array:
        half = (c - a) / 2
        return np.concatenate([a + self._ladder(a, half), c - self._ladder(c, half)])

    def _ladder(self, start: float, length: float) -> Array:
        """Return offsets from 0 to length that grow from a breakpoint to the largest panel."""
        widest = min(self.law.panel, self.feature, length)
        first = min(min(widest, self.law.core or math.inf) / GRADING**3, self.finest)
        if self.singular:
            first = min(first, abs(start) or SMALLEST)
        if first >= length:
            return np.array([0.0, length])
        grading = GRADING if self.law.core is None else 2.0
        # panels [r, 3r] are 2r wide: stop growing where that reaches the widest
        top = min(widest / (grading - 1), length)
        graded = first * grading ** np.arange(max(0, math.ceil(math.log(top / first, grading))) + 1)
        graded = graded[graded < length]
        rest = length - graded[-1]
        equal = graded[-1] + rest * np.linspace(0, 1, max(1, math.ceil(rest / widest)) + 1)
        return np.concatenate([[0.0], graded, equal[1:]])


@functools.cache
def _gauss(order: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return nodes, weights


@dataclasses.dataclass(frozen=True)
class Grid:
    """The tensor product of rules: points to call g with, and sums over them."""

    rules: tuple[tuple[Array, Array, NDArray[np.bool_]], ...]

    @property
    def points(self) -> list[Array]:
        """One array per statistic, shaped to broadcast against the others."""
        n = len(self.rules)
        return [
            x.reshape([-1 if i == j else 1 for j in range(n)])
            for i, (x, _, _) in enumerate(self.rules)
        ]

    def values(self, g: Function) -> Array:
        """Return g at every point."""
        shape = tuple(len(x) for x, _, _ in self.rules)
        values = np.broadcast_to(np.asarray(g(*self.points), float), shape)
        if not np.isfinite(self.mean(np.abs(values))):
            raise OracleError(f"g is not finite everywhere: {self._worst(values)}")
        return values

    def _worst(self, values: Array) -> str:
        bad = np.argwhere(~np.isfinite(values))[:3]
        where = [tuple(float(r[0][i]) for r, i in zip(self.rules, b, strict=True)) for b in bad]
        return f"{len(bad)} or more of {values.size} points, e.g. {where}"

    def mean(self, values: Array) -> float:
        """Return the weighted sum."""
        for _, weights, _ in reversed(self.rules):
            values = values @ weights
        return float(values)

    def edge(self, values: Array) -> float:
        """Return the part of E|g| in the outer eighth of any axis."""
        values = np.abs(values)
        total = 0.0
        for i, (_, weights, far) in enumerate(self.rules):
            others = list(self.rules)
            others[i] = (others[i][0], np.where(far, weights, 0.0), far)
            total += Grid(tuple(others)).mean(values) if far.any() else 0.0
        return total


# -- expectations ------------------------------------------------------------------------


def expect(g: Function, *axes: Axis, order: int = 16) -> float:
    """Return E g(q + Z)."""
    (mean,) = _settled(g, axes, order, lambda _grid, values: (values,))
    return mean


def moments(g: Function, *axes: Axis, order: int = 16) -> tuple[float, float]:
    """Return E g(q + Z) and Var g(q + Z)."""
    mean, variance = _settled(
        g, axes, order, lambda grid, values: (values, (values - grid.mean(values)) ** 2)
    )
    return mean, variance


def _settled(
    g: Function, axes: Sequence[Axis], order: int, integrands: Callable[[Grid, Array], Any]
) -> list[float]:
    """Return the mean of each integrand, lengthening the tails as needed, checked twice."""
    for level in range(max(len(a.law.reaches) for a in axes)):
        grid = _grid(axes, level, order)
        fine = integrands(grid, grid.values(g))
        sizes = [grid.mean(np.abs(values)) for values in fine]
        if all(
            grid.edge(values) <= NEGLIGIBLE * max(size, SMALL)
            for values, size in zip(fine, sizes, strict=True)
        ):
            break
    else:
        raise OracleError(f"the tails of the integrand do not die out: {axes}")
    means = [grid.mean(values) for values in fine]
    if all(a.law.lattice for a in axes):
        return means
    other = _grid(axes, level, order - 4)
    coarse = [other.mean(values) for values in integrands(other, other.values(g))]
    return [_agreed(*row) for row in zip(means, coarse, sizes, strict=True)]


def _grid(axes: Sequence[Axis], level: int, order: int) -> Grid:
    rules = []
    for axis in axes:
        reach = axis.law.reaches[min(level, len(axis.law.reaches) - 1)]
        rules.append(axis.rule(reach, order))
    return Grid(tuple(rules))


def _agreed(fine: float, coarse: float, size: float) -> float:
    if not abs(fine - coarse) <= AGREEMENT * max(size, SMALL):
        raise OracleError(f"{fine!r} and {coarse!r} disagree (E|g| is {size!r})")
    return fine
