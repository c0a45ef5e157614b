"""Every elementary operation, once: what it is for sympy, for NumPy, and as text of Python.

Functions of the grammar come first, its other words last. What else a target has to know of an
operation stands with the target: bounds in ``inverse/ranges.py``, guards of SQL in
``sql/arithmetic.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import sympy


class Operation(NamedTuple):
    """An operation in every arithmetic.

    Parameters
    ----------
    symbolic
        As sympy knows it, None where that has a name of its own (a difference is a sum).
    ufunc
        On NumPy's arrays.
    compiled
        As text of Python, empty for functions of that name in `math`.
    """

    symbolic: Any
    ufunc: Any
    compiled: str = ""


FUNCTIONS: dict[str, Operation] = {
    "abs": Operation(sympy.Abs, np.absolute, "abs({})"),
    "exp": Operation(sympy.exp, np.exp),
    "log": Operation(sympy.log, np.log),
    "sqrt": Operation(sympy.sqrt, np.sqrt),
    "sin": Operation(sympy.sin, np.sin),
    "cos": Operation(sympy.cos, np.cos),
    "tan": Operation(sympy.tan, np.tan),
    "asin": Operation(sympy.asin, np.arcsin),
    "acos": Operation(sympy.acos, np.arccos),
    "atan": Operation(sympy.atan, np.arctan),
    "sinh": Operation(sympy.sinh, np.sinh),
    "cosh": Operation(sympy.cosh, np.cosh),
    "tanh": Operation(sympy.tanh, np.tanh),
    "asinh": Operation(sympy.asinh, np.arcsinh),
    "acosh": Operation(sympy.acosh, np.arccosh),
    "atanh": Operation(sympy.atanh, np.arctanh),
}
"""Functions of one argument, by their names in the grammar."""

COMPARISONS: dict[str, Operation] = {
    "lt": Operation(sympy.StrictLessThan, np.less, "{} < {}"),
    "le": Operation(sympy.LessThan, np.less_equal, "{} <= {}"),
    "gt": Operation(sympy.StrictGreaterThan, np.greater, "{} > {}"),
    "ge": Operation(sympy.GreaterThan, np.greater_equal, "{} >= {}"),
    "eq": Operation(sympy.Equality, np.equal, "{} == {}"),
    "ne": Operation(sympy.Unequality, np.not_equal, "{} != {}"),
}

CONNECTIVES: dict[str, Operation] = {
    "and": Operation(sympy.And, np.logical_and, "{} & {}"),
    "or": Operation(sympy.Or, np.logical_or, "{} | {}"),
    "not": Operation(sympy.Not, np.logical_not, "not {}"),
}

OPERATIONS: dict[str, Operation] = {
    **FUNCTIONS,
    **COMPARISONS,
    **CONNECTIVES,
    "add": Operation(None, np.add, "{} + {}"),
    "sub": Operation(None, np.subtract, "{} - {}"),
    "mul": Operation(None, np.multiply, "{} * {}"),
    "div": Operation(None, np.divide, "{} / {}"),
    "pow": Operation(None, np.power),
    "sign": Operation(sympy.sign, np.sign, "1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else {0}"),
    "floor": Operation(sympy.floor, np.floor, "floor({})"),
    "max": Operation(sympy.Max, np.maximum, "{0} if ({0} > {1}) | ({0} != {0}) else {1}"),
    "min": Operation(sympy.Min, np.minimum, "{0} if ({0} < {1}) | ({0} != {0}) else {1}"),
}
"""All that a tape is made of, but for choices, tables and series."""

OF_CLASS: dict[type[sympy.Basic], str] = {
    row.symbolic: name for name, row in OPERATIONS.items() if isinstance(row.symbolic, type)
}
"""The operation that a class of sympy's is (a root is a power)."""

NAMES = {kind: name for kind, name in OF_CLASS.items() if name in FUNCTIONS}
"""The name in the grammar of each of sympy's functions of one argument."""

EXTREMA = ("min", "max")
"""Functions of two or more arguments."""

CHOICE = "where"
"""The function of a condition and two values."""

CALLABLE = (*FUNCTIONS, *EXTREMA, CHOICE)
"""Every name that can be called."""

RESERVED = frozenset((*CALLABLE, "pi", "and", "or", "not"))
"""Words that name a variable only in backticks."""
