"""Slanted bounds such as s ≤ n or s ≤ U·n: what f is taken to be beyond them.

Let b be the bound of s that the other statistics give, and k = s − b > 0 the distance beyond it.
On the integers f̃ = f(b) + δ·e/(1 + θ·e/b), with e = e_k, δ = f(b) − f(b − 1) and
θ = min(1, √(U·ε_s·ε_n)): for s/n that is 1 + e_k/(n + θ·e_k). The e_k are the best extension of
d ↦ d to d = −k under the noise of n − s. Any values there are unbiased; these have a small variance
on both sides of the bound.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.exact import symbolic
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.kernels.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.extended import Extended
    from trueup.inverse.joint import Joint

_FADING = 0.9  # weight ρᵈ of a true value at distance d from the bound
_REACH = 40  # scales: beyond, nothing is left of e⁻⁴⁰
_WIDEST, _NARROWEST = 10, 0.05  # scales between which e_k is computed; beyond, it hardly changes


class Side(NamedTuple):
    """A condition as a bound of one statistic: side·(symbol − bound) ≤ 0."""

    symbol: sympy.Symbol
    bound: sympy.Expr
    side: int
    condition: Condition

    @property
    def beyond(self) -> sympy.Expr:
        """How far a point is beyond the bound."""
        return self.side * (self.symbol - self.bound)


def on_integers(joint: Joint) -> Extended:
    """Return the estimator of integer statistics with slanted bounds."""
    sides = [side_of(joint, c) for c in joint.tied]
    pieces = [(_across(joint, side), side.beyond > 0) for side in sides]
    outer = sympy.Piecewise(*pieces, (joint.f, True), evaluate=False)
    _check_finite(joint, outer)
    words = ", ".join(str(s.condition) for s in sides)
    theorem = (
        f"discrete Laplace noises with a slanted bound ({words}): f goes on beyond it, bent so "
        "that the variance at the bound is small"
    )
    return joint.extended(
        outer, sympy.Or(*map(_near, joint.tied, [joint] * len(sides))), (), theorem
    )


def _near(condition: Condition, joint: Joint) -> sympy.Basic:
    """Return whether a neighbour of a point is beyond a bound."""
    symbols = {s.symbol.name: s.symbol for s in joint.own}
    reach = sum(abs(c) for _, c in condition.terms)
    return condition.excess(symbols) < reach


def side_of(joint: Joint, condition: Condition) -> Side:
    """Return a condition as a bound of a statistic whose coefficient divides all others."""
    terms = dict(condition.terms)
    whole = sympy.ilcm(*(c.q for c in (*terms.values(), condition.low)))
    if joint.is_whole:
        whole = whole // sympy.igcd(*(int(c * whole) for c in (*terms.values(), condition.low)))
    candidates = [
        s
        for s in joint.own
        if s.symbol.name in terms
        and (abs(terms[s.symbol.name] * whole) == 1 if joint.is_whole else not s.noise.lattice)
    ]
    if not candidates:
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(joint.f)} that uses {condition} was found: no whole "
            "bound of one statistic follows from the others",
            "give a condition such as s <= 2*n, with a factor 1 on one side",
            proved=False,
        )
    chosen = min(candidates, key=lambda s: not joint.f.is_polynomial(s.symbol)).symbol
    c = terms[chosen.name]
    rest = sympy.Add(
        *(k * sympy.Symbol(n, real=True) for n, k in terms.items() if n != chosen.name)
    )
    return Side(chosen, sympy.expand((condition.low - rest) / c), -int(sympy.sign(c)), condition)


def _across(joint: Joint, side: Side) -> sympy.Expr:
    """Return f beyond a bound."""
    edge, before = (at(joint.f, {side.symbol: side.bound - k * side.side}) for k in (0, 1))
    steps = _steps(joint, side)
    bent = steps / (1 + bend(joint, side) * steps / _size(joint, side))
    return edge + (edge - before) * bent


def bend(joint: Joint, side: Side) -> sympy.Expr:
    """Return θ = min(1, √(U·ε_s·ε_n)), 0 where the bound may be 0 or change its sign."""
    if _size(joint, side) is sympy.oo:
        return sympy.Integer(0)
    other, factor = _others(joint, side)
    return sympy.Float(min(1.0, math.sqrt(factor / _scales(joint)[side.symbol.name] / other)))


def _size(joint: Joint, side: Side) -> sympy.Expr:
    """Return the bound where it is known to be positive, at least 1; infinity elsewhere."""
    poly = sympy.Poly(side.bound, *sorted(side.bound.free_symbols, key=str))
    least = poly.coeff_monomial(1)
    for symbol in poly.gens:
        c, domain = poly.coeff_monomial(symbol), joint.statistics[symbol.name].domain
        least += c * symbolic(domain.low if c > 0 else domain.high)
    if least >= 1:
        return side.bound
    return sympy.Max(side.bound, 1) if least >= 0 else sympy.oo


def _steps(joint: Joint, side: Side) -> sympy.Expr:
    """Return e_k = k·(k + c)/(β·(k + c) + γ·k²) for the noises of the statistics."""
    k, scales = side.beyond, _scales(joint)
    beta, gamma, c = map(sympy.Float, outward(scales[side.symbol.name], *_others(joint, side)))
    return k * (k + c) / (beta * (k + c) + gamma * k**2)


def _scales(joint: Joint) -> dict[str, float]:
    return {s.symbol.name: float(s.noise.scale) for s in joint.own}  # type: ignore[attr-defined]


def _others(joint: Joint, side: Side) -> tuple[float, float]:
    """Return the scale of the widest noise in a bound, and its factor there."""
    terms, scales = dict(side.condition.terms), _scales(joint)
    own = abs(float(terms.pop(side.symbol.name)))
    widest = max(terms, key=lambda name: abs(float(terms[name])) * scales[name])
    return scales[widest], abs(float(terms[widest])) / own


@lru_cache(maxsize=64)
def outward(own: float, other: float, factor: float = 1.0) -> tuple[float, float, float]:
    """Return β, γ, c of e_k, for s with noise of scale ``own`` at most ``factor`` times n.

    e_k is the best extension of d ↦ d to d = −k under the noise of factor·n − s, by least squares
    over d ≥ 0 with weights ρᵈ in the unknowns φ(−k) = −e_k. This form has a variance within 1 % of
    the least. Wide noises are computed on a coarser grid: e_{rk} = r·e_k.

    Examples
    --------
    >>> beta, gamma, c = outward(1.0, 1.0)
    >>> [round((k * (k + c)) / (beta * (k + c) + gamma * k * k), 2) for k in (1, 2, 3)]
    [0.74, 1.21, 1.51]
    """
    coarse = max(1.0, max(own, factor * other) / _WIDEST)
    own, step = max(own / coarse, _NARROWEST), max(1, round(factor / coarse))
    count = math.ceil(_REACH * max(own, step * other))
    t = np.arange(-count - step - 1, step + 2)
    weight, stencil = _weights(own, other, step, t), _stencil(own, other, step)
    matrix, given = np.zeros((len(t), count)), np.zeros(len(t))
    for move, w in stencil.items():
        d = t + move
        rows = np.flatnonzero(d < 0)
        np.add.at(matrix, (rows, np.minimum(-d[rows], count) - 1), w)
        given += w * np.maximum(d, 0)
    k = np.arange(1.0, count + 1)

    def loss(logs: NDArray[np.float64]) -> float:
        beta, gamma, c = np.exp(logs)
        e = k * (k + c) / (beta * (k + c) + gamma * k * k)
        return float(weight @ (given - matrix @ e) ** 2)

    rate = 1 / max(own, step * other)
    start = np.log([1.0, 0.4 * rate, 1.5 / rate])
    fine = {"xatol": 1e-4, "fatol": 1e-7 * loss(start), "maxiter": 2000}
    found = scipy.optimize.minimize(loss, start, method="Nelder-Mead", options=fine)
    beta, gamma, c = map(float, np.exp(found.x))
    return beta, gamma / coarse, c * coarse


def _weights(own: float, other: float, step: int, t: NDArray[Any]) -> NDArray[np.float64]:
    """Return Σ ρᵈ P(t | d) over d ≥ 0."""
    far = math.ceil(_REACH / -math.log(_FADING))
    z = np.arange(t[0] - far, far - t[0] + 1)
    spaced = np.where(z % step == 0, _mass(other, z // step), 0.0)
    law = np.convolve(_mass(own, z), spaced, "same")
    fading = _FADING ** np.arange(far + 1)
    return np.array([fading @ law[len(z) // 2 + k - np.arange(far + 1)] for k in t])


def _stencil(own: float, other: float, step: int) -> dict[int, float]:
    """Return the inverse of the noise of n·step − s as weights of shifts."""
    first, second = ((1 / (4 * math.sinh(0.5 / b) ** 2)) for b in (own, other))
    total: dict[int, float] = defaultdict(float)
    for i, v in ((-1, -first), (0, 1 + 2 * first), (1, -first)):
        for j, w in ((-step, -second), (0, 1 + 2 * second), (step, -second)):
            total[i + j] += v * w
    return total


def _mass(scale: float, z: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(math.tanh(0.5 / scale) * np.exp(-np.abs(z) / scale))


def _check_finite(joint: Joint, outer: sympy.Expr) -> None:
    """Refuse an extension that is not a number at integers near the bounds."""
    axes = []
    for s in joint.statistics.values():
        low, high = s.domain.bounds
        start = low if low is not None else high - 40 if high is not None else -20
        axes.append(np.arange(float(start), float(start) + 41))
    mesh = np.meshgrid(*axes)
    columns = {s.symbol: m.ravel() for s, m in zip(joint.statistics.values(), mesh, strict=True)}
    values = evaluate(outer, columns)
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        where = ", ".join(f"{s.name} = {c[bad]:g}" for s, c in columns.items())
        raise NoUnbiasedEstimator(
            f"no unbiased estimator of {text(joint.f)} was found: it is not a finite number at or "
            f"beside {where}",
            "bound the statistics to where the formula is finite, or say what it is in empty "
            "cells: empty=value",
            proved=False,
        )


def continuous(joint: Joint) -> Extended:
    """Return the estimator under continuous noise."""
    raise NoUnbiasedEstimator(
        f"no unbiased estimator of {text(joint.f)} that uses "
        f"{', '.join(map(str, joint.tied))} was found under continuous noise",
        "use DiscreteLaplace noise, or leave the condition out",
        proved=False,
    )
