"""Census 2020 noisy measurement files: discrete Gaussian noise, published by its variance."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import mpmath

from trueup.adapters.attributes import by_row, law, parameter
from trueup.noise import DiscreteGaussian
from trueup.noise.series import working_digits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.noise import Noise

SMOOTH = 4.0
"""From this variance on, it is σ² to more digits than a float has."""

DIGITS = 30


def from_census(variance: ArrayLike) -> Any:
    """Return the noise of a Census noisy measurement from its ``variance`` column.

    The noise is discrete Gaussian and the column holds Var Z, which for small σ is less than σ²;
    σ is found from it to the last digit.

    Parameters
    ----------
    variance
        A number, or the column: an array, a series, a list.

    Returns
    -------
    Noise or list of Noise
        A noise for a number, a list of noises, in order, for a column. A variance of 0 is no noise.

    Examples
    --------
    >>> from_census(9), from_census(0.2)
    (DiscreteGaussian(3), DiscreteGaussian(0.489299...))
    >>> from_census([9, 16.0])
    [DiscreteGaussian(3), DiscreteGaussian(4)]
    """
    return by_row(variance, _noise, "variances", "variance")


@functools.lru_cache(maxsize=4096, typed=True)
def _noise(variance: object) -> Noise:
    value = float(parameter(variance, "variance"))
    return law(lambda v: DiscreteGaussian(deviation(v)), value)


def deviation(variance: float) -> float:
    """Return the σ of the discrete Gaussian noise of a variance.

    With q = e^{−1/(2σ²)} the variance is 2Σk²q^{k²} / (1 + 2Σq^{k²}), which rises with q: solved
    for log q, with enough digits.

    Examples
    --------
    >>> deviation(100.0), round(deviation(0.0076725), 6)
    (10.0, 0.3)
    """
    if variance >= SMOOTH:
        return math.sqrt(variance)
    with working_digits(DIGITS):
        goal = mpmath.mpf(variance)
        t = mpmath.log(goal / (2 - 2 * goal)) if variance < 0.5 else -1 / (2 * goal)
        t = mpmath.findroot(lambda t: mpmath.log(_variance(mpmath.exp(t)) / goal), (t, 1.01 * t))
        return float(1 / mpmath.sqrt(-2 * t))


def _variance(q: Any) -> Any:
    """Return 2Σk²q^{k²} / (1 + 2Σq^{k²})."""
    last = int(mpmath.sqrt(mpmath.mp.prec * mpmath.log(2) / -mpmath.log(q))) + 2
    powers = [(k * k, q ** (k * k)) for k in range(1, last + 1)]
    return 2 * mpmath.fsum(s * p for s, p in powers) / (1 + 2 * mpmath.fsum(p for _, p in powers))
