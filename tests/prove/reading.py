"""A formula's text, read and evaluated without the library.

The text is parsed by Python's own parser and walked with a whitelist: nothing is executed. There
are two ways to evaluate it: :func:`values` on arrays of floats (fast, to look around), and
:func:`taylor` as a Taylor series to ``DIGITS`` digits (slow, to decide). :func:`guards` lists what
must not vanish for the formula to be smooth: denominators, arguments of roots, logarithms and |·|,
both sides of a comparison.
"""

from __future__ import annotations

import ast
import contextlib
import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

DIGITS = 200
"""Limits are taken at distances down to 1e-48; four of these cancel and digits are left."""
EQUAL = mpf(f"1e-{DIGITS - 15}")
"""Two numbers this close, relative to their size, are the same number in DIGITS digits."""

Array = NDArray[np.float64]
Series = list[Any]
"""Taylor coefficients c_0, c_1, … in h, as mpmath numbers."""


class UndefinedError(ArithmeticError):
    """The formula is no finite real number here."""


class BeyondError(ArithmeticError):
    """The number is too large to be computed; nothing is said about it."""


@functools.lru_cache(maxsize=256)
def read(text: str) -> ast.expr:
    """Return the tree of a formula."""
    return ast.parse(text.strip(), mode="eval").body


def constants(tree: ast.AST) -> set[float]:
    """Return the numbers written in a formula, where special points are likely."""
    return {float(n.value) for n in ast.walk(tree) if isinstance(n, ast.Constant)}


def names(tree: ast.AST) -> set[str]:
    """Return the statistics of a formula."""
    called = {n.func for n in ast.walk(tree) if isinstance(n, ast.Call)}
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in called}
    return found - {"pi"}


# -- floats ----------------------------------------------------------------------------------------

_FLOAT: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "abs")},
    **{name: getattr(np, "arc" + name[1:]) for name in ("asin", "acos", "atan", "asinh")},
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "where": np.where,
    "min": lambda *a: functools.reduce(np.minimum, a),
    "max": lambda *a: functools.reduce(np.maximum, a),
}
_COMPARE: dict[type, Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_ARITHMETIC: dict[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


def values(tree: ast.expr, columns: Mapping[str, Any]) -> Array:
    """Return the formula at arrays of floats, NaN where it is not a real number."""
    with np.errstate(all="ignore"):
        shape = np.broadcast_shapes(*(np.shape(c) for c in columns.values()))
        return np.broadcast_to(np.asarray(_float(tree, columns), float), shape)


def _float(node: ast.expr, at: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return np.float64(value)
        case ast.Name(id="pi"):
            return np.float64(math.pi)
        case ast.Name(id=name):
            return at[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_float(inner, at)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _float(inner, at)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return np.logical_not(_float(inner, at))
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_float(left, at), _float(right, at))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_float(left, at), _float(right, at))
        case ast.BoolOp(op=op, values=parts):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return functools.reduce(join, [_float(p, at) for p in parts])
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FLOAT[name](*(_float(a, at) for a in args))
    raise ValueError(f"not in the grammar: {ast.dump(node)}")


def sizes(tree: ast.expr, at: Mapping[str, Any]) -> Array:
    """Return |f|, sums with the sizes of their terms: what a double loses of f is a part of it."""
    with np.errstate(all="ignore"):
        shape = np.broadcast_shapes(*(np.shape(c) for c in at.values()))
        return np.broadcast_to(np.asarray(_size(tree, at), float), shape)


def _size(node: ast.expr, at: Mapping[str, Any]) -> Any:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _size(left, at) + _size(right, at)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _size(left, at) * _size(right, at)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            return _size(inner, at)
        case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
            return np.where(_float(condition, at), _size(yes, at), _size(no, at))
        case ast.Call(func=ast.Name(id="min" | "max"), args=args):
            best = _float(node, at)
            sizes = [np.where(_float(a, at) == best, _size(a, at), 0.0) for a in args]
            return functools.reduce(np.maximum, sizes)
    return np.abs(_float(node, at))


def parts(tree: ast.expr, at: Mapping[str, float]) -> Iterator[float]:
    """Yield the values of all parts of a formula at one point."""
    with np.errstate(all="ignore"):
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call | ast.Name | ast.Constant):
                with contextlib.suppress(KeyError):  # the name of a function
                    yield float(_float(node, {n: np.float64(v) for n, v in at.items()}))


# -- many digits -----------------------------------------------------------------------------------


_DOUBLES = contextvars.ContextVar("numbers are doubles", default=False)


@contextlib.contextmanager
def as_doubles() -> Iterator[None]:
    """Read 0.1 as the double next to a tenth, as the library does."""
    token = _DOUBLES.set(True)
    try:
        yield
    finally:
        _DOUBLES.reset(token)


def exact(bound: float) -> mpf:
    """Return a number as it is written: 0.1 is a tenth, in formulas and as a bound."""
    with mpmath.workdps(DIGITS):
        return mpf(bound) if _DOUBLES.get() else mpf(repr(bound))


def value(tree: ast.expr, at: Mapping[str, Any]) -> mpf:
    """Return the formula at one point."""
    return taylor(tree, at)[0]


def taylor(tree: ast.expr, at: Mapping[str, Any], along: str = "", order: int = 0) -> Series:
    """Return c_0 … c_order of the formula at a point, as a series in one statistic."""
    with mpmath.workdps(DIGITS):
        return _taylor(tree, at, along, order)


def _taylor(tree: ast.expr, at: Mapping[str, Any], along: str, order: int) -> Series:
    point = {name: [mpf(v)] + [mpf(0)] * order for name, v in at.items()}
    if order:
        point[along][1] = mpf(1)
    try:
        series = _series(tree, point, order + 1)
    except (ZeroDivisionError, OverflowError, mpmath.libmp.ComplexResult) as error:
        raise UndefinedError(str(error)) from None
    if not all(mpmath.isfinite(c) for c in series):
        raise UndefinedError("not finite")
    return series


def derivatives(tree: ast.expr, at: Mapping[str, Any], along: str, order: int) -> list[mpf]:
    """Return f, f′, …, the derivative of the given order."""
    with mpmath.workdps(DIGITS):
        return [c * math.factorial(k) for k, c in enumerate(_taylor(tree, at, along, order))]


LARGEST = mpf(10) ** 1000
"""Of the argument of an exponential or a wave: it takes as many digits as that has."""
_STEEP = ("exp", "sinh", "cosh", "tanh", "sin", "cos", "tan")


def _series(node: ast.expr, at: Mapping[str, Series], n: int) -> Series:
    if _DOUBLES.get() and isinstance(node, ast.BinOp) and not names(node):
        return _constant(exact(float(_float(node, {}))), n)  # so is what is made of numbers
    match node:
        case ast.Constant(value=value):
            return _constant(exact(value), n)
        case ast.Name(id="pi"):
            return _constant(+mp.pi, n)
        case ast.Name(id=name):
            return at[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return [-c for c in _series(inner, at, n)]
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _series(inner, at, n)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_series(left, at, n), _series(right, at, n))
        case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
            return _series(yes if _holds(condition, at, n) else no, at, n)
        case ast.Call(func=ast.Name(id=name), args=args):
            inner = [_series(a, at, n) for a in args]
            if name in _STEEP and abs(inner[0][0]) > LARGEST:
                raise BeyondError("its exponential has more digits than a memory holds")
            return _MANY[name](*inner)
    raise ValueError(f"not in the grammar: {ast.dump(node)}")


def _holds(node: ast.expr, at: Mapping[str, Series], n: int) -> bool:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _holds(inner, at, n)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_holds(p, at, n) for p in parts)
        case ast.BoolOp(values=parts):
            return any(_holds(p, at, n) for p in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            try:
                sign = _order(_series(left, at, n), _series(right, at, n))
            except UndefinedError as error:  # it may make no difference which way it goes
                raise BeyondError("a condition on what is not a number") from error
            return bool(_COMPARE[type(op)](sign, 0))
    raise ValueError(f"not a condition: {ast.dump(node)}")


def _order(left: Series, right: Series) -> int:
    """Return the sign of left − right."""
    a, b = left[0], right[0]
    if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
        raise UndefinedError("a condition on what is not a number")
    if abs(a - b) <= EQUAL * (abs(a) + abs(b)):
        return 0
    return 1 if a > b else -1


def _constant(c: mpf, n: int) -> Series:
    return [c] + [mpf(0)] * (n - 1)


def _add(a: Series, b: Series) -> Series:
    return [x + y for x, y in zip(a, b, strict=True)]


def _sub(a: Series, b: Series) -> Series:
    difference = [x - y for x, y in zip(a, b, strict=True)]
    if _order(a, b) == 0:  # what is left is rounding
        difference[0] = mpf(0)
    return difference


def _mul(a: Series, b: Series) -> Series:
    return [mpmath.fsum(a[i] * b[k - i] for i in range(k + 1)) for k in range(len(a))]


def _div(a: Series, b: Series) -> Series:
    if b[0] == 0:
        raise UndefinedError("division by 0")
    out: Series = []
    for k in range(len(a)):
        out.append((a[k] - mpmath.fsum(out[i] * b[k - i] for i in range(k))) / b[0])
    return out


def _pow(a: Series, b: Series) -> Series:
    if any(b[1:]):
        return _exp(_mul(b, _log(a)))
    p = b[0]
    if p == int(p) and abs(p) <= 64:
        power = functools.reduce(_mul, [a] * abs(int(p)), _constant(mpf(1), len(a)))
        return power if p >= 0 else _div(_constant(mpf(1), len(a)), power)
    return _real_power(a, p)


def _real_power(a: Series, p: mpf) -> Series:
    """Return a^p by a·y′ = p·a′·y."""
    if a[0] < 0 and p != int(p):
        raise UndefinedError("a root of a negative number")
    if a[0] == 0:
        if p > 0 and not any(a[1:]):
            return _constant(mpf(0), len(a))
        if p > 0 and len(a) == 1:
            return [mpf(0)]
        raise UndefinedError("a power of 0")
    out = [mpmath.power(a[0], p)]
    for k in range(1, len(a)):
        total = mpmath.fsum((p * i - (k - i)) * a[i] * out[k - i] for i in range(1, k + 1))
        out.append(total / (k * a[0]))
    return out


def _exp(a: Series) -> Series:
    if abs(a[0]) > 1e12:
        raise BeyondError("an exponent beyond 1e12")
    out = [mpmath.exp(a[0])]
    for k in range(1, len(a)):
        out.append(mpmath.fsum(i * a[i] * out[k - i] for i in range(1, k + 1)) / k)
    return out


def _log(a: Series) -> Series:
    if a[0] <= 0:
        raise UndefinedError("the logarithm of what is not positive")
    return _primitive(mpmath.log(a[0]), _div(_slope(a), a))


def _sin_cos(a: Series) -> tuple[Series, Series]:
    if abs(a[0]) > 1e30:
        raise BeyondError("a wave that far out")
    sin, cos = [mpmath.sin(a[0])], [mpmath.cos(a[0])]
    for k in range(1, len(a)):
        sin.append(mpmath.fsum(i * a[i] * cos[k - i] for i in range(1, k + 1)) / k)
        cos.append(-mpmath.fsum(i * a[i] * sin[k - i] for i in range(1, k + 1)) / k)
    if abs(sin[0]) < EQUAL * (1 + abs(a[0])):
        sin[0] = mpf(0)
    if abs(cos[0]) < EQUAL * (1 + abs(a[0])):
        cos[0] = mpf(0)
    return sin, cos


def _slope(a: Series) -> Series:
    """Return a′, the last coefficient unknown and 0."""
    return [k * a[k] for k in range(1, len(a))] + [mpf(0)]


def _primitive(first: mpf, slope: Series) -> Series:
    return [first] + [slope[k - 1] / k for k in range(1, len(slope))]


def _through(
    function: Callable[[mpf], Any], slope: Callable[[Series], Series]
) -> Callable[[Series], Series]:
    """Return a function of a series from its value and its derivative."""

    def of(a: Series) -> Series:
        first = function(a[0])
        if isinstance(first, mpmath.mpc) or not mpmath.isfinite(first):
            raise UndefinedError("not a finite real number")
        if len(a) == 1 or not any(a[1:]):
            return _constant(first, len(a))
        return _primitive(first, _mul(_slope(a), slope(a)))

    return of


def _one(a: Series, sign: int = 1, square: int = 1) -> Series:
    """Return sign·1 + square·a²."""
    return _add(_constant(mpf(sign), len(a)), [square * c for c in _mul(a, a)])


def _root(a: Series, sign: int = 1) -> Series:
    return [sign * c for c in _real_power(a, mpf(-1) / 2)]


def _absolute(a: Series) -> Series:
    if a[0] == 0 and any(a[1:]):
        raise UndefinedError("a kink, from which side?")
    return [-c for c in a] if a[0] < 0 else a


def _sinh(a: Series, sign: int = -1) -> Series:
    up, down = _exp(a), _exp([-c for c in a])
    return [(u + sign * d) / 2 for u, d in zip(up, down, strict=True)]


def _best(sign: int) -> Callable[..., Series]:
    def choose(*parts: Series) -> Series:
        best = parts[0]
        for part in parts[1:]:
            if _order(part, best) * sign > 0:
                best = part
        return best

    return choose


_BINARY = {ast.Add: _add, ast.Sub: _sub, ast.Mult: _mul, ast.Div: _div, ast.Pow: _pow}
_MANY: dict[str, Callable[..., Series]] = {
    "abs": _absolute,
    "exp": _exp,
    "log": _log,
    "sqrt": lambda a: _real_power(a, mpf(1) / 2),
    "sin": lambda a: _sin_cos(a)[0],
    "cos": lambda a: _sin_cos(a)[1],
    "tan": lambda a: _div(*_sin_cos(a)),
    "asin": _through(mpmath.asin, lambda a: _root(_one(a, 1, -1))),
    "acos": _through(mpmath.acos, lambda a: _root(_one(a, 1, -1), -1)),
    "atan": _through(mpmath.atan, lambda a: _div(_constant(mpf(1), len(a)), _one(a))),
    "sinh": _sinh,
    "cosh": lambda a: _sinh(a, 1),
    "tanh": _through(mpmath.tanh, lambda a: _div(_constant(mpf(1), len(a)), _one(_sinh(a)))),
    "asinh": _through(mpmath.asinh, lambda a: _root(_one(a))),
    "acosh": _through(mpmath.acosh, lambda a: _root(_one(a, -1))),
    "atanh": _through(mpmath.atanh, lambda a: _div(_constant(mpf(1), len(a)), _one(a, 1, -1))),
    "min": _best(-1),
    "max": _best(1),
}


# -- guards ----------------------------------------------------------------------------------------


def guards(tree: ast.expr) -> list[ast.expr]:
    """Return the parts of a formula at whose zeros it may not be smooth."""
    found = {ast.dump(g): g for node in ast.walk(tree) for g in _guards(node)}
    return list(found.values())


def _guards(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, comparators=[right]):
            yield _minus(left, right)
        case ast.BinOp(op=ast.Div(), right=right):
            yield right
        case ast.BinOp(op=ast.Pow(), left=base, right=exponent):
            if not _harmless(exponent):
                yield base
        case ast.Call(func=ast.Name(id="abs" | "log" | "sqrt"), args=[inner]):
            yield inner
        case ast.Call(func=ast.Name(id="tan"), args=[inner]):
            yield ast.Call(ast.Name("cos"), [inner], [])
        case ast.Call(func=ast.Name(id="asin" | "acos" | "atanh"), args=[inner]):
            yield from (_minus(inner, ast.Constant(1)), _minus(inner, ast.Constant(-1)))
        case ast.Call(func=ast.Name(id="acosh"), args=[inner]):
            yield _minus(inner, ast.Constant(1))
        case ast.Call(func=ast.Name(id="min" | "max"), args=parts):
            yield from (_minus(a, b) for a, b in itertools.combinations(parts, 2))


def _harmless(exponent: ast.expr) -> bool:
    return isinstance(exponent, ast.Constant) and isinstance(exponent.value, int)


def _minus(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Sub(), right)
