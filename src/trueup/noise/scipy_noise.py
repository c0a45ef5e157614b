"""Noise with the law of any frozen ``scipy.stats`` distribution."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise, positive
from trueup.noise.expectation import integrated, summed
from trueup.noise.tails import tail

if TYPE_CHECKING:
    from collections.abc import Callable

    import sympy

    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field

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
        low, middle, high = (float(q) for q in self._law.ppf([0.25, 0.5, 0.75]))
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
        """Return scipy's logarithm of the density or mass."""
        law = self._law
        return _quiet(law.logpmf if self._discrete else law.logpdf, x)

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
        return _quiet(self._law.cdf, x)

    def _quantile(self, p: Floats) -> Floats:
        return np.asarray(np.maximum(_quiet(self._law.ppf, p), self._law.support()[0]))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return np.asarray(self._law.rvs(size=shape, random_state=rng))

    # -- moments -----------------------------------------------------------------------------------

    def _moment(self, k: int) -> Exact:
        approximate = self.mgf_radius > 0 if self._discrete else k > 4
        if approximate:  # in scipy, so do it better
            values = self._expectations(0j, k)
            if values is not None:
                return float(values[k].real)
        with np.errstate(all="ignore"):
            return float(self._law.moment(k))

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
        start, unit = self._centre
        low, high = (float(end) for end in self._law.support())

        def integrand(z: Floats) -> Any:
            powers = (z / unit) ** np.arange(order + 1)[:, None]
            return powers * np.exp(rate * z + self.log_density(z))

        if self._discrete:
            values = summed(integrand, low, high, start)
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
