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
    exact = None if _is_beyond(value) else _read(value)
    hint = (
        f"give {name} as a {'positive ' if positive else ''}number, e.g. 2, 0.5 or Fraction(1, 3)"
    )
    if _is_beyond(value) or (exact is not None and _is_beyond(exact)):
        raise TrueupError(
            f"{name} is beyond double precision, or has too many digits: {_start(value)}",
            f"give {name} with at most 1,000 digits, in size between 1e-300 and 1e300",
        )
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


def _is_beyond(value: object) -> bool:
    """Whether an exact number has more digits than anybody needs, or is beyond all doubles."""
    if isinstance(value, bool) or not isinstance(value, (Rational, Decimal)):
        return False
    if isinstance(value, Decimal):
        long = value.is_finite() and len(value.as_tuple().digits) > _BITS // 4
        return long or (bool(value) and value.is_finite() and abs(value.adjusted()) > _DECADES)
    top, bottom = int(value.numerator), int(value.denominator)
    if max(top.bit_length(), bottom.bit_length()) > _BITS:
        return True
    return abs(top) > _LARGEST * bottom or (top != 0 and float(Fraction(top, bottom)) == 0)


def _read(value: object) -> Exact | None:
    """Return the exact form of a number of any kind, None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, sympy.Expr):
        return (
            _whole(Fraction(int(value.p), int(value.q)))
            if value.is_Rational
            else _read_float(value)
        )
    if isinstance(value, Decimal) and value.is_finite():
        return _whole(Fraction(value))
    if isinstance(value, Rational):
        return _whole(Fraction(int(value.numerator), int(value.denominator)))
    if isinstance(value, (Real, Decimal)):
        return _read_float(value)
    return None


def _read_float(value: object) -> Exact | None:
    try:
        real = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return int(real) if math.isfinite(real) and real.is_integer() and abs(real) < 2**53 else real


def _whole(value: Fraction) -> Exact:
    return value.numerator if value.denominator == 1 else value


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
