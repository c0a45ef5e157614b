"""Noise with the law of any frozen ``scipy.stats`` distribution: its cdf and the moments it states.

scipy's distributions do not say which moments exist or where E e^{tZ} converges. Their log-density
at distances that double shows it: the slope tends to the exponential rate (infinite for lighter
tails, 0 for heavier ones), the fall per doubling to the power index.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.elementwise import smallest_integer
from trueup.noise.mass import support
from trueup.noise.series import Series, exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import sympy

    from trueup.noise.elementwise import Floats, Formula

FAR = 1e3
"""A law as many quartile distances away from 0 loses six digits of Var Z in E Z² − (E Z)²."""

FORMULAS = 4
"""Mean, variance, skewness and kurtosis have formulas."""

COMPLETE = 1e-9
"""Masses that miss the sum 1 by more are rounded; a moment needs a last mass with less of it."""

TERMS = {"zipfian": 1}
"""The shape that says how many terms scipy adds up each time it is asked anything of a law."""

MOST_TERMS = 2**16

DOUBLINGS = 60
AGREEMENT = 1e-3
"""Two extrapolated slopes closer than this are a limit."""

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
        Where it sits and how wide it is; laws on the integers have no scale.

    Examples
    --------
    >>> ScipyNoise("logistic", scale=2).variance
    13.159...
    """

    name: str
    shapes: tuple[Exact, ...]
    loc: Exact
    scale: Exact

    symmetric = False  # or not known to be

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
        if self._discrete and self._terms > MOST_TERMS:
            raise TrueupError(
                f"{self!r} takes too long: scipy adds up {self._terms:.3g} terms to answer",
                f"use a law on at most {MOST_TERMS} integers, or one whose P(Z <= k) is a formula",
            )

    def __repr__(self) -> str:
        shapes = "".join(f", {s!r}" for s in self.shapes)
        scale = "" if self._discrete else f", scale={self.scale!r}"
        return f"ScipyNoise({self.name!r}{shapes}, loc={self.loc!r}{scale})"

    def at_scale(self, scale: float) -> ScipyNoise:
        """Return the law at another scale, around the same ``loc``.

        Examples
        --------
        >>> ScipyNoise("t", 5, loc=1).at_scale(3)
        ScipyNoise('t', 5, loc=1, scale=3)
        """
        return ScipyNoise(self.name, *self.shapes, loc=self.loc, scale=scale)

    @property
    def lattice(self) -> bool:  # type: ignore[override]
        """Whether Z takes integer values only: a discrete law at an integer."""
        return self._discrete and isinstance(self.loc, int)

    @functools.cached_property
    def _law(self) -> Any:
        """The frozen distribution."""
        generic = _generic(self.name)
        shapes = [float(s) for s in self.shapes]
        scale = {} if _is_discrete(generic) else {"scale": float(self.scale)}
        try:
            return generic(*shapes, loc=float(self.loc), **scale)
        except TypeError:
            message = f"{self.name!r} takes other shape parameters, got {self.shapes!r}"
            raise TrueupError(message, f"it takes {generic.shapes or 'none'}") from None

    @property
    def _discrete(self) -> bool:
        return _is_discrete(_generic(self.name))

    @property
    def _terms(self) -> float:
        """How many terms scipy adds up for P(Z ≤ k), or for a mass, of a discrete law."""
        import scipy.stats

        generic = _generic(self.name)
        low, high = self._law.support()
        summed = type(generic)._cdf is scipy.stats.rv_discrete._cdf
        shape = TERMS.get(self.name)
        return max(high - low if summed else 0.0, float(self.shapes[shape]) if shape else 0.0)

    # -- the law -----------------------------------------------------------------------------------

    def log_density(self, x: Floats) -> Floats:
        """Return scipy's logarithm of the density or mass."""
        return _quiet(self._law.logpmf if self._discrete else self._law.logpdf, x)

    def breaks(self, reach: float) -> list[float]:
        """Return the ends of the support, loc, and loc plus a shape, where peaks are."""
        places = [*self._law.support(), float(self.loc)]
        places += [float(self.loc) + float(s) * float(self.scale) for s in self.shapes]
        return sorted({float(x) for x in places if abs(x) <= reach})

    def _density(self, x: Floats) -> Floats:
        if self._discrete != self.lattice:
            raise TrueupError(f"{self!r} has no density", "shift it by an integer and use pmf")
        return _quiet(self._law.pmf if self._discrete else self._law.pdf, x)

    def _cdf(self, x: Floats) -> Floats:
        below = _quiet(self._law.cdf, x)
        if (np.isnan(below) & ~np.isnan(x)).any():
            raise TrueupError(
                f"scipy finds no P(Z <= x) of {self!r}", "use parameters of ordinary size"
            )
        return below

    def _quantile(self, p: Floats) -> Floats:
        low, high = self._law.support()
        found = _quiet(self._law.ppf, p)
        if self.lattice:  # scipy looks for it from a guess on, and may give up
            start = np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)
            found = smallest_integer(self._cdf, p, start)
        return np.asarray(np.clip(found, low, high))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(self._law.rvs(size=shape, random_state=rng))

    # -- which moments exist -----------------------------------------------------------------------

    @functools.cached_property
    def _tails(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The exponential rate and the power index of the left and of the right tail."""
        low, high = self._law.support()
        middle, unit = self._centre
        left, right = (
            tail(self.log_density, middle, side) if math.isinf(end) else (math.inf, math.inf)
            for side, end in ((-unit, low), (unit, high))
        )
        return left, right

    @functools.cached_property
    def _centre(self) -> tuple[float, float]:
        """The median and the distance of the quartiles, at least 1 on the integers."""
        low, middle, high = (float(q) for q in self._quantile(np.array([0.25, 0.5, 0.75])))
        return middle, max(high - low, 1.0) if self._discrete else high - low

    @property
    def mgf_radius(self) -> float:
        """The exponential rate of the heavier tail, measured."""
        return min(self.tail_rates)

    @property
    def tail_rates(self) -> tuple[float, float]:
        """The exponential rates of the tails, measured; ∞ where the law ends."""
        (left, _), (right, _) = self._tails
        return left, right

    @functools.cached_property
    def highest_moment(self) -> int | None:
        """The largest order below the power index minus 1, measured, that scipy states."""
        index = min(index for _, index in self._tails)
        exist = math.inf if math.isinf(index) else math.ceil(index - 1) - 1
        highest = min(exist, math.inf if self._discrete else self._stated)
        return None if math.isinf(highest) else int(highest)

    @property
    def _stated(self) -> float:
        """Up to which order scipy has formulas for the moments of a continuous law."""
        import scipy.stats

        generic = _generic(self.name)
        if type(generic)._munp is not scipy.stats.rv_continuous._munp:
            return math.inf
        wanted = {"moments": "mvsk"} if generic._stats_has_moments else {}
        with quiet():
            stated = generic._stats(*(np.float64(s) for s in self.shapes), **wanted)
        found = [value is not None and bool(np.isfinite(value)) for value in stated]
        return [*found, False].index(False)

    def _refuse_moment(self, k: int) -> None:
        index = min(index for _, index in self._tails)
        if k < index - 1:
            raise TrueupError(
                f"scipy states no moment of order {k} of {self!r}",
                "use one of trueup's own families, or a polynomial of a lower degree",
            )
        super()._refuse_moment(k)

    def _check_strip(self, c: sympy.Expr, order: int) -> None:
        super()._check_strip(c, order)
        self._generating(float)  # which is not known

    # -- moments -----------------------------------------------------------------------------------

    @property
    def variance(self) -> Exact:
        """Var Z, infinite where only the mean exists."""
        index = min(index for _, index in self._tails)
        if index <= 2:
            raise TrueupError(
                f"{self!r} has no mean, hence no variance", "use noise with lighter tails"
            )
        return math.inf if index <= 3 else number(float(super().variance), "variance")

    def _moments(self, order: int) -> list[Exact]:
        """Return E Zᵏ in fractions, from moments about the middle: nothing cancels."""
        if self._discrete:
            centre, about = self._of_table(order)
        elif order <= FORMULAS and self._has_shape:
            centre, about = self._of_shape
        else:
            centre, about = self._of_formulas(order)
        shift = exp(Series.variable(0, order) * centre)
        moments: list[Exact] = (Series.of_moments(about[: order + 1]) * shift).moments
        return moments

    @property
    def _has_shape(self) -> bool:
        import scipy.stats

        return type(_generic(self.name))._stats is not scipy.stats.rv_continuous._stats

    @functools.cached_property
    def _of_shape(self) -> tuple[Fraction, list[Fraction]]:
        """The mean, and the moments about it from variance, skewness and kurtosis."""
        with quiet():
            mean, variance, skew, excess = (float(v) for v in self._law.stats(moments="mvsk"))
        third = skew * variance**1.5 if math.isfinite(skew) else 0.0  # an order that is not asked
        fourth = (excess + 3) * variance**2 if math.isfinite(excess) else 0.0
        known = (1.0, 0.0, variance if math.isfinite(variance) else 0.0, third, fourth)
        return Fraction(mean), [Fraction(m) for m in known]

    def _of_formulas(self, order: int) -> tuple[Fraction, list[Fraction]]:
        """Return the loc, and scipy's moments about it."""
        plain = ScipyNoise(self.name, *self.shapes)
        middle, unit = plain._centre
        if abs(middle) > FAR * unit:
            raise TrueupError(
                f"the moment of order {order} of {self!r} is rounding: the law is "
                f"{abs(middle / unit):.3g} times its width away from 0",
                "use a polynomial of degree at most 4, or one of trueup's own families",
            )
        with quiet():
            values = [float(plain._law.moment(k)) if k else 1.0 for k in range(order + 1)]
        if not np.isfinite(values).all():
            super()._refuse_moment(order)
        scale = Fraction(self.scale)
        return Fraction(self.loc), [Fraction(v) * scale**k for k, v in enumerate(values)]

    def _of_table(self, order: int) -> tuple[Fraction, list[Fraction]]:
        """Return the median, and the moments about it of a table of the masses."""
        origin = ScipyNoise(self.name, *self.shapes)
        first, masses = support(origin)
        middle = math.floor(origin._centre[0])
        k = first - middle + np.arange(float(len(masses)))
        rows = [masses * k**j for j in range(order + 1)]
        sums = [math.fsum(row) for row in rows]
        low, high = origin._law.support()
        cut = [low < first, first + len(masses) - 1 < high]
        lost = max(abs(rows[-1][[0, -1]][cut]), default=0.0)
        if abs(sums[0] - 1) > COMPLETE or lost > COMPLETE * np.abs(rows[-1]).sum():
            raise TrueupError(
                f"the moment of order {order} of {self!r} is not known: its masses are rounded, or "
                "its tails hold too much of it",
                "use a lower order, or a continuous law of the same shape",
            )
        return Fraction(self.loc) + middle, [Fraction(s / sums[0]) for s in sums]


def tail(log_density: Formula, start: float, unit: float) -> tuple[float, float]:
    """Return the exponential rate and the power index of one tail; ``unit`` < 0 is the left one.

    The density falls like e^{−rate·|x|}, or like |x|^{−index} if the rate is 0.

    Examples
    --------
    >>> tail(lambda x: -3 * x, 0.0, 1.0), tail(lambda x: -2 * np.log1p(x), 0.0, 1.0)
    ((3.0, inf), (0.0, 2.0))
    """
    distance = abs(unit) * np.exp2(np.arange(2.0, DOUBLINGS))
    with quiet():
        height = log_density(np.asarray(start + math.copysign(1.0, unit) * distance))
    seen = int(np.argmin(np.append(np.isfinite(height), False)))
    if seen < 4 or not unit:  # it falls too fast to be seen, or doubles do not hold its width
        return math.inf, math.inf
    fall = -np.diff(height[:seen])
    rate = _limit(fall / np.diff(distance[:seen]))
    return (rate, math.inf) if rate else (0.0, _index(fall / math.log(2)))


def _limit(slopes: Floats) -> float:
    """Return the limit of slopes with an error that halves at each step: 0, finite or ∞."""
    first, second, third = (float(s) for s in slopes[-3:])
    before, after = 2 * second - first, 2 * third - second
    if after > 0 and abs(after - before) <= AGREEMENT * after:
        return round(after, 12 - math.ceil(math.log10(after)))
    return math.inf if third > second else 0.0


def _index(falls: Floats) -> float:
    """Return the limit of the falls per doubling, ∞ if they keep growing."""
    before, after = (float(f) for f in falls[-2:])
    return round(after, 6) if abs(after - before) < 1e-6 else math.inf


def from_scipy(frozen: Any) -> ScipyNoise:
    """Return the noise with the law of a frozen distribution.

    Examples
    --------
    >>> import scipy.stats
    >>> from_scipy(scipy.stats.poisson(3, loc=-3))
    ScipyNoise('poisson', 3, loc=-3)
    """
    from scipy.stats import distributions

    if not isinstance(frozen, distributions.rv_frozen):
        raise TrueupError(f"this is no frozen scipy.stats distribution: {frozen!r}", HINT)
    dist: Any = frozen.dist
    if type(_generic(dist.name)) is not type(dist):
        raise TrueupError(f"scipy.stats has no distribution {dist.name!r} of this kind", HINT)
    shapes, loc, scale = dist._parse_args(*frozen.args, **frozen.kwds)
    return ScipyNoise(dist.name, *shapes, loc=loc, scale=scale)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ask scipy something without its warnings, also those that its libraries raise."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _generic(name: str) -> Any:
    """Return the distribution of this name in ``scipy.stats``."""
    import scipy.stats

    generic = getattr(scipy.stats, name, None) if isinstance(name, str) else None
    if isinstance(generic, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        return generic
    raise TrueupError(f"scipy.stats has no distribution {name!r}", HINT)


def _is_discrete(generic: Any) -> bool:
    import scipy.stats

    return isinstance(generic, scipy.stats.rv_discrete)


def _quiet(function: Callable[[Floats], Any], x: Floats) -> Floats:
    """Return the function without scipy's floating-point warnings."""
    with quiet():
        return np.asarray(function(x), dtype=np.float64)
