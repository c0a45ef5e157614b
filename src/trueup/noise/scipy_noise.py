"""Noise with the law of any frozen ``scipy.stats`` distribution."""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import mpmath
import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.cumulants import cumulants
from trueup.noise.fields import Digits, working_digits
from trueup.noise.integration import MAX_TERMS
from trueup.noise.standard import Continuous, Discrete, Standard, log_density, log_mass, quiet
from trueup.noise.tails import tail

if TYPE_CHECKING:
    from collections.abc import Callable

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

AGREEMENT = 1e-9
"""A density that comes to 1 but for so much has been integrated."""

ROUNDED = 1e-11
"""Masses that add up to 1 but for more than this are less exact than scipy's formulas."""

SMALL = 18 * math.log(10)
"""Sums have settled where terms are e^{−SMALL} of them."""

TERMS = {"zipfian": 1}
"""The shape that says how many terms scipy adds up each time it is asked anything of a law."""

HINT = "give a univariate distribution with numbers, frozen, e.g. scipy.stats.norm(scale=2)"


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
        if name in TERMS and self.shapes[TERMS[name]] > MAX_TERMS:
            raise TrueupError(
                f"{self!r} takes too long: scipy adds up {float(self.shapes[TERMS[name]]):.3g} "
                "terms for each of its masses",
                f"use a law on at most {MAX_TERMS} integers, or zipf, which is not cut off",
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
        if highest is not None and highest < 2:
            return math.inf
        return number(self._variance, "variance")

    @property
    def _variance(self) -> float:
        """Var Z from sums about the median where they settle: scipy's formulas may cancel."""
        if self._discrete and self._can_be_summed(2) and not self._is_far:
            means = self._standard.about_start(2)
            if means is not None:
                return means[2] - means[1] ** 2
        if self._discrete:
            return float(self._shape[1])
        with quiet():
            return float(self._law.var())

    # -- the law -----------------------------------------------------------------------------------

    def log_density(self, x: Floats) -> Floats:
        """Return scipy's logarithm of the density or mass."""
        return (log_mass if self._discrete else log_density)(self._law, x)

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
            below = _quiet(self._law.cdf, x)
            if (np.isnan(below) & ~np.isnan(x)).any():
                raise TrueupError(
                    f"scipy finds no P(Z <= x) of {self!r}", "use parameters of ordinary size"
                )
            return below
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
        found = np.asarray(np.maximum(_quiet(self._law.ppf, p), self._law.support()[0]))
        if self._discrete:  # scipy looks for it from a guess on, and may give up
            short = (p < 1) & (self._cdf(found) < p * (1 - AGREEMENT))
            found[short] = [self._searched(*at) for at in zip(found[short], p[short], strict=True)]
        return found

    def _searched(self, low: float, p: float) -> float:
        """Return the smallest integer with P(Z ≤ k) ≥ p, above one at which it is less."""

        def falls_short(k: float) -> bool:
            return float(self._cdf(np.array(k))) < p

        step = 1.0
        while falls_short(low + step):
            low, step = low + step, 2 * step
        high = low + step
        while low < (middle := math.floor((low + high) / 2)) < high:
            low, high = (middle, high) if falls_short(middle) else (low, middle)
        return high

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(self._law.rvs(size=shape, random_state=rng))

    # -- moments -----------------------------------------------------------------------------------

    def _moment(self, k: int) -> Exact:
        if k <= 4 and self._is_far:
            return self._about_mean(k)
        approximate = self._can_be_summed(k) if self._discrete else k > 4
        if approximate:  # in scipy, so do it better
            with working_digits(self._working_digits(sympy.S.Zero, k)):
                values = self._expectations(mpmath.mpf(0), k)
            if values is not None:
                return float(values[k].real)
        if self._discrete and not self._has_formula(k):
            raise TrueupError(
                f"the moment of order {k} of {self!r} is not known: the sum over its tails does "
                "not settle, and scipy has no formula for it",
                "use a lower order, or a continuous law of the same shape",
            )
        with quiet():
            return float(self._law.moment(k))

    def _has_formula(self, k: int) -> bool:
        """Whether scipy states the moment of order k of a discrete law, and need not add it up."""
        import scipy.stats

        generic = _generic(self.name)
        if type(generic)._munp is not scipy.stats.rv_discrete._munp:
            return True
        wanted = {"moments": "mvsk"} if generic._stats_has_moments else {}
        with quiet():
            stated = generic._stats(*(np.float64(s) for s in self.shapes), **wanted)
        return k <= 4 and all(value is not None for value in stated[:k])

    def _can_be_summed(self, order: int) -> bool:
        """Whether the sum of a moment of a discrete law can settle: its tails may carry it all."""
        return self._terms(order) <= MAX_TERMS

    def _terms(self, order: int) -> float:
        """Return how many integers on a side hold a moment of the order, but for e^{−SMALL}."""
        return max(
            SMALL / rate if rate else math.exp(min(SMALL / max(index - 1 - order, 0.1), 700))
            for rate, index in self._tails
        )

    @functools.cached_property
    def _is_far(self) -> bool:
        """Whether the law is so broad, so far from 0 or so rounded that its moments drown."""
        middle, unit = self._centre
        if (self._discrete and unit > BROAD) or abs(middle) > FAR * unit:
            return True
        if not (self._discrete and self._can_be_summed(1) and self._has_formula(4)):
            return False
        first = self._standard.first
        return first is not None and any(abs(mass - 1) > ROUNDED for mass in first[:1])

    @functools.cached_property
    def _shape(self) -> tuple[Fraction, Fraction, float, float]:
        """Mean, variance, skewness and excess kurtosis, by formulas."""
        own = cumulants(self.name, self.shapes)
        if own is not None:
            mean, variance = float(own[0]) + float(self.loc), float(own[1])
            skew, kurtosis = float(own[2] / own[1] ** 1.5), float(own[3] / own[1] ** 2)
        else:
            with quiet():
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

    def _check_width(self) -> None:
        """Refuse to sum over more integers than can be summed."""
        if self._discrete and self._centre[1] > WIDE:
            raise TrueupError(
                f"{self!r} is too wide to sum over: half of it is spread over "
                f"{self._centre[1]:.2g} integers",
                "use a continuous law of the same shape, e.g. Gaussian(scale)",
            )
        if self._discrete and self.mgf_radius and not self._can_be_summed(0):
            raise TrueupError(
                f"{self!r} is too wide to sum over: its tails reach over "
                f"{self._terms(0):.2g} integers",
                "use a polynomial of degree at most 4, or a continuous law of the same shape",
            )

    def _working_digits(self, c: sympy.Expr, order: int) -> int:
        """Return digits that hold what M(c), about the median, differs from 1 by, squared."""
        start, unit = self._centre
        if self._discrete:  # hardly anything but the median may ever come
            unit = min(1.0, float(self._law.pmf([start - 1, start + 1]).sum()))
        lost = 4 * math.log10(abs(complex(c)) * unit or 1.0)
        return 40 + math.ceil(abs(lost) + order * math.log10(abs(float(self.loc)) + 1))

    @property
    def _middle(self) -> Any:
        field = Digits()
        return field.number(self.loc) + field.number(self.scale) * self._standard.start

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        values = self._expectations(c, order)
        if values is None:
            self._refuse_integral(f"E e^{{cZ}} at c = {complex(c):g} does not settle")
        return values if mpmath.im(c) else [mpmath.re(v) for v in values]

    def _expectations(self, c: Any, order: int) -> list[Any] | None:
        """Return E[Zʲ e^{cZ}], j = 0..order, of Z = middle + scale·Y; None if it does not settle.

        What is averaged in doubles is Yʲ e^{tY} without the terms whose means are known.
        """
        standard, scale = self._standard, Digits().number(self.scale)
        if standard.first is None:
            return None
        t, first = c * scale, standard.first
        total = first[0] if self._discrete and first else 1.0  # rounding of large parameters
        means = standard.tilted(complex(t), order)
        if means is None:
            return None
        moments = [mpmath.mpf(1), *(mpmath.mpf(v / total) for v in first[1:])][: len(first)]
        own = [
            mpmath.mpc(v / total) + sum(t**k * m for k, m in enumerate(moments[j:]))
            for j, v in enumerate(means)
        ]
        growth, shift = mpmath.exp(c * self._middle), self._middle
        return [
            growth
            * sum(math.comb(j, k) * shift ** (j - k) * scale**k * own[k] for k in range(j + 1))
            for j in range(order + 1)
        ]

    @functools.cached_property
    def _standard(self) -> Standard:
        """The law at loc 0 and scale 1, if what is integrated there gives back its mass."""
        self._check_width()
        origin = ScipyNoise(self.name, *self.shapes)
        highest = self.highest_moment
        if self._discrete:
            known = 2 if self.mgf_radius else 0  # elsewhere sums over the tails do not settle
            return Discrete(origin._law, *origin._centre, known)
        known = 2 if highest is None or highest else 1
        standard = Continuous(origin._law, *origin._centre, known)
        if standard.first is None:
            self._refuse_integral("its density does not settle")
        if abs(standard.first[0] - 1) > AGREEMENT:
            self._refuse_integral(f"its density comes to {standard.first[0]:.9g}, not to 1")
        return standard

    def _refuse_integral(self, reason: str) -> NoReturn:
        raise TrueupError(
            f"{self!r} cannot be integrated: {reason}",
            "use one of trueup's own families, e.g. StudentT, if the law is one of them",
        )


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
    with quiet():
        return np.asarray(function(x), dtype=np.float64)
