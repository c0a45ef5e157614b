"""The estimator on a box under Laplace and discrete Laplace noises, from its formulas.

Inside the bounds g = f − b²f″ (on the integers differences in place of derivatives, λ in place of
b²), beyond them the constant f ∓ b·f′ seen from inside (κ in place of b); over several statistics
the operators compose, and V̂ = g² − T[f²]. Derivatives are differences over 1e-30 in 200 digits:
exact to 30 digits, and blind to how the library differentiates.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping

import mpmath
import numpy as np
from mpmath import mpf

from prove import reading
from prove.laws import Law
from prove.reading import DIGITS, BeyondError, exact

STEP = mpf("1e-30")
"""Differences over it are wrong by its square and keep 140 of 200 digits."""
NEAR = mpf("1e-60")
"""The same at a bound, where f may go like a power 1.1 of the distance."""

Terms = list[tuple[mpf, mpf]]
"""(place, weight) along one statistic: Σ weight·f(place)."""


@dataclasses.dataclass(frozen=True)
class Value:
    """g or V̂ at one point, and the size of the terms that it is the sum of."""

    value: mpf
    size: mpf


def applies(law: Law, low: float | None, high: float | None) -> bool:
    """Whether the operator of a statistic is one of the closed forms."""
    return law.closed and (low is None or high is None or low <= high)


def operator(law: Law, low: float | None, high: float | None, x: float) -> tuple[Terms, Terms]:
    """Return the terms of f itself and those of the correction, at a published value."""
    b, place = mpf(law.laplaces[0]), mpf(x)
    if low is not None and low == high:
        return [(exact(low), mpf(1))], []
    if low is not None and x <= low:
        return _beyond(law, b, exact(low), 1)
    if high is not None and x >= high:
        return _beyond(law, b, exact(high), -1)
    if any(0 < abs(place - exact(end)) < 1000 * STEP for end in (low, high) if end is not None):
        raise BeyondError("closer to a bound than differences reach")
    if law.lattice:
        alpha = mpmath.exp(-1 / b)
        weight = alpha / (1 - alpha) ** 2
        return [(place, mpf(1))], [(place + 1, -weight), (place, 2 * weight), (place - 1, -weight)]
    weight = (b / STEP) ** 2
    middle = place + STEP * _away(place, low, high)
    return (
        [(place, mpf(1))],
        [(middle + STEP, -weight), (middle, 2 * weight), (middle - STEP, -weight)],
    )


def _away(place: mpf, low: float | None, high: float | None) -> int:
    """Return the way from a bound that is less than a step away: 1, −1, or 0 where none is."""
    if low is not None and place - exact(low) < STEP:
        return 1
    return -1 if high is not None and exact(high) - place < STEP else 0


def _beyond(law: Law, b: mpf, end: mpf, inside: int) -> tuple[Terms, Terms]:
    """Return f and −b·f′ at a bound, from inside: by three values next to it."""
    if law.lattice:
        alpha = mpmath.exp(-1 / b)
        kappa = alpha / (1 - alpha)
        return [(end, mpf(1))], [(end + inside, -kappa), (end, kappa)]
    near = [end + inside * k * NEAR for k in (1, 2, 3)]
    value = [mpf(3), mpf(-3), mpf(1)]
    slope = [mpf(-5) / 2, mpf(4), mpf(-3) / 2]
    return (
        list(zip(near, value, strict=True)),
        [(p, -w * b / NEAR) for p, w in zip(near, slope, strict=True)],
    )


def estimate(
    tree: ast.expr,
    laws: Mapping[str, Law],
    bounds: Mapping[str, tuple[float | None, float | None]],
    x: Mapping[str, float],
) -> tuple[Value, Value]:
    """Return g and V̂ at a published point."""
    with mpmath.workdps(DIGITS):
        known: dict[tuple[mpf, ...], mpf] = {}

        def f(point: tuple[mpf, ...]) -> mpf:
            if point not in known:
                known[point] = reading.value(tree, dict(zip(laws, point, strict=True)))
            return known[point]

        parts = [operator(laws[name], *bounds[name], x[name]) for name in laws]
        g = _apply(parts, f)
        square = _apply(parts, lambda p: f(p) ** 2)
        return g, Value(g.value**2 - square.value, g.size**2 + square.size)


def _apply(parts: list[tuple[Terms, Terms]], f: Callable[[tuple[mpf, ...]], mpf]) -> Value:
    """Return the composed operators applied to f, one choice of term per statistic at a time."""
    total, size = mpf(0), mpf(0)
    for chosen in itertools.product(*parts):
        term = mpf(0)
        for spots in itertools.product(*chosen):
            term += math.prod((w for _, w in spots), start=mpf(1)) * f(tuple(p for p, _ in spots))
        total, size = total + term, size + abs(term)
    return Value(total, size)


def rounding(
    tree: ast.expr,
    laws: Mapping[str, Law],
    bounds: Mapping[str, tuple[float | None, float | None]],
    x: Mapping[str, float],
) -> float:
    """Return what g loses where f is computed in doubles as it is written: log(1 + e^-40) is 0."""
    with mpmath.workdps(DIGITS):
        parts = [operator(laws[name], *bounds[name], x[name]) for name in laws]
        joined = [
            [*own, *correction] if laws[name].lattice else own
            for name, (own, correction) in zip(laws, parts, strict=True)
        ]
        lost = 0.0
        for spots in itertools.product(*joined):
            at = dict(zip(laws, (p for p, _ in spots), strict=True))
            rough = reading.values(tree, {n: np.array([float(p)]) for n, p in at.items()})[0]
            weight = math.prod(abs(float(w)) for _, w in spots)
            lost += weight * abs(float(rough - reading.value(tree, at)))
        return lost
