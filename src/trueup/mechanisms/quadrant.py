"""The mean of two totals that are not negative, under equal Laplace noise, from ``at_least`` on.

For y₀, y₁ > 0 the mean ½ + ½(s₁ − s₀)/(s₀ + s₁) = ½ + ½v·ψ(u) is undone by (1 − b²D₀²)(1 − b²D₁²),
at y ≤ 0 by 1 − bD in that total. Below u = L the far rule continues W = (1 − bD₀)(1 − bD₁)f, which
is ½ + ½v·B(u) with B = (1 − bD)²ψ, linearly in u: there ψ is a line and (p + q·t)·e^{t/b} with
t = u − L.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammainc

from trueup.mechanisms.quadrature import integrate, panels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Quadrant:
    """The unbiased mean in [0, 1], an unbiased variance of it, and its exact moments.

    Examples
    --------
    >>> quadrant = Quadrant(1.0, 1.0)
    >>> [round(math.sqrt(quadrant.moments(*s)[1]), 5) for s in ((0, 1), (0.5, 0.5), (0, 4))]
    [2.55247, 2.81823, 0.61556]
    """

    def __init__(self, scale: float, at_least: float) -> None:
        b, low = self.scale, self.at_least = scale, at_least
        self.height = 1 / low + 2 * b / low**2 + 2 * b**2 / low**3
        self.slope = -1 / low**2 - 4 * b / low**3 - 6 * b**2 / low**4
        self.p = 1 / low - (self.height + 2 * b * self.slope)
        self.q = -1 / low**2 - self.slope - self.p / b

    def value(self, zeros: Any, ones: Any) -> Any:
        """Return the unbiased mean."""
        y0, y1 = np.maximum(zeros, 0.0), np.maximum(ones, 0.0)
        inside, edge = (y1 - y0) * self._inside(y0 + y1), self._edge(y0 + y1)
        side = np.where(y0 > 0, -edge, np.where(y1 > 0, edge, 0.0))
        return (0.5 + 0.5 * np.where((y0 > 0) & (y1 > 0), inside, side))[()]

    def _inside(self, u: Any) -> Any:
        """Return the factor of v where both totals are positive."""
        b, safe = self.scale, np.maximum(u, self.at_least)
        z = (b / safe) ** 2
        below = self.height + self.slope * (u - self.at_least + 2 * b)
        return np.where(u >= self.at_least, (1 - 4 * z + 24 * z**2) / safe, below)

    def _edge(self, u: Any) -> Any:
        """Return the value at (0, u)."""
        b, safe = self.scale, np.maximum(u, self.at_least)
        line = (u + b) * (self.height - self.at_least * self.slope)
        below = line + self.slope * (u**2 + 2 * b * u)
        return np.where(u >= self.at_least, 1 + 2 * (b / safe) - 4 * (b / safe) ** 3, below)

    # -- variance ----------------------------------------------------------------------------------

    def variance(self, zeros: Any, ones: Any) -> Any:
        """Return V̂ = (g − ½)² − ¼·T[v²·ψ²], unbiased."""
        y0, y1 = np.maximum(zeros, 0.0), np.maximum(ones, 0.0)
        (v, u), b = ((y1 - y0) ** 2, y0 + y1), self.scale
        f0, f1, f2, f3, f4 = self._squares(u)
        inside = v * f0 - 2 * b**2 * (v * f2 + 2 * f0) + b**4 * (v * f4 - 4 * f2)
        edge = u**2 * f0 - b**2 * (u**2 * f2 + 4 * u * f1 + 2 * f0) - b * (u**2 * f1 - 2 * u * f0)
        edge = edge + b**3 * (u**2 * f3 + 2 * u * f2 - 2 * f1)
        corner = -2 * b**2 * f0
        square = np.where((y0 > 0) & (y1 > 0), inside, np.where(u > 0, edge, corner))
        return ((self.value(zeros, ones) - 0.5) ** 2 - square / 4)[()]

    def _squares(self, u: Any) -> tuple[Any, ...]:
        """Return ψ² and four derivatives of it."""
        g0, g1, g2, g3, g4 = (self._psi(u, k) for k in range(5))
        third = 6 * g1 * g2 + 2 * g0 * g3
        fourth = 6 * g2**2 + 8 * g1 * g3 + 2 * g0 * g4
        return g0**2, 2 * g0 * g1, 2 * (g1**2 + g0 * g2), third, fourth

    def _psi(self, u: Any, k: int) -> Any:
        """Return the k-th derivative of ψ, 1/u from the bound on."""
        b, t, safe = self.scale, np.minimum(u - self.at_least, 0), np.maximum(u, self.at_least)
        line = (self.height + self.slope * (t + 2 * b), self.slope, 0, 0, 0)[k]
        wave = np.exp(t / b) * ((self.p + self.q * t) / b**k + k * self.q / b ** (k - 1))
        above = (-1) ** k * math.factorial(k) / safe ** (k + 1)
        return np.where(u >= self.at_least, above, line + wave)

    # -- the exact law -----------------------------------------------------------------------------

    def moments(self, zeros: float, ones: float) -> tuple[float, float]:
        """Return the mean and the variance of the estimate at true totals."""
        n = zeros + ones
        centre = ones / n if n >= self.at_least else self._expect(zeros, ones, 0.0, 1)
        return centre, self._expect(zeros, ones, centre, 2)

    def _expect(self, zeros: float, ones: float, centre: float, power: int) -> float:
        """Return E (g − centre)^power: the corner, two edges, and the inside along u."""
        none = [0.5 * math.exp(-s / self.scale) for s in (zeros, ones)]
        total = none[0] * none[1] * (0.5 - centre) ** power
        for chance, some, sign in ((none[0], ones, 0.5), (none[1], zeros, -0.5)):

            def at(y: Floats, some: float = some, sign: float = sign) -> Floats:
                off = 0.5 + sign * self._edge(y) - centre
                return np.asarray(off**power * np.exp(-np.abs(y - some) / self.scale))

            total += chance * self._along(some, (some,), at) / (2 * self.scale)
        return total + self._along(
            zeros + ones,
            (zeros, ones, zeros + ones),
            lambda u: self._across(u, zeros, ones, centre, power),
        )

    def _along(self, at: float, breaks: tuple[float, ...], h: Callable[[Floats], Floats]) -> float:
        edges = panels(at, self.scale, self.at_least)
        edges = np.unique(np.concatenate([edges[edges > 0], [0.0], breaks]))
        edges = edges[edges >= min(self.at_least, at) - 80 * self.scale]
        return integrate(h, edges)

    def _across(self, u: Floats, zeros: float, ones: float, centre: float, power: int) -> Floats:
        """Return the integral over v at each u: level between two points, falling beyond them."""
        b = self.scale
        near = np.clip(
            ones - zeros, -u, u
        )  # powers of v are taken about the truth, or what is near
        turns = np.sort(np.stack([u - 2 * zeros, 2 * ones - u]), axis=0)
        low, high = np.maximum(turns[0], -u) - near, np.minimum(turns[1], u) - near
        rest, over = np.maximum(turns[0] + u, 0), np.maximum(u - turns[1], 0)
        level = [(high**k - low**k) / k for k in (1, 2, 3)]
        left, right = _falling(low, -1.0, rest, b), _falling(high, 1.0, over, b)
        c0, c1, c2 = (a + x + y for a, x, y in zip(level, left, right, strict=True))
        weight = np.exp(-np.abs(u - zeros - ones) / b) / (8 * b**2)
        factor = self._inside(u)
        base = 0.5 - centre + 0.5 * near * factor
        if power == 1:
            return np.asarray(weight * (base * c0 + 0.5 * factor * c1))
        return np.asarray(weight * (base**2 * c0 + base * factor * c1 + 0.25 * factor**2 * c2))


def _falling(start: Floats, side: float, length: Floats, b: float) -> tuple[Floats, ...]:
    """Return ∫ (start + side·t)^k e^{−t/b} over t from 0 to a length, for k = 0, 1, 2."""
    # incomplete gamma functions: written out, the terms cancel where the length is far below b
    i0, i1, i2 = (b ** (k + 1) * math.factorial(k) * gammainc(k + 1, length / b) for k in range(3))
    return i0, start * i0 + side * i1, start**2 * i0 + 2 * side * start * i1 + i2
