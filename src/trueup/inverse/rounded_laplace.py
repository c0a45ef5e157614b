"""The inverse of Laplace noise rounded to the integers, on all integers, half lines and {L..U}.

With s = e^{−1/(2b)}, α = s² the noise is a multiple of discrete Laplace noise plus an atom,
p(k) = c·α^{|k|} + d·[k = 0], c = sinh(1/(2b)), d = −(1−s)²/(2s). Its generating function has the
zeros ρ and 1/ρ, −0.172 < ρ < 0, and on all integers the inverse is

    T[f](x) = f(x) + C Σ_{k≥1} ρᵏ (f(x+k) − 2f(x) + f(x−k)).

Given bounds, all x ≤ L − 1 have the same likelihood up to a factor, so clamp(x, L−1, U+1) is
sufficient: the estimator is constant on either side. What remains free is the multiple θ of
ρ^{x−L} that is added from L on (its expectation is zero with the right constant below L), and
likewise ρ^{U−x}: θ is chosen to make the variance, averaged over the prior, least.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.exact import symbolic
from trueup.inverse import prior
from trueup.inverse.on_values import Rows, Stencil
from trueup.noise.operator import Branch, Operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.noise.laplace import RoundedLaplace

    Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-18
_TAIL = 45.0  # e^-45 is below the last bit of a double, even times 100


def operator(
    noise: RoundedLaplace, domain: Interval, rate: float = 0.0, fall: float = 0.0
) -> Operator:
    """Return the inverse on a domain, for functions that grow at most like e^{rate·|x|}.

    The sum is cut where its terms have fallen by 1e-18; for functions that fall like e^{−fall·|x|}
    it goes up to twice as far, since the neighbours on one side are larger.
    """
    squares, own = 2 * rate < reach_of(noise), -math.log(abs(noise.echoes[1]))
    steepest = max(2 * rate if squares else rate, min(2 * fall, own / 2))
    inside, depth = _stencil(noise, steepest, squares)
    low, high = domain.bounds
    theorem = (
        "Laplace noise rounded to integers: g = f + C·Σ ρᵏ·(f(x+k) − 2f(x) + f(x−k)), "
        f"k = 1..{depth}"
    )
    if low is not None or high is not None:
        theorem += (
            "; constant beyond L − 1 and U + 1, and of least variance under "
            f"a {prior.name(domain)} prior among all that are unbiased"
        )
    ends = symbolic(domain.low), symbolic(domain.high)
    if low is not None and high is not None and high - low < 2 * depth:
        rows = _rows(noise, domain, int(low), int(high), depth)
        return Operator((rows,), theorem, *ends, edges=(-sympy.oo, sympy.oo))
    branches: list[Branch] = [inside]
    edges = [-sympy.oo, sympy.oo]
    if low is not None:
        branches.append(_below(noise, domain, int(low), depth))
        edges[0] = sympy.Integer(int(low) + depth - 1)
    if high is not None:
        branches.append(_above(noise, domain, int(high), depth))
        edges[1] = sympy.Integer(int(high) - depth + 1)
    return Operator(tuple(branches), theorem, *ends, edges=tuple(edges))


def reach_of(noise: RoundedLaplace) -> float:
    """Return the growth rate up to which the sum over neighbours converges, with a margin."""
    return -math.log(abs(noise.echoes[1])) - 0.1


def _stencil(noise: RoundedLaplace, rate: float, squares: bool) -> tuple[Stencil, int]:
    """Return the inverse on all integers, and how far its sum goes."""
    height, rho = noise.echoes
    fall = -math.log(abs(rho)) - rate
    depth = max(2, math.ceil((math.log(max(height, 1.0)) - math.log(NEGLIGIBLE)) / fall))
    weights = {sign * k: (height * rho**k,) for k in range(1, depth + 1) for sign in (1, -1)}
    return Stencil("inside", None, {}, weights=weights, squares=squares), depth


def _below(noise: RoundedLaplace, domain: Interval, low: int, depth: int) -> Rows:
    """Return the weights for x ≤ L + depth − 1, when the other bound is too far to matter."""
    rows = _solved(noise, _Window(domain, low, low + 2 * depth, True, False), depth)
    return Rows("below", None, {}, low - 1, low, (rows[: depth + 1],))


def _above(noise: RoundedLaplace, domain: Interval, high: int, depth: int) -> Rows:
    rows = _solved(noise, _Window(domain, high - 2 * depth, high, False, True), depth)
    return Rows("above", None, {}, high - depth + 1, high - 2 * depth, (rows[-depth - 1 :],))


def _rows(noise: RoundedLaplace, domain: Interval, low: int, high: int, depth: int) -> Rows:
    rows = _solved(noise, _Window(domain, low, high, True, True), depth)
    return Rows("inside", None, {}, low - 1, low, (rows,))


class _Window:
    """The integers from first to last, and which of the two are bounds of the domain."""

    def __init__(self, domain: Interval, first: int, last: int, low: bool, high: bool) -> None:
        self.domain, self.first, self.last = domain, first, last
        self.low, self.high = low, high

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def _solved(noise: RoundedLaplace, window: _Window, depth: int) -> Floats:
    """Return the weights, one row for every x from first − 1 to last + 1 (of bounds only).

    A particular solution, f continued as a constant beyond the bounds, plus the multiples of the
    null functions that make the averaged variance least.
    """
    height, rho = noise.echoes
    size = window.size
    inner = np.eye(size)
    place = np.arange(size)
    for k in range(1, depth + 1):
        for other in (np.minimum(place + k, size - 1), np.maximum(place - k, 0)):
            np.add.at(inner, (place, other), height * rho**k)
        inner[place, place] -= 2 * height * rho**k
    decay = rho ** place.astype(float)
    rows = _with_ends(noise, window, inner, np.eye(size))
    nulls = [
        _with_ends(noise, window, column[:, None], np.zeros((size, 1)))[:, 0]
        for column, bound in ((decay, window.low), (decay[::-1], window.high))
        if bound
    ]
    mixed = _mixture(noise, window)
    basis = np.column_stack(nulls)
    # The null functions have mean zero, so rows may be taken relative to f at a bound.
    relative = rows - np.eye(size)[0 if window.low else -1]
    theta = np.linalg.solve(
        basis.T @ (mixed[:, None] * basis), basis.T @ (mixed[:, None] * relative)
    )
    return np.asarray(rows - basis @ theta)


def _with_ends(noise: RoundedLaplace, window: _Window, inner: Floats, f: Floats) -> Floats:
    """Add the constants beyond the bounds: the equations at q = L and U, less α times the next.

    cα(1+α)·y₋ = f(L) − αf(L+1) − (c(1−α²) + d)·y(L) + αd·y(L+1), written relative to f(L), in
    terms of s and so that nothing cancels.
    """
    half = 1 / (2 * float(noise.scale))
    s, gap, whole = math.exp(-half), -math.expm1(-half), -math.expm1(-4 * half)
    at_bound = gap * (-math.expm1(-3 * half) + whole) / (s * whole)

    def beyond(i: int, j: int) -> Floats:
        own, following = inner[i] - f[i], inner[j] - f[i]
        step = -2 * s / whole * (f[j] - f[i]) - at_bound * own - gap**2 / whole * following
        return np.asarray(f[i] + step)

    rows = [inner]
    if window.low:
        rows.insert(0, beyond(0, 1)[None])
    if window.high:
        rows.append(beyond(-1, -2)[None])
    return np.vstack(rows)


def _mixture(noise: RoundedLaplace, window: _Window) -> Floats:
    """Return the probability of each row under the prior, up to a factor."""
    reach = math.ceil(_TAIL * float(noise.scale)) + 2
    q = np.arange(window.first - reach, window.last + reach + 1.0)
    weight = prior.weights(window.domain, q)
    q, weight = q[weight > 0], weight[weight > 0]
    x = np.arange(window.first, window.last + 1.0)
    inner = [float(weight @ noise.pmf(place - q)) for place in x]
    below = [float(weight @ noise.cdf(window.first - 1 - q))] if window.low else []
    above = [float(weight @ noise.cdf(q - window.last - 1))] if window.high else []
    return np.array([*below, *inner, *above])
