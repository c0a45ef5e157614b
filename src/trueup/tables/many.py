"""The noise of sums of many cells, in all directions of numerator and denominator.

Each summand moves (A, B) along its own direction. In the direction u the characteristic function of
u·Z is a product, and P(u·Z > t) a sum over frequencies (k + ½)Δ (Gil-Pelaez, Davies) whose error
is the probability beyond 2π/Δ − |t|: Δ is chosen by Chernoff's bound so that it is negligible.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.errors import TrueupError
from trueup.noise.ratio_regions import CUSHION, solved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise.base import Noise
    from trueup.noise.elementwise import Floats

FREQUENCIES = 1024
"""Summed over: products of a few characteristic functions have vanished by then."""

MOST = 2**16
"""Frequencies for one noise or two, whose characteristic functions hardly vanish."""

EDGES = 48
"""A polygon around a circle with so many edges is 0.2 % larger."""

UNSUMMED = 1e-4
"""The last terms that are summed, as a share of the probability beyond: t is right to 1e-4."""

NEGLIGIBLE = 1e-12
"""The probability that is left out."""


class Summand(NamedTuple):
    """``cells`` noises of one kind, and what a unit of each adds to numerator and denominator."""

    noise: Noise
    top: float
    bottom: float
    cells: int


SHARE = 0.45
"""How far towards its pole log M is used: twice that is still within, where variances exist."""


def limit(noise: Noise) -> float:
    """Return up to which |t| log M(t) is used: the noise's tails and the sum's variance allow it.

    Examples
    --------
    >>> from trueup.noise import Gaussian, Laplace
    >>> limit(Laplace(3)), limit(Gaussian(2))
    (0.15, inf)
    """
    return SHARE * noise.mgf_radius


def check_generating(noise: Noise) -> None:
    """Refuse noise without a generating function.

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> check_generating(Laplace(1))
    """
    if not noise.mgf_radius > 0:
        raise TrueupError(
            f"{noise!r} has no generating function, and sums of many of them no inverse",
            "debias the cells one by one, or use noise with lighter tails",
        )


def cumulants(noise: Noise, t: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log M(t) and its first two derivatives.

    Examples
    --------
    >>> from trueup.noise import Gaussian
    >>> [float(k[0]) for k in cumulants(Gaussian(2), np.array([0.5]))]
    [0.5, 2.0, 4.0]
    """
    m = [np.real(a) + 0 * t for a in noise.series(t, 2, float).coefficients]
    mean = m[1] / m[0]
    return np.log(m[0]), mean, 2 * m[2] / m[0] - mean**2


def characteristic(noise: Noise, w: Floats) -> NDArray[np.complex128]:
    """Return E e^{iwZ}.

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> characteristic(Laplace(1), np.array([1.0]))
    array([0.5+0.j])
    """
    if noise.lattice:  # of period 2π
        w = w - 2 * np.pi * np.round(w / (2 * np.pi))
    return np.asarray(noise.series(1j * w, 0, float).coefficients[0] + 0 * w, complex)


def spread(summands: tuple[Summand, ...], u: tuple[float, float]) -> float:
    """Return the standard deviation of u·Z.

    Examples
    --------
    >>> from trueup.noise.laplace import Laplace
    >>> spread((Summand(Laplace(1), 1.0, 0.0, 8),), (1.0, 0.0))
    4.0
    """
    parts = (math.sqrt(n * moments(z)[1]) * (u[0] * a + u[1] * b) for z, a, b, n in summands)
    return math.hypot(*parts)


@lru_cache(maxsize=4096)
def moments(noise: Noise) -> tuple[float, float]:
    """Return the mean and the variance; many groups have the same noise."""
    return float(noise.moment(1)), float(noise.variance)


def mean(summands: tuple[Summand, ...], u: tuple[float, float]) -> float:
    """Return the mean of u·Z."""
    return sum(n * moments(z)[0] * (u[0] * a + u[1] * b) for z, a, b, n in summands)


@lru_cache(maxsize=4096)
def beyond(summands: tuple[Summand, ...], u: tuple[float, float], chance: float) -> float:
    """Return a number that u·Z exceeds with probability ``chance`` at most (Chernoff).

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> round(beyond((Summand(Gaussian(1), 1.0, 0.0, 1),), (1.0, 0.0), 1e-12), 1)
    7.4
    """
    weights = [u[0] * s.top + u[1] * s.bottom for s in summands]
    ends = [limit(s.noise) / abs(w) for s, w in zip(summands, weights, strict=True) if w]
    sd = spread(summands, u)
    if not sd:
        return mean(summands, u)
    largest = min(*ends, 30 / sd, math.inf)  # e^{30²/2} is still a double
    t = largest * np.geomspace(1e-3, 1.0, 40)
    total = sum(
        s.cells * cumulants(s.noise, w * t)[0] for s, w in zip(summands, weights, strict=True) if w
    )
    return float(np.min((total - math.log(chance)) / t))


@lru_cache(maxsize=4096)
def region(summands: tuple[Summand, ...], tail: float) -> Floats:
    """Return corners around (A, B) by quadrants, as :func:`~trueup.noise.ratio_regions.region`.

    Laws on the integers are blurred by one step of the integers, and the polygon is larger by half
    a step: between its edges they are not convex.

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> nine = (Summand(Gaussian(1), 1.0, 0.0, 9), Summand(Gaussian(1), 0.0, 1.0, 4))
    >>> (region(nine, 0.025).max(axis=(0, 1)) / [3, 2]).round(2)
    array([1.96, 1.96])
    """
    unit = np.array([spread(summands, u) or 1.0 for u in ((1.0, 0.0), (0.0, 1.0))])
    upright = all(s.noise.symmetric and not (s.top and s.bottom) for s in summands)
    angles = np.linspace(0.0, 2 * math.pi, EDGES, endpoint=False)
    u = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rows = (np.abs(u) / unit if upright else u / unit).tolist()
    h = np.array([height(summands, (a, b), tail) for a, b in rows]) * (1 + CUSHION)
    edges = np.stack([u, np.roll(u, -1, axis=0)], axis=1)
    corners = np.linalg.solve(edges, np.stack([h, np.roll(h, -1)], axis=1)[:, :, None])
    around = (corners[:, :, 0] * unit).reshape(4, -1, 2)
    return np.asarray(around[[0, 3, 1, 2]])  # from anticlockwise to the order of the quadrants


@lru_cache(maxsize=65536)
def height(summands: tuple[Summand, ...], u: tuple[float, float], tail: float) -> float:
    """Return the smallest t with P(u·Z > t) ≤ tail."""
    sd, middle = spread(summands, u), mean(summands, u)
    steps = _steps(summands, u)
    slack = sum(steps) / 2
    if not sd:
        return middle
    most = beyond(summands, u, tail) + slack
    if tail <= NEGLIGIBLE:
        return most
    far = max(beyond(summands, sign, NEGLIGIBLE) for sign in (u, (-u[0], -u[1]))) + slack
    frequency, weight = _weights(summands, u, tuple(steps), far)
    while len(frequency) < MOST and np.abs(weight[-len(weight) // 4 :]).max() > UNSUMMED * tail:
        frequency, weight = _weights(summands, u, tuple(steps), far, 4 * len(frequency))

    def above(t: Floats, _: object) -> Floats:
        phase = np.exp(-1j * np.multiply.outer(t, frequency))
        return np.where(t < most, 0.5 + (phase * weight).imag.sum(axis=1), 0.0)  # periodic beyond

    start = np.array([middle])
    return float(solved(above, tail, start - 4 * sd, start + 4 * sd)[0]) + slack


def _weights(
    summands: tuple[Summand, ...],
    u: tuple[float, float],
    steps: tuple[float, ...],
    far: float,
    count: int = FREQUENCIES,
) -> tuple[Floats, NDArray[np.complex128]]:
    """Return frequencies, and what each has to do with the probability beyond t."""
    index = np.arange(count) + 0.5
    frequency = np.asarray(index * (math.pi / far), float)
    blurred = np.ones(count, complex)
    for z, a, b, n in summands:
        blurred = blurred * characteristic(z, (u[0] * a + u[1] * b) * frequency) ** n
    for step in steps:
        blurred = blurred * np.sinc(step * frequency / (2 * math.pi))
    return frequency, blurred / (math.pi * index)


def _steps(summands: tuple[Summand, ...], u: tuple[float, float]) -> list[float]:
    """Return the step of the integers in the direction u, for each direction of the summands."""
    whole = {(s.top, s.bottom) for s in summands if s.noise.lattice}
    return [abs(u[0] * a + u[1] * b) for a, b in sorted(whole)]
