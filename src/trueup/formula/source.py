"""What a user may hand over as f: text, sympy, a numpy polynomial, a table, a Python function.

A parameter of a Python function receives the statistic of its name, never one by chance order.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from trueup.domain import Integers, Interval
from trueup.errors import FormulaError, TrueupError, quoted
from trueup.exact import number, symbolic
from trueup.formula import build
from trueup.formula.grammar import parse, written
from trueup.formula.opaque import Table, opaque
from trueup.formula.text import text

_SERIES = np.polynomial.Polynomial.__mro__[1]  # of all bases

DEFAULT = "q"
"""The name of a statistic that the user did not name."""

_HINT = (
    "give a formula such as '1/q', a sympy expression, a numpy Polynomial, a Python function, "
    "or a table {k: value} on the integers"
)

_KNOWN = (
    "use real symbols and what the grammar knows: + - * / **, abs, min, max, exp, log, sin, ...; "
    "end a Piecewise with (value, True)"
)


@dataclasses.dataclass(frozen=True)
class Source:
    """A formula: its expression, and how to write it down again.

    ``note`` says what could not be checked; ``record`` is JSON, None if there is no text form;
    ``partial`` are parts as written that are not real numbers everywhere.
    """

    expr: sympy.Expr
    record: Any
    note: str | None = None
    domain: Interval | None = None
    partial: tuple[sympy.Expr, ...] = ()


def read(
    f: object,
    names: Sequence[str] | None,
    derivatives: Sequence[Callable[..., Any]] | None = None,
) -> Source:
    """Return the formula that f stands for.

    Parameters
    ----------
    f
        Text, sympy expression, numpy polynomial, table or Python callable.
    names
        The statistics, for a callable; None for a single one without a name, which then has that
        of the callable's parameter.
    derivatives
        The first and second derivative of a callable.

    Examples
    --------
    >>> read("1/q", None).expr
    1/q
    >>> read(np.polynomial.Polynomial([1, 0, 3]), None).expr
    3*q**2 + 1
    """
    if derivatives is not None and not (
        callable(f) and not isinstance(derivatives, str) and all(map(callable, derivatives))
    ):
        raise TrueupError(
            f"derivatives= are functions beside a Python function, got {derivatives!r} for {f!r}",
            "give derivatives=(f1, f2) for a function, none for a formula",
        )
    if isinstance(f, Source):
        return f
    if isinstance(f, str):
        return dataclasses.replace(_formula(parse(f)), partial=written(f)[1])
    if isinstance(f, sympy.Basic):
        return _formula(admit(f))
    if isinstance(f, _SERIES):
        return _formula(_polynomial(f, names))
    if isinstance(f, Mapping):
        return _table(f, names)
    if callable(f):
        return _callable(f, names, derivatives)
    if isinstance(f, (int, float)) and not isinstance(f, bool):
        return _formula(symbolic(number(f, "f")))
    raise FormulaError(f"f must be a formula, got {f!r}", _HINT)


def admit(expr: sympy.Expr) -> sympy.Expr:
    """Return the user's sympy expression in real symbols, or refuse what the grammar does not know.

    It is written down and read: every symbol becomes the real symbol of the same name.

    Examples
    --------
    >>> admit(sympy.Symbol("q", positive=True) ** 2 + sympy.E)
    q**2 + E
    >>> admit(sympy.gamma(sympy.Symbol("q")))
    Traceback (most recent call last):
    trueup.errors.FormulaError: 'gamma(q)' is not part of the grammar
    Hint: use real symbols and what the grammar knows: ...
    """
    if not isinstance(expr, sympy.Expr):
        raise FormulaError(
            f"a formula must be a sympy expression, got {quoted(repr(expr))}",
            "give a value; write a condition as Piecewise((1, c), (0, True))",
        )
    if build.is_long(expr, build.NODES):
        raise FormulaError(
            f"the expression is too large at {type(expr).__name__}",
            f"keep it to {build.NODES} parts, nested {build.DEPTH} deep",
        )
    for part in build.parts(expr):
        problem = _problem(part)
        if problem:
            raise FormulaError(f"{quoted(str(part))} {problem}", _KNOWN)
    return written(text(expr))[0]


def _problem(part: sympy.Basic) -> str:
    """Return why a part cannot be read, "" if it can."""
    if part.is_Symbol and not (part.is_commutative and part.is_real is not False):
        return "is not real"
    if build.is_foreign(part):
        return "is not part of the grammar"
    if isinstance(part, sympy.Piecewise) and part.args[-1][1] != sympy.true:
        return "has no value where its conditions fail"
    try:
        if part.is_Number:
            build.check_number(part)
    except build.UnfitError as unfit:
        return str(unfit)
    return ""


def _formula(expr: sympy.Expr) -> Source:
    return Source(expr, text(expr))


def _single(names: Sequence[str] | None, what: str) -> sympy.Symbol:
    name, *others = names or (DEFAULT,)
    if others:
        raise FormulaError(f"{what} has one variable, the noise names {len(others) + 1}", _HINT)
    return build.variable(name)


def _polynomial(f: Any, names: Sequence[str] | None) -> sympy.Expr:
    q = _single(names, "a polynomial")
    coefficients = f.convert(kind=np.polynomial.Polynomial).coef
    if len(coefficients) > build.EXPONENT + 1:
        problem = f"a polynomial of degree {len(coefficients) - 1}"
        raise FormulaError(problem, f"the limit is {build.EXPONENT}")
    terms = (symbolic(number(c, "coefficient")) * q**k for k, c in enumerate(coefficients))
    return sympy.Add(*terms)


def _table(f: Mapping[Any, Any], names: Sequence[str] | None) -> Source:
    values = {number(k, "a table's key"): number(v, "a table's value") for k, v in f.items()}
    keys = sorted(values)
    if not keys or keys != list(range(math.ceil(keys[0]), math.ceil(keys[0]) + len(keys))):
        raise FormulaError(
            f"a table needs a value for every integer from its first to its last key, got {keys!r}",
            "fill the gaps, e.g. {0: 1.0, 1: 0.5, 2: 0.25}",
        )
    low = int(keys[0])
    ordered = tuple(float(values[k]) for k in keys)
    expr = opaque("table", Table(low, ordered))(_single(names, "a table"))
    domain = Integers(low, low + len(keys) - 1)
    return Source(expr, {"table": [low, list(ordered)]}, domain=domain)


def _callable(
    f: Callable[..., Any],
    names: Sequence[str] | None,
    derivatives: Sequence[Callable[..., Any]] | None,
) -> Source:
    names = names or (_parameter(f) or DEFAULT,)
    if derivatives and len(names) > 1:
        raise TrueupError(
            "derivatives= are for a function of one statistic",
            "write a function of several statistics as a formula",
        )
    bound = [_by_name(function, names) for function in (f, *(derivatives or ()))]
    name = getattr(f, "__name__", "f")
    function = opaque(name if name.isidentifier() else "f", *bound)
    note = "f is a Python function: its smoothness and growth are not checked"
    return Source(function(*map(build.variable, names)), None, note)


def _by_name(f: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return f as a function of the statistics in the order given, each passed by its name.

    A single statistic is the function's one argument, whatever that is called. A parameter with a
    default that is no statistic keeps its default.
    """
    alone = len(names) == 1
    try:
        inspect.signature(f).bind(*names[:alone], **dict.fromkeys(names[alone:]))
    except (TypeError, ValueError) as error:  # ValueError: a builtin that does not say
        if alone and isinstance(error, ValueError):
            return f
        given = ", ".join(names)
        raise TrueupError(
            f"the function {getattr(f, '__name__', type(f).__name__)} cannot be called with the "
            f"statistics {given}{'' if alone else ' by name'}: {error}",
            "give a function of one argument"
            if alone
            else f"its parameters must be called like the statistics: lambda {given}: ...",
        ) from None
    return f if alone else lambda *values: f(**dict(zip(names, values, strict=True)))


def _parameter(f: Callable[..., Any]) -> str | None:
    """Return what a function calls its one argument, None where it does not say.

    Builtins and ufuncs call theirs x whatever it is: it cannot be passed by that name.
    """
    try:
        first = next(iter(inspect.signature(f).parameters.values()), None)
    except (TypeError, ValueError):
        return None
    if first is None or first.kind is not first.POSITIONAL_OR_KEYWORD:
        return None
    return None if first.name.startswith("_") else first.name
