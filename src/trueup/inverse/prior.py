"""What the variance is averaged over where no estimator is best for every true value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.domain import Interval

    Floats = NDArray[np.float64]


def weights(domain: Interval, q: Floats) -> Floats:
    """Return the default prior at integers: log-uniform on a positive domain, else uniform.

    Outside the domain it is zero.

    Examples
    --------
    >>> from trueup.domain import Integers
    >>> weights(Integers(1, None), np.array([0.0, 1.0, 4.0]))
    array([0.  , 1.  , 0.25])
    """
    inside = domain.contains(q)
    size = np.where(inside, q, 1.0) if name(domain) == "log-uniform" else np.ones_like(q)
    return np.where(inside, 1 / size, 0.0)


def name(domain: Interval) -> str:
    """Return the name of the default prior."""
    return "log-uniform" if domain.low > 0 else "uniform"
