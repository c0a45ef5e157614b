"""The logarithm κ of a generating function with two derivatives, and the characteristic function.

For sums of many noises: both are sums over the noises. Laplace, discrete Laplace and Gaussian noise
have them in closed form; of other families κ is interpolated between Chebyshev points, where it is
known to 20 digits, and the characteristic function is summed over the pieces of the law.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import chebyshev

from trueup.errors import TrueupError
from trueup.noise.discrete_laplace import DiscreteLaplace
from trueup.noise.gaussian import Gaussian
from trueup.noise.laplace import Laplace
from trueup.noise.noiseless import Noiseless
from trueup.noise.ratio_regions import law

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.noise.base import Noise
    from trueup.noise.elementwise import Floats

POINTS = 32
"""Chebyshev points: on 0.45 of the way to a pole the error falls like 4.2^−POINTS."""

SHARE = 0.45
"""How far towards its pole κ is used: twice that is still within, where variances exist."""

_TAIL = 1e-13  # of a law that is cut off before its characteristic function is summed


def limit(noise: Noise) -> float:
    """Return up to which |t| κ(t) is used: the noise's own tails and the sum's variance allow it.

    Examples
    --------
    >>> limit(Laplace(3)), limit(Gaussian(2))
    (0.15, inf)
    """
    return SHARE * min(noise.tail_rates)


def cumulants(noise: Noise, t: Floats) -> tuple[Floats, Floats, Floats]:
    """Return κ = log M, κ′ and κ″ at real t, |t| below the limit.

    Examples
    --------
    >>> [float(k[0]) for k in cumulants(Gaussian(2), np.array([0.5]))]
    [0.5, 2.0, 4.0]
    """
    if isinstance(noise, Noiseless):
        return 0 * t, 0 * t, 0 * t
    if isinstance(noise, Gaussian):
        v = float(noise.scale) ** 2
        return v * t * t / 2, v * t, v + 0 * t
    if isinstance(noise, Laplace):
        v = float(noise.scale) ** 2
        rest = 1 - v * t * t
        return -np.log1p(-v * t * t), 2 * v * t / rest, 2 * v * (1 + v * t * t) / rest**2
    if isinstance(noise, DiscreteLaplace):
        rate = 1 / float(noise.scale)
        right, left = 1 / np.expm1(rate - t), 1 / np.expm1(rate + t)
        # M = sinh²(r/2)/(sinh((r − t)/2)·sinh((r + t)/2)) = 1/(1 − sinh²(t/2)/sinh²(r/2))
        value = -np.log1p(-((np.sinh(t / 2) / math.sinh(rate / 2)) ** 2))
        return value, right - left, right * (1 + right) + left * (1 + left)
    return _interpolated(noise, t)


def _interpolated(noise: Noise, t: Floats) -> tuple[Floats, Floats, Floats]:
    reach = float(np.max(np.abs(t), initial=0.0)) or 1.0
    most = limit(noise)
    half = 2.0 ** math.ceil(math.log2(reach))  # few different ones
    half = min(half, most) if math.isfinite(most) else half
    series = chebyshev.Chebyshev(_coefficients(noise, half), domain=(-half, half))
    return series(t), series.deriv(1)(t), series.deriv(2)(t)


@lru_cache(maxsize=64)
def _coefficients(noise: Noise, half: float) -> Floats:
    points = chebyshev.chebpts1(POINTS)
    values = [math.log(float(noise.tilted(half * float(p), 0)[0])) for p in points]
    return np.asarray(chebyshev.chebfit(points, values, POINTS - 1))


def characteristic(noise: Noise, w: Floats) -> NDArray[np.complex128]:
    """Return E e^{iwZ}.

    Examples
    --------
    >>> characteristic(Laplace(1), np.array([1.0]))
    array([0.5+0.j])
    """
    if isinstance(noise, Noiseless):
        return np.ones(np.shape(w), complex)
    if isinstance(noise, Gaussian):
        return np.exp(-((float(noise.scale) * w) ** 2) / 2).astype(complex)
    if isinstance(noise, Laplace):
        return (1 / (1 + (float(noise.scale) * w) ** 2)).astype(complex)
    if isinstance(noise, DiscreteLaplace):
        return (1 / (1 + (np.sin(w / 2) / math.sinh(0.5 / float(noise.scale))) ** 2)).astype(
            complex
        )
    pieces = law(noise, _TAIL)
    middle = (pieces.low + pieces.high) / 2
    phase = np.exp(1j * np.multiply.outer(w, middle))
    return np.asarray(phase @ (pieces.mass / pieces.mass.sum()))


def check_generating(noise: Noise) -> None:
    """Refuse noise without a generating function.

    Examples
    --------
    >>> check_generating(Laplace(1))
    """
    if not min(noise.tail_rates) > 0:
        raise TrueupError(
            f"{noise!r} has no generating function, and sums of many of them no inverse",
            "debias the cells one by one, or use noise with lighter tails",
        )
