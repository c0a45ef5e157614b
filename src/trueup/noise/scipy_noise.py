"""Noise with the law of a frozen ``scipy.stats`` distribution: its cdf, and the moments it states.

scipy states up to four, by mean, variance, skewness and kurtosis. What it integrates numerically is
not used: it may be finite where the moment does not exist. On the integers moments are summed over
a table of masses.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.mass import NEGLIGIBLE, Table, support
from trueup.noise.series import Series, exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trueup.noise.elementwise import Floats

COMPLETE = 1e-9
"""The most that masses left out of a table may hold of a moment."""

HINT = "give a univariate distribution with numbers, frozen, e.g. scipy.stats.norm(scale=2)"


@dataclasses.dataclass(frozen=True, repr=False, init=False)
class ScipyNoise(Noise):
    """State a law by its name in ``scipy.stats``.

    Polynomials can be debiased, up to the moments that scipy states; on the integers every function
    on a bounded domain.

    Parameters
    ----------
    name
        The name of the distribution, e.g. ``"norm"``.
    *shapes
        Its shape parameters.
    loc, scale
        Where it sits and how wide it is; laws on the integers have no scale and an integer loc.

    Examples
    --------
    >>> ScipyNoise("logistic", scale=2).variance
    13.159...
    """

    name: str
    shapes: tuple[Exact, ...]
    loc: Exact
    scale: Exact

    symmetric: ClassVar[bool] = False  # or not known to be
    knows_few_moments: ClassVar[bool] = True

    def __init__(self, name: str, *shapes: Exact, loc: Exact = 0, scale: Exact = 1) -> None:
        values = {
            "name": name,
            "shapes": tuple(number(s, f"shape {i}") for i, s in enumerate(shapes, start=1)),
            "loc": number(loc, "loc"),
            "scale": positive(scale, "scale"),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        if np.isnan(self._law.support()).any():
            raise TrueupError(f"scipy refuses the parameters of {self!r}", HINT)
        if self.lattice and not isinstance(self.loc, int):
            raise TrueupError(
                f"loc must be an integer, got {self.loc!r}: {name} is a law on the integers",
                "give an integer loc, and subtract the rest from the statistic",
            )

    @staticmethod
    def from_scipy(frozen: Any) -> ScipyNoise:
        """Return the noise with the law of a frozen distribution."""
        from scipy.stats import distributions

        if not isinstance(frozen, distributions.rv_frozen):
            raise TrueupError(f"this is no frozen scipy.stats distribution: {frozen!r}", HINT)
        dist: Any = frozen.dist
        if type(_generic(dist.name)) is not type(dist):
            raise TrueupError(f"scipy.stats has no distribution {dist.name!r} of this kind", HINT)
        shapes, loc, scale = dist._parse_args(*frozen.args, **frozen.kwds)
        return ScipyNoise(dist.name, *shapes, loc=loc, scale=scale)

    def __repr__(self) -> str:
        shapes = "".join(f", {s!r}" for s in self.shapes)
        scale = "" if self.lattice else f", scale={self.scale!r}"
        return f"ScipyNoise({self.name!r}{shapes}, loc={self.loc!r}{scale})"

    def at_scale(self, scale: float) -> ScipyNoise:
        """Return the law at another scale, around the same ``loc``."""
        return ScipyNoise(self.name, *self.shapes, loc=self.loc, scale=scale)

    @property
    def lattice(self) -> bool:  # type: ignore[override]
        """Whether Z takes integer values only."""
        import scipy.stats

        return isinstance(_generic(self.name), scipy.stats.rv_discrete)

    @functools.cached_property
    def _law(self) -> Any:
        """The frozen distribution."""
        generic = _generic(self.name)
        shapes = [float(s) for s in self.shapes]
        scale = {} if self.lattice else {"scale": float(self.scale)}
        try:
            return generic(*shapes, loc=float(self.loc), **scale)
        except TypeError:
            message = f"{self.name!r} takes other shape parameters, got {self.shapes!r}"
            raise TrueupError(message, f"it takes {generic.shapes or 'none'}") from None

    # -- the law -----------------------------------------------------------------------------------

    def log_density(self, x: Floats) -> Floats:
        """Return scipy's logarithm of the density or mass."""
        return _quiet(self._law.logpmf if self.lattice else self._law.logpdf, x)

    def breaks(self, reach: float) -> list[float]:
        """Return the ends of the support, loc, and loc plus a shape, where peaks are."""
        places = [*self._law.support(), float(self.loc)]
        places += [float(self.loc) + float(s) * float(self.scale) for s in self.shapes]
        return sorted({float(x) for x in places if abs(x) <= reach})

    def _density(self, x: Floats) -> Floats:
        return _quiet(self._law.pmf if self.lattice else self._law.pdf, x)

    def _cdf(self, x: Floats) -> Floats:
        return self._table.cdf(x) if self.lattice else _quiet(self._law.cdf, x)

    def _quantile(self, p: Floats) -> Floats:
        return self._table.quantile(p) if self.lattice else _quiet(self._law.ppf, p)

    @property
    def _middle(self) -> int:
        with quiet():
            mean = float(self._law.stats(moments="m"))
        return round(mean) if math.isfinite(mean) else 0

    @functools.cached_property
    def _table(self) -> Table:
        """The masses of a law on the integers."""
        return Table(*support(self))

    @functools.cached_property
    def highest_moment(self) -> int | None:
        """How many of the first four moments scipy states."""
        import scipy.stats

        generic, default = _generic(self.name), scipy.stats.rv_continuous
        with quiet():
            stated = self._law.stats(moments="mvsk")
            if type(generic)._munp is default._munp:  # what is None would be integrated
                wanted = {"moments": "mvsk"} if generic._stats_has_moments else {}
                stated = generic._stats(*(np.float64(s) for s in self.shapes), **wanted)
        return [*(v is not None and bool(np.isfinite(v)) for v in stated), False].index(False)

    @property
    def variance(self) -> Exact:
        """Var Z."""
        return number(float(super().variance), "variance")

    def _moments(self, order: int) -> list[Exact]:
        """Return E Zᵏ in fractions, from moments about the middle: nothing cancels."""
        centre, about = self._of_table(order) if self.lattice else self._of_formulas
        shift = exp(Series.variable(0, order) * centre)
        moments: list[Exact] = (Series.of_moments(about[: order + 1]) * shift).moments
        return moments

    @functools.cached_property
    def _of_formulas(self) -> tuple[Fraction, list[Fraction]]:
        """The mean, and the moments about it from variance, skewness and kurtosis."""
        with quiet():
            mean, variance, skew, excess = (float(v) for v in self._law.stats(moments="mvsk"))
        about = (1.0, 0.0, variance, skew * variance**1.5, (excess + 3) * variance**2)
        known = about[: 1 + (self.highest_moment or 0)]
        return Fraction(mean), [Fraction(m) for m in known]

    def _of_table(self, order: int) -> tuple[Fraction, list[Fraction]]:
        """Return a middle, and the moments about it of the table of masses."""
        masses = self._table.masses
        k = self._table.first - self._middle + np.arange(float(len(masses)))
        rows = [masses * k**j for j in range(order + 1)]
        left_out = NEGLIGIBLE * len(k) * np.abs(k).max() ** order
        if left_out > COMPLETE * np.abs(rows[-1]).sum():
            raise TrueupError(
                f"the moment of order {order} of {self!r} is not known: too much is in its tails",
                "use a lower order, or a continuous law of the same shape",
            )
        about = [Fraction(1), *(Fraction(math.fsum(row)) for row in rows[1:])]
        return Fraction(self._middle), about


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ask scipy something without its warnings, also those that its libraries raise."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _quiet(function: Callable[[Floats], Any], x: Floats) -> Floats:
    """Return the function without scipy's warnings."""
    with quiet():
        return np.asarray(function(x), dtype=np.float64)


def _generic(name: str) -> Any:
    """Return the distribution of this name in ``scipy.stats``."""
    import scipy.stats

    generic = getattr(scipy.stats, name, None) if isinstance(name, str) else None
    if isinstance(generic, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        return generic
    raise TrueupError(f"scipy.stats has no distribution {name!r}", HINT)
