"""Which rows of a tape overflow or underflow on the way so that the result is not to be trusted.

Rounding is left aside: the error that is followed here is only what the range of doubles costs. An
underflow that is added to 1 costs nothing; an overflow below a fraction bar costs a little, an
overflow above it everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.kernels.arrays import UFUNCS, implementation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.kernels.tape import Node, Tape

    Floats = NDArray[np.float64]

_SMALL = 2.3e-308  # below, doubles lose digits
_MOST = 1.8e308  # an overflow stands for a number at least as large, in magnitude
_RELATIVE = 1e-14
_NOTHING = 1e-300  # an error that no result shows
_GENTLE = {"sin", "cos", "atan", "asinh"}  # slopes up to 1
_COMPARED = {"lt", "le", "gt", "ge", "eq", "ne"}


def doubtful(tape: Tape, columns: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return the rows whose result may be wrong, or is not finite, because of the range of doubles.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> logistic = lower(1 / (1 + sympy.exp(-x)) - sympy.exp(x) / (1 + sympy.exp(x)) ** 2, [x])
    >>> doubtful(logistic, [np.array([800.0, -800.0, 3.0])])
    array([ True, False, False])
    """
    rows = len(columns[0])
    values: list[Any] = []
    errors: list[Any] = []
    with np.errstate(all="ignore"):
        for node in tape.nodes:
            value, error = _step(node, values, errors, columns, rows)
            values.append(value)
            errors.append(error)
        result, error = values[tape.output], errors[tape.output]
        fine = np.isfinite(result) & (error <= _RELATIVE * np.abs(result) + _NOTHING)
    return np.asarray(~np.broadcast_to(fine, rows))


def _step(
    node: Node, values: list[Any], errors: list[Any], columns: Sequence[Floats], rows: int
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
    elif op in _COMPARED:
        undecided = np.abs(x[0] - x[1]) <= e[0] + e[1]
        error = np.where(undecided & (e[0] + e[1] > 0), np.inf, 0.0)
    elif op in ("and", "or", "not"):
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
    plain = np.where(beyond, (np.abs(x[0]) + e[0]) / _MOST, plain)
    plain = np.where((e[0] == 0) & (e[1] == 0) & ~beyond, 0.0, plain)
    return np.where(x[0] != 0, plain + _lost(value), plain)


def _lost(value: Any) -> Any:
    """Return what rounding below the range of full digits costs."""
    return np.where(np.abs(value) < _SMALL, 5e-324, 0.0)
