"""Laplace noise on a statistic that is known to be an integer: better than on the line.

Between two integers, x = k + u with 0 < u < 1, the likelihood of every q ≤ k falls like e^{−u/b}
and that of every q > k grows like e^{u/b}. So the best estimator under a flat prior is, cell by
cell, a mixture of two numbers with the weights ½(1 ∓ tanh((u − ½)/b)):

    g(x) = ½·sₖ + ½·β·tₖ·tanh((x − k − ½)/b),
    sₖ = f(k) + f(k+1) + κ·(e(k+1) − e(k)),     tₖ = κ·(f(k+1) − f(k)) + e(k) + e(k+1),

which is unbiased at every integer for any function e; with z = 1/(2b), κ = coth z and
β = sinh z/(sinh z − gd z), gd the Gudermannian. The averaged variance Σ (s² + βt²) is least if

    2(κ² + β)·e(q) + (β − κ²)·(e(q+1) + e(q−1)) = −κ(β − 1)·(f(q+1) − f(q−1)),

so that the weights of neighbours in e fall like powers of r = (κ − √β)/(κ + √β), −0.268 < r < 0.
Beyond a bound all x have the same likelihood up to a factor: there g is the constant f(L) + e(L),
or f(U) − e(U). The prior is flat and weighs the bounds 1/(1 − e^{−1/b}) fold, which makes the
mixing weights the same in all cells; then at L the equation is
(κ² + β + 2κ)·e(L) + (β − κ²)·e(L+1) = −κ(β − 1)·(f(L+1) − f(L)). No derivative of f is needed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import mpmath
import numpy as np
import sympy

from trueup.exact import symbolic
from trueup.inverse.on_values import ONE, STEEPEST, Rows, Stencil
from trueup.noise.operator import Branch, Operator, Side, X
from trueup.noise.series import digits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-18
"""The weight of a neighbour that is left out: the next ones add up to less than a rounding."""
_DIGITS = 80  # sinh z − gd z loses twelve at scale 1e4

_THEOREM = (
    "Laplace noise on an integer statistic: on every unit cell a mixture of two numbers with "
    "weights ½(1 ± tanh((x − ⌊x⌋ − ½)/b)), constant beyond a bound; of least variance among all "
    "that are unbiased at the integers, under a flat prior that weighs the bounds "
    "1/(1 − e^(−1/b)) fold"
)


class Constants(NamedTuple):
    """The numbers β and κ of the closed form."""

    beta: float
    kappa: float

    @property
    def depth(self) -> int:
        """How many neighbours matter on either side: their weights fall by r each."""
        root = math.sqrt(self.beta)
        ratio = abs(self.kappa - root) / (self.kappa + root)
        first = self.beta * (self.beta - 1) * self.kappa / (self.kappa + root) ** 2
        size = math.log(max(first, 1.0)) - math.log(NEGLIGIBLE)
        return max(2, 1 + math.ceil(size / -math.log(ratio))) if ratio else 2

    def rows(self, size: int) -> tuple[Floats, Floats]:
        """Return the weights of ½s and ½βt: the constant below, the cells, the constant above."""
        f, square = np.eye(size), self.kappa**2
        system = 2 * (square + self.beta) * np.eye(size)
        system += (self.beta - square) * (np.eye(size, k=1) + np.eye(size, k=-1))
        system[[0, -1], [0, -1]] = square + self.beta + 2 * self.kappa
        ahead, behind = np.vstack([f[1:], f[-1:]]), np.vstack([f[:1], f[:-1]])
        e = np.linalg.solve(system, -self.kappa * (self.beta - 1) * (ahead - behind))
        mean = (f[:-1] + f[1:] + self.kappa * np.diff(e, axis=0)) / 2
        slope = self.beta * (self.kappa * np.diff(f, axis=0) + e[:-1] + e[1:]) / 2
        nothing = np.zeros((1, size))
        ends = f[:1] + e[:1], f[-1:] - e[-1:]
        return np.vstack([ends[0], mean, ends[1]]), np.vstack([nothing, slope, nothing])


def constants(b: Exact) -> Constants:
    """Return β and κ, with all their digits.

    Examples
    --------
    >>> [round(c, 6) for c in constants(0.2)]
    [1.303022, 1.013567]
    """
    with mpmath.workdps(_DIGITS):
        z = 1 / (2 * digits_of(b))
        height = mpmath.sinh(z)
        beta = height / (height - 2 * mpmath.atan(mpmath.tanh(z / 2)))
        return Constants(float(beta), float(mpmath.coth(z)))


def operator(noise: Noise, domain: Interval, rate: float) -> Operator | None:
    """Return the inverse on the integers for f that grows like e^{rate·|x|}, None if too fast."""
    c, b = constants(noise.unit), symbolic(noise.unit)
    low, high = domain.bounds
    ends = symbolic(domain.low), symbolic(domain.high)
    floor = sympy.floor(X)
    size = 4 * c.depth  # neither end matters in the middle, nor the far end near the bound
    if low is not None and high is not None and high - low + 1 < size:
        first, last, rows = int(low), int(high), c.rows(int(high - low) + 1)
        short = (
            _table("inside", floor, b, first, first - 1, rows),
            _table("below", None, b, first, first - 1, (rows[0][:1],)),
            _table("above", None, b, first, last, (rows[0][-1:],)),
        )
        return Operator(short, _THEOREM, *ends, edges=ends, jumps=0.0)
    if 2 * rate * c.depth > STEEPEST:
        return None
    mean, slope = c.rows(size)
    depth, middle = c.depth, 2 * c.depth  # the row of the cell behind f(middle − 1)
    weights = {
        j: (mean[middle, middle - 1 + j], slope[middle, middle - 1 + j])
        for j in range(-depth, depth + 2)
        if j
    }
    edges = [-sympy.oo, sympy.oo]
    branches: list[Branch] = [
        Stencil("inside", floor, {}, shapes=_shapes(floor, b), weights=weights)
    ]
    if low is not None:  # x = L, where clamped releases have an atom, counts as below
        near = mean[: depth + 1], slope[: depth + 1]
        branches.append(_table("below", -sympy.floor(-X) - 1, b, int(low), int(low) - 1, near))
        edges[0] = sympy.Integer(int(low) + depth)
    if high is not None:
        near, start = (mean[-depth - 1 :], slope[-depth - 1 :]), int(high) - size + 1
        branches.append(_table("above", floor, b, start, int(high) - depth, near))
        edges[1] = sympy.Integer(int(high) - depth)
    return Operator(tuple(branches), _THEOREM, *ends, edges=(edges[0], edges[1]), jumps=0.0)


def _table(
    side: Side,
    k: sympy.Expr | None,
    b: sympy.Expr,
    start: int,
    first: int,
    rows: tuple[Floats, ...],
) -> Rows:
    """Return rows of weights for k from ``first`` on, which read f from ``start`` on."""
    truths = start + np.arange(float(rows[0].shape[1]))
    shapes = (ONE,) if k is None else _shapes(k, b)
    return Rows(side, k, {}, shapes=shapes, first=first, truths=truths, weights=rows)


def _shapes(k: sympy.Expr, b: sympy.Expr) -> tuple[sympy.Expr, ...]:
    return ONE, sympy.tanh((X - k - sympy.Rational(1, 2)) / b)
