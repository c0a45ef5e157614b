"""Concave transforms of a total, in floats and in whole numbers.

A policy speaks of φ, a release publishes a whole number: 2ᵖ·φ(x) is enclosed between integers, in
exact arithmetic for roots and with as many digits as it takes otherwise, whatever the size of x.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from mpmath import libmp

from trueup.errors import TrueupError
from trueup.formula import source
from trueup.formula.substitution import decimal
from trueup.kernels.blocks import evaluate
from trueup.mechanisms.concavity import inverse_doubt, shape_doubt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.exact import Exact

    Floats = NDArray[np.float64]

V = sympy.Symbol("v", real=True)
HINT = "give 'root:2', 'log', or a pair ('log(1 + q)', 'exp(v) - 1') of φ and its inverse"

_BEYOND = 16  # bits beyond those asked for, so that an evaluation is right to the unit asked for
_DIGITS = math.log10(2)


@dataclasses.dataclass(frozen=True)
class Transform:
    """A concave increasing φ, and its inverse as the estimator takes it.

    ``enclosure(x, p)`` returns integers around 2ᵖ·φ(x); if it is ``sharp``, the next ones below and
    above, else the lower one is up to 3 below what it encloses.
    """

    name: str
    phi: Callable[[Floats], Floats]
    inverse: sympy.Expr
    enclosure: Callable[[Fraction, int], tuple[int, int]]
    sharp: bool = False
    root: int | None = None


def read_transform(transform: Any, offset: Exact) -> Transform:
    """Return the transform that a user names or writes; formulas are proven concave above offset.

    Examples
    --------
    >>> read_transform("root:3", 0).inverse, read_transform(("log(1 + q)", "exp(v) - 1"), 0).name
    (v**3, 'log(1 + q)')
    """
    if isinstance(transform, str):
        return _named(transform)
    if isinstance(transform, Sequence) and len(transform) == 2:
        phi, inverse = transform
        return _formulas(phi, inverse, offset)
    raise TrueupError(f"unknown transform {transform!r}", HINT)


def _named(name: str) -> Transform:
    if name == "log":
        return Transform("log", np.log, sympy.exp(V), enclose_log)
    if not name.startswith("root:"):
        raise TrueupError(f"unknown transform {name!r}", HINT)
    k = name.removeprefix("root:")
    if not (k.isascii() and k.isdigit() and len(k) <= 2 and 1 <= int(k) <= 20):
        raise TrueupError(f"the root must be 1 to 20, got {name!r}", HINT)
    order = int(k)
    return Transform(
        f"root:{order}",
        lambda x: x ** (1 / order),
        V**order,
        lambda x, power: enclose_root(x, power, order),
        sharp=True,
        root=order,
    )


def _formulas(phi: Any, inverse: Any, offset: Exact) -> Transform:
    """Return a pair of formulas that is proven to fit, φ smooth, increasing and concave."""
    expr, back = _one_variable(phi, "φ"), _one_variable(inverse, "the inverse")
    doubt = shape_doubt(expr, offset) or inverse_doubt(expr, back)
    if doubt:
        raise TrueupError(
            f"no policy is known for {phi}: {doubt}",
            "give φ, smooth, increasing and concave, and its inverse as simple formulas, "
            "e.g. ('log(1 + q)', 'exp(v) - 1')",
        )
    (symbol,), exact = expr.free_symbols, decimal(expr)
    return Transform(
        str(phi),
        lambda x: evaluate(expr, {symbol: x}),
        back,
        lambda x, power: enclose_formula(exact, x, power),
    )


def _one_variable(formula: Any, name: str) -> sympy.Expr:
    if callable(formula) and not isinstance(formula, sympy.Basic):
        raise TrueupError(f"{name} must be a formula, got the Python function {formula!r}", HINT)
    expr = source.read(formula, None).expr
    if len(expr.free_symbols) != 1:
        raise TrueupError(f"{name} must have one variable, got {formula!r}", HINT)
    return expr


# -- in whole numbers ------------------------------------------------------------------------------


def enclose_root(x: Fraction, power: int, order: int) -> tuple[int, int]:
    """Return the integers next to 2ᵖ·x^{1/k}, equal if it is one itself.

    Examples
    --------
    >>> enclose_root(Fraction(27), 1, 3), enclose_root(Fraction(2), 3, 2)
    ((6, 6), (11, 12))
    """
    shift = power * order
    above, below = x.numerator << max(shift, 0), x.denominator << max(-shift, 0)
    inside = above // below
    floor = math.isqrt(inside) if order == 2 else int(sympy.integer_nthroot(inside, order)[0])
    return floor, floor + (floor**order * below != above)


def enclose_log(x: Fraction, power: int) -> tuple[int, int]:
    """Return integers around 2ᵖ·log x, three apart.

    Examples
    --------
    >>> low, high = enclose_log(Fraction(1), 10)
    >>> low < 0 < high
    True
    """
    digits = max(power, 0) + 12 + _BEYOND  # |log x| < 2¹² for every double
    value = libmp.mpf_log(libmp.from_rational(x.numerator, x.denominator, digits), digits)
    return _around(value, power)


def enclose_formula(expr: sympy.Expr, x: Fraction, power: int) -> tuple[int, int]:
    """Return integers around 2ᵖ times a formula at x, three apart.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> low, high = enclose_formula(sympy.log(1 + q), Fraction(0), 10)
    >>> low < 0 < high
    True
    """
    (symbol,) = expr.free_symbols
    at = {symbol: sympy.Rational(x.numerator, x.denominator)}
    size = abs(float(evaluate(expr, {symbol: np.array([float(x)])})[0])) + 1
    bits = max(power, 0) + math.frexp(size)[1] + _BEYOND
    return _around(_number(expr, at, math.ceil(bits * _DIGITS))._mpf_, power)


def _number(expr: sympy.Expr, at: dict[sympy.Symbol, sympy.Rational], digits: int) -> Any:
    value = expr.evalf(digits, subs=at, maxn=10 * digits + 2000)
    if isinstance(value, sympy.Float):
        return value
    if value.is_Rational:
        return sympy.Float(value, digits)
    raise TrueupError(f"{expr} has no value that is certain to {digits} digits", HINT)


def _around(value: Any, power: int) -> tuple[int, int]:
    floor = int(libmp.to_int(libmp.mpf_shift(value, power), libmp.round_floor))
    return floor - 1, floor + 2
