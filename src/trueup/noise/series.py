"""Truncated power series, and functions that take numbers, arrays, symbols and series alike.

A family states M(t) = E e^{tZ} once, in these operators. Read at a number it is the generating
function, at an array i·t the characteristic function, and at the series c + t its coefficients are
E[Zʲ e^{cZ}]/j!: fractions, symbols or many digits, whichever the parameters and c are.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import scipy
import sympy

_precision = threading.RLock()


@contextlib.contextmanager
def working_digits(digits: int) -> Iterator[None]:
    """Work with so many digits in mpmath, whose precision is global: one thread at a time.

    Examples
    --------
    >>> with working_digits(30):
    ...     print(mpmath.mpf(1) / 3)
    0.333333333333333333333333333333
    """
    with _precision, mpmath.workdps(digits):
        yield


class Series:
    """The series Σ cₖ tᵏ, k = 0..n. The integer 0 is an absent coefficient.

    Examples
    --------
    >>> geometric = 1 / (1 - Series.variable(0, 3))
    >>> geometric.coefficients
    [Fraction(1, 1), Fraction(1, 1), Fraction(1, 1), Fraction(1, 1)]
    """

    __array_ufunc__ = None  # an array on the left leaves the arithmetic to the series

    def __init__(self, coefficients: Sequence[Any]) -> None:
        self.coefficients = list(coefficients)

    @classmethod
    def variable(cls, start: Any, order: int) -> Series:
        """Return start + t up to the order."""
        one = 1.0 if isinstance(start, np.ndarray) else 1
        return cls([start, one, *[0] * (order - 1)][: order + 1])

    @classmethod
    def of_moments(cls, moments: Sequence[Any]) -> Series:
        """Return Σ mₖ tᵏ/k!.

        Examples
        --------
        >>> Series.of_moments([1, 0, 2]).moments
        [Fraction(1, 1), 0, Fraction(2, 1)]
        """
        return cls([_quotient(m, math.factorial(k)) for k, m in enumerate(moments)])

    @property
    def moments(self) -> list[Any]:
        """The derivatives k!·cₖ at t = 0."""
        return [math.factorial(k) * c if k > 1 else c for k, c in enumerate(self.coefficients)]

    def _lift(self, x: Any) -> Series:
        return x if isinstance(x, Series) else Series([x, *[0] * (len(self.coefficients) - 1)])

    def __add__(self, other: Any) -> Series:
        pairs = zip(self.coefficients, self._lift(other).coefficients, strict=True)
        return Series([_tidy(a + b) for a, b in pairs])

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series([-a for a in self.coefficients])

    def __sub__(self, other: Any) -> Series:
        return self + -self._lift(other)

    def __rsub__(self, other: Any) -> Series:
        return self._lift(other) + -self

    def __mul__(self, other: Any) -> Series:
        if not isinstance(other, Series):
            return Series([_tidy(a * other) if _present(a) else 0 for a in self.coefficients])
        a, b = self.coefficients, other.coefficients
        return Series([_dot(a[: k + 1], b[k::-1]) for k in range(len(a))])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Series:
        a, b = self.coefficients, self._lift(other).coefficients
        found: list[Any] = []
        for k in range(len(a)):
            found.append(_tidy(_quotient(a[k] - _dot(found, b[k:0:-1]), b[0])))
        return Series(found)

    def __rtruediv__(self, other: Any) -> Series:
        return self._lift(other) / self

    def __pow__(self, power: int) -> Series:
        return math.prod([self] * power, start=self._lift(1))

    def composed(self, taylor: Sequence[Any]) -> Series:
        """Return Σ aₖ (self − c₀)ᵏ from the Taylor coefficients aₖ of a function at c₀."""
        rest = Series([0, *self.coefficients[1:]])
        total = self._lift(taylor[-1])
        for a in taylor[-2::-1]:
            total = total * rest + a
        return total


def exp(x: Any) -> Any:
    """Return eˣ; of a series e by e′ = x′·e.

    Examples
    --------
    >>> exp(Series.variable(0, 3)).coefficients
    [1, Fraction(1, 1), Fraction(1, 2), Fraction(1, 6)]
    """
    if not isinstance(x, Series):
        return _apply(x, np.exp, mpmath.exp, sympy.exp, 1)
    slopes = [k * a if _present(a) else 0 for k, a in enumerate(x.coefficients)]
    found = [exp(x.coefficients[0])]
    for k in range(1, len(slopes)):
        found.append(_tidy(_quotient(_dot(found, slopes[k:0:-1]), k)))
    return Series(found)


def expm1(x: Any) -> Any:
    """Return eˣ − 1, with all digits near 0.

    Examples
    --------
    >>> expm1(np.array([1e-20]))
    array([1.e-20])
    """
    if isinstance(x, Series):
        found = exp(x)
        found.coefficients[0] = expm1(x.coefficients[0])
        return found
    return _apply(x, np.expm1, mpmath.expm1, lambda s: sympy.exp(s) - 1, 0)


TERMS = 20
"""Terms of Σ xᵏ/(k+1)! for |x| < 1 in doubles: the next one is below 1e-19."""


def mean_exp(x: Any) -> Any:
    """Return (eˣ − 1)/x, the mean of e^{ux} over u in [0, 1], which is 1 at 0.

    Examples
    --------
    >>> mean_exp(np.array([0.0, 1.0])), mean_exp(Series.variable(0, 2)).coefficients
    (array([1.        , 1.71828183]), [Fraction(1, 1), Fraction(1, 2), Fraction(1, 6)])
    """
    if isinstance(x, np.ndarray):
        return _mean_exp(Series([x])).coefficients[0]
    start = x.coefficients[0] if isinstance(x, Series) else x
    if isinstance(start, np.ndarray):
        return _mean_exp(x)
    if start != 0:
        return expm1(x) / x
    if not isinstance(x, Series):
        return 1
    return x.composed([Fraction(1, math.factorial(k + 1)) for k in range(len(x.coefficients))])


def _mean_exp(x: Series) -> Series:
    """Return (eˣ − 1)/x of a series of arrays: by its power series where they are small."""
    start, *rest = x.coefficients
    small = np.abs(start) < 1
    near, far = (Series([np.where(small, a, b), *rest]) for a, b in ((start, 0), (1, start)))
    total = near * 0 + 1
    for k in range(TERMS, 0, -1):
        total = total * near * (1 / (k + 1)) + 1
    pairs = zip(total.coefficients, (expm1(far) / far).coefficients, strict=True)
    return Series([np.where(small, a, b) for a, b in pairs])


def ncdf(x: Any) -> Any:
    """Return the standard normal distribution function.

    Examples
    --------
    >>> ncdf(np.array([0.0]))
    array([0.5])
    """
    return _apply(x, scipy.special.ndtr, mpmath.ncdf, lambda s: (1 + sympy.erf(s)) / 2, 0.5)


def pi_of(x: Any) -> Any:
    """Return π in the arithmetic of x."""
    return _apply(x, lambda _: math.pi, lambda _: +mpmath.pi, lambda _: sympy.pi, math.pi)


def is_real(x: Any) -> bool:
    """Whether a number, or an array of doubles, is real."""
    return not (isinstance(x, mpmath.mpc) or np.iscomplexobj(x))


def significant(x: Any) -> float:
    """Return how many standard deviations hold zⁿ·e^{−z²/2} to all digits of x, n its order."""
    order = len(x.coefficients) - 1 if isinstance(x, Series) else 0
    start = x.coefficients[0] if isinstance(x, Series) else x
    digits = 17 if isinstance(start, np.ndarray) else mpmath.mp.dps
    return math.sqrt(2 * math.log(10) * digits) + 2 * math.sqrt(order)


def _apply(
    x: Any, doubles: Callable[..., Any], digits: Callable[..., Any], symbols: Any, at_zero: Any
) -> Any:
    """Return a function in the arithmetic of x."""
    if isinstance(x, sympy.Basic):
        return symbols(x)
    if isinstance(x, (np.ndarray, np.generic, float, complex)):
        return doubles(x)
    return at_zero if isinstance(x, (int, Fraction)) and x == 0 else digits(x)


def _present(a: Any) -> bool:
    return not (isinstance(a, int) and a == 0)


def _dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Return Σ aᵢbᵢ without the products of absent coefficients."""
    pairs = zip(left, right, strict=False)
    return _tidy(sum(a * b for a, b in pairs if _present(a) and _present(b)))


def _quotient(a: Any, b: Any) -> Any:
    """Return a/b, a fraction where both are integers."""
    if not _present(a):
        return 0
    return Fraction(a, b) if isinstance(a, int) and isinstance(b, int) else a / b


def _tidy(x: Any) -> Any:
    """Return a symbol multiplied out, any other number as it is."""
    return sympy.expand(x) if isinstance(x, sympy.Expr) else x


# -- numbers of sympy and of mpmath ----------------------------------------------------------------


def digits_of(value: Any) -> Any:
    """Return a parameter, or a number of sympy, in mpmath's working precision.

    Examples
    --------
    >>> with working_digits(30):
    ...     print(digits_of(Fraction(1, 3)))
    0.333333333333333333333333333333
    """
    if not isinstance(value, sympy.Expr):
        fraction = Fraction(value)
        return mpmath.mpf(fraction.numerator) / fraction.denominator
    parts = (part.evalf(mpmath.mp.dps + 5) for part in value.as_real_imag())
    real, imaginary = (mpmath.mpmathify(part) for part in parts)
    return mpmath.mpc(real, imaginary) if imaginary else real


def symbol_of(x: Any, digits: int = 20) -> sympy.Expr:
    """Return an mpmath number as a sympy number with ``digits`` digits.

    A part that is only rounding beside the other one, five digits below the last, is dropped.

    Examples
    --------
    >>> symbol_of(mpmath.mpc(0.5, 1e-40), digits=5)
    0.50000
    """
    real, imaginary = mpmath.re(x), mpmath.im(x)
    least = abs(mpmath.mpc(real, imaginary)) * mpmath.mpf(10) ** (-digits - 5)
    parts = [sympy.Float(p, digits) if abs(p) > least else sympy.S.Zero for p in (real, imaginary)]
    return parts[0] + sympy.I * parts[1]
