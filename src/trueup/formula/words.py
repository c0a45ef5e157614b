"""The words of the grammar: functions, constants, connectives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import sympy


class Function(NamedTuple):
    """A function of one argument: as sympy knows it, and in double precision."""

    symbolic: Callable[[sympy.Expr], sympy.Expr]
    numeric: Callable[[float], float]


FUNCTIONS: dict[str, Function] = {
    "abs": Function(sympy.Abs, abs),
    "exp": Function(sympy.exp, math.exp),
    "log": Function(sympy.log, math.log),
    "sqrt": Function(sympy.sqrt, math.sqrt),
    "sin": Function(sympy.sin, math.sin),
    "cos": Function(sympy.cos, math.cos),
    "tan": Function(sympy.tan, math.tan),
    "asin": Function(sympy.asin, math.asin),
    "acos": Function(sympy.acos, math.acos),
    "atan": Function(sympy.atan, math.atan),
    "sinh": Function(sympy.sinh, math.sinh),
    "cosh": Function(sympy.cosh, math.cosh),
    "tanh": Function(sympy.tanh, math.tanh),
    "asinh": Function(sympy.asinh, math.asinh),
    "acosh": Function(sympy.acosh, math.acosh),
    "atanh": Function(sympy.atanh, math.atanh),
}
"""Functions of one argument."""

EXTREMA: dict[str, type[sympy.Min] | type[sympy.Max]] = {"min": sympy.Min, "max": sympy.Max}
"""Functions of two or more arguments."""

CHOICE = "where"
"""The function of a condition and two values."""

COMPARISONS: dict[str, Callable[[sympy.Expr, sympy.Expr], sympy.Basic]] = {
    "<": sympy.Lt,
    "<=": sympy.Le,
    ">": sympy.Gt,
    ">=": sympy.Ge,
    "==": sympy.Eq,
    "!=": sympy.Ne,
}
"""Signs between two values that make a condition."""

CALLABLE = (*FUNCTIONS, *EXTREMA, CHOICE)
"""Every name that can be called."""

RESERVED = frozenset((*CALLABLE, "pi", "and", "or", "not"))
"""Words that name a variable only in backticks."""

NAMES: dict[type[sympy.Basic], str] = {
    function.symbolic: name
    for name, function in FUNCTIONS.items()
    if isinstance(function.symbolic, type)
}
"""The name of each sympy function of one argument (a root is a power)."""
