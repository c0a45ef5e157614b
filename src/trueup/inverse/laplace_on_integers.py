"""Laplace noise on a statistic that is known to be an integer: better than on the line.

Between two integers, x = k + u with 0 < u < 1, the likelihood of every q ≤ k falls like e^{−u/b}
and that of every q > k grows like e^{u/b}. So the best estimator under a flat prior is, cell by
cell, a mixture of two numbers with the weights ½(1 ∓ tanh((u − ½)/b)):

    g(x) = ½·sₖ + ½·β·tₖ·tanh((x − k − ½)/b),
    sₖ = f(k) + f(k+1) + κ·(e(k+1) − e(k)),     tₖ = κ·(f(k+1) − f(k)) + e(k) + e(k+1),

which is unbiased at every integer for any function e; with z = 1/(2b), κ = coth z and
β = sinh z/(sinh z − gd z), gd the Gudermannian. The averaged variance Σ (s² + βt²) is least if

    2(κ² + β)·e(q) + (β − κ²)·(e(q+1) + e(q−1)) = −κ(β − 1)·(f(q+1) − f(q−1)),

that is e(q) = −A·Σ_{m≥1} r^{m−1}·(f(q+m) − f(q−m)) with r = (κ − √β)/(κ + √β), −0.268 < r < 0,
and A = (β−1)κ/(κ+√β)². Beyond a bound all x have the same likelihood up to a factor: there g is the
constant f(L) + e(L), or f(U) − e(U). The prior is flat and weighs the bounds 1/(1 − e^{−1/b}) fold,
which makes the mixing weights the same in all cells; then at L the equation is
(κ² + β + 2κ)·e(L) + (β − κ²)·e(L+1) = −κ(β − 1)·(f(L+1) − f(L)). No derivative of f is needed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import mpmath
import numpy as np
import sympy

from trueup.exact import symbolic
from trueup.inverse.on_values import ONE, OnValues, Rows, Stencil
from trueup.noise.operator import Operator, X
from trueup.noise.series import digits_of, working_digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-18


class Constants(NamedTuple):
    """The numbers of the closed form."""

    beta: float
    kappa: float
    ratio: float
    height: float


def constants(b: Exact) -> Constants:
    """Return β, κ, r and A, with all their digits.

    Examples
    --------
    >>> [round(c, 6) for c in constants(0.2)]
    [1.303022, 1.013567, -0.059364, 0.066131]
    """
    with working_digits(60 + 4 * math.ceil(abs(math.log10(b)))):
        z = 1 / (2 * digits_of(b))
        height = mpmath.sinh(z)
        beta = height / (height - 2 * mpmath.atan(mpmath.tanh(z / 2)))
        kappa, root = mpmath.coth(z), mpmath.sqrt(beta)
        ratio, scale = (kappa - root) / (kappa + root), (beta - 1) * kappa / (kappa + root) ** 2
        return Constants(*map(float, (beta, kappa, ratio, scale)))


def operator(noise: Noise, domain: Interval, rate: float = 0.0, fall: float = 0.0) -> Operator:
    """Return the inverse on the integers, for f that grows like e^{rate·|x|} at most."""
    c = constants(noise.unit)
    squares = 2 * rate < _reach(c)
    steepest = max(2 * rate if squares else rate, min(2 * fall, _reach(c) / 2))
    depth = _depth(c, steepest)
    b = symbolic(noise.unit)
    low, high = domain.bounds
    inside: OnValues = _stencil(c, b, depth, squares)
    branches, edges = [inside], [-sympy.oo, sympy.oo]
    if low is not None and high is not None and high - low < 3 * depth:
        first, last = int(low), int(high)
        rows = _rows(c, last - first + 1)
        place = sympy.floor(X)
        branches = [
            Rows(
                "inside",
                place,
                {},
                first,
                first,
                tuple(r[1:-1] for r in rows),
                _shapes(X - place, b),
            ),
            Rows("below", None, {}, first - 1, first, (rows[0][:1],)),
            Rows("above", None, {}, last, first, (rows[0][-1:],)),
        ]
        edges = [symbolic(domain.low), symbolic(domain.high)]
    else:
        if low is not None:
            branches.append(_below(c, b, int(low), depth))
            edges[0] = sympy.Integer(int(low) + depth)
        if high is not None:
            branches.append(_above(c, b, int(high), depth))
            edges[1] = sympy.Integer(int(high) - depth)
    ends = symbolic(domain.low), symbolic(domain.high)
    return Operator(tuple(branches), _THEOREM, *ends, edges=tuple(edges), jumps=0.0)


_THEOREM = (
    "Laplace noise on an integer statistic: on every unit cell a mixture of two numbers with "
    "weights ½(1 ± tanh((x − ⌊x⌋ − ½)/b)), constant beyond a bound; of least variance among all "
    "that are unbiased at the integers, under a flat prior that weighs the bounds "
    "1/(1 − e^(−1/b)) fold"
)


def settles(noise: Noise, rate: float) -> bool:
    """Whether the sum over neighbours of f that grows like e^{rate·|x|} converges."""
    return rate < _reach(constants(noise.unit))


def _reach(c: Constants) -> float:
    return -math.log(abs(c.ratio)) - 0.1 if c.ratio else math.inf  # with a margin


def _depth(c: Constants, rate: float) -> int:
    """Return how many neighbours matter on either side."""
    fall = (-math.log(abs(c.ratio)) if c.ratio else 700.0) - rate
    size = math.log(max(c.height * c.beta, 1.0)) - math.log(NEGLIGIBLE)
    return max(2, 1 + math.ceil(size / fall))


def _shapes(u: sympy.Expr, b: sympy.Expr) -> tuple[sympy.Expr, ...]:
    return ONE, sympy.tanh((u - sympy.Rational(1, 2)) / b)


def _stencil(c: Constants, b: sympy.Expr, depth: int, squares: bool) -> Stencil:
    """Return the inverse far from the bounds: ½s and ½βt as weights of f(k + j)."""

    def echo(m: int) -> float:
        """Return the coefficient of f(q + m) in e(q)."""
        return math.copysign(1.0, -m) * c.height * c.ratio ** (abs(m) - 1) if m else 0.0

    weights = {}
    for j in (*range(-depth, 0), *range(1, depth + 2)):
        mean = (j == 1) + c.kappa * (echo(j - 1) - echo(j))
        lean = c.beta * (c.kappa * (j == 1) + echo(j) + echo(j - 1))
        weights[j] = (mean / 2, lean / 2)
    place = sympy.floor(X)
    return Stencil("inside", place, {}, _shapes(X - place, b), weights, squares)


def _rows(c: Constants, size: int) -> tuple[Floats, Floats]:
    """Return the weights of ½s and ½βt: the constant below, the cells, the constant above."""
    f, square = np.eye(size), c.kappa**2
    system = 2 * (square + c.beta) * np.eye(size)
    system += (c.beta - square) * (np.eye(size, k=1) + np.eye(size, k=-1))
    system[[0, -1], [0, -1]] = square + c.beta + 2 * c.kappa
    ahead, behind = np.vstack([f[1:], f[-1:]]), np.vstack([f[:1], f[:-1]])
    e = np.linalg.solve(system, -c.kappa * (c.beta - 1) * (ahead - behind))
    mean = (f[:-1] + f[1:] + c.kappa * np.diff(e, axis=0)) / 2
    lean = c.beta * (c.kappa * np.diff(f, axis=0) + e[:-1] + e[1:]) / 2
    nothing = np.zeros((1, size))
    return np.vstack([f[:1] + e[:1], mean, f[-1:] - e[-1:]]), np.vstack([nothing, lean, nothing])


def _below(c: Constants, b: sympy.Expr, low: int, depth: int) -> Rows:
    """Return the weights for x ≤ L + depth; the far end of the window does not matter there."""
    x = sympy.Max(X, low - 1)
    place = -sympy.floor(-x) - 1  # x = L, where clamped releases have an atom, counts as below
    rows = tuple(r[: depth + 1] for r in _rows(c, 3 * depth))
    return Rows("below", place, {}, low - 1, low, rows, _shapes(x - place, b))


def _above(c: Constants, b: sympy.Expr, high: int, depth: int) -> Rows:
    x = sympy.Min(X, high + 1)
    place = sympy.floor(x)
    rows = tuple(r[-depth - 1 :] for r in _rows(c, 3 * depth))
    return Rows("above", place, {}, high - depth, high - 3 * depth + 1, rows, _shapes(x - place, b))
