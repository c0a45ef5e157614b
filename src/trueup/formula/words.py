"""The words of the grammar: functions, constants, connectives."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from trueup.formula.operations import FUNCTIONS, OF_CLASS

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

NAMES = {kind: name for kind, name in OF_CLASS.items() if name in FUNCTIONS}
"""The name of each sympy function of one argument (a root is a power)."""
