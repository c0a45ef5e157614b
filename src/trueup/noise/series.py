"""Truncated power series, and functions that take numbers, arrays, symbols and series alike.

A family states M(t) = E e^{tZ} once, in these operators. Read at a number it is the generating
function, at an array i·t the characteristic function, and at the series c + t its coefficients are
E[Zʲ e^{cZ}]/j!: fractions, symbols or many digits, whichever the parameters and c are.
"""

from __future__ import annotations

import contextlib
import functools
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


def mean_exp(x: Any) -> Any:
    """Return (eˣ − 1)/x, the mean of e^{ux} over u in [0, 1], which is 1 at 0.

    Its Taylor coefficients at x are 1F1(k+1; k+2; x)/(k+1)!, in which nothing cancels.

    Examples
    --------
    >>> mean_exp(np.array([0.0, 1.0])), mean_exp(Series.variable(0, 2)).coefficients
    (array([1.        , 1.71828183]), [Fraction(1, 1), Fraction(1, 2), Fraction(1, 6)])
    """
    start, order = (x.coefficients[0], len(x.coefficients)) if isinstance(x, Series) else (x, 1)
    if isinstance(start, sympy.Expr):
        return expm1(x) / x

    def doubles(k: int, z: Any) -> Any:
        """Return 1F1(k; k+1; z), at k = 1 for complex z too."""
        if k > 1:
            return scipy.special.hyp1f1(k, k + 1, z)
        return np.where(z == 0, 1.0, np.expm1(z) / np.where(z == 0, 1.0, z))

    taylor = []
    for k in range(1, order + 1):
        own, digits = functools.partial(doubles, k), functools.partial(mpmath.hyp1f1, k, k + 1)
        taylor.append(_apply(start, own, digits, None, Fraction(1)) / math.factorial(k))
    if not isinstance(x, Series):
        return taylor[0]
    rest, total = Series([0, *x.coefficients[1:]]), x * 0
    for a in reversed(taylor):
        total = total * rest + a
    return total


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
