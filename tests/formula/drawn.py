"""Formulas drawn at random, and their values found without the library.

`direct` hands the text to Python itself (only texts drawn here), `value` walks the sympy tree;
both calculate with 40 digits and return None where the formula is not a real number.
"""

import operator
import re

import mpmath
import sympy
from hypothesis import strategies as st

DIGITS = 40
FUNCTIONS = (
    "abs exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()  # noqa: SIM905
)
NAMES = ("q", "s", "n")
SYMBOLS = {name: sympy.Symbol(name, real=True) for name in NAMES}

_numbers = st.sampled_from(["0", "1", "2", "3", "7", "10", "0.5", "0.25", "2.5", "1e3", "pi"])
_leaves = st.sampled_from(NAMES) | st.sampled_from(NAMES) | _numbers
_exponents = st.sampled_from(["2", "3", "-1", "-2", "0.5", "(1/3)", "s", "-n", "2**-1", "1**2"])


def _conditions(inner):
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    comparison = st.builds("{} {} {}".format, inner, signs, inner)
    joined = st.builds("{} {} {}".format, comparison, st.sampled_from(["and", "or"]), comparison)
    return comparison | joined | st.builds("not {}".format, comparison)


def _larger(inner):
    return st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}{}({})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("{}**{}".format, inner, _exponents),
        st.builds("({})**{}".format, inner, _exponents),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("where({}, {}, {})".format, _conditions(inner), inner, inner),
    )


texts = st.recursive(_leaves, _larger, max_leaves=10)
"""Well-formed formulas in q, s and n."""

points = st.fixed_dictionaries(
    {name: st.floats(-6, 6).map(lambda x: x + 0.123456789) for name in NAMES}
)
"""Values at which no comparison is a tie."""


def direct(text, point):
    """Return the value as Python's own evaluator finds it."""
    exact = re.sub(r"(?<![\w.])[0-9.]+(?:e[0-9]+)?", lambda m: f"mpf({m[0]})", text)
    scope = {name: getattr(mpmath, name) for name in FUNCTIONS if name != "abs"}
    scope |= {"mpf": mpmath.mpf, "pi": mpmath.pi, "where": lambda c, a, b: a if c else b}
    scope |= {name: mpmath.mpf(x) for name, x in point.items()}
    with mpmath.workdps(DIGITS):
        try:
            return _real(eval(exact, scope))  # noqa: S307 (the text was drawn above)
        except (ZeroDivisionError, ValueError, OverflowError, TypeError):
            return None


def value(expr, point):
    """Return the value of a sympy expression, part by part."""
    with mpmath.workdps(DIGITS):
        try:
            return _real(_value(expr, {SYMBOLS[name]: mpmath.mpf(x) for name, x in point.items()}))
        except (ZeroDivisionError, ValueError, OverflowError, TypeError):
            return None


def _real(found):
    """Return a finite real number, or None."""
    if isinstance(found, mpmath.mpc) or not mpmath.isfinite(found):
        return None
    return +found


def _value(expr, point):
    if isinstance(expr, sympy.Symbol):
        return point[expr]
    if isinstance(expr, sympy.Float):
        return mpmath.mpf(float(expr))
    if isinstance(expr, sympy.Rational):
        return mpmath.mpf(int(expr.p)) / int(expr.q)
    if isinstance(expr, sympy.Piecewise):
        return next(_value(part, point) for part, test in expr.args if _holds(test, point))
    constants = {sympy.pi: mpmath.pi, sympy.E: mpmath.e}
    if expr in constants:
        return +constants[expr]
    return _apply(expr, [_value(arg, point) for arg in expr.args])


def _apply(expr, args):
    if any(isinstance(arg, mpmath.mpc) for arg in args) or max(map(abs, args)) > 1e6:
        raise ValueError
    kinds = {sympy.Add: mpmath.fsum, sympy.Mul: mpmath.fprod, sympy.Min: min, sympy.Max: max}
    kinds |= {sympy.Pow: lambda pair: mpmath.power(*pair), sympy.Abs: lambda one: abs(one[0])}
    if type(expr) in kinds:
        return kinds[type(expr)](args)
    return getattr(mpmath, type(expr).__name__)(*args)


def _holds(test, point):
    if isinstance(test, sympy.And):
        return all(_holds(part, point) for part in test.args)
    if isinstance(test, sympy.Or):
        return any(_holds(part, point) for part in test.args)
    if isinstance(test, sympy.Not):
        return not _holds(test.args[0], point)
    if test in (sympy.true, sympy.false):
        return bool(test)
    signs = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
    sides = [_value(side, point) for side in test.args]
    if any(_real(side) is None for side in sides):
        raise ValueError
    return getattr(operator, signs[test.rel_op])(*sides)
