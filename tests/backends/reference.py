"""What an estimator is, from its formulas in 60 digits, and how large its terms are.

The formula of the region is walked as sympy made it, in mpmath, without any of the kernels. Beside
the value the walk keeps the magnitude: sums of absolute values, and for a function the change that
its argument's magnitude makes. An engine may be wrong by a small part of that, no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

import mpmath
import sympy

from trueup.formula.opaque import Opaque
from trueup.noise.extension import LaguerreExtension

DIGITS = 60
_FUNCTIONS: dict[Any, tuple[Any, Any]] = {  # and their slopes
    sympy.Abs: (mpmath.fabs, lambda v: 1),
    sympy.sign: (mpmath.sign, lambda v: 0),
    sympy.exp: (mpmath.exp, mpmath.exp),
    sympy.log: (mpmath.log, lambda v: 1 / v),
    sympy.sin: (mpmath.sin, lambda v: 1),
    sympy.cos: (mpmath.cos, lambda v: 1),
    sympy.tan: (mpmath.tan, lambda v: 1 + mpmath.tan(v) ** 2),
    sympy.asin: (mpmath.asin, lambda v: 1 / mpmath.sqrt(1 - v * v)),
    sympy.acos: (mpmath.acos, lambda v: 1 / mpmath.sqrt(1 - v * v)),
    sympy.atan: (mpmath.atan, lambda v: 1 / (1 + v * v)),
    sympy.sinh: (mpmath.sinh, mpmath.cosh),
    sympy.cosh: (mpmath.cosh, mpmath.sinh),
    sympy.tanh: (mpmath.tanh, lambda v: 1 / mpmath.cosh(v) ** 2),
    sympy.asinh: (mpmath.asinh, lambda v: 1 / mpmath.sqrt(1 + v * v)),
    sympy.acosh: (mpmath.acosh, lambda v: 1 / mpmath.sqrt(v * v - 1)),
    sympy.atanh: (mpmath.atanh, lambda v: 1 / (1 - v * v)),
}


class Undefined(ArithmeticError):
    """The formula has no finite real value here."""


def exact(grid: Any, row: list[float]) -> tuple[Any, Any] | None:
    """Return (value, magnitude) at one row; None where there is no finite value."""
    with mpmath.workdps(DIGITS):
        try:
            terms = [_product(_part(part, row) for part in term) for term in grid.terms]
        except (Undefined, ZeroDivisionError, ValueError):
            return None
        return sum(v for v, _ in terms), sum(m for _, m in terms)


def _part(part: Any, row: list[float]) -> tuple[Any, Any]:
    region = tuple(b.branch(row[b.input]) for b in part.bounds)
    at = {s: mpmath.mpf(row[i]) for s, i in zip(part.symbols, part.reads, strict=True)}
    return weigh(part.expression(region), at)


def _product(factors: Iterable[tuple[Any, Any]]) -> tuple[Any, ...]:
    """Return the product of values, and that of their magnitudes."""
    columns = zip(*factors, strict=True)
    return tuple(reduce(lambda a, b: a * b, column) for column in columns)


def weigh(e: Any, at: dict[Any, Any]) -> tuple[Any, Any]:
    """Return value and magnitude of an expression."""
    if e in at:
        return at[e], abs(at[e])
    if isinstance(e, LaguerreExtension):
        return _series(e, at)
    if isinstance(e, Opaque):
        value = float(e.implementation(*(float(weigh(a, at)[0]) for a in e.args)))
        return _known(mpmath.mpf(value)), abs(mpmath.mpf(value))
    if isinstance(e, sympy.Piecewise):
        return weigh(next(value for value, condition in e.args if _holds(condition, at)), at)
    if not e.args:
        value = mpmath.mpf(e) if e.is_Float else mpmath.mpmathify(sympy.N(e, DIGITS))
        return _known(value), abs(value)
    parts = [weigh(a, at) for a in e.args]
    if isinstance(e, sympy.Add):
        return sum(v for v, _ in parts), sum(m for _, m in parts)
    if isinstance(e, sympy.Mul):
        return _product(parts)
    if isinstance(e, (sympy.Max, sympy.Min)):
        return (max if isinstance(e, sympy.Max) else min)(parts)
    if isinstance(e, sympy.Pow):
        return _power(*parts)
    (value, size), (f, slope) = parts[0], _FUNCTIONS[type(e)]
    result = _known(f(value))
    try:
        return result, abs(result) + abs(slope(value)) * size
    except ZeroDivisionError:  # at ±1: the value is exact there
        return result, abs(result)


def _power(base: tuple[Any, Any], exponent: tuple[Any, Any]) -> tuple[Any, Any]:
    (v, m), (n, k) = base, exponent
    result = _known(mpmath.power(v, n))
    if v == 0:  # terms that cancel to 60 digits leave as much as their power in doubles
        return result, mpmath.power(m, n) if n > 0 else abs(result)
    spread = abs(n) * m / abs(v) + (0 if n == int(n) else abs(mpmath.log(abs(v))) * k)
    return result, abs(result) * max(1, spread)


def _series(e: Any, at: dict[Any, Any]) -> tuple[Any, Any]:
    t, size = weigh(e.args[2], at)
    polynomial = sympy.Poly(LaguerreExtension(*e.args[:2], sympy.Symbol("t")).polynomial())
    powers = [mpmath.mpf(c.p) / c.q for c in polynomial.all_coeffs()]
    value, slope = mpmath.polyval(powers, t, derivative=True)
    terms = [mpmath.mpf(c.numerator) / c.denominator for c in e.coefficients]
    return value, sum(abs(c * mpmath.laguerre(n, 0, t)) for n, c in enumerate(terms)) + (
        abs(slope) * size
    )


def _holds(condition: Any, at: dict[Any, Any]) -> bool:
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    if isinstance(condition, (sympy.And, sympy.Or)):
        return (all if isinstance(condition, sympy.And) else any)(
            _holds(c, at) for c in condition.args
        )
    if isinstance(condition, sympy.Not):
        return not _holds(condition.args[0], at)
    if isinstance(condition, sympy.ITE):
        test, yes, no = condition.args
        return _holds(yes if _holds(test, at) else no, at)
    left, right = (weigh(a, at)[0] for a in condition.args)
    signs = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1)}
    return int(mpmath.sign(left - right)) in signs[condition.rel_op]


def _known(value: Any) -> Any:
    if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value):
        raise Undefined
    return value


_EXPECTED: dict[tuple[str, str], list[Any]] = {}


def expected(kind: Any, what: str) -> list[tuple[Any, Any] | None]:
    """Return value and magnitude of every row, computed once; None where an input is null."""
    key = (kind.name, what)
    if key not in _EXPECTED:
        rows = zip(*kind.inputs, strict=True)
        grid = kind.grid(what)
        _EXPECTED[key] = [None if None in row else exact(grid, [*row]) for row in rows]
    return _EXPECTED[key]


def disagreements(
    kind: Any, output: str, answers: list[float | None], digits: float = 1e-10
) -> list[str]:
    """Return what is wrong in a column of answers, row by row; NaN counts as null."""
    wanted = expected(kind, "value" if output == "value" else "variance")
    rows = list(zip(*kind.inputs, strict=True))
    wrong = []
    for row, got, right in zip(rows, answers, wanted, strict=True):
        known = None if got is None or got != got else float(got)
        problem = _compare(output, known, right, digits)
        if problem is not None:
            wrong.append(f"{kind.name}, {output} at {row}: {problem}")
    return wrong


def _compare(output: str, got: float | None, expected: Any, digits: float) -> str | None:
    if expected is None:
        return None if got is None else f"got {got!r}, no value expected"
    value, size = expected
    allowed = digits * size + mpmath.mpf("1e-300")
    if output == "stderr":
        if got is None:
            # where e^z is cut off at z = −300 a variance of its square is lost
            return (
                None
                if value <= max(allowed, mpmath.mpf("1e-100"))
                else f"got null, the variance is {mpmath.nstr(value)}"
            )
        if abs(mpmath.mpf(got) ** 2 - value) > allowed:
            return f"got {got!r}, expected the root of {mpmath.nstr(value, 20)}"
        return None
    if got is None:
        return f"got null, expected {mpmath.nstr(value, 20)}"
    error = abs(mpmath.mpf(got) - value)
    if math.isinf(got) or error > allowed:
        return f"got {got!r}, expected {mpmath.nstr(value, 20)}, allowed {mpmath.nstr(allowed, 3)}"
    return None
