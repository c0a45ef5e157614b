"""Two number systems in which a formula can be read: exact symbols, and many digits.

A family states E[Zʲ e^{cZ}] once, in terms of a field; read with :class:`Symbols` it is an exact
sympy number, read with :class:`Digits` an mpmath number with as many digits as are asked for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol

import mpmath
import sympy

from trueup.exact import Exact

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


class Field(Protocol):
    """Numbers that know their exponential, and how to take in a parameter."""

    def exp(self, x: Any) -> Any:
        """Return eˣ."""

    def number(self, value: Exact) -> Any:
        """Return the parameter as a number of this field, without rounding it."""

    def tidy(self, x: Any) -> Any:
        """Return the same number, written shorter where that helps."""


class Symbols:
    """Exact sympy numbers.

    Examples
    --------
    >>> Symbols().exp(Symbols().number(Fraction(1, 2)))
    exp(1/2)
    """

    def exp(self, x: sympy.Expr) -> sympy.Expr:
        """Return eˣ."""
        return sympy.exp(x)

    def number(self, value: Exact) -> sympy.Expr:
        """Return the parameter as a sympy rational."""
        fraction = Fraction(value)
        return sympy.Rational(fraction.numerator, fraction.denominator)

    def tidy(self, x: sympy.Expr) -> sympy.Expr:
        """Return the number multiplied out."""
        return sympy.expand(x)


class Digits:
    """Numbers of mpmath, in its current working precision.

    Examples
    --------
    >>> with working_digits(30):
    ...     print(Digits().number(Fraction(1, 3)))
    0.333333333333333333333333333333
    """

    def exp(self, x: Any) -> Any:
        """Return eˣ."""
        return mpmath.exp(x)

    def number(self, value: Exact) -> Any:
        """Return the parameter in the working precision."""
        fraction = Fraction(value)
        return mpmath.mpf(fraction.numerator) / fraction.denominator

    def tidy(self, x: Any) -> Any:
        """Return the number as it is."""
        return x


def digits_of(c: sympy.Expr) -> Any:
    """Return a sympy number in mpmath's working precision: real if it is real."""
    real, imaginary = (mpmath.mpmathify(part.evalf(mpmath.mp.dps + 5)) for part in c.as_real_imag())
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
    noise = abs(mpmath.mpc(real, imaginary)) * mpmath.mpf(10) ** (-digits - 5)
    parts = [sympy.Float(p, digits) if abs(p) > noise else sympy.S.Zero for p in (real, imaginary)]
    return parts[0] + sympy.I * parts[1]
