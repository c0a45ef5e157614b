"""Every elementary operation, once: what it is for sympy, Python, NumPy, a compiler and mpmath.

Functions of the grammar come first, its other words last. What else a target has to know of an
operation stands with the target: bounds in ``inverse/ranges.py``, guards of SQL in
``sql/writer.py``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy


class Operation(NamedTuple):
    """An operation in every arithmetic.

    Parameters
    ----------
    symbolic
        As sympy knows it, None where that has a name of its own (a difference is a sum).
    numeric
        On Python's floats.
    ufunc
        On NumPy's arrays.
    compiled
        The text that a compiler gets; where it is empty NumPy's vectorised loop is faster.
    analytic
        At complex numbers with many digits, None where it is not analytic.
    """

    symbolic: Any
    numeric: Callable[..., Any]
    ufunc: Any
    compiled: str = ""
    analytic: Callable[[Any], Any] | None = None


def _sign(a: float) -> float:
    return math.copysign(1.0, a) if a else a


def _floor(a: float) -> float:
    return float(math.floor(a))


def _maximum(a: float, b: float) -> float:
    return a if a > b or a != a else b


def _minimum(a: float, b: float) -> float:
    return a if a < b or a != a else b


FUNCTIONS: dict[str, Operation] = {
    "abs": Operation(sympy.Abs, abs, np.absolute, "abs({})"),
    "exp": Operation(sympy.exp, math.exp, np.exp, analytic=mpmath.exp),
    "log": Operation(sympy.log, math.log, np.log, analytic=mpmath.log),
    "sqrt": Operation(sympy.sqrt, math.sqrt, np.sqrt, "sqrt({})"),
    "sin": Operation(sympy.sin, math.sin, np.sin, analytic=mpmath.sin),
    "cos": Operation(sympy.cos, math.cos, np.cos, analytic=mpmath.cos),
    "tan": Operation(sympy.tan, math.tan, np.tan, analytic=mpmath.tan),
    "asin": Operation(sympy.asin, math.asin, np.arcsin, analytic=mpmath.asin),
    "acos": Operation(sympy.acos, math.acos, np.arccos, analytic=mpmath.acos),
    "atan": Operation(sympy.atan, math.atan, np.arctan, analytic=mpmath.atan),
    "sinh": Operation(sympy.sinh, math.sinh, np.sinh, analytic=mpmath.sinh),
    "cosh": Operation(sympy.cosh, math.cosh, np.cosh, analytic=mpmath.cosh),
    "tanh": Operation(sympy.tanh, math.tanh, np.tanh, analytic=mpmath.tanh),
    "asinh": Operation(sympy.asinh, math.asinh, np.arcsinh, analytic=mpmath.asinh),
    "acosh": Operation(sympy.acosh, math.acosh, np.arccosh, analytic=mpmath.acosh),
    "atanh": Operation(sympy.atanh, math.atanh, np.arctanh, analytic=mpmath.atanh),
}
"""Functions of one argument, by their names in the grammar."""

COMPARISONS: dict[str, Operation] = {
    "lt": Operation(sympy.StrictLessThan, operator.lt, np.less, "{} < {}"),
    "le": Operation(sympy.LessThan, operator.le, np.less_equal, "{} <= {}"),
    "gt": Operation(sympy.StrictGreaterThan, operator.gt, np.greater, "{} > {}"),
    "ge": Operation(sympy.GreaterThan, operator.ge, np.greater_equal, "{} >= {}"),
    "eq": Operation(sympy.Equality, operator.eq, np.equal, "{} == {}"),
    "ne": Operation(sympy.Unequality, operator.ne, np.not_equal, "{} != {}"),
}

CONNECTIVES: dict[str, Operation] = {
    "and": Operation(sympy.And, operator.and_, np.logical_and, "{} & {}"),
    "or": Operation(sympy.Or, operator.or_, np.logical_or, "{} | {}"),
    "not": Operation(sympy.Not, operator.not_, np.logical_not, "not {}"),
}

OPERATIONS: dict[str, Operation] = {
    **FUNCTIONS,
    **COMPARISONS,
    **CONNECTIVES,
    "add": Operation(None, operator.add, np.add, "{} + {}"),
    "sub": Operation(None, operator.sub, np.subtract, "{} - {}"),
    "mul": Operation(None, operator.mul, np.multiply, "{} * {}"),
    "div": Operation(None, operator.truediv, np.divide, "{} / {}"),
    "pow": Operation(None, math.pow, np.power),
    "sign": Operation(
        sympy.sign, _sign, np.sign, "1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else {0}"
    ),
    "floor": Operation(sympy.floor, _floor, np.floor, "floor({})"),
    "max": Operation(sympy.Max, _maximum, np.maximum, "{0} if ({0} > {1}) | ({0} != {0}) else {1}"),
    "min": Operation(sympy.Min, _minimum, np.minimum, "{0} if ({0} < {1}) | ({0} != {0}) else {1}"),
}
"""All that a tape is made of, but for choices, tables and series."""

OF_CLASS: dict[type[sympy.Basic], str] = {
    row.symbolic: name for name, row in OPERATIONS.items() if isinstance(row.symbolic, type)
}
"""The operation that a class of sympy's is (a root is a power)."""

NAMES = {kind: name for kind, name in OF_CLASS.items() if name in FUNCTIONS}
"""The name in the grammar of each of sympy's functions of one argument."""

SIGNS: dict[str, Callable[[sympy.Expr, sympy.Expr], sympy.Basic]] = {
    row.symbolic.rel_op: row.symbolic for row in COMPARISONS.values()
}
"""Signs between two values that make a condition: <, <=, >, >=, ==, !=."""

EXTREMA: dict[str, type[sympy.Min] | type[sympy.Max]] = {"min": sympy.Min, "max": sympy.Max}
"""Functions of two or more arguments."""

CHOICE = "where"
"""The function of a condition and two values."""

CALLABLE = (*FUNCTIONS, *EXTREMA, CHOICE)
"""Every name that can be called."""

RESERVED = frozenset((*CALLABLE, "pi", "and", "or", "not"))
"""Words that name a variable only in backticks."""
