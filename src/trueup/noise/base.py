"""What every noise knows: its law, its moments, its generating function."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import mpmath
import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.exact import Exact, number, symbolic
from trueup.noise.elementwise import Floats, evaluate, first, reals
from trueup.noise.series import Series, digits_of, symbol_of, working_digits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from trueup.domain import Interval
    from trueup.noise.operator import Operator

MAX_ORDER = 200
"""Moments of a higher order are refused: nothing in the library needs them."""

SMALLEST, LARGEST = 1e-150, 1e15
"""Parameters beyond are refused: products would leave the range of floats, draws 64 bits."""

ROUNDING = 1e-15
"""What a tail may miss by rounding, as a share of it."""

DIGITS = 20
"""Digits of M(c) − 1 that tilted moments keep: under narrow noise variances are of that size."""


@dataclasses.dataclass(frozen=True, repr=False)
class Noise:
    """The law of Z in a published x = q + Z.

    A family is a frozen value that states its formulas; ``repr`` evaluates back with the names of
    ``trueup`` in scope. Families on the integers have a ``pmf``, the others a ``pdf``. Those with a
    ``from_budget`` take a budget by name too: ``Laplace(epsilon=0.5, sensitivity=3)``.

    A symmetric family writes ``log_density`` and ``_upper`` on NumPy arrays, and ``generating``,
    M(t) in the operators of :mod:`~trueup.noise.series`; the rest follows, and may be written where
    it is faster: ``_upper_quantile``, ``_sample``. A family without M states ``_moments`` in its
    place, a skewed one ``_cdf`` and ``_quantile``.
    """

    lattice: ClassVar[bool] = False
    """Whether Z takes integer values only."""

    symmetric: ClassVar[bool] = True
    """Whether Z and −Z have the same law."""

    rational: ClassVar[bool] = False
    """Whether the moments are rational in the parameters, and E[Zʲ e^{cZ}] is kept symbolic."""

    generating: ClassVar[Callable[..., Any] | None] = None
    """M(t) as a function of t and the parameters, in the order of the fields."""

    known: ClassVar[bool] = False
    """Whether Z is always 0."""

    knows_few_moments: ClassVar[bool] = False
    """Whether moments above ``highest_moment`` may exist, though they are not known."""

    by_curvature: ClassVar[bool] = False
    """Whether the inverse is f − b²·f″: beyond a bound a polynomial of any degree can extend it."""

    many_points: ClassVar[str] = "weights"
    """How an inverse that reads f at many points is found, see ``inverse/on_integers.py``."""

    scale_name: ClassVar[str] = "scale"
    """The parameter that stretches the law, in families that have one."""

    # -- the law -----------------------------------------------------------------------------------

    def pdf(self, x: ArrayLike) -> Any:
        """Return the density at x (continuous families).

        Examples
        --------
        >>> from trueup.noise import Laplace
        >>> Laplace(2).pdf(0)
        0.25
        """
        if self.lattice:
            raise TrueupError(f"{self!r} has no density", "it lives on the integers: use pmf")
        return evaluate(self._density, x, "x")

    def pmf(self, k: ArrayLike) -> Any:
        """Return the mass at k (families on the integers), 0 where k is not an integer.

        Examples
        --------
        >>> from trueup.noise import DiscreteLaplace
        >>> DiscreteLaplace(2).pmf([0, 0.5])
        array([0.24491866, 0.        ])
        """
        if not self.lattice:
            raise TrueupError(f"{self!r} has no masses", "it is continuous: use pdf")
        return evaluate(self._mass, k, "k")

    def cdf(self, x: ArrayLike) -> Any:
        """Return P(Z ≤ x), to good relative accuracy far down the lower tail.

        Examples
        --------
        >>> from trueup.noise import Gaussian
        >>> Gaussian(1).cdf([-20, 0])
        array([2.75362412e-89, 5.00000000e-01])
        """
        return evaluate(self._cdf, x, "x")

    def quantile(self, p: ArrayLike) -> Any:
        """Return the smallest x with P(Z ≤ x) ≥ p; whole numbers on the integers.

        Examples
        --------
        >>> from trueup.noise import DiscreteLaplace, Laplace
        >>> DiscreteLaplace(2).quantile(0.975), Laplace(1).quantile(0.5)
        (6, 0.0)
        """
        probabilities = reals(p, "p")
        if ((probabilities < 0) | (probabilities > 1)).any():
            raise TrueupError(
                f"p must be between 0 and 1, got {p!r}", "give a probability, e.g. 0.975"
            )
        result = evaluate(self._quantile, p, "p")
        whole = self.lattice and isinstance(result, float) and math.isfinite(result)
        return int(result) if whole else result

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Any = None) -> Any:
        """Draw independent values, for simulation only: this is not a private release.

        Parameters
        ----------
        size
            How many, or a shape; None gives one number.
        rng
            A NumPy generator, a seed, or None for a fresh generator.

        Examples
        --------
        >>> from trueup.noise import DiscreteLaplace
        >>> DiscreteLaplace(2).sample(3, rng=1).dtype
        dtype('int64')
        """
        shape, generator = _shape(size), read_generator(rng)
        values = self._sample(shape, generator)
        values = values.astype(np.int64 if self.lattice else np.float64, copy=False)
        return values if size is not None else values.item()

    # -- moments -----------------------------------------------------------------------------------

    @property
    def variance(self) -> Exact:
        """Var Z, exact where the parameters are and the formula is rational."""
        return _whole(self.moment(2) - self.moment(1) ** 2)

    @property
    def highest_moment(self) -> int | None:
        """The largest order whose moment exists and is known, None if all do."""
        return None

    def moment(self, k: int) -> Exact:
        """Return E Zᵏ, exact where the parameters are and the formula is rational.

        Examples
        --------
        >>> from trueup.noise import Laplace
        >>> Laplace(Fraction(1, 2)).moment(4)
        Fraction(3, 2)
        """
        _check_order(k, "k")
        return self.moments(int(k))[-1]

    def moments(self, order: int) -> list[Exact]:
        """Return E Zᵏ for k = 0..order."""
        if order == 0:
            return [1]
        if self.highest_moment is not None and order > self.highest_moment:
            known = "known " if self.knows_few_moments else ""
            hint = f"use a polynomial of degree at most {self.highest_moment}, or lighter noise"
            raise TrueupError(f"{self!r} has no {known}moment of order {order}", hint)
        try:
            values = [1, *(_whole(value) for value in self._moments(order)[1:])]
        except OverflowError:
            values = [math.inf]
        if any(isinstance(value, float) and not math.isfinite(value) for value in values):
            hint = "use a lower order, or change the unit of the statistic"
            raise TrueupError(f"the moment of order {order} of {self!r} exceeds a float", hint)
        return values

    def _moments(self, order: int) -> list[Exact]:
        """Return E Zᵏ for k = 0..order: fractions where M is rational, else floats."""
        if self.rational:
            exact = self.series(0, order, Fraction).moments
            return exact if self._is_exact else [float(m) if m else 0 for m in exact]
        values = self._digits(sympy.S.Zero, order)
        return [0 if k % 2 and self.symmetric else float(m.real) for k, m in enumerate(values)]

    # -- the generating function -------------------------------------------------------------------

    @property
    def mgf_radius(self) -> float:
        """The largest r such that E e^{tZ} exists, and is known, for |Re t| < r."""
        return 0.0 if type(self).generating is None else math.inf

    def series(self, c: Any, order: int, number: Callable[[Any], Any], scale: Any = None) -> Series:
        """Return M(c + t) up to an order, with the parameters as numbers of one arithmetic.

        A scale, for instance a symbol, replaces the noise's own.
        """
        t = Series.variable(c, order)
        found: Series = t * 0 + self._generating(number, scale)(t)
        return found

    def _generating(self, number: Callable[[Any], Any], scale: Any = None) -> Callable[[Any], Any]:
        """Return M with the parameters as numbers of one arithmetic."""
        formula = type(self).generating
        if formula is None:
            self._refuse("the generating function")
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        known = {name: None if p is None else number(p) for name, p in given.items()}
        if scale is not None:
            known[self.scale_name] = scale
        return lambda t: formula(t, *known.values())

    def tilted(self, c: Any, order: int) -> list[sympy.Expr]:
        """Return E[Zʲ e^{cZ}], j = 0..order, the derivatives of M at c: exact in closed forms.

        It exists for |Re c| < ``mgf_radius``, and for Re c = 0. Elsewhere they are numbers.

        Examples
        --------
        >>> from trueup.noise import Gaussian
        >>> Gaussian(2).tilted(sympy.Rational(1, 2), 2)
        [exp(1/2), 2*exp(1/2), 8*exp(1/2)]
        """
        c = sympy.sympify(c)
        _check_order(order, "order")
        if c.is_zero:
            return [symbolic(m) for m in self.moments(int(order))]
        long = c.atoms(sympy.Float, sympy.Function)  # series in log 2 become long
        if long or not (self.rational and self._is_exact):
            values = self._digits(c, order)
            narrow = 0 < abs(values[0] - 1) < 1
            lost = -2 * mpmath.log10(abs(values[0] - 1)) if narrow else 0
            return [symbol_of(value, DIGITS + int(lost)) for value in values]
        self._check_strip(c)
        return _plain(self.series(c, order, symbolic).moments, c)

    def _digits(self, c: sympy.Expr, order: int) -> list[Any]:
        """Return E[Zʲ e^{cZ}], j = 0..order, as mpmath numbers of more than 20 digits.

        Small c, small parameters and high orders cancel digits: M − 1 may be their square.
        """
        self._check_strip(c)
        sizes = [abs(complex(c)), *(getattr(self, f.name) for f in dataclasses.fields(self))]
        numbers = (p for p in sizes if isinstance(p, (int, float, Fraction)) and p)
        lost = math.ceil(4 * sum(abs(math.log10(p)) for p in numbers))
        with working_digits(60 + 2 * order + lost):
            start = digits_of(c)
            if self.lattice and not c.is_real:  # of period 2πi
                turns = mpmath.nint(start.imag / (2 * mpmath.pi))
                start = mpmath.mpc(start.real, start.imag - 2 * mpmath.pi * turns)
            return self.series(start, order, digits_of).moments

    def _check_strip(self, c: sympy.Expr) -> None:
        """Raise unless E[Zʲ e^{cZ}] exists for every j, and is known."""
        self._generating(float)
        real = float(sympy.re(c))
        side = "right" if real > 0 else "left"
        if real and abs(real) >= self.mgf_radius:
            rate = f"{real:g}" if c.is_real else f"({c})"
            raise TrueupError(
                f"e^{{{rate}q}} outgrows the noise on the {side}: under {self!r} the expectation "
                f"exists only for rates below {self.mgf_radius:g}",
                f"use a smaller rate, less noise, or bound the domain on the {side}",
            )

    @property
    def _is_exact(self) -> bool:
        """Whether all parameters were given exactly."""
        return not any(isinstance(getattr(self, f.name), float) for f in dataclasses.fields(self))

    def breaks(self, reach: float) -> list[float]:
        """Return where the density is not smooth, as far out as |z| ≤ reach."""
        return [0.0]

    # -- the inverse -------------------------------------------------------------------------------

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator | None:
        """Return the operator that undoes the noise on a domain, None if there is none.

        Families with one can make every smooth function (or every function at all) unbiased; the
        others go through their generating function.
        """
        return self.inverse_at(symbolic(self.unit), domain, extension)

    # -- another scale -----------------------------------------------------------------------------

    @property
    def unit(self) -> Exact:
        """The parameter that stretches the law, 0 in a family that has none."""
        found: Exact = getattr(self, self.scale_name, 0)
        return found

    def at_scale(self, scale: float) -> Noise:
        """Return the noise of the same family at another scale.

        Examples
        --------
        >>> from trueup.noise import Laplace
        >>> Laplace(1).at_scale(3.0)
        Laplace(3)
        """
        made: Noise = dataclasses.replace(self, **{self.scale_name: scale})
        return made

    def inverse_at(
        self, scale: sympy.Expr, domain: Interval, extension: object = "optimal"
    ) -> Operator | None:
        """Return the operator of this family at another scale, a number or a positive symbol."""
        return None

    # -- what a family states ----------------------------------------------------------------------

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density, or of the mass at integers."""
        self._refuse("the density")

    def _density(self, x: Floats) -> Floats:
        return np.exp(self.log_density(x))

    def _upper(self, x: Floats) -> Floats:
        """Return P(Z > x) for x ≥ 0."""
        self._refuse("the distribution function")

    def _upper_quantile(self, q: Floats) -> Floats:
        """Return the x with P(Z > x) = q ≤ ½, of a continuous law."""
        return first(lambda x: self._upper(x) < q * (1 + ROUNDING), np.zeros_like(q)) + 0 * q

    def _refuse(self, what: str) -> NoReturn:
        """Raise, because something is not known of this noise."""
        raise TrueupError(
            f"{what} of {self!r} is not known", "use a polynomial, or one of trueup's own families"
        )

    def _cdf(self, x: Floats) -> Floats:
        """Return P(Z ≤ x): of a symmetric law P(Z > −x) where x < 0, or P(Z > −k − 1)."""
        k = np.floor(x) if self.lattice else x
        tail = self._upper(np.where(k < 0, -k - self.lattice, k))
        return np.where(k < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(Z ≤ x) ≥ p."""
        lower = p < 0.5
        sign = np.where(lower, -1.0, 1.0)
        if not self.lattice:
            return sign * self._upper_quantile(np.minimum(p, 1 - p)) + 0.0

        def reached(x: Floats) -> NDArray[np.bool_]:
            """Tell whether x is beyond the quantile (p < ½), or there."""
            below = self._cdf(sign * x)
            return np.where(lower, below < p, (below >= p) & (p < 1))

        return sign * np.floor(first(reached, np.zeros_like(p))) + 0 * p

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        """Return an array of draws: quantiles of uniform ones."""
        return self._quantile(rng.integers(1, 2**53, shape) / 2**53)

    @property
    def _middle(self) -> int:
        """An integer near which the masses of a law on the integers are largest."""
        return 0

    def _mass(self, k: Floats) -> Floats:
        """Return the density at integers, 0 elsewhere, NaN at NaN."""
        return np.where((k == np.floor(k)) | np.isnan(k), self._density(k), 0.0)

    def __add__(self, other: object) -> Noise:
        """Return the noise of a sum of two independently noisy numbers."""
        from trueup.noise.sum import add

        return add(self, other) if isinstance(other, Noise) else NotImplemented

    # -- set-up ------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        """Bring the parameters, which are positive, into their exact form, or refuse them."""
        for field in dataclasses.fields(self):
            value = self._checked(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def _checked(self, name: str, value: Any) -> Any:
        """Return a parameter in its exact form, or refuse it."""
        return positive(value, name)

    def __repr__(self) -> str:
        values = (repr(getattr(self, f.name)) for f in dataclasses.fields(self))
        return f"{type(self).__name__}({', '.join(values)})"

    @staticmethod
    def from_scipy(frozen: Any) -> Noise:
        """Return the noise with the law of a frozen ``scipy.stats`` distribution.

        Examples
        --------
        >>> import scipy.stats
        >>> Noise.from_scipy(scipy.stats.norm(scale=2))
        ScipyNoise('norm', loc=0, scale=2)
        """
        from trueup.noise.scipy_noise import ScipyNoise

        return ScipyNoise.from_scipy(frozen)


def positive(value: object, name: str) -> Exact:
    """Return a positive parameter in its exact form, or refuse it by name.

    Examples
    --------
    >>> positive(2.0, "scale")
    2
    """
    exact = number(value, name, positive=True)
    if SMALLEST <= exact <= LARGEST:
        return exact
    size = "small" if exact < 1 else "large"
    raise TrueupError(f"{name} is too {size}, got {value!r}", f"change the unit of {name}")


def _plain(values: list[sympy.Expr], c: sympy.Expr) -> list[sympy.Expr]:
    """Return values at c, complex ones as a + b·i."""
    return values if c.is_real else [sympy.expand_complex(value) for value in values]


def _whole(value: Exact) -> Exact:
    """Return a whole fraction as an int."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _check_order(k: object, name: str) -> None:
    """Raise unless k is an order of a moment."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 0 <= k <= MAX_ORDER:
        hint = f"give {name} as an integer from 0 to {MAX_ORDER}"
        raise TrueupError(f"{name} must be the order of a moment, got {k!r}", hint)


def _shape(size: Any) -> tuple[int, ...]:
    """Return the shape that a size means, () for None."""
    shape = () if size is None else size if isinstance(size, (tuple, list)) else (size,)
    if all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in shape):
        return tuple(int(n) for n in shape)
    raise TrueupError(f"size must be a shape, got {size!r}", "give an integer or a tuple of them")


def read_generator(rng: Any) -> np.random.Generator:
    """Return the generator that an rng means."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        hint = "give a NumPy generator, a non-negative seed, or None"
        raise TrueupError(f"rng must be a generator or a seed, got {rng!r}", hint) from None
