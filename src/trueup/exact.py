"""Numbers as the user meant them: integers and fractions stay exact, floats stay floats."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import sympy

from trueup.errors import TrueupError

Exact = int | Fraction | float
"""A parameter: exact where it was given exactly."""

_KINDS: tuple[Any, ...] = (Real, Decimal, sympy.Expr)
_DIGITS = 1_000  # of an exact number: doubles need 310, and nothing is gained by more


def number(value: object, name: str, *, positive: bool = False, infinite: bool = False) -> Exact:
    """Return a real parameter in its exact form, or refuse it by name.

    Integers, fractions and decimals become ``int`` or ``Fraction``; whole floats become ``int``;
    other floats stay what they are.

    Examples
    --------
    >>> number(2.0, "scale"), number(Fraction(4, 6), "scale"), number(0.1, "scale")
    (2, Fraction(2, 3), 0.1)
    """
    try:
        exact = _read(value)
    except OverflowError:
        raise TrueupError(
            f"{name} is beyond double precision, or has too many digits: {_start(value)}",
            f"give {name} with at most 1,000 digits, in size between 1e-300 and 1e300",
        ) from None
    wanted = "positive" if positive else ""
    if exact is None:
        wanted = "a number"
    elif math.isnan(exact) or (math.isinf(exact) and not infinite):
        wanted = "finite"
    elif not positive or exact > 0:
        return exact
    raise TrueupError(
        f"{name} must be {wanted}, got {value!r}",
        f"give {name} as a {'positive ' * positive}number, e.g. 2, 0.5 or Fraction(1, 3)",
    )


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
        return f"{value!r:.40}"
    except ValueError:
        return "a number of thousands of digits"


def _read(value: Any) -> Exact | None:
    """Return the exact form of a number, None for anything else; overflow beyond doubles."""
    if isinstance(value, bool) or not isinstance(value, _KINDS):
        return None
    try:
        real = float(value)
    except (TypeError, ValueError):
        return None
    finite = isinstance(value, Decimal) and value.is_finite()
    if not finite and not isinstance(value, Rational):  # those of sympy are too
        return int(real) if real.is_integer() and abs(real) < 2**53 else real
    if math.isinf(real) or (value and not real):
        raise OverflowError
    exact = Fraction(*map(int, Fraction(value).as_integer_ratio()))
    if exact.denominator.bit_length() > 4 * _DIGITS:
        raise OverflowError
    return exact.numerator if exact.denominator == 1 else exact


def symbolic(value: Exact) -> sympy.Expr:
    """Return the number as sympy sees it: exact rationals, 15-digit floats.

    Examples
    --------
    >>> symbolic(Fraction(1, 3)) + symbolic(1)
    4/3
    """
    return sympy.sympify(value)
