"""Moments of functions of several published integers, as sums over their noises.

A function whose statistics do not stand apart takes a sum over all of them at every truth. Where
the digits of :mod:`trueup.inverse.exact_law`, a second for each, are not needed, this gives five.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

_TAIL = 1e-8  # of the probability on each side is left out
_MOST = 200_000  # terms of a sum: ten milliseconds


def countable(noise: Mapping[str, Noise]) -> bool:
    """Whether all noises are whole numbers, and few together."""
    if not all(law.lattice for law in noise.values()):
        return False
    return math.prod(high - low + 1 for low, high in map(_ends, noise.values())) <= _MOST


def _ends(law: Noise) -> tuple[float, float]:
    return float(law.quantile(_TAIL)), float(law.quantile(1 - _TAIL))


def summed(
    function: Callable[..., Floats], noise: Mapping[str, Noise], **truth: Floats
) -> tuple[Floats, Floats]:
    """Return E g and Var g at each of several truths.

    Examples
    --------
    >>> from trueup import DiscreteLaplace
    >>> law = {"a": DiscreteLaplace(2), "b": DiscreteLaplace(3)}
    >>> mean, variance = summed(lambda a, b: a * b, law, a=np.array([4.0]), b=np.array([5.0]))
    >>> round(float(mean[0]), 4), round(float(variance[0]), 1)
    (20.0, 621.0)
    """
    steps = [np.arange(low, high + 1) for low, high in (_ends(noise[name]) for name in truth)]
    z = [v.ravel() for v in np.meshgrid(*steps, indexing="ij")]
    weight = np.ones(1)
    for name, k in zip(truth, steps, strict=True):
        masses = np.diff(np.asarray(noise[name].cdf(np.append(k[0] - 1, k))))
        weight = np.multiply.outer(weight, masses / masses.sum()).ravel()
    means, variances = [], []
    for at in zip(*truth.values(), strict=True):
        x = {name: q + v for name, q, v in zip(truth, at, z, strict=True)}
        values = np.asarray(function(**x), float)
        means.append(float(weight @ values))
        variances.append(float(weight @ (values - means[-1]) ** 2))
    return np.array(means), np.array(variances)
