"""Write a formula down in the grammar, so that it reads back as the same expression."""

from __future__ import annotations

from collections.abc import Iterable

import sympy
from sympy.core.relational import Relational

from trueup.formula.grammar import is_word
from trueup.formula.operations import NAMES

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _POWER, _ATOM = range(8)
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
        return _name(expr.name), _ATOM
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
    if isinstance(expr, (sympy.Min, sympy.Max)):
        return _call("min" if isinstance(expr, sympy.Min) else "max", expr.args), _ATOM
    if isinstance(expr, sympy.exp):
        return _call("exp", [_decimal(expr.args[0])]), _ATOM
    if type(expr) in NAMES:
        return _call(NAMES[type(expr)], expr.args), _ATOM
    if isinstance(expr, sympy.Function):
        return _call(expr.func.__name__, expr.args), _ATOM
    return str(expr), _ATOM


def _at_least(expr: sympy.Basic, binding: int) -> str:
    """Return the text, in brackets where it binds less tightly."""
    written, own = _write(expr)
    return written if own >= binding else f"({written})"


def _name(name: str) -> str:
    """Return a name, between backticks where it is not a plain one."""
    if is_word(name):
        return name
    return "`" + name.replace("`", "``") + "`"


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
        written = _at_least(term, _SUM)
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
    under = [_bracketed(*_power(f.base, -f.exp)) for f in factors if _is_divisor(f)]
    if coefficient == 1 and len(over) == len(factors) == 1:
        return _power(rest.base, rest.exp) if rest.is_Pow else _write(rest)
    top, divisor = [_at_least(factor, _POWER) for factor in over], []
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
        return _call("sqrt", [base]), _ATOM
    return f"{_at_least(base, _ATOM)}**{_at_least(exponent, _ATOM)}", _POWER


def _bracketed(written: str, binding: int) -> str:
    """Return a divisor, in brackets unless it is a power or less."""
    return written if binding >= _POWER else f"({written})"


def _condition(test: sympy.Basic) -> tuple[str, int]:
    """Return a comparison, or conditions joined by words."""
    if isinstance(test, Relational):
        return f"{text(test.lhs)} {test.rel_op} {text(test.rhs)}", _COMPARISON
    if isinstance(test, sympy.Not):
        return f"not {_at_least(test.args[0], _COMPARISON)}", _NOT
    word, binding = ("and", _AND) if isinstance(test, sympy.And) else ("or", _OR)
    return f" {word} ".join(_at_least(part, binding + 1) for part in test.args), binding


def _cases(cases: list[sympy.Basic]) -> str:
    """Return where(condition, value, where(...))."""
    value, test = cases[0]
    if test == sympy.true:
        return text(value)
    rest = _cases(cases[1:]) if len(cases) > 1 else "nan"
    return f"where({text(test)}, {text(value)}, {rest})"


def _call(name: str, args: Iterable[sympy.Basic]) -> str:
    """Return name(a, b)."""
    return f"{name}({', '.join(map(text, args))})"
