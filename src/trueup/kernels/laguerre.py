"""Sum a Laguerre series by Clenshaw's recurrence: stable at every degree."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Value = TypeVar("Value", float, NDArray[np.float64])


def clenshaw(coefficients: Sequence[float], t: Value) -> Value:
    """Return Σₙ cₙ Lagₙ(t).

    Examples
    --------
    >>> clenshaw([0.0, 1.0, 2.0], 3.0)  # (1 − 3) + 2·(1 − 6 + 9/2)
    -3.0
    """
    first = second = 0.0 * t
    for n in range(len(coefficients) - 1, -1, -1):
        first, second = (
            coefficients[n] + first * (2 * n + 1 - t) / (n + 1) - second * (n + 1) / (n + 2),
            first,
        )
    return first
