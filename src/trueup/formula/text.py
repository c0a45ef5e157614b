"""Write a formula down in the grammar, so that it reads back as the same expression."""

# ruff: noqa: N802, N815  (a printer's methods are named after sympy's classes)

from __future__ import annotations

import re

import sympy
from sympy.core.relational import Relational
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from trueup.formula.grammar import WORD
from trueup.formula.operations import NAMES, RESERVED

_CALLS = {**NAMES, sympy.Min: "min", sympy.Max: "max"}


def text(expr: sympy.Basic) -> str:
    """Return an expression, or a condition, as text that `parse` reads.

    What the grammar does not know (a Python function, an integral) is written as sympy does.

    Examples
    --------
    >>> q, roll = (sympy.Symbol(name, real=True) for name in ("q", "pay roll"))
    >>> text(sympy.Piecewise((q**2 * roll / 3 - 1, q < 1), (sympy.sqrt(q), True)))
    'where(q < 1, `pay roll`*q**2/3 - 1, sqrt(q))'
    """
    return str(_Printer().doprint(expr))


class _Printer(StrPrinter):  # type: ignore[misc]
    """Sympy's own text, in the words of the grammar."""

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        name = str(expr.name)
        plain = re.fullmatch(WORD, name) and name.isidentifier() and name not in RESERVED
        return name if plain else "`" + name.replace("`", "``") + "`"

    _print_Dummy = _print_Symbol

    def _print_Exp1(self, _: sympy.Expr) -> str:
        return "exp(1)"

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))

    def _print_Function(self, expr: sympy.Expr) -> str:
        name = _CALLS.get(type(expr), expr.func.__name__)
        return f"{name}({', '.join(map(self._print, expr.args))})"

    _print_LatticeOp = _print_Function

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        *cases, (last, test) = expr.args
        written = self._print(last) if test == sympy.true else self._choice(last, test, "nan")
        for value, condition in reversed(cases):
            written = self._choice(value, condition, written)
        return str(written)

    def _choice(self, value: sympy.Expr, test: sympy.Basic, other: str) -> str:
        return f"where({self._print(test)}, {self._print(value)}, {other})"

    def _print_Relational(self, test: Relational) -> str:
        return f"{self._print(test.lhs)} {test.rel_op} {self._print(test.rhs)}"

    def _print_And(self, test: sympy.And) -> str:
        return str(self.stringify(test.args, " and ", PRECEDENCE["And"]))

    def _print_Or(self, test: sympy.Or) -> str:
        return str(self.stringify(test.args, " or ", PRECEDENCE["Or"]))

    def _print_Not(self, test: sympy.Not) -> str:
        return f"not {self.parenthesize(test.args[0], PRECEDENCE['Relational'])}"

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        """Return 1/sqrt(q), where sympy would write q**(-2) as such."""
        if _is_divisor(expr):
            return f"1/{self.parenthesize(1 / expr, PRECEDENCE['Mul'])}"
        return str(super()._print_Pow(expr, rational))

    def _print_Mul(self, expr: sympy.Mul) -> str:
        """Return -2*a*b/3/c: the sign, the numerator, then one division after another.

        The divisions stay apart: 1/(3*(q + 1)) would read back as 1/(3*q + 3).
        """
        coefficient, rest = expr.as_coeff_Mul()
        factors = sympy.Mul.make_args(rest)
        over = sorted((f for f in factors if not _is_divisor(f)), key=lambda f: bool(f.is_Add))
        under = [1 / f for f in factors if _is_divisor(f)]
        size = abs(coefficient)
        if coefficient.is_Rational and coefficient.q != 1:
            size = sympy.Integer(size.p)
            under.insert(0, sympy.Integer(coefficient.q))
        if size != 1 or not over:
            over.insert(0, size)
        divisors = (self.parenthesize(d, PRECEDENCE["Mul"]) for d in under)
        sign = "-" if coefficient < 0 else ""
        return sign + "/".join([self.stringify(over, "*", PRECEDENCE["Mul"]), *divisors])


def _is_divisor(factor: sympy.Expr) -> bool:
    """Tell 1/q**2 from q**2."""
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp < 0)
