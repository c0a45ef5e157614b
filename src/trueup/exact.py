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


def number(value: object, name: str, *, positive: bool = False, infinite: bool = False) -> Exact:
    """Return a real parameter in its exact form, or refuse it by name.

    Integers, fractions and decimals become ``int`` or ``Fraction``; whole floats become ``int``;
    other floats stay what they are.

    Examples
    --------
    >>> number(2.0, "scale"), number(Fraction(4, 6), "scale"), number(0.1, "scale")
    (2, Fraction(2, 3), 0.1)
    """
    exact = _read(value)
    hint = (
        f"give {name} as a {'positive ' if positive else ''}number, e.g. 2, 0.5 or Fraction(1, 3)"
    )
    if exact is None:
        raise TrueupError(f"{name} must be a number, got {value!r}", hint)
    if isinstance(exact, float) and (math.isnan(exact) or (math.isinf(exact) and not infinite)):
        raise TrueupError(f"{name} must be finite, got {value!r}", hint)
    if positive and exact <= 0:
        raise TrueupError(f"{name} must be positive, got {value!r}", hint)
    return exact


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
