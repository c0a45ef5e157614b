"""Evaluate an expression on columns: fast in doubles, with more digits where doubles run out.

Which rows those are a second pass over the tape tells. Rounding is left aside there: the error that
is followed is only what the range of doubles costs. An underflow that is added to 1 costs nothing;
an overflow below a fraction bar costs a little, an overflow above it everything.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.formula.opaque import Opaque
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels import exponents
from trueup.kernels.digits import DigitsProgram
from trueup.kernels.interpreted import UFUNCS, ArrayProgram, implementation
from trueup.kernels.tape import Tape, lower

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sympy
    from numpy.typing import NDArray

    from trueup.kernels.tape import Step

    Block = NDArray[Any]
    Floats = NDArray[np.float64]

_FEW = 256  # nodes of an integral that are computed with more digits: some tenths of a second
_MOST_DIGITS = 4096  # rows that are: nodes of a rule are very many
_SMALL = 2.3e-308  # below, doubles lose digits
_LARGEST = 1.8e308  # an overflow stands for a number at least as large, in magnitude
_RELATIVE = 1e-14
_NOTHING = 1e-300  # an error that no result shows
_GENTLE = {"sin", "cos", "atan", "asinh"}  # slopes up to 1


@lru_cache(maxsize=256)
def program(expr: sympy.Expr, symbols: tuple[sympy.Symbol, ...]) -> RepairedProgram:
    """Return the array program of an expression, made once."""
    return RepairedProgram(expr, symbols, lower([expr], symbols))


def evaluate(expr: sympy.Expr, columns: Mapping[sympy.Symbol, Floats]) -> Floats:
    """Return an expression's values; poles are infinite, what is undefined is NaN.

    Examples
    --------
    >>> import sympy
    >>> q = sympy.Symbol("q", real=True)
    >>> evaluate(1 / q, {q: np.array([0.0, 2.0])})
    array([inf, 0.5])
    """
    symbols = tuple(columns)
    out = np.empty(max((len(c) for c in columns.values()), default=1))
    with np.errstate(all="ignore"):
        given = [np.broadcast_to(columns[s], out.shape) for s in symbols]
        program(expr, symbols).run(given, out, most=_MOST_DIGITS)
    return out


def value_at(expr: sympy.Expr, truth: Mapping[sympy.Symbol, float]) -> float:
    """Return an expression's value at one number for each symbol.

    Examples
    --------
    >>> import sympy
    >>> q = sympy.Symbol("q", real=True)
    >>> value_at(1 / q, {q: 2.0})
    0.5
    """
    return float(evaluate(expr, {s: np.array([q]) for s, q in truth.items()})[0])


def roughly(expr: sympy.Expr, symbol: sympy.Symbol, x: Floats) -> Floats:
    """Return an expression's values in doubles alone, infinite or NaN where those run out.

    Examples
    --------
    >>> import sympy
    >>> q = sympy.Symbol("q", real=True)
    >>> roughly(sympy.exp(q) / (sympy.exp(q) - 1), q, np.array([1e-3, 1e3]))
    array([1000.50008333,           nan])
    """
    out = np.empty(len(x))
    with np.errstate(all="ignore"):
        program(expr, (symbol,)).array.run([x], out)
    return out


class RepairedProgram:
    """An array program that looks again at rows that overflow or underflow on the way.

    ``tape`` is what the expression was lowered to.
    """

    def __init__(self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...], tape: Tape) -> None:
        self.expr, self.inputs, self.tape = expr, inputs, tape
        self.array = ArrayProgram(tape)

    @cached_property
    def digits(self) -> DigitsProgram | None:
        """The program with as many digits as it takes, None if a Python function is called."""
        if not self.inputs or self.expr.has(Opaque):
            return None
        return DigitsProgram(lower([self.expr], self.inputs, exact=True))

    def run(
        self,
        columns: Sequence[Block],
        out: Block,
        rows: Block | None = None,
        most: int | None = None,
    ) -> None:
        """Compute one block into ``out``; only some rows are looked at again.

        With ``most`` they are nodes of an integral: many of them are looked at in doubles that do
        not overflow, and at most so many with more digits.
        """
        raised: list[str] = []
        with np.errstate(all="call", call=lambda kind, flag: raised.append(kind)):
            self.array.run(columns, out)
        if raised or not np.isfinite(out).all():
            self._repair(columns, out, rows, most)

    def _repair(
        self, columns: Sequence[Block], out: Block, rows: Block | None, most: int | None
    ) -> None:
        known = [np.isfinite(c) for c in columns]
        if rows is not None:
            known.append(rows)
        some = np.flatnonzero(np.logical_and.reduce(known)) if known else np.empty(0, np.intp)
        if not len(some):
            return
        given = [c[some] for c in columns]
        at = np.flatnonzero(doubtful(self.tape, given))
        if most is not None and len(at) > _FEW:
            at = self._without_overflow(given, at, out, some)
        if not len(at) or (most is not None and len(at) > most) or self.digits is None:
            return
        points = np.stack([c[at] for c in given])
        unique, back = np.unique(points, axis=1, return_inverse=True)
        found = np.array([self.digits(point) for point in unique.T.tolist()])[back.ravel()]
        kept = ~np.isnan(found)
        out[some[at[kept]]] = found[kept]

    def _without_overflow(
        self, given: Sequence[Block], at: Block, out: Block, some: Block
    ) -> Block:
        """Compute rows in doubles that do not overflow; return those that are no numbers still."""
        if not exponents.possible(self.tape):
            return at
        found = exponents.run(self.tape, [c[at] for c in given])
        kept = np.isfinite(found)
        out[some[at[kept]]] = found[kept]
        return at[~kept]


def doubtful(tape: Tape, columns: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return the rows whose result may be wrong, or is not finite, because of the range of doubles.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> logistic = lower([1 / (1 + sympy.exp(-x)) - sympy.exp(x) / (1 + sympy.exp(x)) ** 2], [x])
    >>> doubtful(logistic, [np.array([800.0, -800.0, 3.0])])
    array([ True, False, False])
    """
    rows = len(columns[0])
    values: list[Any] = []
    errors: list[Any] = []
    with np.errstate(all="ignore"):
        for node in tape.steps:
            value, error = _step(node, values, errors, columns, rows)
            values.append(value)
            errors.append(error)
        result, error = values[tape.outputs[0]], errors[tape.outputs[0]]
        fine = np.isfinite(result) & (error <= _RELATIVE * np.abs(result) + _NOTHING)
    return np.asarray(~np.broadcast_to(fine, rows))


def _step(
    node: Step, values: list[Any], errors: list[Any], columns: Sequence[Floats], rows: int
) -> tuple[Any, Any]:
    if node.op == "input":
        return columns[node.data], 0.0
    if node.op in ("const", "truth"):
        return node.data, 0.0
    args, given = [values[a] for a in node.args], [errors[a] for a in node.args]
    if node.op == "where":
        return np.where(*args), np.where(args[0], given[1], given[2]) + given[0]
    if node.op in UFUNCS:
        value = UFUNCS[node.op](*args)
    else:
        value = np.empty(rows)
        implementation(node)(*args, out=value)
    return value, _error(node.op, value, args, given)


def _error(op: str, value: Any, x: list[Any], e: list[Any]) -> Any:
    """Return a bound on the error that the range of doubles has made."""
    if op in ("add", "sub"):
        error = e[0] + e[1]
    elif op == "mul":
        error = np.abs(x[0]) * e[1] + np.abs(x[1]) * e[0] + e[0] * e[1]
        error = np.where((x[0] != 0) & (x[1] != 0), error + _lost(value), error)
    elif op == "div":
        error = _quotient(value, x, e)
    elif op == "exp":
        error = np.where(np.isinf(x[0]) & (x[0] < 0), 0.0, value * np.expm1(e[0])) + _lost(value)
    elif op == "log":
        error = e[0] / np.maximum(np.abs(x[0]) - e[0], 0.0)
    elif op == "sqrt":
        error = np.fmin(np.sqrt(e[0]), e[0] / np.sqrt(np.maximum(x[0] - e[0], 0.0)))
    elif op in _GENTLE or op == "abs":
        error = e[0]
    elif op == "tanh":
        error = np.where(np.isinf(x[0]), 0.0, e[0])
    elif op in ("max", "min"):
        error = np.maximum(*e)
    elif op in COMPARISONS:
        undecided = np.abs(x[0] - x[1]) <= e[0] + e[1]
        error = np.where(undecided & (e[0] + e[1] > 0), np.inf, 0.0)
    elif op in CONNECTIVES:
        error = sum(e)
    else:
        underflow = np.where(x[0] != 0, _lost(value), 0.0) if op == "pow" else 0.0
        error = np.where(sum(e) > 0, np.inf, underflow)
    return np.where(np.isinf(value) | np.isnan(error), np.inf, error)


def _quotient(value: Any, x: list[Any], e: list[Any]) -> Any:
    """Return the error of a/b; an overflowed b is at least as large as the largest double."""
    room = np.maximum(np.abs(x[1]) - e[1], 0.0)
    plain = (e[0] + np.abs(value) * e[1]) / room
    beyond = np.isinf(x[1])
    plain = np.where(beyond, (np.abs(x[0]) + e[0]) / _LARGEST, plain)
    plain = np.where((e[0] == 0) & (e[1] == 0) & ~beyond, 0.0, plain)
    return np.where(x[0] != 0, plain + _lost(value), plain)


def _lost(value: Any) -> Any:
    """Return what rounding below the range of full digits costs."""
    return np.where(np.abs(value) < _SMALL, 5e-324, 0.0)
