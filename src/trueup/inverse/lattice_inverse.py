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
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.domain import Integers
from trueup.exact import symbolic
from trueup.inverse.least_norm import WILDEST, NearBound, Solved, prior_name, system
from trueup.inverse.on_values import Stencil
from trueup.noise.mass import NEGLIGIBLE, Mass, support
from trueup.noise.operator import Branch, Operator, X

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.inverse.least_norm import LeastNorm
    from trueup.noise.base import Noise

_POINTS = 2**12  # of the transform: the weights of noise that is of any use fall faster
_LARGEST = 1e9  # weight: the doubles of f have seven digits to spare then
_STEEPEST = 15.0  # power of e by which f may grow over the weights: a window is twice as long
_ROUNDING = 3e-16  # of the transform: 1/φ is off by that much times 1/φ²
_EXACT = 1e-9  # of the largest weight: what rounding may take, and another expansion may differ


@lru_cache(maxsize=64)
def weights(noise: Noise, rate: float = 0.0) -> dict[int, float] | None:
    """Return the weights of f(x + j), j ≠ 0, for f that grows like e^{rate·|x|}.

    They are those for which vⱼ·e^{rate·|j|} is above rounding; None if there are none. Beyond a
    zero of the generating function 1/φ has another expansion: there v₀ differs.

    Examples
    --------
    >>> from trueup.noise import DiscreteLaplace
    >>> found = weights(DiscreteLaplace(1) + DiscreteLaplace(1))
    >>> {j: round(v, 6) for j, v in found.items()}
    {1: -5.231907, 2: 0.84764, -1: -5.231907, -2: 0.84764}
    """
    if rate >= noise.mgf_radius:
        return None
    first, masses = support(noise, rate)
    k, found, middles = first + np.arange(len(masses)), dict[int, float](), []
    for side in (0, 1, -1):
        with np.errstate(all="ignore"):
            folded = np.bincount(k % _POINTS, masses * np.exp(side * rate * k), _POINTS)
            inverted = 1 / np.fft.fft(folded)
            v = np.fft.ifft(inverted).real
            spread = math.sqrt(float(np.mean(np.abs(inverted) ** 4)) / _POINTS)
        size, far = np.abs(v).max(), np.abs(v[_POINTS // 4 : -_POINTS // 4]).max()
        error = _ROUNDING * (spread + 4 * size)
        if not (size <= _LARGEST and far <= error <= _EXACT * size):
            return None
        middles.append(v[0])
        used = [side * j for j in range(1, _POINTS // 4) if side and abs(v[side * j]) > error]
        found |= {j: float(v[j]) * math.exp(-rate * abs(j)) for j in used}
    apart = max(middles) - min(middles) > _EXACT * abs(middles[0])
    return None if apart or rate * max(map(abs, found), default=0) > _STEEPEST else found


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
    branches = tuple(dataclasses.replace(b, at=sympy.floor(X + half)) for b in found.branches)
    low, high = found.starts
    theorem = f"published values rounded to the nearest integer; {found.theorem}"
    return dataclasses.replace(
        found, branches=branches, theorem=theorem, edges=(low + half, high - half), jumps=0.5
    )


def operator(
    noise: Noise,
    domain: Interval,
    rates: tuple[float, float] = (0.0, 0.0),
    stated: Noise | None = None,
) -> Operator | None:
    """Return the inverse on a domain, None if there is none.

    ``rates`` say how fast f grows on sides that count, and on any side, heeded if possible;
    ``stated`` is the noise to be named, if that is another one.
    """
    finite, stated = None not in domain.bounds, stated or noise
    rate, fastest = rates
    found, squares = None, False
    for steepest in (2 * fastest, fastest, 2 * rate, rate):
        found = weights(noise, steepest)
        if found is not None:
            squares = steepest >= 2 * rate
            break
    reach = max(map(abs, found), default=1) if found else 1
    if finite and (found is None or domain.high - domain.low < 4 * reach):
        return _on_all(noise, domain, stated)
    if found is None:
        return None
    inside = {j: (v,) for j, v in found.items()}
    branches: list[Branch] = [Stencil("inside", None, {}, weights=inside, squares=squares)]
    edges = [-sympy.oo, sympy.oo]
    theorem = f"{stated!r}: g = f + Σ vⱼ·(f(x+j) − f(x)), |j| ≤ {reach}, inverts its masses"
    for i, (bound, inward) in enumerate(zip(domain.bounds, (1, -1), strict=True)):
        if bound is not None:
            last, far = int(bound) + inward * (reach - 1), int(bound) + 2 * inward * reach
            edges[i] = sympy.Integer(last)
            window = Integers(min(int(bound), far), max(int(bound), far))
            solver = system(noise, domain, window)
            end = last - solver.first
            rows = slice(end, None) if i else slice(0, end + 1)
            near = _solved(solver, stated, domain) | {"rows": rows}
            branches.append(NearBound("above" if i else "below", None, {}, **near))
    if len(branches) > 1:
        theorem += (
            f"; near a bound of least variance under a {prior_name(domain)} prior among all that "
            "are unbiased"
        )
    ends = symbolic(domain.low), symbolic(domain.high)
    return Operator(tuple(branches), theorem, *ends, edges=(edges[0], edges[1]))


def _solved(solver: LeastNorm, noise: Noise, domain: Interval) -> dict[str, Any]:
    """Return what a branch with solved tables is made from."""
    own = {"first": solver.first, "truths": solver.truths, "system": solver}
    return own | {"noise": noise, "domain": domain, "rows": slice(None)}


def _on_all(noise: Noise, domain: Interval, stated: Noise) -> Operator:
    """Return the least-norm inverse on a finite set of integers."""
    theorem = (
        f"{stated!r} on {domain}: the unbiased estimator of least variance under a "
        f"{prior_name(domain)} prior, by weighted least norm"
    )
    given = _solved(system(noise, domain, domain), stated, domain)
    widest = WILDEST if weights(noise) is None else math.inf
    branch = Solved("inside", None, {}, widest=widest, **given)
    ends = symbolic(domain.low), symbolic(domain.high)
    return Operator((branch,), theorem, *ends, edges=(-sympy.oo, sympy.oo))
