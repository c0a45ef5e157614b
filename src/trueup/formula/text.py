"""Write a formula down in the grammar, so that it reads back as the same expression."""

from __future__ import annotations

import re
from collections.abc import Iterable

import sympy
from sympy.core.relational import Relational

from trueup.formula.grammar import WORD
from trueup.formula.operations import NAMES, RESERVED

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _POWER, _ATOM = range(8)
_CALLS = {**NAMES, sympy.Min: "min", sympy.Max: "max"}
_SHORT = 2**10  # denominator that is written as such: those of decimals are 2⁵⁰ and more


def text(expr: sympy.Basic) -> str:
    """Return an expression, or a condition, as text that `parse` reads.

    What the grammar does not know (a Python function, an integral) is written as sympy does.

    Examples
    --------
    >>> q, roll = (sympy.Symbol(name, real=True) for name in ("q", "pay roll"))
    >>> text(sympy.Piecewise((q**2 * roll / 3 - 1, q < 1), (sympy.sqrt(q), True)))
    'where(q < 1, `pay roll`*q**2/3 - 1, sqrt(q))'
    """
    return _write(expr)[0]


def _write(expr: sympy.Basic) -> tuple[str, int]:
    """Return the text and how tightly it binds."""
    if isinstance(expr, sympy.Symbol):
        name = expr.name
        plain = re.fullmatch(WORD, name) and name.isidentifier() and name not in RESERVED
        return name if plain else "`" + name.replace("`", "``") + "`", _ATOM
    if isinstance(expr, sympy.Add):
        return _sum(expr.as_ordered_terms()), _SUM
    if expr is sympy.E:
        return "exp(1)", _ATOM
    if isinstance(expr, (sympy.Mul, sympy.Pow, sympy.Rational, sympy.Float)):
        return _product(expr)
    if isinstance(expr, (Relational, sympy.And, sympy.Or, sympy.Not)):
        return _condition(expr)
    if isinstance(expr, sympy.Piecewise):
        return _cases(list(expr.args)), _ATOM
    if isinstance(expr, (sympy.Function, sympy.Min, sympy.Max)):
        name = _CALLS.get(type(expr), expr.func.__name__)
        args = map(_decimal, expr.args) if name == "exp" else expr.args
        return f"{name}({', '.join(map(text, args))})", _ATOM
    return str(expr), _ATOM


def _bracketed(written: tuple[str, int], binding: int) -> str:
    """Return a text, in brackets where it binds less tightly."""
    return written[0] if written[1] >= binding else f"({written[0]})"


def _decimal(exponent: sympy.Expr) -> sympy.Expr:
    """Return a − 0.1 for a less the fraction that the double 0.1 is: reading makes it one again."""
    constant, rest = exponent.as_coeff_Add()
    if not rest or not constant.is_Rational or constant.q <= _SHORT:
        return exponent
    if sympy.Rational(float(constant)) != constant:
        return exponent
    return sympy.Add(sympy.Float(constant), rest)


def _sum(terms: Iterable[sympy.Expr]) -> str:
    """Return terms joined by + and -."""
    result = ""
    for term in terms:
        written = _bracketed(_write(term), _SUM)
        if not result:
            result = written
        elif written.startswith("-"):
            result += f" - {written[1:].removeprefix('1*')}"
        else:
            result += f" + {written}"
    return result


def _product(expr: sympy.Expr) -> tuple[str, int]:
    """Return -2*a*b/3/c: the sign, the numerator, then one division after another.

    The divisions stay apart: 1/(3*(q + 1)) would read back as 1/(3*q + 3).
    """
    coefficient, rest = (expr, sympy.S.One) if expr.is_Number else expr.as_coeff_Mul()
    factors = [] if expr.is_Number else sympy.Mul.make_args(rest)
    over = sorted((f for f in factors if not _is_divisor(f)), key=lambda f: bool(f.is_Add))
    under = [_bracketed(_power(f.base, -f.exp), _POWER) for f in factors if _is_divisor(f)]
    if coefficient == 1 and len(over) == len(factors) == 1:
        return _power(rest.base, rest.exp) if rest.is_Pow else _write(rest)
    top, divisor = [_bracketed(_write(factor), _POWER) for factor in over], []
    size = repr(abs(float(coefficient))) if coefficient.is_Float else str(abs(coefficient.p))
    if coefficient.is_Rational and coefficient.q != 1:
        divisor = [str(coefficient.q)]
    if size != "1" or not over or (coefficient < 0 and over[0].is_Add):
        top.insert(0, size)
    sign = "-" if coefficient < 0 else ""
    written = "/".join([sign + "*".join(top), *divisor, *under])
    if sign:
        return written, _SUM
    return written, _PRODUCT if factors or divisor else _ATOM


def _is_divisor(factor: sympy.Expr) -> bool:
    """Tell 1/q**2 from q**2."""
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp < 0)


def _power(base: sympy.Expr, exponent: sympy.Expr) -> tuple[str, int]:
    """Return base**exponent, sqrt(base) or base."""
    if exponent == 1:
        return _write(base)
    if exponent == sympy.S.Half:
        return f"sqrt({text(base)})", _ATOM
    return f"{_bracketed(_write(base), _ATOM)}**{_bracketed(_write(exponent), _ATOM)}", _POWER


def _condition(test: sympy.Basic) -> tuple[str, int]:
    """Return a comparison, or conditions joined by words."""
    if isinstance(test, Relational):
        return f"{text(test.lhs)} {test.rel_op} {text(test.rhs)}", _COMPARISON
    if isinstance(test, sympy.Not):
        return f"not {_bracketed(_write(test.args[0]), _COMPARISON)}", _NOT
    word, binding = ("and", _AND) if isinstance(test, sympy.And) else ("or", _OR)
    return f" {word} ".join(_bracketed(_write(part), binding + 1) for part in test.args), binding


def _cases(cases: list[sympy.Basic]) -> str:
    """Return where(condition, value, where(...))."""
    value, test = cases[0]
    if test == sympy.true:
        return text(value)
    rest = _cases(cases[1:]) if len(cases) > 1 else "nan"
    return f"where({text(test)}, {text(value)}, {rest})"
