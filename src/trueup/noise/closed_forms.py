"""Sums and integrals that several families share.

Every function is written in plain arithmetic and the exponential of a :class:`~.fields.Field`, so
that it gives exact symbols or many digits, whichever it is fed with.
"""

from __future__ import annotations

from math import perm
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup.noise.fields import Field


def geometric_sums(r: Any, order: int) -> list[Any]:
    """Return Sₘ = Σ_{k≥0} kᵐ rᵏ for m = 0..order.

    Sₘ = Σ_i T(m,i) κⁱ / (1−r) with κ = r/(1−r) and T(m,i) the number of maps of m things onto i,
    which solves Sₘ = κ Σ_{j<m} C(m,j) Sⱼ. All terms are positive for 0 < r < 1.

    Examples
    --------
    >>> geometric_sums(0.5, 2)
    [2.0, 2.0, 6.0]
    """
    powers, sums, onto = [1 / (1 - r)], [], [1]
    for _ in range(order + 1):
        sums.append(sum(t * power for t, power in zip(onto, powers, strict=True) if t))
        powers.append(powers[-1] * r / (1 - r))
        onto = [i * (a + b) for i, (a, b) in enumerate(zip([*onto, 0], [0, *onto], strict=True))]
    return sums


def gaussian_tilted(variance: Any, c: Any, order: int, field: Field) -> list[Any]:
    """Return Eⱼ = E[Zʲ e^{cZ}] for j = 0..order under N(0, v).

    E₀ = e^{vc²/2} and Stein's lemma gives E_{j+1} = v (c Eⱼ + j E_{j−1}).

    Examples
    --------
    >>> from trueup.noise.fields import Digits
    >>> [float(e) for e in gaussian_tilted(4, 0, 4, Digits())]
    [1.0, 0.0, 4.0, 0.0, 48.0]
    """
    moments = [c**0, field.tidy(variance * c)]
    for j in range(1, order):
        moments.append(field.tidy(variance * (c * moments[j] + j * moments[j - 1])))
    growth = field.exp(field.tidy(variance * c**2 / 2))
    return [growth * moment for moment in moments[: order + 1]]


def exponential_integrals(s: Any, low: Any, high: Any, order: int, field: Field) -> list[Any]:
    """Return ∫_low^high uʲ e^{su} du for j = 0..order.

    The antiderivative is e^{su} Σ_i (−1)ⁱ j!/(j−i)! u^{j−i} / s^{i+1}, or u^{j+1}/(j+1) for s = 0.

    Examples
    --------
    >>> from trueup.noise.fields import Digits
    >>> exponential_integrals(0, 0, 2, 2, Digits())
    [2.0, 2.0, 2.6666666666666665]
    """
    if s == 0:
        return [(high ** (j + 1) - low ** (j + 1)) / (j + 1) for j in range(order + 1)]
    above, below = field.exp(s * high), field.exp(s * low)
    return [
        above * _exponential_polynomial(s, high, j) - below * _exponential_polynomial(s, low, j)
        for j in range(order + 1)
    ]


def _exponential_polynomial(s: Any, u: Any, j: int) -> Any:
    """Return Σ_i (−1)ⁱ j!/(j−i)! u^{j−i} / s^{i+1}."""
    return sum((-1) ** i * perm(j, i) * u ** (j - i) / s ** (i + 1) for i in range(j + 1))
