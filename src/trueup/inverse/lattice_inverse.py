"""The inverse of any noise on the integers, on {L..U}, half-lines and all integers.

Far from bounds the estimator is a weighted sum over neighbours, T[f](x) = Σ vⱼ f(x + j), where
Σ p(k) vₘ₋ₖ = δₘ: v has the generating function 1/φ of the noise's masses p, and is computed by
FFT. Near a bound more than one estimator is unbiased. On a window {L..L+2d}, d the reach of v, the
one of least averaged variance is a weighted least norm (:mod:`trueup.inverse.least_norm`): every
unbiased estimator on the window is T[f̃] for some f̃ beyond its ends, so at x ≥ L + d it is T[f]
again, and the two fit together exactly.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy

from trueup.domain import Integers
from trueup.exact import symbolic
from trueup.inverse.least_norm import WILDEST, NearBound, Solved, prior_name, system
from trueup.inverse.on_values import Stencil
from trueup.noise.mass import NEGLIGIBLE, Mass, support
from trueup.noise.operator import Branch, Operator, X
from trueup.noise.sum import SumNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.domain import Interval
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

_POINTS = 2**12  # of the transform: the weights of noise that is of any use fall faster
_LARGEST = 1e9  # weight: the doubles of f have seven digits to spare then
_STEEPEST = 100.0  # power of e by which f may grow over the weights: a window is twice as long
_ROUNDING = 3e-16  # of the transform: 1/φ is off by that much times 1/φ²
_EXACT = 1e-9  # of the largest weight: what rounding may take, and another expansion may differ


class Weights(NamedTuple):
    """The weights of f(x + j), j ≠ 0, and whether the squares of f can be summed too."""

    values: dict[int, float]
    squares: bool

    @property
    def reach(self) -> int:
        """The farthest neighbour that is read."""
        return max(map(abs, self.values), default=1)


@lru_cache(maxsize=64)
def weights(noise: Noise, rate: float = 0.0, fall: float = 0.0) -> Weights | None:
    """Return the inverse on all integers of f that grows like e^{rate·|x|}, None if unusable.

    Where f falls like e^{−fall·|x|} the neighbours on one side are larger; so far as their weights
    are known they are taken along.

    Examples
    --------
    >>> from trueup.noise import DiscreteLaplace
    >>> noise = DiscreteLaplace(1) + DiscreteLaplace(1)
    >>> {j: round(v, 6) for j, v in weights(noise).values.items()}
    {1: -5.231907, 2: 0.847671, -1: -5.231907, -2: 0.847671}
    """
    for steepest in (max(rate, fall), rate) if fall > rate else (rate,):
        found = _tilted_weights(noise, steepest)
        if found is not None:
            squares = _tilted_weights(noise, 2 * rate) if rate else found
            return Weights(found if squares is None else squares, squares is not None)
    return None


def _tilted_weights(noise: Noise, rate: float) -> dict[int, float] | None:
    """Return the weights vⱼ for which vⱼ·e^{rate·|j|} is above rounding, None if there are none.

    Beyond a zero of the generating function 1/φ has another expansion: there v₀ differs.
    """
    if rate >= noise.mgf_radius:
        return None
    parts = noise.parts if isinstance(noise, SumNoise) else (noise,)
    tables = [support(part, rate) for part in parts]
    middle = _expansion(tables, 0.0)[0][0]
    found: dict[int, float] = {}
    for side in (1, -1):
        tilted, error = _expansion(tables, side * rate)
        size = np.abs(tilted).max()
        far = np.abs(tilted[_POINTS // 4 : -_POINTS // 4]).max()
        if not (size <= _LARGEST and error <= _EXACT * size and far <= error):
            return None
        if abs(tilted[0] - middle) > _EXACT * abs(middle):
            return None
        used = [side * j for j in range(1, _POINTS // 4) if abs(tilted[side * j]) > error]
        if rate * max(map(abs, used), default=0) > _STEEPEST:
            return None
        found |= {j: float(tilted[j]) * math.exp(-rate * abs(j)) for j in used}
    return found


def _expansion(tables: Sequence[tuple[int, Floats]], tilt: float) -> tuple[Floats, float]:
    """Return vⱼ·e^{tilt·j} at j modulo the number of points, and its rounding error."""
    transform = np.ones(_POINTS, complex)
    with np.errstate(all="ignore"):
        for first, masses in tables:
            k = first + np.arange(len(masses))
            folded = np.bincount(k % _POINTS, masses * np.exp(tilt * k), _POINTS)
            transform *= np.fft.fft(folded)
        inverted = 1 / transform
        found = np.fft.ifft(inverted).real
        spread = math.sqrt(float(np.mean(np.abs(inverted) ** 4)) / _POINTS)
    return found, _ROUNDING * (spread + 4 * float(np.abs(found).max()))


def rounded(noise: Noise) -> Mass:
    """Return the masses of a symmetric continuous noise rounded to the nearest integer.

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> round(rounded(Laplace(1) + Laplace(2)).pmf(0), 6)
    0.163776
    """
    reach = math.ceil(-float(noise.quantile(NEGLIGIBLE)))
    below = noise.cdf(np.arange(-reach - 0.5, 0.0))  # lower tails keep their digits
    half = np.diff(below)[::-1]
    masses = {k: float(half[k - 1]) for k in range(1, reach + 1)}
    return Mass({0: 1 - 2 * float(below[-1]), **masses, **{-k: p for k, p in masses.items()}})


def rounding(noise: Noise, domain: Interval) -> Operator | None:
    """Return the inverse of continuous noise on an integer, which is rounded first."""
    found = operator(rounded(noise), domain, stated=noise)
    if found is None:
        return None
    half = sympy.Rational(1, 2)
    nearest = sympy.floor(X + half)
    branches = tuple(dataclasses.replace(b, at=nearest) for b in found.branches)
    low, high = found.starts
    theorem = f"published values rounded to the nearest integer; {found.theorem}"
    return dataclasses.replace(
        found, branches=branches, theorem=theorem, edges=(low + half, high - half), jumps=0.5
    )


def operator(
    noise: Noise,
    domain: Interval,
    rate: float = 0.0,
    fall: float = 0.0,
    stated: Noise | None = None,
) -> Operator | None:
    """Return the inverse on a domain for f that grows like e^{rate·|x|}, None if there is none.

    ``stated`` is the noise to be named, if that is another one.
    """
    stated, found = stated or noise, weights(noise, rate, fall)
    finite = None not in domain.bounds
    if finite and (found is None or domain.high - domain.low < 4 * found.reach):
        return _on_all(noise, domain, stated, found is not None)
    if found is None:
        return None
    shares = {j: (v,) for j, v in found.values.items()}
    branches: list[Branch] = [Stencil("inside", None, {}, weights=shares, squares=found.squares)]
    edges = [-sympy.oo, sympy.oo]
    theorem = f"{stated!r}: g = f + Σ vⱼ·(f(x+j) − f(x)), |j| ≤ {found.reach}, inverts its masses"
    own = 2 * rate if found.squares else rate  # of products; without them none is asked for
    for place, (bound, inward) in enumerate(zip(domain.bounds, (1, -1), strict=True)):
        if bound is not None:
            last = int(bound) + inward * (found.reach - 1)
            edges[place] = sympy.Integer(last)
            far = int(bound) + 2 * inward * found.reach
            window = Integers(min(int(bound), far), max(int(bound), far))
            systems = [system(noise, domain, window, inward * r, own) for r in (rate, own)]
            near = NearBound("inside", None, {}, systems[0], stated, domain, None, last, systems[1])
            branches.append(dataclasses.replace(near, side="above" if place else "below"))
    if len(branches) > 1:
        theorem += (
            f"; near a bound of least variance under a {prior_name(domain)} prior among all that "
            "are unbiased"
        )
    ends = symbolic(domain.low), symbolic(domain.high)
    return Operator(tuple(branches), theorem, *ends, edges=(edges[0], edges[1]))


def _on_all(noise: Noise, domain: Interval, stated: Noise, usable: bool) -> Operator:
    """Return the least-norm inverse on a finite set of integers."""
    theorem = (
        f"{stated!r} on {domain}: the unbiased estimator of least variance under a "
        f"{prior_name(domain)} prior, by weighted least norm"
    )
    widest = None if usable else WILDEST
    branch = Solved("inside", None, {}, system(noise, domain, domain), stated, domain, widest)
    ends = symbolic(domain.low), symbolic(domain.high)
    return Operator((branch,), theorem, *ends, edges=(-sympy.oo, sympy.oo))
