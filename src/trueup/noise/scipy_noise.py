"""Noise with the law of any frozen ``scipy.stats`` distribution."""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.expectation import MAX_TERMS, integrated, summed
from trueup.noise.tails import tail

if TYPE_CHECKING:
    from collections.abc import Callable

    import sympy

    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field

WIDE = 2.0**16
"""Discrete laws with a wider distance of quartiles are not summed: it would take millions of terms
each, while four moments have formulas."""

BROAD = 2.0**10
"""Beyond, moments of a discrete law are scipy's formulas: sums of so many masses lose digits."""

FAR = 1e3
"""A law as many quartile distances away from 0 loses six digits of Var Z in E Z² − (E Z)²."""

MOST = 2**24
"""So many masses are added up for a cdf at most, 128 megabytes."""

FAINT = 1e-290
"""Masses above are normal floats with all their digits."""

HINT = "freeze a univariate distribution with numbers, e.g. scipy.stats.norm(scale=2)"


@dataclasses.dataclass(frozen=True, repr=False, init=False)
class ScipyNoise(Noise):
    """State a law by its name in ``scipy.stats``.

    Moments are scipy's; E[Zʲ e^{cZ}] is integrated or summed numerically, in floats.

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
    exact_tilt = False

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

    def __repr__(self) -> str:
        shapes = "".join(f", {s!r}" for s in self.shapes)
        scale = "" if self._discrete else f", scale={self.scale!r}"
        return f"ScipyNoise({self.name!r}{shapes}, loc={self.loc!r}{scale})"

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

    # -- existence ---------------------------------------------------------------------------------

    @functools.cached_property
    def _tails(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The exponential rate and the power index of the left and of the right tail."""
        low, high = self._law.support()
        start, unit = self._centre
        left, right = (
            tail(self.log_density, start, side) if math.isinf(end) else (math.inf, math.inf)
            for side, end in ((-unit, low), (unit, high))
        )
        return left, right

    @functools.cached_property
    def _centre(self) -> tuple[float, float]:
        """The median and the distance of the quartiles, whole on the integers."""
        try:
            low, middle, high = (float(q) for q in self._quantile(np.array([0.25, 0.5, 0.75])))
        except TrueupError:  # too many masses to add up: mean and spread may have formulas
            mean, variance = (float(v) for v in self._law.stats(moments="mv"))
            if not (math.isfinite(mean) and math.isfinite(variance)):
                raise
            return mean, 1.35 * math.sqrt(variance)
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

    @property
    def highest_moment(self) -> int | None:
        """The largest order below the power index minus 1, measured."""
        index = min(index for _, index in self._tails)
        return None if math.isinf(index) else math.ceil(index - 1) - 1

    @property
    def variance(self) -> Exact:
        """Var Z, infinite where only the mean exists."""
        highest = self.highest_moment
        if highest is not None and highest < 1:
            raise TrueupError(
                f"{self!r} has no mean, hence no variance", "use noise with lighter tails"
            )
        return (
            number(float(self._law.var()), "variance")
            if highest is None or highest > 1
            else math.inf
        )

    # -- the law -----------------------------------------------------------------------------------

    def log_density(self, x: Floats) -> Floats:
        """Return scipy's logarithm of the density or mass.

        Where a mass has not underflowed its own logarithm keeps more digits: scipy's is a
        difference of logarithms of gamma functions.
        """
        law = self._law
        if not self._discrete:
            return _quiet(law.logpdf, x)
        mass = _quiet(law.pmf, x)
        with np.errstate(divide="ignore"):
            logarithm = np.array(np.log(mass))
        faint = ~(mass > FAINT)
        if faint.any():  # scipy's logarithm costs as much as the mass itself
            logarithm[faint] = _quiet(law.logpmf, np.asarray(x)[faint])
        return logarithm

    def breaks(self, reach: float) -> list[float]:
        """Return the ends of the support, loc, and loc plus a shape, where peaks are."""
        places = [*self._law.support(), float(self.loc)]
        places += [float(self.loc) + float(s) * float(self.scale) for s in self.shapes]
        return sorted({float(x) for x in places if abs(x) <= reach})

    def _density(self, x: Floats) -> Floats:
        if self._discrete != self.lattice:
            raise TrueupError(f"{self!r} has no density", "shift it by an integer and use pmf")
        law = self._law
        return _quiet(law.pmf if self._discrete else law.pdf, x)

    def _cdf(self, x: Floats) -> Floats:
        if not self._is_added_up:
            return _quiet(self._law.cdf, x)
        steps = np.floor(x) - self._law.support()[0]
        inside = np.isfinite(steps) & (steps >= 0)
        below = self._added_up(steps[inside].max(initial=0.0) + 1, 1.0)
        places = np.minimum(np.where(inside, steps, 0), len(below) - 1).astype(np.intp)
        found = np.where(inside, below[places], np.where(steps > 0, 1.0, 0.0))
        return np.where(np.isnan(x), np.nan, found)

    @property
    def _is_added_up(self) -> bool:
        """Whether scipy has no formula for P(Z ≤ k), and adds up all masses from the first to k."""
        import scipy.stats

        generic = type(_generic(self.name))._cdf is scipy.stats.rv_discrete._cdf
        return self._discrete and generic and math.isfinite(self._law.support()[0])

    def _added_up(self, count: float, level: float) -> Floats:
        """Return P(Z ≤ k) from the first k on: so many, or until it reaches a level."""
        low, high = (float(end) for end in self._law.support())
        size = 2**10
        while True:
            k = low + np.arange(min(size, high - low + 1))
            below = np.minimum(np.cumsum(_quiet(self._law.pmf, k)), 1.0)
            if len(k) < size or size >= count or below[-1] >= level:
                return below
            if size >= (MOST if math.isfinite(count) else MAX_TERMS):
                raise TrueupError(
                    f"{self!r} is too wide: its first {size} masses add up to {below[-1]:.3g} only",
                    "use a law with a formula for its cdf, or a continuous one",
                )
            size *= 4

    def _quantile(self, p: Floats) -> Floats:
        if self._is_added_up:
            proper = (p > 0) & (p < 1)
            below = self._added_up(math.inf, float(p[proper].max(initial=0.0)))
            low, high = self._law.support()
            places = np.minimum(np.searchsorted(below, p), len(below) - 1)
            ends = np.where(p >= 1, high, np.where(p <= 0, low, np.nan))
            return np.where(proper, low + places, ends)
        return np.asarray(np.maximum(_quiet(self._law.ppf, p), self._law.support()[0]))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(self._law.rvs(size=shape, random_state=rng))

    # -- moments -----------------------------------------------------------------------------------

    def _moment(self, k: int) -> Exact:
        if k <= 4 and self._is_far:
            return self._about_mean(k)
        approximate = self.mgf_radius > 0 if self._discrete else k > 4
        if approximate:  # in scipy, so do it better
            values = self._expectations(0j, k)
            if values is not None:
                return float(values[k].real)
        with np.errstate(all="ignore"):
            return float(self._law.moment(k))

    @functools.cached_property
    def _is_far(self) -> bool:
        """Whether the law is so broad, or so far from 0 that its moments drown there."""
        middle, unit = self._centre
        return (self._discrete and unit > BROAD) or abs(middle) > FAR * unit

    @functools.cached_property
    def _shape(self) -> tuple[Fraction, Fraction, float, float]:
        """Mean, variance, skewness and excess kurtosis, by scipy's formulas."""
        with np.errstate(all="ignore"):
            mean, variance, skew, kurtosis = (float(v) for v in self._law.stats(moments="mvsk"))
        if not (math.isfinite(mean) and math.isfinite(variance)):
            self._refuse_moment(2)
        return Fraction(mean), Fraction(variance), skew, kurtosis

    def _about_mean(self, k: int) -> Exact:
        """Return E Zᵏ, k ≤ 4, from the moments about the mean, in fractions: nothing cancels."""
        mean, variance, skew, kurtosis = self._shape
        central = [Fraction(1), Fraction(0), variance]
        if k > 2:
            central.append(Fraction(skew * float(variance) ** 1.5))
        if k > 3:
            central.append(Fraction((kurtosis + 3) * float(variance) ** 2))
        return sum(
            (math.comb(k, j) * central[j] * mean ** (k - j) for j in range(k + 1)), Fraction(0)
        )

    @functools.cached_property
    def _total(self) -> float:
        """What the masses of a discrete law sum to: 1, but for the rounding of large parameters.

        Where they fall like a power only, millions of them would not tell.
        """
        if math.isfinite(min(index for _, index in self._tails)):
            return 1.0
        low, high = (float(end) for end in self._law.support())
        total = summed(lambda z: self._density_at(z)[None], low, high, self._centre[0])
        return 1.0 if total is None else float(total[0])

    def _density_at(self, z: Floats) -> Floats:
        return np.exp(self.log_density(z))

    def _check_width(self) -> None:
        """Refuse to sum over more integers than can be summed."""
        if self._discrete and self._centre[1] > WIDE:
            raise TrueupError(
                f"{self!r} is too wide to sum over: half of it is spread over "
                f"{self._centre[1]:.2g} integers",
                "use a continuous law of the same shape, e.g. Gaussian(scale)",
            )

    def _working_digits(self, c: sympy.Expr, order: int) -> int:
        return 30

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        rate = complex(c)
        values = self._expectations(rate, order)
        if values is None:
            hint = "use one of trueup's own families, e.g. StudentT, if the law is one of them"
            raise TrueupError(f"E e^{{cZ}} of {self!r} at c = {rate:g} cannot be integrated", hint)
        return [mpmath.mpc(v) if rate.imag else mpmath.mpf(v.real) for v in values]

    def _expectations(self, rate: complex, order: int) -> list[complex] | None:
        """Return ∫ zʲ e^{rate·z} dP(z) for j = 0..order in floats, None if it does not settle."""
        self._check_width()
        start, unit = self._centre
        low, high = (float(end) for end in self._law.support())

        def integrand(z: Floats) -> Any:
            powers = (z / unit) ** np.arange(order + 1)[:, None]
            return powers * np.exp(rate * z + self.log_density(z))

        if self._discrete:
            values = summed(integrand, low, high, start)
            values = None if values is None else values / self._total
        else:
            values = integrated(integrand, low, high, start, unit)
        return None if values is None else [complex(v) * unit**j for j, v in enumerate(values)]


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
    with np.errstate(all="ignore"):
        return np.asarray(function(x), dtype=np.float64)
