"""Numbers as the user meant them: integers and fractions stay exact, floats stay floats."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

import sympy

from trueup.errors import TrueupError

Exact = int | Fraction | float
"""A parameter: exact where it was given exactly."""

_BITS = 4_000  # of numerator and denominator: doubles need 1,100, and nothing is gained by more
_DECADES = 400  # a double lies between 1e-324 and 1e309
_LARGEST = Fraction(1.7e308)


def number(value: object, name: str, *, positive: bool = False, infinite: bool = False) -> Exact:
    """Return a real parameter in its exact form, or refuse it by name.

    Integers, fractions and decimals become ``int`` or ``Fraction``; whole floats become ``int``;
    other floats stay what they are.

    Examples
    --------
    >>> number(2.0, "scale"), number(Fraction(4, 6), "scale"), number(0.1, "scale")
    (2, Fraction(2, 3), 0.1)
    """
    hint = (
        f"give {name} as a {'positive ' if positive else ''}number, e.g. 2, 0.5 or Fraction(1, 3)"
    )
    try:
        exact = _read(value)
    except OverflowError:
        raise TrueupError(
            f"{name} is beyond double precision, or has too many digits: {_start(value)}",
            f"give {name} with at most 1,000 digits, in size between 1e-300 and 1e300",
        ) from None
    if exact is None:
        raise TrueupError(f"{name} must be a number, got {value!r}", hint)
    if isinstance(exact, float) and (math.isnan(exact) or (math.isinf(exact) and not infinite)):
        raise TrueupError(f"{name} must be finite, got {value!r}", hint)
    if positive and exact <= 0:
        raise TrueupError(f"{name} must be positive, got {value!r}", hint)
    return exact


def read_exact(text: str) -> Exact:
    """Return a number as :func:`str` wrote it: "3", "1/3", "0.1" or "1e-05".

    Examples
    --------
    >>> read_exact("3"), read_exact("1/3"), read_exact("1e-05")
    (3, Fraction(1, 3), 1e-05)
    """
    if "/" in text:
        return Fraction(text)
    if text.removeprefix("-").isdigit():
        return int(text)
    value = float(text)
    lost = value == 0 and text.lower().partition("e")[0].strip("-+0.")
    if lost or (math.isinf(value) and "inf" not in text.lower()):
        raise ValueError("a number beyond double precision")
    return value


def _start(value: object) -> str:
    """Return the beginning of a number; Python refuses to write out very long ones."""
    try:
        shown = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


def _read(value: object) -> Exact | None:
    """Return the exact form of a number of any kind, None for anything else."""
    exact = _fraction(value)
    if exact is not None:
        return exact.numerator if exact.denominator == 1 else exact
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal, sympy.Expr)):
        return None
    try:
        real = float(value)
    except (TypeError, ValueError):
        return None
    return int(real) if real.is_integer() and abs(real) < 2**53 else real


def _fraction(value: object) -> Fraction | None:
    """Return an exact number, None for others; overflow where no double comes near it."""
    if isinstance(value, sympy.Rational):
        value = Fraction(int(value.p), int(value.q))
    if isinstance(value, Decimal) and value.is_finite():
        size = abs(value.adjusted()) if value else 0
        if size > _DECADES or len(value.as_tuple().digits) > _BITS // 4:
            raise OverflowError
        found = Fraction(value)
    elif isinstance(value, Rational) and not isinstance(value, bool):
        found = Fraction(int(value.numerator), int(value.denominator))
    else:
        return None
    bits = max(found.numerator.bit_length(), found.denominator.bit_length())
    if bits > _BITS or abs(found) > _LARGEST or (found and not float(found)):
        raise OverflowError
    return found


def symbolic(value: Exact) -> sympy.Expr:
    """Return the number as sympy sees it: exact rationals, 15-digit floats.

    Examples
    --------
    >>> symbolic(Fraction(1, 3)) + symbolic(1)
    4/3
    """
    if isinstance(value, int):
        return sympy.Integer(value)
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    if math.isinf(value):
        return sympy.oo if value > 0 else -sympy.oo
    return sympy.Float(value)
