"""Noise of which only some raw moments are known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.noise.base import Noise

if TYPE_CHECKING:
    from trueup.exact import Exact

CHECKED = 40
"""So many moments are checked against each other."""

TOLERANCE = 1e-9
"""Rounding allowed in the eigenvalues of a Hankel matrix, scaled to unit diagonal."""

_HINT = "give the raw moments E Z, E Z², … as a list, e.g. Moments([0, 2])"


@dataclasses.dataclass(frozen=True, repr=False)
class Moments(Noise):
    """State only the raw moments E Z, E Z², … of the noise.

    Numbers are moments of some law if and only if the Hankel matrix (m_{i+j}) is positive
    semidefinite, m₀ = 1; others are refused, up to rounding.

    Parameters
    ----------
    values
        m₁, m₂, …, at least one.

    Examples
    --------
    >>> Moments([0, 2, 0, 24]).variance
    2
    """

    knows_few_moments: ClassVar[bool] = True

    values: tuple[Exact, ...]

    def __init__(self, values: Iterable[Exact]) -> None:
        if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
            raise TrueupError(f"moments must be a list of numbers, got {values!r}", _HINT)
        moments = tuple(number(m, f"moment {k}") for k, m in enumerate(values, start=1))
        if not moments:
            raise TrueupError("no moments were given", _HINT)
        object.__setattr__(self, "values", moments)
        _check_hankel(moments)

    def __repr__(self) -> str:
        return f"Moments({list(self.values)!r})"

    @property
    def highest_moment(self) -> int | None:
        """How many moments are known."""
        return len(self.values)

    def _moments(self, order: int) -> list[Exact]:
        return [1, *self.values[:order]]


def _check_hankel(moments: tuple[Exact, ...]) -> None:
    """Raise unless (m_{i+j}), scaled to unit diagonal, has no clearly negative eigenvalue."""
    known = (1, *moments[:CHECKED])
    rows = (len(known) + 1) // 2
    possible = not any(moments)
    if min(known[::2]) > 0:
        unit = [math.sqrt(m) for m in known[: 2 * rows : 2]]
        hankel = [[known[i + j] / unit[i] / unit[j] for j in range(rows)] for i in range(rows)]
        possible = bool(np.linalg.eigvalsh(hankel).min() > -TOLERANCE)
    if not possible:
        hint = "raw moments satisfy m2 >= m1**2 and so on: check that they are not central moments"
        raise TrueupError(f"no distribution has the moments {list(moments)!r}", hint)
