"""Rows that were dropped by their published values: the values that are left tell.

Noise carries values beyond any cut, whatever the truths are. Let ρ(h) be the least of
P(Z ≤ z − h)/P(Z ≤ z) over all z that the noise can reach: e^{−h/b} for Laplace noise of scale b.
Then log P(X ≤ x) is no steeper than log ρ, so of the rows within h of the smallest value there are
j more with probability (1 − ρ(h))^j at most: −log P(X ≤ Xᵢ) are exponential variables, and so are
their gaps to the largest of them (Rényi). More rows than that were cut off there, or clamped.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.estimator import Estimator
from trueup.noise.laplace import DiscreteLaplace, Laplace
from trueup.tables.bounds import drawn_anew

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from trueup.noise.base import Noise
    from trueup.tables.request import Request

    Floats = NDArray[np.float64]

ODDS = 5e-5
"""How unlikely the rows at an end must be. A table has about ten ends, widths and columns."""

_WIDTHS = (0.25, 1.0)  # in standard deviations of the noise
_UNREACHED = 1e-5  # of all rows together: how likely one was carried beyond what is looked at
_DEPTHS = 16  # places at which the least ratio of tails is sought
_NEAR = 50  # integers from the end on whose counts tell how often a draw is repeated
_TYPICAL = 3  # rows at an integer, at least, where counts are compared with those beside it
_ENOUGH = 12  # integers, of which one is told that a draw stands there twice
_CHI = 0.455  # the median of a squared standard normal


def cut(
    x: Floats, noise: Noise, side: int, scale: Floats | None = None, rows: int | None = None
) -> float | None:
    """Return where the values end too sharply for their noise, None where they do not.

    ``side`` is −1 for the smallest values, 1 for the largest. Where noise scales differ from row to
    row the smallest is taken: its tails are the steepest. ``rows`` says how many there are, if
    these are only those near the end.

    Examples
    --------
    >>> from trueup.noise import DiscreteLaplace
    >>> rng, noise = np.random.default_rng(0), DiscreteLaplace(2)
    >>> x = np.floor(np.exp(rng.uniform(0, 4, 2000))) + noise.sample(2000, rng=rng)
    >>> cut(x, noise, -1), cut(x[x >= 3], noise, -1)
    (None, 3.0)
    """
    known = np.isfinite(x)
    x = x[known]
    if scale is not None:
        scale = scale[known]
        positive = scale[scale > 0]
        if not len(positive):
            return None
        noise = noise.at_scale(float(positive.min()))
    if len(x) < 2 or noise.known:
        return None
    distance = -side * (x - (x.min() if side < 0 else x.max()))
    try:
        sd = math.sqrt(float(noise.variance))
        for width in _WIDTHS:
            h = max(np.ceil(width * sd), 1.0) if noise.lattice else width * sd
            near = np.flatnonzero(distance < h)
            size = 10.0 ** math.ceil(math.log10(rows or len(x)))
            least = _least_ratio(noise, h, size, side)
            if len(near) * math.log1p(-least) > math.log(ODDS):  # too few, repeated or not
                continue
            more = len(drawn_anew(x, near, noise, scale)) - 1.0
            more /= _repeats(distance) if noise.lattice else 1.0
            if more * math.log1p(-least) < math.log(ODDS):
                return float(x.min() if side < 0 else x.max())
    except TrueupError:  # the law is not known, only its moments
        return None
    return None


def reach(noise: Noise) -> float:
    """Return how far from an end values matter."""
    return max(_WIDTHS) * math.sqrt(float(noise.variance)) + (_NEAR + 2) * noise.lattice


@lru_cache(maxsize=1024)
def _least_ratio(noise: Noise, h: float, rows: float, side: int) -> float:
    """Return the least P(Z ≤ z − h)/P(Z ≤ z), or that of the other tail, where rows can be."""
    chance = np.geomspace(0.5, _UNREACHED / rows, _DEPTHS)
    z = np.array([float(noise.quantile(p if side < 0 else 1 - p)) for p in chance])
    if side < 0:
        near, far = noise.cdf(z), noise.cdf(z - h)
    else:  # P(Z ≥ z)
        near, far = (1 - np.asarray(noise.cdf(at - noise.lattice)) for at in (z, z + h))
    ratios = np.asarray(far) / np.asarray(near)
    return float(np.clip(np.min(ratios), 0.0, 1.0))


def _repeats(distance: Floats) -> float:
    """Return how often a draw stands in the table.

    Rows that repeat a number, a state's in all its cells, say, are one draw: then counts of
    integers differ by more from those beside them than by chance. Twice as much may be chance.
    """
    counts = np.bincount(distance[distance < _NEAR + 2].astype(int), minlength=_NEAR + 2)
    middle = counts[1:-1]
    mean = (counts[:-2] + middle + counts[2:]) / 3
    compared = mean >= _TYPICAL
    if not compared.any():
        return math.inf
    bend = middle - (counts[:-2] + counts[2:]) / 2
    found = float(np.median(bend[compared] ** 2 / (1.5 * mean[compared]))) / _CHI
    return found if found > (2 if compared.sum() >= _ENOUGH else 5) else 1.0


@dataclasses.dataclass(frozen=True)
class Published:
    """A column of noisy values whose ends are looked at; ``scale`` names a column too.

    ``clamped`` says that values were moved to the ends before they were published, ``constant``
    that beyond its bounds estimates do not depend on the value.
    """

    statistic: str
    column: Any
    scale: Any
    noise: Noise
    domain: Interval
    clamped: bool = False
    constant: bool = False

    def doubt(
        self, side: int, x: Floats, scale: Floats | None = None, rows: int | None = None
    ) -> str | None:
        """Return what to warn of, None if the noise explains where the values end on a side.

        Where values are known to be clamped it is harmless beyond a bound where estimates are
        constant. Elsewhere nothing unbiased is left, which is refused.

        Examples
        --------
        >>> from trueup.noise import DiscreteLaplace
        >>> noise, bound = DiscreteLaplace(2), Interval(1, None)
        >>> column = Published("n", "emp", None, noise, bound, constant=True)
        >>> rng = np.random.default_rng(0)
        >>> x = np.floor(np.exp(rng.uniform(0, 4, 2000))) + column.noise.sample(2000, rng=rng)
        >>> column.doubt(-1, x)
        >>> print(column.doubt(-1, x[x >= 3]))
        the values of emp end at 3 as DiscreteLaplace(2) cannot: there must be more below it. ...
        >>> dataclasses.replace(column, clamped=True).doubt(-1, np.maximum(x, 0))
        """
        end = cut(x, self.noise, side, scale, rows)
        if end is None:
            return None
        less = "below" if side < 0 else "above"
        if not self.clamped:
            return (
                f"the values of {self.column} end at {end:.10g} as {self.noise!r} cannot: there "
                f"must be more {less} it. Either rows were dropped by their noisy value, and "
                "estimates and totals of the others are biased, or values were clamped there\n"
                "Hint: take all rows, and choose some by other columns only; for clamped values "
                "clamped=True"
            )
        bound = self.domain.bounds[(1 + side) // 2]
        if self.constant and bound is not None and side * (end - float(bound)) >= 0:
            return None
        raise TrueupError(
            f"values of {self.column} were clamped at {end:.10g}: only beyond bounds of "
            f"{self.statistic}, and under Laplace noise, are estimates the same as without",
            "use the values before clamping, or bounds if such are known, e.g. domain='n >= 1'",
        )


def published_in(requests: Iterable[Request], *, clamped: bool = False) -> list[Published]:
    """Return the columns of all statistics that are asked for, each once."""
    found: dict[Published, None] = {}
    for r in requests:
        est: Any = r.estimator
        plain = type(est) is Estimator and est.extension == "optimal" and not est.conditions
        for name, column in r.columns.items():
            law, scale, domain = est.noise[name], r.scales.get(name), est.domain[name]
            constant = plain and isinstance(law, (Laplace, DiscreteLaplace))
            found[Published(name, column, scale, law, domain, clamped, constant)] = None
    return list(found)
