"""Evaluate one expression on columns of numbers, quietly."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from trueup.kernels.repaired import RepairedProgram
from trueup.kernels.tape import lower

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sympy
    from numpy.typing import NDArray


_MOST = 4096  # rows that are computed with more digits: nodes of a rule are very many


@lru_cache(maxsize=256)
def program(expr: sympy.Expr, symbols: tuple[sympy.Symbol, ...]) -> RepairedProgram:
    """Return the array program of an expression, made once."""
    return RepairedProgram(expr, symbols, lower(expr, symbols))


def evaluate(
    expr: sympy.Expr, columns: Mapping[sympy.Symbol, NDArray[np.float64]]
) -> NDArray[np.float64]:
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
        program(expr, symbols).run(given, out, most=_MOST)
    return out


def roughly(expr: sympy.Expr, symbol: sympy.Symbol, x: NDArray[np.float64]) -> NDArray[np.float64]:
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
