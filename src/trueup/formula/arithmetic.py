"""Build values: numbers, variables, sums, products, powers, functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import sympy

from trueup.exact import number, symbolic
from trueup.formula import limits
from trueup.formula.nodes import (
    UnfitError,
    Value,
    check_degree,
    check_digits,
    check_number,
    checked,
    fold,
    is_foreign,
    not_a_number,
)
from trueup.formula.operations import EXTREMA, FUNCTIONS


def variable(name: str) -> Value:
    """Return the variable of that name: a real symbol."""
    return Value(sympy.Symbol(name, real=True), None, 1)


def constant(expr: sympy.Expr) -> Value:
    """Return an exact number, a float or π.

    Examples
    --------
    >>> constant(sympy.pi).constant
    3.141592653589793
    """
    return Value(expr, float(expr), 0)


def number_of(expr: sympy.Expr) -> Value:
    """Return a sympy number, exact where it is whole, refusing what is beyond double precision.

    Examples
    --------
    >>> number_of(sympy.Float(3.0)).expr
    3
    """
    if not (expr.is_Rational or expr.is_Float or expr in (sympy.pi, sympy.E)):
        raise not_a_number()
    if expr.is_Number:
        check_number(expr)
    if expr.is_Float:
        expr = symbolic(number(float(expr), "number"))
    return constant(expr)


def literal(digits: str) -> Value:
    """Return a written number, exact where it is whole.

    Examples
    --------
    >>> literal("1e3").expr, literal("0.10").expr
    (1000, 0.100000000000000)
    """
    mantissa, _, exponent = digits.lower().partition("e")
    long = len(mantissa.replace(".", "")) > limits.DIGITS or len(exponent) > 6
    if long or abs(int(exponent or 0)) > limits.DECIMAL_EXPONENT:
        hint = f"use at most {limits.DIGITS} digits and exponents up to {limits.DECIMAL_EXPONENT}"
        raise UnfitError("has too many digits", hint)
    given = int(mantissa) if mantissa.isdigit() and not exponent else float(digits)
    if given == 0 and mantissa.strip("0."):
        raise not_a_number()
    return number_of(symbolic(number(given, "number")))


def total(terms: Sequence[Value]) -> Value:
    """Return the sum of the terms."""
    degree = max(term.degree for term in terms)
    return checked(lambda: _sum(_exprs(terms)), fold(math.fsum, terms), degree)


def _sum(exprs: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return a sum; its numbers as one fraction of decimals where a double would lose the least."""
    numbers, rest = zip(*(e.as_coeff_Add() for e in exprs), strict=True)
    given = [n for n in numbers if n]
    if not any(rest) or not all(n.is_Rational or n.is_Float for n in given):
        return sympy.Add(*exprs)
    exact = sympy.Add(*(sympy.Rational(repr(float(n))) if n.is_Float else n for n in given))
    lost = abs(exact - sympy.Rational(*float(exact).as_integer_ratio()))
    if not any(n.is_Float for n in given) or lost <= _LEAST * min(map(abs, given)):
        return sympy.Add(*exprs)
    return sympy.Add(exact, *rest)


def product(factors: Sequence[Value]) -> Value:
    """Return the product of the factors."""
    degree = sum(factor.degree for factor in factors)
    return checked(lambda: sympy.Mul(*_exprs(factors)), fold(math.prod, factors), degree)


_LEAST = 2.0**-40
"""The part of the smallest number of a sum that may be lost."""

MINUS_ONE = constant(sympy.Integer(-1))


def negative(value: Value) -> Value:
    """Return minus the value."""
    return product([MINUS_ONE, value])


def reciprocal(value: Value) -> Value:
    """Return 1 over the value."""
    if value.expr == 0 or value.constant == 0:
        raise UnfitError("divides by zero", "divide by something that is not zero")
    return power(value, MINUS_ONE)


def power(base: Value, exponent: Value) -> Value:
    """Return base to the exponent; a constant exponent is at most 100, the degree at most 200.

    Examples
    --------
    >>> power(variable("q"), constant(sympy.Integer(3))).expr
    q**3
    """
    size = exponent.constant
    if size is None and base.constant == 0:
        reason = "is a power of 0 whose exponent is no number"
        raise UnfitError(reason, "write what is meant: where(q == 0, 1, 0)")
    if size is None:
        degree = max(1, base.degree) * max(1, exponent.degree)
    else:
        if abs(size) > limits.EXPONENT:
            reason = f"has the exponent {size:.6g}, beyond {limits.EXPONENT}"
            raise UnfitError(reason, f"use exponents of at most {limits.EXPONENT} in size")
        degree = math.ceil(base.degree * abs(size))
    value = fold(lambda pair: pair[0] ** pair[1], [base, exponent])
    check_degree(degree)
    check_digits(base.expr, exponent.expr)
    return checked(lambda: raised(base.expr, exponent.expr), value, degree)


def raised(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    """Return a power; a sum stays as it is, without sympy asking at length whether it is infinite.

    Examples
    --------
    >>> raised(sympy.Symbol("q", real=True) + 1, sympy.Integer(-1))
    1/(q + 1)
    """
    if base.is_Add and base.free_symbols and exponent.is_Integer and abs(exponent - 1) > 1:
        return sympy.Pow(base, exponent, evaluate=False)
    return sympy.Pow(base, exponent)


def call(name: str, argument: Value) -> Value:
    """Return a function of one argument.

    Examples
    --------
    >>> call("sqrt", variable("q")).expr
    sqrt(q)
    """
    if name == "sqrt":
        return power(argument, constant(sympy.Rational(1, 2)))
    function = FUNCTIONS[name]
    value = fold(lambda one: function.numeric(one[0]), [argument])
    degree = 0 if value is not None else max(1, argument.degree)
    if name == "abs":
        return checked(lambda: absolute(argument.expr), value, degree)
    if name == "exp":
        return checked(lambda: exponential(argument.expr), value, degree)
    return checked(lambda: function.symbolic(argument.expr), value, degree)


def absolute(expr: sympy.Expr) -> sympy.Expr:
    """Return |expr|; sympy's own answer may speak of complex parts, then leave it as it is."""
    evaluated = sympy.Abs(expr)
    return sympy.Abs(expr, evaluate=False) if is_foreign(evaluated) else evaluated


def exponential(expr: sympy.Expr) -> sympy.Expr:
    """Return e^expr; sympy would round e^0.1 in e^(q − 0.1), which then is not 1 at 0.1.

    Examples
    --------
    >>> exponential(sympy.Symbol("q", real=True) - 0.125)
    exp(q - 1/8)
    """
    terms = (sympy.Rational(t) if t.is_Float else t for t in sympy.Add.make_args(expr))
    return sympy.exp(sympy.Add(*terms) if expr.is_Add else expr)


def extremum(name: str, values: Sequence[Value]) -> Value:
    """Return the least or the greatest of the values.

    Built unevaluated: sympy compares all pairs otherwise, which takes seconds.

    Examples
    --------
    >>> extremum("max", [variable("q"), constant(sympy.Integer(0))]).expr
    Max(0, q)
    """
    kind = EXTREMA[name]
    pick: Callable[..., float] = min if name == "min" else max
    flat = dict.fromkeys(a for v in values for a in _alike(kind, v.expr))
    if len(flat) > limits.ARGUMENTS:
        reason = f"has {len(flat)} arguments, more than {limits.ARGUMENTS}"
        raise UnfitError(reason, f"give {name} at most {limits.ARGUMENTS} different arguments")
    numbers = [arg for arg in flat if not arg.free_symbols]
    rest = [arg for arg in flat if arg.free_symbols]
    best = [pick(numbers, key=float)] if numbers else []
    value = fold(pick, values)
    degree = max(v.degree for v in values)
    return checked(lambda: kind(*best, *rest, evaluate=False), value, degree)


def _alike(kind: type[sympy.Expr], expr: sympy.Expr) -> Sequence[sympy.Expr]:
    """Return the arguments of a min in a min, the expression itself otherwise."""
    return expr.args if isinstance(expr, kind) else (expr,)


def _exprs(values: Sequence[Value]) -> list[sympy.Expr]:
    return [value.expr for value in values]
