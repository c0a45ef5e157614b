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

    ``enclosure(x, p)`` returns integers around 2ᵖ·φ(x), None for a Python function: how it rounds
    is not known. If it is ``sharp``, they are the next ones below and above.
    """

    name: str
    phi: Callable[[Floats], Floats]
    inverse: Any
    derivatives: tuple[Callable[..., Any], ...] | None = None
    enclosure: Callable[[Fraction, int], tuple[int, int]] | None = None
    sharp: bool = False
    root: int | None = None
    formulas: tuple[sympy.Expr, sympy.Expr] | None = None

    def doubts(self, offset: Exact) -> tuple[str | None, str | None]:
        """Return what is not proven of φ, from an offset on, and of its inverse.

        Roots and the logarithm are what they are; of a Python function nothing is known.
        """
        if self.enclosure is None:
            return f"how the Python function {self.name} rounds is not known", None
        if self.formulas is None:
            return None, None
        phi, inverse = self.formulas
        shape = shape_doubt(phi, offset)
        return shape, None if shape else inverse_doubt(phi, inverse, offset)


def read_transform(transform: Any) -> Transform:
    """Return the transform that a user names, writes or programmes."""
    if isinstance(transform, str):
        return _named(transform)
    if isinstance(transform, Sequence) and 2 <= len(transform) <= 4:
        return _functions(*transform) if callable(transform[0]) else _formulas(*transform)
    raise TrueupError(f"unknown transform {transform!r}", HINT)


def _named(name: str) -> Transform:
    if name == "log":
        return Transform("log", np.log, sympy.exp(V), None, enclose_log)
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
        None,
        lambda x, power: enclose_root(x, power, order),
        True,
        order,
    )


def _functions(phi: Callable[..., Any], inverse: Any, *derivatives: Any) -> Transform:
    name = getattr(phi, "__name__", "φ")
    if not derivatives:
        raise TrueupError(
            f"the Python function {name} comes without the derivatives of its inverse",
            "give (phi, inverse, inverse′, inverse″), four functions, or two formulas",
        )
    return Transform(name, _elementwise(phi, name), inverse, derivatives)


def _formulas(phi: Any, inverse: Any, *more: Any) -> Transform:
    if more:
        raise TrueupError(
            f"derivatives are for Python functions, got {more!r} for the formula {phi!r}", HINT
        )
    expr = source.read(phi, None).expr
    if len(expr.free_symbols) != 1:
        raise TrueupError(f"φ must have one variable, got {phi!r}", HINT)
    (symbol,), exact = expr.free_symbols, decimal(expr)
    return Transform(
        str(phi),
        lambda x: evaluate(expr, {symbol: x}),
        inverse,
        None,
        lambda x, power: enclose_formula(exact, x, power),
        formulas=(expr, _one_variable(inverse)),
    )


def _one_variable(inverse: Any) -> sympy.Expr:
    expr = source.read(inverse, None).expr
    if len(expr.free_symbols) != 1:
        raise TrueupError(f"the inverse must have one variable, got {inverse!r}", HINT)
    return expr


def _elementwise(function: Callable[..., Any], name: str) -> Callable[[Floats], Floats]:
    """Return a Python function of one number as one of arrays; what it refuses is NaN."""

    def at(x: float) -> float:
        try:
            return float(function(x))
        except (ArithmeticError, ValueError):
            return math.nan
        except TypeError as problem:
            raise TrueupError(f"{name} must be a function of one number: {problem}", HINT) from None

    return np.vectorize(at, otypes=[float])


def inverse_values(transform: Transform, values: Floats) -> Any:
    """Return the values of the inverse."""
    inverse = transform.inverse
    if callable(inverse) and not isinstance(inverse, sympy.Basic):
        return _elementwise(inverse, "the inverse")(values)
    expr = _one_variable(inverse)
    (symbol,) = expr.free_symbols
    return evaluate(expr, {symbol: values})


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
